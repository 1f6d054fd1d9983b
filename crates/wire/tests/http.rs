//! The parser of HTTP takes a hot request only if nothing about it is unusual.

use mintage_wire::http::{Connection, Parsed, Request, ResponseContext, Route, parse, write_response};
use proptest::prelude::*;

const LIMIT: usize = 65_536;
const ALLOC: &str = r#"{"serviceName":"orders","count":3}"#;

fn post(path: &str, headers: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: ids\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

fn parsed(text: &str) -> Parsed<'_> {
    parse(text.as_bytes(), "x-trace-id", LIMIT)
}

fn hot(text: &str) -> Option<Request<'_>> {
    match parsed(text) {
        Parsed::Hot(request) => Some(request),
        _ => None,
    }
}

#[test]
fn both_routes_are_hot() {
    let alloc = post("/alloc", "X-Trace-Id: t-1\r\nAuthorization: Bearer mint_k\r\nAccept: */*\r\n", ALLOC);
    let request = hot(&alloc).unwrap();
    assert_eq!((request.route, request.namespace, request.count), (Route::Alloc, "orders", 3));
    assert_eq!(
        (request.trace, request.key, request.used),
        (Some(b"t-1".as_slice()), Some(b"mint_k".as_slice()), alloc.len())
    );

    let next = "POST /v1/sequences/a.b:c:next?count=12 HTTP/1.1\r\nhost: ids\r\n\r\n";
    let request = hot(next).unwrap();
    assert_eq!((request.route, request.namespace, request.count), (Route::Next, "a.b:c", 12));
    assert_eq!(hot(&post("/v1/sequences/orders:next", "", "")).unwrap().count, 1);
    assert_eq!(hot(&post("/alloc", "", r#"{"serviceName":"orders"}"#)).unwrap().count, 1);
    assert_eq!(hot(&post("/alloc", "", r#"{"count":0,"serviceName":"orders"}"#)).unwrap().count, 1);
}

#[test]
fn connection_ends_where_rfc_9112_says_so() {
    let cases = [
        ("1.1", "", Connection::Kept),
        ("1.1", "connection: KEEP-ALIVE\r\n", Connection::Kept),
        ("1.1", "Connection: Close\r\n", Connection::Closed),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", Connection::Closed),
        ("1.1", "Proxy-Connection: close\r\n", Connection::Closed),
        ("1.0", "", Connection::Closed),
        ("1.0", "Connection: close\r\n", Connection::Closed),
        ("1.0", "Connection: Keep-Alive\r\n", Connection::SaidKept),
        ("1.0", "Connection: close\r\nConnection: keep-alive\r\n", Connection::Closed),
    ];
    for (version, headers, connection) in cases {
        let alloc = post("/alloc", headers, ALLOC).replace("1.1", version);
        assert_eq!(hot(&alloc).unwrap().connection, connection, "{version} {headers}");
    }
    let alloc = post("/alloc", "", ALLOC).replace("1.1\r\nHost: ids", "1.0");
    assert_eq!(hot(&alloc).unwrap().connection, Connection::Closed, "it need not name its host");
}

#[test]
fn answer_says_what_becomes_of_the_connection() {
    let answer = |connection| {
        let mut reply = Vec::new();
        let context = ResponseContext { date: "now", trace_header: "x-trace-id", trace: b"t", connection, now_ms: 1 };
        write_response(&mut reply, Route::Next, "orders", [7].into_iter(), &context);
        String::from_utf8(reply).unwrap()
    };
    assert!(!answer(Connection::Kept).contains("connection"));
    assert!(answer(Connection::SaidKept).contains("x-trace-id: t\r\nconnection: keep-alive\r\n\r\n{"));
    assert!(answer(Connection::Closed).contains("x-trace-id: t\r\nconnection: close\r\n\r\n{"));
}

#[test]
fn pipelined_requests_are_parsed_one_by_one() {
    let one = post("/alloc", "", ALLOC);
    let two = one.repeat(2);
    assert_eq!(hot(&two).unwrap().used, one.len());
}

#[test]
fn an_unusual_request_is_left_to_the_server_behind() {
    let unusual = [
        post("/alloc", "", "").replace("POST", "GET"),
        post("/alloc", "", ALLOC).replace("1.1", "1.2"),
        post("/alloc?x=1", "", ALLOC),
        post("/alloc", "Transfer-Encoding: chunked\r\n", ALLOC),
        post("/alloc", "Expect: 100-continue\r\n", ALLOC),
        post("/alloc", "Connection: close, keep-alive\r\n", ALLOC),
        post("/alloc", "Connection: Upgrade\r\n", ALLOC),
        post("/alloc", "Upgrade: h2c\r\n", ALLOC),
        post("/alloc", "Origin: http://127.0.0.1\r\n", ALLOC),
        post("/alloc", "Content-Length: 34\r\n", ALLOC),
        post("/alloc", "", ALLOC).replace("Content-Length: 34", "Content-Length: +34"),
        post("/alloc", "Host: again\r\n", ALLOC),
        post("/alloc", "", ALLOC).replace("Host: ids\r\n", ""),
        post("/alloc", "Authorization: Basic OmtleQ==\r\n", ALLOC),
        post("/alloc", "X-Trace-Id: a\r\nX-Trace-Id: b\r\n", ALLOC),
        post("/alloc", "X-Trace-Id: not one\r\n", ALLOC),
        post("/alloc", &format!("X-Trace-Id: {}\r\n", "t".repeat(129)), ALLOC),
        post("/alloc", "Accept: */*\n", ALLOC),
        post("/alloc", "", ALLOC).replace("\r\n\r\n", "\n\n"),
        post("/v1/sequences/orders:next", "", "").replace("1.1\r\n", "1.1\n"),
        post("/alloc", "", "not json"),
        post("/alloc", "", r#"["orders",3]"#),
        post("/alloc", "", r#"{"serviceName":"Orders"}"#),
        post("/alloc", "", r#"{"serviceName":" orders"}"#),
        post("/alloc", "", r#"{"servicename":"orders"}"#),
        post("/alloc", "", r#"{"serviceName":"or\u0064ers"}"#),
        post("/alloc", "", r#"{"serviceName":"orders","count":101}"#),
        post("/alloc", "", r#"{"serviceName":"orders","count":-1}"#),
        post("/alloc", "", r#"{"serviceName":"orders","count":1.0}"#),
        post("/alloc", "", r#"{"serviceName":"orders","serviceName":"other"}"#),
        post("/v1/sequences/orders:reserve", "", ""),
        post("/v1/sequences/orders:next", "", "{}"),
        post("/v1/sequences/:next", "", ""),
        post("/v1/sequences/a%2Fb:next", "", ""),
        post("/v1/sequences/a/b:next", "", ""),
        post("/v1/sequences/orders:next?count=0", "", ""),
        post("/v1/sequences/orders:next?count=1&count=2", "", ""),
        post("/v1/sequences/orders:next?count=99999999", "", ""),
        "GET / HTTP/1.1\r\n".to_owned(),
    ];
    for text in unusual {
        assert_eq!(parsed(&text), Parsed::Other, "{text}");
    }
}

#[test]
fn a_request_beyond_the_limit_is_left_to_the_server_behind() {
    let endless = format!("POST /alloc HTTP/1.1\r\nHost: ids\r\nX: {}", "x".repeat(LIMIT));
    assert_eq!(parsed(&endless), Parsed::Other);
    let large = "POST /alloc HTTP/1.1\r\nHost: ids\r\nContent-Length: 999999999\r\n\r\n";
    assert_eq!(parsed(large), Parsed::Other);
}

#[test]
fn each_route_has_its_own_envelope() {
    let context =
        ResponseContext { date: "D", trace_header: "x-trace-id", trace: b"t", connection: Connection::Kept, now_ms: 7 };
    let written = |route| {
        let mut reply = Vec::new();
        write_response(&mut reply, route, "orders", [1, u64::MAX].into_iter(), &context);
        String::from_utf8(reply).unwrap()
    };
    let body = r#"{"code":0,"msg":"OK","data":{"ids":[1,18446744073709551615]},"traceId":"t","ts":7}"#;
    let head = format!(
        "HTTP/1.1 200 OK\r\ndate: D\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: {}\r\nx-trace-id: t\r\n\r\n",
        body.len()
    );
    assert_eq!(written(Route::Alloc), head + body);
    assert!(
        written(Route::Next).ends_with("\r\n\r\n{\"namespace\":\"orders\",\"ids\":[\"1\",\"18446744073709551615\"]}")
    );
}

proptest! {
    #[test]
    fn a_prefix_of_a_hot_request_is_incomplete(cut: prop::sample::Index) {
        let text = post("/alloc", "X-Trace-Id: t-1\r\n", ALLOC);
        prop_assert_eq!(parsed(&text[..cut.index(text.len())]), Parsed::Incomplete);
    }

    #[test]
    fn no_bytes_make_the_parser_panic_or_read_past_the_limit(tail: Vec<u8>, limit in 0..400_usize) {
        let _ = parse(&tail, "x-trace-id", limit);
        for head in ["POST /alloc HTTP/1.1\r\n", "POST /v1/sequences/", "POST /alloc HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"] {
            let bytes = [head.as_bytes(), &tail].concat();
            if let Parsed::Hot(request) = parse(&bytes, "x-trace-id", limit) {
                prop_assert!(request.used <= bytes.len().min(limit));
            }
        }
    }
}
