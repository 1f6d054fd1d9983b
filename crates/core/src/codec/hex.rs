//! The text of a UUID, and so of locality: 128 bits as 32 hexadecimal digits, with hyphens after the first 8, 12, 16
//! and 20 of them.
//!
//! [RFC 9562, section 4](https://www.rfc-editor.org/rfc/rfc9562#section-4) defines this format. Digits are written in
//! lower case and read in either. Braces, a `urn:uuid:` prefix and missing hyphens are errors.

#![forbid(unsafe_code)]

use std::iter::zip;

use super::fixed::codec;
use super::swar::{HEX, HYPHENS};

/// The codec of a UUID's text.
#[derive(Clone, Copy, Debug)]
pub struct Hex;

/// Positions of the two halves of each eight digits; hyphens may part them.
const QUARTERS: [[usize; 2]; 4] = [[0, 4], [9, 14], [19, 24], [28, 32]];

codec!(Hex, 16, 36, hex_encode, hex_decode);

impl Hex {
    /// Writes one ID.
    #[inline(always)]
    fn write(id: &[u8; 16], text: &mut [u8; 36]) {
        let id = u128::from_be_bytes(*id);
        let quarters = [96, 64, 32, 0].map(|shift| u64::from((id >> shift) as u32));
        for (digits, [low, high]) in zip(HEX.write(quarters), QUARTERS) {
            text[low..low + 4].copy_from_slice(&(digits as u32).to_le_bytes());
            text[high..high + 4].copy_from_slice(&((digits >> 32) as u32).to_le_bytes());
        }
        for at in HYPHENS {
            text[at] = b'-';
        }
    }

    /// Reads the numbers of one text; an error is the position of the first wrong character.
    #[inline(always)]
    fn read(text: &[u8; 36]) -> Result<[u64; 4], usize> {
        let four = |at| u64::from(u32::from_le_bytes([text[at], text[at + 1], text[at + 2], text[at + 3]]));
        let quarters = QUARTERS.map(|[low, high]| four(low) | four(high) << 32);
        let has_hyphens = HYPHENS.map(|at| text[at]) == [b'-'; 4];
        HEX.read(quarters).filter(|_| has_hyphens).ok_or_else(|| first_wrong(text))
    }

    /// Puts the numbers of a text into an ID.
    #[inline(always)]
    fn join([a, b, c, d]: [u64; 4], id: &mut [u8; 16]) {
        id[..8].copy_from_slice(&(a << 32 | b).to_be_bytes());
        id[8..].copy_from_slice(&(c << 32 | d).to_be_bytes());
    }

    /// Describes the characters that a position of the text allows.
    #[must_use]
    pub fn expected(at: usize) -> &'static str {
        if HYPHENS.contains(&at) { "a hyphen" } else { "a hex digit" }
    }
}

/// Returns the position of the first character that is not the digit or the hyphen that belongs there.
#[cold]
fn first_wrong(text: &[u8; 36]) -> usize {
    let is_right = |&(at, &c): &(usize, &u8)| if HYPHENS.contains(&at) { c == b'-' } else { HEX.value(c).is_some() };
    text.iter().enumerate().take_while(is_right).count()
}
