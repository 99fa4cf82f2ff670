//! Connections that are told to go to another server, over real sockets: what their clients see.

use forebay_neighbours::{Heard, Neighbour, Word};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::watch;

use super::hostile::frames::*;
use super::server::{KNOWN, Server, Setup};
use crate::config::FlowControl;
use crate::neighbourhood::Neighbours;

const WATCH: &str = "/api/v1/configmaps?watch=1&timeoutSeconds=3000";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// More than the share of one of two servers, if the other one holds none.
const MANY: usize = 40;

/// A server that is told of its neighbours by the test.
async fn server(setup: Setup) -> (Server, watch::Sender<Heard>, watch::Receiver<Option<Word>>) {
    let (heard, hears) = watch::channel(Heard::default());
    let (says, own) = watch::channel(None);
    let neighbours = Some(Neighbours { heard: hears, own: says });
    (Server::start(Setup { neighbours, ..setup }).await, heard, own)
}

fn hears(heard: &watch::Sender<Heard>, connections: u64, room: u64) {
    heard.send_modify(|heard| heard.note("b", Neighbour::Tells(Word { connections, room })));
}

/// A connection on which somebody known was answered.
async fn known(server: &Server) -> Frames {
    let mut frames = Frames::begin(server).await;
    frames.send(&get(1, "/version")).await.expect("open");
    assert_eq!(frames.said_until(1).await, ["1:200"]);
    frames
}

/// Goes on until `last` of a connection is said: "GOAWAY", the ends of streams, and what comes on those that
/// watch. Answers PINGs, and sends `crossing` once, when it is told to go and before it is known what the
/// server has seen until then.
async fn said(frames: &mut Frames, crossing: &[u8], last: &str) -> Vec<String> {
    let (mut said, mut crossing) = (Vec::new(), Some(crossing));
    while let Some(frame) = frames.next().await {
        match frame.kind {
            GOAWAY => {
                said.push("GOAWAY".to_owned());
                if let Some(crossing) = crossing.take().filter(|crossing| !crossing.is_empty()) {
                    frames.send(crossing).await.expect("open");
                }
            }
            PING if frame.flags & ACK == 0 => {
                frames.send(&self::frame(PING, ACK, 0, &frame.payload)).await.expect("open");
            }
            DATA => {
                let text = String::from_utf8_lossy(&frame.payload);
                for kind in ["BOOKMARK", "ADDED"] {
                    if text.contains(&format!(r#""type":"{kind}""#)) {
                        said.push(format!("{}:{kind}", frame.stream));
                    }
                }
            }
            _ => {}
        }
        if matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM != 0 {
            said.push(format!("{}:end", frame.stream));
        }
        if said.iter().any(|one| one == last) {
            break;
        }
    }
    said
}

#[tokio::test]
async fn who_is_let_go_loses_no_answer_and_a_watch_ends_with_a_bookmark() {
    let (server, heard, own) = server(Setup::default()).await;
    let mut first = known(&server).await;
    first.send(&get(3, &format!("{WATCH}&allowWatchBookmarks=true"))).await.expect("open");
    first.send(&get(5, WATCH)).await.expect("open");
    let mut rest = Vec::new();
    while rest.len() < MANY - 1 {
        rest.push(known(&server).await);
    }
    tokio::time::pause();
    hears(&heard, 0, 1_000);
    let said_first = said(&mut first, &get(7, MAPS), "3:end").await;
    let place = |what: &str| said_first.iter().rposition(|one| one == what);
    let told = said_first.iter().position(|one| one == "GOAWAY");
    assert!(told.is_some() && told < place("7:end"), "{said_first:?}");
    assert!(told < place("3:BOOKMARK") && place("3:BOOKMARK") < place("3:end"), "{said_first:?}");
    assert_eq!(place("5:end"), None, "it takes no bookmarks, and stays");
    let word = own.borrow().expect("it says something");
    assert!(word.connections >= MANY as u64 - 5 && word.room <= 1_000 - word.connections, "{word:?}");
    hears(&heard, MANY as u64, 1_000);
    tokio::time::resume();
    let (code, _) = server.ask("POST", MAPS, "", r#"{"metadata":{"name":"made"}}"#).await;
    assert_eq!(code, 201);
    assert_eq!(said(&mut first, &[], "5:ADDED").await.last().map(String::as_str), Some("5:ADDED"));
    assert!(server.metric("forebay_connections_told_to_go_total{reason=\"share\"}").await >= 1.0);
}

#[tokio::test]
async fn over_http1_the_next_answer_is_the_last() {
    let (server, heard, _own) = server(Setup::default()).await;
    let mut first = server.open(b"http/1.1").await;
    let ask = format!("GET /version HTTP/1.1\r\nHost: x\r\n{KNOWN}\r\n");
    let mut answer = async || {
        first.write_all(ask.as_bytes()).await.expect("open");
        first.flush().await.expect("open");
        let (mut answer, mut piece) = (String::new(), [0; 4_096]);
        while !answer.trim_end().ends_with('}') {
            let read = first.read(&mut piece).await.expect("open");
            assert!(read > 0, "half an answer: {answer}");
            answer.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        answer.to_lowercase()
    };
    assert!(!answer().await.contains("connection: close"));
    let mut rest = Vec::new();
    while rest.len() < MANY - 1 {
        rest.push(known(&server).await);
    }
    hears(&heard, 0, 1_000);
    // The first is the first that is told.
    while server.metric("forebay_connections_told_to_go_total{reason=\"share\"}").await < 1.0 {}
    assert!(answer().await.contains("connection: close"));
    assert_eq!(first.read(&mut [0; 16]).await.expect("a goodbye"), 0);
}

#[tokio::test]
async fn who_is_refused_is_told_to_go_where_there_is_room_and_else_stays() {
    let setup = Setup { writes_max: 0, flow_control: FlowControl::MaxInFlight, ..Setup::default() };
    let (server, heard, mut own) = server(setup).await;
    let mut is_heard = async || {
        own.mark_unchanged();
        own.changed().await.expect("it goes on");
    };
    let write = |stream| {
        let post = frame(HEADERS, END_HEADERS, stream, &block(&fields("POST", MAPS)));
        [post, frame(DATA, END_STREAM, stream, br#"{"metadata":{"name":"made"}}"#)].concat()
    };
    let mut client = known(&server).await;
    tokio::time::pause();
    client.send(&write(3)).await.expect("open");
    assert_eq!(client.said_until(3).await, ["3:429"], "nobody is there");
    hears(&heard, 500, 0);
    is_heard().await;
    client.send(&write(5)).await.expect("open");
    assert_eq!(client.said_until(5).await, ["5:429"], "nobody has room");
    hears(&heard, 500, 100);
    is_heard().await;
    client.send(&write(7)).await.expect("open");
    let mut all = client.said_until(7).await;
    // What was there is answered to its end, and then it goes by itself.
    all.extend(said(&mut client, &[], "nothing").await);
    assert!(
        all.iter().any(|one| one == "7:429") && all.iter().any(|one| one.starts_with("GOAWAY")),
        "{all:?}"
    );
    assert_eq!(server.metric("forebay_connections_told_to_go_total{reason=\"refused\"}").await, 1.0);
}

#[tokio::test]
async fn on_shutdown_connections_are_told_to_go_before_their_watches_end() {
    let (server, heard, _own) = server(Setup::default()).await;
    hears(&heard, 500, 100);
    let mut clients = Vec::new();
    for _ in 0..5 {
        let mut client = known(&server).await;
        client.send(&get(3, WATCH)).await.expect("open");
        // It watches once this is answered.
        client.send(&get(5, "/version")).await.expect("open");
        assert_eq!(client.said_until(5).await.last().map(String::as_str), Some("5:200"));
        clients.push(client);
    }
    tokio::time::pause();
    server.stop();
    for client in &mut clients {
        let said = said(client, &[], "3:end").await;
        assert_eq!(said.first().map(String::as_str), Some("GOAWAY"), "{said:?}");
        assert_eq!(said.last().map(String::as_str), Some("3:end"), "{said:?}");
    }
}
