//! Regular expressions of a format's texts.

use super::text::Encoding;
use super::{Constraint, Format, Part};
use crate::codec::positional::{Alphabet, BASE10, Digits, MAX_BYTES, class, repeated};

impl Format<'_> {
    /// Returns a regular expression of exactly the texts that the class's parser takes, without anchors: the canonical
    /// text and its variants, whatever the bits. A format whose IDs are text only has no such class; its expression
    /// matches what [`Self::read`] takes.
    #[must_use]
    pub fn pattern(&self) -> String {
        match self.texts.first().map(|text| text.encoding) {
            Some(Encoding::Digits(digits) | Encoding::Nested(digits, _)) => {
                digits.pattern(&[0xff; MAX_BYTES][..self.size()])
            }
            Some(Encoding::Characters(_, alphabet)) => {
                repeated(&self.parts.iter().flat_map(|part| classes(part, alphabet)).collect::<Vec<_>>())
            }
            None => {
                let is_unused = |part: &&Part<'_>| part.constraint == Constraint::Equals(0);
                let unused: u32 = self.parts.iter().take_while(is_unused).map(|part| part.bits).sum();
                let largest = u64::MAX >> (64 - self.bits() + unused);
                let count = largest.to_string().len();
                let widest = Digits::new(BASE10, count).pattern(&largest.to_be_bytes());
                if count == 1 { widest } else { format!("(?:[0-9]{{1,{}}}|{widest})", count - 1) }
            }
        }
    }
}

/// Returns a character class for each character of a part. The first of several carries the constraint on their number.
fn classes(part: &Part<'_>, alphabet: &Alphabet) -> Vec<String> {
    let (below, characters) = (part.bits - 8, alphabet.characters());
    let lowest = (0..below / 8).fold(0, |lowest, _| lowest << 8 | u128::from(characters[0]));
    let mut sorted = characters.to_vec();
    sorted.sort_unstable();
    let mut classes = vec![class(&sorted); part.bits as usize / 8];
    if part.constraint != Constraint::Any {
        sorted.retain(|&first| part.allows(u128::from(first) << below | lowest));
        classes[0] = class(&sorted);
    }
    classes
}
