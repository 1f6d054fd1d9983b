//! **randflake**: enciphered integers of 64 bits and up to 13 characters. Read only: without its key it tells nothing.
//!
//! ```text
//!   64 bits
//! ┌─────────┐
//! │ cipher  │
//! └─────────┘
//! ```
//!
//! - **cipher**: SPARX-64/128 of 30 bits of seconds since 2024-10-27T03:33:20Z, 17 of a node and 17 of a sequence number.
//! - **text**: digits of base 32, `0-9a-v`, without zeros in front: 13 of 15 in 16 IDs, which are those that are known here.
//!   An integer of it is like any other.
//!
//! Format after <https://github.com/gosuda/randflake>.

use crate::codec::positional::{BASE32_HEX, Digits};
use crate::format::{Format, Part, Text};

/// The text.
pub const DIGITS: &Digits = &Digits::new(BASE32_HEX, 13);

/// The format.
pub const FORMAT: Format = Format::new(
    "randflake",
    &[Part::random("cipher", 64, "a time, a node and a sequence number, enciphered")],
    0.4,
    "https://github.com/gosuda/randflake",
)
.with_texts(&[Text::digits(DIGITS)])
.text_only();
