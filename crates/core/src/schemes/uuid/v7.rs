//! Version 7: Unix milliseconds, then random bits, a counter, or the fraction of the millisecond.
//!
//! ```text
//!   48 bits   4         12       2         62
//! ┌─────────┬─────────┬────────┬─────────┬────────┐
//! │ time    │ version │ rand_a │ variant │ rand_b │
//! └─────────┴─────────┴────────┴─────────┴────────┘
//! ```
//!
//! Without a node number, a generator draws 74 random bits, sets the highest to 0, and adds 1 in each later ID of a
//! millisecond. With a node number, it writes a counter of 22 bits (rand_a and the top of rand_b), the node number in
//! 24 bits, and 28 random bits.

use super::id::Id;
use super::parts::{VARIANT, layout, version};
use crate::format::{Clock, Format, Part};
use crate::layout::Field;
use crate::ticked::{ENDS, Ticked, low_bits};

/// The format.
pub const FORMAT: Format = layout(
    "v7",
    &[
        Part::time("time", 48),
        version(7, "version 7: Unix time, then random"),
        Part::random("rand_a", 12, "random, a counter, or the fraction of the millisecond"),
        VARIANT,
        Part::random("rand_b", 62, "random, or a counter"),
    ],
    1.0,
)
.with_clock(Clock::UNIX_MS)
.ending_at(ENDS);

const TIME: Field = FORMAT.field("time");
const RAND_A: Field = FORMAT.field("rand_a");
const RAND_B: Field = FORMAT.field("rand_b");

/// The bits of the counter beside a node number.
const COUNT_BITS: u32 = 22;
/// The bits of a number above the counter's, which are added to the highest of the random bits.
const ABOVE_BITS: u32 = 2;

/// Of the 22 bits that count, `new` uses 21: so the ticks of a generator last until 2149.
impl Ticked for Id {
    const POOL: &'static str = "uuid.v7";
    const TERM: &'static str = "node";
    const NODE_BITS: u32 = 24;
    const HAS_NODE: bool = false;
    const SEQUENCE_BITS: u32 = 21;
    const NUMBERS: u64 = 1 << (COUNT_BITS + ABOVE_BITS);

    #[inline(always)]
    fn mint(units: u64, random: u128, node: Option<u64>, n: u32) -> Self {
        const BITS: u32 = RAND_A.bits + RAND_B.bits;
        let counting = match node {
            None => low_bits(random, BITS - 1) + u128::from(n),
            Some(node) => {
                let below = BITS - COUNT_BITS - Self::NODE_BITS;
                let random = random.wrapping_add(u128::from(n >> COUNT_BITS) << (below - ABOVE_BITS));
                low_bits(n.into(), COUNT_BITS) << (BITS - COUNT_BITS)
                    | u128::from(node) << below
                    | low_bits(random, below)
            }
        };
        let (a, b) = ((counting >> RAND_B.bits) as u64, low_bits(counting, RAND_B.bits) as u64);
        Self::stamped(TIME.put(units) | RAND_A.put(a) | RAND_B.put(b), 7)
    }

    fn bound(units: u64, is_high: bool) -> Self {
        Self::stamped(TIME.put(units) | if is_high { low_bits(u128::MAX, TIME.shift) } else { 0 }, 7)
    }
}
