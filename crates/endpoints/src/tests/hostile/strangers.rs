//! Who holds connections and does nothing with them, or reads nothing, and who comes then.

use forebay_rt::{Clock, Duration, Instant};
use forebay_transport::limits::{
    CONNECTIONS_PERIOD, HANDSHAKE_BYTES_MAX, HANDSHAKE_WAIT, HEADER_WAIT, IDLE_WAIT, PING_WAIT, STALL_WAIT,
    STRANGER_BYTES, STRANGERS_WITH_MUCH_MAX,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::frames::*;
use crate::tests::server::{KNOWN, Server, Setup, WAIT};

const SECOND: Duration = Duration::from_secs(1);

/// A request of nobody.
fn anonymous(stream: u32) -> Vec<u8> {
    let mut all = fields("GET", "/version");
    all.retain(|field| field.0 != "authorization");
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &block(&all))
}

/// A connection of nobody on which something was answered.
async fn stranger(server: &Server) -> Frames {
    let mut frames = Frames::begin(server).await;
    frames.send(&anonymous(1)).await.expect("open");
    assert_eq!(frames.said_until(1).await, ["1:200"]);
    frames
}

async fn known(server: &Server) -> Frames {
    let mut frames = Frames::begin(server).await;
    frames.send(&get(1, "/version")).await.expect("open");
    assert_eq!(frames.said_until(1).await, ["1:200"]);
    frames
}

/// The answer to a PING.
fn pong(ping: &Frame) -> Vec<u8> {
    frame(PING, ACK, 0, &ping.payload)
}

/// Answers PINGs until the connection is over, or for so long: when GOAWAY came, if it did, and when that
/// was.
async fn only_pongs(
    frames: &mut Frames,
    longest: Duration,
    pongs: fn(&Frame) -> bool,
) -> (Vec<Instant>, Instant) {
    let (clock, mut told) = (Clock::system(), Vec::new());
    let all = async {
        while let Some(frame) = frames.next().await {
            match frame.kind {
                PING if frame.flags & ACK == 0 && pongs(&frame) => {
                    let _gone = frames.send(&pong(&frame)).await;
                }
                GOAWAY => told.push(clock.now()),
                _ => {}
            }
        }
    };
    let _still_there = timeout(longest, all).await;
    (told, clock.now())
}

#[tokio::test]
async fn who_only_answers_pings_is_asked_to_end_and_who_watches_is_not() {
    let (server, clock) = (Server::start(Setup::default()).await, Clock::system());
    let before = clock.now();
    let (mut idle, mut stubborn) = (known(&server).await, known(&server).await);
    let mut watching = known(&server).await;
    watching.send(&get(3, "/api/v1/configmaps?watch=1&timeoutSeconds=3000")).await.expect("open");
    tokio::time::pause();
    let (hour, minutes) = (Duration::from_secs(3_600), Duration::from_secs(1_200));
    let paused = clock.now();
    // From its request on at least, and until it was looked at at most.
    let about = |at: Instant| before + IDLE_WAIT <= at && at <= paused + IDLE_WAIT + 2 * CONNECTIONS_PERIOD;
    let (idle, stubborn, watching) = tokio::join!(
        only_pongs(&mut idle, hour, |_| true),
        // It answers every PING but the one behind GOAWAY.
        only_pongs(&mut stubborn, hour, |ping| ping.payload[0] != 0x0b),
        only_pongs(&mut watching, minutes, |_| true),
    );
    assert!(idle.0.first().is_some_and(|at| about(*at)) && about(idle.1), "{idle:?}");
    assert!(
        about(stubborn.0[0]) && stubborn.1 <= stubborn.0[0] + PING_WAIT + 2 * CONNECTIONS_PERIOD,
        "{stubborn:?}"
    );
    assert!(watching.0.is_empty() && watching.1 >= paused + minutes, "{watching:?}");
    tokio::time::resume();
    assert_eq!(server.metric("forebay_connections_ended_total{reason=\"idle\"}").await, 2.0);
}

/// What began while it was asked to end is not lost, however long it takes.
#[tokio::test]
async fn a_request_that_crosses_the_goaway_is_answered_to_its_end() {
    let server = Server::start(Setup::default()).await;
    let mut late = known(&server).await;
    tokio::time::pause();
    loop {
        let frame = late.next().await.expect("open");
        match frame.kind {
            GOAWAY => break,
            PING => late.send(&pong(&frame)).await.expect("open"),
            _ => {}
        }
    }
    late.send(&get(3, "/api/v1/configmaps?watch=1&timeoutSeconds=700")).await.expect("open");
    let clock = Clock::system();
    let began = clock.now();
    let said = async {
        let mut said = Vec::new();
        while let Some(frame) = late.next().await {
            match frame.kind {
                PING if frame.flags & ACK == 0 => {
                    late.send(&pong(&frame)).await.expect("open");
                }
                HEADERS => said.push("head"),
                DATA if frame.flags & END_STREAM != 0 => said.push("end"),
                _ => {}
            }
        }
        said
    };
    assert_eq!(said.await, ["head", "end"]);
    assert!(clock.now() - began >= Duration::from_secs(690));
}

#[tokio::test]
async fn strangers_hold_every_seat_and_whoever_comes_gets_in() {
    const SEATS: usize = 6;
    let server = Server::start(Setup { connections_max: SEATS, ..Setup::default() }).await;
    let mut master = known(&server).await;
    let mut strangers = Vec::new();
    for _ in 0..SEATS - 1 {
        strangers.push(stranger(&server).await);
    }
    // More of them, some of which do not even begin, take each other's seats.
    let mut halves = Vec::new();
    for _ in 0..SEATS {
        strangers.push(stranger(&server).await);
        halves.push(server.tcp().await);
    }
    let mut somebody = known(&server).await;
    for (at, stranger) in strangers.iter_mut().enumerate().take(SEATS - 1) {
        while let Some(frame) = stranger.next().await {
            assert_ne!(frame.kind, HEADERS, "{at} still has its seat");
        }
    }
    for known in [&mut master, &mut somebody] {
        known.send(&get(3, "/version")).await.expect("open");
        assert_eq!(known.said_until(3).await, ["3:200"]);
    }
    let series = "forebay_connections_ended_total{reason=\"gave_way\"}";
    assert!(server.metric(series).await >= (2 * SEATS) as f64);
    assert_eq!(server.metric("forebay_connections_open{client=\"known\"}").await, 3.0, "with who asks");
}

/// Heads that do not end: many short ones, and few long ones. Who is known has none that does not end.
#[tokio::test]
async fn strangers_with_long_heads_are_few() {
    let server = Server::start(Setup::default()).await;
    let mut strangers = Vec::new();
    for at in 0..STRANGERS_WITH_MUCH_MAX + 3 {
        let mut stream = server.open(b"http/1.1").await;
        let bytes = if at == 0 { STRANGER_BYTES / 2 } else { 2 * STRANGER_BYTES };
        let head = format!("GET /version HTTP/1.1\r\nHost: x\r\nA: {}", "b".repeat(bytes));
        stream.write_all(head.as_bytes()).await.expect("open");
        stream.flush().await.expect("open");
        strangers.push(stream);
    }
    while server.metric("forebay_connections_ended_total{reason=\"gave_way\"}").await < 2.0 {}
    let (long, mut frames) = ("b".repeat(2 * STRANGER_BYTES), Frames::begin(&server).await);
    let all = [&fields("GET", "/version")[..], &[("a", long.as_str())]].concat();
    let block = block(&all);
    let (first, rest) = block.split_at(16 << 10);
    let (second, rest) = rest.split_at(16 << 10);
    let head = [
        frame(HEADERS, END_STREAM, 1, first),
        frame(CONTINUATION, 0, 1, second),
        frame(CONTINUATION, END_HEADERS, 1, rest),
    ];
    frames.send(&head.concat()).await.expect("open");
    assert_eq!(frames.said_until(1).await, ["1:200"]);
    for (at, stream) in strangers.iter_mut().enumerate() {
        let is_gone = (1..=3).contains(&at);
        let end = "\r\nConnection: close\r\n\r\n";
        let _gone = stream.write_all(end.as_bytes()).await;
        let mut answer = Vec::new();
        let _gone = timeout(WAIT, stream.read_to_end(&mut answer)).await.expect("an end");
        assert_eq!(answer.starts_with(b"HTTP/1.1 200"), !is_gone, "{at}");
    }
}

#[tokio::test]
async fn where_everybody_is_known_who_comes_is_not_let_in() {
    let server = Server::start(Setup { connections_max: 3, ..Setup::default() }).await;
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(known(&server).await);
    }
    assert!(server.try_open(b"h2", None).await.is_err());
    drop(all.pop());
    while server.try_open(b"h2", None).await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn half_a_handshake_ends_in_time_and_a_long_one_at_once() {
    let server = Server::start(Setup::default()).await;
    let clock = Clock::system();
    tokio::time::pause();
    // A hello of 60,000 bytes, in records that are not even sealed.
    let mut hello = vec![1, 0, 0xea, 0x60];
    hello.resize(60_000, 0);
    let records: Vec<u8> = hello
        .chunks(4_096)
        .flat_map(|part| [&[22, 3, 1, (part.len() >> 8) as u8, part.len() as u8], part].concat())
        .collect();
    for (bytes, want) in
        [(0, HANDSHAKE_WAIT), (100, HANDSHAKE_WAIT), (HANDSHAKE_BYTES_MAX + 100, Duration::ZERO)]
    {
        let (began, mut tcp) = (clock.now(), server.tcp().await);
        tcp.write_all(&records[..bytes]).await.expect("open");
        ends(&mut tcp).await;
        let took = clock.now() - began;
        assert!(want <= took && took <= want + Duration::from_secs(1), "{bytes}: {took:?}");
    }
}

/// Waits for the end of a connection, of whatever kind.
async fn ends(tcp: &mut TcpStream) {
    let mut rest = Vec::new();
    let _reset = timeout(WAIT, tcp.read_to_end(&mut rest)).await.expect("an end");
}

#[tokio::test]
async fn an_http1_connection_that_says_nothing_or_not_all_ends() {
    let server = Server::start(Setup::default()).await;
    let clock = Clock::system();
    let whole = format!("GET /version HTTP/1.1\r\nHost: x\r\n{KNOWN}\r\n");
    for said in ["", "GET /vers", &format!("{whole}GET /vers"), &whole] {
        let before = clock.now();
        let mut stream = server.open(b"http/1.1").await;
        stream.write_all(said.as_bytes()).await.expect("open");
        stream.flush().await.expect("open");
        tokio::time::pause();
        let (paused, mut rest) = (clock.now(), Vec::new());
        let _reset = timeout(WAIT, stream.read_to_end(&mut rest)).await.expect("an end");
        let over = clock.now();
        assert!(before + HEADER_WAIT <= over && over <= paused + HEADER_WAIT + SECOND, "{said:?}");
        tokio::time::resume();
    }
}

/// Small answers for which there is no room: nobody keeps them for ever, and those of strangers not at all.
#[tokio::test]
async fn a_client_of_http2_without_room_for_its_answers_loses_them() {
    let server = Server::start(Setup::default()).await;
    for is_known in [true, false] {
        let (clock, mut reset) = (Clock::system(), Vec::new());
        let before = clock.now();
        let mut frames = Frames::begin_with(&server, &[setting(1, 0), setting(4, 0)].concat()).await;
        let streams: Vec<u32> = (0..100).map(|at| 2 * at + 1).collect();
        for stream in &streams {
            let ask = if is_known { get(*stream, "/version") } else { anonymous(*stream) };
            frames.send(&ask).await.expect("open");
        }
        tokio::time::pause();
        let paused = clock.now();
        while reset.len() < streams.len() {
            let frame = frames.next().await.expect("open");
            match frame.kind {
                RST_STREAM => reset.push(frame.stream),
                PING if frame.flags & ACK == 0 => frames.send(&pong(&frame)).await.expect("open"),
                kind => assert_ne!(kind, DATA),
            }
            assert!(clock.now() - paused < Duration::from_secs(600), "they wait for ever");
        }
        let (over, want) = (clock.now(), if is_known { STALL_WAIT } else { Duration::ZERO });
        assert!(before + want <= over && over <= paused + want + SECOND, "{is_known}");
        tokio::time::resume();
    }
}

/// It says what has to be answered and reads nothing: what waits for it is bounded, and ends.
#[tokio::test]
async fn who_reads_nothing_is_cut_over_either_protocol() {
    let server = Server::start(Setup::default()).await;
    let request = format!("GET /version HTTP/1.1\r\nHost: x\r\n{KNOWN}\r\n");
    let begin = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    for (protocol, begin, again) in [
        (&b"http/1.1"[..], Vec::new(), request.into_bytes()),
        (b"h2", begin.clone(), frame(PING, 0, 0, &[7; 8])),
        (b"h2", begin, frame(SETTINGS, 0, 0, &[])),
    ] {
        let mut stream = server.try_open(protocol, Some(4_096)).await.expect("open");
        stream.write_all(&begin).await.expect("open");
        tokio::time::pause();
        let (clock, again) = (Clock::system(), again.repeat(1_000));
        let (began, mut said) = (clock.now(), 0);
        let flood = async {
            while stream.write_all(&again).await.is_ok() && stream.flush().await.is_ok() {
                said += again.len();
            }
        };
        timeout(Duration::from_secs(600), flood).await.expect("it is cut");
        let took = clock.now() - began;
        assert!(took <= STALL_WAIT + 3 * CONNECTIONS_PERIOD, "{took:?}");
        assert!(said < 64 << 20, "{said} bytes were taken");
        tokio::time::resume();
    }
}
