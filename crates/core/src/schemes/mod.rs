//! The schemes, one file each, which reads as its specification; and the list of all.

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

/// The declarations of one scheme.
#[derive(Debug)]
pub struct Scheme {
    /// Its formats with a structure of their own.
    pub formats: &'static [Format<'static>],
    /// Its formats that nearly any text of their length fits.
    pub ambiguous: &'static [Format<'static>],
    /// The layouts of its pools.
    pub pools: Pools,
}

/// The layouts that the pools of a scheme can have.
#[derive(Clone, Copy, Debug)]
pub enum Pools {
    /// The layouts of these functions, each under a name of its own; none if its IDs have no leased node number.
    Named(&'static [fn() -> PoolLayout]),
    /// The layouts that this parser reads.
    Parsed(fn(&str) -> Result<Option<PoolLayout>, Error>),
}

const fn scheme(formats: &'static [Format<'static>], pools: Pools) -> Scheme {
    Scheme { formats, ambiguous: &[], pools }
}

const fn with_ambiguous(scheme: Scheme, ambiguous: &'static [Format<'static>]) -> Scheme {
    Scheme { ambiguous, ..scheme }
}

/// Every scheme. Readings of equal weight keep this order.
pub static SCHEMES: [Scheme; 15] = [
    scheme(&[sno::FORMAT], Pools::Parsed(|text| Ok(sno::read_shards(text).map(sno::pool_layout)))),
    scheme(
        &snowflake::FORMATS,
        Pools::Parsed(|text| Ok(snowflake::Layout::of_pool(text)?.map(|layout| layout.pool_layout()))),
    ),
    scheme(&[locality::FORMAT], Pools::Named(&[locality::pool_layout])),
    with_ambiguous(scheme(&uuid::FORMATS, Pools::Named(&uuid::POOL_LAYOUTS)), &[uuid::OTHER]),
    scheme(&[ulid::FORMAT], Pools::Named(&[ulid::Id::pool_layout])),
    scheme(&[ksuid::FORMAT], Pools::Named(&[ksuid::Id::pool_layout])),
    scheme(&[ksuid_ms::FORMAT], Pools::Named(&[ksuid_ms::Id::pool_layout])),
    scheme(&[objectid::FORMAT], Pools::Named(&[objectid::Id::pool_layout])),
    scheme(&[xid::FORMAT], Pools::Named(&[xid::Id::pool_layout])),
    scheme(&cuid::FORMATS, Pools::Named(&[])),
    scheme(&[sandflake::FORMAT], Pools::Named(&[sandflake::Id::pool_layout])),
    scheme(&[tsid::FORMAT], Pools::Named(&[])),
    scheme(&[randflake::FORMAT], Pools::Named(&[])),
    with_ambiguous(scheme(&[], Pools::Named(&[])), &[cuid2::FORMAT]),
    with_ambiguous(scheme(&[], Pools::Named(&[])), &[nanoid::FORMAT]),
];

/// Returns every format with a structure of its own.
pub fn formats() -> impl Iterator<Item = &'static Format<'static>> {
    SCHEMES.iter().flat_map(|scheme| scheme.formats)
}

/// Returns the formats that are considered only where no other format fits.
pub fn ambiguous_formats() -> impl Iterator<Item = &'static Format<'static>> {
    SCHEMES.iter().flat_map(|scheme| scheme.ambiguous)
}

/// Reads the text or the short name of a pool's layout: that of a scheme, or of a snowflake layout. `None` if it is
/// neither.
///
/// # Errors
/// [`Error::Layout`]: it declares fields that do not fit.
///
/// ```
/// use mintage_core::schemes::read_pool_layout;
/// assert_eq!(read_pool_layout("twitter").unwrap().unwrap().nodes, 1024);
/// assert!(read_pool_layout("no layout").unwrap().is_none());
/// ```
pub fn read_pool_layout(text: &str) -> Result<Option<PoolLayout>, Error> {
    for scheme in &SCHEMES {
        let found = match scheme.pools {
            Pools::Named(layouts) => layouts.iter().map(|layout| layout()).find(|layout| layout.text == text),
            Pools::Parsed(read) => read(text)?,
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}
