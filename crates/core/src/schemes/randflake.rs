//! **randflake**: encrypted integers of 64 bits and up to 13 characters. Read only; without the key an ID reveals
//! nothing.
//!
//! ```text
//!   64 bits
//! ┌─────────┐
//! │ cipher  │
//! └─────────┘
//! ```
//!
//! - **cipher**: SPARX-64/128 of 30 bits of seconds since 2024-10-27T03:33:20Z, 17 of a node and 17 of a sequence
//!   number.
//! - **text**: digits of base 32, `0-9a-v`, without leading zeros. 15 of 16 IDs have 13 digits; only these are
//!   recognised. An integer of it looks like any other.
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
