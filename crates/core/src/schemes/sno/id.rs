//! The ID: its bits, its bytes and its text.

use super::{FORMAT, META, PARTITION, SEQUENCE, SIZE, TEXT, TICK, TIME, TIMESCALE, unit};
use crate::codec::Base32;
use crate::error::Error;
use crate::id::bytes_id;
use crate::units::{Tick, UnixMs};

/// An ID. Its order is that of its bytes, its text and its integer.
///
/// ```
/// use mintage_core::{id::Id as _, schemes::sno::Id};
/// let id = Id::parse("brpk4q72xwf2m63l").unwrap();
/// assert_eq!((id.meta(), id.to_bytes().len()), (255, 10));
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

    /// Composes an ID from a time and the rest.
    ///
    /// # Errors
    /// [`Error::Time`] outside 2010-01-01 … 2079-09-07.
    pub fn from_parts(time: UnixMs, tick: bool, meta: u8, partition: u16, sequence: u16) -> Result<Self, Error> {
        Ok(Self::new(unit(time)?.0 << 1 | u64::from(tick), meta, partition, sequence))
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

    /// Returns the canonical text.
    #[inline(always)]
    #[must_use]
    pub fn encode(self) -> [u8; TEXT] {
        Base32::encode(self.to_bytes())
    }

    /// Returns all 80 bits.
    #[must_use]
    pub fn to_u128(self) -> u128 {
        u128::from(self.head) << SEQUENCE.bits | u128::from(self.sequence)
    }

    /// Returns the ID of the lower 80 bits.
    #[must_use]
    pub fn from_u128(value: u128) -> Self {
        Self { head: (value >> SEQUENCE.bits) as u64, sequence: value as u16 }
    }

    /// The units of 4 ms since the epoch.
    #[must_use]
    pub fn unit(self) -> Tick {
        Tick(TIME.get(self.to_u128()))
    }

    /// Returns the start of the unit.
    #[must_use]
    pub fn time(self) -> UnixMs {
        TIMESCALE.start(self.unit())
    }

    /// The tick-tock bit.
    #[must_use]
    pub fn tick(self) -> bool {
        TICK.get(self.to_u128()) == 1
    }

    /// The user's byte.
    #[must_use]
    pub fn meta(self) -> u8 {
        META.get(self.to_u128()) as u8
    }

    /// Returns the partition.
    #[must_use]
    pub fn partition(self) -> u16 {
        PARTITION.get(self.to_u128()) as u16
    }

    /// Returns the sequence number.
    #[must_use]
    pub fn sequence(self) -> u16 {
        self.sequence
    }
}

bytes_id! {
    impl Id(FORMAT, "sno ID", "sno text", SIZE, TEXT) by Base32,
    from bytes => Self::from_bytes(bytes), to id => id.to_bytes();
}
