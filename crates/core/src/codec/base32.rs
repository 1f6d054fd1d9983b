//! sno's text: 80 bits as 16 characters of 5 bits, most significant first.
//!
//! This is the documented format of [muyo/sno](https://github.com/muyo/sno), with the alphabet
//! `23456789abcdefghijklmnopqrstuvwx`. The original decodes anything of the right length; here a character outside the
//! alphabet, and so upper case too, is an error.

#![forbid(unsafe_code)]

use std::convert::Infallible;

use super::{Alphabet, Path, convert};

pub(super) const ALPHABET: Alphabet = Alphabet { bits: 5, zero: b'2', digits: 8, fold: 0 };

/// Half of an ID, which is eight characters.
const HALF: u64 = (1 << 40) - 1;

/// Writes one ID.
#[inline]
pub fn encode(id: [u8; 10]) -> [u8; 16] {
    let mut text = [0; 16];
    write(&id, &mut text);
    text
}

/// Reads one ID; the error is the position of the first character outside the alphabet.
#[inline]
pub fn decode(text: &[u8; 16]) -> Result<[u8; 10], usize> {
    let halves = read(text)?;
    let mut id = [0; 10];
    join(halves, &mut id);
    Ok(id)
}

#[inline(always)]
fn write(id: &[u8; 10], text: &mut [u8; 16]) {
    let [first @ .., y, z] = *id;
    let (first, last) = (u64::from_be_bytes(first), u16::from_be_bytes([y, z]));
    let halves = [first >> 24, (first << 16 | u64::from(last)) & HALF];
    let [first, last] = ALPHABET.write(halves).map(u64::to_le_bytes);
    text[..8].copy_from_slice(&first);
    text[8..].copy_from_slice(&last);
}

#[inline(always)]
fn read(text: &[u8; 16]) -> Result<[u64; 2], usize> {
    let both = u128::from_le_bytes(*text);
    ALPHABET.read([both as u64, (both >> 64) as u64]).ok_or_else(|| first_bad(text))
}

/// Apart from [`read`], as a `Result` of bytes takes a detour through memory.
#[inline(always)]
fn join([first, last]: [u64; 2], id: &mut [u8; 10]) {
    id[..8].copy_from_slice(&(first << 24 | last >> 16).to_be_bytes());
    id[8..].copy_from_slice(&(last as u16).to_be_bytes());
}

/// Where a text that cannot be read is wrong.
#[cold]
fn first_bad(text: &[u8; 16]) -> usize {
    text.iter().take_while(|&&c| ALPHABET.value(c).is_some()).count()
}

/// Writes the IDs in `ids`, 10 bytes each, to `text`, 16 bytes each.
///
/// # Panics
///
/// Unless the two lengths are those of the same whole number of IDs.
pub fn encode_many(ids: &[u8], text: &mut [u8]) {
    encode_many_by(Path::best(), ids, text);
}

/// Reads the IDs in `text`, 16 bytes each, into `ids`, 10 bytes each; the error is the position in `text` of the first
/// character outside the alphabet, and what `ids` holds then is unspecified.
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
    let Ok(()) = convert(ids, text, |ids, text| path.base32_encode(ids, text), one);
}

/// [`decode_many`] by a given path, for tests and measurements.
pub fn decode_many_by(path: Path, text: &[u8], ids: &mut [u8]) -> Result<(), usize> {
    let one = |text: &_, id: &mut _| read(text).map(|halves| join(halves, id));
    convert(text, ids, |text, ids| path.base32_decode(text, ids), one).map_err(|(i, at)| 16 * i + at)
}
