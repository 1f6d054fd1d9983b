//! Version 1: Gregorian time and node. The time counts ticks of 100 ns since 1582-10-15, its low bits first.
//!
//! ```text
//!   32 bits    16         4         12          2         14          48
//! ┌──────────┬──────────┬─────────┬───────────┬─────────┬───────────┬──────┐
//! │ time_low │ time_mid │ version │ time_high │ variant │ clock_seq │ node │
//! └──────────┴──────────┴─────────┴───────────┴─────────┴───────────┴──────┘
//! ```
//!
//! Generators choose a random clock sequence for each generator and process. If no address and no number is given, the
//! node is random too, with its multicast bit set. The time of the first ID of a millisecond is the millisecond; later
//! IDs count on.

use super::gregorian::{CLOCK_SEQ, GREGORIAN, NODE};
use super::id::Id;
use super::parts::{VARIANT, layout, time, version};
use crate::format::{Description, Format};
use crate::layout::Field;

/// The format.
pub const FORMAT: Format = layout(
    "v1",
    &[
        time("time_low", 32, "the low 32 bits of the time"),
        time("time_mid", 16, "the middle 16 bits of the time"),
        version(1, "version 1: Gregorian time and node"),
        time("time_high", 12, "").described_by(Description::TextAndClock("the high 12 bits of the time")),
        VARIANT,
        CLOCK_SEQ,
        NODE,
    ],
    1.0,
)
.with_clock(GREGORIAN);

impl Id {
    /// Composes an ID of version 1. `ticks` counts 100 ns since 1582.
    #[inline(always)]
    #[must_use]
    pub fn v1(ticks: u64, clock_seq: u64, node: u64) -> Self {
        let time = const { FORMAT.field("time_low") }.put(ticks & 0xffff_ffff)
            | const { FORMAT.field("time_mid") }.put(ticks >> 32 & 0xffff)
            | const { FORMAT.field("time_high") }.put(ticks >> 48 & 0xfff);
        Self::stamped(time | origin(clock_seq, node), 1)
    }
}

/// Places clock sequence and node, which versions 1 and 6 have in the same places.
#[inline(always)]
pub(super) fn origin(clock_seq: u64, node: u64) -> u128 {
    const CLOCK: Field = FORMAT.field("clock_seq");
    const PLACE: Field = FORMAT.field("node");
    CLOCK.put(clock_seq & CLOCK.max()) | PLACE.put(node & PLACE.max())
}
