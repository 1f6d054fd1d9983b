//! **cuid2**: text of a letter and part of a hash, which has no binary form.
//!
//! ```text
//!   8 bits   184
//! ┌────────┬──────┐
//! │ letter │ hash │
//! └────────┴──────┘
//! ```
//!
//! - **letter**: a random letter, so that a text never begins with a digit.
//! - **hash**: digits of the SHA3-512 of time, salt, counter and fingerprint, from which nothing can be read back.
//! - **text**: characters of `0-9a-z`, 8 bits each; 24 of them, unless an application chose another length.
//!
//! Format after <https://github.com/paralleldrive/cuid2>.

use super::cuid::{RANDOM_VALUES, base36_digits, uniform_below};
use crate::codec::positional::BASE36;
use crate::format::{Constraint, Format, Part, Rendering, Text};
use sha3::{Digest, Sha3_512};

/// The format, of the usual 24 characters.
pub const FORMAT: Format = Format::new(
    "cuid2",
    &[
        Part::random("letter", 8, "a random letter")
            .rendered_as(Rendering::Letters)
            .constrained_to(Constraint::Within(b'a' as u128, b'z' as u128 + 1)),
        Part::random("hash", 184, "of time, counter, fingerprint and randomness").rendered_as(Rendering::Letters),
    ],
    0.2,
    "https://github.com/paralleldrive/cuid2",
)
.with_texts(&[Text::characters(24, &BASE36)])
.text_only();

/// The shortest, the usual and the longest cuid2.
pub const LENGTHS: [usize; 3] = [2, 24, 32];
/// The end of the range in which a counter starts.
pub const MAX_FIRST_COUNT: u64 = 476_782_367;
/// The number of random words for one cuid2: one for the letter and four for eight digits of salt each.
pub const WORDS: usize = 5;

/// Returns the letter and the salt of random words; `None` if one of them would bias the result.
#[must_use]
pub fn random_parts(random: [u64; WORDS]) -> Option<(u8, [u8; 32])> {
    let mut salt = [0; 32];
    for (digits_8, &word) in salt.chunks_exact_mut(8).zip(&random[1..]) {
        digits_8.copy_from_slice(&base36_digits::<8>(uniform_below(word, RANDOM_VALUES)?));
    }
    Some((b'a' + uniform_below(random[0], 26)? as u8, salt))
}

/// Returns a cuid2 of 2 to 32 characters: the letter, and the digits after the first one of the SHA3-512 (FIPS 202) of
/// time, salt, count and fingerprint, as a number in base 36.
#[must_use]
pub fn write(letter: u8, ms: u64, salt: &[u8], count: u64, fingerprint: &[u8], length: usize) -> [u8; 32] {
    let [time, count] = [ms, count].map(base36_digits::<13>);
    let significant = |text: &[u8; 13]| text.iter().position(|&c| c != b'0').unwrap_or(12);
    let digest = Sha3_512::new()
        .chain_update(&time[significant(&time)..])
        .chain_update(salt)
        .chain_update(&count[significant(&count)..])
        .chain_update(fingerprint)
        .finalize();
    let (digits, first) = base36(&digest);
    let mut text = [0; 32];
    text[..length].copy_from_slice(&digits[first + 1..][..length]);
    text[0] = letter;
    text
}

/// Returns the base-36 digits of 512 bits, and the position of the first that is not zero.
fn base36(number: &[u8]) -> ([u8; 102], usize) {
    let mut limbs = [0_u32; 16];
    for (limb, bytes) in limbs.iter_mut().zip(number.chunks_exact(4)) {
        *limb = bytes.iter().fold(0, |limb, &byte| limb << 8 | u32::from(byte));
    }
    let mut text = [b'0'; 102];
    let mut first_limb = 0;
    for group in text.rchunks_exact_mut(6) {
        let mut rest = 0;
        for limb in &mut limbs[first_limb..] {
            let value = rest << 32 | u64::from(*limb);
            (*limb, rest) = ((value / 36_u64.pow(6)) as u32, value % 36_u64.pow(6));
        }
        group.copy_from_slice(&base36_digits::<6>(rest));
        while first_limb < 15 && limbs[first_limb] == 0 {
            first_limb += 1;
        }
    }
    let first = text.iter().position(|&c| c != b'0').unwrap_or(0).min(68);
    (text, first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_biased_random_word_is_refused() {
        assert_eq!(random_parts([u64::MAX, 0, 0, 0, 0]), None);
        assert_eq!(random_parts([0, 0, 0, u64::MAX, 0]), None);
        assert_eq!(random_parts([25, 35, 0, 0, 36]), Some((b'z', *b"0000000z000000000000000000000010")));
    }

    #[test]
    fn a_hash_of_zeros_has_digits_for_the_longest_text() {
        let (digits, first) = base36(&[0; 64]);
        assert!(digits[first + 1..].len() >= 32);
    }
}
