//! **nanoid**: text of random characters, which has no binary form.
//!
//! ```text
//!   168 bits
//! ┌──────────┐
//! │ random   │
//! └──────────┘
//! ```
//!
//! - **text**: 21 characters of `A-Za-z0-9_-`, 8 bits each. Users choose other alphabets and sizes; no ID says which.
//! - **random**: the remainder of a byte chooses a character. The highest bytes are skipped, as they would make some
//!   remainders likelier. So every character is equally likely, whatever the alphabet.
//!
//! Format after <https://github.com/ai/nanoid>.

use crate::codec::positional::BASE64_URL;
use crate::error::Error;
use crate::format::{Format, Part, Rendering, Text};

/// The format, with the usual alphabet and size.
pub const FORMAT: Format = Format::new(
    "nanoid",
    &[Part::random("random", 168, "random, in any order of the alphabet").rendered_as(Rendering::Letters)],
    0.1,
    "https://github.com/ai/nanoid",
)
.with_texts(&[Text::characters(21, &BASE64_URL)])
.text_only();

/// The usual size.
pub const SIZE: usize = 21;
/// The most characters of an ID.
pub const MAX_SIZE: usize = 1024;

/// The alphabet of IDs.
#[derive(Clone, Debug)]
pub struct Characters {
    all: Vec<char>,
    /// The number of byte values that choose a character.
    choosing: usize,
    /// The choice of each byte, if all characters are ASCII.
    ascii: Option<[u8; 256]>,
}

impl Characters {
    /// Returns an alphabet of 2 to 256 distinct characters.
    ///
    /// # Errors
    /// [`Error::Format`]: there are fewer or more, or one occurs twice.
    pub fn new(alphabet: &str) -> Result<Self, Error> {
        let wrong =
            |expected| Error::Format { field: "alphabet", value: alphabet.chars().take(40).collect(), expected };
        let all: Vec<char> = alphabet.chars().take(257).collect();
        if !(2..=256).contains(&all.len()) {
            return Err(wrong("2 to 256 characters"));
        }
        let mut sorted = all.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(wrong("made of distinct characters"));
        }
        let mut ascii = [0; 256];
        for (place, &character) in ascii.iter_mut().zip(all.iter().cycle()) {
            *place = character as u8;
        }
        let ascii = all.iter().all(char::is_ascii).then_some(ascii);
        Ok(Self { choosing: 256 - 256 % all.len(), all, ascii })
    }

    /// Returns whether all characters are ASCII.
    #[must_use]
    pub const fn is_ascii(&self) -> bool {
        self.ascii.is_some()
    }

    /// Iterates over the characters.
    pub fn iter(&self) -> impl Iterator<Item = char> {
        self.all.iter().copied()
    }

    /// Replaces random bytes by the ASCII characters that they choose, without a gap for bytes that choose none;
    /// returns the number of characters. It is 0 if the alphabet is not ASCII.
    #[inline(always)]
    #[must_use]
    pub fn choose_ascii(&self, random: &mut [u8]) -> usize {
        let Some(ascii) = &self.ascii else { return 0 };
        let mut chosen = 0;
        for at in 0..random.len() {
            let byte = usize::from(random[at]);
            random[chosen] = ascii[byte];
            chosen += usize::from(byte < self.choosing);
        }
        chosen
    }

    /// Iterates over the characters that random bytes choose.
    pub fn choose(&self, random: &[u8]) -> impl Iterator<Item = char> {
        let choosing = random.iter().map(|&byte| usize::from(byte)).filter(|&byte| byte < self.choosing);
        choosing.map(|byte| self.all[byte % self.all.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_equally_likely() {
        let all: String = ('\u{100}'..).take(256).collect();
        for count in 2..=256 {
            let alphabet: String = all.chars().take(count).collect();
            let characters = Characters::new(&alphabet).unwrap();
            let mut times = std::collections::HashMap::new();
            for character in characters.choose(&(0..=255).collect::<Vec<u8>>()) {
                *times.entry(character).or_insert(0) += 1;
            }
            assert_eq!(times.len(), count);
            assert_eq!(times.values().min(), times.values().max());
        }
    }

    #[test]
    fn an_alphabet_has_2_to_256_distinct_characters() {
        let many: String = ('\u{100}'..).take(257).collect();
        for wrong in ["", "a", "aa", "abca", &many] {
            assert_eq!(Characters::new(wrong).unwrap_err().code(), "field.format");
        }
    }
}
