//! **ksuid**: 20 bytes and 27 characters, which sort by second.
//!
//! ```text
//!   32 bits   128
//! ┌─────────┬─────────┐
//! │ time    │ payload │
//! └─────────┴─────────┘
//! ```
//!
//! - **time**: seconds since 2014-05-13T16:53:20Z, until 2150.
//! - **text**: 27 digits of base 62, `0-9A-Za-z`, padded with zeros. No ID is above `aWgEPTl1tmebfsQzFP4bxwgy80V`.
//!
//! Format after <https://github.com/segmentio/ksuid>.

use crate::codec::positional::{BASE62, Digits};
use crate::format::{Clock, Format, Part, SECOND, Text};
use crate::id::bytes_id;
use crate::ticked::{Ticked, low_bits};

/// The text.
pub const DIGITS: &Digits = &Digits::new(BASE62, 27);

/// The format.
pub const FORMAT: Format = Format::new(
    "ksuid",
    &[Part::time("time", 32), Part::random("payload", 128, "random")],
    0.9,
    "https://github.com/segmentio/ksuid",
)
.with_clock(Clock::new(1_400_000_000 * SECOND as i128, SECOND))
.with_texts(&[Text::digits(DIGITS)]);

bytes_id!("ksuid", 20, 27, DIGITS, "one of 0-9A-Za-z, and no more than aWgEPTl1tmebfsQzFP4bxwgy80V in all");

impl Id {
    /// Composes an ID.
    #[inline(always)]
    #[must_use]
    pub fn new(time: u32, payload: u128) -> Self {
        let mut id = [0; 20];
        id[..4].copy_from_slice(&time.to_be_bytes());
        id[4..].copy_from_slice(&payload.to_be_bytes());
        Self(id)
    }
}

/// A leased node number takes the upper bits of the payload. The highest of the bits that count is 0 in the first ID of
/// a second, so the count never overflows.
impl Ticked for Id {
    const TERM: &'static str = "node";
    const NODE_BITS: u32 = 32;
    const HAS_NODE: bool = false;
    const SEQUENCE_BITS: u32 = 28;
    const NUMBERS: u64 = 1 << 32;

    #[inline(always)]
    fn mint(units: u64, random: u128, node: Option<u64>, n: u32) -> Self {
        let payload = match node {
            None => low_bits(random, 127) + u128::from(n),
            Some(node) => (u128::from(node) << 96) | (low_bits(random, 95) + u128::from(n)),
        };
        Self::new(units as u32, payload)
    }

    fn bound(units: u64, is_high: bool) -> Self {
        Self::new(units as u32, if is_high { u128::MAX } else { 0 })
    }
}
