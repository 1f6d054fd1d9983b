//! **sno**: 10 bytes, sortable, with a metabyte for the user.
//!
//! ```text
//!   39 bits   1      8      16          16
//! ┌─────────┬──────┬──────┬───────────┬──────────┐
//! │ time    │ tick │ meta │ partition │ sequence │
//! └─────────┴──────┴──────┴───────────┴──────────┘
//! ```
//!
//! Big-endian: bytes, text and integer sort alike.
//!
//! - **time**: units of 4 ms since 2010-01-01T00:00:00Z, floored; the last one begins at 2079-09-07T15:47:35.548Z.
//! - **tick**: the tick-tock bit, which selects one of two timelines. When the clock goes back, a generator flips it
//!   and continues at once.
//! - **sequence**: a counter that restarts at the generator's lower bound in every unit.
//! - **text**: 16 characters of base 32, alphabet `23456789abcdefghijklmnopqrstuvwx`; characters 8 and 9 carry the
//!   metabyte.
//!
//! Format and behaviour after the Go library `muyo/sno` 1.1; comments note every difference.

mod given_time;
mod id;
mod mint;
mod snapshot;
mod step;

pub use given_time::{bound, ported};
pub use id::Id;
pub use mint::Mint;
pub use snapshot::{Leased, Snapshot};
pub use step::{Bounds, Drift, State, step, tick_tock};

use super::uuid;
use crate::codec::positional::{BASE32_SNO, Digits};
use crate::error::Error;
use crate::format::{Clock, Description, Format, Part, Role, Text};
use crate::layout::{Field, PoolLayout};
use crate::step::Window;
use crate::units::{Tick, Timescale, UnixMs};

/// The text.
pub const DIGITS: &Digits = &Digits::new(BASE32_SNO, 16);

/// The format. Its text is also stored as the bytes of a UUID.
pub const FORMAT: Format = Format::new(
    "sno",
    &[
        Part::time("time", 39),
        Part::new(Role::Meta, "tick", 1, "").described_by(Description::Computed(timeline)),
        Part::new(Role::Meta, "meta", 8, "the user's byte"),
        Part::new(Role::Node, "partition", 16, "where it was minted"),
        Part::new(Role::Sequence, "sequence", 16, "counts within a tick"),
    ],
    1.0,
    "https://github.com/muyo/sno",
)
.with_clock(Clock::of_ms(1_262_304_000_000, 4))
.with_texts(&[
    Text::digits(DIGITS),
    Text::held(uuid::DIGITS[0], DIGITS),
    Text::held(uuid::DIGITS[1], DIGITS),
    Text::held(uuid::DIGITS[2], DIGITS),
    Text::held(uuid::DIGITS[3], DIGITS),
])
.integer();

fn timeline(tick: u64) -> String {
    if tick == 1 { "timeline 1, after the clock went back" } else { "timeline 0" }.into()
}

/// The units of 4 ms since the epoch.
pub const TIME: Field = FORMAT.field("time");
/// The tick-tock bit.
pub const TICK: Field = FORMAT.field("tick");
/// The user's byte.
pub const META: Field = FORMAT.field("meta");
/// The partition.
pub const PARTITION: Field = FORMAT.field("partition");
/// The sequence number.
pub const SEQUENCE: Field = FORMAT.field("sequence");

/// The bytes of an ID.
pub const SIZE: usize = FORMAT.size();
/// The characters of an ID's text.
pub const TEXT: usize = FORMAT.length();
/// The scale of units: 4 ms since 2010-01-01T00:00:00Z.
pub const TIMESCALE: Timescale = FORMAT.timescale();
/// All of the layout: the window of a generator without a lease.
pub const WINDOW: Window = Window { floor: Tick(0), until: Tick(TIME.max() + 1) };

/// The most parts into which generators divide the sequence numbers of a partition.
pub const MAX_SHARDS: u32 = 1 << 13;

/// Returns the layout of a pool whose node numbers are partitions, each divided into a number of shards.
#[must_use]
pub fn pool_layout(shards: u32) -> PoolLayout {
    let nodes = (PARTITION.max() + 1) * u64::from(shards);
    PoolLayout { text: format!("sno/{shards}"), nodes, ends: TIMESCALE.start(WINDOW.until) }
}

/// Returns the number of shards of a pool's layout, as [`pool_layout`] writes it; `sno` alone means one. `None` if the
/// text is not such a layout.
#[must_use]
pub fn read_shards(text: &str) -> Option<u32> {
    let shards = if text == "sno" { 1 } else { text.strip_prefix("sno/")?.parse().ok()? };
    let is_canonical = text == "sno" || pool_layout(shards).text == text;
    (is_canonical && shards.is_power_of_two() && shards <= MAX_SHARDS).then_some(shards)
}

/// Returns the unit of a time.
///
/// # Errors
/// [`Error::Time`] outside the layout; the original wraps silently.
pub fn unit(time: UnixMs) -> Result<Tick, Error> {
    WINDOW.tick(TIMESCALE, time)
}
