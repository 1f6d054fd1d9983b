//! What every ID of fixed size is: bytes that sort, and a text.

use crate::error::Error;
use crate::format::Format;
use std::fmt::{Debug, Display};
use std::hash::Hash;

/// An ID. Ordered as its bytes, its text and its integer are.
pub trait Id: Copy + Ord + Hash + Debug + Display + Send + Sync + 'static {
    /// What its bits mean; of several layouts, the one that its generators use.
    const FORMAT: Format<'static>;
    /// The name in messages: `sno ID`.
    const WHAT: &'static str;
    /// The name of the text in messages: `sno text`.
    const TEXT_WHAT: &'static str;
    /// Bytes of an ID.
    const SIZE: usize;
    /// Characters of an ID's text.
    const TEXT: usize;
    /// The bytes, an array.
    type Bytes: AsRef<[u8]>;
    /// The text, an array of ASCII.
    type Text: AsRef<[u8]>;

    /// What the bits of this very ID mean.
    fn format(&self) -> Format<'static> {
        Self::FORMAT
    }

    /// Reads [`Id::SIZE`] bytes; any are an ID.
    fn from_slice(bytes: &[u8]) -> Self;

    /// The bytes, big-endian.
    fn to_array(self) -> Self::Bytes;

    /// The canonical text.
    fn to_text(self) -> Self::Text;

    /// Reads [`Id::TEXT`] characters, or says which is the first that cannot be.
    ///
    /// # Errors
    /// Its position.
    fn decode(text: &[u8]) -> Result<Self, usize>;

    /// What must be at a place of the text, in words.
    fn expected(at: usize) -> &'static str;

    /// The error for what stands at a position of malformed text: one text, or many without separators.
    fn bad_character(found: char, position: usize) -> Error {
        Error::Character { what: Self::TEXT_WHAT, found, position, expected: Self::expected(position % Self::TEXT) }
    }

    /// Reads text strictly.
    ///
    /// # Errors
    /// [`Error::Length`]; [`Error::Character`] with the position of the first character that cannot be.
    fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |position| Self::bad_character(text.chars().nth(position).unwrap_or('\0'), position);
        if text.len() == Self::TEXT {
            return Self::decode(text.as_bytes()).map_err(wrong);
        }
        let actual = text.chars().count();
        Err(if actual == Self::TEXT {
            // As many characters of more bytes: one of them is not ASCII.
            wrong(text.chars().position(|c| !c.is_ascii()).unwrap_or(0))
        } else {
            Error::Length { what: Self::TEXT_WHAT, actual, expected: Self::TEXT, unit: "characters" }
        })
    }

    /// Writes the text of packed IDs; `text` has room for just so many.
    fn encode_many(ids: &[u8], text: &mut [u8]) {
        for (id, text) in ids.chunks_exact(Self::SIZE).zip(text.chunks_exact_mut(Self::TEXT)) {
            text.copy_from_slice(Self::from_slice(id).to_text().as_ref());
        }
    }

    /// Reads packed text; `ids` has room for just so many.
    ///
    /// # Errors
    /// The position of the first character that cannot be.
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
/// `bytes_id!(what, size, text, digits, expected)` declares an ID that is its bytes, written in the digits of its format's
/// first text. `bytes_id!(impl Id(format, what, text_what, size, text) by Codec, from bytes => …, to id => …; …)` takes an
/// `Id` of any representation, whose text a [`Codec`](crate::codec::Codec) writes, and further methods of the trait.
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
                <$codec as $crate::codec::Codec<{ $size }, { $text }>>::encode($crate::id::Id::to_array(self))
            }

            #[inline(always)]
            fn decode(text: &[u8]) -> Result<Self, usize> {
                let text: &[u8; $text] = text.try_into().map_err(|_| text.len())?;
                <$codec as $crate::codec::Codec<{ $size }, { $text }>>::decode(text).map(|$bytes| $from)
            }

            fn expected(at: usize) -> &'static str {
                <$codec as $crate::codec::Codec<{ $size }, { $text }>>::expected(at)
            }

            fn encode_many(ids: &[u8], text: &mut [u8]) {
                <$codec as $crate::codec::Codec<{ $size }, { $text }>>::encode_many(ids, text);
            }

            fn decode_many(text: &[u8], ids: &mut [u8]) -> Result<(), usize> {
                <$codec as $crate::codec::Codec<{ $size }, { $text }>>::decode_many(text, ids)
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
