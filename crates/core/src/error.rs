//! The errors of values. Each names the value and the limit.

use crate::units::UnixMs;
use thiserror::Error;

/// A value from outside that does not fit a scheme.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// Text or bytes of a wrong length.
    #[error("{what} has {actual} {unit}, needs {expected}")]
    Length {
        /// The kind of text or bytes.
        what: &'static str,
        /// The length given.
        actual: usize,
        /// The length required.
        expected: usize,
        /// "characters" or "bytes".
        unit: &'static str,
    },
    /// A character outside the alphabet.
    #[error("{what}: {found:?} at position {position} is not {expected}")]
    Character {
        /// The kind of text or bytes.
        what: &'static str,
        /// The character.
        found: char,
        /// Its 0-based position.
        position: usize,
        /// The characters that are allowed there.
        expected: &'static str,
    },
    /// A number outside its range.
    #[error("{field} {value} is outside {min}..{max}")]
    Range {
        /// The code of the error: a node number is a part of the configuration, a field is not.
        code: &'static str,
        /// The field.
        field: String,
        /// The value, in decimal.
        value: String,
        /// The smallest value allowed.
        min: i128,
        /// The largest value allowed.
        max: u128,
    },
    /// An integer of more bits than fit.
    #[error("{field} {value} is outside 0..2^{bits} - 1")]
    Wide {
        /// The field.
        field: String,
        /// The value, in decimal.
        value: String,
        /// The number of bits that fit.
        bits: u32,
    },
    /// A malformed text of a field.
    #[error("{field} {value:?} is not {expected}")]
    Format {
        /// The field.
        field: &'static str,
        /// The text given, shortened.
        value: String,
        /// The syntax required.
        expected: &'static str,
    },
    /// A time that the layout cannot hold.
    #[error("time {time} is outside {first}..{last}")]
    Time {
        /// The time given.
        time: UnixMs,
        /// The first millisecond that fits.
        first: UnixMs,
        /// The last millisecond that fits.
        last: UnixMs,
    },
    /// A UUID without locality's fields.
    #[error("UUID {uuid} is of version {version}, which has no {field}; only version b has")]
    Version {
        /// The UUID's text.
        uuid: String,
        /// Its version digit.
        version: char,
        /// The field asked for.
        field: &'static str,
    },
    /// An invalid layout.
    #[error("layout {layout:?}: {reason}")]
    Layout {
        /// The declaration.
        layout: String,
        /// The reason.
        reason: String,
    },
    /// Sequence bounds that leave too few numbers.
    #[error("sequence bounds {min}..{max} hold {count} numbers, need at least {needed}")]
    Bounds {
        /// Lower bound.
        min: u16,
        /// Upper bound.
        max: u16,
        /// The number of numbers within them.
        count: u32,
        /// The number of numbers that are needed.
        needed: u32,
    },
    /// A snapshot that no generator could have written.
    #[error("snapshot: {0}")]
    Snapshot(String),
}

impl Error {
    /// Returns the error of a field's value outside `min..=max`.
    #[must_use]
    pub fn range(field: &str, value: impl ToString, min: i128, max: u128) -> Self {
        Self::Range { code: "field.range", field: field.into(), value: value.to_string(), min, max }
    }

    /// Returns the error of the character at a position of a text.
    #[must_use]
    pub fn character(what: &'static str, text: &str, position: usize, expected: &'static str) -> Self {
        Self::Character { what, found: text.chars().nth(position).unwrap_or('\0'), position, expected }
    }

    /// Returns the stable code of the error catalogue.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Length { .. } => "parse.length",
            Self::Character { .. } => "parse.character",
            Self::Range { code, .. } => code,
            Self::Wide { .. } => "field.range",
            Self::Format { .. } => "field.format",
            Self::Time { .. } => "time.range",
            Self::Version { .. } => "field.version",
            Self::Layout { .. } => "config.layout",
            Self::Bounds { .. } => "config.bounds",
            Self::Snapshot(_) => "config.snapshot",
        }
    }
}
