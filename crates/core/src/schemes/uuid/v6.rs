//! Version 6: the parts of version 1 in an order that sorts by time.
//!
//! ```text
//!   32 bits     16         4         12         2         14          48
//! ┌───────────┬──────────┬─────────┬──────────┬─────────┬───────────┬──────┐
//! │ time_high │ time_mid │ version │ time_low │ variant │ clock_seq │ node │
//! └───────────┴──────────┴─────────┴──────────┴─────────┴───────────┴──────┘
//! ```

use super::gregorian::{CLOCK_SEQ, GREGORIAN, NODE};
use super::id::Id;
use super::parts::{VARIANT, layout, time, version};
use super::v1::origin;
use crate::format::{Description, Format};

/// The format.
pub const FORMAT: Format = layout(
    "v6",
    &[
        time("time_high", 32, "").described_by(Description::TextAndClock("the high 32 bits of the time")),
        time("time_mid", 16, "the middle 16 bits of the time"),
        version(6, "version 6: Gregorian time and node, sortable"),
        time("time_low", 12, "the low 12 bits of the time"),
        VARIANT,
        CLOCK_SEQ,
        NODE,
    ],
    1.0,
)
.with_clock(GREGORIAN);

impl Id {
    /// Composes an ID of version 6. `ticks` counts 100 ns since 1582.
    #[inline(always)]
    #[must_use]
    pub fn v6(ticks: u64, clock_seq: u64, node: u64) -> Self {
        let time = const { FORMAT.field("time_high") }.put(ticks >> 28 & 0xffff_ffff)
            | const { FORMAT.field("time_mid") }.put(ticks >> 12 & 0xffff)
            | const { FORMAT.field("time_low") }.put(ticks & 0xfff);
        Self::stamped(time | origin(clock_seq, node), 6)
    }
}
