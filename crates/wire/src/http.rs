//! The two hot routes of HTTP/1.1 and HTTP/1.0: `POST /alloc` and `POST /v1/sequences/{namespace}:next`.
//!
//! A request is hot only if nothing about it is unusual. All others, wrong ones too, go to the HTTP server behind this
//! parser.

use serde::Deserialize;

/// The result of parsing the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// A complete hot request.
    Hot(Request<'a>),
    /// The beginning of what may become a hot request.
    Incomplete,
    /// Anything else.
    Other,
}

/// A hot request.
#[derive(Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The route.
    pub route: Route,
    /// The namespace.
    pub namespace: &'a str,
    /// The number of integers, at least 1.
    pub count: u32,
    /// The client's trace id, if it sent one.
    pub trace: Option<&'a [u8]>,
    /// The client's key, from its bearer token.
    pub key: Option<&'a [u8]>,
    /// The handling of the connection after the answer.
    pub connection: Connection,
    /// The bytes that the request took.
    pub used: usize,
}

/// The handling of a connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// HTTP/1.1 keeps it by default.
    Kept,
    /// A client of HTTP/1.0 asked to keep it; by default it waits for the end.
    SaidKept,
    /// It ends.
    Closed,
}

impl Connection {
    /// The header of the answer.
    fn header(self) -> &'static str {
        match self {
            Self::Kept => "",
            Self::SaidKept => "\r\nconnection: keep-alive",
            Self::Closed => "\r\nconnection: close",
        }
    }
}

/// A hot route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The route of idalloc's API.
    Alloc,
    /// The route of mintage's API.
    Next,
}

const ALLOC: &str = "/alloc";
const SEQUENCES: &str = "/v1/sequences/";
const PREFIXES: [&[u8]; 2] = [b"POST /alloc HTTP/1.", b"POST /v1/sequences/"];
/// The most integers in one response of idalloc's route.
pub const MAX_ALLOC_COUNT: u32 = 100;
/// The most bytes of a name on idalloc's route.
pub const MAX_ALLOC_NAME: usize = 64;
const MAX_HEADERS: usize = 32;

/// Parses the first request. A request has at most `limit` bytes. `trace_header` is the name of the header with the
/// trace id.
#[must_use]
pub fn parse<'a>(bytes: &'a [u8], trace_header: &str, limit: usize) -> Parsed<'a> {
    let is_beginning = |prefix: &&[u8]| bytes.iter().zip(*prefix).all(|(ours, theirs)| ours == theirs);
    if !PREFIXES.iter().any(is_beginning) {
        return Parsed::Other;
    }
    let incomplete = || if bytes.len() < limit { Parsed::Incomplete } else { Parsed::Other };
    let mut buffer = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut buffer);
    let head = match request.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return incomplete(),
        Err(_) => return Parsed::Other,
    };
    // httparse accepts a bare LF as the end of a line. If two servers disagree about that, a client can smuggle
    // requests.
    if memchr::memchr_iter(b'\n', &bytes[..head]).any(|at| bytes[..at].last() != Some(&b'\r')) {
        return Parsed::Other;
    }
    let Some(headers) = Headers::read(request.headers, trace_header) else { return Parsed::Other };
    let (Some(path), Some(version)) = (request.path, request.version) else { return Parsed::Other };
    let is_1_0 = version == 0;
    if !(headers.has_host || is_1_0) {
        return Parsed::Other;
    }
    let connection = match (headers.asks_close, headers.asks_keep, is_1_0) {
        (true, _, _) | (_, false, true) => Connection::Closed,
        (false, _, false) => Connection::Kept,
        (false, true, true) => Connection::SaidKept,
    };
    let used = head + headers.length;
    if used > limit {
        return Parsed::Other;
    }
    let Some(body) = bytes.get(head..used) else { return Parsed::Incomplete };
    let asked = if path == ALLOC {
        parse_alloc(body).map(|(namespace, count)| (Route::Alloc, namespace, count))
    } else {
        body.is_empty().then(|| parse_next(path)).flatten().map(|(namespace, count)| (Route::Next, namespace, count))
    };
    asked.map_or(Parsed::Other, |(route, namespace, count)| {
        Parsed::Hot(Request { route, namespace, count, trace: headers.trace, key: headers.key, connection, used })
    })
}

/// The values of the headers that matter here.
struct Headers<'a> {
    length: usize,
    trace: Option<&'a [u8]>,
    key: Option<&'a [u8]>,
    has_host: bool,
    asks_close: bool,
    asks_keep: bool,
}

impl<'a> Headers<'a> {
    fn read(headers: &[httparse::Header<'a>], trace_header: &str) -> Option<Self> {
        let mut found =
            Self { length: 0, trace: None, key: None, has_host: false, asks_close: false, asks_keep: false };
        let mut has_length = false;
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                let text = std::str::from_utf8(header.value).ok()?;
                let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
                if has_length || !is_number {
                    return None;
                }
                has_length = true;
                found.length = text.parse().ok()?;
            } else if is("host") {
                if found.has_host {
                    return None;
                }
                found.has_host = true;
            } else if is(trace_header) {
                // The server behind decides which of two is right.
                if found.trace.is_some() || !is_trace_id(header.value) {
                    return None;
                }
                found.trace = Some(header.value);
            } else if is("authorization") {
                if found.key.is_some() {
                    return None;
                }
                found.key = Some(header.value.strip_prefix(b"Bearer ")?);
            } else if is("connection") || is("proxy-connection") {
                if header.value.eq_ignore_ascii_case(b"close") {
                    found.asks_close = true;
                } else if header.value.eq_ignore_ascii_case(b"keep-alive") {
                    found.asks_keep = true;
                } else {
                    return None;
                }
            } else if is("transfer-encoding") || is("expect") || is("upgrade") || is("origin") {
                // `Origin` comes from a web page, which may not be a trusted one.
                return None;
            }
        }
        Some(found)
    }
}

/// Returns whether a client's trace id is valid: 1 to 128 letters, digits and `. _ : / + = -`. Responses repeat a valid
/// one.
#[must_use]
pub fn is_trace_id(value: &[u8]) -> bool {
    let is_valid = |byte: &u8| byte.is_ascii_alphanumeric() || b"._:/+=-".contains(byte);
    (1..=128).contains(&value.len()) && value.iter().all(is_valid)
}

/// The body of idalloc's request. idalloc also reads its members in another case; such bodies are left to the server
/// behind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Alloc<'a> {
    #[serde(rename = "serviceName")]
    service_name: &'a str,
    #[serde(default)]
    count: u32,
}

fn parse_alloc(body: &[u8]) -> Option<(&str, u32)> {
    // serde would accept a list of the two values as well.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    let Alloc { service_name, count } = serde_json::from_slice(body).ok()?;
    // idalloc trims the name and converts it to lower case.
    let is_plain = service_name.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase());
    let count = count.max(1);
    (is_plain && count <= MAX_ALLOC_COUNT && (1..=MAX_ALLOC_NAME).contains(&service_name.len()))
        .then_some((service_name, count))
}

fn parse_next(path: &str) -> Option<(&str, u32)> {
    let (namespace, query) = path.strip_prefix(SEQUENCES)?.split_once(":next")?;
    let count = match query {
        "" => 1,
        _ => {
            let digits = query.strip_prefix("?count=")?;
            let is_number = (1..=7).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse().ok()).flatten().filter(|&count| count > 0)?
        }
    };
    // No namespace has one of these in its name; the server behind decodes escapes.
    (!namespace.is_empty() && !namespace.bytes().any(|byte| b"/%?".contains(&byte))).then_some((namespace, count))
}

/// The fields of a response beside its integers.
#[derive(Debug)]
pub struct ResponseContext<'a> {
    /// The value of the `Date` header.
    pub date: &'a str,
    /// The name of the header with the trace id.
    pub trace_header: &'a str,
    /// The trace id, of characters that JSON needs no escapes for.
    pub trace: &'a [u8],
    /// The handling of the connection.
    pub connection: Connection,
    /// The time in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// Writes the response to a hot request, with at least one integer: idalloc's envelope, or mintage's. There the integers are
/// strings, as a number of JavaScript holds 53 bits.
pub fn write_response(
    reply: &mut Vec<u8>,
    route: Route,
    namespace: &str,
    integers: impl Iterator<Item = u64>,
    context: &ResponseContext<'_>,
) {
    let mut body = Vec::with_capacity(128);
    let content_type = match route {
        Route::Alloc => {
            body.extend_from_slice(br#"{"code":0,"msg":"OK","data":{"ids":["#);
            write_integers(&mut body, integers, b",");
            body.extend_from_slice(br#"]},"traceId":""#);
            body.extend_from_slice(context.trace);
            body.extend_from_slice(br#"","ts":"#);
            body.extend_from_slice(itoa::Buffer::new().format(context.now_ms).as_bytes());
            body.push(b'}');
            "application/json; charset=utf-8"
        }
        Route::Next => {
            for part in [r#"{"namespace":""#, namespace, r#"","ids":[""#] {
                body.extend_from_slice(part.as_bytes());
            }
            write_integers(&mut body, integers, br#"",""#);
            body.extend_from_slice(br#""]}"#);
            "application/json"
        }
    };
    write_message(reply, content_type, &body, context);
}

#[inline(always)]
fn write_integers(body: &mut Vec<u8>, integers: impl Iterator<Item = u64>, between: &[u8]) {
    let mut digits = itoa::Buffer::new();
    for (at, integer) in integers.enumerate() {
        if at > 0 {
            body.extend_from_slice(between);
        }
        body.extend_from_slice(digits.format(integer).as_bytes());
    }
}

/// Writes the head of a response, then its body.
fn write_message(reply: &mut Vec<u8>, content_type: &str, body: &[u8], context: &ResponseContext<'_>) {
    let mut digits = itoa::Buffer::new();
    let length = digits.format(body.len());
    let head = [
        "HTTP/1.1 200 OK\r\ndate: ",
        context.date,
        "\r\ncontent-type: ",
        content_type,
        "\r\ncontent-length: ",
        length,
        "\r\n",
        context.trace_header,
        ": ",
    ];
    for part in head {
        reply.extend_from_slice(part.as_bytes());
    }
    reply.extend_from_slice(context.trace);
    reply.extend_from_slice(context.connection.header().as_bytes());
    reply.extend_from_slice(b"\r\n\r\n");
    reply.extend_from_slice(body);
}
