//! Clients that leave: by a FIN, by a reset, by the reset of a stream; idle, and with a socket that is full.

use forebay_rt::{Clock, Duration};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::common::{Client, Protocol, Scratch, Server, rv};
use crate::raw::{NO_ROOM, Raw};
use crate::{CONFIG_MAPS, churn, open_watches};

/// Within this everything of a client that left is let go: at once, on a machine that is busy. Nothing else
/// would do it within a minute: neither a bookmark that cannot be sent, nor silence.
const FREED_MAX: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug)]
enum Leaves {
    /// Sends no more, and would still read.
    HalfClosed,
    Closed,
    Reset,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_leaves_is_let_go_at_once_over_http1() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let (admin, http1) = (server.admin().await, server.admin_over(Protocol::Http1).await);
    let start = churn(&admin, CONFIG_MAPS, "busy", 16 << 10, 1).await;
    churn(&admin, CONFIG_MAPS, "busy", 16 << 10, 50).await;
    let list = admin.get(CONFIG_MAPS).await.expect(200);
    for from in [start, rv(&list)] {
        for leaves in [Leaves::HalfClosed, Leaves::Closed, Leaves::Reset] {
            let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={from}");
            let mut raw = Raw::watch(&http1, &path).await;
            assert_eq!(open_watches(&admin).await, 1);
            let tcp = raw.stream.get_mut().0;
            match leaves {
                Leaves::HalfClosed => tcp.shutdown().await.expect("a FIN"),
                Leaves::Closed => {}
                Leaves::Reset => tcp.set_zero_linger().expect("a reset"),
            }
            let kept = matches!(leaves, Leaves::HalfClosed).then_some(raw);
            freed(&admin, &format!("{leaves:?} from {from}")).await;
            drop(kept);
        }
    }
}

/// Who stays is served on: what was asked while the watch lasted, and what is asked after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_goes_on_behind_its_watch() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let (admin, http1) = (server.admin().await, server.admin_over(Protocol::Http1).await);
    let start = churn(&admin, CONFIG_MAPS, "busy", 100, 1).await;
    let newest = churn(&admin, CONFIG_MAPS, "busy", 100 << 10, 3).await;
    let path = format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=4&resourceVersion={start}");
    let mut raw = Raw::ask(&http1, &path).await;
    raw.ask_again(&path).await;
    let head = raw.head().await.to_lowercase();
    for line in ["content-type: application/json", "transfer-encoding: chunked", "audit-id: ", "date: "] {
        assert!(head.contains(&format!("\r\n{line}")), "{head}");
    }
    assert!(!head.contains("connection: "), "{head}");
    assert_eq!(raw.revisions_up_to(newest).await.len(), 3);
    raw.ask_again(&path).await;
    raw.ask_again("/version").await;
    for _ in 0..2 {
        assert_eq!(raw.event().await, Ok(None));
        raw.next_head().await;
        assert_eq!(raw.revisions_up_to(newest).await.len(), 3);
    }
    assert_eq!(raw.event().await, Ok(None));
    raw.next_head().await;
    assert_eq!(open_watches(&admin).await, 0);
    // One that is to be the last is so.
    let mut last = http1.raw(NO_ROOM).await;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    last.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    last.read_to_end(&mut answer).await.expect("an end");
    let answer = String::from_utf8_lossy(&answer).to_lowercase();
    assert!(
        answer.contains("\r\nconnection: close\r\n") && answer.ends_with("\r\n0\r\n\r\n"),
        "{answer:.200}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_leaves_is_let_go_at_once_over_http2() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let admin = server.admin().await;
    let start = churn(&admin, CONFIG_MAPS, "busy", 900 << 10, 1).await;
    churn(&admin, CONFIG_MAPS, "busy", 900 << 10, 20).await;
    let list = admin.get(CONFIG_MAPS).await.expect(200);
    for from in [start, rv(&list)] {
        let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={from}");
        // The stream alone.
        let other = server.admin().await;
        let watch = other.watch(&path).await;
        assert_eq!(open_watches(&admin).await, 1);
        drop(watch);
        freed(&admin, &format!("RST_STREAM from {from}")).await;
        other.get("/version").await.expect(200);
        // The whole connection, with two of them.
        let watches = (other.watch(&path).await, other.watch(&path).await);
        assert_eq!(open_watches(&admin).await, 2);
        drop((other, watches));
        freed(&admin, &format!("connection from {from}")).await;
    }
}

/// A connection whose client reads nothing of it, though it let the server send as much as it likes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_leaves_a_full_connection_is_let_go_at_once_over_http2() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let admin = server.admin().await;
    let start = churn(&admin, CONFIG_MAPS, "busy", 100 << 10, 1).await;
    churn(&admin, CONFIG_MAPS, "busy", 100 << 10, 50).await;
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={start}");
    for leaves in [Leaves::HalfClosed, Leaves::Closed, Leaves::Reset] {
        let mut stream = admin.raw(NO_ROOM).await;
        stream.write_all(&http2_watch(&path)).await.expect("sent");
        while open_watches(&admin).await != 1 {}
        // Of the 5 MB that wait for it its machine takes some KiB.
        let tcp = stream.get_mut().0;
        match leaves {
            Leaves::HalfClosed => tcp.shutdown().await.expect("a FIN"),
            Leaves::Closed => {}
            Leaves::Reset => tcp.set_zero_linger().expect("a reset"),
        }
        let kept = matches!(leaves, Leaves::HalfClosed).then_some(stream);
        freed(&admin, &format!("{leaves:?}")).await;
        drop(kept);
    }
}

/// What an HTTP/2 client says first, with windows as wide as can be, and a GET.
fn http2_watch(path: &str) -> Vec<u8> {
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let len = (payload.len() as u32).to_be_bytes();
        [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    };
    let literal = |name: u8, value: &str| [&[name, value.len() as u8], value.as_bytes()].concat();
    // GET, https, and by their index in HPACK's table the path and the authority.
    let head = [vec![0x82, 0x87], literal(4, path), literal(1, "localhost")].concat();
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, b"\x00\x04\x7f\xff\xff\xff"),
        frame(8, 0, 0, b"\x7f\x00\x00\x00"),
        frame(1, 5, 1, &head),
    ]
    .concat()
}

async fn freed(admin: &Client, what: &str) {
    let left = Clock::system().now();
    while open_watches(admin).await > 0 {
        assert!(left.elapsed() < FREED_MAX, "{what}: not let go");
    }
}
