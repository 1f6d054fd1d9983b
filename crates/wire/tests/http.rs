//! A hot request is answered only where nothing about it is unusual.

use mintage_wire::http::{Answer, Heard, Request, Route, hear, say};
use proptest::prelude::*;

const LIMIT: usize = 65_536;
const ALLOC: &str = r#"{"serviceName":"orders","count":3}"#;

fn post(path: &str, headers: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: ids\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

fn heard(text: &str) -> Heard<'_> {
    hear(text.as_bytes(), "x-trace-id", LIMIT)
}

fn hot(text: &str) -> Option<Request<'_>> {
    match heard(text) {
        Heard::Hot(request) => Some(request),
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
fn requests_in_a_row_are_heard_one_by_one() {
    let one = post("/alloc", "", ALLOC);
    let two = one.repeat(2);
    assert_eq!(hot(&two).unwrap().used, one.len());
}

#[test]
fn whatever_is_unusual_is_left_to_the_server_behind() {
    let unusual = [
        post("/alloc", "", "").replace("POST", "GET"),
        post("/alloc", "", ALLOC).replace("1.1", "1.0"),
        post("/alloc?x=1", "", ALLOC),
        post("/alloc", "Transfer-Encoding: chunked\r\n", ALLOC),
        post("/alloc", "Expect: 100-continue\r\n", ALLOC),
        post("/alloc", "Connection: close\r\n", ALLOC),
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
        post("/alloc", "Proxy-Connection: close\r\n", ALLOC),
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
        assert_eq!(heard(&text), Heard::Other, "{text}");
    }
}

#[test]
fn an_endless_request_is_not_waited_for() {
    let endless = format!("POST /alloc HTTP/1.1\r\nHost: ids\r\nX: {}", "x".repeat(LIMIT));
    assert_eq!(heard(&endless), Heard::Other);
    let large = "POST /alloc HTTP/1.1\r\nHost: ids\r\nContent-Length: 999999999\r\n\r\n";
    assert_eq!(heard(large), Heard::Other);
}

#[test]
fn an_answer_is_idallocs_or_ours() {
    let answer = Answer { date: "D", trace_header: "x-trace-id", trace: b"t", now_ms: 7 };
    let said = |route| {
        let mut reply = Vec::new();
        say(&mut reply, route, "orders", [1, u64::MAX].into_iter(), &answer);
        String::from_utf8(reply).unwrap()
    };
    let body = r#"{"code":0,"msg":"OK","data":{"ids":[1,18446744073709551615]},"traceId":"t","ts":7}"#;
    let head = format!(
        "HTTP/1.1 200 OK\r\ndate: D\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: {}\r\nx-trace-id: t\r\n\r\n",
        body.len()
    );
    assert_eq!(said(Route::Alloc), head + body);
    assert!(said(Route::Next).ends_with("\r\n\r\n{\"namespace\":\"orders\",\"ids\":[\"1\",\"18446744073709551615\"]}"));
}

proptest! {
    #[test]
    fn a_part_of_a_hot_request_is_waited_for(cut: prop::sample::Index) {
        let text = post("/alloc", "X-Trace-Id: t-1\r\n", ALLOC);
        prop_assert_eq!(heard(&text[..cut.index(text.len())]), Heard::More);
    }

    #[test]
    fn any_bytes_are_borne(tail: Vec<u8>, limit in 0..400_usize) {
        let _ = hear(&tail, "x-trace-id", limit);
        for head in ["POST /alloc HTTP/1.1\r\n", "POST /v1/sequences/", "POST /alloc HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"] {
            let bytes = [head.as_bytes(), &tail].concat();
            if let Heard::Hot(request) = hear(&bytes, "x-trace-id", limit) {
                prop_assert!(request.used <= bytes.len().min(limit));
            }
        }
    }
}
