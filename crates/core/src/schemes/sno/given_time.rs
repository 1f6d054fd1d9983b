//! IDs of given times.

use super::id::Id;
use super::step::Bounds;
use super::unit;
use crate::cell::Cell;
use crate::error::Error;
use crate::units::{UnixMs, UnixNs};

/// The counter of `new_at`. It rolls over within the bounds, outside the tick-tock rule.
#[derive(Debug)]
pub struct PortingCounter(Cell);

impl PortingCounter {
    /// Returns a counter that starts at the lower bound. Snapshots do not contain it.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self(Cell::new(bounds.min.into()))
    }

    fn after(sequence: u16, bounds: Bounds) -> u16 {
        if sequence >= bounds.max { bounds.min } else { sequence + 1 }
    }

    /// Returns an ID of a given time, on timeline 0.
    ///
    /// # Errors
    /// [`Error::Time`] outside the layout.
    pub fn mint(&self, time: UnixMs, meta: u8, partition: u16, bounds: Bounds) -> Result<Id, Error> {
        let unit = unit(time)?;
        let Ok(sequence) = self.0.update(|next| {
            let next = next as u16;
            Ok::<_, std::convert::Infallible>((u64::from(Self::after(next, bounds)), next))
        });
        Ok(Id::new(unit.0 << 1, meta, partition, sequence))
    }
}

/// Returns the smallest or the largest ID of a time's unit: a bound of a range query.
///
/// # Errors
/// [`Error::Time`] outside the layout.
pub fn bound(time: UnixNs, is_high: bool) -> Result<Id, Error> {
    let (tick, rest) = if is_high { (1, u16::MAX) } else { (0, 0) };
    Ok(Id::new(unit(time.floor_ms())?.0 << 1 | tick, rest as u8, rest, rest))
}
