//! The texts of a format.

use crate::codec::positional::{Alphabet, Digits, MAX_TEXT};

/// The way in which a text spells an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// The canonical text.
    Canonical,
    /// Another text that the format's parser reads.
    Variant,
    /// The text of another format, whose bytes are the characters of this format's text: for databases that have a UUID
    /// type and no other bytes of fixed length.
    Held,
    /// The text of another format that has as many bits.
    Borrowed,
}

impl Spelling {
    /// Returns the spelling's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Canonical => "text",
            Self::Variant => "variant",
            Self::Held => "held",
            Self::Borrowed => "borrowed",
        }
    }
}

/// One way to write an ID, in a fixed number of characters.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    pub(super) encoding: Encoding,
    pub(super) spelling: Spelling,
}

/// The encoding of an ID's bytes as characters.
#[derive(Clone, Copy, Debug)]
pub(super) enum Encoding {
    /// The number, in digits.
    Digits(&'static Digits),
    /// The characters of the second text as a number, in the digits of the first.
    Nested(&'static Digits, &'static Digits),
    /// The bytes, each a character of the alphabet.
    Characters(usize, &'static Alphabet),
}

impl Text {
    /// Declares the digits of the ID's number.
    #[must_use]
    pub const fn digits(digits: &'static Digits) -> Self {
        Self { encoding: Encoding::Digits(digits), spelling: Spelling::Canonical }
    }

    /// Declares the digits of another format that may hold the ID's bits.
    #[must_use]
    pub const fn borrowed(digits: &'static Digits) -> Self {
        Self { encoding: Encoding::Digits(digits), spelling: Spelling::Borrowed }
    }

    /// Declares digits of another format, `outer`, whose bytes are the characters of the ID's own, `inner`.
    #[must_use]
    pub const fn held(outer: &'static Digits, inner: &'static Digits) -> Self {
        Self { encoding: Encoding::Nested(outer, inner), spelling: Spelling::Held }
    }

    /// Declares `length` characters of an alphabet, for IDs that are text only.
    #[must_use]
    pub const fn characters(length: usize, alphabet: &'static Alphabet) -> Self {
        Self { encoding: Encoding::Characters(length, alphabet), spelling: Spelling::Canonical }
    }

    /// Returns the number of characters.
    #[must_use]
    pub const fn length(&self) -> usize {
        match self.encoding {
            Encoding::Digits(digits) | Encoding::Nested(digits, _) => digits.length(),
            Encoding::Characters(length, _) => length,
        }
    }

    /// Reads a text of this length into a number of the format's width; returns whether it is written so.
    pub(super) fn read(&self, text: &[u8], id: &mut [u8]) -> bool {
        match self.encoding {
            Encoding::Digits(digits) => digits.read(text, id).is_ok(),
            Encoding::Nested(outer, inner) => {
                let mut held = [0; MAX_TEXT];
                let held = &mut held[..inner.length()];
                outer.read(text, held).is_ok() && inner.read(held, id).is_ok()
            }
            Encoding::Characters(_, alphabet) => {
                id.copy_from_slice(text);
                text.iter().all(|&character| alphabet.value(character).is_some())
            }
        }
    }

    /// Writes an ID of the format's width.
    pub(super) fn write(&self, id: &[u8]) -> String {
        let mut text = [0; MAX_TEXT];
        let text = &mut text[..self.length()];
        match self.encoding {
            Encoding::Digits(digits) => digits.write(id, text),
            Encoding::Nested(outer, inner) => {
                let mut held = [0; MAX_TEXT];
                let held = &mut held[..inner.length()];
                inner.write(id, held);
                outer.write(held, text);
            }
            Encoding::Characters(..) => text.copy_from_slice(id),
        }
        String::from_utf8_lossy(text).into_owned()
    }
}
