//! Frames, fields, chunks and records that cost little to send, in numbers.

use forebay_rt::{Clock, Duration};
use forebay_transport::limits::{HEAD_BYTES_MAX, RESETS_MAX, RESETS_PENDING_MAX, STREAMS_MAX};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::frames::*;
use crate::tests::server::{KNOWN, Server, Setup, WAIT};

const POST: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const CALM: &str = "GOAWAY ENHANCE_YOUR_CALM";

fn post(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &block(&fields("POST", POST)))
}

fn odd(count: usize) -> impl Iterator<Item = u32> {
    (0..count as u32).map(|at| 2 * at + 1)
}

/// What is said to `flood` on a connection of its own; the connection is over, as it must be.
async fn said_to(server: &Server, flood: &[u8]) -> Vec<String> {
    let mut frames = Frames::begin(server).await;
    let _refused = frames.send(flood).await;
    frames.said_until(u32::MAX).await
}

/// The same connection still answers behind `flood`.
async fn answers_behind(server: &Server, flood: &[u8]) {
    let frames = Frames::begin(server).await;
    let send = [flood, &get(1_000_001, "/version")].concat();
    let (mut reads, mut writes) = tokio::io::split(frames.stream);
    let read = async {
        let mut all = Vec::new();
        let mut piece = vec![0; 16 << 10];
        // The answer's head: a HEADERS frame of that stream.
        let head = [HEADERS, END_HEADERS, 0, 0x0f, 0x42, 0x41];
        while !all.windows(head.len()).any(|some: &[u8]| some == head) {
            let read = timeout(WAIT, reads.read(&mut piece)).await.expect("in time").expect("open");
            assert!(read > 0, "it ended");
            all.extend_from_slice(&piece[..read]);
        }
    };
    let write = async {
        writes.write_all(&send).await.expect("open");
        writes.flush().await.expect("open");
    };
    tokio::join!(read, write);
}

/// CVE-2023-44487.
#[tokio::test]
async fn streams_that_are_reset_at_once_end_the_connection() {
    let server = Server::start(Setup::default()).await;
    let reset = |stream: u32| [post(stream), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat();
    let flood: Vec<u8> = odd(RESETS_PENDING_MAX + 2).flat_map(reset).collect();
    assert_eq!(said_to(&server, &flood).await.last().map(String::as_str), Some(CALM));
    // One after the other they are as any request that its client wants no more: nothing of them is left.
    let mut frames = Frames::begin(&server).await;
    for stream in odd(200) {
        frames.send(&reset(stream)).await.expect("open");
        frames.send(&frame(PING, 0, 0, &[0; 8])).await.expect("open");
        while frames.next().await.expect("open").kind != PING {}
    }
    frames.send(&get(1_001, "/version")).await.expect("open");
    assert_eq!(frames.said_until(1_001).await, ["1001:200"]);
    assert_eq!(server.metric("apiserver_current_inflight_requests{request_kind=\"mutating\"}").await, 0.0);
}

/// CVE-2019-9514: it has the server reset them.
#[tokio::test]
async fn streams_that_have_to_be_reset_end_the_connection() {
    let server = Server::start(Setup::default()).await;
    let wrong = |stream: u32| {
        let all = [&fields("GET", "/version")[..], &[("connection", "close")]].concat();
        frame(HEADERS, END_HEADERS | END_STREAM, stream, &block(&all))
    };
    let flood: Vec<u8> = odd(RESETS_MAX + 2).flat_map(wrong).collect();
    assert_eq!(said_to(&server, &flood).await.last().map(String::as_str), Some(CALM));
}

/// CVE-2023-45288.
#[tokio::test]
async fn a_head_in_frames_without_end_ends_the_connection() {
    let server = Server::start(Setup::default()).await;
    let head = frame(HEADERS, END_STREAM, 1, &block(&fields("GET", "/version")));
    for (part, want) in
        [(block(&[("a", "b")]), CALM), (Vec::new(), CALM), (block(&[("a", &"b".repeat(15 << 10))]), CALM)]
    {
        let flood = [head.clone(), frame(CONTINUATION, 0, 1, &part).repeat(100)].concat();
        assert_eq!(said_to(&server, &flood).await.last().map(String::as_str), Some(want));
    }
}

/// A table entry of 4 KB, named by one byte each time.
#[tokio::test]
async fn a_head_that_is_small_on_the_wire_and_large_in_memory_is_refused() {
    let server = Server::start(Setup::default()).await;
    let mut bomb = block(&fields("GET", "/version"));
    let value = "b".repeat(4_000);
    let mut entry = block(&[("a", value.as_str())]);
    // Into the table: the first of it is the index 62.
    entry[0] = 0x40;
    bomb.extend(entry);
    for (times, want) in
        [(HEAD_BYTES_MAX / 4_100 - 1, "1:200"), (2 * HEAD_BYTES_MAX / 4_100, "1:431"), (15_000, CALM)]
    {
        let mut frames = Frames::begin(&server).await;
        let bomb = [&bomb[..], &vec![0x80 | 62; times]].concat();
        let parts: Vec<&[u8]> = bomb.chunks(16 << 10).collect();
        assert_eq!(parts.len(), if times == 15_000 { 2 } else { 1 });
        let mut sent =
            frame(HEADERS, END_STREAM | if parts.len() == 1 { END_HEADERS } else { 0 }, 1, parts[0]);
        if let Some(rest) = parts.get(1) {
            sent.extend(frame(CONTINUATION, END_HEADERS, 1, rest));
        }
        let _refused = frames.send(&sent).await;
        assert_eq!(frames.said_until(1).await.last().map(String::as_str), Some(want), "{times} times");
    }
}

#[tokio::test]
async fn more_streams_than_there_may_be_are_refused() {
    let server = Server::start(Setup::default()).await;
    let mut frames = Frames::begin(&server).await;
    let last = 2 * STREAMS_MAX + 1;
    let all: Vec<u8> = odd(STREAMS_MAX as usize + 1).flat_map(post).collect();
    frames.send(&all).await.expect("open");
    assert_eq!(frames.said_until(last).await, [format!("{last}:REFUSED_STREAM")]);
}

/// CVE-2019-9518, and DATA of a byte each.
#[tokio::test]
async fn data_of_nothing_ends_the_connection_and_data_of_little_is_read_as_it_comes() {
    let server = Server::start(Setup::default()).await;
    let flood = [post(1), frame(DATA, 0, 1, &[]).repeat(1_000)].concat();
    assert_eq!(said_to(&server, &flood).await.last().map(String::as_str), Some(CALM));
    let mut frames = Frames::begin(&server).await;
    frames.send(&post(1)).await.expect("open");
    for byte in [&b" "[..]; 1_000].into_iter().chain([&b"{}"[..]]) {
        frames.send(&frame(DATA, 0, 1, byte)).await.expect("open");
        tokio::task::yield_now().await;
    }
    frames.send(&frame(DATA, END_STREAM, 1, b"")).await.expect("open");
    assert_eq!(frames.said_until(1).await, ["1:201"]);
}

/// CVE-2019-9512, 9513, 9515: who reads what is answered costs its own time alone.
#[tokio::test]
async fn frames_that_ask_for_little_are_answered_as_they_are_read() {
    let server = Server::start(Setup::default()).await;
    for flood in [
        frame(PING, 0, 0, &[7; 8]),
        frame(SETTINGS, 0, 0, &setting(4, 65_535)),
        frame(PRIORITY, 0, 7, &[0, 0, 0, 1, 16]),
        frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]),
        frame(0xfa, 0, 0, &[]),
        frame(PING, ACK, 0, &[7; 8]),
    ] {
        answers_behind(&server, &flood.repeat(20_000)).await;
    }
}

#[tokio::test]
async fn chunks_with_more_around_them_than_in_them_are_refused() {
    let server = Server::start(Setup::default()).await;
    let head = format!("POST {POST} HTTP/1.1\r\nHost: x\r\n{KNOWN}Transfer-Encoding: chunked\r\n\r\n");
    let end = "GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    for (what, body, want) in [
        ("an extension", format!("1;{}\r\n{{\r\n1\r\n}}\r\n0\r\n\r\n{end}", "a".repeat(10 << 10)), "201 200"),
        ("a long one", format!("1;{}\r\n{{\r\n1\r\n}}\r\n0\r\n\r\n{end}", "a".repeat(20 << 10)), "400"),
        (
            "many",
            format!("{}0\r\n\r\n{end}", format!("1;{}\r\n \r\n", "a".repeat(1 << 10)).repeat(20)),
            "400",
        ),
        ("trailers", format!("2\r\n{{}}\r\n0\r\n{}\r\n{end}", "a: b\r\n".repeat(50)), "201 200"),
        ("many", format!("2\r\n{{}}\r\n0\r\n{}\r\n{end}", "a: b\r\n".repeat(200)), "400"),
        ("a long one", format!("2\r\n{{}}\r\n0\r\na: {}\r\n\r\n{end}", "b".repeat(80 << 10)), "400"),
        (
            "a size with many zeros, which takes time and nothing else",
            format!("{}2\r\n{{}}\r\n0\r\n\r\n{end}", "0".repeat(70 << 10)),
            "201 200",
        ),
    ] {
        let got = server.codes(&[head.as_bytes(), body.as_bytes()].concat()).await;
        assert_eq!(got, want, "{what}");
    }
}

/// Requests behind a watch wait until it ends, and no more is kept of them than of one.
#[tokio::test]
async fn who_asks_for_more_behind_a_watch_is_heard_when_it_ends_and_who_asks_for_much_is_not() {
    let server = Server::start(Setup::default()).await;
    let watch = format!("GET /api/v1/configmaps?watch=1&timeoutSeconds=1 HTTP/1.1\r\nHost: x\r\n{KNOWN}\r\n");
    let get = format!("GET /version HTTP/1.1\r\nHost: x\r\n{KNOWN}\r\n");
    let last = "GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    for (more, want) in [(1, "200 200 200"), (1_000, "200")] {
        let said = [watch.as_str(), &get.repeat(more), last].concat();
        assert_eq!(server.codes(said.as_bytes()).await, want, "{more} behind");
    }
}

#[tokio::test]
async fn keys_that_change_without_end_end_the_connection() {
    let server = Server::start(Setup::default()).await;
    let mut stream = server.open(b"http/1.1").await;
    tokio::time::pause();
    let (clock, mut changes) = (Clock::system(), 0);
    let began = clock.now();
    while changes < 1_000 && stream.get_mut().1.refresh_traffic_keys().is_ok() {
        changes += 1;
        if stream.flush().await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let mut rest = Vec::new();
    let _reset = timeout(WAIT, stream.read_to_end(&mut rest)).await.expect("an end");
    assert!(changes > 1, "some are as they should be");
    assert!(clock.now() - began < Duration::from_secs(1), "it was not the time that ended it");
}

/// As often as they may between two bytes of data: that takes time, which is the client's own as well, and a
/// turn is short.
#[tokio::test]
async fn keys_that_change_as_often_as_they_may_are_followed() {
    let server = Server::start(Setup::default()).await;
    let mut frames = Frames::begin(&server).await;
    for byte in get(1, "/version") {
        for _ in 0..32 {
            frames.stream.get_mut().1.refresh_traffic_keys().expect("TLS 1.3");
        }
        frames.send(&[byte]).await.expect("open");
    }
    assert_eq!(frames.said_until(1).await, ["1:200"]);
}
