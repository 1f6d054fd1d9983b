//! The clock of a format: its epoch, its tick, and the parts that count.

use crate::units::UnixNs;
use chrono::{Datelike, Timelike};
use std::fmt;

/// The clock that the time parts count: ticks of `tick_ns` nanoseconds since `epoch_ns`, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Clock<'a> {
    /// The start of tick 0.
    pub epoch_ns: i128,
    /// The length of a tick.
    pub tick_ns: u64,
    /// The names of the parts that hold the count, the most significant first.
    pub parts: &'a [&'a str],
}

/// Nanoseconds in a millisecond.
pub const MS: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000 * MS;

impl<'a> Clock<'a> {
    /// Milliseconds since 1970.
    pub const UNIX_MS: Self = Self::new(0, MS);
    /// Seconds since 1970.
    pub const UNIX_S: Self = Self::new(0, SECOND);

    /// Declares ticks that a part called `time` counts.
    #[must_use]
    pub const fn new(epoch_ns: i128, tick_ns: u64) -> Self {
        Self { epoch_ns, tick_ns, parts: &["time"] }
    }

    /// Declares ticks of `unit_ms` milliseconds since an epoch in milliseconds since 1970.
    #[must_use]
    pub const fn of_ms(epoch_ms: i64, unit_ms: u32) -> Self {
        Self::new(epoch_ms as i128 * MS as i128, unit_ms as u64 * MS)
    }

    /// Sets the parts that count, the most significant first.
    #[must_use]
    pub const fn counted_by(self, parts: &'a [&'a str]) -> Self {
        Self { parts, ..self }
    }
}

impl fmt::Display for Clock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tick_ns {
            SECOND => f.write_str("seconds")?,
            MS => f.write_str("milliseconds")?,
            tick if tick % MS == 0 => write!(f, "ticks of {} ms", tick / MS)?,
            tick => write!(f, "ticks of {tick} ns")?,
        }
        match UnixNs(self.epoch_ns).utc() {
            Some(t) if t.year() >= 1 => {
                let micros = t.timestamp_subsec_micros();
                let form = match (t.num_seconds_from_midnight(), micros, micros % 1_000) {
                    (0, 0, _) => "%Y-%m-%d",
                    (_, 0, _) => "%Y-%m-%dT%H:%M:%SZ",
                    (_, _, 0) => "%Y-%m-%dT%H:%M:%S%.3fZ",
                    _ => "%Y-%m-%dT%H:%M:%S%.6fZ",
                };
                write!(f, " since {}", t.format(form))
            }
            _ => write!(f, " since {} ns from 1970", self.epoch_ns),
        }
    }
}
