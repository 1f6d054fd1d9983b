//! **nil** and **max**, all bits 0 and all bits 1, and every other value of 128 bits.
//!
//! ```text
//!   128 bits
//! ┌──────────┐
//! │ value    │
//! └──────────┘
//! ```

use super::parts::layout;
use crate::format::{Format, Part, Rendering, Role};

/// The nil UUID.
pub const NIL: Format =
    layout("nil", &[Part::fixed("value", 128, 0, "the nil UUID: every bit is 0").rendered_as(Rendering::Hex)], 1.0);

/// The max UUID.
pub const MAX: Format = layout(
    "max",
    &[Part::fixed("value", 128, u128::MAX, "the max UUID: every bit is 1").rendered_as(Rendering::Hex)],
    1.0,
);

/// Every other value that is written as a UUID.
pub const OTHER: Format = Format {
    raw: false,
    integer: false,
    ..layout(
        "other",
        &[Part::new(Role::Meta, "value", 128, "of no version and variant that RFC 9562 defines")
            .rendered_as(Rendering::Hex)],
        0.3,
    )
};
