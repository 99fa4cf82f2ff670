//! A run: writers and watchers on a server that is killed under them, all of it recorded and judged.
//!
//! In: a [`Plan`]. Out: a [`Record`], which is judged by `forebay_conformance::history`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use forebay_clients::ControlPlane;
use forebay_clients::server::Implementation;
use forebay_conformance::history::{
    Call, Completion, Log, Notification, Operation, Recorder, Start, Stream, linearizable,
};
use forebay_rt::{Clock, Random};
use http::Method;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::api::{Api, Resource, definition};

const NAMESPACE: &str = "histories";
/// Two labels, each with a last object that ends its watchers.
const LABELS: [&str; 2] = ["x", "y"];
const WRITERS: usize = 8;
/// Watchers that share a client and its connections.
const SHARING: usize = 10;
/// Before somebody who was turned away comes again.
const PAUSE: Duration = Duration::from_millis(20);

/// How a watcher watches.
#[derive(Clone, Copy, Debug)]
pub struct Habit {
    pub label: Option<&'static str>,
    pub bookmarks: bool,
    /// Begins with the state each time, and not where it was.
    pub from_state: bool,
    /// Cuts its connection after so many events.
    pub cut_after: usize,
    /// Reads an event only once so many more writes were acknowledged.
    pub slow: u64,
}

pub struct Plan {
    pub resource: Resource,
    pub writes: usize,
    pub keys: u64,
    pub watchers: Vec<Habit>,
    /// Times that the server is killed.
    pub kills: usize,
}

/// What was recorded.
pub struct Record {
    pub operations: Vec<Operation>,
    pub streams: Vec<Stream>,
    pub log: Log,
    pub server: ControlPlane,
    pub api: Api,
    pub start: u64,
    kills: usize,
}

struct World {
    recorder: Recorder,
    // Writes acknowledged.
    written: AtomicU64,
    writers_left: AtomicUsize,
    // Whether the server is meant to be there.
    up: watch::Sender<bool>,
    clock: Clock,
    plan: Plan,
}

impl Plan {
    pub async fn run(self, limit: Duration) -> Record {
        timeout(limit, self.go()).await.expect("in time")
    }

    async fn go(self) -> Record {
        let implementation = Implementation::asked().expect("a server");
        let mut server = blocking(move || ControlPlane::start_as(implementation)).await.expect("a server");
        let api = Api::new(server.kubeconfig(), self.resource, NAMESPACE).await;
        prepare(&api).await;
        let start = api.revision().await;
        let world = Arc::new(World {
            recorder: Recorder::default(),
            written: AtomicU64::new(0),
            writers_left: AtomicUsize::new(WRITERS),
            up: watch::Sender::new(true),
            clock: Clock::system(),
            plan: self,
        });
        let mut watching = JoinSet::new();
        let mut shared = None;
        for (number, habit) in world.plan.watchers.clone().into_iter().enumerate() {
            if number % SHARING == 0 {
                shared = Some(Api::new(server.kubeconfig(), world.plan.resource, NAMESPACE).await);
            }
            let api = shared.clone().expect("made before");
            watching.spawn(world.clone().watch(api, format!("watcher {number}"), habit, start));
        }
        let mut writing = JoinSet::new();
        for number in 0..WRITERS as u64 {
            let api = Api::new(server.kubeconfig(), world.plan.resource, NAMESPACE).await;
            writing.spawn(world.clone().write(api, number));
        }
        server = world.kill_now_and_then(server).await;
        while let Some(ended) = writing.join_next().await {
            ended.expect("a writer");
        }
        for label in LABELS {
            let (key, value) = (last_key(label), format!("last-{label}"));
            let done = api.call(&world.recorder, &key, Call::Create { value }, label).await;
            assert!(matches!(done, Some(Completion::Written { .. })), "{done:?}");
        }
        let mut streams = Vec::new();
        while let Some(watched) = watching.join_next().await {
            streams.extend(watched.expect("a watcher"));
        }
        let operations = world.recorder.operations();
        let log = Log::gather(&streams).unwrap_or_else(|why| panic!("{why}"));
        Record { operations, streams, log, server, api, start, kills: world.plan.kills }
    }
}

impl Record {
    /// Judges everything.
    pub fn judge(&self) {
        let told = |why| panic!("{why}");
        self.log.holds(&self.operations).unwrap_or_else(told);
        linearizable(&self.operations, &self.log).unwrap_or_else(told);
        for stream in &self.streams {
            stream.check(&self.log).unwrap_or_else(told);
        }
    }

    pub fn events(&self) -> usize {
        let events = |stream: &Stream| {
            stream.items.iter().filter(|item| matches!(item, Notification::Event(_))).count()
        };
        self.streams.iter().map(events).sum()
    }

    pub fn figure(&self) -> String {
        let unanswered = self.operations.iter().filter(|operation| operation.ended.is_none()).count();
        format!(
            "{:?}: {} operations by {WRITERS} clients, {unanswered} without an answer, {} kills; {} events in the log, {} told in {} histories of watchers: 0 lost, 0 repeated",
            self.api.resource,
            self.operations.len(),
            self.kills,
            self.log.entries.len(),
            self.events(),
            self.streams.len(),
        )
    }
}

impl World {
    /// Kills the server whenever its share of the writes is done. Returns it running.
    async fn kill_now_and_then(&self, mut server: ControlPlane) -> ControlPlane {
        let (writes, kills) = (self.plan.writes as u64, self.plan.kills as u64);
        for number in 1..=kills {
            while self.written.load(Ordering::SeqCst) < writes * number / (kills + 1) {
                self.clock.sleep(PAUSE).await;
            }
            self.up.send_replace(false);
            server = blocking(move || {
                server.kill().expect("killed");
                server.start_again().expect("started again");
                server
            })
            .await;
            self.up.send_replace(true);
        }
        server
    }

    async fn is_up(&self) {
        let mut up = self.up.subscribe();
        drop(up.wait_for(|up| *up).await.expect("the sender is ours"));
    }

    /// Writes and reads at random until enough is written.
    async fn write(self: Arc<World>, api: Api, number: u64) {
        let random = Random::seeded(number);
        let mut known = vec![None; self.plan.keys as usize];
        for attempt in 0_u64.. {
            if self.written.load(Ordering::SeqCst) >= self.plan.writes as u64 {
                break;
            }
            self.is_up().await;
            let place = random.below(self.plan.keys) as usize;
            let (key, value) = (format!("k-{place}"), format!("w{number}-{attempt}"));
            let expect = known[place].filter(|_| random.below(2) == 0);
            let call = match random.below(10) {
                0 | 1 => Call::Get,
                2 | 3 => Call::Create { value },
                4 => Call::Delete { expect },
                _ if api.resource == Resource::Events => Call::Put { value, expect },
                _ if expect.is_some() || api.resource.updates_unconditionally() => {
                    Call::Update { value, expect }
                }
                _ => Call::Create { value },
            };
            let is_write = call != Call::Get;
            let answer = api.call(&self.recorder, &key, call, LABELS[random.below(2) as usize]).await;
            match answer {
                Some(Completion::Written { revision } | Completion::Found { revision, .. }) => {
                    known[place] = Some(revision);
                }
                Some(_) => {}
                None => self.clock.sleep(PAUSE).await,
            }
            if is_write && matches!(answer, Some(Completion::Written { .. } | Completion::Deleted)) {
                self.written.fetch_add(1, Ordering::SeqCst);
            }
        }
        self.writers_left.fetch_sub(1, Ordering::SeqCst);
    }

    /// Watches by its habit until it is told the last object that it can see.
    async fn watch(self: Arc<World>, api: Api, name: String, habit: Habit, start: u64) -> Vec<Stream> {
        let begin = |start| Stream {
            name: name.clone(),
            start,
            label: habit.label.map(str::to_owned),
            items: Vec::new(),
            cut: true,
        };
        let last = last_key(habit.label.unwrap_or(LABELS[1]));
        let is_last = |item: &Notification| matches!(item, Notification::Event(event) if event.key == last);
        let mut streams = vec![begin(if habit.from_state { Start::State } else { Start::After(start) })];
        loop {
            self.is_up().await;
            let stream = streams.last_mut().expect("one at least");
            let Some(mut watch) = api.watch(&query(&habit, stream)).await else {
                self.clock.sleep(PAUSE).await;
                continue;
            };
            let (mut events, mut told) = (0, false);
            while events < habit.cut_after {
                self.wait_for_writes(habit.slow).await;
                let Some(item) = watch.next().await else { break };
                events += usize::from(matches!(item, Notification::Event(_)));
                told |= is_last(&item);
                stream.items.push(item);
                // A state that has the last object is over when it is whole, whichever comes first.
                if told && (!habit.from_state || self.is_whole(stream)) {
                    return streams;
                }
            }
            drop(watch);
            if habit.from_state {
                if self.is_whole(stream) && stream.items.iter().any(is_last) {
                    return streams;
                }
                streams.push(begin(Start::State));
            }
        }
    }

    fn is_whole(&self, stream: &Stream) -> bool {
        stream.items.iter().any(|item| matches!(item, Notification::InitialEnd(_)))
    }

    /// Waits until so many more writes were acknowledged, or no more will be.
    async fn wait_for_writes(&self, more: u64) {
        let until = self.written.load(Ordering::SeqCst) + more;
        while self.written.load(Ordering::SeqCst) < until && self.writers_left.load(Ordering::SeqCst) > 0 {
            self.clock.sleep(PAUSE).await;
        }
    }
}

fn query(habit: &Habit, stream: &Stream) -> String {
    let mut query = match (stream.start, stream.reached()) {
        (Start::After(_), Some(reached)) => format!("resourceVersion={reached}"),
        _ => "sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
    };
    if let Some(label) = habit.label {
        query += &format!("&labelSelector=on%3D{label}");
    }
    if habit.bookmarks || habit.from_state {
        // Asked for so long, it has one soon.
        query += "&allowWatchBookmarks=true&timeoutSeconds=600";
    }
    query
}

fn last_key(label: &str) -> String {
    format!("last-{label}")
}

/// The namespace, and the custom resource.
async fn prepare(api: &Api) {
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
    let made = api.send(Method::POST, "/api/v1/namespaces", Some(&namespace)).await;
    assert_eq!(made.expect("an answer").0, 201);
    if api.resource == Resource::Widgets {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let made = api.send(Method::POST, path, Some(&definition())).await;
        assert_eq!(made.expect("an answer").0, 201);
        let path = api.resource.path(NAMESPACE);
        while !matches!(api.send(Method::GET, &path, None).await, Some((200, _))) {
            Clock::system().sleep(PAUSE).await;
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("done")
}
