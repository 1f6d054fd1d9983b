//! The text of sno: 80 bits as 16 characters of 5 bits, most significant first.
//!
//! [muyo/sno](https://github.com/muyo/sno) documents this format, with the alphabet `23456789abcdefghijklmnopqrstuvwx`.
//! The original decodes any text of the right length; here a character outside the alphabet is an error, and so is
//! upper case.

#![forbid(unsafe_code)]

use super::fixed::codec;
use super::swar::BASE32;

/// The codec of sno's text.
#[derive(Clone, Copy, Debug)]
pub struct Base32;

/// The bits of half an ID, which is eight characters.
const HALF: u64 = (1 << 40) - 1;

codec!(Base32, 10, 16, base32_encode, base32_decode);

impl Base32 {
    /// Writes one ID.
    #[inline(always)]
    fn write(id: &[u8; 10], text: &mut [u8; 16]) {
        let [first @ .., y, z] = *id;
        let (first, last) = (u64::from_be_bytes(first), u16::from_be_bytes([y, z]));
        let halves = [first >> 24, (first << 16 | u64::from(last)) & HALF];
        let [first, last] = BASE32.write(halves).map(u64::to_le_bytes);
        text[..8].copy_from_slice(&first);
        text[8..].copy_from_slice(&last);
    }

    /// Reads the numbers of one text; an error is the position of the first wrong character.
    #[inline(always)]
    fn read(text: &[u8; 16]) -> Result<[u64; 2], usize> {
        let both = u128::from_le_bytes(*text);
        BASE32.read([both as u64, (both >> 64) as u64]).ok_or_else(|| first_wrong(text))
    }

    /// Puts the numbers of a text into an ID.
    #[inline(always)]
    fn join([first, last]: [u64; 2], id: &mut [u8; 10]) {
        id[..8].copy_from_slice(&(first << 24 | last >> 16).to_be_bytes());
        id[8..].copy_from_slice(&(last as u16).to_be_bytes());
    }

    /// Describes the characters that a position of the text allows.
    #[must_use]
    pub fn expected(_: usize) -> &'static str {
        "one of 23456789abcdefghijklmnopqrstuvwx"
    }
}

/// Returns the position of the first character outside the alphabet.
#[cold]
fn first_wrong(text: &[u8; 16]) -> usize {
    text.iter().take_while(|&&c| BASE32.value(c).is_some()).count()
}
