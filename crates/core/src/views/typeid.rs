//! **typeid**: a prefix for the type of an object, and 26 characters of any 128 bits.
//!
//! - **prefix**: up to 63 characters of `a-z`, with `_` inside; it may be empty.
//! - **separator**: the last `_` of the text, if there is a prefix.
//! - **suffix**: 26 characters of Crockford's base 32 in lower case, the first at most 7. No look-alikes, no hyphens.
//!
//! Format after version 0.3 of <https://github.com/jetify-com/typeid>.

use crate::codec::positional::{Alphabet, Digits};
use crate::error::Error;

/// The suffix.
const DIGITS: &Digits = &Digits::new(Alphabet::new("0123456789abcdefghjkmnpqrstvwxyz"), SUFFIX);
/// The characters of the suffix.
pub const SUFFIX: usize = 26;
/// The most characters of a prefix.
pub const MAX_PREFIX: usize = 63;

/// Returns the position at which a prefix is invalid, and the characters allowed there.
fn invalid_at(prefix: &str) -> Option<(usize, &'static str)> {
    let last = prefix.chars().count().saturating_sub(1);
    prefix.chars().enumerate().find_map(|(at, character)| match character {
        _ if at >= MAX_PREFIX => Some((at, "the _ after a prefix of at most 63 characters")),
        'a'..='z' => None,
        '_' if at > 0 && at < last => None,
        _ => Some((at, "one of a-z, or a _ inside a prefix")),
    })
}

/// Checks a prefix.
///
/// # Errors
/// [`Error::Format`]: it is invalid.
pub fn check(prefix: &str) -> Result<(), Error> {
    let expected = "up to 63 characters of a-z, with _ inside";
    let shown = || prefix.chars().take(MAX_PREFIX + 1).collect();
    invalid_at(prefix).map_or(Ok(()), |_| Err(Error::Format { field: "prefix", value: shown(), expected }))
}

/// Returns the text of an ID under a valid prefix.
#[must_use]
pub fn write(prefix: &str, id: [u8; 16]) -> String {
    let suffix: [u8; SUFFIX] = DIGITS.encode(id);
    let mut text = String::with_capacity(prefix.len() + 1 + SUFFIX);
    text.push_str(prefix);
    text.extend((!prefix.is_empty()).then_some('_'));
    text.extend(suffix.map(char::from));
    text
}

/// Returns a regular expression of exactly the texts under a valid prefix, or under any, without anchors.
#[must_use]
pub fn pattern(prefix: Option<&str>) -> String {
    let suffix = DIGITS.pattern(&[0xff; 16]);
    match prefix {
        None => format!("(?:[a-z](?:[_a-z]{{0,{}}}[a-z])?_)?{suffix}", MAX_PREFIX - 2),
        Some("") => suffix,
        Some(prefix) => format!("{prefix}_{suffix}"),
    }
}

/// Reads prefix and ID of a text.
///
/// # Errors
/// [`Error::Length`] of the suffix; [`Error::Character`] with the position of the first wrong character.
pub fn read(text: &str) -> Result<(&str, [u8; 16]), Error> {
    let (prefix, suffix) = text.rsplit_once('_').map_or((None, text), |(prefix, suffix)| (Some(prefix), suffix));
    let error = |position, expected| Error::character("typeid text", text, position, expected);
    let first = match prefix {
        None => 0,
        Some("") => return Err(error(0, "a prefix before its _, or no _")),
        Some(prefix) => match invalid_at(prefix) {
            Some((position, expected)) => return Err(error(position, expected)),
            None => prefix.len() + 1,
        },
    };
    let actual = suffix.chars().count();
    if actual != SUFFIX {
        return Err(Error::Length { what: "typeid suffix", actual, expected: SUFFIX, unit: "characters" });
    }
    let expected = "one of 0123456789abcdefghjkmnpqrstvwxyz, the first of the suffix at most 7";
    let read = <&[u8; SUFFIX]>::try_from(suffix.as_bytes()).ok().map(|suffix| DIGITS.decode(suffix));
    match read {
        Some(Ok(id)) => Ok((prefix.unwrap_or_default(), id)),
        Some(Err(position)) => Err(error(first + position, expected)),
        None => Err(error(first + suffix.chars().position(|c| !c.is_ascii()).unwrap_or(0), expected)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_id_under_any_prefix_is_read_back(prefix in "([a-z]([a-z_]{0,61}[a-z])?)?", id: [u8; 16]) {
            let text = write(&prefix, id);
            prop_assert_eq!(read(&text), Ok((&prefix[..], id)));
        }

        #[test]
        fn a_text_that_is_read_is_canonical(text in "[a-z_]{0,3}_?[0-7][0-9a-z]{25}") {
            if let Ok((prefix, id)) = read(&text) {
                prop_assert_eq!(write(prefix, id), text);
            }
        }
    }
}
