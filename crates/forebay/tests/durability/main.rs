//! What was acknowledged is kept, whatever happens to the process, and clients go on where they were.

#[path = "../common/mod.rs"]
mod common;
mod snapshot;

use std::collections::BTreeMap;

use common::{Ask, Client, Event, Protocol, Scratch, Server, WAIT, Watch, rv, text};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

const PATH: &str = "/api/v1/namespaces/default/configmaps";
const ROUNDS: u64 = 10;
const WRITERS: u64 = 4;
const SEED: u64 = 0x5eed;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_again_and_again_it_loses_nothing_and_skips_nothing() {
    let scratch = Scratch::new();
    let mut random = Random(SEED);
    let mut acknowledged = BTreeMap::new();
    let mut follower = Follower::default();
    let mut newest = 0;
    for round in 0..ROUNDS {
        let server = Server::start(&scratch, &[]).await;
        let client = server.admin().await;
        let list = client.get(PATH).await.expect(200);
        assert!(rv(&list) >= newest, "round {round}: {} after {newest}", rv(&list));
        is_all_there(&list, &acknowledged);

        if round == 0 {
            follower.reached = rv(&list);
        }
        let mut watch =
            client.watch(&format!("{PATH}?watch=true&resourceVersion={}", follower.reached)).await;
        let mark = format!("mark-{round}");
        client.post(PATH, &object(&mark, 0)).await.expect(201);
        while !follower.known.contains_key(&mark) {
            follower.take(&watch.event().await);
        }
        let list = client.get(PATH).await.expect(200);
        assert_eq!(follower.known, versions(&list), "round {round}");
        // Every other time nobody watches, and the next server has to tell all of it.
        let following =
            if round % 2 == 0 { Some(tokio::spawn(follow(follower.clone(), watch))) } else { None };

        let kill_after = 1 + random.below(120);
        for (name, object) in write_until_killed(server, &client, round, kill_after).await {
            acknowledged.insert(name, object);
        }
        if let Some(following) = following {
            follower = timeout(WAIT, following).await.expect("it ends with its server").expect("followed");
        }
        newest = follower.reached.max(acknowledged.values().map(rv).max().unwrap_or(0)).max(rv(&list));
    }
    assert!(acknowledged.len() as u64 > ROUNDS, "hardly anything was written");
}

/// Writes with all writers, kills the server once `kill_after` writes are acknowledged, and returns every
/// object as its last acknowledged write left it.
async fn write_until_killed(
    server: Server,
    client: &Client,
    round: u64,
    kill_after: u64,
) -> BTreeMap<String, Value> {
    let (send, mut receive) = mpsc::channel(1_024);
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write(client.clone(), round, writer, send.clone()));
    }
    drop(send);
    let mut acknowledged = BTreeMap::new();
    let mut server = Some(server);
    let mut count = 0;
    while let Some(object) = timeout(WAIT, receive.recv()).await.expect("writers end with the server") {
        let object: Value = object;
        acknowledged.insert(text(&object, "/metadata/name").to_owned(), object);
        count += 1;
        if count == kill_after
            && let Some(server) = server.take()
        {
            server.kill().await;
        }
    }
    while let Some(ended) = writers.join_next().await {
        ended.expect("a writer");
    }
    assert!(server.is_none(), "writers failed before the server was killed");
    acknowledged
}

/// Creates objects, and counts up one of its own by one each time, until the server is gone.
async fn write(client: Client, round: u64, writer: u64, acknowledged: mpsc::Sender<Value>) {
    let counter = format!("counter-{writer}");
    let path = format!("{PATH}/{counter}");
    let Ok(reply) = client.try_ask(Ask::get(&path)).await else { return };
    let mut count = if reply.code == 404 { 0 } else { count_of(&reply.expect(200)) };
    for number in 0.. {
        let name = format!("object-{round}-{writer}-{number}");
        let new = Ask::post(PATH, &object(&name, 0));
        count += 1;
        let step = match count {
            1 => Ask::post(PATH, &object(&counter, count)),
            _ => Ask::put(&path, &object(&counter, count)),
        };
        for ask in [new, step] {
            let Ok(reply) = client.try_ask(ask).await else { return };
            assert!(matches!(reply.code, 200 | 201), "{}", reply.text());
            acknowledged.send(reply.json()).await.expect("someone who counts");
        }
    }
}

/// An object whose data says whether it is whole.
fn object(name: &str, count: u64) -> Value {
    let bytes = 100 + Random(name.bytes().map(u64::from).sum()).below(4_000) as usize;
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"count": count.to_string(), "filler": name.chars().cycle().take(bytes).collect::<String>()},
    })
}

fn count_of(object: &Value) -> u64 {
    text(object, "/data/count").parse().expect("a number")
}

fn is_all_there(list: &Value, acknowledged: &BTreeMap<String, Value>) {
    let items = list["items"].as_array().expect("items");
    let there: BTreeMap<&str, &Value> =
        items.iter().map(|item| (text(item, "/metadata/name"), item)).collect();
    for (name, item) in &there {
        assert_eq!(item["data"], object(name, count_of(item))["data"], "{name} is not whole");
    }
    for (name, was) in acknowledged {
        let is = there.get(name.as_str()).unwrap_or_else(|| panic!("{name} was acknowledged and is gone"));
        if name.starts_with("counter") {
            assert!(count_of(is) >= count_of(was) && rv(is) >= rv(was), "{name} went back");
        } else {
            assert_eq!((&is["metadata"], &is["data"]), (&was["metadata"], &was["data"]), "{name}");
        }
    }
}

/// What a watcher knows.
#[derive(Clone, Default)]
struct Follower {
    // name -> resourceVersion and count
    known: BTreeMap<String, (u64, u64)>,
    /// The resourceVersion of the last event.
    reached: u64,
}

impl Follower {
    /// Takes an event, which must be the next one of its object.
    fn take(&mut self, event: &Event) {
        let revision = rv(&event.object);
        assert!(revision > self.reached, "{} at {revision} after {}", event.short(), self.reached);
        self.reached = revision;
        let count = count_of(&event.object);
        let name = text(&event.object, "/metadata/name").to_owned();
        let before = self.known.insert(name, (revision, count));
        match (event.kind.as_str(), before) {
            ("ADDED", None) => {}
            ("MODIFIED", Some((_, before))) => assert_eq!(count, before + 1, "{}", event.short()),
            _ => panic!("{} where {before:?} was known", event.line),
        }
    }
}

/// Follows a watch until it breaks off.
async fn follow(mut follower: Follower, mut watch: Watch) -> Follower {
    while let Ok(Some(event)) = watch.next().await {
        follower.take(&event);
    }
    follower
}

/// name -> resourceVersion and count
fn versions(list: &Value) -> BTreeMap<String, (u64, u64)> {
    let items = list["items"].as_array().expect("items");
    items.iter().map(|item| (text(item, "/metadata/name").to_owned(), (rv(item), count_of(item)))).collect()
}

#[tokio::test]
async fn a_second_process_on_the_same_directory_is_refused() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let refused = Server::try_start(&scratch, &[]).await.err().expect("it must not start");
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    let errors: Vec<&str> = refused.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{}", refused.stderr);
    let store = scratch.path().join("data/store");
    let want = format!("error: {} is in use by process {}", store.display(), server.id());
    assert_eq!(errors[0], want);
    // The first one goes on, and its kubeconfig is still its own.
    server.admin().await.post(PATH, &object("c", 0)).await.expect(201);
    server.kill().await;
    let again = Server::start(&scratch, &[]).await;
    again.admin().await.get(&format!("{PATH}/c")).await.expect(200);
}

#[tokio::test]
async fn told_to_stop_it_ends_watches_in_good_order() {
    let scratch = Scratch::new();
    // For so long, and a little, it waits for what is not done.
    let server = Server::start(&scratch, &["--shutdown-watch-termination-grace-period=5m"]).await;
    let mut watches = Vec::new();
    for protocol in Protocol::BOTH {
        let client = server.admin_over(protocol).await;
        for path in [PATH, "/api/v1/namespaces", "/apis/apps/v1/deployments"] {
            watches.push(client.watch(&format!("{path}?watch=true")).await);
        }
    }
    // A connection that does nothing holds nothing up.
    let idle = server.admin().await;
    idle.post(PATH, &object("last", 0)).await.expect(201);
    server.terminate();
    let mut kinds = Vec::new();
    for watch in &mut watches {
        while let Some(event) = watch.next().await.expect("a watch was broken off") {
            kinds.push(event.short());
        }
    }
    assert_eq!(kinds.iter().filter(|kind| *kind == "ADDED last").count(), 2, "{kinds:?}");
    let status = timeout(WAIT, server.ended()).await.expect("it does not end");
    assert_eq!(status.code(), Some(0));
    let again = Server::start(&scratch, &[]).await;
    again.admin().await.get(&format!("{PATH}/last")).await.expect(200);
}

/// SplitMix64: the same numbers at every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
