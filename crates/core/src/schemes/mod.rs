//! One file a scheme; each reads as its specification.

pub mod cuid;
pub mod ksuid;
pub mod locality;
pub mod nanoid;
pub mod objectid;
pub mod sandflake;
pub mod sno;
pub mod snowflake;
pub mod ulid;
pub mod uuid;
pub mod xid;

use crate::error::Error;
use crate::format::Format;
use crate::units::UnixMs;

/// Every format with a structure of its own; equally likely readings keep this order.
pub static FORMATS: [&[Format<'static>]; 10] = [
    &[sno::FORMAT],
    &snowflake::FORMATS,
    &[locality::FORMAT],
    &uuid::FORMATS,
    &[ulid::FORMAT],
    &[ksuid::FORMAT],
    &[objectid::FORMAT],
    &[xid::FORMAT],
    &cuid::FORMATS,
    &[sandflake::FORMAT],
];

/// Formats that nearly any text of their length would fit: considered only where no other format fits.
pub static LAST_RESORTS: [&[Format<'static>]; 1] = [&[uuid::OTHER, cuid::CUID2, nanoid::FORMAT]];

/// What a pool's node numbers mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolLayout {
    /// As generators write it, and stores keep it.
    pub text: String,
    /// How many node numbers it has.
    pub nodes: u64,
    /// When its generators can mint no more.
    pub ends: UnixMs,
}

impl PoolLayout {
    /// Reads a layout's text or its short name: `sno`, `snowflake`, or the name of a snowflake layout. `None` if it is
    /// neither.
    ///
    /// # Errors
    /// [`Error::Layout`]: it declares fields that do not fit.
    pub fn read(text: &str) -> Result<Option<Self>, Error> {
        let scheme = text.split([' ', '/']).next();
        Ok(match scheme {
            Some("sno") => sno::read_shards(text).map(sno::pool_layout),
            Some("locality") => (text == locality::POOL).then(locality::pool_layout),
            _ => snowflake::Layout::of_pool(text)?.map(|layout| layout.pool_layout()),
        })
    }
}
