//! A watch over WebSocket, as kube-apiserver v1.36.3 answers the same requests.

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::common::{Client, Protocol, Scratch, Server, WAIT, rv};
use crate::{CONFIG_MAPS, churn, open_watches};

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PONG: u8 = 0x8a;

/// An upgraded connection, or the refusal.
struct WebSocket {
    stream: TlsStream<TcpStream>,
    head: String,
    buffer: Vec<u8>,
}

impl WebSocket {
    async fn ask(client: &Client, path: &str, headers: &[(&str, &str)]) -> WebSocket {
        let mut all = vec![
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("Sec-WebSocket-Version", "13"),
            ("Origin", "http://localhost"),
        ];
        for (name, value) in headers {
            all.retain(|(known, _)| known != name);
            all.push((name, value));
        }
        let lines = all.iter().filter(|(_, value)| !value.is_empty());
        let lines: String = lines.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let mut stream = client.raw(256 << 10).await;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut socket = WebSocket { stream, head: String::new(), buffer: Vec::new() };
        let end = loop {
            if let Some(end) = socket.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            assert!(socket.more().await, "no head");
        };
        let head: Vec<u8> = socket.buffer.drain(..end).collect();
        socket.head = String::from_utf8(head).expect("text").to_lowercase();
        socket
    }

    /// An upgrade that must be granted.
    async fn open(client: &Client, path: &str, headers: &[(&str, &str)]) -> WebSocket {
        let socket = WebSocket::ask(client, path, headers).await;
        assert!(socket.head.starts_with("http/1.1 101 switching protocols"), "{}", socket.head);
        assert!(socket.head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="));
        socket
    }

    async fn more(&mut self) -> bool {
        let mut piece = vec![0; 16 << 10];
        let read = timeout(WAIT, self.stream.read(&mut piece)).await.expect("in time");
        let read = read.unwrap_or(0);
        self.buffer.extend_from_slice(&piece[..read]);
        read > 0
    }

    /// The next message, its first byte before it; `None` at the end.
    async fn message(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            let len = match self.buffer.get(1).copied() {
                Some(126) => self.buffer.get(2..4).map(|len| (4, u64::from(len[0]) << 8 | u64::from(len[1]))),
                Some(127) => self
                    .buffer
                    .get(2..10)
                    .map(|len| (10, len.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)))),
                Some(len) => Some((2, u64::from(len))),
                None => None,
            };
            if let Some((from, len)) = len
                && self.buffer.len() as u64 >= from as u64 + len
            {
                let message: Vec<u8> = self.buffer.drain(..from + len as usize).collect();
                return Some((message[0], message[from..].to_vec()));
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// The next event in JSON, which must come: a text that is a line.
    async fn event(&mut self) -> Value {
        let (head, text) = self.message().await.expect("an event");
        assert_eq!((head, text.last()), (TEXT, Some(&b'\n')));
        serde_json::from_slice(&text).expect("JSON")
    }

    async fn say(&mut self, head: &[u8], payload: &[u8]) {
        let masked: Vec<u8> = payload.iter().map(|byte| byte ^ 0x5a).collect();
        self.stream.write_all(&[head, &[0x5a; 4], &masked].concat()).await.expect("sent");
    }

    async fn is_closed_with(&mut self, code: u16) {
        assert_eq!(self.message().await, Some((CLOSE, code.to_be_bytes().to_vec())));
        assert_eq!(self.message().await, None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_is_a_message() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let (admin, http1) = (server.admin().await, server.admin_over(Protocol::Http1).await);
    churn(&admin, CONFIG_MAPS, "c", 1, 1).await;
    let path = format!("{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name=c");
    let mut text = WebSocket::open(&http1, &format!("{path}&allowWatchBookmarks=true"), &[]).await;
    assert!(!text.head.contains("sec-websocket-protocol"), "{}", text.head);
    let object = admin.get(&format!("{CONFIG_MAPS}/c")).await.expect(200);
    assert_eq!(text.event().await, serde_json::json!({"type": "ADDED", "object": object}));
    let end = text.event().await;
    assert_eq!(end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    // Long ones have a longer head; many come one by one.
    let newest = churn(&admin, CONFIG_MAPS, "c", 70_000, 30).await;
    let mut last = rv(&object);
    while last < newest {
        let event = text.event().await;
        assert_eq!(event["type"], "MODIFIED");
        assert!(rv(&event["object"]) > last);
        last = rv(&event["object"]);
    }
    // One protocol is granted, whatever it is, and changes nothing.
    let proto =
        [("Accept", "application/vnd.kubernetes.protobuf"), ("Sec-WebSocket-Protocol", "binary.k8s.io")];
    let mut binary = WebSocket::open(&http1, &path, &proto).await;
    assert!(binary.head.contains("sec-websocket-protocol: binary.k8s.io"), "{}", binary.head);
    let (head, message) = binary.message().await.expect("an event");
    assert_eq!((head, message.get(..7)), (BINARY, Some(b"\x0a\x05ADDED".as_slice())));
    let table = [("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let mut table = WebSocket::open(&http1, &path, &table).await;
    assert_eq!(table.event().await["object"]["kind"], "Table");
    assert_eq!(open_watches(&admin).await, 3);
    drop((text, binary, table));
    while open_watches(&admin).await > 0 {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_ends_with_a_goodbye() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let (admin, http1) = (server.admin().await, server.admin_over(Protocol::Http1).await);
    let now = churn(&admin, CONFIG_MAPS, "c", 1, 1).await;
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={now}");
    // The end of its time.
    WebSocket::open(&http1, &format!("{path}&timeoutSeconds=1"), &[]).await.is_closed_with(1000).await;
    // The client's own goodbye, behind a ping and something that nobody asked for.
    let mut polite = WebSocket::open(&http1, &path, &[]).await;
    polite.say(b"\x89\x82", b"hi").await;
    assert_eq!(polite.message().await, Some((PONG, b"hi".to_vec())));
    polite.say(b"\x81\xfe\x01\x00", &[b'x'; 256]).await;
    polite.say(b"\x88\x82", &1000u16.to_be_bytes()).await;
    polite.is_closed_with(1000).await;
    let mut unmasked = WebSocket::open(&http1, &path, &[]).await;
    unmasked.stream.write_all(b"\x81\x01a").await.expect("sent");
    unmasked.is_closed_with(1002).await;
    // What is too old is said in the stream.
    let fresh = format!(
        "{CONFIG_MAPS}?watch=1&resourceVersion={now}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    );
    let mut fresh = WebSocket::open(&http1, &fresh, &[]).await;
    assert_eq!(fresh.event().await["type"], "ADDED");
    while open_watches(&admin).await > 1 {}
    // The server's.
    server.terminate();
    fresh.is_closed_with(1000).await;
    assert_eq!(server.ended().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_makes_no_sense_is_refused() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["--token-auth-file", &tokens(&scratch)]).await;
    let http1 = server.admin_over(Protocol::Http1).await;
    let path = format!("{CONFIG_MAPS}?watch=1");
    for (path, name, value, want) in [
        (path.as_str(), "Origin", "", "403 forbidden"),
        (&path, "Origin", "localhost", "403 forbidden"),
        (&path, "Sec-WebSocket-Key", "", "400 bad request"),
        (&path, "Sec-WebSocket-Version", "8", "400 bad request"),
        (&path, "Sec-WebSocket-Protocol", "a, b", "400 bad request"),
        (&format!("{path}&resourceVersion=x"), "Accept", "*/*", "500 internal server error"),
        (&format!("{path}&sendInitialEvents=true"), "Accept", "*/*", "422 unprocessable entity"),
        // Not a watch.
        (CONFIG_MAPS, "Accept", "*/*", "200 ok"),
    ] {
        let refused = WebSocket::ask(&http1, path, &[(name, value)]).await;
        assert!(refused.head.starts_with(&format!("http/1.1 {want}")), "{name} {value}: {}", refused.head);
    }
    // A browser has no other place for its token.
    let nobody = server.client(Protocol::Http1, crate::common::Identity::Nobody).await;
    let token = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
    for (protocols, want) in
        [(format!("{token}, v1"), "101"), (token.to_owned(), "403"), ("v1".to_owned(), "403")]
    {
        let answered = WebSocket::ask(&nobody, &path, &[("Sec-WebSocket-Protocol", &protocols)]).await;
        assert!(answered.head.starts_with(&format!("http/1.1 {want}")), "{protocols}: {}", answered.head);
        assert!(!answered.head.contains(token));
    }
}

fn tokens(scratch: &Scratch) -> String {
    scratch.file("tokens.csv", "secret,browser,uid,system:masters\n").display().to_string()
}
