//! The bits of a UUID.

use super::parts::DIGITS;
use super::v4;
use crate::error::Error;
use crate::layout::Field;

const VERSION: Field = v4::FORMAT.field("version");
const VARIANT: Field = v4::FORMAT.field("variant");

/// A UUID, as its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub [u8; 16]);

impl Id {
    /// All bits 0.
    pub const NIL: Self = Self([0; 16]);
    /// All bits 1.
    pub const MAX: Self = Self([0xff; 16]);

    /// Returns an ID of these bits, with version and variant in their places.
    #[inline(always)]
    #[must_use]
    pub const fn stamped(bits: u128, version: u64) -> Self {
        let places = VERSION.put(VERSION.max()) | VARIANT.put(VARIANT.max());
        Self((bits & !places | VERSION.put(version) | VARIANT.put(2)).to_be_bytes())
    }

    /// Returns the bits as a number.
    #[inline(always)]
    #[must_use]
    pub const fn bits(self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// Returns the version, 0 to 15; `None` if the variant is not that of RFC 9562.
    #[must_use]
    pub fn version(self) -> Option<u64> {
        (VARIANT.get(self.bits()) == 2).then(|| VERSION.get(self.bits()))
    }

    /// Returns the name of the variant.
    #[must_use]
    pub fn variant(self) -> &'static str {
        match self.0[8] >> 5 {
            0..=3 => "ncs",
            4 | 5 => "rfc9562",
            6 => "microsoft",
            _ => "future",
        }
    }

    /// Reads any of the texts of a UUID: with or without hyphens, in braces, or after `urn:uuid:`.
    ///
    /// # Errors
    /// [`Error::Length`] or [`Error::Character`].
    pub fn parse_any(text: &str) -> Result<Self, Error> {
        const WHAT: &str = "UUID text";
        let lower = text.to_ascii_lowercase();
        let Some(digits) = DIGITS.iter().find(|digits| digits.length() == lower.len()) else {
            let expected = DIGITS[0].length();
            return Err(Error::Length { what: WHAT, actual: text.chars().count(), expected, unit: "characters" });
        };
        let mut id = [0; 16];
        match digits.read(lower.as_bytes(), &mut id) {
            Ok(()) => Ok(Self(id)),
            Err(at) => {
                let position = text.char_indices().position(|(from, c)| from + c.len_utf8() > at).unwrap_or(0);
                Err(Error::character(WHAT, text, position, "the character that belongs there in the text of a UUID"))
            }
        }
    }
}
