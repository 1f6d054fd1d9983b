//! Positional digits agree with an oracle of long division, and with the texts of the originals.
#![cfg(not(loom))]

mod common;

use common::{from_hex, vectors};
use mintage_core::codec::positional::{
    Alphabet, BASE16, BASE32_CROCKFORD, BASE32_HEX, BASE32_SNO, BASE36, BASE58, BASE62, BASE64_URL, Digits,
};
use proptest::prelude::*;
use std::panic::catch_unwind;

/// A format under test, and the facts that the oracle needs.
struct Case {
    digits: Digits,
    alphabet: Alphabet,
    template: &'static str,
    pad: u32,
    size: usize,
}

const fn plain(alphabet: Alphabet, template: &'static str, pad: u32, size: usize) -> Case {
    let digits = Digits::template(alphabet, template);
    Case { digits: if pad > 0 { digits.padded(pad) } else { digits }, alphabet, template, pad, size }
}

static CASES: [Case; 14] = [
    plain(BASE32_SNO, "xxxxxxxxxxxxxxxx", 0, 10),
    plain(BASE32_CROCKFORD.any_case(), "xxxxxxxxxxxxxxxxxxxxxxxxxx", 0, 16),
    plain(BASE32_CROCKFORD, "xxxxxxxxxxxxxxxxxxxxxxxxxx", 2, 16),
    plain(BASE32_HEX, "xxxxxxxxxxxxxxxxxxxx", 4, 12),
    plain(BASE16, "xxxxxxxxxxxxxxxxxxxxxxxx", 0, 12),
    plain(BASE16, "urn:uuid:xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", 0, 16),
    plain(BASE16, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 0, 20),
    plain(BASE62, "xxxxxxxxxxxxxxxxxxxxxxxxxxx", 0, 20),
    plain(BASE62, "{xxxxxxxxxxx-xxxxxxxxxxx}", 0, 16),
    plain(BASE36, "xxxxxxxxxxxxx", 0, 8),
    plain(BASE58, "xxxxxxxxxxx", 0, 8),
    plain(BASE58, "xxxxxxxxxxxxxxxxxxxxxxxxxxxx", 0, 20),
    plain(BASE64_URL, "xxxxxxxxxxxxxxxxxxxxxx", 4, 16),
    plain(BASE32_CROCKFORD, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 2, 20),
];

impl Case {
    /// Divides the whole number by the base, once for each digit.
    fn oracle(&self, id: &[u8]) -> String {
        let mut number: Vec<u32> = id.iter().map(|&byte| byte.into()).collect();
        for _ in 0..self.pad {
            number.push(0);
            let mut carry = 0;
            number.pop();
            for digit in number.iter_mut().rev() {
                let value = *digit * 2 + carry;
                // The first byte keeps the overflow.
                (*digit, carry) = (value, 0);
                if value > 255 {
                    (*digit, carry) = (value - 256, 1);
                }
            }
            number[0] += 256 * carry;
        }
        let mut text: Vec<u8> = self.template.into();
        for place in text.iter_mut().rev().filter(|character| **character == b'x') {
            let mut rest = 0;
            for digit in &mut number {
                let value = rest * 256 + *digit;
                (*digit, rest) = (value / self.alphabet.base(), value % self.alphabet.base());
            }
            *place = self.alphabet.characters()[rest as usize];
        }
        String::from_utf8(text).unwrap()
    }

    fn write(&self, id: &[u8]) -> String {
        let mut text = vec![0; self.digits.length()];
        self.digits.write(id, &mut text);
        String::from_utf8(text).unwrap()
    }

    fn read(&self, text: &str) -> Result<Vec<u8>, usize> {
        let mut id = vec![0; self.size];
        self.digits.read(text.as_bytes(), &mut id).map(|()| id)
    }

    /// Returns whether a text of the format has this prefix.
    fn is_beginning(&self, text: &[u8]) -> bool {
        let (first, last) = (self.write(&vec![0; self.size]), self.write(&vec![255; self.size]));
        let value = |character: u8, at: usize| match self.template.as_bytes()[at] {
            b'x' => self.alphabet.value(character).map(i32::from),
            literal => (literal == character).then_some(0),
        };
        let values: Option<Vec<_>> = text.iter().enumerate().map(|(at, &character)| value(character, at)).collect();
        let of = |text: &str| -> Vec<_> {
            text.bytes()
                .take(values.as_ref().map_or(0, Vec::len))
                .enumerate()
                .filter_map(|(at, c)| value(c, at))
                .collect()
        };
        values.as_ref().is_some_and(|values| {
            let spare = values
                .last()
                .is_some_and(|last| text.len() == self.template.len() && last & ((1 << self.pad) - 1) != 0);
            of(&first) <= *values && *values <= of(&last) && !spare
        })
    }
}

fn a_case() -> impl Strategy<Value = (usize, Vec<u8>)> {
    (0..CASES.len()).prop_flat_map(|index| {
        let byte = prop_oneof![4 => any::<u8>(), 1 => Just(0), 1 => Just(255)];
        (Just(index), proptest::collection::vec(byte, CASES[index].size))
    })
}

proptest! {
    #[test]
    fn every_number_is_written_as_by_long_division_and_read_back((index, id) in a_case()) {
        let case = &CASES[index];
        let text = case.write(&id);
        prop_assert_eq!(&text, &case.oracle(&id));
        prop_assert_eq!(case.read(&text), Ok(id));
    }

    #[test]
    fn texts_sort_as_their_numbers((index, id) in a_case(), other in proptest::collection::vec(any::<u8>(), 20)) {
        let case = &CASES[index];
        let other = &other[..case.size];
        if case.alphabet.characters().is_sorted() {
            prop_assert_eq!(case.write(&id).cmp(&case.write(other)), id.as_slice().cmp(other));
        }
    }

    #[test]
    fn an_error_is_the_first_character_that_no_text_has_there(
        (index, id) in a_case(), at: prop::sample::Index, other in any::<u8>(), again: prop::sample::Index, third in any::<u8>(),
    ) {
        let case = &CASES[index];
        let mut text = case.write(&id).into_bytes();
        let (at, again) = (at.index(text.len()), again.index(text.len()));
        (text[at], text[again]) = (other, third);
        let mut read = vec![0; case.size];
        let expected = (1..=text.len()).find(|&end| !case.is_beginning(&text[..end])).map_or(Ok(()), |end| Err(end - 1));
        prop_assert_eq!(case.digits.read(&text, &mut read), expected);
        if expected.is_ok() {
            let written = case.write(&read).into_bytes();
            prop_assert!(written.eq_ignore_ascii_case(&text));
        }
    }
}

#[test]
fn overflow_and_spare_bits_are_errors_at_their_character() {
    let read = |case: &Case, text: &str| case.read(text).map(|_| ());
    let [_, ulid, sandflake, xid, ..] = &CASES;
    assert_eq!(read(ulid, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"), Ok(()));
    assert_eq!(read(ulid, "7zzzzzzzzzzzzzzzzzzzzzzzzz"), Ok(()));
    assert_eq!(read(ulid, "80000000000000000000000000"), Err(0));
    assert_eq!(read(ulid, "7ZZZZZZZZZUZZZZZZZZZZZZZZZ"), Err(10));
    assert_eq!(read(sandflake, "00000000000000000000000004"), Ok(()));
    assert_eq!(read(sandflake, "00000000000000000000000001"), Err(25));
    assert_eq!(read(xid, "0000000000000000000g"), Ok(()));
    assert_eq!(read(xid, "00000000000000000001"), Err(19));
    let ksuid = &CASES[7];
    assert_eq!(ksuid.write(&[255; 20]), "aWgEPTl1tmebfsQzFP4bxwgy80V");
    assert_eq!(read(ksuid, "aWgEPTl1tmebfsQzFP4bxwgy80W"), Err(26));
    assert_eq!(read(ksuid, "aWgEPTl2000000000000000000!"), Err(7));
    assert_eq!(read(ksuid, "zzzzzzzzzzzzzzzzzzzzzzzzzzz"), Err(0));
    assert_eq!(read(ksuid, "short"), Err(5));
    assert_eq!(read(ksuid, "0000000000000000000000000000"), Err(27));
}

#[test]
fn const_lengths_read_and_write_the_same() {
    let id: [u8; 16] = std::array::from_fn(|i| (i * 37) as u8);
    let text: [u8; 26] = CASES[1].digits.encode(id);
    assert_eq!(std::str::from_utf8(&text), Ok(CASES[1].write(&id).as_str()));
    assert_eq!(CASES[1].digits.decode::<16, 26>(&text), Ok(id));
    assert_eq!(CASES[1].digits.decode::<16, 26>(b"01234567890123456789012I45"), Err(23));
}

#[test]
fn an_alias_is_read_and_never_written() {
    const LENIENT: Digits = Digits::new(BASE32_CROCKFORD.any_case().alias("iIlL", '1').alias("oO", '0'), 26);
    let read = |text: &[u8; 26]| LENIENT.decode::<16, 26>(text);
    let id = read(b"01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap();
    assert_eq!(read(b"oLarz3ndektsv4rrffq69g5fav"), Ok(id));
    assert_eq!(read(b"OIARZ3NDEKTSV4RRFFQ69G5FAV"), Ok(id));
    assert_eq!(read(b"01ARZ3NDEKTSV4RRFFQ69G5FAU"), Err(25));
    assert_eq!(&LENIENT.encode::<16, 26>(id), b"01ARZ3NDEKTSV4RRFFQ69G5FAV");
}

#[test]
fn an_invalid_alphabet_panics() {
    assert!(catch_unwind(|| Alphabet::new("aa")).is_err());
    assert!(catch_unwind(|| Alphabet::new("a")).is_err());
    assert!(catch_unwind(|| BASE62.any_case()).is_err());
    assert!(catch_unwind(|| BASE16.alias("a", '1')).is_err());
    assert!(catch_unwind(|| BASE16.alias("z", 'y')).is_err());
    assert!(catch_unwind(|| Digits::new(BASE62, 27).padded(1)).is_err());
    assert!(catch_unwind(|| Digits::new(BASE16, 24).padded(4)).is_err());
}

#[test]
fn recorded_texts_are_written_from_their_bytes() {
    let mut compared = 0;
    for (index, file, path, text) in [
        (0, "sno", "/encode_decode", "encoded"),
        (1, "ulid", "/oklog/generate", "text"),
        (2, "sandflake", "/generate", "text"),
        (3, "xid", "/rs_xid/generate", "text"),
        (7, "ksuid", "/segmentio/generate", "text"),
    ] {
        for case in vectors(file).pointer(path).unwrap().as_array().unwrap() {
            let (Some(hex), Some(text)) = (case["hex"].as_str(), case[text].as_str()) else { continue };
            if hex.len() != 2 * CASES[index].size {
                continue; // an error was recorded
            }
            let id = from_hex(&case["hex"]);
            assert_eq!(CASES[index].write(&id), text);
            assert_eq!(CASES[index].read(text), Ok(id));
            compared += 1;
        }
    }
    assert!(compared > 200, "{compared}");
}
