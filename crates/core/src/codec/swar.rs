//! Alphabets of digits and lower-case letters, written and read eight characters at a time in a `u64` (SIMD within a
//! register).

#![forbid(unsafe_code)]

/// An alphabet of digits from `zero` on, then lower-case letters from `a` on.
#[derive(Clone, Copy)]
pub(super) struct Alphabet {
    /// The bits that a character stands for.
    pub(super) bits: u32,
    /// The character of value 0.
    pub(super) zero: u8,
    /// The number of digits.
    pub(super) digits: u8,
    /// The bit in which upper case differs from lower case if both are read, else 0.
    pub(super) fold: u8,
}

/// The alphabet of sno.
pub(super) const BASE32: Alphabet = Alphabet { bits: 5, zero: b'2', digits: 8, fold: 0 };
/// The hexadecimal digits of a UUID.
pub(super) const HEX: Alphabet = Alphabet { bits: 4, zero: b'0', digits: 10, fold: b'a' ^ b'A' };
/// The positions of the hyphens in the text of a UUID.
pub(super) const HYPHENS: [usize; 4] = [8, 13, 18, 23];

impl Alphabet {
    /// Returns the number of letters.
    pub(super) const fn letters(self) -> u8 {
        (1 << self.bits) - self.digits
    }

    /// Returns the distance of the letters from the characters that follow the digits.
    pub(super) const fn gap(self) -> u8 {
        b'a' - self.digits - self.zero
    }

    /// Returns the value of a character.
    pub(super) const fn value(self, character: u8) -> Option<u8> {
        match (character, character | self.fold) {
            (digit, _) if digit >= self.zero && digit < self.zero + self.digits => Some(digit - self.zero),
            (_, letter) if letter >= b'a' && letter < b'a' + self.letters() => Some(letter - self.gap() - self.zero),
            _ => None,
        }
    }

    /// Writes numbers of 8 × `bits` bits as eight characters each, the first in the lowest byte.
    ///
    /// It takes several at a time, from which compilers make code for vectors.
    #[inline(always)]
    pub(super) fn write<const N: usize>(self, mut numbers: [u64; N]) -> [u64; N] {
        for (half, width, lane) in halvings(self.bits) {
            numbers = numbers.map(|n| (n >> width) & half | (n & half) << lane);
        }
        numbers.map(|values| self.characters(values))
    }

    /// Undoes [`Self::write`]; `None` if a character is outside the alphabet.
    #[inline(always)]
    pub(super) fn read<const N: usize>(self, texts: [u64; N]) -> Option<[u64; N]> {
        let mut wrong = 0;
        let mut numbers = texts.map(|text| {
            // The bit of '@' marks a letter. A value is right if it leads back to the text.
            let letters = masks(text << 1);
            let text = text | (letters & each(self.fold));
            let values = text.wrapping_sub(each(self.zero) + (letters & each(self.gap())));
            let values = values & each((1 << self.bits) - 1);
            wrong |= text ^ self.characters(values);
            values
        });
        for (half, width, lane) in halvings(self.bits).into_iter().rev() {
            numbers = numbers.map(|n| (n & half) << width | (n >> lane) & half);
        }
        (wrong == 0).then_some(numbers)
    }

    /// Returns the characters for the values in the bytes of a `u64`.
    #[inline(always)]
    const fn characters(self, values: u64) -> u64 {
        let letters = masks(values + each(0x80 - self.digits));
        values + each(self.zero) + (letters & each(self.gap()))
    }
}

/// Returns the steps from a number of 8 × `bits` bits to one value in each byte, the first lowest. Each step moves the
/// upper half of every lane into a lower lane of its own and the lower half into an upper one: (mask of halves, their
/// width, the lanes' width).
#[inline(always)]
pub(super) const fn halvings(bits: u32) -> [(u64, u32, u32); 3] {
    const fn halving(bits: u32, bytes: u32) -> (u64, u32, u32) {
        let every_other_lane = u64::MAX / (u64::MAX >> (64 - 16 * bytes));
        let width = bits * bytes;
        (every_other_lane * ((1 << width) - 1), width, 8 * bytes)
    }
    [halving(bits, 4), halving(bits, 2), halving(bits, 1)]
}

/// Repeats a byte eight times.
pub(super) const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Returns 0x7f for each byte whose top bit is set, 0 for the others.
#[inline(always)]
pub(super) const fn masks(bytes: u64) -> u64 {
    let tops = bytes & each(0x80);
    tops - (tops >> 7)
}
