//! Version 4: random bits.
//!
//! ```text
//!   48 bits    4         12         2         62
//! ┌──────────┬─────────┬──────────┬─────────┬──────────┐
//! │ random_a │ version │ random_b │ variant │ random_c │
//! └──────────┴─────────┴──────────┴─────────┴──────────┘
//! ```

use super::parts::{VARIANT, layout, version};
use crate::format::{Format, Part};

/// The format.
pub const FORMAT: Format = layout(
    "v4",
    &[
        Part::random("random_a", 48, "random"),
        version(4, "version 4: random"),
        Part::random("random_b", 12, "random"),
        VARIANT,
        Part::random("random_c", 62, "random"),
    ],
    1.0,
);
