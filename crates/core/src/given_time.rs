//! The numbers of IDs of given times, apart from those of IDs of now where the format has room for that.

use crate::sync::{AtomicU64, Ordering};

/// Counts the IDs that a generator mints of given times, whatever the times are: so it remembers no tick.
///
/// It starts in the middle of a tick's numbers. Those that are counted from 0 on, of now, and from [`nth_from`] on are others
/// until half of all are used.
#[derive(Debug)]
pub struct GivenTimeCounter(AtomicU64);

impl Default for GivenTimeCounter {
    fn default() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl GivenTimeCounter {
    /// The next of so many numbers, at most 2^32; after the last one comes 0. So any `numbers` IDs in a row differ in it.
    pub fn next(&self, numbers: u64) -> u32 {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        (numbers / 2).wrapping_add(count).wrapping_rem(numbers) as u32
    }
}

/// The number of the first ID that is asked for by its place in a tick, where a tick of now has `capacity` of so many numbers:
/// in the second quarter if all fit into one, else 0.
#[must_use]
pub const fn nth_from(numbers: u64, capacity: u64) -> u32 {
    if capacity <= numbers / 4 { (numbers / 4) as u32 } else { 0 }
}
