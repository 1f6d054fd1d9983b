//! The types that the pure steps of all schemes share: window, run and refusal.

use crate::error::Error;
use crate::units::{Tick, Timescale, UnixMs};

/// The half-open window of ticks `[floor, until)` in which a generator may mint.
///
/// Without a lease it is all of the layout. No clock makes a generator mint outside: its state begins at the floor and
/// never goes below, and each step compares with `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first tick allowed.
    pub floor: Tick,
    /// The first tick no longer allowed.
    pub until: Tick,
}

impl Window {
    /// Returns whether a tick lies inside.
    #[inline(always)]
    #[must_use]
    pub fn contains(&self, tick: Tick) -> bool {
        // One comparison serves both ends.
        tick.0.wrapping_sub(self.floor.0) < self.until.0 - self.floor.0
    }

    /// Returns the tick of a time inside.
    ///
    /// # Errors
    /// [`Error::Time`] outside.
    pub fn tick(&self, scale: Timescale, time: UnixMs) -> Result<Tick, Error> {
        scale.tick(time).filter(|&tick| self.contains(tick)).ok_or_else(|| Error::Time {
            time,
            first: scale.start(self.floor),
            last: UnixMs(scale.start(self.until).0.saturating_sub(1)),
        })
    }

    /// Returns the ticks of this window that begin and end between two times. Windows of disjoint times share no tick.
    ///
    /// ```
    /// use mintage_core::{step::Window, units::{Tick, Timescale, UnixMs}};
    /// let (all, scale) = (Window { floor: Tick(0), until: Tick(100) }, Timescale { epoch_ms: 0, unit_ms: 4 });
    /// let window = all.between(scale, UnixMs(5), UnixMs(11));
    /// assert_eq!((window.floor, window.until), (Tick(2), Tick(2))); // no tick of 4 ms lies within
    /// ```
    #[must_use]
    pub fn between(&self, scale: Timescale, floor: UnixMs, until: UnixMs) -> Self {
        let first = scale.tick(UnixMs(floor.0.saturating_add(i64::from(scale.unit_ms) - 1))).unwrap_or(Tick(0));
        let end = scale.tick(until).unwrap_or(Tick(0));
        let floor = first.clamp(self.floor, self.until);
        Self { floor, until: end.clamp(floor, self.until) }
    }
}

/// A run of consecutive sequence numbers within one tick: the result of one successful step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The tick, as the scheme's ID stores it.
    pub tick: u64,
    /// The first sequence number.
    pub first: u32,
    /// The number of sequence numbers, at least 1.
    pub count: u32,
}

/// The reason why a step minted nothing. The state is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Every sequence number of the tick is used. Minting can continue when the clock reads `until`.
    Exhausted {
        /// The first tick at which minting can continue.
        until: Tick,
    },
    /// The clock went back. Minting can continue when it reads `until` again.
    Rollback {
        /// The first tick at which minting can continue.
        until: Tick,
    },
    /// The tick lies outside the window.
    Outside {
        /// The tick.
        tick: Tick,
    },
}
