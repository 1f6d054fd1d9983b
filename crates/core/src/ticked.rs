//! Formats whose IDs hold a tick and, below it, bits that count on from a random start: how they are minted.
//!
//! The state is a tick and a count ([`Counting`]), one word. Everything else of an ID follows from it: the random bits of a
//! tick are a function of the tick and a secret key ([`Prf`]), and the `n`-th ID of a tick is its first one plus `n`. That is
//! "random in the first, one more in each after it", as the ULID specification and RFC 9562 (method 2) have it, without a
//! lock, and no two IDs of a generator are the same whatever the key.

use crate::counting::{Counting, OnExhausted, OnRollback, Rules};
use crate::error::Error;
use crate::given_time::nth_from;
use crate::id::Id;
use crate::layout::PoolLayout;
use crate::prf::Prf;
use crate::step::Window;
use crate::units::{Tick, Timescale, UnixMs, UnixNs};

/// A format whose IDs hold a tick and bits that count.
pub trait Ticked: Id {
    /// The name of the pool that its node numbers are leased from, and of their layout.
    const POOL: &'static str = Self::FORMAT.scheme;
    /// The format's word for a node number.
    const TERM: &'static str;
    /// The bits of a node number.
    const NODE_BITS: u32;
    /// Whether every ID has one. Without, the bits are random that it would take the place of.
    const HAS_NODE: bool;
    /// The bits that count within a tick: `2^SEQUENCE_BITS` IDs at most.
    const SEQUENCE_BITS: u32;
    /// How many numbers `mint` tells apart in a time, at most 2^32. IDs of now have the first of them.
    const NUMBERS: u64;

    /// The `n`-th ID of a time, in the format's own count. `random` are the tick's random bits. IDs of one time that differ in
    /// `node`, or in `n` below [`Ticked::NUMBERS`], differ, whatever `random` is.
    fn mint(units: u64, random: u128, node: Option<u64>, n: u32) -> Self;

    /// The smallest or the largest ID of a time, in the format's own count.
    fn bound(units: u64, is_high: bool) -> Self;

    /// What a generator's state counts: from 2010 on where the format begins earlier, so that it fits one word.
    const SCALE: Timescale = {
        let Timescale { epoch_ms, unit_ms } = Self::FORMAT.timescale();
        Timescale { epoch_ms: if epoch_ms > YEAR_2010_MS { epoch_ms } else { YEAR_2010_MS }, unit_ms }
    };
    /// By how much the format's own count is ahead of that.
    const EPOCH_OFFSET: u64 = {
        let Timescale { epoch_ms, unit_ms } = Self::FORMAT.timescale();
        (Self::SCALE.epoch_ms - epoch_ms) as u64 / unit_ms as u64
    };
    /// The ticks that generators have: all that are left to the format, and fit beside the count.
    const FULL_WINDOW: Window = {
        let (format, state) = (Self::FORMAT.ticks() as u64 - Self::EPOCH_OFFSET, 1 << (63 - Self::SEQUENCE_BITS));
        Window { floor: Tick(0), until: Tick(if format < state { format } else { state }) }
    };

    /// The layout of a pool of its node numbers.
    #[must_use]
    fn pool_layout() -> PoolLayout {
        let ends = Self::SCALE.start(Self::FULL_WINDOW.until);
        PoolLayout { text: Self::POOL.into(), nodes: 1 << Self::NODE_BITS, ends }
    }

    /// Whose random bits the IDs of a time have: those of its tick, or of a number that no tick has, where it is before them.
    #[must_use]
    fn source(units: u64) -> Tick {
        Tick(units.wrapping_sub(Self::EPOCH_OFFSET))
    }

    /// The number of the `n`-th ID that is asked for of a time.
    #[must_use]
    fn nth(n: u32) -> u32 {
        n + const { nth_from(Self::NUMBERS, 1 << Self::SEQUENCE_BITS) }
    }

    /// A tick in the format's own count.
    #[inline(always)]
    #[must_use]
    fn units(tick: Tick) -> u64 {
        tick.0 + Self::EPOCH_OFFSET
    }

    /// The tick of a time in the format's own count; the first one for those before it.
    #[must_use]
    fn tick(units: u64) -> Tick {
        Tick(units.saturating_sub(Self::EPOCH_OFFSET))
    }

    /// An instant in the format's own count.
    ///
    /// # Errors
    /// [`Error::Time`]: the format cannot hold it.
    fn units_at(time: UnixNs) -> Result<u64, Error> {
        let (scale, max) = (Self::FORMAT.timescale(), Self::FORMAT.ticks() as u64 - 1);
        let time = time.floor_ms();
        scale.tick(time).map(|tick| tick.0).filter(|&units| units <= max).ok_or_else(|| Error::Time {
            time,
            first: scale.start(Tick(0)),
            last: UnixMs(scale.start(Tick(max + 1)).0 - 1),
        })
    }

    /// The state of a generator that has minted nothing. A clock that goes back is waited for by going on in the last tick,
    /// and a tick that is used up by waiting for the next.
    #[must_use]
    fn counting() -> Counting {
        let rules = Rules {
            scale: Self::SCALE,
            full_window: Self::FULL_WINDOW,
            sequence_bits: Self::SEQUENCE_BITS,
            on_rollback: OnRollback::Advance,
            on_exhausted: OnExhausted::Wait,
        };
        Counting::new(rules, Self::FULL_WINDOW)
    }
}

/// 2010-01-01T00:00:00Z.
const YEAR_2010_MS: i64 = 1_262_304_000_000;

/// When generators of formats that count milliseconds end, in 2149: their state has 42 bits of them.
pub const ENDS: UnixMs = UnixMs(YEAR_2010_MS + (1 << 42));

/// The lower bits of a number.
#[inline(always)]
#[must_use]
pub const fn low_bits(number: u128, bits: u32) -> u128 {
    number & (u128::MAX >> (128 - bits))
}

/// The bits of a tick that were asked for last, with the function that they come from.
#[derive(Debug)]
pub struct CachedPrf {
    keyed: Prf,
    tick: u64,
    bits: u128,
}

impl CachedPrf {
    /// Bits under a key.
    #[must_use]
    pub fn new(key: [u8; 16]) -> Self {
        let keyed = Prf::new(key);
        Self { bits: keyed.bits(0), tick: 0, keyed }
    }

    /// The bits of a tick.
    #[inline(always)]
    pub fn bits(&mut self, tick: Tick) -> u128 {
        if tick.0 != self.tick {
            (self.tick, self.bits) = (tick.0, self.keyed.bits(tick.0));
        }
        self.bits
    }
}

/// How IDs of 12 bytes are minted: seconds, a node number of 40 bits, and a counter of 24. A second's counter starts in the lower
/// half of its numbers.
macro_rules! twelve_bytes {
    ($term:literal) => {
        const TIME: $crate::layout::Field = FORMAT.field("time");
        const COUNTER: $crate::layout::Field = FORMAT.field("counter");

        impl Id {
            #[inline(always)]
            fn new(time: u64, node: u64, counter: u64) -> Self {
                let bits = TIME.put(time) | u128::from(node) << COUNTER.bits | COUNTER.put(counter);
                let mut id = [0; 12];
                id.copy_from_slice(&bits.to_be_bytes()[4..]);
                Self(id)
            }
        }

        impl $crate::ticked::Ticked for Id {
            const TERM: &'static str = $term;
            const NODE_BITS: u32 = 40;
            const HAS_NODE: bool = true;
            const SEQUENCE_BITS: u32 = COUNTER.bits;
            const NUMBERS: u64 = 1 << COUNTER.bits;

            #[inline(always)]
            fn mint(units: u64, random: u128, node: Option<u64>, n: u32) -> Self {
                let first = $crate::ticked::low_bits(random, COUNTER.bits - 1) as u64;
                Self::new(units, node.unwrap_or(0), (first + u64::from(n)) & COUNTER.max())
            }

            fn bound(units: u64, is_high: bool) -> Self {
                let all = |max: u64| if is_high { max } else { 0 };
                Self::new(units, all((1 << Self::NODE_BITS) - 1), all(COUNTER.max()))
            }
        }
    };
}
pub(crate) use twelve_bytes;
