//! The end of a generator's window, which its lease moves forward.

use crate::sync::{AtomicU64, Ordering};

use crate::units::Tick;

/// The first tick that a generator may no longer mint in. Every mint compares its tick with it: no timer and no heartbeat
/// is needed for a generator to stop in time, however long it slept.
#[derive(Debug)]
pub struct Fence(AtomicU64);

impl Fence {
    /// A fence at `until`.
    #[must_use]
    pub fn new(until: Tick) -> Self {
        Self(AtomicU64::new(until.0))
    }

    /// Where it stands. An older reading is an earlier end, so no order is needed.
    #[inline(always)]
    #[must_use]
    pub fn until(&self) -> Tick {
        Tick(self.0.load(Ordering::Relaxed))
    }

    /// Moves it forward, never back; says whether it moved.
    pub fn extend(&self, until: Tick) -> bool {
        self.0.fetch_max(until.0, Ordering::Relaxed) < until.0
    }

    /// Puts it anywhere. Only for a generator that nobody mints from.
    pub fn reset(&self, until: Tick) {
        self.0.store(until.0, Ordering::Relaxed);
    }
}
