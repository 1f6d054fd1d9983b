//! One file a scheme; each reads as its specification.

pub mod cuid;
pub mod cuid2;
pub mod ksuid;
pub mod ksuid_ms;
pub mod locality;
pub mod nanoid;
pub mod objectid;
pub mod randflake;
pub mod sandflake;
pub mod sno;
pub mod snowflake;
pub mod tsid;
pub mod ulid;
pub mod uuid;
pub mod xid;

use crate::error::Error;
use crate::format::Format;
use crate::layout::PoolLayout;
use crate::ticked::Ticked as _;

/// Every format with a structure of its own; equally likely readings keep this order.
pub static FORMATS: [&[Format<'static>]; 13] = [
    &[sno::FORMAT],
    &snowflake::FORMATS,
    &[locality::FORMAT],
    &uuid::FORMATS,
    &[ulid::FORMAT],
    &[ksuid::FORMAT],
    &[ksuid_ms::FORMAT],
    &[objectid::FORMAT],
    &[xid::FORMAT],
    &cuid::FORMATS,
    &[sandflake::FORMAT],
    &[tsid::FORMAT],
    &[randflake::FORMAT],
];

/// Formats that nearly any text of their length would fit: considered only where no other format fits.
pub static LAST_RESORTS: [&[Format<'static>]; 1] = [&[uuid::OTHER, cuid2::FORMAT, nanoid::FORMAT]];

/// The layouts of pools that have one each, under its name.
static POOLS: [fn() -> PoolLayout; 10] = [
    locality::pool_layout,
    || uuid::Version::V1.pool_layout(),
    || uuid::Version::V6.pool_layout(),
    || uuid::Version::V7.pool_layout(),
    ulid::Id::pool_layout,
    ksuid::Id::pool_layout,
    ksuid_ms::Id::pool_layout,
    xid::Id::pool_layout,
    objectid::Id::pool_layout,
    sandflake::Id::pool_layout,
];

/// Reads the text or the short name of a pool's layout: that of a scheme, or of a snowflake layout. `None` if it is neither.
///
/// # Errors
/// [`Error::Layout`]: it declares fields that do not fit.
pub fn read_pool_layout(text: &str) -> Result<Option<PoolLayout>, Error> {
    if let Some(found) = POOLS.iter().map(|layout| layout()).find(|layout| layout.text == text) {
        return Ok(Some(found));
    }
    Ok(match text.split([' ', '/']).next() {
        Some("sno") => sno::read_shards(text).map(sno::pool_layout),
        _ => snowflake::Layout::of_pool(text)?.map(|layout| layout.pool_layout()),
    })
}
