//! The pure step of a generator, and the tick-tock rule for a clock that goes back.

use crate::error::Error;
use crate::step::{Refusal, Run};
use crate::units::Tick;

/// The sequence numbers `min..=max` of one generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The first.
    pub min: u16,
    /// The last.
    pub max: u16,
}

impl Bounds {
    const NEEDED: u32 = 6;

    /// Returns bounds, given in either order. A maximum of 0 means 65535 unless the minimum is 65535.
    ///
    /// # Errors
    /// [`Error::Bounds`]: they hold fewer than 6 numbers. The original documents 4 and requires 6.
    pub fn new(min: u16, max: u16) -> Result<Self, Error> {
        let max = if max == 0 && min != u16::MAX { u16::MAX } else { max };
        let (min, max) = (min.min(max), min.max(max));
        let bounds = Self { min, max };
        if bounds.capacity() < Self::NEEDED {
            return Err(Error::Bounds { min, max, count: bounds.capacity(), needed: Self::NEEDED });
        }
        Ok(bounds)
    }

    /// Returns the bounds of one of `shards` equal parts of a partition's sequence numbers. `shards` is a power of two
    /// up to 8192.
    ///
    /// ```
    /// use mintage_core::schemes::sno::Bounds;
    /// assert_eq!(Bounds::shard(1, 4), Bounds::new(16_384, 32_767).unwrap());
    /// ```
    #[must_use]
    pub fn shard(shard: u32, shards: u32) -> Self {
        let capacity = (1 << 16) / shards;
        let min = shard * capacity;
        Self { min: min as u16, max: (min + capacity - 1) as u16 }
    }

    /// Returns the number of IDs that a unit can hold.
    #[must_use]
    pub fn capacity(self) -> u32 {
        u32::from(self.max) - u32::from(self.min) + 1
    }

    #[inline(always)]
    pub(super) fn pack(self) -> u32 {
        u32::from(self.min) << 16 | u32::from(self.max)
    }

    #[inline(always)]
    pub(super) fn unpack(word: u32) -> Self {
        Self { min: (word >> 16) as u16, max: word as u16 }
    }
}

/// The state that threads must agree on, packed as `unit 39 | tick 1 | next 24`.
///
/// The upper 40 bits are those of an ID, so composing an ID takes a mask and an or. `next` is the next sequence number,
/// with room for "one past 65535".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The highest unit seen and the timeline, as an ID has them.
    pub timeline: u64,
    /// The next sequence number, up to `max + 1`.
    pub next: u32,
}

impl State {
    pub(super) const NEXT_BITS: u32 = 24;
    pub(super) const MAX_NEXT: u32 = (1 << Self::NEXT_BITS) - 1;

    #[inline(always)]
    pub(super) fn unpack(word: u64) -> Self {
        Self { timeline: word >> Self::NEXT_BITS, next: word as u32 & Self::MAX_NEXT }
    }

    #[inline(always)]
    pub(super) fn pack(self) -> u64 {
        self.timeline << Self::NEXT_BITS | u64::from(self.next)
    }

    /// Returns the state of a generator that has minted nothing.
    pub(super) fn first(bounds: Bounds, floor: Tick) -> Self {
        Self { timeline: floor.0 << 1, next: u32::from(bounds.min) }
    }

    /// Returns the highest unit seen.
    #[must_use]
    pub fn unit(self) -> Tick {
        Tick(self.timeline >> 1)
    }
}

/// The state that only a clock that goes back changes. The fast path neither reads nor writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The highest unit of the other timeline. At or below it, that timeline may be used up.
    pub safe: Tick,
    /// The number of times that the clock went back. Its lowest bit is the timeline.
    pub count: u32,
}

impl Drift {
    /// Returns the drift of a clock that never went back. On both timelines, the units below the floor belong to other
    /// holders.
    pub(super) fn first(floor: Tick) -> Self {
        Self { safe: Tick(floor.0.saturating_sub(1)), count: 0 }
    }
}

/// Mints up to `want` IDs at a time at or after the highest unit seen. Pure.
///
/// # Errors
/// [`Refusal::Exhausted`], [`Refusal::Outside`]; [`Refusal::Rollback`] if [`tick_tock`] must decide.
///
/// ```
/// use mintage_core::{schemes::sno::{self, Bounds, State}, step::Refusal, units::Tick};
/// let (bounds, until) = (Bounds::new(0, 9).unwrap(), Tick(8));
/// let state = State { timeline: 7 << 1, next: 0 };
/// let (state, run) = sno::step(state, Tick(7), 100, bounds, until).unwrap();
/// assert_eq!((run.first, run.count), (0, 10));
/// assert_eq!(sno::step(state, Tick(7), 1, bounds, until), Err(Refusal::Exhausted { until: Tick(8) }));
/// ```
#[inline(always)]
pub fn step(state: State, now: Tick, want: u32, bounds: Bounds, until: Tick) -> Result<(State, Run), Refusal> {
    let unit = state.unit();
    if now >= until {
        return Err(Refusal::Outside { tick: now });
    }
    let (timeline, first) = if now == unit {
        (state.timeline, state.next)
    } else if now > unit {
        (now.0 << 1 | (state.timeline & 1), u32::from(bounds.min))
    } else {
        return Err(Refusal::Rollback { until: unit });
    };
    let free = (u32::from(bounds.max) + 1).saturating_sub(first);
    if free == 0 {
        return Err(Refusal::Exhausted { until: Tick(now.0 + 1) });
    }
    let count = want.min(free);
    Ok((State { timeline, next: first + count }, Run { tick: timeline, first, count }))
}

/// Applies the tick-tock rule, for a clock below the highest unit seen. Pure.
///
/// Above the safe unit the other timeline is unused: flip to it, and continue at the earlier time without waiting. At
/// or below the safe unit, wait until the clock has passed it.
///
/// # Errors
/// As [`step`].
pub fn tick_tock(
    state: State,
    drift: Drift,
    now: Tick,
    want: u32,
    bounds: Bounds,
    until: Tick,
) -> Result<(State, Drift, Run), Refusal> {
    if now <= drift.safe {
        return Err(Refusal::Rollback { until: Tick(drift.safe.0 + 1) });
    }
    let drift = Drift { safe: state.unit(), count: drift.count.wrapping_add(1) };
    // Nothing has been minted yet in this unit on the other timeline.
    let flipped = State { timeline: now.0 << 1 | u64::from(drift.count & 1), next: u32::from(bounds.min) };
    step(flipped, now, want, bounds, until).map(|(state, run)| (state, drift, run))
}
