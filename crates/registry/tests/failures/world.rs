//! A server without HTTP on one thread and a clock that stands still until nothing else is left to do.
//!
//! In: requests as the registry takes them, faults of the store, time that passes. Out: statuses, lists, and
//! what watches were told, as text.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_api::{Answer, Body, PatchKind};
use forebay_apimachinery::options::{
    CreateOptions, DeleteOptions, ListOptions, PatchOptions, Query, UpdateOptions,
};
use forebay_apimachinery::{Lease, Reason, Status};
use forebay_catalog::Target;
use forebay_embedded::faults::{Crash, Machine};
use forebay_embedded::{Engine, Options, Stepper};
use forebay_reads::{As, ListBody, Step, WatchBody};
use forebay_registry::{Config, Registry};
use forebay_rt::{BlockingAsTasks, Clock, CutOnDrop, Duration, Random, Tasks};
use serde_json::{Value, json};

use crate::store::{Faults, FaultyStore};

pub const CM: &str = "/v1/configmaps/default";
pub const SECRETS: &str = "/v1/secrets/default";
pub const PODS: &str = "/v1/pods/default";
pub const MINUTE: Duration = Duration::from_secs(60);

/// Nothing more comes within this time of the clock, which only moves when nothing can go on.
const QUIET: Duration = Duration::from_millis(1);
const BEGIN_MS: u64 = 1_700_000_000_000;

/// Every change differs from every other.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// See the module's doc.
pub struct World {
    pub registry: Registry,
    pub store: Arc<FaultyStore>,
    machine: Machine,
    clock: Clock,
    _writer: CutOnDrop,
    _cut: CutOnDrop,
    _alone: BlockingAsTasks,
}

/// An open watch.
pub struct Watching {
    body: WatchBody,
    /// The resourceVersion of the last event or bookmark.
    pub reached: u64,
}

impl World {
    /// On an empty store, ready.
    pub async fn new() -> World {
        World::configured(Config::default()).await
    }

    /// The same of a server that is started otherwise.
    pub async fn configured(config: Config) -> World {
        let world = World::filling(config, Machine::new(), Clock::steady(BEGIN_MS), |_| {}).await;
        world.registry.start().await.expect("starts");
        world
    }

    /// On what is on that machine, its caches not filled yet.
    async fn filling(
        config: Config,
        machine: Machine,
        clock: Clock,
        change: impl FnOnce(&mut Faults),
    ) -> World {
        let alone = BlockingAsTasks::on_this_thread();
        let options = Options { clock: clock.clone(), ..Options::default() };
        let (engine, stepper) = Engine::open_stepped(machine.disk(), options).expect("opens");
        let store = Arc::new(FaultyStore::new(engine));
        store.set(change);
        let tasks = Tasks::new();
        let _writer = start_writer(stepper, &store, &clock);
        let registry = Registry::new(config, store.clone(), clock.clone(), Random::seeded(7), tasks.clone());
        World { registry, store, machine, clock, _writer, _cut: tasks.cut_on_drop(), _alone: alone }
    }

    /// Killed, and started again on the same disk; the caches fill under these faults.
    pub async fn killed(self, change: impl FnOnce(&mut Faults)) -> World {
        let (machine, clock) = (self.machine.crash(Crash::KeepAll), self.clock.clone());
        drop(self);
        World::filling(Config::default(), machine, clock, change).await
    }

    /// Killed, started again, and ready.
    pub async fn restarted(self) -> World {
        let world = self.killed(|_| {}).await;
        world.registry.start().await.expect("starts");
        world
    }

    /// What is on the disk now.
    pub fn backup(&self) -> Machine {
        self.machine.crash(Crash::KeepAll)
    }

    /// Puts the store back to a backup of it, while the server runs.
    pub fn put_back(&mut self, backup: Machine) {
        let options = Options { clock: self.clock.clone(), ..Options::default() };
        let (engine, stepper) = Engine::open_stepped(backup.disk(), options).expect("opens");
        self._writer = start_writer(stepper, &self.store, &self.clock);
        self.store.put_back(engine);
        self.machine = backup;
    }

    pub fn set(&self, change: impl FnOnce(&mut Faults)) {
        self.store.set(change);
    }

    pub async fn pass(&self, span: Duration) {
        self.clock.sleep(span).await;
    }

    /// Lets everything go on that can.
    pub async fn settle(&self) {
        self.pass(QUIET).await;
    }

    /// How long something takes by the clock, and what it gives.
    pub async fn timed<T>(&self, what: impl Future<Output = T>) -> (Duration, T) {
        let began = self.clock.now();
        let done = what.await;
        (self.clock.now() - began, done)
    }

    /// What `/group/version/resource[/namespace[/name]]` names; the core group is left out.
    pub fn target(&self, path: &str) -> Target {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let at = usize::from(parts[0] != "v1");
        let group = if at == 1 { parts[0] } else { "" };
        let catalog = self.registry.catalog();
        let served = catalog.resource(group, parts[at], parts[at + 1]).expect("served").clone();
        let mut rest = parts[at + 2..].iter().map(|part| (*part).to_string());
        let namespace = if served.namespaced { rest.next() } else { None };
        Target {
            served,
            namespace,
            name: rest.next(),
            subresource: None,
            caller: None,
            lease: Lease::of_server(),
            context: forebay_catalog::RequestContext::default(),
        }
    }

    /// Creates an object of `path`; what it is then, and what its writer is told.
    pub async fn create(&self, path: &str, object: Value) -> Result<(Value, Vec<String>), Status> {
        let target = self.target(path);
        let made = self.registry.create(&target, &text(&object), &CreateOptions::default()).await?;
        let told = made.warnings.clone();
        Ok((shown(Ok(made)), told))
    }

    /// Patches the object of `path`.
    pub async fn merge(&self, path: &str, patch: Value) -> Result<Value, Status> {
        let (target, patch) = (self.target(path), patch.to_string());
        let options = PatchOptions::default();
        let made = self.registry.patch(&target, PatchKind::Merge, patch.as_bytes(), &options).await?;
        Ok(shown(Ok(made)))
    }

    /// Creates or replaces an object of `path`, with labels such as `on=yes`; returns its resourceVersion.
    pub async fn put(&self, path: &str, name: &str, labels: &str) -> u64 {
        let target = self.target(path);
        let mut object = json!({
            "apiVersion": "v1", "kind": &*target.served.gvk.kind, "metadata": { "name": name },
        });
        if let Some((key, value)) = labels.split_once('=') {
            object["metadata"]["labels"] = json!({ key: value });
        }
        if &*target.served.gvk.kind == "Pod" {
            object["spec"] = json!({ "containers": [{ "name": "c", "image": "i" }] });
        }
        let made = self.registry.create(&target, &text(&object), &CreateOptions::default()).await;
        match made {
            Err(status) if status.reason == Reason::AlreadyExists => {
                let target = self.target(&format!("{path}/{name}"));
                // What changes must change.
                object["metadata"]["annotations"] =
                    json!({ "at": CHANGES.fetch_add(1, Ordering::Relaxed).to_string() });
                rv(&shown(self.registry.update(&target, &text(&object), &UpdateOptions::default()).await))
            }
            made => rv(&shown(made)),
        }
    }

    pub async fn delete(&self, path: &str, name: &str) {
        let target = self.target(&format!("{path}/{name}"));
        self.registry.delete(&target, &DeleteOptions::default()).await.expect("deletes");
    }

    pub async fn get(&self, path: &str, resource_version: &str) -> Result<Value, Status> {
        let target = self.target(path);
        let found = self.registry.get(&target, resource_version).await?;
        target.served.to_value(&found)
    }

    /// A list that is not read yet.
    pub async fn open_list(&self, path: &str, query: &str) -> Result<ListBody, Status> {
        let options = ListOptions::from_query(&Query::parse(query))?;
        self.registry.list(&self.target(path), &options, As::Object).await
    }

    pub async fn list(&self, path: &str, query: &str) -> Result<Value, Status> {
        let mut body = self.open_list(path, query).await?;
        let mut out = Vec::new();
        while body.next_chunk(64, &mut out) {}
        Ok(serde_json::from_slice(&out).expect("a list is JSON"))
    }

    /// The names of a list's items, and its resourceVersion.
    pub async fn names(&self, path: &str, query: &str) -> (String, u64) {
        let list = self.list(path, query).await.expect("lists");
        let items = list["items"].as_array().expect("items");
        let names: Vec<&str> = items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect();
        (names.join(" "), rv(&list))
    }

    pub async fn watch(&self, path: &str, query: &str) -> Watching {
        self.try_watch(path, query).await.expect("begins")
    }

    pub async fn try_watch(&self, path: &str, query: &str) -> Result<Watching, Status> {
        let options = ListOptions::from_query(&Query::parse(query))?;
        let body = self.registry.watch(&self.target(path), &options, As::Object, false).await?;
        Ok(Watching { body, reached: options.resource_version.parse().unwrap_or(0) })
    }
}

impl Watching {
    /// What it is told now: `+a ~a -a END B 410 .`, the point being its end.
    pub async fn told(&mut self) -> String {
        let lines: Vec<String> = self.frames().await.iter().map(short).collect();
        lines.join(" ")
    }

    /// The frames that there are now.
    pub async fn frames(&mut self) -> Vec<Value> {
        let mut frames: Vec<Value> = Vec::new();
        loop {
            let mut out = Vec::new();
            let Ok(step) = tokio::time::timeout(QUIET, self.body.next(1 << 10, &mut out)).await else {
                return frames;
            };
            let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            frames.extend(lines.map(|line| serde_json::from_slice::<Value>(line).expect("JSON")));
            if let Some(last) = frames.last() {
                self.reached = rv(&last["object"]).max(self.reached);
            }
            if step == Step::End {
                if out.is_empty() {
                    frames.push(json!({ "type": "." }));
                }
                return frames;
            }
        }
    }
}

/// Starts the store's one writer, which ends when what is returned is dropped.
fn start_writer(stepper: Stepper, store: &Arc<FaultyStore>, clock: &Clock) -> CutOnDrop {
    let tasks = Tasks::new();
    tasks.spawn("the store's writer", write(stepper, store.clone(), clock.clone()));
    tasks.cut_on_drop()
}

/// The store's one writer: does what is waiting when it is rung, and what is due each second.
async fn write(mut stepper: Stepper, store: Arc<FaultyStore>, clock: Clock) {
    loop {
        stepper.step();
        tokio::select! {
            () = store.nudge.notified() => {}
            () = clock.sleep(Duration::from_secs(1)) => {}
        }
    }
}

fn short(frame: &Value) -> String {
    let object = &frame["object"];
    let name = object["metadata"]["name"].as_str().unwrap_or("");
    match frame["type"].as_str().unwrap_or("") {
        "ADDED" => format!("+{name}"),
        "MODIFIED" => format!("~{name}"),
        "DELETED" => format!("-{name}"),
        "BOOKMARK" if !object["metadata"]["annotations"].is_null() => "END".to_string(),
        "BOOKMARK" => "B".to_string(),
        "ERROR" => object["reason"].as_str().unwrap_or("?").to_string(),
        other => other.to_string(),
    }
}

fn text(object: &Value) -> Body {
    Body::Json(object.to_string().into())
}

pub fn shown(answer: Result<Answer, Status>) -> Value {
    serde_json::from_slice(&answer.expect("is taken").outcome.json()).expect("an answer is JSON")
}

pub fn rv(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}
