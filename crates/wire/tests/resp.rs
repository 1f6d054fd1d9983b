//! The parser of the Redis protocol reads complete commands, waits for the rest of others, and survives hostile bytes.

use mintage_wire::resp::{Fault, Hot, MAX_WORDS, Parsed, hot, parse, write_integer};
use proptest::prelude::*;

const LIMIT: usize = 65_536;

fn written(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).into_bytes());
        bytes.extend(word);
        bytes.extend(b"\r\n");
    }
    bytes
}

fn words(bytes: &[u8]) -> Vec<&[u8]> {
    match parse(bytes, LIMIT) {
        Parsed::Command(words, used) if used == bytes.len() => words.to_vec(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_inline_command_is_read() {
    assert_eq!(words(b"INCR  orders \r\n"), [b"INCR".as_slice(), b"orders"]);
    assert_eq!(words(b"PING\n"), [b"PING"]);
    assert!(words(b"\r\n").is_empty());
}

#[test]
fn hot_commands_are_recognised_in_any_case_and_no_others_are() {
    let hot = |line: &'static [u8]| hot(&words(line));
    assert_eq!(hot(b"incr orders\n"), Some(Hot::Incr(b"orders")));
    assert_eq!(hot(b"IncrBy orders 1048576\n"), Some(Hot::IncrBy(b"orders", 1 << 20)));
    assert_eq!(hot(b"ping\n"), Some(Hot::Ping));
    for line in [
        b"INCRBY orders 0\n".as_slice(),
        b"INCRBY orders -1\n",
        b"INCRBY orders +1\n",
        b"INCRBY orders 1048577\n",
        b"INCRBY orders 1e3\n",
        b"INCRBY orders\n",
        b"INCR\n",
        b"INCR a b\n",
        b"GET orders\n",
        b"PING x\n",
    ] {
        assert_eq!(hot(line), None, "{line:?}");
    }
}

#[test]
fn a_length_beyond_the_limit_is_refused_before_its_bytes_come() {
    assert_eq!(parse(b"*2\r\n$4\r\nINCR\r\n$4294967296\r\n", LIMIT), Parsed::Invalid(Fault::Size));
    assert_eq!(parse(b"*1\r\n$65536\r\n", LIMIT), Parsed::Invalid(Fault::Size));
    assert_eq!(parse(b"*1\r\n$99999999999999999999\r\n", LIMIT), Parsed::Invalid(Fault::Length));
    assert_eq!(parse(b"*1025\r\n", LIMIT), Parsed::Invalid(Fault::Words));
    assert_eq!(parse(b"*99999999999999999999\r\n", LIMIT), Parsed::Invalid(Fault::Words));
    assert_eq!(parse(b"*-1\r\n", LIMIT), Parsed::Invalid(Fault::Words));
}

#[test]
fn an_invalid_command_differs_from_an_incomplete_one() {
    assert_eq!(parse(b"", LIMIT), Parsed::Incomplete);
    assert_eq!(parse(b"*", LIMIT), Parsed::Incomplete);
    assert_eq!(parse(b"*2\r\n:1\r\n", LIMIT), Parsed::Invalid(Fault::Dollar));
    assert_eq!(parse(b"*1\r\n$-1\r\n", LIMIT), Parsed::Invalid(Fault::Length));
    assert_eq!(parse(b"*1\r\n$4\r\nPINGxx", LIMIT), Parsed::Invalid(Fault::End));
    assert_eq!(parse(b"*1\r\r", LIMIT), Parsed::Invalid(Fault::Words));
}

#[test]
fn a_command_beyond_the_limit_is_refused() {
    let line = vec![b'x'; LIMIT];
    assert_eq!(parse(&line, LIMIT), Parsed::Invalid(Fault::Size));
    assert_eq!(parse(b"*1024\r\n$60\r\n", 8), Parsed::Invalid(Fault::Size));
    const { assert!(MAX_WORDS * 6 < LIMIT, "a command of many words fits") };
}

#[test]
fn integers_of_64_bits_are_written() {
    let mut reply = Vec::new();
    write_integer(&mut reply, 0);
    write_integer(&mut reply, u64::MAX);
    assert_eq!(reply, b":0\r\n:18446744073709551615\r\n");
}

proptest! {
    #[test]
    fn any_words_are_read_as_they_were_written(words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20), rest: Vec<u8>) {
        let bytes = written(&words);
        let all = [bytes.clone(), rest].concat();
        let Parsed::Command(parsed, used) = parse(&all, LIMIT) else { panic!("incomplete") };
        prop_assert_eq!(used, bytes.len());
        prop_assert_eq!(parsed.to_vec(), words);
    }

    #[test]
    fn a_prefix_of_a_command_is_incomplete(
        words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 1..9), cut: prop::sample::Index
    ) {
        let bytes = written(&words);
        prop_assert_eq!(parse(&bytes[..cut.index(bytes.len())], LIMIT), Parsed::Incomplete);
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes: Vec<u8>, limit in 0..200_usize) {
        if let Parsed::Command(_, used) = parse(&bytes, limit) {
            prop_assert!(used <= bytes.len() && used > 0);
        }
    }

    #[test]
    fn bytes_that_look_like_commands_do_not_make_it_panic(text in r"[*$0-9\r\nA-Z -]{0,60}", limit in 0..100_usize) {
        if let Parsed::Command(_, used) = parse(text.as_bytes(), limit) {
            prop_assert!(used <= text.len() && used > 0);
        }
    }
}
