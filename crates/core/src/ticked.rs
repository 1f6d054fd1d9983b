//! Minting of formats whose IDs hold a tick and, below it, bits that count on from a random start.
//!
//! The state is a tick and a count ([`Counting`]), one word. All other bits of an ID follow from it: the random bits of
//! a tick are a function of the tick and a secret key ([`Prf`]), and the `n`-th ID of a tick is the first one plus `n`.
//! This is the method of the ULID specification and of RFC 9562 (method 2), "random in the first, one more in each
//! after it", without a lock. No two IDs of a generator are equal, whatever the key.

use crate::counting::{Counting, OnExhausted, OnRollback, Rules};
use crate::error::Error;
use crate::given_time::nth_from;
use crate::id::Id;
use crate::layout::PoolLayout;
use crate::prf::Prf;
use crate::step::Window;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::units::{Tick, Timescale, UnixMs, UnixNs};
use crate::version::Version;

/// A format whose IDs hold a tick and bits that count.
pub trait Ticked: Id {
    /// The name of the pool from which its node numbers are leased, and of their layout.
    const POOL: &'static str = Self::FORMAT.scheme;
    /// The format's term for a node number.
    const TERM: &'static str;
    /// The bits of a node number.
    const NODE_BITS: u32;
    /// True if every ID has a node number. Otherwise random bits take its place in a generator without a lease.
    const HAS_NODE: bool;
    /// The bits that count within a tick, for `2^SEQUENCE_BITS` IDs at most.
    const SEQUENCE_BITS: u32;
    /// The number of numbers that `mint` distinguishes within a tick, at most 2^32. IDs of now have the first of them.
    const NUMBERS: u64;

    /// Returns the `n`-th ID of a time in the format's own ticks. `random` are the tick's random bits. IDs of one time
    /// with another `node`, or another `n` below [`Ticked::NUMBERS`], are distinct, whatever `random` is.
    fn mint(units: u64, random: u128, node: Option<u64>, n: u32) -> Self;

    /// Returns the smallest or the largest ID of a time in the format's own ticks.
    fn bound(units: u64, is_high: bool) -> Self;

    /// The ticks of a generator's state. They begin in 2010 if the format begins earlier, so that the state fits one
    /// word.
    const SCALE: Timescale = {
        let Timescale { epoch_ms, unit_ms } = Self::FORMAT.timescale();
        Timescale { epoch_ms: if epoch_ms > YEAR_2010_MS { epoch_ms } else { YEAR_2010_MS }, unit_ms }
    };
    /// The number of the format's own ticks before the first one of the state.
    const EPOCH_OFFSET: u64 = {
        let Timescale { epoch_ms, unit_ms } = Self::FORMAT.timescale();
        (Self::SCALE.epoch_ms - epoch_ms) as u64 / unit_ms as u64
    };
    /// The ticks of generators: those of the format that fit beside the count.
    const FULL_WINDOW: Window = {
        assert!(1 << Self::SEQUENCE_BITS <= Self::NUMBERS, "a tick counts more IDs than `mint` distinguishes");
        assert!(Self::NUMBERS <= 1 << 32, "`mint` takes numbers of 32 bits");
        let (format, state) = (Self::FORMAT.ticks() as u64 - Self::EPOCH_OFFSET, 1 << (63 - Self::SEQUENCE_BITS));
        Window { floor: Tick(0), until: Tick(if format < state { format } else { state }) }
    };

    /// Returns the layout of a pool of its node numbers.
    #[must_use]
    fn pool_layout() -> PoolLayout {
        let ends = Self::SCALE.start(Self::FULL_WINDOW.until);
        PoolLayout { text: Self::POOL.into(), nodes: 1 << Self::NODE_BITS, ends }
    }

    /// Returns the tick whose random bits the IDs of a time have. A time before the first tick wraps to a number that
    /// no tick has.
    #[must_use]
    fn source(units: u64) -> Tick {
        Tick(units.wrapping_sub(Self::EPOCH_OFFSET))
    }

    /// Returns the number of the `n`-th ID of a given time.
    #[must_use]
    fn nth(n: u32) -> u32 {
        n + const { nth_from(Self::NUMBERS, 1 << Self::SEQUENCE_BITS) }
    }

    /// Converts a tick of the state to the format's own.
    #[inline(always)]
    #[must_use]
    fn units(tick: Tick) -> u64 {
        tick.0 + Self::EPOCH_OFFSET
    }

    /// Converts one of the format's own ticks to one of the state; earlier ones to its first.
    #[must_use]
    fn tick(units: u64) -> Tick {
        Tick(units.saturating_sub(Self::EPOCH_OFFSET))
    }

    /// Converts an instant to the format's own ticks.
    ///
    /// # Errors
    /// [`Error::Time`]: the format cannot hold it.
    fn units_at(time: UnixNs) -> Result<u64, Error> {
        let all = Window { floor: Tick(0), until: Tick(Self::FORMAT.ticks() as u64) };
        all.tick(Self::FORMAT.timescale(), time.floor_ms()).map(|tick| tick.0)
    }

    /// Returns the state of a generator that has minted nothing. When the clock goes back, the generator continues in
    /// its last tick; when a tick is used up, it waits for the next.
    #[must_use]
    fn counting() -> Counting {
        counting_in(Self::SCALE, Self::FULL_WINDOW, Self::SEQUENCE_BITS)
    }
}

/// [`Ticked::counting`] of other ticks.
pub(crate) fn counting_in(scale: Timescale, full_window: Window, sequence_bits: u32) -> Counting {
    let (on_rollback, on_exhausted) = (OnRollback::Advance, OnExhausted::Wait);
    Counting::new(Rules { scale, full_window, sequence_bits, on_rollback, on_exhausted }, full_window)
}

/// 2010-01-01T00:00:00Z.
const YEAR_2010_MS: i64 = 1_262_304_000_000;

/// The end of generators of formats that count milliseconds, in 2149: their state has 42 bits for them.
pub const ENDS: UnixMs = UnixMs(YEAR_2010_MS + (1 << 42));

/// Returns the lower bits of a number.
#[inline(always)]
#[must_use]
pub const fn low_bits(number: u128, bits: u32) -> u128 {
    number & (u128::MAX >> (128 - bits))
}

/// A PRF that remembers the bits of the last tick.
#[derive(Debug)]
pub struct CachedPrf {
    prf: Prf,
    tick: u64,
    bits: u128,
}

impl CachedPrf {
    /// Returns the function of a key.
    #[must_use]
    pub fn new(key: [u8; 16]) -> Self {
        let prf = Prf::new(key);
        Self { bits: prf.bits(0), tick: 0, prf }
    }

    /// Returns the bits of a tick.
    #[inline(always)]
    pub fn bits(&mut self, tick: Tick) -> u128 {
        if tick.0 != self.tick {
            (self.tick, self.bits) = (tick.0, self.prf.bits(tick.0));
        }
        self.bits
    }
}

/// A [`CachedPrf`] that threads share: they read the bits of the last tick without a lock.
#[derive(Debug)]
pub struct SharedPrf {
    prf: Mutex<Prf>,
    version: Version,
    tick: AtomicU64,
    high: AtomicU64,
    low: AtomicU64,
}

impl SharedPrf {
    /// Returns the function of a key.
    #[must_use]
    pub fn new(key: [u8; 16]) -> Self {
        let prf = Prf::new(key);
        let bits = prf.bits(0);
        let [high, low] = [(bits >> 64) as u64, bits as u64].map(AtomicU64::new);
        Self { prf: Mutex::new(prf), version: Version::new(), tick: AtomicU64::new(0), high, low }
    }

    /// Replaces the key.
    pub fn set_key(&self, key: [u8; 16]) {
        let mut prf = lock(&self.prf);
        *prf = Prf::new(key);
        self.remember(0, prf.bits(0));
    }

    /// Returns the bits of a tick.
    #[inline(always)]
    pub fn bits(&self, tick: Tick) -> u128 {
        if let Some(seen) = self.version.seen() {
            if self.tick.load(Ordering::Relaxed) == tick.0 {
                let [high, low] = [&self.high, &self.low].map(|half| u128::from(half.load(Ordering::Relaxed)));
                if self.version.is_still(seen) {
                    return high << 64 | low;
                }
            }
        }
        self.encrypt(tick)
    }

    #[cold]
    #[inline(never)]
    fn encrypt(&self, tick: Tick) -> u128 {
        let prf = lock(&self.prf);
        let bits = prf.bits(tick.0);
        self.remember(tick.0, bits);
        bits
    }

    /// The caller holds the lock of the key.
    fn remember(&self, tick: u64, bits: u128) {
        self.version.change(|| {
            self.tick.store(tick, Ordering::Relaxed);
            self.high.store((bits >> 64) as u64, Ordering::Relaxed);
            self.low.store(bits as u64, Ordering::Relaxed);
        });
    }
}

/// Implements minting for IDs of 12 bytes: seconds, a node number of 40 bits, and a counter of 24. The counter of a
/// second starts in the lower half of its numbers.
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
