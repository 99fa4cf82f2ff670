//! Heads and bodies of HTTP/1.1 as RFC 9110 and 9112 do not want them, and what becomes of each.
//!
//! Behind each comes a good request on the same connection, after which that ends: of what is refused the
//! connection ends, and nothing of it is ever taken for a request of its own.

use crate::tests::server::{KNOWN, Server, Setup};

/// Section, what is wrong, what is sent, the codes of the answers but the last one. `{H}` is what every
/// request has, `{P}` a POST whose body is read.
type Row = (&'static str, &'static str, &'static str, &'static str);

/// It is answered, and the connection goes on.
const HEADS: &[Row] = &[
    ("9112 2.2", "an empty line in front", "\r\nGET /version HTTP/1.1\r\n{H}\r\n", "200"),
    (
        "9112 2.2",
        "lines that end by LF alone, which may be taken",
        "GET /version HTTP/1.1\nHost: x\n\n",
        "200",
    ),
    ("9112 2.2", "CR alone in a value", "GET /version HTTP/1.1\r\n{H}A: b\rc\r\n\r\n", "400!"),
    ("9112 2.2", "CR alone ends a line", "GET /version HTTP/1.1\rHost: x\r\r", "400!"),
    ("9112 2.2", "a space in front of the first field", "GET /version HTTP/1.1\r\n A: b\r\n{H}\r\n", "400!"),
    ("9112 2.3", "HTTP/0.9", "GET /version\r\n\r\n", "400!"),
    ("9112 2.3", "a minor version of later", "GET /version HTTP/1.2\r\n{H}\r\n", "400!"),
    ("9112 2.3", "a major version of later", "GET /version HTTP/3.0\r\n{H}\r\n", "400!"),
    ("9112 2.3", "the name in small letters", "GET /version http/1.1\r\n{H}\r\n", "400!"),
    ("9112 2.3", "a version of two digits", "GET /version HTTP/1.10\r\n{H}\r\n", "400!"),
    (
        "9113 3.4",
        "HTTP/2 without ALPN, which hyper ends without a word",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "!",
    ),
    ("9112 3", "two spaces behind the method", "GET  /version HTTP/1.1\r\n{H}\r\n", "400!"),
    ("9112 3", "two spaces behind the target", "GET /version  HTTP/1.1\r\n{H}\r\n", "400!"),
    ("9112 3", "a tab behind the method", "GET\t/version HTTP/1.1\r\n{H}\r\n", "400!"),
    ("9112 3.1", "no method", " /version HTTP/1.1\r\n{H}\r\n", "400!"),
    ("9112 3.1", "a method that is no token", "G(T /version HTTP/1.1\r\n{H}\r\n", "400!"),
    ("9112 3.1", "a method that nobody knows", "FIND /version HTTP/1.1\r\n{H}\r\n", "405"),
    ("9112 3.1", "a method in small letters is another one", "get /version HTTP/1.1\r\n{H}\r\n", "405"),
    ("9110 9.3.8", "TRACE", "TRACE /version HTTP/1.1\r\n{H}\r\n", "405"),
    ("9112 3.2", "a space in the target", "GET /ver sion HTTP/1.1\r\n{H}\r\n", "400!"),
    ("9112 3.2", "a control in the target", "GET /ver\u{1}sion HTTP/1.1\r\n{H}\r\n", "400!"),
    ("9112 3.2", "a target beyond ASCII", "GET /vers\u{ef}on HTTP/1.1\r\n{H}\r\n", "400!"),
    ("9112 3.2", "a fragment, which no target has", "GET /version#a HTTP/1.1\r\n{H}\r\n", "200"),
    ("9112 3.2.1", "half a percent-escape", "GET /version%2 HTTP/1.1\r\n{H}\r\n", "400"),
    ("9112 3.2.1", "a target without a slash", "GET version HTTP/1.1\r\n{H}\r\n", "400!"),
    ("9112 3.2.2", "the absolute form", "GET http://x/version HTTP/1.1\r\n{H}\r\n", "200"),
    ("9112 3.2.2", "the absolute form of another host", "GET http://y/version HTTP/1.1\r\n{H}\r\n", "200"),
    ("9112 3.2.3", "the authority form of a GET", "GET x:443 HTTP/1.1\r\n{H}\r\n", "400!"),
    (
        "9112 3.2.3",
        "CONNECT, for which there is no route, as in kube-apiserver",
        "CONNECT x:443 HTTP/1.1\r\n{H}\r\n",
        "404",
    ),
    (
        "9112 3.2.4",
        "the asterisk of a GET, which is a path that nobody has",
        "GET * HTTP/1.1\r\n{H}\r\n",
        "404",
    ),
    ("9112 3.2.4", "the asterisk of OPTIONS", "OPTIONS * HTTP/1.1\r\n{H}\r\n", "404"),
    ("9112 3.2", "no Host", "GET /version HTTP/1.1\r\n\r\n", "400!"),
    ("9112 3.2", "two Hosts", "GET /version HTTP/1.1\r\nHost: y\r\n{H}\r\n", "400!"),
    ("9112 3.2", "the same Host twice", "GET /version HTTP/1.1\r\nHost: x\r\n{H}\r\n", "400!"),
    ("9112 3.2", "a Host with a space", "GET /version HTTP/1.1\r\nHost: x y\r\n\r\n", "400!"),
    ("9112 3.2", "a Host with a path", "GET /version HTTP/1.1\r\nHost: x/y\r\n\r\n", "400!"),
    ("9112 3.2", "a Host with a user", "GET /version HTTP/1.1\r\nHost: u@x\r\n\r\n", "400!"),
    ("9112 3.2", "two Hosts in one line", "GET /version HTTP/1.1\r\nHost: x, y\r\n\r\n", "400!"),
    ("9110 7.2", "an empty Host", "GET /version HTTP/1.1\r\nHost:\r\n\r\n", "200"),
    ("9110 7.2", "a Host of IPv6 and a port", "GET /version HTTP/1.1\r\nHost: [::1]:443\r\n\r\n", "200"),
    ("9112 3.2", "HTTP/1.0 without Host", "GET /version HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "200"),
    ("9112 5.1", "a space in front of the colon", "GET /version HTTP/1.1\r\n{H}A : b\r\n\r\n", "400!"),
    (
        "9112 5.1",
        "Host with a space in front of the colon",
        "GET /version HTTP/1.1\r\nHost : x\r\n\r\n",
        "400!",
    ),
    ("9112 5.2", "a line that goes on (obs-fold)", "GET /version HTTP/1.1\r\n{H}A: b\r\n c\r\n\r\n", "400!"),
    ("9112 5", "a line without a colon", "GET /version HTTP/1.1\r\n{H}A\r\n\r\n", "400!"),
    ("9110 5.1", "a field without a name", "GET /version HTTP/1.1\r\n{H}: b\r\n\r\n", "400!"),
    ("9110 5.1", "a name that is no token", "GET /version HTTP/1.1\r\n{H}A(: b\r\n\r\n", "400!"),
    ("9110 5.1", "a name beyond ASCII", "GET /version HTTP/1.1\r\n{H}\u{e4}: b\r\n\r\n", "400!"),
    ("9110 5.5", "NUL in a value", "GET /version HTTP/1.1\r\n{H}A: b\0c\r\n\r\n", "400!"),
    ("9110 5.5", "a control in a value", "GET /version HTTP/1.1\r\n{H}A: b\u{1}c\r\n\r\n", "400!"),
    ("9110 5.5", "DEL in a value", "GET /version HTTP/1.1\r\n{H}A: b\u{7f}c\r\n\r\n", "400!"),
    ("9110 5.5", "a value beyond ASCII", "GET /version HTTP/1.1\r\n{H}A: \u{e4}\r\n\r\n", "200"),
    ("9110 5.5", "a value of nothing but space", "GET /version HTTP/1.1\r\n{H}A:  \t \r\n\r\n", "200"),
    (
        "9110 7.8",
        "an upgrade that is not spoken",
        "GET /version HTTP/1.1\r\n{H}Upgrade: h2c\r\nConnection: upgrade\r\n\r\n",
        "200",
    ),
    (
        "9112 9.3.2",
        "three requests at once",
        "GET /version HTTP/1.1\r\n{H}\r\nGET /livez HTTP/1.1\r\n{H}\r\nGET /nothing HTTP/1.1\r\n{H}\r\n",
        "200 200 404",
    ),
    (
        "9112 9.6",
        "more behind a request that is to be the last",
        "GET /version HTTP/1.1\r\n{H}Connection: close\r\n\r\nGET /version HTTP/1.1\r\n{H}\r\n",
        "200!",
    ),
];

const BODIES: &[Row] = &[
    ("9112 6.3", "a POST without a length has no body", "{P}\r\n", "400"),
    ("9112 6.2", "a length and a body", "{P}Content-Length: 2\r\n\r\n{}", "201"),
    ("9110 8.6", "a length with spaces around", "{P}Content-Length:  2 \r\n\r\n{}", "201"),
    ("9110 8.6", "a length with zeros in front", "{P}Content-Length: 0002\r\n\r\n{}", "201"),
    ("9112 6.3", "two lengths that differ", "{P}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "400!"),
    (
        "9112 6.3",
        "the same length twice, which may be taken",
        "{P}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        "201",
    ),
    (
        "9110 8.6",
        "the same length twice in a line, which may be taken",
        "{P}Content-Length: 2, 2\r\n\r\n{}",
        "400!",
    ),
    ("9110 8.6", "two lengths in a line", "{P}Content-Length: 2, 3\r\n\r\n{}", "400!"),
    ("9110 8.6", "a length with a sign", "{P}Content-Length: +2\r\n\r\n{}", "400!"),
    ("9110 8.6", "a length below nothing", "{P}Content-Length: -2\r\n\r\n{}", "400!"),
    ("9110 8.6", "a length in hexadecimal digits", "{P}Content-Length: 0x2\r\n\r\n{}", "400!"),
    ("9110 8.6", "a length with a fraction", "{P}Content-Length: 2.0\r\n\r\n{}", "400!"),
    ("9110 8.6", "an empty length", "{P}Content-Length:\r\n\r\n{}", "400!"),
    ("9110 8.6", "2^64 bytes", "{P}Content-Length: 18446744073709551616\r\n\r\n{}", "400!"),
    (
        "9110 8.6",
        "2^64 - 1 bytes, by which hyper knows what has no length",
        "{P}Content-Length: 18446744073709551615\r\n\r\n{}",
        "431!",
    ),
    (
        "9110 9.3.1",
        "a GET with a body, which is not taken for a request",
        "GET /version HTTP/1.1\r\n{H}Content-Length: 18\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        "200",
    ),
    (
        "9110 9.3.1",
        "a GET with a body of chunks",
        "GET /version HTTP/1.1\r\n{H}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "200",
    ),
    ("9112 6.1", "chunks", "{P}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "201"),
    (
        "9112 6.1",
        "chunks in large letters",
        "{P}Transfer-Encoding: CHUNKED\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "201",
    ),
    (
        "9112 6.1",
        "a length, then chunks, which count; the connection ends then, as it must",
        "{P}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "201!",
    ),
    (
        "9112 6.1",
        "chunks, then a length",
        "{P}Transfer-Encoding: chunked\r\nContent-Length: 12\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "201!",
    ),
    (
        "9112 6.1",
        "chunks in HTTP/1.0",
        "POST /version HTTP/1.0\r\n{H}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "400!",
    ),
    ("9112 6.1", "a coding alone that is not known", "{P}Transfer-Encoding: gzip\r\n\r\n{}", "400!"),
    (
        "9112 6.1",
        "a coding below the chunks",
        "{P}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "501!",
    ),
    (
        "9112 6.1",
        "a coding below the chunks in a line of its own",
        "{P}Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "501!",
    ),
    (
        "9112 6.1",
        "a coding above the chunks",
        "{P}Transfer-Encoding: chunked, gzip\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "400!",
    ),
    (
        "9112 6.1",
        "chunks twice",
        "{P}Transfer-Encoding: chunked, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "501!",
    ),
    (
        "9112 6.1",
        "chunks in two lines",
        "{P}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "501!",
    ),
    ("9112 6.1", "chunks as nothing", "{P}Transfer-Encoding: identity\r\n\r\n{}", "400!"),
    (
        "9112 6.1",
        "what ends like chunks",
        "{P}Transfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "400!",
    ),
    (
        "9112 6.1",
        "chunks behind a vertical tab",
        "{P}Transfer-Encoding: \u{b}chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "400!",
    ),
    (
        "9112 6.1",
        "chunks with a parameter",
        "{P}Transfer-Encoding: chunked;a=b\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "400!",
    ),
    (
        "9112 7.1",
        "a size with zeros in front",
        "{P}Transfer-Encoding: chunked\r\n\r\n0002\r\n{}\r\n000\r\n\r\n",
        "201",
    ),
    (
        "9112 7.1",
        "a space behind a size",
        "{P}Transfer-Encoding: chunked\r\n\r\n2 \r\n{}\r\n0\r\n\r\n",
        "201",
    ),
    (
        "9112 7.1",
        "a size in other digits",
        "{P}Transfer-Encoding: chunked\r\n\r\ng\r\n{}\r\n0\r\n\r\n",
        "400!",
    ),
    (
        "9112 7.1",
        "a size with 0x in front",
        "{P}Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
        "400!",
    ),
    ("9112 7.1", "a size with a sign", "{P}Transfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n", "400!"),
    (
        "9112 7.1",
        "a size below nothing",
        "{P}Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
        "400!",
    ),
    ("9112 7.1", "no size", "{P}Transfer-Encoding: chunked\r\n\r\n\r\n{}\r\n0\r\n\r\n", "400!"),
    (
        "9112 7.1",
        "a size of 2^64",
        "{P}Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n{}\r\n0\r\n\r\n",
        "400!",
    ),
    (
        "9112 7.1",
        "a size that is 2 but for 2^64",
        "{P}Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\n{}\r\n0\r\n\r\n",
        "400!",
    ),
    (
        "9112 7.1",
        "a chunk without its end of line",
        "{P}Transfer-Encoding: chunked\r\n\r\n2\r\n{}0\r\n\r\n",
        "400!",
    ),
    (
        "9112 7.1",
        "a chunk that is longer than its size",
        "{P}Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
        "400!",
    ),
    (
        "9112 7.1",
        "a size whose line ends by LF alone",
        "{P}Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n",
        "400!",
    ),
    (
        "9112 7.1",
        "a chunk whose line ends by LF alone",
        "{P}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\n0\r\n\r\n",
        "400!",
    ),
    (
        "9112 7.1",
        "a size whose line ends by CR alone",
        "{P}Transfer-Encoding: chunked\r\n\r\n2\r{}\r\n0\r\n\r\n",
        "400!",
    ),
    (
        "9112 7.1.1",
        "an extension",
        "{P}Transfer-Encoding: chunked\r\n\r\n2;a=\"b\"\r\n{}\r\n0;c\r\n\r\n",
        "201",
    ),
    (
        "9112 7.1.1",
        "an extension that ends by LF alone",
        "{P}Transfer-Encoding: chunked\r\n\r\n2;a\n{}\r\n0\r\n\r\n",
        "400!",
    ),
    ("9112 7.1.2", "a trailer", "{P}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nA: b\r\n\r\n", "201"),
    (
        "9112 7.1.2",
        "a trailer that no trailer may be, and is dropped",
        "{P}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nContent-Length: 9\r\nImpersonate-User: x\r\n\r\n",
        "201",
    ),
    (
        "9112 7.1.2",
        "a trailer that is none",
        "{P}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nA\r\n\r\n",
        "400!",
    ),
    (
        "9110 10.1.1",
        "who waits to be asked for the body",
        "{P}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
        "100 201",
    ),
    (
        "9110 10.1.1",
        "who waits, in large letters",
        "{P}Expect: 100-CONTINUE\r\nContent-Length: 2\r\n\r\n{}",
        "100 201",
    ),
    ("9110 10.1.1", "who waits without a body", "{P}Expect: 100-continue\r\n\r\n", "400"),
    (
        "9110 10.1.1",
        "who expects what nobody knows",
        "{P}Expect: 200-ok\r\nContent-Length: 2\r\n\r\n{}",
        "201",
    ),
    (
        "9110 10.1.1",
        "who waits over HTTP/1.0, which cannot",
        "POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.0\r\n{H}Connection: keep-alive\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
        "201",
    ),
    (
        "9110 10.1.1",
        "who waits and is refused, and sends its body all the same: that is read and dropped",
        "POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
        "401",
    ),
];

#[tokio::test]
async fn heads_of_http1_are_held_against_the_rfcs() {
    check(HEADS).await;
}

#[tokio::test]
async fn bodies_of_http1_are_held_against_the_rfcs() {
    check(BODIES).await;
}

/// Lines that would not stand in a table.
#[tokio::test]
async fn heads_of_http1_are_as_long_as_they_may_be() {
    let server = Server::start(Setup::default()).await;
    let fields = |count: usize| "A: b\r\n".repeat(count);
    let get = |target: &str, more: &str| format!("GET {target} HTTP/1.1\r\nHost: x\r\n{more}\r\n");
    let mut wrong = Vec::new();
    for (what, sent, want) in [
        ("as many fields as there may be", get("/version", &fields(99)), "200"),
        ("a field more", get("/version", &fields(100)), "431!"),
        ("a long field", get("/version", &format!("A: {}\r\n", "b".repeat(60 << 10))), "200"),
        ("a longer one", get("/version", &format!("A: {}\r\n", "b".repeat(70 << 10))), "431!"),
        ("a long target", get(&format!("/version?{}", "a".repeat(60 << 10)), ""), "200"),
        ("a longer one", get(&format!("/version?{}", "a".repeat(70 << 10)), ""), "431!"),
    ] {
        wrong.extend(differs(&server, what, &sent, want).await);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

async fn check(rows: &[Row]) {
    let server = Server::start(Setup::default()).await;
    let mut wrong = Vec::new();
    for (section, what, sent, want) in rows {
        wrong.extend(differs(&server, &format!("RFC {section}: {what}"), sent, want).await);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What is not as it should be.
///
/// - `want`: the codes; with `!` the connection ends then.
async fn differs(server: &Server, what: &str, sent: &str, want: &str) -> Option<String> {
    let own = format!("Host: x\r\n{KNOWN}");
    let post = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\n{H}";
    let last = "GET /version HTTP/1.1\r\n{H}Connection: close\r\n\r\n";
    let sent = format!("{sent}{last}").replace("{P}", post).replace("{H}", &own);
    // Letters beyond ASCII stand for one byte each.
    let bytes: Vec<u8> = sent.chars().map(|letter| letter as u8).collect();
    let got = server.codes(&bytes).await;
    let want = want.strip_suffix('!').map_or_else(|| format!("{want} 200"), str::to_string);
    (got != want).then(|| format!("{what}: {got:?}, not {want:?}: {:?}", &sent[..sent.len().min(200)]))
}
