//! The place of a field in an ID, and the layout of a pool's node numbers.

use crate::units::UnixMs;

/// The place of a field in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// Its width in bits, 1 to 64.
    pub bits: u32,
    /// The number of bits below it.
    pub shift: u32,
}

impl Field {
    /// Returns the largest value that fits.
    #[must_use]
    pub const fn max(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// Returns the field's value in a word.
    #[inline(always)]
    #[must_use]
    pub const fn get(self, word: u128) -> u64 {
        (word >> self.shift) as u64 & self.max()
    }

    /// Returns a value that fits, moved to its place.
    #[inline(always)]
    #[must_use]
    pub const fn put(self, value: u64) -> u128 {
        debug_assert!(value <= self.max());
        (value as u128) << self.shift
    }
}

/// The meaning of a pool's node numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolLayout {
    /// The text that generators write and stores keep.
    pub text: String,
    /// The number of node numbers.
    pub nodes: u64,
    /// The end of its generators' time: they mint nothing from this instant on.
    pub ends: UnixMs,
}
