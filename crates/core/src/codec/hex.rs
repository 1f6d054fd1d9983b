//! The text of a UUID, and so of locality: 128 bits as 32 hexadecimal digits, with hyphens after the first 8, 12, 16
//! and 20 of them.
//!
//! This is the format of [RFC 9562, section 4](https://www.rfc-editor.org/rfc/rfc9562#section-4): written in lower
//! case, read in either. Braces, a `urn:uuid:` in front and missing hyphens are errors.

#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::iter::zip;

use super::{Alphabet, Path, convert};

pub(super) const ALPHABET: Alphabet = Alphabet { bits: 4, zero: b'0', digits: 10, fold: b'a' ^ b'A' };

/// Where the hyphens are.
pub(super) const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// Writes one ID.
#[inline]
pub fn encode(id: [u8; 16]) -> [u8; 36] {
    let mut text = [0; 36];
    write(&id, &mut text);
    text
}

/// Reads one ID; the error is the position of the first character that is not the digit or hyphen it should be.
#[inline]
pub fn decode(text: &[u8; 36]) -> Result<[u8; 16], usize> {
    let quarters = read(text)?;
    let mut id = [0; 16];
    join(quarters, &mut id);
    Ok(id)
}

/// What must be at a place of the text, in words.
#[must_use]
pub fn expected(at: usize) -> &'static str {
    if HYPHENS.contains(&at) { "a hyphen" } else { "a hex digit" }
}

/// Where in the text each of the eight digits' two halves are, which hyphens may part.
const QUARTERS: [[usize; 2]; 4] = [[0, 4], [9, 14], [19, 24], [28, 32]];

#[inline(always)]
fn write(id: &[u8; 16], text: &mut [u8; 36]) {
    let id = u128::from_be_bytes(*id);
    let quarters = [96, 64, 32, 0].map(|shift| u64::from((id >> shift) as u32));
    for (digits, [low, high]) in zip(ALPHABET.write(quarters), QUARTERS) {
        text[low..low + 4].copy_from_slice(&(digits as u32).to_le_bytes());
        text[high..high + 4].copy_from_slice(&((digits >> 32) as u32).to_le_bytes());
    }
    for at in HYPHENS {
        text[at] = b'-';
    }
}

#[inline(always)]
fn read(text: &[u8; 36]) -> Result<[u64; 4], usize> {
    let four = |at| u64::from(u32::from_le_bytes([text[at], text[at + 1], text[at + 2], text[at + 3]]));
    let quarters = QUARTERS.map(|[low, high]| four(low) | four(high) << 32);
    let hyphens = HYPHENS.map(|at| text[at]) == [b'-'; 4];
    ALPHABET.read(quarters).filter(|_| hyphens).ok_or_else(|| first_bad(text))
}

/// Apart from [`read`], as a `Result` of bytes takes a detour through memory.
#[inline(always)]
fn join([a, b, c, d]: [u64; 4], id: &mut [u8; 16]) {
    id[..8].copy_from_slice(&(a << 32 | b).to_be_bytes());
    id[8..].copy_from_slice(&(c << 32 | d).to_be_bytes());
}

/// Where a text that cannot be read is wrong.
#[cold]
fn first_bad(text: &[u8; 36]) -> usize {
    let good = |&(at, &c): &(usize, &u8)| {
        if HYPHENS.contains(&at) { c == b'-' } else { ALPHABET.value(c).is_some() }
    };
    text.iter().enumerate().take_while(good).count()
}

/// Writes the IDs in `ids`, 16 bytes each, to `text`, 36 bytes each.
///
/// # Panics
///
/// Unless the two lengths are those of the same whole number of IDs.
pub fn encode_many(ids: &[u8], text: &mut [u8]) {
    encode_many_by(Path::best(), ids, text);
}

/// Reads the IDs in `text`, 36 bytes each, into `ids`, 16 bytes each; the error is the position in `text` of the first
/// character that is not the digit or hyphen it should be, and what `ids` holds then is unspecified.
///
/// # Panics
///
/// Unless the two lengths are those of the same whole number of IDs.
pub fn decode_many(text: &[u8], ids: &mut [u8]) -> Result<(), usize> {
    decode_many_by(Path::best(), text, ids)
}

/// [`encode_many`] by a given path, for tests and measurements.
pub fn encode_many_by(path: Path, ids: &[u8], text: &mut [u8]) {
    let one = |id: &_, text: &mut _| {
        write(id, text);
        Ok::<(), Infallible>(())
    };
    let Ok(()) = convert(ids, text, |ids, text| path.hex_encode(ids, text), one);
}

/// [`decode_many`] by a given path, for tests and measurements.
pub fn decode_many_by(path: Path, text: &[u8], ids: &mut [u8]) -> Result<(), usize> {
    let one = |text: &_, id: &mut _| read(text).map(|quarters| join(quarters, id));
    convert(text, ids, |text, ids| path.hex_decode(text, ids), one).map_err(|(i, at)| 36 * i + at)
}
