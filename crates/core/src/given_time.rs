//! The numbers of IDs of given times. If the format has room, they are disjoint from the numbers of IDs of now.

use crate::sync::{AtomicU64, Ordering};

/// A counter of the IDs that a generator mints of given times. It counts across all times, so it remembers no tick.
///
/// It starts in the middle of a tick's numbers. The numbers of now count from 0, those of places from [`nth_from`]. The
/// three ranges stay disjoint until half of all numbers are used.
#[derive(Debug, Default)]
pub struct GivenTimeCounter(AtomicU64);

impl GivenTimeCounter {
    /// Returns the next of `numbers` numbers, at most 2^32; 0 follows the last. Any `numbers` IDs in a row have
    /// distinct ones.
    pub fn next(&self, numbers: u64) -> u32 {
        (numbers / 2).wrapping_add(self.count()).wrapping_rem(numbers) as u32
    }

    /// Returns the number of earlier calls.
    pub fn count(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Returns the number of the first ID that a caller asks for by its place in a tick, if a tick of now has `capacity` of
/// `numbers` numbers: the start of the second quarter if `capacity` fits into a quarter, else 0.
#[must_use]
pub const fn nth_from(numbers: u64, capacity: u64) -> u32 {
    if capacity <= numbers / 4 { (numbers / 4) as u32 } else { 0 }
}
