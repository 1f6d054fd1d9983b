//! **ulid**: 16 bytes and 26 characters, which sort by time.
//!
//! ```text
//!   48 bits   80
//! ┌─────────┬────────┐
//! │ time    │ random │
//! └─────────┴────────┘
//! ```
//!
//! - **time**: milliseconds since 1970; the last one is in the year 10889.
//! - **random**: drawn for the first ID of a millisecond, and 1 more than that of the ID before it for the others. The
//!   specification makes an overflow within a millisecond an error. Here the first random bit is 0 at the start, so
//!   none occurs.
//! - **text**: 26 characters of Crockford's base 32, `0123456789ABCDEFGHJKMNPQRSTVWXYZ`. The first is at most 7, as the
//!   upper 2 of the 130 bits are 0. It is written in upper case and read in either; `i` and `l` are read as 1, `o` as
//!   0.
//!
//! Format after <https://github.com/ulid/spec>.

use super::uuid;
use crate::codec::positional::{BASE32_CROCKFORD, Digits};
use crate::format::{Clock, Format, Part, Text};
use crate::id::bytes_id;
use crate::layout::Field;
use crate::ticked::{ENDS, Ticked, low_bits};

/// The text.
pub const DIGITS: &Digits = &Digits::new(BASE32_CROCKFORD.any_case().alias("iIlL", '1').alias("oO", '0'), 26);

/// The format.
pub const FORMAT: Format = Format::new(
    "ulid",
    &[Part::time("time", 48), Part::random("random", 80, "random, or 1 more than the ID before it")],
    0.9,
    "https://github.com/ulid/spec",
)
.with_clock(Clock::UNIX_MS)
.ending_at(ENDS)
.with_texts(&[
    Text::digits(DIGITS),
    Text::borrowed(uuid::DIGITS[0]),
    Text::borrowed(uuid::DIGITS[1]),
    Text::borrowed(uuid::DIGITS[2]),
    Text::borrowed(uuid::DIGITS[3]),
])
.integer();

bytes_id!("ulid", 16, 26, DIGITS, "one of 0123456789ABCDEFGHJKMNPQRSTVWXYZ, the first at most 7");

const TIME: Field = FORMAT.field("time");

/// A leased node number takes the upper bits of the random ones. The highest of the bits that count is 0 in the first
/// ID of a millisecond, so the count never overflows.
impl Ticked for Id {
    const TERM: &'static str = "node";
    const NODE_BITS: u32 = 24;
    const HAS_NODE: bool = false;
    const SEQUENCE_BITS: u32 = 21;
    const NUMBERS: u64 = 1 << 32;

    #[inline(always)]
    fn mint(units: u64, random: u128, node: Option<u64>, n: u32) -> Self {
        let random = match node {
            None => low_bits(random, 79) + u128::from(n),
            Some(node) => (u128::from(node) << 56) | (low_bits(random, 55) + u128::from(n)),
        };
        Self((TIME.put(units) | random).to_be_bytes())
    }

    fn bound(units: u64, is_high: bool) -> Self {
        Self((TIME.put(units) | if is_high { low_bits(u128::MAX, 80) } else { 0 }).to_be_bytes())
    }
}
