//! **xid**: 12 bytes and 20 characters, which sort by second.
//!
//! ```text
//!   32 bits   24        16    24
//! ┌─────────┬─────────┬─────┬─────────┐
//! │ time    │ machine │ pid │ counter │
//! └─────────┴─────────┴─────┴─────────┘
//! ```
//!
//! - **time**: seconds since 1970, until 2106.
//! - **machine**: the start of a hash of the machine's id.
//! - **pid**: process id modulo 65,536.
//! - **counter**: counts on from a random start, whatever the second.
//! - **text**: 20 digits of base 32, `0-9a-v`; the lower 4 of their 100 bits are 0.
//!
//! Format after <https://github.com/rs/xid>.

use crate::codec::positional::{BASE32_HEX, Digits};
use crate::format::{Clock, Format, Part, Role, Show, Text};
use crate::id::bytes_id;
use crate::layout::Field;
use crate::ticked::{Ticked, low};

/// The text.
pub const DIGITS: &Digits = &Digits::new(BASE32_HEX, 20).padded(4);

/// The format.
pub const FORMAT: Format = Format::new(
    "xid",
    &[
        Part::time("time", 32),
        Part::new(Role::Node, "machine", 24, "the start of a hash of the machine's id").shown(Show::Hex),
        Part::new(Role::Node, "pid", 16, "process id modulo 65,536"),
        Part::new(Role::Sequence, "counter", 24, "counts on from a random start"),
    ],
    0.8,
    "https://github.com/rs/xid",
)
.timed(Clock::UNIX_S)
.written(&[Text::Digits(DIGITS)]);

bytes_id!("xid", 12, 20, DIGITS, "one of 0123456789abcdefghijklmnopqrstuv, the last 0 or g");

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

/// The node number is machine and pid together. A second's counter starts in the lower half of its numbers.
impl Ticked for Id {
    const TERM: &'static str = "node";
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
