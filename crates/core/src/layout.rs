//! A layout: bit fields declared from high to low, which must add up.

/// One field's place in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// Width in bits, 1 to 64.
    pub bits: u32,
    /// How many bits lie below it.
    pub shift: u32,
}

impl Field {
    /// The largest value that fits.
    #[must_use]
    pub const fn max(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// This field's value in a word.
    #[inline(always)]
    #[must_use]
    pub const fn get(self, word: u128) -> u64 {
        (word >> self.shift) as u64 & self.max()
    }

    /// A value that fits, moved to its place.
    #[inline(always)]
    #[must_use]
    pub const fn put(self, value: u64) -> u128 {
        debug_assert!(value <= self.max());
        (value as u128) << self.shift
    }
}

/// Places fields of the given widths one below the other, the first at the top of a word of `total` bits.
///
/// # Panics
/// When the widths do not add up to `total`; used for constants, so at compile time.
#[must_use]
pub const fn stack<const N: usize>(total: u32, widths: [u32; N]) -> [Field; N] {
    let mut fields = [Field { bits: 1, shift: 0 }; N];
    let mut left = total;
    let mut i = 0;
    while i < N {
        assert!(widths[i] >= 1 && widths[i] <= 64, "a field is 1 to 64 bits wide");
        assert!(widths[i] <= left, "the fields are wider than the word");
        left -= widths[i];
        fields[i] = Field { bits: widths[i], shift: left };
        i += 1;
    }
    assert!(left == 0, "the fields do not fill the word");
    fields
}
