//! Commands of the Redis protocol: arrays of bulk strings, or one line of words.
//!
//! <https://redis.io/docs/latest/develop/reference/protocol-spec/>

use smallvec::SmallVec;

/// The words of a command; the first is its name.
pub type Words<'a> = SmallVec<[&'a [u8]; 4]>;

/// The most words of a command. Those of the service have seven; others are refused by name, not by length.
pub const MAX_WORDS: usize = 1024;

/// The result of parsing the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// A complete command, and the bytes that it took. An empty line is a command of no words.
    Command(Words<'a>, usize),
    /// The beginning of a command.
    Incomplete,
    /// Bytes that no command begins with.
    Invalid(Fault),
}

/// The reason why bytes are no command. After such bytes, the start of the next command is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A number of words in range does not follow `*`.
    Words,
    /// A bulk string does not begin with `$`.
    Dollar,
    /// A length in range does not follow `$`.
    Length,
    /// A bulk string does not end with CR LF.
    End,
    /// The command is longer than the limit.
    Size,
    /// A line belongs to another protocol, such as HTTP or TLS. No later line may be executed as a command.
    Foreign,
}

/// Parses the first command. A command has at most `limit` bytes.
#[must_use]
pub fn parse(bytes: &[u8], limit: usize) -> Parsed<'_> {
    match bytes.first() {
        None => Parsed::Incomplete,
        Some(b'*') => parse_array(bytes, limit),
        Some(byte) if byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() => parse_line(bytes, limit),
        Some(_) => Parsed::Invalid(Fault::Foreign),
    }
}

fn parse_array(bytes: &[u8], limit: usize) -> Parsed<'_> {
    let incomplete = || if bytes.len() > limit { Parsed::Invalid(Fault::Size) } else { Parsed::Incomplete };
    let (count, mut at) = match parse_number(bytes, 1) {
        Number::Value(count, at) if count <= MAX_WORDS => (count, at),
        Number::Incomplete => return incomplete(),
        _ => return Parsed::Invalid(Fault::Words),
    };
    let mut words = Words::new();
    for _ in 0..count {
        match bytes.get(at) {
            None => return incomplete(),
            Some(b'$') => {}
            Some(_) => return Parsed::Invalid(Fault::Dollar),
        }
        let (length, start) = match parse_number(bytes, at + 1) {
            Number::Value(length, start) if length <= limit => (length, start),
            Number::Value(..) => return Parsed::Invalid(Fault::Size),
            Number::Incomplete => return incomplete(),
            Number::Invalid => return Parsed::Invalid(Fault::Length),
        };
        let end = start + length;
        if end + 2 > limit {
            return Parsed::Invalid(Fault::Size);
        }
        let Some(tail) = bytes.get(end..end + 2) else { return Parsed::Incomplete };
        if tail != b"\r\n" {
            return Parsed::Invalid(Fault::End);
        }
        words.push(&bytes[start..end]);
        at = end + 2;
    }
    Parsed::Command(words, at)
}

/// The result of parsing the digits of a length.
enum Number {
    /// Its value, and the start of the next line.
    Value(usize, usize),
    /// The beginning of a number.
    Incomplete,
    /// Anything else.
    Invalid,
}

/// Parses the digits from `at` to CR LF: ten at most, so that nothing overflows.
#[inline(always)]
fn parse_number(bytes: &[u8], at: usize) -> Number {
    let mut value = 0;
    for (place, &byte) in bytes[at..].iter().enumerate().take(11) {
        match byte {
            b'0'..=b'9' if place < 10 => value = value * 10 + usize::from(byte - b'0'),
            b'\r' if place > 0 => {
                return match bytes.get(at + place + 1) {
                    Some(b'\n') => Number::Value(value, at + place + 2),
                    Some(_) => Number::Invalid,
                    None => Number::Incomplete,
                };
            }
            _ => return Number::Invalid,
        }
    }
    Number::Incomplete
}

/// Parses an inline command: words with blanks between them, until the end of the line.
fn parse_line(bytes: &[u8], limit: usize) -> Parsed<'_> {
    let Some(end) = bytes.iter().take(limit).position(|&byte| byte == b'\n') else {
        return if bytes.len() >= limit { Parsed::Invalid(Fault::Size) } else { Parsed::Incomplete };
    };
    let words: Words<'_> = bytes[..end].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    if words.len() > MAX_WORDS {
        Parsed::Invalid(Fault::Words)
    } else if is_foreign(&words) {
        Parsed::Invalid(Fault::Foreign)
    } else {
        Parsed::Command(words, end + 1)
    }
}

/// Returns whether a line is the first of an HTTP request or one of its headers: `PRI * HTTP/2.0`, `Host: ids`.
fn is_foreign(words: &[&[u8]]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    words.first().is_some_and(|name| !name.iter().all(is_name))
        || words.last().is_some_and(|last| last.starts_with(b"HTTP/"))
}

/// A command that the lane answers while the namespace has buffered integers.
#[derive(Debug, PartialEq, Eq)]
pub enum Hot<'a> {
    /// `INCR namespace`.
    Incr(&'a [u8]),
    /// `INCRBY namespace count`, the count from 1 to 2^20.
    IncrBy(&'a [u8], u32),
    /// `PING`.
    Ping,
}

/// Returns the hot command that these words make; `None` if they make another.
#[inline(always)]
#[must_use]
pub fn hot<'a>(words: &[&'a [u8]]) -> Option<Hot<'a>> {
    match *words {
        [name, namespace] if name.eq_ignore_ascii_case(b"INCR") => Some(Hot::Incr(namespace)),
        [name, namespace, count] if name.eq_ignore_ascii_case(b"INCRBY") => {
            let is_number = (1..=7).contains(&count.len()) && count.iter().all(u8::is_ascii_digit);
            let count = is_number.then(|| count.iter().fold(0, |n, &digit| n * 10 + u32::from(digit - b'0')))?;
            (1..=1 << 20).contains(&count).then_some(Hot::IncrBy(namespace, count))
        }
        [name] if name.eq_ignore_ascii_case(b"PING") => Some(Hot::Ping),
        _ => None,
    }
}

/// Writes an integer reply.
#[inline(always)]
pub fn write_integer(reply: &mut Vec<u8>, value: u64) {
    reply.push(b':');
    reply.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    reply.extend_from_slice(b"\r\n");
}
