//! What clients of the Redis protocol send is understood whole, in parts, and where it is hostile.

use mintage_wire::resp::{Fault, Heard, Hot, MOST_WORDS, hear, hot, say_integer};
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
    match hear(bytes, LIMIT) {
        Heard::Command(words, used) if used == bytes.len() => words.to_vec(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_line_that_somebody_types_is_a_command() {
    assert_eq!(words(b"INCR  orders \r\n"), [b"INCR".as_slice(), b"orders"]);
    assert_eq!(words(b"PING\n"), [b"PING"]);
    assert!(words(b"\r\n").is_empty());
}

#[test]
fn the_hot_commands_are_known_in_any_case_and_others_are_left_alone() {
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
    assert_eq!(hear(b"*2\r\n$4\r\nINCR\r\n$4294967296\r\n", LIMIT), Heard::Invalid(Fault::Size));
    assert_eq!(hear(b"*1\r\n$65536\r\n", LIMIT), Heard::Invalid(Fault::Size));
    assert_eq!(hear(b"*1\r\n$99999999999999999999\r\n", LIMIT), Heard::Invalid(Fault::Length));
    assert_eq!(hear(b"*1025\r\n", LIMIT), Heard::Invalid(Fault::Words));
    assert_eq!(hear(b"*99999999999999999999\r\n", LIMIT), Heard::Invalid(Fault::Words));
    assert_eq!(hear(b"*-1\r\n", LIMIT), Heard::Invalid(Fault::Words));
}

#[test]
fn what_is_no_command_is_told_from_what_is_not_whole_yet() {
    assert_eq!(hear(b"", LIMIT), Heard::More);
    assert_eq!(hear(b"*", LIMIT), Heard::More);
    assert_eq!(hear(b"*2\r\n:1\r\n", LIMIT), Heard::Invalid(Fault::Dollar));
    assert_eq!(hear(b"*1\r\n$-1\r\n", LIMIT), Heard::Invalid(Fault::Length));
    assert_eq!(hear(b"*1\r\n$4\r\nPINGxx", LIMIT), Heard::Invalid(Fault::End));
    assert_eq!(hear(b"*1\r\r", LIMIT), Heard::Invalid(Fault::Words));
}

#[test]
fn an_endless_command_ends_at_the_limit() {
    let line = vec![b'x'; LIMIT];
    assert_eq!(hear(&line, LIMIT), Heard::Invalid(Fault::Size));
    assert_eq!(hear(b"*1024\r\n$60\r\n", 8), Heard::Invalid(Fault::Size));
    const { assert!(MOST_WORDS * 6 < LIMIT, "a command of many words fits") };
}

#[test]
fn integers_are_written_whole() {
    let mut reply = Vec::new();
    say_integer(&mut reply, 0);
    say_integer(&mut reply, u64::MAX);
    assert_eq!(reply, b":0\r\n:18446744073709551615\r\n");
}

proptest! {
    #[test]
    fn any_words_come_through(words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20), rest: Vec<u8>) {
        let bytes = written(&words);
        let all = [bytes.clone(), rest].concat();
        let Heard::Command(heard, used) = hear(&all, LIMIT) else { panic!("not whole") };
        prop_assert_eq!(used, bytes.len());
        prop_assert_eq!(heard.to_vec(), words);
    }

    #[test]
    fn a_part_of_a_command_is_never_taken_for_a_whole_or_a_wrong_one(
        words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 1..9), cut: prop::sample::Index
    ) {
        let bytes = written(&words);
        prop_assert_eq!(hear(&bytes[..cut.index(bytes.len())], LIMIT), Heard::More);
    }

    #[test]
    fn any_bytes_are_borne(bytes: Vec<u8>, limit in 0..200_usize) {
        if let Heard::Command(_, used) = hear(&bytes, limit) {
            prop_assert!(used <= bytes.len() && used > 0);
        }
    }

    #[test]
    fn bytes_that_look_like_commands_are_borne(text in r"[*$0-9\r\nA-Z -]{0,60}", limit in 0..100_usize) {
        if let Heard::Command(_, used) = hear(text.as_bytes(), limit) {
            prop_assert!(used <= text.len() && used > 0);
        }
    }
}
