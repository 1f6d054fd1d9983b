//! The two hot routes of HTTP/1.1: `POST /alloc` and `POST /v1/sequences/{namespace}:next`.
//!
//! A request is hot only if nothing about it is unusual; all others, wrong ones too, go to the HTTP server behind.

use serde::Deserialize;

/// What stands at the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// A whole hot request.
    Hot(Request<'a>),
    /// The beginning of what may become one.
    More,
    /// Anything else.
    Other,
}

/// A hot request.
#[derive(Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// What it asks for.
    pub route: Route,
    /// Of which namespace.
    pub namespace: &'a str,
    /// How many integers, at least 1.
    pub count: u32,
    /// The client's trace id, where it is a good one.
    pub trace: Option<&'a [u8]>,
    /// The key that it brings as a bearer.
    pub key: Option<&'a [u8]>,
    /// How many bytes it took.
    pub used: usize,
}

/// Which of the routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// idalloc's.
    Alloc,
    /// mintage's.
    Next,
}

const ALLOC: &str = "/alloc";
const SEQUENCES: &str = "/v1/sequences/";
const PREFIXES: [&[u8]; 2] = [b"POST /alloc HTTP/1.1\r\n", b"POST /v1/sequences/"];
/// The most integers that idalloc gives out at once.
pub const MOST_ALLOC: u32 = 100;
/// The most bytes of a name that idalloc takes.
pub const MOST_ALLOC_NAME: usize = 64;
const MOST_HEADERS: usize = 32;

/// Finds the first request. `limit` is the most bytes that one may have, `trace_header` the name of the header with the
/// trace id.
#[must_use]
pub fn hear<'a>(bytes: &'a [u8], trace_header: &str, limit: usize) -> Heard<'a> {
    let begins = |prefix: &&[u8]| bytes.iter().zip(*prefix).all(|(ours, theirs)| ours == theirs);
    if !PREFIXES.iter().any(begins) {
        return Heard::Other;
    }
    let more = || if bytes.len() < limit { Heard::More } else { Heard::Other };
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let head = match request.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return more(),
        Err(_) => return Heard::Other,
    };
    // httparse takes a bare LF for the end of a line. Where servers disagree, requests can be smuggled.
    if memchr::memchr_iter(b'\n', &bytes[..head]).any(|at| bytes[..at].last() != Some(&b'\r')) {
        return Heard::Other;
    }
    let Some(heads) = Heads::read(request.headers, trace_header) else { return Heard::Other };
    let (Some(path), Some(1)) = (request.path, request.version) else { return Heard::Other };
    let used = head + heads.length;
    if used > limit {
        return Heard::Other;
    }
    let Some(body) = bytes.get(head..used) else { return Heard::More };
    let asked = if path == ALLOC {
        alloc(body).map(|(namespace, count)| (Route::Alloc, namespace, count))
    } else {
        body.is_empty().then(|| next(path)).flatten().map(|(namespace, count)| (Route::Next, namespace, count))
    };
    asked.map_or(Heard::Other, |(route, namespace, count)| {
        Heard::Hot(Request { route, namespace, count, trace: heads.trace, key: heads.key, used })
    })
}

/// What the headers say.
struct Heads<'a> {
    length: usize,
    trace: Option<&'a [u8]>,
    key: Option<&'a [u8]>,
}

impl<'a> Heads<'a> {
    fn read(headers: &[httparse::Header<'a>], trace_header: &str) -> Option<Self> {
        let mut heads = Self { length: 0, trace: None, key: None };
        let (mut has_length, mut has_host) = (false, false);
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                let text = std::str::from_utf8(header.value).ok()?;
                let digits = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
                if has_length || !digits {
                    return None;
                }
                has_length = true;
                heads.length = text.parse().ok()?;
            } else if is("host") {
                if has_host {
                    return None;
                }
                has_host = true;
            } else if is(trace_header) {
                // Where there are two, the server behind decides.
                if heads.trace.is_some() || !is_trace(header.value) {
                    return None;
                }
                heads.trace = Some(header.value);
            } else if is("authorization") {
                if heads.key.is_some() {
                    return None;
                }
                heads.key = Some(header.value.strip_prefix(b"Bearer ")?);
            } else if is("connection") || is("proxy-connection") {
                if !header.value.eq_ignore_ascii_case(b"keep-alive") {
                    return None;
                }
            } else if is("transfer-encoding") || is("expect") || is("upgrade") || is("origin") {
                // Of a web page, which may not be one that we trust.
                return None;
            }
        }
        has_host.then_some(heads)
    }
}

/// Whether a client's trace id is one that is echoed: 1 to 128 letters, digits and `. _ : / + = -`.
#[must_use]
pub fn is_trace(value: &[u8]) -> bool {
    let good = |byte: &u8| byte.is_ascii_alphanumeric() || b"._:/+=-".contains(byte);
    (1..=128).contains(&value.len()) && value.iter().all(good)
}

/// Exactly these members: others may be theirs in another case, which idalloc takes too.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Alloc<'a> {
    #[serde(rename = "serviceName")]
    service_name: &'a str,
    #[serde(default)]
    count: u32,
}

fn alloc(body: &[u8]) -> Option<(&str, u32)> {
    // serde would take a list of the two values as well.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    let Alloc { service_name, count } = serde_json::from_slice(body).ok()?;
    // idalloc trims the name and writes it in small letters.
    let plain = service_name.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase());
    let count = count.max(1);
    (plain && count <= MOST_ALLOC && (1..=MOST_ALLOC_NAME).contains(&service_name.len()))
        .then_some((service_name, count))
}

fn next(path: &str) -> Option<(&str, u32)> {
    let (namespace, query) = path.strip_prefix(SEQUENCES)?.split_once(":next")?;
    let count = match query {
        "" => 1,
        _ => {
            let digits = query.strip_prefix("?count=")?;
            let good = (1..=7).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
            good.then(|| digits.parse().ok()).flatten().filter(|&count| count > 0)?
        }
    };
    // No name of a namespace has one of these; escapes are read by the server behind.
    (!namespace.is_empty() && !namespace.bytes().any(|byte| b"/%?".contains(&byte))).then_some((namespace, count))
}

/// What an answer says beside the integers.
#[derive(Debug)]
pub struct Answer<'a> {
    /// The time in the form of the header `Date`.
    pub date: &'a str,
    /// The name of the header with the trace id.
    pub trace_header: &'a str,
    /// The trace id: of characters that JSON needs no escapes for.
    pub trace: &'a [u8],
    /// The time in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// Writes the answer to a hot request.
pub fn say(
    reply: &mut Vec<u8>,
    route: Route,
    namespace: &str,
    integers: impl Iterator<Item = u64>,
    answer: &Answer<'_>,
) {
    let mut body = Vec::with_capacity(128);
    let mut digits = itoa::Buffer::new();
    match route {
        Route::Alloc => body.extend_from_slice(br#"{"code":0,"msg":"OK","data":{"ids":["#),
        Route::Next => {
            for part in [r#"{"namespace":""#, namespace, r#"","ids":["#] {
                body.extend_from_slice(part.as_bytes());
            }
        }
    }
    for (at, integer) in integers.enumerate() {
        if at > 0 {
            body.push(b',');
        }
        let digits = digits.format(integer).as_bytes();
        // A number of JavaScript's holds 53 bits, so only idalloc's clients get numbers.
        match route {
            Route::Alloc => body.extend_from_slice(digits),
            Route::Next => {
                body.push(b'"');
                body.extend_from_slice(digits);
                body.push(b'"');
            }
        }
    }
    let kind = match route {
        Route::Alloc => {
            body.extend_from_slice(br#"]},"traceId":""#);
            body.extend_from_slice(answer.trace);
            body.extend_from_slice(br#"","ts":"#);
            body.extend_from_slice(digits.format(answer.now_ms).as_bytes());
            body.push(b'}');
            "application/json; charset=utf-8"
        }
        Route::Next => {
            body.extend_from_slice(b"]}");
            "application/json"
        }
    };
    let length = digits.format(body.len());
    let head = [
        "HTTP/1.1 200 OK\r\ndate: ",
        answer.date,
        "\r\ncontent-type: ",
        kind,
        "\r\ncontent-length: ",
        length,
        "\r\n",
        answer.trace_header,
        ": ",
    ];
    for part in head {
        reply.extend_from_slice(part.as_bytes());
    }
    reply.extend_from_slice(answer.trace);
    reply.extend_from_slice(b"\r\n\r\n");
    reply.extend_from_slice(&body);
}
