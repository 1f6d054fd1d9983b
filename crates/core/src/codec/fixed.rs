//! Texts of fixed length for IDs of fixed size, one at a time or many.

#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::iter::zip;

use super::simd::Path;

/// A text of `TEXT` characters for IDs of `ID` bytes.
pub trait Codec<const ID: usize, const TEXT: usize> {
    /// The numbers that a text stands for, before they are joined to the bytes of an ID.
    type Numbers;

    /// Writes one ID.
    fn write(id: &[u8; ID], text: &mut [u8; TEXT]);

    /// Reads one text.
    ///
    /// # Errors
    /// The position of the first wrong character.
    fn read(text: &[u8; TEXT]) -> Result<Self::Numbers, usize>;

    /// Puts the numbers of [`Self::read`] into an ID: a function of its own, as a `Result` of bytes takes a detour
    /// through memory.
    fn join(numbers: Self::Numbers, id: &mut [u8; ID]);

    /// Returns in words what must stand at a position of the text.
    fn expected(at: usize) -> &'static str;

    /// Encodes whole blocks, and returns the number of IDs that they hold.
    fn encode_blocks(path: Path, ids: &[[u8; ID]], text: &mut [[u8; TEXT]]) -> usize;

    /// Decodes whole blocks up to the first with an error, and returns the number of IDs that they hold.
    fn decode_blocks(path: Path, text: &[[u8; TEXT]], ids: &mut [[u8; ID]]) -> usize;

    /// Returns the text of one ID.
    #[inline]
    #[must_use]
    fn encode(id: [u8; ID]) -> [u8; TEXT] {
        let mut text = [0; TEXT];
        Self::write(&id, &mut text);
        text
    }

    /// Returns the ID of one text.
    ///
    /// # Errors
    /// The position of the first wrong character.
    #[inline]
    fn decode(text: &[u8; TEXT]) -> Result<[u8; ID], usize> {
        let numbers = Self::read(text)?;
        let mut id = [0; ID];
        Self::join(numbers, &mut id);
        Ok(id)
    }

    /// Writes the IDs in `ids`, `ID` bytes each, to `text`, `TEXT` bytes each.
    ///
    /// # Panics
    ///
    /// Unless both lengths are those of the same number of IDs.
    fn encode_many(ids: &[u8], text: &mut [u8]) {
        Self::encode_many_by(Path::best(), ids, text);
    }

    /// Reads the IDs in `text`, `TEXT` bytes each, into `ids`, `ID` bytes each.
    ///
    /// # Errors
    /// The position in `text` of the first wrong character; the contents of `ids` are unspecified then.
    ///
    /// # Panics
    ///
    /// Unless both lengths are those of the same number of IDs.
    fn decode_many(text: &[u8], ids: &mut [u8]) -> Result<(), usize> {
        Self::decode_many_by(Path::best(), text, ids)
    }

    /// [`Self::encode_many`] on a given path, for tests and measurements.
    fn encode_many_by(path: Path, ids: &[u8], text: &mut [u8]) {
        let one = |id: &_, text: &mut _| {
            Self::write(id, text);
            Ok::<(), Infallible>(())
        };
        let Ok(()) = convert(ids, text, |ids, text| Self::encode_blocks(path, ids, text), one);
    }

    /// [`Self::decode_many`] on a given path, for tests and measurements.
    ///
    /// # Errors
    /// As [`Self::decode_many`].
    fn decode_many_by(path: Path, text: &[u8], ids: &mut [u8]) -> Result<(), usize> {
        let one = |text: &_, id: &mut _| Self::read(text).map(|numbers| Self::join(numbers, id));
        convert(text, ids, |text, ids| Self::decode_blocks(path, text, ids), one).map_err(|(i, at)| TEXT * i + at)
    }
}

/// Converts all items: first `blocks`, which returns how many it converted, then `one` at a time. An error comes with
/// the index of its item.
fn convert<const A: usize, const B: usize, E>(
    from: &[u8],
    to: &mut [u8],
    blocks: impl FnOnce(&[[u8; A]], &mut [[u8; B]]) -> usize,
    one: impl Fn(&[u8; A], &mut [u8; B]) -> Result<(), E>,
) -> Result<(), (usize, E)> {
    let (from, from_rest) = from.as_chunks();
    let (to, to_rest) = to.as_chunks_mut();
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
