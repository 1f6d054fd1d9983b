//! The end of a generator's window. Its lease moves it forward.

use crate::sync::{AtomicU64, Ordering};

use crate::units::Tick;

/// The first tick in which a generator may no longer mint. Every mint compares its tick with the fence, so a generator
/// stops in time without a timer or a heartbeat, however long its process slept.
///
/// ```
/// use mintage_core::{fence::Fence, units::Tick};
/// let fence = Fence::new(Tick(5));
/// assert!(fence.extend(Tick(9)) && !fence.extend(Tick(7)));
/// assert_eq!(fence.until(), Tick(9));
/// ```
#[derive(Debug)]
pub struct Fence(AtomicU64);

impl Fence {
    /// Returns a fence at `until`.
    #[must_use]
    pub fn new(until: Tick) -> Self {
        Self(AtomicU64::new(until.0))
    }

    /// Returns its tick. An older reading is an earlier end, so no memory order is needed.
    #[inline(always)]
    #[must_use]
    pub fn until(&self) -> Tick {
        Tick(self.0.load(Ordering::Relaxed))
    }

    /// Moves it forward, never back; returns whether it moved.
    pub fn extend(&self, until: Tick) -> bool {
        self.0.fetch_max(until.0, Ordering::Relaxed) < until.0
    }

    /// Moves it anywhere. No thread may mint meanwhile.
    pub fn reset(&self, until: Tick) {
        self.0.store(until.0, Ordering::Relaxed);
    }
}
