//! IDs as text and back: [`base32`] for sno, [`hex`] for UUIDs.
//!
//! Both alphabets are digits followed by letters, in ASCII's order, so that texts sort as their bytes do. One
//! `Alphabet` describes either, and works on the eight characters of a `u64`; `simd` does the same in wider registers.
//! Of many IDs, a [`Path`] converts whole blocks for as long as all is well, and the code for a single ID the rest:
//! only the latter ever has to find *where* a text is wrong.

#![deny(unsafe_code)]

pub mod base32;
pub mod hex;
pub mod positional;
mod simd;

pub use simd::Path;

use std::iter::zip;

/// Digits from `zero` on, then lower-case letters from `a` on.
#[derive(Clone, Copy)]
struct Alphabet {
    /// How many bits a character stands for.
    bits: u32,
    /// The character of value 0.
    zero: u8,
    /// How many of the characters are digits.
    digits: u8,
    /// The bit in which upper case differs from lower case if both are read, else 0.
    fold: u8,
}

impl Alphabet {
    /// How many of the characters are letters.
    const fn letters(self) -> u8 {
        (1 << self.bits) - self.digits
    }

    /// How far the letters are from where they would be if they followed the digits at once.
    const fn gap(self) -> u8 {
        b'a' - self.digits - self.zero
    }

    /// The value of a character.
    const fn value(self, character: u8) -> Option<u8> {
        match (character, character | self.fold) {
            (digit, _) if digit >= self.zero && digit < self.zero + self.digits => Some(digit - self.zero),
            (_, letter) if letter >= b'a' && letter < b'a' + self.letters() => Some(letter - self.gap() - self.zero),
            _ => None,
        }
    }

    /// Numbers of 8 × `bits` bits as eight characters each, of which the first is in the lowest byte.
    ///
    /// Several at a time, since compilers make code for whole vectors of that.
    #[inline(always)]
    fn write<const N: usize>(self, mut numbers: [u64; N]) -> [u64; N] {
        for (half, width, lane) in halvings(self.bits) {
            numbers = numbers.map(|n| (n >> width) & half | (n & half) << lane);
        }
        numbers.map(|values| self.characters(values))
    }

    /// Undoes [`Self::write`], if every character is in the alphabet.
    #[inline(always)]
    fn read<const N: usize>(self, texts: [u64; N]) -> Option<[u64; N]> {
        let mut wrong = 0;
        let mut numbers = texts.map(|text| {
            // The bit of '@' makes a letter, and whatever comes of it is right if it leads back to the text.
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

    /// The characters for the values in the bytes of a `u64`.
    #[inline(always)]
    const fn characters(self, values: u64) -> u64 {
        let letters = masks(values + each(0x80 - self.digits));
        values + each(self.zero) + (letters & each(self.gap()))
    }
}

/// The steps from a number of 8 × `bits` bits to one value in each byte, the first lowest. Each puts the upper halves of
/// what it finds into lower lanes of their own, and the lower halves into upper ones: (mask of halves, their width, the
/// lanes').
#[inline(always)]
const fn halvings(bits: u32) -> [(u64, u32, u32); 3] {
    const fn halving(bits: u32, bytes: u32) -> (u64, u32, u32) {
        let every_other_lane = u64::MAX / (u64::MAX >> (64 - 16 * bytes));
        let width = bits * bytes;
        (every_other_lane * ((1 << width) - 1), width, 8 * bytes)
    }
    [halving(bits, 4), halving(bits, 2), halving(bits, 1)]
}

/// The byte, eight times.
const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// 0x7f for bytes with their top bit, 0 for others.
#[inline(always)]
const fn masks(bytes: u64) -> u64 {
    let tops = bytes & each(0x80);
    tops - (tops >> 7)
}

/// Converts all items: first `blocks`, which returns how many it did, then `one` at a time. The error comes with the
/// index of its item.
fn convert<const A: usize, const B: usize, E>(
    from: &[u8],
    to: &mut [u8],
    blocks: impl FnOnce(&[[u8; A]], &mut [[u8; B]]) -> usize,
    one: impl Fn(&[u8; A], &mut [u8; B]) -> Result<(), E>,
) -> Result<(), (usize, E)> {
    let (from, from_rest) = from.as_chunks();
    let (to, to_rest) = to.as_chunks_mut();
    assert!(
        from.len() == to.len() && from_rest.is_empty() && to_rest.is_empty(),
        "{} × {A} + {} bytes do not convert to {} × {B} + {} bytes",
        from.len(),
        from_rest.len(),
        to.len(),
        to_rest.len(),
    );
    let done = blocks(from, to);
    for (i, (from, to)) in zip(from, to).enumerate().skip(done) {
        one(from, to).map_err(|error| (i, error))?;
    }
    Ok(())
}
