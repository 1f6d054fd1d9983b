//! The trait of all IDs of fixed size: bytes that sort, and a text.

use crate::error::Error;
use crate::format::Format;
use std::fmt::{Debug, Display};
use std::hash::Hash;

/// An ID. Its order is that of its bytes, its text and its integer.
pub trait Id: Copy + Ord + Hash + Debug + Display + Send + Sync + 'static {
    /// The format; if there are several layouts, the one that generators mint.
    const FORMAT: Format<'static>;
    /// The name of an ID in messages: `sno ID`.
    const WHAT: &'static str;
    /// The name of a text in messages: `sno text`.
    const TEXT_WHAT: &'static str;
    /// The bytes of an ID.
    const SIZE: usize;
    /// The characters of a text.
    const TEXT: usize;
    /// An array of the bytes.
    type Bytes: AsRef<[u8]>;
    /// An array of the text's ASCII characters.
    type Text: AsRef<[u8]>;

    /// Returns the format of this ID.
    fn format(&self) -> Format<'static> {
        Self::FORMAT
    }

    /// Returns the ID of [`Id::SIZE`] bytes. All bytes are an ID.
    fn from_slice(bytes: &[u8]) -> Self;

    /// Returns the bytes, big-endian.
    fn to_array(self) -> Self::Bytes;

    /// Returns the canonical text.
    fn to_text(self) -> Self::Text;

    /// Reads [`Id::TEXT`] characters.
    ///
    /// # Errors
    /// The position of the first wrong character.
    fn decode(text: &[u8]) -> Result<Self, usize>;

    /// Describes the characters that a position of the text allows.
    fn expected(at: usize) -> &'static str;

    /// Returns the error for the character at a position of a malformed text, or of many texts without separators.
    fn bad_character(found: char, position: usize) -> Error {
        Error::Character { what: Self::TEXT_WHAT, found, position, expected: Self::expected(position % Self::TEXT) }
    }

    /// Parses a text strictly.
    ///
    /// # Errors
    /// [`Error::Length`]; [`Error::Character`] with the position of the first wrong character.
    fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |position| Self::bad_character(text.chars().nth(position).unwrap_or('\0'), position);
        if text.len() == Self::TEXT {
            return Self::decode(text.as_bytes()).map_err(wrong);
        }
        let actual = text.chars().count();
        Err(if actual == Self::TEXT {
            // The characters are as many as expected and take more bytes, so one of them is not ASCII.
            wrong(text.chars().position(|c| !c.is_ascii()).unwrap_or(0))
        } else {
            Error::Length { what: Self::TEXT_WHAT, actual, expected: Self::TEXT, unit: "characters" }
        })
    }

    /// Writes the texts of packed IDs. `text` has exactly their size.
    fn encode_many(ids: &[u8], text: &mut [u8]) {
        for (id, text) in ids.chunks_exact(Self::SIZE).zip(text.chunks_exact_mut(Self::TEXT)) {
            text.copy_from_slice(Self::from_slice(id).to_text().as_ref());
        }
    }

    /// Reads packed texts. `ids` has exactly their size.
    ///
    /// # Errors
    /// The position of the first wrong character.
    fn decode_many(text: &[u8], ids: &mut [u8]) -> Result<(), usize> {
        for ((at, text), id) in (0..).zip(text.chunks_exact(Self::TEXT)).zip(ids.chunks_exact_mut(Self::SIZE)) {
            let read = Self::decode(text).map_err(|position| at * Self::TEXT + position)?;
            id.copy_from_slice(read.to_array().as_ref());
        }
        Ok(())
    }
}

/// Declares the `Id` of a format, or implements [`Id`] and `Display` for one.
///
/// `bytes_id!(what, size, text, digits, expected)` declares an ID that is its bytes, written in the digits of its
/// format's first text. `bytes_id!(impl Id(format, what, text_what, size, text) by Codec, from bytes => …, to id => …;
/// …)` takes an `Id` of any representation, whose text a codec writes, and further methods of
/// the trait.
macro_rules! bytes_id {
    ($what:literal, $size:literal, $text:literal, $digits:expr, $expected:literal) => {
        #[doc = concat!("The bytes of a ", $what, " ID.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct Id(pub [u8; $size]);

        $crate::id::bytes_id! {
            @implement(FORMAT, concat!($what, " ID"), concat!($what, " text"), $size, $text),
            from bytes => Self(bytes), to id => id.0;

            #[inline(always)]
            fn to_text(self) -> Self::Text {
                $digits.encode(self.0)
            }

            #[inline(always)]
            fn decode(text: &[u8]) -> Result<Self, usize> {
                let text: &[u8; $text] = text.try_into().map_err(|_| text.len())?;
                $digits.decode(text).map(Self)
            }

            fn expected(_: usize) -> &'static str {
                $expected
            }
        }

        const _: () = assert!(FORMAT.size() == $size && FORMAT.length() == $text);
    };
    (
        impl Id($format:expr, $what:expr, $text_what:expr, $size:expr, $text:expr)
        by $codec:ty, from $bytes:ident => $from:expr, to $id:ident => $to:expr; $($method:tt)*
    ) => {
        $crate::id::bytes_id! {
            @implement($format, $what, $text_what, $size, $text),
            from $bytes => $from, to $id => $to;

            #[inline(always)]
            fn to_text(self) -> Self::Text {
                <$codec>::encode($crate::id::Id::to_array(self))
            }

            #[inline(always)]
            fn decode(text: &[u8]) -> Result<Self, usize> {
                let text: &[u8; $text] = text.try_into().map_err(|_| text.len())?;
                <$codec>::decode(text).map(|$bytes| $from)
            }

            fn expected(at: usize) -> &'static str {
                <$codec>::expected(at)
            }

            fn encode_many(ids: &[u8], text: &mut [u8]) {
                <$codec>::encode_many(ids, text);
            }

            fn decode_many(text: &[u8], ids: &mut [u8]) -> Result<(), usize> {
                <$codec>::decode_many(text, ids)
            }

            $($method)*
        }
    };
    (
        @implement($format:expr, $what:expr, $text_what:expr, $size:expr, $text:expr),
        from $bytes:ident => $from:expr, to $id:ident => $to:expr; $($method:tt)*
    ) => {
        impl std::fmt::Display for Id {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let text = $crate::id::Id::to_text(*self);
                text.iter().try_for_each(|&c| std::fmt::Write::write_char(f, char::from(c)))
            }
        }

        impl $crate::id::Id for Id {
            const FORMAT: $crate::format::Format<'static> = $format;
            const WHAT: &'static str = $what;
            const TEXT_WHAT: &'static str = $text_what;
            const SIZE: usize = $size;
            const TEXT: usize = $text;
            type Bytes = [u8; $size];
            type Text = [u8; $text];

            #[inline(always)]
            fn from_slice(bytes: &[u8]) -> Self {
                let mut $bytes = [0; $size];
                $bytes.copy_from_slice(bytes);
                $from
            }

            #[inline(always)]
            fn to_array(self) -> Self::Bytes {
                let $id = self;
                $to
            }

            $($method)*
        }
    };
}
pub(crate) use bytes_id;
