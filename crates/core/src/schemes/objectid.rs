//! **objectid**: MongoDB's 12 bytes, which sort by second.
//!
//! ```text
//!   32 bits   40        24
//! ┌─────────┬─────────┬─────────┐
//! │ time    │ process │ counter │
//! └─────────┴─────────┴─────────┘
//! ```
//!
//! - **time**: seconds since 1970, until 2106.
//! - **process**: random, once for each process.
//! - **counter**: counts on from a random start, whatever the second.
//! - **text**: 24 hexadecimal digits, written in lower case and read in either.
//!
//! Format after the specification of BSON, <https://www.mongodb.com/docs/manual/reference/bson-types/#objectid>.

use crate::codec::positional::{BASE16, Digits};
use crate::format::{Clock, Format, Part, Rendering, Role, Text};
use crate::id::bytes_id;
use crate::ticked::twelve_bytes;

/// The text.
pub const DIGITS: &Digits = &Digits::new(BASE16, 24);

/// The format.
pub const FORMAT: Format = Format::new(
    "objectid",
    &[
        Part::time("time", 32),
        Part::new(Role::Node, "process", 40, "random, once for each process").rendered_as(Rendering::Hex),
        Part::new(Role::Sequence, "counter", 24, "counts on from a random start"),
    ],
    0.9,
    "https://www.mongodb.com/docs/manual/reference/bson-types/#objectid",
)
.with_clock(Clock::UNIX_S)
.with_texts(&[Text::digits(DIGITS)]);

bytes_id!("objectid", 12, 24, DIGITS, "a hex digit");

// The node number takes the place of the process part.
twelve_bytes!("process");
