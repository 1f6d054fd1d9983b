//! Formats whose IDs hold a tick and, below it, bits that count on from a random start: how they are minted.
//!
//! The state is a tick and a count ([`Counting`]), one word. Everything else of an ID follows from it: the random bits of a
//! tick are a function of the tick and a secret key ([`Keyed`]), and the `n`-th ID of a tick is its first one plus `n`. That is
//! "random in the first, one more in each after it", as the ULID specification and RFC 9562 (method 2) have it, without a
//! lock, and no two IDs of a generator are the same whatever the key.

use crate::counting::{Counting, OnExhausted, OnRollback, Rules};
use crate::id::Id;
use crate::keyed::Keyed;
use crate::step::{Run, Window};
use crate::units::{Tick, Timescale};

/// A format whose IDs hold a tick and bits that count.
pub trait Ticked: Id {
    /// What its ticks are, counted from where its generators begin: not before 2010, so that a state fits one word.
    const SCALE: Timescale;
    /// How many ticks its generators have.
    const TICKS: u64;
    /// The bits that count within a tick: `2^SEQUENCE_BITS` IDs at most.
    const SEQUENCE_BITS: u32;
    /// The bits of its node number.
    const NODE_BITS: u32;

    /// The `n`-th ID of a tick. `random` are the tick's random bits; `node` is the node number, without which a format that need
    /// not have one is random in its place. IDs of one tick that differ in `node` or in `n` differ, whatever `random` is.
    fn mint(tick: Tick, random: u128, node: Option<u64>, n: u32) -> Self;

    /// The ticks of its generators.
    #[must_use]
    fn whole() -> Window {
        Window { floor: Tick(0), until: Tick(Self::TICKS) }
    }

    /// The state of a generator that has minted nothing. A clock that goes back is waited for by going on in the last tick,
    /// and a tick that is used up by waiting for the next.
    #[must_use]
    fn counting() -> Counting {
        let rules = Rules {
            scale: Self::SCALE,
            whole: Self::whole(),
            sequence_bits: Self::SEQUENCE_BITS,
            on_rollback: OnRollback::Advance,
            on_exhausted: OnExhausted::Wait,
        };
        Counting::new(rules, Self::whole())
    }
}

/// The bits of a tick that were asked for last, with the function that they come from.
#[derive(Debug)]
pub struct Drawn {
    keyed: Keyed,
    tick: u64,
    bits: u128,
}

impl Drawn {
    /// Bits under a key.
    #[must_use]
    pub fn new(key: [u8; 16]) -> Self {
        let keyed = Keyed::new(key);
        Self { bits: keyed.bits(0), tick: 0, keyed }
    }

    /// The bits of a run's tick.
    #[inline(always)]
    pub fn of(&mut self, run: Run) -> u128 {
        if run.tick != self.tick {
            (self.tick, self.bits) = (run.tick, self.keyed.bits(run.tick));
        }
        self.bits
    }
}
