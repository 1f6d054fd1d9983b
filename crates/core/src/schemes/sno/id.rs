//! The ID: its bits, its bytes and its text.

use super::{FORMAT, META, SEQUENCE, SIZE, TEXT, TICK};
use crate::codec::Base32;
use crate::id::bytes_id;

/// An ID. Its order is that of its bytes, its text and its integer.
///
/// ```
/// use mintage_core::{id::Id as _, schemes::sno::Id};
/// let id = Id::parse("brpk4q72xwf2m63l").unwrap();
/// assert_eq!(id.to_bytes().len(), 10);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Time, tick, meta and partition.
    head: u64,
    /// Sequence.
    sequence: u16,
}

impl Id {
    /// The smallest ID.
    pub const ZERO: Self = Self { head: 0, sequence: 0 };
    /// The largest ID.
    pub const MAX: Self = Self { head: u64::MAX, sequence: u16::MAX };

    /// Composes an ID from a timeline (unit and tick-tock bit, 40 bits) and the rest.
    #[inline(always)]
    #[must_use]
    pub const fn new(timeline: u64, meta: u8, partition: u16, sequence: u16) -> Self {
        let [timeline, meta] =
            [timeline << (TICK.shift - SEQUENCE.bits), (meta as u64) << (META.shift - SEQUENCE.bits)];
        Self { head: timeline | meta | partition as u64, sequence }
    }

    /// Returns the ID of 10 bytes. All bytes are an ID.
    #[inline(always)]
    #[must_use]
    pub fn from_bytes(bytes: [u8; SIZE]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j] = bytes;
        Self { head: u64::from_be_bytes([a, b, c, d, e, f, g, h]), sequence: u16::from_be_bytes([i, j]) }
    }

    /// Returns the 10 bytes.
    #[inline(always)]
    #[must_use]
    pub fn to_bytes(self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..8].copy_from_slice(&self.head.to_be_bytes());
        bytes[8..].copy_from_slice(&self.sequence.to_be_bytes());
        bytes
    }
}

bytes_id! {
    impl Id(FORMAT, "sno ID", "sno text", SIZE, TEXT) by Base32,
    from bytes => Self::from_bytes(bytes), to id => id.to_bytes();
}
