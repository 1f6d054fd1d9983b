//! Numbers as digits of any alphabet, most significant first and of fixed width. Texts sort as their bytes do if the
//! alphabet is in ASCII order.
//!
//! [`Digits`] describes the text of one format. The same two functions serve all formats; inlined with a constant
//! `Digits`, they become code for that format alone. Bases that are powers of two take shifts, others divisions of
//! 32-bit limbs. The digits of an alphabet of a few ASCII runs are written eight at a time, by comparison with the
//! starts of the runs.
//!
//! Reading is strict. Every error is the position of the first wrong character: the end of the shortest prefix that no
//! text of the format has. The character is outside the alphabet, or makes the number too large, or has bits beyond the
//! number's last.

#![forbid(unsafe_code)]

use super::swar::{each, halvings, masks};
use std::iter::zip;

/// An alphabet: the digits of a base, zero first.
#[derive(Clone, Copy, Debug)]
pub struct Alphabet {
    characters: [u8; 64],
    values: [u8; 256],
    base: u32,
    /// The starts of the runs of characters after the first: the value there, and the number of characters skipped
    /// before it.
    runs: [(u8, u8); MAX_RUNS],
    /// The number of these runs; more than the array holds if only a table will do.
    run_count: usize,
}

/// The value of a character that is no digit. No digit has this bit.
const NONE: u8 = 0x80;
/// The most runs for which comparisons are faster than a table.
const MAX_RUNS: usize = 6;

impl Alphabet {
    /// Returns the alphabet of 2 to 64 distinct ASCII characters.
    ///
    /// # Panics
    /// If they are not; constants use it, so at compile time.
    #[must_use]
    pub const fn new(characters: &str) -> Self {
        let given = characters.as_bytes();
        assert!(given.len() >= 2 && given.len() <= 64, "an alphabet has 2 to 64 characters");
        let (characters, values, base) = ([0; 64], [NONE; 256], given.len() as u32);
        let mut result = Self { characters, values, base, runs: [(0, 0); MAX_RUNS], run_count: 0 };
        let mut i = 0;
        while i < given.len() {
            result.characters[i] = given[i];
            result = result.read(given[i], i as u8);
            if i > 0 && given[i] != given[i - 1] + 1 {
                if given[i] < given[i - 1] || result.run_count >= MAX_RUNS {
                    result.run_count = usize::MAX;
                } else {
                    result.runs[result.run_count] = (i as u8, given[i] - given[i - 1] - 1);
                    result.run_count += 1;
                }
            }
            i += 1;
        }
        result
    }

    /// Makes readers accept letters of either case.
    ///
    /// # Panics
    /// If a letter occurs in both cases.
    #[must_use]
    pub const fn any_case(mut self) -> Self {
        let mut i = 0;
        while i < self.base as usize {
            let character = self.characters[i];
            if character.is_ascii_alphabetic() {
                self = self.read(character ^ 0x20, i as u8);
            }
            i += 1;
        }
        self
    }

    /// Makes readers accept each of `others` for `character`, as Crockford's `i` and `l` for 1.
    ///
    /// # Panics
    /// If `character` is no digit, or one of the others is.
    #[must_use]
    pub const fn alias(mut self, others: &str, character: char) -> Self {
        let value = self.values[character as usize];
        assert!(value != NONE, "an alias is another character for a digit");
        let mut i = 0;
        while i < others.len() {
            self = self.read(others.as_bytes()[i], value);
            i += 1;
        }
        self
    }

    const fn read(mut self, character: u8, value: u8) -> Self {
        assert!(character.is_ascii() && self.values[character as usize] == NONE, "a character has one value");
        self.values[character as usize] = value;
        self
    }

    /// Returns the number of digits.
    #[must_use]
    pub const fn base(&self) -> u32 {
        self.base
    }

    /// Returns the value of a character; `None` if it is no digit.
    #[must_use]
    pub const fn value(&self, character: u8) -> Option<u8> {
        match self.values[character as usize] {
            NONE => None,
            value => Some(value),
        }
    }

    /// Returns the characters, zero first.
    #[must_use]
    pub fn characters(&self) -> &[u8] {
        &self.characters[..self.base as usize]
    }

    /// Returns the characters of the eight values in each word, the first lowest.
    #[inline(always)]
    fn write<const N: usize>(&self, values: [u64; N]) -> [[u8; 8]; N] {
        if self.run_count > MAX_RUNS {
            return values.map(|values| values.to_le_bytes().map(|value| self.characters[value as usize & 63]));
        }
        let mut characters = values.map(|values| values + each(self.characters[0]));
        for &(first, left_out) in &self.runs[..self.run_count] {
            for (characters, values) in zip(&mut characters, values) {
                *characters += masks(values + each(0x80 - first)) & each(left_out);
            }
        }
        characters.map(u64::to_le_bytes)
    }

    /// Returns the bits of a digit; `None` if the base is no power of two.
    const fn bits(&self) -> Option<u32> {
        if self.base.is_power_of_two() { Some(self.base.ilog2()) } else { None }
    }

    /// Returns the number of digits in one step of a division, and the number of their values, at most 2^32.
    const fn step(&self) -> (usize, u64) {
        let (mut digits, mut values) = (1, self.base as u64);
        while values * (self.base as u64) <= 1 << 32 {
            digits += 1;
            values *= self.base as u64;
        }
        (digits, values)
    }
}

/// Decimal digits.
pub const BASE10: Alphabet = Alphabet::new("0123456789");
/// Hexadecimal digits in lower case; readers accept either.
pub const BASE16: Alphabet = Alphabet::new("0123456789abcdef").any_case();
/// The alphabet of sno.
pub const BASE32_SNO: Alphabet = Alphabet::new("23456789abcdefghijklmnopqrstuvwx");
/// The extended hexadecimal alphabet of RFC 4648, lower case.
pub const BASE32_HEX: Alphabet = Alphabet::new("0123456789abcdefghijklmnopqrstuv");
/// Crockford's alphabet, upper case.
pub const BASE32_CROCKFORD: Alphabet = Alphabet::new("0123456789ABCDEFGHJKMNPQRSTVWXYZ");
/// Digits and lower-case letters.
pub const BASE36: Alphabet = Alphabet::new("0123456789abcdefghijklmnopqrstuvwxyz");
/// Bitcoin's alphabet, without 0, O, I and l.
pub const BASE58: Alphabet = Alphabet::new("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz");
/// Digits, upper-case letters, lower-case letters.
pub const BASE62: Alphabet = Alphabet::new("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
/// The URL-safe alphabet of RFC 4648, with its values.
pub const BASE64_URL: Alphabet = Alphabet::new("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");

/// The most characters of a text.
pub const MAX_TEXT: usize = 48;
/// The most bytes of a number.
pub const MAX_BYTES: usize = 32;
/// The limbs of such a number, and one for overflow.
const LIMBS: usize = MAX_BYTES / 4 + 1;

/// The text of a number of fixed width.
#[derive(Clone, Copy, Debug)]
pub struct Digits {
    alphabet: Alphabet,
    /// The positions of the digits.
    places: [u8; MAX_TEXT],
    /// The number of digits.
    count: usize,
    /// The characters that are no digits, at their positions; 0 elsewhere.
    frame: [u8; MAX_TEXT],
    /// The number of all characters.
    length: usize,
    /// The number of zero bits after the number in its last digit.
    pad: u32,
}

impl Digits {
    /// Declares a text of digits alone.
    #[must_use]
    pub const fn new(alphabet: Alphabet, count: usize) -> Self {
        assert!(count <= MAX_TEXT, "a text is too long");
        let mut result = Self { alphabet, places: [0; MAX_TEXT], count, frame: [0; MAX_TEXT], length: count, pad: 0 };
        let mut i = 0;
        while i < count {
            result.places[i] = i as u8;
            i += 1;
        }
        result
    }

    /// Declares digits at each `x` of a template; every other character stands for itself.
    #[must_use]
    pub const fn template(alphabet: Alphabet, template: &str) -> Self {
        let template = template.as_bytes();
        let mut result = Self::new(alphabet, template.len());
        result.count = 0;
        let mut i = 0;
        while i < template.len() {
            if template[i] == b'x' {
                result.places[result.count] = i as u8;
                result.count += 1;
            } else {
                result.frame[i] = template[i];
            }
            i += 1;
        }
        result
    }

    /// Shifts the number up by zero bits: fewer than those of a digit. The base is a power of two.
    #[must_use]
    pub const fn padded(mut self, bits: u32) -> Self {
        assert!(matches!(self.alphabet.bits(), Some(width) if bits < width), "padding is less than a digit");
        self.pad = bits;
        self
    }

    /// Returns the number of characters.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Writes a number of `N` bytes as `T` characters.
    #[inline(always)]
    #[must_use]
    pub fn encode<const N: usize, const T: usize>(&self, number: [u8; N]) -> [u8; T] {
        let mut text = [0; T];
        self.write(&number, &mut text);
        text
    }

    /// Reads a number of `N` bytes.
    ///
    /// # Errors
    /// The position of the first wrong character.
    #[inline(always)]
    pub fn decode<const N: usize, const T: usize>(&self, text: &[u8; T]) -> Result<[u8; N], usize> {
        let mut number = [0; N];
        self.read(text, &mut number)?;
        Ok(number)
    }

    /// [`Self::encode`] of lengths that are known at run time only.
    ///
    /// # Panics
    /// Unless `text` has [`Self::length`] characters.
    #[inline(always)]
    pub fn write(&self, number: &[u8], text: &mut [u8]) {
        assert!(text.len() == self.length, "a text of {} characters, not {}", self.length, text.len());
        if self.count < self.length {
            text.copy_from_slice(&self.frame[..self.length]);
        }
        match self.alphabet.bits() {
            Some(width) if number.len() <= 16 => self.write_shifted(width, number, text),
            _ => self.write_divided(number, text),
        }
    }

    /// [`Self::decode`] of lengths that are known at run time only. After an error, the contents of `number` are
    /// unspecified.
    ///
    /// # Errors
    /// The position of the first wrong character, or of the end if the text has a wrong length.
    #[inline(always)]
    pub fn read(&self, text: &[u8], number: &mut [u8]) -> Result<(), usize> {
        if text.len() != self.length {
            return Err(text.len().min(self.length));
        }
        let is_framed =
            self.count == self.length || (0..self.length).all(|i| self.frame[i] == 0 || self.frame[i] == text[i]);
        let is_valid = is_framed
            & match self.alphabet.bits() {
                Some(width) if number.len() <= 16 => self.read_shifted(width, text, number),
                _ => self.read_divided(text, number),
            };
        if is_valid { Ok(()) } else { Err(self.first_wrong(text, number.len())) }
    }

    /// Iterates over groups of digits that fit a word, so that no group waits for another: (first digit, number of
    /// digits).
    #[inline(always)]
    fn groups(&self, width: u32) -> impl Iterator<Item = (usize, usize)> {
        let most = (64 / width) as usize;
        let count = self.count;
        (0..count.div_ceil(most)).map(move |group| (group * most, most.min(count - group * most)))
    }

    /// Spreads eight digits at a time over the bytes of a word, from the end of the text on. Surplus digits lie before
    /// the text.
    #[inline(always)]
    fn write_shifted(&self, width: u32, number: &[u8], text: &mut [u8]) {
        match self.count {
            ..=16 => self.write_words::<2>(width, number, text),
            17..=24 => self.write_words::<3>(width, number, text),
            25..=32 => self.write_words::<4>(width, number, text),
            _ => self.write_words::<{ MAX_TEXT / 8 }>(width, number, text),
        }
    }

    #[inline(always)]
    fn write_words<const N: usize>(&self, width: u32, number: &[u8], text: &mut [u8]) {
        let mut word = [0; 16];
        word[16 - number.len()..].copy_from_slice(number);
        let word = u128::from_be_bytes(word);
        let mut values: [u64; N] = std::array::from_fn(|i| {
            let digits = match (8 * width) as i32 * (N - 1 - i) as i32 - self.pad as i32 {
                128.. => 0,
                down @ 0.. => word >> down,
                up => word << -up,
            };
            digits as u64 & (u64::MAX >> (64 - 8 * width))
        });
        for (half, width, lane) in halvings(width) {
            values = values.map(|n| (n >> width) & half | (n & half) << lane);
        }
        let characters = self.alphabet.write(values);
        let characters = &characters.as_flattened()[8 * N - self.count..];
        if self.count == self.length {
            text.copy_from_slice(characters);
        } else {
            for (&place, &character) in zip(&self.places, characters) {
                text[place as usize] = character;
            }
        }
    }

    #[inline(always)]
    fn read_shifted(&self, width: u32, text: &[u8], number: &mut [u8]) -> bool {
        let (mut word, mut wrong, mut over) = (0_u128, 0, 0);
        let bits = number.len() as u32 * 8;
        for (first, digits) in self.groups(width) {
            let mut group = 0_u64;
            for digit in 0..digits {
                let value = self.alphabet.values[text[self.places[first + digit] as usize] as usize];
                wrong |= value;
                group |= u64::from(value & !NONE) << (width * (digits - 1 - digit) as u32);
            }
            // The number of bits below the group; of the last group it is negative by the padding.
            match ((self.count - first - digits) as u32 * width) as i32 - self.pad as i32 {
                up @ 0.. => {
                    // Bits above the number must be 0.
                    over |= if up as u32 >= bits { group } else { group.checked_shr(bits - up as u32).unwrap_or(0) };
                    word |= u128::from(group).checked_shl(up as u32).unwrap_or(0);
                }
                down => {
                    over |= group & ((1 << -down) - 1);
                    over |= (group >> -down).checked_shr(bits).unwrap_or(0);
                    word |= u128::from(group >> -down);
                }
            }
        }
        let bytes = word.to_be_bytes();
        number.copy_from_slice(&bytes[16 - number.len()..]);
        wrong & NONE == 0 && over == 0
    }

    #[inline(always)]
    fn write_divided(&self, number: &[u8], text: &mut [u8]) {
        // Of 32 bits each, the least significant first.
        let mut limbs = [0; LIMBS];
        for (i, &byte) in number.iter().rev().enumerate() {
            limbs[i / 4] |= u32::from(byte) << (8 * (i % 4));
        }
        if self.pad > 0 {
            let mut carry = 0;
            for limb in &mut limbs {
                (*limb, carry) = (*limb << self.pad | carry, *limb >> (32 - self.pad));
            }
        }
        let (most, values) = self.alphabet.step();
        let (mut left, mut bits) = (self.count, number.len() * 8 + self.pad as usize);
        while left > 0 {
            let mut rest = 0_u64;
            for limb in limbs[..bits.div_ceil(32)].iter_mut().rev() {
                let value = rest << 32 | u64::from(*limb);
                *limb = (value / values) as u32;
                rest = value % values;
            }
            bits = bits.saturating_sub(values.ilog2() as usize);
            for _ in 0..most.min(left) {
                left -= 1;
                let base = u64::from(self.alphabet.base);
                text[self.places[left] as usize] = self.alphabet.characters[(rest % base) as usize];
                rest /= base;
            }
        }
    }

    #[inline(always)]
    fn read_divided(&self, text: &[u8], number: &mut [u8]) -> bool {
        let (most, values) = self.alphabet.step();
        let mut limbs = [0_u32; LIMBS];
        let limbs = &mut limbs[..(number.len() + 4) / 4];
        let (mut wrong, mut over) = (0, 0);
        let mut at = 0;
        while at < self.count {
            // The first step takes the remainder, so that all others are complete.
            let digits = if at == 0 && self.count % most != 0 { self.count % most } else { most };
            let (mut rest, mut factor) = (0_u64, 1);
            for _ in 0..digits {
                let value = self.alphabet.values[text[self.places[at] as usize] as usize];
                wrong |= value;
                rest = rest * u64::from(self.alphabet.base) + u64::from(value & !NONE);
                factor *= u64::from(self.alphabet.base);
                at += 1;
            }
            let factor = if digits == most { values } else { factor };
            for limb in limbs.iter_mut() {
                let value = u64::from(*limb) * factor + rest;
                *limb = value as u32;
                rest = value >> 32;
            }
            over |= rest;
        }
        if self.pad > 0 {
            over |= u64::from(limbs[0] & ((1 << self.pad) - 1));
            let mut carry = 0;
            for limb in limbs.iter_mut().rev() {
                (*limb, carry) = (*limb >> self.pad | carry, *limb << (32 - self.pad));
            }
        }
        let bytes = number.len();
        for (i, byte) in number.iter_mut().rev().enumerate() {
            *byte = (limbs[i / 4] >> (8 * (i % 4))) as u8;
        }
        // The limbs have room for 1 to 4 bytes above the number, which must be 0.
        let above = limbs[bytes / 4] >> (8 * (bytes % 4));
        wrong & NONE == 0 && over == 0 && above == 0
    }

    /// Returns a regular expression of exactly the texts of numbers up to this one that [`Self::read`] accepts, without
    /// anchors. It uses the common syntax of JSON Schema, Python and Rust.
    #[must_use]
    pub fn pattern(&self, largest: &[u8]) -> String {
        let mut text = [0; MAX_TEXT];
        self.write(largest, &mut text[..self.length]);
        let limits = text.map(|character| self.alphabet.value(character).unwrap_or_default());
        let digit = |at: usize, to: u8| {
            let step = if at == self.places[self.count - 1] as usize { 1 << self.pad } else { 1 };
            let takes = |c: &u8| self.alphabet.value(*c).is_some_and(|value| value <= to && value % step == 0);
            class(&(0..0x80).filter(takes).collect::<Vec<_>>())
        };
        // From the last character on: the expression of texts up to the largest, and that of all texts, which follows a
        // smaller prefix.
        let (mut bounded, mut any) = (Vec::new(), Vec::new());
        for at in (0..self.length).rev() {
            if self.frame[at] != 0 {
                let itself = class(&[self.frame[at]]);
                any.insert(0, itself.clone());
                bounded.insert(0, itself);
                continue;
            }
            let (all, limit) = (digit(at, NONE), limits[at]);
            let is_unbounded = bounded == any;
            any.insert(0, all);
            if is_unbounded {
                bounded.insert(0, digit(at, limit));
                continue;
            }
            let itself: Vec<u8> = (0..0x80).filter(|&c| self.alphabet.value(c) == Some(limit)).collect();
            bounded.insert(0, class(&itself));
            if limit > 0 {
                let below = [vec![digit(at, limit - 1)], any[1..].to_vec()].concat();
                bounded = vec![format!("(?:{}|{})", repeated(&below), repeated(&bounded))];
            }
        }
        repeated(&bounded)
    }

    /// Returns the position of the first wrong character: the length of the longest prefix that a text of the format
    /// has.
    #[cold]
    fn first_wrong(&self, text: &[u8], bytes: usize) -> usize {
        let mut largest = [0; MAX_TEXT];
        let largest = &mut largest[..self.length];
        self.write(&[0xff; MAX_BYTES][..bytes], largest);
        let mut is_largest = true;
        for (at, &character) in text.iter().enumerate() {
            if self.frame[at] != 0 {
                if character != self.frame[at] {
                    return at;
                }
                continue;
            }
            let Some(value) = self.alphabet.value(character) else { return at };
            let limit = self.alphabet.value(largest[at]).unwrap_or_default();
            if is_largest && value > limit {
                return at;
            }
            is_largest &= value == limit;
        }
        self.places[self.count - 1] as usize
    }
}

/// Returns a regular expression of one of these characters, which are in ASCII order.
pub(crate) fn class(characters: &[u8]) -> String {
    let escaped = |c: u8| if c.is_ascii_alphanumeric() || b"-_:".contains(&c) { String::new() } else { "\\".into() };
    let one = |c: u8| escaped(c) + &String::from(char::from(c));
    if let [only] = characters {
        return one(*only);
    }
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for &c in characters {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == c => *last = c,
            _ => runs.push((c, c)),
        }
    }
    let run = |(first, last): (u8, u8)| match last - first {
        0 => one(first),
        1 => one(first) + &one(last),
        _ => format!("{}-{}", one(first), one(last)),
    };
    format!("[{}]", runs.into_iter().map(run).collect::<String>())
}

/// Returns a regular expression of these parts in a row.
pub(crate) fn repeated(parts: &[String]) -> String {
    let mut written = String::new();
    for same in parts.chunk_by(PartialEq::eq) {
        match (same.len(), same[0].as_str()) {
            (1, one) => written += one,
            (count, one) if one.len() * count <= one.len() + 3 => written += &one.repeat(count),
            (count, one) => written += &format!("{one}{{{count}}}"),
        }
    }
    written
}
