//! Frames and fields of HTTP/2 as RFC 9113 does not want them, and what becomes of each.
//!
//! Behind each comes a good request, so that it shows whether the connection goes on. Where h2 says another
//! error than the RFC, or takes what it might refuse, the row says so: it is harmless, as no intermediary
//! hears of it.

use super::frames::*;
use crate::tests::server::{Server, Setup};

/// The request that comes last.
const LAST: u32 = 101;

/// Section, what is wrong, the frames, and what is said, but for the answer to the last request; with `!`
/// that has none, as the connection is over.
type Row = (&'static str, &'static str, Vec<u8>, &'static str);

const OPEN: u8 = END_HEADERS;
const WHOLE: u8 = END_HEADERS | END_STREAM;
const POST: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

fn headers(flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, flags, 1, &block(fields))
}

/// A GET with `more` behind what every request has.
fn with(more: &[(&str, &str)]) -> Vec<u8> {
    headers(WHOLE, &[&fields("GET", "/version")[..], more].concat())
}

/// A GET without one of its fields.
fn without(name: &str) -> Vec<u8> {
    let mut all = fields("GET", "/version");
    all.retain(|field| field.0 != name);
    headers(WHOLE, &all)
}

/// A POST that is open for its body, with `more`.
fn post(more: &[(&str, &str)]) -> Vec<u8> {
    headers(OPEN, &[&fields("POST", POST)[..], more].concat())
}

fn data(flags: u8, bytes: &[u8]) -> Vec<u8> {
    frame(DATA, flags, 1, bytes)
}

/// A whole block of fields as it is on the wire.
fn raw(bytes: &[u8]) -> Vec<u8> {
    frame(HEADERS, WHOLE, 1, bytes)
}

fn settings(id: u16, value: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, &setting(id, value))
}

fn frames_rows() -> Vec<Row> {
    let get = || block(&fields("GET", "/version"));
    let both = |first: Vec<u8>, second: Vec<u8>| [first, second].concat();
    vec![
        ("4.1", "a frame of a kind that nobody knows", frame(0xfa, 0xff, 1, b"?"), ""),
        ("4.1", "flags that nobody knows", frame(PING, 0xfe, 0, &[0; 8]), ""),
        ("4.1", "the reserved bit of a stream's number", frame(HEADERS, WHOLE, 1 | 1 << 31, &get()), "1:200"),
        (
            "4.2",
            "a frame that is too large",
            frame(DATA, 0, 1, &[0; (16 << 10) + 1]),
            "GOAWAY FRAME_SIZE_ERROR!",
        ),
        (
            "4.3",
            "HPACK: the index 0 (h2 says PROTOCOL_ERROR for COMPRESSION_ERROR)",
            raw(&[0x80]),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        ("4.3", "HPACK: an index that is not there", raw(&[0xff, 0x80, 1]), "GOAWAY PROTOCOL_ERROR!"),
        (
            "4.3",
            "HPACK: an index without an end",
            raw(&[&[0xff][..], &[0xff; 12]].concat()),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        ("4.3", "HPACK: a text longer than the block", raw(&[0, 5, b'a']), "GOAWAY PROTOCOL_ERROR!"),
        (
            "4.3",
            "HPACK: Huffman's code with an end in it",
            raw(&[0, 0x84, 0xff, 0xff, 0xff, 0xff]),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "4.3",
            "HPACK: a table larger than was allowed",
            raw(&[0x3f, 0xff, 0xff, 3]),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        ("5.1", "DATA of a stream that was not begun", data(0, b"x"), "GOAWAY PROTOCOL_ERROR!"),
        (
            "5.1",
            "a reset of a stream that was not begun",
            frame(RST_STREAM, 0, 1, &[0; 4]),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "5.1",
            "room for a stream that was not begun",
            frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "5.1",
            "DATA behind the end of a stream (h2 says PROTOCOL_ERROR for STREAM_CLOSED)",
            both(with(&[]), data(END_STREAM, b"x")),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "5.1",
            "HEADERS behind the end of a stream (the same)",
            both(with(&[]), with(&[])),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        ("5.1.1", "a stream with an even number", frame(HEADERS, WHOLE, 2, &get()), "GOAWAY PROTOCOL_ERROR!"),
        (
            "5.1.1",
            "a stream with a lower number than the last",
            both(get_on(5), get_on(3)),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        ("6.1", "DATA of the connection", frame(DATA, 0, 0, b"x"), "GOAWAY PROTOCOL_ERROR!"),
        (
            "6.1",
            "DATA that is padding",
            both(post(&[]), data(PADDED | END_STREAM, &[5, 0, 0])),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        ("6.1", "DATA with padding", both(post(&[]), data(PADDED | END_STREAM, b"\x03{}\0\0\0")), "1:201"),
        ("6.2", "HEADERS of the connection", frame(HEADERS, WHOLE, 0, &get()), "GOAWAY PROTOCOL_ERROR!"),
        (
            "6.2",
            "HEADERS that are padding",
            frame(HEADERS, WHOLE | PADDED, 1, &[9, 0x82]),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "6.2",
            "HEADERS too short for their priority (h2 says PROTOCOL_ERROR for FRAME_SIZE_ERROR)",
            frame(HEADERS, WHOLE | PRIORITIZED, 1, &[0; 3]),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "5.3.2",
            "HEADERS that depend on themselves, which is deprecated",
            frame(HEADERS, WHOLE | PRIORITIZED, 1, &[&[0, 0, 0, 1, 16][..], &get()].concat()),
            "1:PROTOCOL_ERROR",
        ),
        (
            "6.2",
            "a PING within a block of fields",
            both(frame(HEADERS, END_STREAM, 1, &get()), frame(PING, 0, 0, &[0; 8])),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "6.2",
            "HEADERS of another stream within a block",
            both(frame(HEADERS, END_STREAM, 1, &get()), get_on(3)),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "6.2",
            "an unknown frame within a block",
            both(frame(HEADERS, END_STREAM, 1, &get()), frame(0xfa, 0, 1, b"?")),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        ("6.3", "PRIORITY of the connection", frame(PRIORITY, 0, 0, &[0; 5]), "GOAWAY PROTOCOL_ERROR!"),
        (
            "6.3",
            "PRIORITY of another length (h2 ends the connection, not the stream)",
            frame(PRIORITY, 0, 1, &[0; 4]),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        ("6.3", "PRIORITY of a stream that was not begun", frame(PRIORITY, 0, 7, &[0, 0, 0, 1, 16]), ""),
        ("6.4", "a reset of the connection", frame(RST_STREAM, 0, 0, &[0; 4]), "GOAWAY PROTOCOL_ERROR!"),
        (
            "6.4",
            "a reset of another length (h2 says PROTOCOL_ERROR for FRAME_SIZE_ERROR)",
            both(post(&[]), frame(RST_STREAM, 0, 1, &[0; 3])),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        ("6.5", "SETTINGS of a stream", frame(SETTINGS, 0, 1, &[]), "GOAWAY PROTOCOL_ERROR!"),
        (
            "6.5",
            "SETTINGS of five bytes (h2 says PROTOCOL_ERROR for FRAME_SIZE_ERROR)",
            frame(SETTINGS, 0, 0, &[0; 5]),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "6.5",
            "an acknowledgement that says something (the same)",
            frame(SETTINGS, ACK, 0, &[0; 6]),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "6.5",
            "two acknowledgements of one",
            both(frame(SETTINGS, ACK, 0, &[]), frame(SETTINGS, ACK, 0, &[])),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        ("6.5.2", "a setting that nobody knows", settings(0xfafa, 7), ""),
        ("6.5.2", "ENABLE_PUSH of 2", settings(2, 2), "GOAWAY PROTOCOL_ERROR!"),
        (
            "6.5.2",
            "INITIAL_WINDOW_SIZE of 2^31 (h2 says PROTOCOL_ERROR for FLOW_CONTROL_ERROR)",
            settings(4, 1 << 31),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        ("6.5.2", "MAX_FRAME_SIZE below 16 KiB", settings(5, (16 << 10) - 1), "GOAWAY PROTOCOL_ERROR!"),
        ("6.5.2", "MAX_FRAME_SIZE of 2^24", settings(5, 1 << 24), "GOAWAY PROTOCOL_ERROR!"),
        (
            "6.6",
            "a client that promises",
            frame(PUSH_PROMISE, END_HEADERS, 1, &[&[0, 0, 0, 2][..], &get()].concat()),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "6.7",
            "a PING of seven bytes (h2 says PROTOCOL_ERROR for FRAME_SIZE_ERROR)",
            frame(PING, 0, 0, &[0; 7]),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        ("6.7", "a PING of a stream", frame(PING, 0, 1, &[0; 8]), "GOAWAY PROTOCOL_ERROR!"),
        ("6.7", "an answer to no PING", frame(PING, ACK, 0, &[7; 8]), ""),
        ("6.8", "GOAWAY of a stream", frame(GOAWAY, 0, 1, &[0; 8]), "GOAWAY PROTOCOL_ERROR!"),
        ("6.8", "GOAWAY, and more requests", frame(GOAWAY, 0, 0, &[0; 8]), ""),
        ("6.8", "half a GOAWAY", frame(GOAWAY, 0, 0, &[0; 7]), "GOAWAY PROTOCOL_ERROR!"),
        (
            "6.9",
            "no more room for the connection",
            frame(WINDOW_UPDATE, 0, 0, &[0; 4]),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "6.9",
            "no more room for a stream (h2 ends the connection, not the stream)",
            both(post(&[]), frame(WINDOW_UPDATE, 0, 1, &[0; 4])),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "6.9",
            "room in three bytes (h2 says PROTOCOL_ERROR for FRAME_SIZE_ERROR)",
            frame(WINDOW_UPDATE, 0, 0, &[0, 0, 1]),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "6.9.1",
            "more room than there can be",
            frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            "GOAWAY FLOW_CONTROL_ERROR!",
        ),
        (
            "6.9.1",
            "more room than a stream can have",
            both(post(&[]), frame(WINDOW_UPDATE, 0, 1, &[0x7f, 0xff, 0xff, 0xff])),
            "1:FLOW_CONTROL_ERROR",
        ),
        (
            "6.9.1",
            "more DATA than there is room for",
            [post(&[("content-type", "no/such")]), data(0, &[b' '; 16 << 10]).repeat(4), data(0, b"  ")]
                .concat(),
            "GOAWAY FLOW_CONTROL_ERROR!",
        ),
        (
            "6.10",
            "CONTINUATION of nothing",
            frame(CONTINUATION, END_HEADERS, 1, &get()),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "6.10",
            "CONTINUATION of the connection",
            both(frame(HEADERS, END_STREAM, 1, &get()), frame(CONTINUATION, END_HEADERS, 0, &[])),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "6.10",
            "CONTINUATION of another stream",
            both(frame(HEADERS, END_STREAM, 1, &get()), frame(CONTINUATION, END_HEADERS, 3, &[])),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "6.10",
            "CONTINUATION behind the end of a block",
            both(with(&[]), frame(CONTINUATION, END_HEADERS, 1, &[])),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        (
            "6.10",
            "a block in two frames",
            both(
                frame(HEADERS, END_STREAM, 1, &get()[..7]),
                frame(CONTINUATION, END_HEADERS, 1, &get()[7..]),
            ),
            "1:200",
        ),
    ]
}

fn get_on(stream: u32) -> Vec<u8> {
    get(stream, "/version")
}

fn fields_rows() -> Vec<Row> {
    let twice = |name: &'static str, value: &'static str| {
        headers(WHOLE, &[&[(name, value)][..], &fields("GET", "/version")].concat())
    };
    let trailers = |flags: u8, fields: &[(&str, &str)]| {
        [post(&[]), data(0, b"{}"), frame(HEADERS, flags, 1, &block(fields))].concat()
    };
    let body = |more: &[(&str, &str)], bytes: &[u8]| [post(more), data(END_STREAM, bytes)].concat();
    vec![
        ("8.1", "a body", body(&[], b"{}"), "1:201"),
        ("8.1", "trailers", trailers(WHOLE, &[("a", "b")]), "1:201"),
        ("8.1", "trailers that do not end the stream", trailers(OPEN, &[("a", "b")]), "1:PROTOCOL_ERROR"),
        (
            "8.1",
            "a pseudo-field among trailers, which are dropped",
            trailers(WHOLE, &[(":path", "/x")]),
            "1:201",
        ),
        (
            "8.1",
            "a trailer that no trailer may be, and is dropped",
            trailers(WHOLE, &[("impersonate-user", "x")]),
            "1:201",
        ),
        (
            "8.1.1",
            "a body that is shorter than its length",
            body(&[("content-length", "3")], b"{}"),
            "1:PROTOCOL_ERROR",
        ),
        (
            "8.1.1",
            "a body that is longer than its length",
            body(&[("content-length", "1")], b"{}"),
            "1:PROTOCOL_ERROR",
        ),
        ("8.1.1", "a length without a body", with(&[("content-length", "2")]), "1:PROTOCOL_ERROR"),
        ("8.1.1", "a length of nothing without a body", with(&[("content-length", "0")]), "1:200"),
        ("8.1.1", "a length that is none", body(&[("content-length", "2x")], b"{}"), "1:PROTOCOL_ERROR"),
        (
            "8.1.1",
            "two lengths that differ",
            body(&[("content-length", "2"), ("content-length", "3")], b"{}"),
            "1:PROTOCOL_ERROR",
        ),
        (
            "8.2.1",
            "a name in large letters (h2 ends the connection, not the stream)",
            with(&[("Accept", "x")]),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        ("8.2.1", "a name with a space (the same)", with(&[("a b", "x")]), "GOAWAY PROTOCOL_ERROR!"),
        ("8.2.1", "a name with a colon (the same)", with(&[("a:b", "x")]), "GOAWAY PROTOCOL_ERROR!"),
        ("8.2.1", "a name beyond ASCII (the same)", with(&[("ä", "x")]), "GOAWAY PROTOCOL_ERROR!"),
        ("8.2.1", "no name (the same)", with(&[("", "x")]), "GOAWAY PROTOCOL_ERROR!"),
        ("8.2.1", "NUL in a value (the same)", with(&[("a", "b\0c")]), "GOAWAY PROTOCOL_ERROR!"),
        ("8.2.1", "CR in a value (the same)", with(&[("a", "b\rc")]), "GOAWAY PROTOCOL_ERROR!"),
        ("8.2.1", "LF in a value (the same)", with(&[("a", "b\nc: d")]), "GOAWAY PROTOCOL_ERROR!"),
        ("8.2.1", "LF in the path", headers(WHOLE, &fields("GET", "/version\nx")), "1:PROTOCOL_ERROR"),
        ("8.2.1", "a space in front of a value (h2 takes it)", with(&[("a", " b")]), "1:200"),
        ("8.2.2", "Connection", with(&[("connection", "close")]), "1:PROTOCOL_ERROR"),
        ("8.2.2", "Transfer-Encoding", body(&[("transfer-encoding", "chunked")], b"{}"), "1:PROTOCOL_ERROR"),
        ("8.2.2", "Keep-Alive", with(&[("keep-alive", "x")]), "1:PROTOCOL_ERROR"),
        ("8.2.2", "Proxy-Connection", with(&[("proxy-connection", "x")]), "1:PROTOCOL_ERROR"),
        ("8.2.2", "Upgrade", with(&[("upgrade", "x")]), "1:PROTOCOL_ERROR"),
        ("8.2.2", "TE of anything but trailers", with(&[("te", "gzip")]), "1:PROTOCOL_ERROR"),
        ("8.2.2", "TE of trailers", with(&[("te", "trailers")]), "1:200"),
        (
            "8.3",
            "a pseudo-field that nobody knows (the same)",
            with(&[(":foo", "x")]),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        ("8.3", "a pseudo-field of answers", twice(":status", "200"), "1:PROTOCOL_ERROR"),
        ("8.3", "a pseudo-field behind the others", with(&[(":path", "/livez")]), "1:PROTOCOL_ERROR"),
        ("8.3", "two methods", twice(":method", "GET"), "1:PROTOCOL_ERROR"),
        ("8.3", "two paths", twice(":path", "/livez"), "1:PROTOCOL_ERROR"),
        ("8.3.1", "two authorities", twice(":authority", "y"), "1:PROTOCOL_ERROR"),
        ("8.3.1", "no method", without(":method"), "1:PROTOCOL_ERROR"),
        ("8.3.1", "no scheme", without(":scheme"), "1:PROTOCOL_ERROR"),
        ("8.3.1", "no path", without(":path"), "1:PROTOCOL_ERROR"),
        ("8.3.1", "an empty path", headers(WHOLE, &fields("GET", "")), "1:PROTOCOL_ERROR"),
        ("8.3.1", "a path without a slash", headers(WHOLE, &fields("GET", "version")), "1:PROTOCOL_ERROR"),
        ("8.3.1", "a path with a space", headers(WHOLE, &fields("GET", "/ver sion")), "1:PROTOCOL_ERROR"),
        ("8.3.1", "no authority, which may be", without(":authority"), "1:200"),
        (
            "8.3.1",
            "an authority with a user (h2 takes it: no host has a meaning here)",
            headers(
                WHOLE,
                &[(":method", "GET"), (":scheme", "https"), (":path", "/version"), (":authority", "u@x")],
            ),
            "1:200",
        ),
        ("8.3.1", "a Host that is the authority", with(&[("host", "127.0.0.1")]), "1:200"),
        (
            "8.3.1",
            "a Host that is not the authority (taken, as by kube-apiserver: no host has a meaning here)",
            with(&[("host", "other")]),
            "1:200",
        ),
        ("8.3.1", "two Hosts (the same)", with(&[("host", "127.0.0.1"), ("host", "127.0.0.1")]), "1:200"),
        (
            "8.3.1",
            "a method that is no token (the same)",
            headers(WHOLE, &fields("G(T", "/version")),
            "GOAWAY PROTOCOL_ERROR!",
        ),
        ("8.5", "CONNECT with a path", headers(WHOLE, &fields("CONNECT", "/version")), "1:PROTOCOL_ERROR"),
        (
            "8.5",
            "CONNECT with a protocol that was not offered",
            headers(OPEN, &[&[(":protocol", "websocket")][..], &fields("CONNECT", "/version")].concat()),
            "1:PROTOCOL_ERROR",
        ),
    ]
}

#[tokio::test]
async fn frames_of_http2_are_held_against_the_rfc() {
    check(frames_rows()).await;
}

#[tokio::test]
async fn fields_of_http2_are_held_against_the_rfc() {
    check(fields_rows()).await;
}

#[tokio::test]
async fn an_http2_connection_begins_as_the_rfc_has_it() {
    let server = Server::start(Setup::default()).await;
    let begin = |first: Vec<u8>| [PREFACE, &first, &get_on(LAST)].concat();
    let mut wrong = Vec::new();
    for (what, sent, want) in [
        ("as it should", begin(frame(SETTINGS, 0, 0, &setting(1, 0))), "101:200"),
        (
            "with a PING in front of the settings, which h2 takes",
            begin(frame(PING, 0, 0, &[0; 8])),
            "101:200",
        ),
        (
            "with another preface",
            [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r"[..], &begin(Vec::new())].concat(),
            "end",
        ),
        ("as HTTP/1.1", b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), "end"),
    ] {
        let mut frames = Frames::open(&server).await;
        frames.send(&sent).await.expect("open");
        let said = frames.said_until(LAST).await.join(" ");
        if said != want {
            wrong.push(format!("{what}: {said}, not {want}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

async fn check(rows: Vec<Row>) {
    let server = Server::start(Setup::default()).await;
    let mut wrong = Vec::new();
    for (section, what, sent, want) in rows {
        let mut frames = Frames::begin(&server).await;
        // What is refused half-way is not written to any more.
        let _refused = frames.send(&[sent, get_on(LAST)].concat()).await;
        let mut said = frames.said_until(LAST).await;
        // It may be answered later than what came behind it.
        if want.starts_with("1:")
            && !said.iter().any(|one| one.starts_with("1:") || one.starts_with("GOAWAY"))
        {
            said.extend(frames.said_until(1).await);
        }
        said.sort_by_key(|one| {
            one.split(':').next().and_then(|stream| stream.parse().ok()).unwrap_or(u32::MAX)
        });
        let said = said.join(" ");
        let want = match want.strip_suffix('!') {
            Some(want) => want.to_owned(),
            None => format!("{want} 101:200").trim_start().to_owned(),
        };
        if said != want {
            wrong.push(format!("RFC 9113, {section}: {what}: {said}, not {want}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
