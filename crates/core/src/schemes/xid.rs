//! **xid**: 12 bytes and 20 characters, which sort by second.
//!
//! ```text
//!   32 bits   24        16    24
//! ┌─────────┬─────────┬─────┬─────────┐
//! │ time    │ machine │ pid │ counter │
//! └─────────┴─────────┴─────┴─────────┘
//! ```
//!
//! - **time**: seconds since 1970, until 2106.
//! - **machine**: the start of a hash of the machine's id.
//! - **pid**: process id modulo 65,536.
//! - **counter**: counts on from a random start, whatever the second.
//! - **text**: 20 digits of base 32, `0-9a-v`; the lower 4 of their 100 bits are 0.
//!
//! Format after <https://github.com/rs/xid>.

use crate::codec::positional::{BASE32_HEX, Digits};
use crate::format::{Clock, Format, Part, Rendering, Role, Text};
use crate::id::bytes_id;
use crate::ticked::twelve_bytes;

/// The text.
pub const DIGITS: &Digits = &Digits::new(BASE32_HEX, 20).padded(4);

/// The format.
pub const FORMAT: Format = Format::new(
    "xid",
    &[
        Part::time("time", 32),
        Part::new(Role::Node, "machine", 24, "the start of a hash of the machine's id").rendered_as(Rendering::Hex),
        Part::new(Role::Node, "pid", 16, "process id modulo 65,536"),
        Part::new(Role::Sequence, "counter", 24, "counts on from a random start"),
    ],
    0.8,
    "https://github.com/rs/xid",
)
.with_clock(Clock::UNIX_S)
.with_texts(&[Text::digits(DIGITS)]);

bytes_id!("xid", 12, 20, DIGITS, "one of 0123456789abcdefghijklmnopqrstuv, the last 0 or g");

// The node number is machine and pid together.
twelve_bytes!("node");
