//! **objectid**: MongoDB's 12 bytes, which sort by second.
//!
//! ```text
//!   32 bits   40        24
//! ┌─────────┬─────────┬─────────┐
//! │ time    │ process │ counter │
//! └─────────┴─────────┴─────────┘
//! ```
//!
//! - **time**: seconds since 1970, until 2106.
//! - **process**: random, once for each process.
//! - **counter**: counts on from a random start, whatever the second.
//! - **text**: 24 hexadecimal digits, written in lower case and read in either.
//!
//! Format after the specification of BSON, <https://www.mongodb.com/docs/manual/reference/bson-types/#objectid>.

use crate::codec::positional::{BASE16, Digits};
use crate::format::{Clock, Format, Part, Role, Show, Text};
use crate::id::bytes_id;
use crate::layout::Field;
use crate::ticked::{Ticked, low};

/// The text.
pub const DIGITS: &Digits = &Digits::new(BASE16, 24);

/// The format.
pub const FORMAT: Format = Format::new(
    "objectid",
    &[
        Part::time("time", 32),
        Part::new(Role::Node, "process", 40, "random, once for each process").shown(Show::Hex),
        Part::new(Role::Sequence, "counter", 24, "counts on from a random start"),
    ],
    0.9,
    "https://www.mongodb.com/docs/manual/reference/bson-types/#objectid",
)
.timed(Clock::UNIX_S)
.written(&[Text::Digits(DIGITS)]);

bytes_id!("objectid", 12, 24, DIGITS, "a hex digit");

const TIME: Field = FORMAT.field("time");
const COUNTER: Field = FORMAT.field("counter");

impl Id {
    #[inline(always)]
    fn new(time: u64, node: u64, counter: u64) -> Self {
        let bits = TIME.put(time) | u128::from(node) << COUNTER.bits | COUNTER.put(counter);
        let mut id = [0; 12];
        id.copy_from_slice(&bits.to_be_bytes()[4..]);
        Self(id)
    }
}

/// The node number is what the format draws once for each process. A second's counter starts in the lower half of its numbers.
impl Ticked for Id {
    const TERM: &'static str = "process";
    const NODE_BITS: u32 = 40;
    const HAS_NODE: bool = true;
    const SEQUENCE_BITS: u32 = COUNTER.bits;

    #[inline(always)]
    fn mint(units: u64, random: u128, node: Option<u64>, n: u32) -> Self {
        let first = low(random, COUNTER.bits - 1) as u64;
        Self::new(units, node.unwrap_or(0), (first + u64::from(n)) & COUNTER.max())
    }

    fn bound(units: u64, is_high: bool) -> Self {
        let all = |max: u64| if is_high { max } else { 0 };
        Self::new(units, all((1 << Self::NODE_BITS) - 1), all(COUNTER.max()))
    }
}
