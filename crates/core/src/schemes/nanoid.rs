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
    use serde_json::Value;

    fn vectors() -> Value {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/vectors/nanoid.json");
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    fn text<'a>(value: &'a Value, name: &str) -> &'a str {
        value[name].as_str().unwrap()
    }

    /// Returns the characters that bytes choose; both methods agree if the alphabet is ASCII.
    fn chosen(characters: &Characters, random: &[u8]) -> String {
        let id: String = characters.choose(random).collect();
        if characters.is_ascii() {
            let mut place = random.to_vec();
            let count = characters.choose_ascii(&mut place);
            assert_eq!(&place[..count], id.as_bytes());
        }
        id
    }

    #[test]
    fn recorded_random_bytes_choose_the_recorded_id() {
        let vectors = vectors();
        let read = |hex: &Value| -> Vec<u8> {
            let hex = hex.as_str().unwrap().as_bytes();
            hex.chunks(2).map(|digits| u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap()).collect()
        };
        let mut seen = 0;
        for (cases, is_js) in [(&vectors["js"]["custom_random"], true), (&vectors["python"]["vectors"], false)] {
            for case in cases.as_array().unwrap() {
                let Ok(characters) = Characters::new(text(case, "alphabet")) else {
                    assert_eq!(text(case, "alphabet").chars().count(), 1, "an alphabet of one is the only one refused");
                    continue;
                };
                let mut random = Vec::new();
                for request in case["random_bytes_hex"].as_array().unwrap() {
                    let mut bytes = read(request);
                    if is_js {
                        // customRandom reads each buffer from its end.
                        bytes.reverse();
                    } else {
                        // The Python package masks each byte, and skips values beyond the alphabet.
                        let count = text(case, "alphabet").chars().count();
                        let mask = (count.next_power_of_two() - 1) as u8;
                        bytes =
                            bytes.iter().map(|byte| byte & mask).filter(|&byte| usize::from(byte) < count).collect();
                    }
                    random.extend(bytes);
                }
                let id: String =
                    chosen(&characters, &random).chars().take(case["size"].as_u64().unwrap() as usize).collect();
                assert_eq!(id, text(case, "id"));
                seen += 1;
            }
        }
        assert_eq!(seen, 30);
    }

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
    fn the_originals_share_a_set_of_characters() {
        let vectors = vectors();
        let sorted = |text: &str| {
            let mut characters: Vec<char> = text.chars().collect();
            characters.sort_unstable();
            characters
        };
        let [js, python] = [text(&vectors["js"], "url_alphabet"), text(&vectors["python"], "alphabet")];
        assert_ne!(js, python);
        assert_eq!(sorted(js), sorted(python));
        assert_eq!(sorted(js), sorted(std::str::from_utf8(BASE64_URL.characters()).unwrap()));
    }

    #[test]
    fn an_alphabet_has_2_to_256_distinct_characters() {
        let many: String = ('\u{100}'..).take(257).collect();
        for wrong in ["", "a", "aa", "abca", &many] {
            assert_eq!(Characters::new(wrong).unwrap_err().code(), "field.format");
        }
    }
}
