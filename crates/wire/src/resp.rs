//! The Redis protocol as clients speak it: arrays of bulk strings, or one line of words.
//!
//! <https://redis.io/docs/latest/develop/reference/protocol-spec/>

use smallvec::SmallVec;

/// The words of a command, the first being its name.
pub type Words<'a> = SmallVec<[&'a [u8]; 4]>;

/// The most words that a command has. Ours have seven; other commands are to be refused by name, not by length.
pub const MOST_WORDS: usize = 1024;

/// What stands at the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// A whole command, and how many bytes it took. No words: an empty line.
    Command(Words<'a>, usize),
    /// The beginning of one.
    More,
    /// Nothing that can ever become one.
    Invalid(Fault),
}

/// Why bytes are no command. After one, nobody knows where the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `*` is not followed by a number of words that is in range.
    Words,
    /// Where a bulk string should begin, there is no `$`.
    Dollar,
    /// `$` is not followed by a length that is in range.
    Length,
    /// A bulk string is not followed by CR LF.
    End,
    /// It is longer than the limit.
    Size,
    /// A line is of another protocol, such as HTTP or TLS. None of its later lines may pass for a command.
    Foreign,
}

/// Finds the first command. `limit` is the most bytes that one may have.
#[must_use]
pub fn hear(bytes: &[u8], limit: usize) -> Heard<'_> {
    match bytes.first() {
        None => Heard::More,
        Some(b'*') => array(bytes, limit),
        Some(byte) if byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() => line(bytes, limit),
        Some(_) => Heard::Invalid(Fault::Foreign),
    }
}

fn array(bytes: &[u8], limit: usize) -> Heard<'_> {
    let unfinished = || if bytes.len() > limit { Heard::Invalid(Fault::Size) } else { Heard::More };
    let (count, mut at) = match number(bytes, 1) {
        Number::Is(count, at) if count <= MOST_WORDS => (count, at),
        Number::More => return unfinished(),
        _ => return Heard::Invalid(Fault::Words),
    };
    let mut words = Words::new();
    for _ in 0..count {
        match bytes.get(at) {
            None => return unfinished(),
            Some(b'$') => {}
            Some(_) => return Heard::Invalid(Fault::Dollar),
        }
        let (length, start) = match number(bytes, at + 1) {
            Number::Is(length, start) if length <= limit => (length, start),
            Number::Is(..) => return Heard::Invalid(Fault::Size),
            Number::More => return unfinished(),
            Number::None => return Heard::Invalid(Fault::Length),
        };
        let end = start + length;
        if end + 2 > limit {
            return Heard::Invalid(Fault::Size);
        }
        let Some(tail) = bytes.get(end..end + 2) else { return Heard::More };
        if tail != b"\r\n" {
            return Heard::Invalid(Fault::End);
        }
        words.push(&bytes[start..end]);
        at = end + 2;
    }
    Heard::Command(words, at)
}

enum Number {
    /// Its value, and where the line after it begins.
    Is(usize, usize),
    More,
    None,
}

/// The digits from `at` to CR LF: ten at most, so that nothing overflows.
#[inline(always)]
fn number(bytes: &[u8], at: usize) -> Number {
    let mut value = 0;
    for (place, &byte) in bytes[at..].iter().enumerate().take(11) {
        match byte {
            b'0'..=b'9' if place < 10 => value = value * 10 + usize::from(byte - b'0'),
            b'\r' if place > 0 => {
                return match bytes.get(at + place + 1) {
                    Some(b'\n') => Number::Is(value, at + place + 2),
                    Some(_) => Number::None,
                    None => Number::More,
                };
            }
            _ => return Number::None,
        }
    }
    Number::More
}

/// What people type: words with blanks between, until the end of the line.
fn line(bytes: &[u8], limit: usize) -> Heard<'_> {
    let Some(end) = bytes.iter().take(limit).position(|&byte| byte == b'\n') else {
        return if bytes.len() >= limit { Heard::Invalid(Fault::Size) } else { Heard::More };
    };
    let words: Words<'_> = bytes[..end].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    if words.len() > MOST_WORDS {
        Heard::Invalid(Fault::Words)
    } else if is_foreign(&words) {
        Heard::Invalid(Fault::Foreign)
    } else {
        Heard::Command(words, end + 1)
    }
}

/// Whether a line is the first of a request of HTTP, or one of its headers: `PRI * HTTP/2.0`, `Host: ids`.
fn is_foreign(words: &[&[u8]]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    words.first().is_some_and(|name| !name.iter().all(is_name))
        || words.last().is_some_and(|last| last.starts_with(b"HTTP/"))
}

/// A command that is answered here if its pool allows.
#[derive(Debug, PartialEq, Eq)]
pub enum Hot<'a> {
    /// `INCR namespace`.
    Incr(&'a [u8]),
    /// `INCRBY namespace count`, the count from 1 to 2^20.
    IncrBy(&'a [u8], u32),
    /// `PING`.
    Ping,
}

/// Whether a command is one of those.
#[inline(always)]
#[must_use]
pub fn hot<'a>(words: &[&'a [u8]]) -> Option<Hot<'a>> {
    match *words {
        [name, namespace] if name.eq_ignore_ascii_case(b"INCR") => Some(Hot::Incr(namespace)),
        [name, namespace, count] if name.eq_ignore_ascii_case(b"INCRBY") => {
            let digits = (1..=7).contains(&count.len()) && count.iter().all(u8::is_ascii_digit);
            let count = digits.then(|| count.iter().fold(0, |n, &digit| n * 10 + u32::from(digit - b'0')))?;
            (1..=1 << 20).contains(&count).then_some(Hot::IncrBy(namespace, count))
        }
        [name] if name.eq_ignore_ascii_case(b"PING") => Some(Hot::Ping),
        _ => None,
    }
}

/// Writes an integer reply.
#[inline(always)]
pub fn say_integer(reply: &mut Vec<u8>, value: u64) {
    reply.push(b':');
    reply.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    reply.extend_from_slice(b"\r\n");
}
