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
//! - **text**: 27 digits of base 62, `0-9A-Za-z`, padded with zeros; above `aWgEPTl1tmebfsQzFP4bxwgy80V` is no ID.
//!
//! Format after <https://github.com/segmentio/ksuid>.

use crate::codec::positional::{BASE62, Digits};
use crate::format::{Clock, Format, Part, SECOND, Text};

/// The text.
pub const DIGITS: &Digits = &Digits::new(BASE62, 27);

/// The format.
pub const FORMAT: Format = Format::new(
    "ksuid",
    &[Part::time("time", 32), Part::random("payload", 128, "random")],
    0.9,
    "https://github.com/segmentio/ksuid",
)
.timed(Clock::new(1_400_000_000 * SECOND as i128, SECOND))
.written(&[Text::Digits(DIGITS)]);
