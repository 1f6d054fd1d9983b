//! Numbers and IDs as digits of a base. Texts of bytes have a fixed width, so that they sort as the bytes do in every
//! base whose alphabet is in ASCII order: all but base 64.

use crate::codec::positional::{
    Alphabet, BASE16, BASE32_CROCKFORD, BASE32_SNO, BASE36, BASE58, BASE62, BASE64_URL, Digits, MAX_TEXT,
};
use crate::error::Error;

/// A base.
#[derive(Debug)]
pub struct Base {
    /// The name, as users write it.
    pub name: &'static str,
    /// Its digits.
    pub alphabet: Alphabet,
    /// The allowed characters, in words.
    expected: &'static str,
    /// True if the text of bytes begins with their first bits, as in RFC 4648, and not with zeros.
    is_left: bool,
}

const fn base(name: &'static str, alphabet: Alphabet, expected: &'static str) -> Base {
    Base { name, alphabet, expected, is_left: false }
}

/// Every base.
pub static BASES: [Base; 7] = [
    base("hex", BASE16, "a hex digit"),
    base("base32", BASE32_CROCKFORD, "one of 0123456789ABCDEFGHJKMNPQRSTVWXYZ, or beyond the largest number"),
    base("base32sno", BASE32_SNO, "one of 23456789a-x, or beyond the largest number"),
    base("base36", BASE36, "one of 0-9a-z, or beyond the largest number"),
    base("base58", BASE58, "one of 1-9A-HJ-NP-Za-km-z, or beyond the largest number"),
    base("base62", BASE62, "one of 0-9A-Za-z, or beyond the largest number"),
    Base {
        name: "base64url",
        alphabet: BASE64_URL,
        expected: "one of A-Za-z0-9_-, or has bits beyond the last",
        is_left: true,
    },
];

/// The most bytes that have a text in every base.
pub const MAX_BYTES: usize = MAX_TEXT / 2;

impl Base {
    /// Returns the base of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        BASES.iter().find(|base| base.name == name)
    }

    /// Returns the number of characters for a number of bytes.
    #[must_use]
    pub fn width(&self, bytes: usize) -> usize {
        // No power of these bases is close enough to a power of 256 for rounding to matter.
        (8.0 * bytes as f64 / f64::from(self.alphabet.base()).log2()).ceil() as usize
    }

    fn digits(&self, bytes: usize) -> Digits {
        let (width, digits) = (self.width(bytes), Digits::new(self.alphabet, self.width(bytes)));
        if self.is_left { digits.padded((6 * width - 8 * bytes) as u32) } else { digits }
    }

    /// Returns the text of up to [`MAX_BYTES`] bytes.
    #[must_use]
    pub fn write(&self, bytes: &[u8]) -> String {
        let digits = self.digits(bytes.len());
        let mut text = vec![0; digits.length()];
        digits.write(bytes, &mut text);
        text.into_iter().map(char::from).collect()
    }

    /// Reads the bytes of a text. `what` names it in errors.
    ///
    /// # Errors
    /// [`Error::Length`]; [`Error::Character`] with the position of the first wrong character.
    pub fn read(&self, what: &'static str, text: &str, bytes: &mut [u8]) -> Result<(), Error> {
        let digits = self.digits(bytes.len());
        let (actual, expected) = (text.chars().count(), digits.length());
        if actual != expected {
            return Err(Error::Length { what, actual, expected, unit: "characters" });
        }
        let read = if text.len() == actual { digits.read(text.as_bytes(), bytes) } else { Err(0) };
        read.map_err(|position| {
            let position = text.chars().position(|c| !c.is_ascii()).unwrap_or(position);
            Error::character(what, text, position, self.expected)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_width_is_the_least_that_holds_all_bytes() {
        for base in &BASES {
            for bytes in 1..=MAX_BYTES {
                let width = base.width(bytes);
                assert!(width <= MAX_TEXT);
                // The largest number does not begin with a zero, so one digit fewer would be too few.
                let (largest, zero) = (base.write(&vec![0xff; bytes]), base.write(&vec![0; bytes]));
                assert!(largest.len() == width && largest.as_bytes()[0] != zero.as_bytes()[0]);
            }
        }
    }

    proptest! {
        #[test]
        fn bytes_are_read_back_from_their_text(
            bytes in prop::collection::vec(any::<u8>(), 1..=MAX_BYTES),
            base in 0..BASES.len(),
        ) {
            let mut read = vec![0; bytes.len()];
            let text = BASES[base].write(&bytes);
            prop_assert_eq!(BASES[base].read("text", &text, &mut read), Ok(()));
            prop_assert_eq!(read, bytes);
        }

        #[test]
        fn texts_sort_as_their_bytes_in_every_base_but_64(a: [u8; 10], b: [u8; 10]) {
            for base in BASES.iter().filter(|base| base.name != "base64url") {
                prop_assert_eq!(base.write(&a).cmp(&base.write(&b)), a.cmp(&b));
            }
        }
    }
}
