//! Version 8: the application's own bits.
//!
//! ```text
//!   48 bits    4         12         2         62
//! ┌──────────┬─────────┬──────────┬─────────┬──────────┐
//! │ custom_a │ version │ custom_b │ variant │ custom_c │
//! └──────────┴─────────┴──────────┴─────────┴──────────┘
//! ```

use super::parts::{VARIANT, layout, version};
use crate::format::{Format, Part, Rendering, Role};

/// The format.
pub const FORMAT: Format = layout(
    "v8",
    &[
        custom("custom_a", 48),
        version(8, "version 8: the application's own"),
        custom("custom_b", 12),
        VARIANT,
        custom("custom_c", 62),
    ],
    0.9,
);

const fn custom(name: &'static str, bits: u32) -> Part<'static> {
    Part::new(Role::Meta, name, bits, "the application's").rendered_as(Rendering::Hex)
}
