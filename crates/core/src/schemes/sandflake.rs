//! **sandflake**: 16 bytes and 26 characters, which sort by time.
//!
//! ```text
//!   48 bits   32       24         24
//! ┌─────────┬────────┬──────────┬────────┐
//! │ time    │ worker │ sequence │ random │
//! └─────────┴────────┴──────────┴────────┘
//! ```
//!
//! - **time**: milliseconds since 1970; the last one is in the year 10889.
//! - **sequence**: counts within a millisecond.
//! - **text**: 26 characters of Crockford's base 32, `0123456789ABCDEFGHJKMNPQRSTVWXYZ`, in upper case only. Length and
//!   alphabet are those of a ULID, but the last 2 of the 130 bits are 0, not the first.
//!
//! Format after <https://github.com/celrenheit/sandflake>.

use crate::codec::positional::{BASE32_CROCKFORD, Digits};
use crate::format::{Clock, Format, Part, Rendering, Role, Text};
use crate::id::bytes_id;
use crate::layout::Field;
use crate::ticked::{ENDS, Ticked, low_bits};

/// The text.
pub const DIGITS: &Digits = &Digits::new(BASE32_CROCKFORD, 26).padded(2);

/// The format.
pub const FORMAT: Format = Format::new(
    "sandflake",
    &[
        Part::time("time", 48),
        Part::new(Role::Node, "worker", 32, "which worker").rendered_as(Rendering::Hex),
        Part::new(Role::Sequence, "sequence", 24, "counts within a tick"),
        Part::random("random", 24, "random"),
    ],
    0.35,
    "https://github.com/celrenheit/sandflake",
)
.with_clock(Clock::UNIX_MS)
.ending_at(ENDS)
.with_texts(&[Text::digits(DIGITS)]);

bytes_id!("sandflake", 16, 26, DIGITS, "one of 0123456789ABCDEFGHJKMNPQRSTVWXYZ, the last one of 048CGMRW");

const TIME: Field = FORMAT.field("time");
const WORKER: Field = FORMAT.field("worker");
const SEQUENCE: Field = FORMAT.field("sequence");
const RANDOM: Field = FORMAT.field("random");

/// The original begins the sequence of each millisecond at 0. When the clock goes back, it repeats times and numbers,
/// and only the 24 random bits differ. Here the sequence continues in the last millisecond.
impl Ticked for Id {
    const TERM: &'static str = "worker";
    const NODE_BITS: u32 = WORKER.bits;
    const HAS_NODE: bool = true;
    const SEQUENCE_BITS: u32 = 21;
    const NUMBERS: u64 = 1 << SEQUENCE.bits;

    #[inline(always)]
    fn mint(units: u64, random: u128, node: Option<u64>, n: u32) -> Self {
        let random = low_bits(random.wrapping_add(u128::from(n)), RANDOM.bits) as u64;
        let place = TIME.put(units) | WORKER.put(node.unwrap_or(0));
        Self((place | SEQUENCE.put(n.into()) | RANDOM.put(random)).to_be_bytes())
    }

    fn bound(units: u64, is_high: bool) -> Self {
        Self((TIME.put(units) | if is_high { low_bits(u128::MAX, TIME.shift) } else { 0 }).to_be_bytes())
    }
}
