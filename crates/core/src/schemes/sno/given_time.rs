//! IDs of given times.

use super::id::Id;
use super::step::Bounds;
use super::unit;
use crate::error::Error;
use crate::units::{UnixMs, UnixNs};

/// Returns the `n`-th ID of given times, on timeline 0. Its sequence number rolls over within the bounds, outside the
/// tick-tock rule; snapshots do not contain `n`.
///
/// # Errors
/// [`Error::Time`] outside the layout.
pub fn ported(time: UnixMs, n: u64, meta: u8, partition: u16, bounds: Bounds) -> Result<Id, Error> {
    let sequence = bounds.min + (n % u64::from(bounds.capacity())) as u16;
    Ok(Id::new(unit(time)?.0 << 1, meta, partition, sequence))
}

/// Returns the smallest or the largest ID of a time's unit: a bound of a range query.
///
/// # Errors
/// [`Error::Time`] outside the layout.
pub fn bound(time: UnixNs, is_high: bool) -> Result<Id, Error> {
    let (tick, rest) = if is_high { (1, u16::MAX) } else { (0, 0) };
    Ok(Id::new(unit(time.floor_ms())?.0 << 1 | tick, rest as u8, rest, rest))
}
