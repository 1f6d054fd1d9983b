//! Units as types, so that no millisecond is mistaken for a tick.

use chrono::{DateTime, Datelike, Timelike, Utc};
use std::fmt;

/// Milliseconds since the Unix epoch, floored: the unit of clock readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMs(pub i64);

/// Nanoseconds since the Unix epoch. 128 bits hold every year of a Python `datetime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixNs(pub i128);

/// One unit of a scheme's time, counted from the scheme's epoch: 4 ms for sno, 1 ms for most snowflakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u64);

impl UnixNs {
    /// Nanoseconds in a millisecond.
    pub const PER_MS: i128 = 1_000_000;
    /// Nanoseconds in a second.
    pub const PER_SECOND: i128 = 1_000 * Self::PER_MS;

    /// Returns the millisecond of this instant, rounded towards the past also before 1970.
    #[must_use]
    pub fn floor_ms(self) -> UnixMs {
        let ms = self.0.div_euclid(Self::PER_MS);
        UnixMs(i64::try_from(ms).unwrap_or(if ms < 0 { i64::MIN } else { i64::MAX }))
    }

    /// Returns the date and the time of day; `None` outside the years −9999 to 9999.
    #[must_use]
    pub fn utc(self) -> Option<DateTime<Utc>> {
        let seconds = i64::try_from(self.0.div_euclid(Self::PER_SECOND)).ok()?;
        let at = DateTime::from_timestamp(seconds, self.0.rem_euclid(Self::PER_SECOND) as u32)?;
        (-9_999..=9_999).contains(&at.year()).then_some(at)
    }
}

impl UnixMs {
    /// Returns the first nanosecond of this millisecond.
    #[must_use]
    pub fn start_ns(self) -> UnixNs {
        UnixNs(i128::from(self.0) * UnixNs::PER_MS)
    }
}

/// The start of a scheme's tick 0, and the length of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timescale {
    /// The start of tick 0, in milliseconds since the Unix epoch.
    pub epoch_ms: i64,
    /// The length of a tick in milliseconds, at least 1.
    pub unit_ms: u32,
}

impl Timescale {
    /// Returns the tick of a time; `None` before the epoch.
    #[inline(always)]
    #[must_use]
    pub fn tick(self, time: UnixMs) -> Option<Tick> {
        let ms = time.0.checked_sub(self.epoch_ms)?;
        let ms = u64::try_from(ms).ok()?;
        // Most scales tick once a millisecond, and a division costs as much as the rest of the step.
        Some(Tick(if self.unit_ms == 1 { ms } else { ms / u64::from(self.unit_ms) }))
    }

    /// Returns the first millisecond of a tick, saturating at the largest that fits.
    #[must_use]
    pub fn start(self, tick: Tick) -> UnixMs {
        let ms = i128::from(tick.0) * i128::from(self.unit_ms) + i128::from(self.epoch_ms);
        UnixMs(i64::try_from(ms).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for UnixMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.start_ns().utc() {
            Some(t) => write!(
                f,
                "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                t.year(),
                t.month(),
                t.day(),
                t.hour(),
                t.minute(),
                t.second(),
                t.timestamp_subsec_millis()
            ),
            None => write!(f, "{} ms since 1970", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_outside_the_years_of_four_digits_are_numbers() {
        for (ms, text) in [
            (i64::MIN, "-9223372036854775808 ms since 1970"),
            (-377_705_116_800_001, "-377705116800001 ms since 1970"),
            (-377_705_116_800_000, "-9999-01-01T00:00:00.000Z"),
            (-62_167_219_200_001, "-001-12-31T23:59:59.999Z"),
            (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (253_402_300_800_000, "253402300800000 ms since 1970"),
            (i64::MAX, "9223372036854775807 ms since 1970"),
        ] {
            assert_eq!(UnixMs(ms).to_string(), text);
        }
    }
}
