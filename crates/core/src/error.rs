//! What can be wrong with a value: each error names the value and the limit.

use crate::units::UnixMs;
use thiserror::Error;

/// A value from outside that does not fit a scheme.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// Text or bytes of a wrong length.
    #[error("{what} has {actual} {unit}, needs {expected}")]
    Length {
        /// What was parsed.
        what: &'static str,
        /// Length given.
        actual: usize,
        /// Length required.
        expected: usize,
        /// "characters" or "bytes".
        unit: &'static str,
    },
    /// A character outside the alphabet.
    #[error("{what}: {found:?} at position {position} is not {expected}")]
    Character {
        /// What was parsed.
        what: &'static str,
        /// The character found.
        found: char,
        /// Its 0-based position.
        position: usize,
        /// What may stand there.
        expected: &'static str,
    },
    /// A field's value outside its range.
    #[error("{field} {value} is outside {min}..{max}")]
    Range {
        /// The field.
        field: String,
        /// The value, in decimal.
        value: String,
        /// Smallest value allowed.
        min: i128,
        /// Largest value allowed.
        max: u128,
    },
    /// A whole number of more bits than fit.
    #[error("{field} {value} is outside 0..2^{bits} - 1")]
    Wide {
        /// The field.
        field: String,
        /// The value, in decimal.
        value: String,
        /// How many bits fit.
        bits: u32,
    },
    /// A field's text is malformed.
    #[error("{field} {value:?} is not {expected}")]
    Format {
        /// The field.
        field: &'static str,
        /// The text given, shortened.
        value: String,
        /// The form required.
        expected: &'static str,
    },
    /// A time that the layout cannot hold.
    #[error("time {time} is outside {first}..{last}")]
    Time {
        /// The time given.
        time: UnixMs,
        /// First millisecond that fits.
        first: UnixMs,
        /// Last millisecond that fits.
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
    /// A layout that cannot be.
    #[error("layout {layout:?}: {reason}")]
    Layout {
        /// The declaration.
        layout: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Sequence bounds that leave too few numbers.
    #[error("sequence bounds {min}..{max} hold {pool} numbers, need at least {needed}")]
    Bounds {
        /// Lower bound.
        min: u16,
        /// Upper bound.
        max: u16,
        /// How many numbers lie in them.
        pool: u32,
        /// How many are needed.
        needed: u32,
    },
    /// A node number outside its layout.
    #[error("{term} {value} is outside 0..{max}")]
    Node {
        /// The scheme's word for it.
        term: &'static str,
        /// The value, in decimal.
        value: String,
        /// Largest value allowed.
        max: u64,
    },
    /// A wait that cannot be.
    #[error("max_wait_ms {value} is outside 0..{max}")]
    Wait {
        /// The value, in decimal.
        value: String,
        /// Largest value allowed.
        max: u32,
    },
    /// A snapshot that no generator could have written.
    #[error("snapshot: {0}")]
    Snapshot(String),
}

impl Error {
    /// The stable code of the error catalogue.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Length { .. } => "parse.length",
            Self::Character { .. } => "parse.character",
            Self::Range { .. } | Self::Wide { .. } => "field.range",
            Self::Format { .. } => "field.format",
            Self::Time { .. } => "time.range",
            Self::Version { .. } => "field.version",
            Self::Layout { .. } => "config.layout",
            Self::Bounds { .. } => "config.bounds",
            Self::Node { .. } => "config.node",
            Self::Wait { .. } => "config.wait",
            Self::Snapshot(_) => "config.snapshot",
        }
    }
}
