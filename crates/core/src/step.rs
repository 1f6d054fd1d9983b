//! The words that every scheme's pure step speaks: what it was asked, and why it may refuse.

use crate::units::{Tick, Timescale, UnixMs};

/// The half-open window of ticks `[floor, until)` that a generator may mint in.
///
/// Without a lease it is the whole layout. Whatever the clock says, no tick outside is ever minted: a generator's state
/// begins at the floor and never goes below, and each step compares with `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First tick allowed.
    pub floor: Tick,
    /// First tick no longer allowed.
    pub until: Tick,
}

impl Window {
    /// Whether a tick lies inside.
    #[inline(always)]
    #[must_use]
    pub fn holds(&self, tick: Tick) -> bool {
        // One compare for both ends.
        tick.0.wrapping_sub(self.floor.0) < self.until.0 - self.floor.0
    }

    /// The ticks of this window that lie wholly between two times. Windows of times that do not overlap have no tick in
    /// common.
    #[must_use]
    pub fn between(&self, scale: Timescale, floor: UnixMs, until: UnixMs) -> Self {
        let first = scale.tick(UnixMs(floor.0.saturating_add(i64::from(scale.unit_ms) - 1))).unwrap_or(Tick(0));
        let end = scale.tick(until).unwrap_or(Tick(0));
        let floor = first.clamp(self.floor, self.until);
        Self { floor, until: end.clamp(floor, self.until) }
    }
}

/// A run of consecutive sequence numbers within one tick: what one successful step hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The tick, in the form that the scheme's ID stores it.
    pub tick: u64,
    /// First sequence number.
    pub first: u32,
    /// How many, at least 1.
    pub count: u32,
}

/// Why a step minted nothing. The state is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Every sequence number of the tick is used: nothing can be minted before the clock reads `until`.
    Exhausted {
        /// First tick at which minting can go on.
        until: Tick,
    },
    /// The clock went back: nothing can be minted before it reads `until` again.
    Rollback {
        /// First tick at which minting can go on.
        until: Tick,
    },
    /// The tick to mint lies outside the window.
    Outside {
        /// That tick.
        tick: Tick,
    },
}
