//! **ksuid_ms**: a KSUID whose fifth byte counts within the second: 20 bytes and 27 characters, which sort by 4 ms.
//!
//! ```text
//!   32 bits   8          120
//! ┌─────────┬──────────┬─────────┐
//! │ time    │ fraction │ payload │
//! └─────────┴──────────┴─────────┘
//! ```
//!
//! - **time**: seconds since 2014-05-13T16:53:20Z, until 2150.
//! - **fraction**: ticks of 4 ms within the second, 0 to 249. No generator writes 250 to 255; a reader takes them for
//!   ticks of the next second.
//! - **text**: that of a [`ksuid`](super::ksuid). Nothing distinguishes the two.
//!
//! Format after <https://github.com/svix/python-ksuid>.

use super::ksuid::DIGITS;
use crate::format::{Clock, Constraint, Description, Format, MS, Part, Role, SECOND, Text};
use crate::id::bytes_id;
use crate::ticked::{Ticked, low_bits};

/// The format.
pub const FORMAT: Format = Format::new(
    "ksuid_ms",
    &[
        Part::new(Role::Time, "time", 32, "").described_by(Description::TextAndClock("the whole seconds")),
        Part::new(Role::Time, "fraction", 8, "")
            .described_by(Description::TextAndClock("the rest"))
            .constrained_to(Constraint::Within(0, TICKS as u128)),
        Part::random("payload", PAYLOAD_BITS, "random"),
    ],
    0.5,
    "https://github.com/svix/python-ksuid",
)
.with_clock(Clock::new(1_400_000_000 * SECOND as i128, SECOND / TICKS).counted_by(&["time", "fraction"]))
.with_texts(&[Text::digits(DIGITS)]);

/// Ticks in a second.
const TICKS: u64 = SECOND / (4 * MS);
const PAYLOAD_BITS: u32 = 120;

bytes_id!("ksuid_ms", 20, 27, DIGITS, "one of 0-9A-Za-z, and no more than aWgEPTl1tmebfsQzFP4bxwgy80V in all");

impl Id {
    #[inline(always)]
    fn new(ticks: u64, payload: u128) -> Self {
        let mut id = [0; 20];
        id[..4].copy_from_slice(&((ticks / TICKS) as u32).to_be_bytes());
        id[4..].copy_from_slice(&(u128::from(ticks % TICKS) << PAYLOAD_BITS | payload).to_be_bytes());
        Self(id)
    }
}

/// A leased node number takes the upper bits of the payload. The highest of the bits that count is 0 in the first ID of
/// a tick, so the count never overflows.
impl Ticked for Id {
    const TERM: &'static str = "node";
    const NODE_BITS: u32 = 32;
    const HAS_NODE: bool = false;
    const SEQUENCE_BITS: u32 = 23;
    const NUMBERS: u64 = 1 << 32;

    #[inline(always)]
    fn mint(units: u64, random: u128, node: Option<u64>, n: u32) -> Self {
        let payload = match node {
            None => low_bits(random, 119) + u128::from(n),
            Some(node) => (u128::from(node) << 88) | (low_bits(random, 87) + u128::from(n)),
        };
        Self::new(units, payload)
    }

    fn bound(units: u64, is_high: bool) -> Self {
        Self::new(units, if is_high { low_bits(u128::MAX, PAYLOAD_BITS) } else { 0 })
    }
}
