//! **tsid**: integers of 64 bits and 13 characters, which sort by time. Read only: a snowflake layout of the same
//! fields mints them.
//!
//! ```text
//!   42 bits   22
//! ┌─────────┬────────┐
//! │ time    │ random │
//! └─────────┴────────┘
//! ```
//!
//! - **time**: milliseconds since 2020, unless an application chose another epoch.
//! - **random**: in the usual configurations a node number, as many bits as the application chose, and a counter below.
//! - **text**: 13 characters of Crockford's base 32. The first is at most F. It is read in either case; `i` and `l` are
//!   read as 1, `o` as 0.
//!
//! Format after <https://github.com/f4b6a3/tsid-creator>.

use crate::codec::positional::{BASE32_CROCKFORD, Digits};
use crate::format::{Clock, Format, Part, Text};

/// The text.
pub const DIGITS: &Digits = &Digits::new(BASE32_CROCKFORD.any_case().alias("iIlL", '1').alias("oO", '0'), 13);

/// The format.
pub const FORMAT: Format = Format::new(
    "tsid",
    &[Part::time("time", 42), Part::random("random", 22, "a node number and a counter, or random")],
    0.6,
    "https://github.com/f4b6a3/tsid-creator",
)
.with_clock(Clock::of_ms(1_577_836_800_000, 1))
.with_texts(&[Text::digits(DIGITS)]);
