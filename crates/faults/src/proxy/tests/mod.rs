//! What each kind of fault looks like to a client, with a small server behind the proxy.

mod client;
mod server;

use std::future::Future;
use std::time::Duration;

use expect_test::{Expect, expect};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use self::client::{COMES_MAX, Client, Open, Protocol};
use self::server::Server;
use super::Proxy;
use crate::fault::Fault;

const LIST: &str = "/api/v1/namespaces/a/configmaps";
const WATCH: &str = "/api/v1/namespaces/a/configmaps?watch=true&resourceVersion=7";
const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// Long enough for what must not come to come on most machines; a slow one proves less, and fails nothing.
const NOT_SOONER: Duration = Duration::from_millis(50);

/// A server, a proxy in front of it, and a client with a watch that has begun.
struct Stage {
    server: Server,
    proxy: Proxy,
    protocol: Protocol,
    client: Client,
    watch: Open,
}

impl Stage {
    async fn set(protocol: Protocol, accept: &str) -> Stage {
        let server = Server::start().await;
        let upstream = server.upstream.clone();
        let proxy = tokio::task::spawn_blocking(|| Proxy::start(upstream)).await.unwrap().unwrap();
        let mut client = Client::connect(proxy.port(), proxy.authority(), protocol).await.unwrap();
        let mut watch = client.get(WATCH, accept).await.unwrap();
        for what in ["FIRST", "BOOKMARK"] {
            let told = watch.next().await;
            assert!(told.contains(what), "{told}");
        }
        Stage { server, proxy, protocol, client, watch }
    }

    async fn connect(&self) -> Result<Client, String> {
        Client::connect(self.proxy.port(), self.proxy.authority(), self.protocol).await
    }

    /// What a new client sees.
    async fn anew(&self) -> String {
        // The port closes and opens soon, not at once.
        let closed = self.proxy.state.subscribe().borrow().now().is_some_and(Fault::closes_the_port);
        let connected = loop {
            let connected = self.connect().await;
            if connected.as_ref().is_err_and(|why| why == "refused") == closed {
                break connected;
            }
            tokio::task::yield_now().await;
        };
        let mut client = match connected {
            Ok(client) => client,
            Err(why) => return why,
        };
        let mut seen = Vec::new();
        for (what, path) in [("list", LIST), ("list", LIST), ("watch", WATCH), ("watch", WATCH)] {
            seen.push(match client.get(path, JSON).await {
                Ok(mut open) if open.status == "200" => format!("{what} 200: {}", open.next().await),
                Ok(open) => format!("{what} {}", open.status),
                Err(why) => format!("{what} {why}"),
            });
            // Over HTTP/1.1 a watch has its connection to itself.
            if self.protocol == Protocol::Http1 {
                client = self.connect().await.unwrap();
            }
        }
        seen.join("\n  ")
    }
}

/// Runs it to its end, within a limit.
fn within(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { timeout(COMES_MAX, work).await.expect("it comes to an end") });
}

/// The open watch, a new client while the fault lasts, and another when it is over.
fn check(fault: Fault, protocol: Protocol, expect: Expect) {
    within(async {
        let mut stage = Stage::set(protocol, JSON).await;
        stage.proxy.begin(fault);
        let open = stage.watch.rest().await;
        let during = stage.anew().await;
        stage.proxy.end();
        let after = stage.anew().await;
        let served = "list 200: {\"kind\":\"ConfigMapList\"}\n  ".repeat(2)
            + &["watch 200: {\"type\":\"FIRST\",\"object\":{}}"; 2].join("\n  ");
        let shown = |seen: String| if seen == served { "served".to_owned() } else { seen };
        expect.assert_eq(&format!("open: {open}\nduring: {}\nafter: {}\n", shown(during), shown(after)));
    });
}

#[test]
fn refused() {
    check(
        Fault::Refused,
        Protocol::Http2,
        expect![[r#"
        open: reset by peer
        during: refused
        after: served
    "#]],
    );
    check(
        Fault::Refused,
        Protocol::Http1,
        expect![[r#"
        open: reset by peer
        during: refused
        after: served
    "#]],
    );
}

#[test]
fn reset() {
    check(
        Fault::Reset,
        Protocol::Http2,
        expect![[r#"
        open: reset by peer
        during: reset by peer
        after: served
    "#]],
    );
    check(
        Fault::Reset,
        Protocol::Http1,
        expect![[r#"
        open: reset by peer
        during: reset by peer
        after: served
    "#]],
    );
}

#[test]
fn unreachable() {
    within(async {
        let mut stage = Stage::set(Protocol::Http2, JSON).await;
        stage.proxy.begin(Fault::Unreachable);
        assert_eq!(stage.watch.rest().await, "reset by peer");
        let tcp = TcpStream::connect(("127.0.0.1", stage.proxy.port())).await.unwrap();
        let mut late = Box::pin(Client::over(tcp, stage.proxy.authority(), Protocol::Http2));
        assert!(timeout(NOT_SOONER, &mut late).await.is_err(), "nobody answers");
        stage.proxy.end();
        let mut served = late.await.unwrap();
        assert_eq!(served.get(LIST, JSON).await.unwrap().status, "200");
    });
}

#[test]
fn no_name() {
    check(
        Fault::NoName,
        Protocol::Http2,
        expect![[r#"
        open: reset by peer
        during: refused
        after: served
    "#]],
    );
}

#[test]
fn handshake() {
    check(
        Fault::Handshake,
        Protocol::Http2,
        expect![[r#"
        open: reset by peer
        during: alert: handshake failure
        after: served
    "#]],
    );
    check(
        Fault::Handshake,
        Protocol::Http1,
        expect![[r#"
        open: reset by peer
        during: alert: handshake failure
        after: served
    "#]],
    );
}

#[test]
fn eof() {
    check(
        Fault::Eof,
        Protocol::Http2,
        expect![[r#"
        open: EOF
        during: served
        after: served
    "#]],
    );
    check(
        Fault::Eof,
        Protocol::Http1,
        expect![[r#"
        open: EOF
        during: served
        after: served
    "#]],
    );
}

#[test]
fn goaway() {
    check(
        Fault::GoAway,
        Protocol::Http2,
        expect![[r#"
        open: EOF
        during: served
        after: served
    "#]],
    );
    check(
        Fault::GoAway,
        Protocol::Http1,
        expect![[r#"
        open: EOF
        during: served
        after: served
    "#]],
    );
}

#[test]
fn goaway_is_said_before_the_connection_ends() {
    within(async {
        let stage = Stage::set(Protocol::Http2, JSON).await;
        let tcp = TcpStream::connect(("127.0.0.1", stage.proxy.port())).await.unwrap();
        let mut raw = client::tls(tcp, stage.proxy.authority(), Protocol::Http2).await.unwrap();
        // The preface and empty SETTINGS.
        raw.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        let first = frame_type(&mut raw).await;
        assert_eq!(first, Some(0x04), "SETTINGS: the connection is served");
        stage.proxy.begin(Fault::GoAway);
        let mut seen = Vec::new();
        while let Some(next) = frame_type(&mut raw).await {
            seen.push(next);
        }
        assert!(seen.contains(&0x07), "GOAWAY among {seen:?}");
    });
}

/// Reads a frame of HTTP/2; `None` at the end.
async fn frame_type(from: &mut (impl AsyncRead + Unpin)) -> Option<u8> {
    let mut head = [0; 9];
    from.read_exact(&mut head).await.ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    from.read_exact(&mut vec![0; length]).await.ok()?;
    Some(head[3])
}

#[test]
fn stream_reset() {
    check(
        Fault::StreamReset,
        Protocol::Http2,
        expect![[r#"
        open: RST_STREAM
        during: served
        after: served
    "#]],
    );
    check(
        Fault::StreamReset,
        Protocol::Http1,
        expect![[r#"
        open: EOF
        during: served
        after: served
    "#]],
    );
}

#[test]
fn stream_reset_leaves_the_connection() {
    within(async {
        let mut stage = Stage::set(Protocol::Http2, JSON).await;
        stage.proxy.begin(Fault::StreamReset);
        assert_eq!(stage.watch.rest().await, "RST_STREAM");
        assert_eq!(stage.client.get(LIST, JSON).await.unwrap().status, "200");
    });
}

#[test]
fn ping_lost() {
    within(async {
        let mut stage = Stage::set(Protocol::Http2, JSON).await;
        stage.proxy.begin(Fault::PingLost);
        stage.proxy.end();
        stage.server.tell("LATER");
        // A new connection is served: whatever the old one is to hear was said before.
        let fresh = stage.anew().await;
        assert!(fresh.contains("watch 200"), "{fresh}");
        assert!(timeout(NOT_SOONER, stage.watch.next()).await.is_err(), "nothing comes");
        assert!(timeout(NOT_SOONER, stage.client.get(LIST, JSON)).await.is_err(), "nothing is answered");
    });
}

#[test]
fn stall() {
    within(async {
        let mut stage = Stage::set(Protocol::Http2, JSON).await;
        stage.proxy.begin(Fault::Stall);
        stage.proxy.end();
        let half = stage.watch.next().await;
        expect![[r#"{"type":"MODIFIED","object":{"kind":"ConfigMap","apiVersion":"v1","meta"#]]
            .assert_eq(&half);
        stage.server.tell("LATER");
        assert_eq!(stage.client.get(LIST, JSON).await.unwrap().status, "200", "the connection lives");
        assert!(timeout(NOT_SOONER, stage.watch.next()).await.is_err(), "nothing comes");
    });
}

#[test]
fn half_frame() {
    check(
        Fault::HalfFrame,
        Protocol::Http2,
        expect![[r#"
            open: {"type":"MODIFIED","object":{"kind":"ConfigMap","apiVersion":"v1","meta the end
            during: served
            after: served
        "#]],
    );
    check(
        Fault::HalfFrame,
        Protocol::Http1,
        expect![[r#"
        open: {"type":"MODIFIED","object":{"kind":"ConfigMap","apiVersion":"v1","meta the end
        during: served
        after: served
    "#]],
    );
}

#[test]
fn too_many_requests() {
    check(
        Fault::TooManyRequests,
        Protocol::Http2,
        expect![[r#"
            open: the end
            during: list 200: {"kind":"ConfigMapList"}
              list 200: {"kind":"ConfigMapList"}
              watch 429, Retry-After 1
              watch 429
            after: served
        "#]],
    );
}

#[test]
fn server_error() {
    check(
        Fault::ServerError,
        Protocol::Http2,
        expect![[r#"
            open: the end
            during: list 500
              list 502
              watch 503
              watch 504
            after: served
        "#]],
    );
}

#[test]
fn error_too_many_requests() {
    check(
        Fault::ErrorTooManyRequests,
        Protocol::Http2,
        expect![[r#"
            open: {"type":"ERROR","object":{"apiVersion":"v1","code":429,"details":{},"kind":"Status","message":"too many requests, please try again later","metadata":{},"reason":"TooManyRequests","status":"Failure"}} the end
            during: served
            after: served
        "#]],
    );
}

#[test]
fn error_no_leader() {
    check(
        Fault::ErrorNoLeader,
        Protocol::Http2,
        expect![[r#"
            open: {"type":"ERROR","object":{"apiVersion":"v1","code":500,"details":{},"kind":"Status","message":"etcdserver: no leader","metadata":{},"reason":"InternalError","status":"Failure"}} the end
            during: served
            after: served
        "#]],
    );
}

#[test]
fn error_expired() {
    check(
        Fault::ErrorExpired,
        Protocol::Http2,
        expect![[r#"
            open: {"type":"ERROR","object":{"apiVersion":"v1","code":410,"details":{},"kind":"Status","message":"The resourceVersion for the provided watch is too old.","metadata":{},"reason":"Expired","status":"Failure"}} the end
            during: served
            after: served
        "#]],
    );
}

#[test]
fn expired() {
    check(
        Fault::Expired,
        Protocol::Http2,
        expect![[r#"
            open: the end
            during: list 200: {"kind":"ConfigMapList"}
              list 200: {"kind":"ConfigMapList"}
              watch 410
              watch 410
            after: list 200: {"kind":"ConfigMapList"}
              list 200: {"kind":"ConfigMapList"}
              watch 410
              watch 410
        "#]],
    );
}

#[test]
fn empty_watches() {
    check(
        Fault::EmptyWatches,
        Protocol::Http2,
        expect![[r#"
            open: the end
            during: list 200: {"kind":"ConfigMapList"}
              list 200: {"kind":"ConfigMapList"}
              watch 200: the end
              watch 200: the end
            after: served
        "#]],
    );
}

#[test]
fn clean_end() {
    check(
        Fault::CleanEnd,
        Protocol::Http2,
        expect![[r#"
            open: the end
            during: served
            after: served
        "#]],
    );
    check(
        Fault::CleanEnd,
        Protocol::Http1,
        expect![[r#"
        open: the end
        during: served
        after: served
    "#]],
    );
}

#[test]
fn gone() {
    check(
        Fault::Gone,
        Protocol::Http2,
        expect![[r#"
        open: reset by peer
        during: refused
        after: served
    "#]],
    );
}

#[test]
fn too_large() {
    check(
        Fault::TooLarge,
        Protocol::Http2,
        expect![[r#"
            open: the end
            during: list 200: {"kind":"ConfigMapList"}
              list 200: {"kind":"ConfigMapList"}
              watch 504, Retry-After 1
              watch 504, Retry-After 1
            after: served
        "#]],
    );
}

#[test]
fn no_bookmarks() {
    within(async {
        let mut stage = Stage::set(Protocol::Http2, JSON).await;
        stage.proxy.begin(Fault::NoBookmarks);
        let open = stage.watch.rest().await;
        assert!(open.contains(r#""code":410"#) && open.ends_with("the end"), "{open}");
        let mut client = stage.connect().await.unwrap();
        let mut without = client.get(WATCH, JSON).await.unwrap();
        let told = without.next().await;
        assert!(told.contains("FIRST"), "{told}");
        stage.proxy.end();
        stage.server.tell("LATER");
        let told = without.next().await;
        assert!(told.contains("LATER"), "the bookmark between them did not come: {told}");
    });
}

#[test]
fn unauthorized() {
    check(
        Fault::Unauthorized,
        Protocol::Http2,
        expect![[r#"
            open: the end
            during: list 401
              list 401
              watch 401
              watch 401
            after: served
        "#]],
    );
}

#[test]
fn undecodable() {
    for (accept, garbage) in
        [(JSON, r#"{"type":"MODIFIED","object":{"metadata":]}}"#), (PROTOBUF, r"\x00\x00\x00\x08\x0f")]
    {
        within(async move {
            let mut stage = Stage::set(Protocol::Http2, accept).await;
            stage.proxy.begin(Fault::Undecodable);
            let told = stage.watch.next().await;
            assert!(told.starts_with(garbage), "{told}");
            stage.server.tell("LATER");
            let told = stage.watch.next().await;
            assert!(told.contains("LATER"), "{told}");
        });
    }
}

#[test]
fn errors_come_in_the_form_of_the_watch() {
    within(async {
        let mut stage = Stage::set(Protocol::Http2, PROTOBUF).await;
        stage.proxy.begin(Fault::ErrorExpired);
        let told = stage.watch.rest().await;
        assert!(told.contains(r"\n\x05ERROR\x12") && told.contains(r"k8s\x00"), "{told}");
    });
}

#[test]
fn what_is_asked_is_counted_by_whom_it_is_asked() {
    within(async {
        let stage = Stage::set(Protocol::Http2, JSON).await;
        stage.proxy.begin(Fault::Unauthorized);
        stage.anew().await;
        let counts = stage.proxy.counts();
        let tally = counts.tally();
        assert_eq!((tally.lists, tally.watches, tally.whole()), (2, 3, 2), "refused or not");
        assert_eq!(counts.by.len(), 1, "one path, one client");
    });
}
