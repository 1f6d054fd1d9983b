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
//! - **random**: drawn for the first ID of a millisecond, 1 more than the ID before it for the others. A millisecond that
//!   runs over is an error.
//! - **text**: 26 characters of Crockford's base 32, `0123456789ABCDEFGHJKMNPQRSTVWXYZ`, of which the first is 7 at most as
//!   the upper 2 of its 130 bits are 0. Written in upper case, read in either.
//!
//! Format after <https://github.com/ulid/spec>.

use super::uuid;
use crate::codec::positional::{BASE32_CROCKFORD, Digits};
use crate::format::{Clock, Format, Part, Text};

/// The text.
pub const DIGITS: &Digits = &Digits::new(BASE32_CROCKFORD.any_case(), 26);

/// The format.
pub const FORMAT: Format = Format::new(
    "ulid",
    &[Part::time("time", 48), Part::random("random", 80, "random, or 1 more than the ID before it")],
    0.9,
    "https://github.com/ulid/spec",
)
.timed(Clock::UNIX_MS)
.written(&[
    Text::Digits(DIGITS),
    Text::Borrowed(uuid::DIGITS[0]),
    Text::Borrowed(uuid::DIGITS[1]),
    Text::Borrowed(uuid::DIGITS[2]),
    Text::Borrowed(uuid::DIGITS[3]),
])
.integer();
