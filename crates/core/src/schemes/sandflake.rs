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
//!   alphabet are a ULID's, but of the text's 130 bits the last 2 are 0, not the first.
//!
//! Format after <https://github.com/celrenheit/sandflake>.

use crate::codec::positional::{BASE32_CROCKFORD, Digits};
use crate::format::{Clock, Format, Part, Role, Show, Text};

/// The text.
pub const DIGITS: &Digits = &Digits::new(BASE32_CROCKFORD, 26).padded(2);

/// The format.
pub const FORMAT: Format = Format::new(
    "sandflake",
    &[
        Part::time("time", 48),
        Part::new(Role::Node, "worker", 32, "which worker").shown(Show::Hex),
        Part::new(Role::Sequence, "sequence", 24, "counts within a tick"),
        Part::random("random", 24, "random"),
    ],
    0.35,
    "https://github.com/celrenheit/sandflake",
)
.timed(Clock::UNIX_MS)
.written(&[Text::Digits(DIGITS)]);
