//! The worst mix of clients, on a server that may use 96 MiB and 32 KiB a connection beyond what its data
//! take: nothing kills it, writes go on, watches lose nothing, and the memory comes back.
//!
//! Where control groups can be written the server is in one that is so large; everywhere the most that was
//! ever resident is held against the same number. RLIMIT_AS and RLIMIT_DATA would not do: they count what an
//! allocator reserves.
//!
//! `FOREBAY_TEST_STORM` is how often as much of everything there is, and how many times as long: 1 unless it
//! says more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use forebay_rt::Clock;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, timeout};

use crate::common::{Ask, Client, Protocol, Reply, Scratch, Server, WAIT, rv, text};
use crate::group::{self, Group};
use crate::{CONFIG_MAPS, config_map};

const MIB: u64 = 1 << 20;
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PARTIAL: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const INITIAL: &str =
    "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";

/// How much of everything.
#[derive(Clone, Copy)]
struct Size {
    config_maps: usize,
    secrets: usize,
    listers: usize,
    stalled: usize,
    connections: usize,
    time: Duration,
}

impl Size {
    fn asked() -> Size {
        let times = std::env::var("FOREBAY_TEST_STORM").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
        Size {
            config_maps: 200 * times,
            secrets: 6 * times,
            listers: 2 * times,
            stalled: 8 * times,
            connections: 150 + 100 * times,
            time: Duration::from_secs(3 * times as u64),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worst_mix_of_clients_does_not_kill_a_server_with_little_memory() {
    let (size, scratch) = (Size::asked(), Scratch::new());
    let server = Server::start(&scratch, &[]).await;
    load(&server.admin().await, size).await;
    let data = group::bytes(server.id(), "VmRSS");
    server.terminate();
    assert!(server.ended().await.success());

    let limit = data + 96 * MIB + size.connections as u64 * (32 << 10);
    let group = Group::new("forebay-storm", limit);
    let flag = format!("--memory-limit={limit}");
    let server = match &group {
        Some(group) => Server::start_in(&scratch, &[], group.path()).await,
        None => Server::start(&scratch, &[&flag]).await,
    };
    let told = server.admin().await.get("/metrics").await;
    // A control group counts in pages.
    assert!(limit - metric(told.text(), "forebay_memory_limit_bytes") < 64 << 10);

    let calm = Calm::begin(&server).await;
    let over = storm(&server, size).await;
    calm.end(&server, over).await;

    let most = group::bytes(server.id(), "VmHWM");
    assert!(most <= limit, "{} MiB of {} MiB", most / MIB, limit / MIB);
    assert_eq!(group.as_ref().map_or(0, Group::killed), 0);
    let after = comes_back(&server, data + 48 * MIB).await;
    eprintln!("MiB: data {}, limit {}, most {}, after {}", data / MIB, limit / MIB, most / MIB, after / MIB);
    server.terminate();
    assert!(server.ended().await.success());
}

/// Config maps of 8 KB, Secrets of 700 KB.
async fn load(client: &Client, size: Size) {
    let filler = "0123456789abcdef".repeat(500);
    for n in 0..size.config_maps {
        let mut object = config_map(&format!("map-{n}"), &format!("{n}-{filler}"));
        object["metadata"]["labels"] = json!({"even": (n % 2 == 0).to_string()});
        client.post(CONFIG_MAPS, &object).await.expect(201);
    }
    for n in 0..size.secrets {
        client.ask(secret(&format!("secret-{n}"))).await.expect(201);
    }
}

fn secret(name: &str) -> Ask {
    // Not to be compressed: every byte is another one.
    let mut state = name.len() as u64 + 0x9e37_79b9_7f4a_7c15;
    let noise: String = (0..700_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + (state >> 59) as u8 % 26)
        })
        .collect();
    let meta = json!({"name": name});
    let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"k": noise}});
    Ask::post(SECRETS, &body)
}

/// The revisions that were written; when each write began, and how long it and a read took.
type Ledger = (Vec<u64>, Vec<(Instant, Duration)>);

/// What must go on as if there were no storm: a writer, and watchers that compare notes with it.
struct Calm {
    stop: Arc<AtomicBool>,
    writer: tokio::task::JoinHandle<Ledger>,
    watchers: JoinSet<Vec<u64>>,
}

impl Calm {
    async fn begin(server: &Server) -> Calm {
        let client = server.admin().await;
        let made = client.post(CONFIG_MAPS, &config_map("ledger", "begin")).await.expect(201);
        let stop = Arc::new(AtomicBool::new(false));
        let mut watchers = JoinSet::new();
        for _ in 0..4 {
            let path = format!(
                "{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name=ledger&resourceVersion={}",
                rv(&made)
            );
            let mut watch = server.admin().await.watch(&path).await;
            watchers.spawn(async move {
                let mut seen = Vec::new();
                loop {
                    let event = watch.event().await;
                    assert_eq!(event.kind, "MODIFIED", "{}", event.line);
                    seen.push(rv(&event.object));
                    if text(&event.object, "/data/k") == "end" {
                        return seen;
                    }
                }
            });
        }
        let writer = tokio::spawn(write(client, stop.clone()));
        Calm { stop, writer, watchers }
    }

    /// - `over`: when the storm was to be over.
    async fn end(mut self, server: &Server, over: Instant) {
        self.stop.store(true, Ordering::Relaxed);
        let (written, times) =
            timeout(WAIT, self.writer).await.expect("in time").expect("every write was taken");
        assert!(written.len() > 10, "hardly anything was written: {}", written.len());
        while let Some(seen) = timeout(WAIT, self.watchers.join_next()).await.expect("in time") {
            assert_eq!(seen.expect("no watch ends"), written, "each event once and in order");
        }
        let in_storm = times.into_iter().filter(|(began, _)| *began < over);
        let mut took: Vec<Duration> = in_storm.map(|(_, took)| took).collect();
        took.sort();
        let at = |percent: usize| took.get(took.len() * percent / 100).copied().unwrap_or_default();
        eprintln!("{} writes in the storm, p50 {:?}, p99 {:?}", took.len(), at(50), at(99));
        assert_eq!(server.admin().await.get("/readyz").await.code, 200);
    }
}

/// Writes the ledger, and reads it, until told to stop.
async fn write(client: Client, stop: Arc<AtomicBool>) -> Ledger {
    let path = format!("{CONFIG_MAPS}/ledger");
    let (mut written, mut times) = (Vec::new(), Vec::new());
    loop {
        let last = stop.load(Ordering::Relaxed);
        let text = if last { "end".to_owned() } else { written.len().to_string() };
        let began = now();
        written.push(rv(&client.put(&path, &config_map("ledger", &text)).await.expect(200)));
        client.get(&path).await.expect(200);
        times.push((began, began.elapsed()));
        if last {
            return (written, times);
        }
    }
}

/// Everybody at once. When it was to be over; some wait for their turn for longer.
async fn storm(server: &Server, size: Size) -> Instant {
    let until = now() + size.time;
    let mut all = JoinSet::new();
    let refused = Arc::new(AtomicU64::new(0));
    for (path, accept, encoding) in [
        (CONFIG_MAPS, "application/json", "identity"),
        (CONFIG_MAPS, "application/json", "gzip"),
        (CONFIG_MAPS, TABLE, "gzip"),
        (CONFIG_MAPS, PROTOBUF, "identity"),
        (CONFIG_MAPS, PARTIAL, "identity"),
        (SECRETS, "application/yaml", "identity"),
        (SECRETS, PROTOBUF, "gzip"),
        ("/api/v1/secrets?pretty=true", "application/json", "identity"),
        ("/api/v1/configmaps?labelSelector=even=true", "application/json", "gzip"),
        ("/api/v1/configmaps?limit=7", "application/json", "identity"),
        ("/api/v1/namespaces/default/secrets/secret-1?pretty=true", "application/yaml", "gzip"),
        ("/openapi/v2", "application/json", "identity"),
        ("/metrics", "*/*", "identity"),
    ] {
        for n in 0..size.listers {
            let protocol = if n % 2 == 0 { Protocol::Http2 } else { Protocol::Http1 };
            let ask = Ask::get(path).accept(accept).header("accept-encoding", encoding);
            all.spawn(read_again(server.admin_over(protocol).await, ask, until, refused.clone()));
        }
    }
    for n in 0..size.listers {
        all.spawn(watch_again(server.admin().await, until));
        all.spawn(write_large(server.admin().await, n, until, refused.clone()));
        all.spawn(throw_bombs(server.admin().await, until));
        all.spawn(reset_quickly(server.admin().await, until));
    }
    let held = stall(server, size).await;
    let flood = flood(server, size).await;
    // Who waits for its turn then may wait for long.
    while let Ok(Some(done)) = timeout(Duration::from_secs(1).max(until - now()), all.join_next()).await {
        done.expect("a client");
    }
    all.abort_all();
    while let Some(done) = all.join_next().await {
        assert!(done.map_or_else(|why| why.is_cancelled(), |()| true), "a client");
    }
    drop((held, flood));
    eprintln!("refused: {}", refused.load(Ordering::Relaxed));
    until
}

/// The answer; none where the stream or the connection was ended. Then the client is there again at once.
async fn answer(client: &mut Client, ask: Ask) -> Option<Reply> {
    let reply = client.try_ask(ask).await.ok();
    if reply.is_none() {
        come_back(client).await;
    }
    reply
}

/// One that finds no server tries it again.
async fn come_back(client: &mut Client) {
    let _refused = client.renew().await;
}

/// Reads the same again and again. Who is refused is told when to come back.
async fn read_again(mut client: Client, ask: Ask, until: Instant, refused: Arc<AtomicU64>) {
    while now() < until {
        // A reader that is slow when memory is short is cut off.
        let Some(reply) = answer(&mut client, ask.clone()).await else { continue };
        if reply.code != 200 {
            assert_eq!(reply.code, 429, "{}", reply.text());
            assert!(reply.header("retry-after").parse::<u64>().is_ok_and(|seconds| seconds > 0));
            refused.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    }
}

/// Asks for the initial state, again and again.
async fn watch_again(mut client: Client, until: Instant) {
    while now() < until {
        let ask = Ask::get(format!("{SECRETS}?{INITIAL}&timeoutSeconds=1"));
        let reply = answer(&mut client, ask).await;
        assert!(reply.is_none_or(|reply| [200, 429].contains(&reply.code)));
    }
}

/// Makes, patches and deletes a large object, again and again.
async fn write_large(mut client: Client, n: usize, until: Instant, refused: Arc<AtomicU64>) {
    let name = format!("large-{n}");
    let patch = json!({"data": {"p": "eA==".repeat(200_000)}}).to_string();
    while now() < until {
        let path = format!("{SECRETS}/{name}");
        for ask in [
            secret(&name),
            Ask::patch(&path, "application/merge-patch+json", patch.clone()),
            Ask::patch(
                &path,
                "application/json-patch+json",
                r#"[{"op":"copy","from":"/data/k","path":"/data/c"}]"#,
            ),
            Ask::delete(&path),
        ] {
            let Some(reply) = answer(&mut client, ask).await else { continue };
            assert!([200, 201, 404, 409, 422, 429].contains(&reply.code), "{}", reply.text());
            refused.fetch_add(u64::from(reply.code == 429), Ordering::Relaxed);
        }
    }
}

/// Sends bodies of 3 MB that would become 300 MB of tree, several at once.
async fn throw_bombs(mut client: Client, until: Instant) {
    let maps = r#"{"a":0},"#.repeat(350_000);
    let bomb = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"bomb"}},"spec":{{"x":[{maps}0]}}}}"#
    );
    let yaml = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: [{}]\n",
        "{a: b},".repeat(60_000)
    );
    while now() < until {
        let json = || {
            client.try_ask(
                Ask::post("/api/v1/namespaces/default/pods", &Value::Null)
                    .body("application/json", bomb.clone()),
            )
        };
        let yaml =
            || client.try_ask(Ask::post(CONFIG_MAPS, &Value::Null).body("application/yaml", yaml.clone()));
        let (a, b, c) = tokio::join!(json(), json(), yaml());
        for reply in [a, b, c].into_iter().flatten() {
            assert!([400, 413, 422, 429].contains(&reply.code), "{}: {}", reply.code, reply.text());
        }
        come_back(&mut client).await;
    }
}

/// Begins requests and takes them back at once (CVE-2023-44487). That ends the connection, and it begins on
/// another.
async fn reset_quickly(mut client: Client, until: Instant) {
    while now() < until {
        for _ in 0..50 {
            let ask = client.try_ask(Ask::get(CONFIG_MAPS));
            let _reset = timeout(Duration::from_millis(1), ask).await;
        }
        come_back(&mut client).await;
    }
}

/// Readers that ask for much and read nothing: of lists, of large objects, and of many streams of one
/// connection.
async fn stall(server: &Server, size: Size) -> Vec<Box<dyn std::any::Any + Send>> {
    let mut held: Vec<Box<dyn std::any::Any + Send>> = Vec::new();
    let client = server.admin_over(Protocol::Http1).await;
    for path in [CONFIG_MAPS, "/api/v1/secrets", "/api/v1/namespaces/default/secrets/secret-0"] {
        for _ in 0..size.stalled {
            let mut connection = client.raw(4096).await;
            let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\naccept-encoding: gzip\r\n\r\n");
            connection.write_all(head.as_bytes()).await.expect("sent");
            held.push(Box::new(connection));
        }
    }
    for _ in 0..2 {
        let client = server.admin().await;
        for n in 0..100 {
            let path = format!("{SECRETS}/secret-{}", n % size.secrets);
            let (client, ask) = (client.clone(), Ask::get(path));
            // The head is read, or not even that; the body never is.
            held.push(Box::new(tokio::spawn(async move { client.open_reply(ask).await })));
        }
        held.push(Box::new(client));
    }
    held
}

/// Connections that only shake hands, or send half a request, a head that is as long as may be, or half a
/// body.
async fn flood(server: &Server, size: Size) -> Vec<Box<dyn std::any::Any + Send>> {
    let mut held: Vec<Box<dyn std::any::Any + Send>> = Vec::new();
    let client = server.admin_over(Protocol::Http1).await;
    let long = "x".repeat(60_000);
    for n in 0..size.connections / 2 {
        let mut connection = client.raw(64 << 10).await;
        let sent = match n % 4 {
            0 => String::new(),
            1 => "GET /api/v1/pods HTTP/1.1\r\nhost: x\r\nx-half: ".to_owned(),
            2 => format!("GET {CONFIG_MAPS}/ledger HTTP/1.1\r\nhost: x\r\nx-long: {long}\r\n"),
            _ => format!("POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: 3000000\r\n\r\n{long}"),
        };
        // One that is closed at once was one too many.
        let _closed = connection.write_all(sent.as_bytes()).await;
        held.push(Box::new(connection));
    }
    held
}

/// Waits until no more is resident than that.
async fn comes_back(server: &Server, bytes: u64) -> u64 {
    let (client, began) = (server.admin().await, now());
    loop {
        // Something is always asked of a server; the allocator gives back when it is used.
        client.get("/readyz").await;
        let resident = group::bytes(server.id(), "VmRSS");
        if resident <= bytes {
            return resident;
        }
        assert!(began.elapsed() < WAIT, "{} MiB stay", resident / MIB);
        tokio::task::yield_now().await;
    }
}

fn metric(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name}"))
}

fn now() -> Instant {
    Clock::system().now()
}
