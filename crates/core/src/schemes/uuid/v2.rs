//! Version 2: DCE Security. The low bits of the time are lost.
//!
//! ```text
//!   32 bits    16         4         12          2         6           8        48
//! ┌──────────┬──────────┬─────────┬───────────┬─────────┬───────────┬────────┬──────┐
//! │ local_id │ time_mid │ version │ time_high │ variant │ clock_seq │ domain │ node │
//! └──────────┴──────────┴─────────┴───────────┴─────────┴───────────┴────────┴──────┘
//! ```

use super::gregorian::NODE;
use super::parts::{VARIANT, layout, time, version};
use crate::format::{Format, Part, Role};

/// The format.
pub const FORMAT: Format = layout(
    "v2",
    &[
        Part::new(Role::Meta, "local_id", 32, "a POSIX user or group id"),
        time("time_mid", 16, "bits 32 to 47 of the Gregorian time; the lower ones are lost"),
        version(2, "version 2: DCE Security"),
        time("time_high", 12, "the high 12 bits of the Gregorian time"),
        VARIANT,
        Part::new(Role::Meta, "clock_seq", 6, "changes when the clock goes back"),
        Part::new(Role::Meta, "domain", 8, "0 for a person, 1 for a group, 2 for an organisation"),
        NODE,
    ],
    0.3,
);
