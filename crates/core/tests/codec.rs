//! Both codecs agree, on every path, with an oracle that handles one bit at a time.

mod common;

use std::panic::catch_unwind;

use common::{from_hex, vectors};
use mintage_core::codec::{Base32, Hex, Path};
use proptest::prelude::*;

/// A codec under test, and the facts of its format that the oracle needs.
struct Subject {
    id_len: usize,
    text_len: usize,
    bits: usize,
    alphabet: &'static [u8],
    hyphens: &'static [usize],
    any_case: bool,
    encode: fn(&[u8]) -> Vec<u8>,
    decode: fn(&[u8]) -> Decoded<Vec<u8>>,
    encode_many: fn(&[u8], &mut [u8]),
    decode_many: fn(&[u8], &mut [u8]) -> Decoded,
    encode_many_by: fn(Path, &[u8], &mut [u8]),
    decode_many_by: fn(Path, &[u8], &mut [u8]) -> Decoded,
}

/// The error is the position of the first wrong character.
type Decoded<T = ()> = Result<T, usize>;

const CODECS: [&Subject; 2] = [&BASE32, &HEX];

const BASE32: Subject = Subject {
    id_len: 10,
    text_len: 16,
    bits: 5,
    alphabet: b"23456789abcdefghijklmnopqrstuvwx",
    hyphens: &[],
    any_case: false,
    encode: |id| Base32::encode(id.try_into().unwrap()).to_vec(),
    decode: |text| Base32::decode(text.try_into().unwrap()).map(Vec::from),
    encode_many: Base32::encode_many,
    decode_many: Base32::decode_many,
    encode_many_by: Base32::encode_many_by,
    decode_many_by: Base32::decode_many_by,
};

const HEX: Subject = Subject {
    id_len: 16,
    text_len: 36,
    bits: 4,
    alphabet: b"0123456789abcdef",
    hyphens: &[8, 13, 18, 23],
    any_case: true,
    encode: |id| Hex::encode(id.try_into().unwrap()).to_vec(),
    decode: |text| Hex::decode(text.try_into().unwrap()).map(Vec::from),
    encode_many: Hex::encode_many,
    decode_many: Hex::decode_many,
    encode_many_by: Hex::encode_many_by,
    decode_many_by: Hex::decode_many_by,
};

/// The oracle.
impl Subject {
    fn naive_encode(&self, ids: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        for id in ids.chunks(self.id_len) {
            let bits: Vec<bool> = (0..8 * id.len()).map(|i| id[i / 8] >> (7 - i % 8) & 1 == 1).collect();
            let mut values =
                bits.chunks(self.bits).map(|bits| bits.iter().fold(0, |value, &bit| 2 * value + usize::from(bit)));
            for at in 0..self.text_len {
                let hyphen = self.hyphens.contains(&at);
                text.push(if hyphen { b'-' } else { self.alphabet[values.next().unwrap()] });
            }
        }
        text
    }

    fn naive_decode(&self, text: &[u8]) -> Decoded<Vec<u8>> {
        let mut bits = Vec::new();
        for (at, &character) in text.iter().enumerate() {
            if self.hyphens.contains(&(at % self.text_len)) {
                if character != b'-' {
                    return Err(at);
                }
                continue;
            }
            let same = |&known: &u8| known == character || self.any_case && known == character.to_ascii_lowercase();
            let value = self.alphabet.iter().position(same).ok_or(at)?;
            bits.extend((0..self.bits).rev().map(|i| value >> i & 1 == 1));
        }
        Ok(bits.chunks(8).map(|bits| bits.iter().fold(0, |byte, &bit| 2 * byte + u8::from(bit))).collect())
    }
}

/// A way to run a codec.
#[derive(Clone, Copy, Debug)]
enum Way {
    OneByOne,
    Many,
    ManyBy(Path),
}

fn ways() -> impl Iterator<Item = Way> {
    [Way::OneByOne, Way::Many].into_iter().chain(Path::available().map(Way::ManyBy))
}

impl Way {
    fn encode(self, codec: &Subject, ids: &[u8]) -> Vec<u8> {
        let len = ids.len() / codec.id_len * codec.text_len;
        match self {
            Way::OneByOne => ids.chunks(codec.id_len).flat_map(codec.encode).collect(),
            Way::Many => guarded(len, |text| (codec.encode_many)(ids, text)).0,
            Way::ManyBy(path) => guarded(len, |text| (codec.encode_many_by)(path, ids, text)).0,
        }
    }

    fn decode(self, codec: &Subject, text: &[u8]) -> Decoded<Vec<u8>> {
        let len = text.len() / codec.text_len * codec.id_len;
        let (ids, result) = match self {
            Way::OneByOne => {
                let mut ids = Vec::new();
                for (i, text) in text.chunks(codec.text_len).enumerate() {
                    ids.extend((codec.decode)(text).map_err(|at| codec.text_len * i + at)?);
                }
                (ids, Ok(()))
            }
            Way::Many => guarded(len, |ids| (codec.decode_many)(text, ids)),
            Way::ManyBy(path) => guarded(len, |ids| (codec.decode_many_by)(path, text, ids)),
        };
        result.map(|()| ids)
    }
}

/// Returns `len` bytes that `fill` fills; asserts that it does not touch the bytes around them.
fn guarded<R>(len: usize, fill: impl FnOnce(&mut [u8]) -> R) -> (Vec<u8>, R) {
    const GUARD: [u8; 65] = [0xa5; 65];
    let mut room = [&GUARD[..], &vec![0; len], &GUARD].concat();
    let result = fill(&mut room[GUARD.len()..GUARD.len() + len]);
    assert_eq!(room[..GUARD.len()], GUARD, "wrote in front of its room");
    assert_eq!(room[GUARD.len() + len..], GUARD, "wrote behind its room");
    (room[GUARD.len()..GUARD.len() + len].to_vec(), result)
}

/// Returns bytes without a pattern in which an error could hide.
fn bytes(len: usize) -> Vec<u8> {
    (1..=len as u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 23) as u8).collect()
}

/// Generates the bytes of 0 to 70 IDs, which cover every block and every tail.
fn ids() -> impl Strategy<Value = Vec<u8>> {
    (0..=70_usize).prop_flat_map(|ids| prop::collection::vec(any::<u8>(), 16 * ids))
}

fn truncated<'a>(codec: &Subject, ids: &'a [u8]) -> &'a [u8] {
    &ids[..ids.len() / 16 * codec.id_len]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_path_agrees_with_the_oracle(ids in ids()) {
        for codec in CODECS {
            let ids = truncated(codec, &ids);
            let text = codec.naive_encode(ids);
            prop_assert_eq!(codec.naive_decode(&text), Ok(ids.to_vec()));
            for way in ways() {
                prop_assert_eq!(way.encode(codec, ids), &text[..], "{:?}", way);
                prop_assert_eq!(way.decode(codec, &text), Ok(ids.to_vec()), "{:?}", way);
            }
        }
    }

    #[test]
    fn texts_sort_as_their_ids(one: [u8; 16], mut other: [u8; 16], common in 0..16_usize) {
        other[..common].copy_from_slice(&one[..common]);
        for codec in CODECS {
            let (one, other) = (&one[..codec.id_len], &other[..codec.id_len]);
            for way in ways() {
                prop_assert_eq!(way.encode(codec, one).cmp(&way.encode(codec, other)), one.cmp(other), "{:?}", way);
            }
        }
    }

    #[test]
    fn the_first_of_several_wrong_characters_is_reported(
        ids in ids(),
        corruptions in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        for codec in CODECS {
            let mut text = codec.naive_encode(truncated(codec, &ids));
            if !text.is_empty() {
                for (at, byte) in &corruptions {
                    let at = at.index(text.len());
                    text[at] = *byte;
                }
            }
            let expected = codec.naive_decode(&text);
            for way in ways() {
                prop_assert_eq!(way.decode(codec, &text), expected.clone(), "{:?}", way);
            }
        }
    }

    #[test]
    fn hexadecimal_digits_are_read_in_any_case(id: [u8; 16], upper: [bool; 36]) {
        let mut text = Hex::encode(id);
        for (character, upper) in text.iter_mut().zip(upper) {
            if upper {
                character.make_ascii_uppercase();
            }
        }
        for way in ways() {
            prop_assert_eq!(way.decode(&HEX, &text.repeat(3)), Ok(id.repeat(3)), "{:?}", way);
        }
    }
}

/// The IDs fill a block of each path, and one remains.
#[test]
fn every_byte_at_every_position_is_read_or_rejected() {
    const IDS: usize = 5;
    for codec in CODECS {
        let mut text = codec.naive_encode(&bytes(IDS * codec.id_len));
        for at in 0..text.len() {
            let right = text[at];
            for byte in 0..=255 {
                text[at] = byte;
                let expected = codec.naive_decode(&text);
                assert!(expected.is_ok() || expected == Err(at));
                for way in ways() {
                    assert_eq!(way.decode(codec, &text), expected, "{way:?}: {byte:#04x} at {at}");
                }
            }
            text[at] = right;
        }
    }
}

#[test]
fn every_byte_of_an_id_is_written_as_by_the_oracle() {
    for codec in CODECS {
        for at in 0..5 * codec.id_len {
            for byte in 0..=255 {
                let mut ids = vec![0; 5 * codec.id_len];
                ids[at] = byte;
                let text = codec.naive_encode(&ids);
                for way in ways() {
                    assert_eq!(way.encode(codec, &ids), text, "{way:?}: {byte:#04x} at {at}");
                }
            }
        }
    }
}

#[test]
fn an_error_in_the_last_character_is_found() {
    for codec in CODECS {
        for ids in 1..=70 {
            let mut text = codec.naive_encode(&bytes(ids * codec.id_len));
            let last = text.len() - 1;
            text[last] = b' ';
            for way in ways() {
                assert_eq!(way.decode(codec, &text), Err(last), "{way:?}");
            }
        }
    }
}

#[test]
fn lengths_of_different_numbers_of_ids_panic() {
    for codec in CODECS {
        let (id, text) = (codec.id_len, codec.text_len);
        for (ids, texts) in
            [(id, 0), (0, text), (id, 2 * text), (id + 1, text), (id, text - 1), (id - 1, text - 1), (1, 0)]
        {
            for path in Path::available() {
                let encode = || (codec.encode_many_by)(path, &vec![0; ids], &mut vec![0; texts]);
                assert!(catch_unwind(encode).is_err(), "{path:?}: {ids} bytes to {texts}");
                let decode = || (codec.decode_many_by)(path, &vec![b'2'; texts], &mut vec![0; ids]);
                assert!(catch_unwind(decode).is_err(), "{path:?}: {texts} bytes to {ids}");
            }
        }
    }
}

#[test]
fn the_portable_path_is_always_available_and_last() {
    let names: Vec<_> = Path::available().map(Path::name).collect();
    assert_eq!(names.first(), Some(&Path::best().name()));
    assert_eq!(names.last(), Some(&"portable"));
}

#[test]
fn sno_texts_agree_with_the_original() {
    let vectors = vectors("sno");
    for list in ["encode_decode", "raw_decode"] {
        let cases = vectors[list].as_array().unwrap();
        assert!(!cases.is_empty());
        let ids: Vec<u8> = cases.iter().flat_map(|case| from_hex(&case["hex"])).collect();
        let text: String = cases.iter().map(|case| case["encoded"].as_str().unwrap()).collect();
        for way in ways() {
            assert_eq!(String::from_utf8(way.encode(&BASE32, &ids)).unwrap(), text, "{way:?}: {list}");
            assert_eq!(way.decode(&BASE32, text.as_bytes()).as_ref(), Ok(&ids), "{way:?}: {list}");
        }
    }
}

/// The three decoders of sno read these, and disagree on the result.
#[test]
fn texts_outside_the_alphabet_of_sno_are_rejected() {
    let vectors = vectors("sno");
    let mut rejected = 0;
    for (decoder, cases) in vectors["invalid_decode"].as_object().unwrap() {
        for case in cases.as_array().unwrap() {
            let text = from_hex(&case["input_hex"]);
            // The type of the parser's argument excludes other lengths.
            if text.len() != 16 {
                continue;
            }
            match text.iter().position(|c| !BASE32.alphabet.contains(c)) {
                Some(at) => {
                    rejected += 1;
                    for way in ways() {
                        assert_eq!(way.decode(&BASE32, &text), Err(at), "{way:?}: {case}");
                    }
                }
                None => {
                    for way in ways() {
                        assert_eq!(
                            way.decode(&BASE32, &text),
                            Ok(from_hex(&case["decoded_hex"])),
                            "{way:?}: {decoder}"
                        );
                    }
                }
            }
        }
    }
    assert!(rejected > 100, "{rejected}");
}

#[test]
fn uuid_texts_agree_with_locality() {
    let vectors = vectors("locality_uuid");
    for case in vectors["parse"].as_array().unwrap() {
        let (text, id) = (case["input"].as_str().unwrap(), from_hex(&case["java"]["hex"]));
        for way in ways() {
            assert_eq!(way.decode(&HEX, text.as_bytes()).as_ref(), Ok(&id), "{way:?}: {case}");
            assert_eq!(String::from_utf8(way.encode(&HEX, &id)).unwrap(), text.to_lowercase(), "{way:?}");
        }
    }
    for case in vectors["invalid"].as_array().unwrap() {
        let text = case["input"].as_str().unwrap().as_bytes();
        for way in ways().filter(|_| text.len() == 36) {
            assert!(way.decode(&HEX, text).is_err(), "{way:?}: {case}");
        }
    }
}
