//! Texts of fixed length for IDs of fixed size, one at a time or many.

#![forbid(unsafe_code)]

use super::{as_chunks, as_chunks_mut};
use std::iter::zip;

/// Implements a codec of `$text` characters for IDs of `$id` bytes, over its functions for one ID and its kernels.
///
/// The codec has `write` for one ID, `read` for the numbers that one text stands for, and `join` for the ID of these
/// numbers. `join` is a function of its own, as a `Result` of bytes takes a detour through memory. A macro writes
/// concrete functions: compilers vectorise them better than default methods of a trait.
macro_rules! codec {
    ($codec:ident, $id:literal, $text:literal, $encode_blocks:ident, $decode_blocks:ident) => {
        impl $codec {
            /// Returns the text of one ID.
            #[inline]
            #[must_use]
            pub fn encode(id: [u8; $id]) -> [u8; $text] {
                let mut text = [0; $text];
                Self::write(&id, &mut text);
                text
            }

            /// Returns the ID of one text.
            ///
            /// # Errors
            /// The position of the first wrong character.
            #[inline]
            pub fn decode(text: &[u8; $text]) -> Result<[u8; $id], usize> {
                let numbers = Self::read(text)?;
                let mut id = [0; $id];
                Self::join(numbers, &mut id);
                Ok(id)
            }

            #[doc = concat!("Writes the IDs in `ids`, ", $id, " bytes each, to `text`, ", $text, " bytes each.")]
            ///
            /// # Panics
            ///
            /// Unless both lengths are those of the same number of IDs.
            pub fn encode_many(ids: &[u8], text: &mut [u8]) {
                Self::encode_many_by(super::Path::best(), ids, text);
            }

            #[doc = concat!("Reads the IDs in `text`, ", $text, " bytes each, into `ids`, ", $id, " bytes each.")]
            ///
            /// # Errors
            /// The position in `text` of the first wrong character; the contents of `ids` are unspecified then.
            ///
            /// # Panics
            ///
            /// Unless both lengths are those of the same number of IDs.
            pub fn decode_many(text: &[u8], ids: &mut [u8]) -> Result<(), usize> {
                Self::decode_many_by(super::Path::best(), text, ids)
            }

            /// [`Self::encode_many`] on a given path, for tests and measurements.
            pub fn encode_many_by(path: super::Path, ids: &[u8], text: &mut [u8]) {
                let one = |id: &_, text: &mut _| {
                    Self::write(id, text);
                    Ok::<(), std::convert::Infallible>(())
                };
                let Ok(()) = super::fixed::convert(ids, text, |ids, text| path.$encode_blocks(ids, text), one);
            }

            /// [`Self::decode_many`] on a given path, for tests and measurements.
            ///
            /// # Errors
            /// As [`Self::decode_many`].
            pub fn decode_many_by(path: super::Path, text: &[u8], ids: &mut [u8]) -> Result<(), usize> {
                let one = |text: &_, id: &mut _| Self::read(text).map(|numbers| Self::join(numbers, id));
                super::fixed::convert(text, ids, |text, ids| path.$decode_blocks(text, ids), one)
                    .map_err(|(i, at)| $text * i + at)
            }
        }
    };
}
pub(super) use codec;

/// Converts all items: first `blocks`, which returns how many it converted, then `one` at a time. An error comes with
/// the index of its item.
pub(super) fn convert<const A: usize, const B: usize, E>(
    from: &[u8],
    to: &mut [u8],
    blocks: impl FnOnce(&[[u8; A]], &mut [[u8; B]]) -> usize,
    one: impl Fn(&[u8; A], &mut [u8; B]) -> Result<(), E>,
) -> Result<(), (usize, E)> {
    let (from, from_rest) = as_chunks(from);
    let (to, to_rest) = as_chunks_mut(to);
    assert!(
        from.len() == to.len() && from_rest.is_empty() && to_rest.is_empty(),
        "{} × {A} + {} bytes do not convert to {} × {B} + {} bytes",
        from.len(),
        from_rest.len(),
        to.len(),
        to_rest.len(),
    );
    let done = blocks(from, to);
    for (i, (from, to)) in zip(from, to).enumerate().skip(done) {
        one(from, to).map_err(|error| (i, error))?;
    }
    Ok(())
}
