//! The cache through the registry, in this process: no HTTP, any backend.
//!
//! In: requests as the edge would take them apart. Out: [`Observation`]s without codes. Owner of the
//! registry's tasks and of the wall clock, which is how history grows old.

use std::path::PathBuf;
use std::sync::Arc;

use forebay_api::{Answer, Api, Body, PatchKind};
use forebay_apimachinery::options::{
    CreateOptions, DeleteOptions, GetOptions, ListOptions, PatchOptions, Query,
};
use forebay_apimachinery::{Lease, Status};
use forebay_backend::Backend;
use forebay_catalog::Target;
use forebay_embedded::{Engine, Options};
use forebay_object::Object;
use forebay_reads::{As, Step, WatchBody, WriteStatus};
use forebay_registry::{Config, Registry};
use forebay_rt::{Clock, Duration, ManualClock, Random, Tasks};
use serde_json::{Value, json};

use super::history::ApiResource;
use super::shape::Observation;
use super::table::{RequestPath, Verb};

/// Wall time at the start; what it is does not matter.
const START_MS: u64 = 1_700_000_000_000;
/// Longer than any store of ours keeps history.
const AGE_MS: u64 = 20 * 60 * 1000;
const CHUNK_BYTES: usize = 16 << 10;

/// Lets so much time pass that the history so far is given up: once until there is a mark behind it, and once
/// until that mark is old.
pub async fn age(engine: &Engine, hand: &ManualClock) {
    for _ in 0..2 {
        hand.advance_ms(AGE_MS);
        engine.settle().await;
    }
}

/// A backend to run the rows on.
pub enum Storage {
    EmbeddedInMemory,
    EmbeddedOnDisk(PathBuf),
    // The engine on etcd goes here: what opens it, and how its history is compacted in `Local::age`.
}

pub struct Local {
    pub registry: Registry,
    engine: Arc<Engine>,
    hand: ManualClock,
    tasks: Tasks,
}

/// A watch that has begun.
pub struct LocalWatch(Box<WatchBody>);

impl Local {
    /// Opens the store and serves it.
    ///
    /// # Errors
    /// Why it cannot be.
    pub async fn start(storage: &Storage) -> Result<Local, String> {
        Local::start_behind(storage, |backend| backend).await
    }

    /// As [`Local::start`], with a backend between the engine and the registry.
    ///
    /// # Errors
    /// Why it cannot be.
    pub async fn start_behind(
        storage: &Storage,
        behind: impl FnOnce(Arc<dyn Backend>) -> Arc<dyn Backend>,
    ) -> Result<Local, String> {
        let (clock, hand) = Clock::manual(START_MS);
        let options = Options { clock: clock.clone(), ..Options::default() };
        let engine = match storage {
            Storage::EmbeddedInMemory => Engine::open_in_memory(options),
            Storage::EmbeddedOnDisk(dir) => Engine::open(dir, options),
        };
        let engine = engine.map_err(|e| e.to_string())?;
        let tasks = Tasks::new();
        let backend = behind(engine.clone());
        let registry = Registry::new(Config::default(), backend, clock, Random::seeded(7), tasks.clone());
        registry.start().await.map_err(|status| status.message)?;
        Ok(Local { registry, engine, hand, tasks })
    }

    /// Lets so much time pass that the history so far is given up.
    pub async fn age(&self) {
        age(&self.engine, &self.hand).await;
    }

    /// Ends its tasks and closes the store.
    pub async fn stop(self) {
        let Local { registry, engine, tasks, .. } = self;
        drop(registry);
        tasks.stop(Duration::from_secs(5)).await;
        engine.close();
    }

    /// # Errors
    /// A kind that is not served.
    pub fn target(
        &self,
        kind: &ApiResource,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> Result<Target, String> {
        let served = self.registry.catalog().resource(kind.group, kind.version, kind.plural).cloned();
        Ok(Target {
            served: served.ok_or_else(|| format!("{} is not served", kind.plural))?,
            namespace: namespace.filter(|_| kind.namespaced).map(str::to_owned),
            name: name.map(str::to_owned),
            subresource: None,
            caller: None,
            lease: Lease::of_server(),
            context: forebay_catalog::RequestContext::default(),
        })
    }

    /// # Errors
    /// What is no Status: an answer that is no JSON.
    pub async fn create(&self, target: &Target, object: &Value) -> Result<Observation, String> {
        let body = Body::Value(object.clone());
        answer(self.registry.create(target, &body, &CreateOptions::default()).await.map(written))
    }

    /// # Errors
    /// As [`Local::create`].
    pub async fn patch(&self, target: &Target, patch: &Value) -> Result<Observation, String> {
        let (patch, options) = (patch.to_string(), PatchOptions::default());
        answer(self.registry.patch(target, PatchKind::Merge, patch.as_bytes(), &options).await.map(written))
    }

    /// # Errors
    /// As [`Local::create`].
    pub async fn delete(&self, target: &Target) -> Result<Observation, String> {
        let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
        answer(self.registry.delete(target, &options).await.map(written))
    }

    /// GET, LIST and DELETE of a collection.
    ///
    /// # Errors
    /// An answer that is no JSON.
    pub async fn read(&self, target: &Target, verb: Verb, query: &str) -> Result<Observation, String> {
        let query = Query::parse(query);
        answer(match verb {
            Verb::Get => self.get(target, &query).await,
            Verb::DeleteCollection => self.delete_collection(target, &query).await,
            Verb::List | Verb::Watch => self.list(target, &query).await,
        })
    }

    /// Begins a watch, or is refused.
    ///
    /// # Errors
    /// An answer that is no JSON.
    pub async fn watch(
        &self,
        target: &Target,
        path: &RequestPath,
        query: &str,
    ) -> Result<Result<LocalWatch, Observation>, String> {
        let begun = async {
            let options = ListOptions::from_query(&Query::parse(query))?;
            let planned = Api::watch(&self.registry, target, &options, As::Object.into(), path.watch_path)?;
            let write_status: WriteStatus =
                |status, out| out.extend_from_slice(status_object(status).to_string().as_bytes());
            planned.run((), write_status).await
        };
        match begun.await {
            Ok(begun) => Ok(Ok(LocalWatch(Box::new(begun.body)))),
            Err(status) => answer(Err(status)).map(Err),
        }
    }

    async fn get(&self, target: &Target, query: &Query) -> Result<Vec<u8>, Status> {
        let found: Arc<Object> =
            self.registry.get(target, &GetOptions::from_query(query).resource_version).await?;
        Ok(target.served.to_value(&found)?.to_string().into_bytes())
    }

    async fn list(&self, target: &Target, query: &Query) -> Result<Vec<u8>, Status> {
        let options = ListOptions::from_query(query)?;
        let mut body = self.registry.list(target, &options, As::Object).await?;
        let mut out = Vec::new();
        while body.next_chunk(CHUNK_BYTES, &mut out) {}
        Ok(out)
    }

    async fn delete_collection(&self, target: &Target, query: &Query) -> Result<Vec<u8>, Status> {
        let (options, list) = (DeleteOptions::from_query(query)?, ListOptions::from_query(query)?);
        self.registry.delete_collection(target, &list, &options).await.map(written)
    }
}

impl LocalWatch {
    /// Every event until the stream ends.
    ///
    /// # Errors
    /// A stream that is no sequence of JSON values.
    pub async fn events(mut self) -> Result<Observation, String> {
        let mut all = Vec::new();
        while self.0.next(CHUNK_BYTES, &mut all).await != Step::End {}
        let events = serde_json::Deserializer::from_slice(&all).into_iter::<Value>();
        let events = events.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
        Ok(Observation { events: Some(events), ..Observation::default() })
    }
}

fn written(answer: Answer) -> Vec<u8> {
    answer.outcome.json().to_vec()
}

fn answer(done: Result<Vec<u8>, Status>) -> Result<Observation, String> {
    let body = match done {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| e.to_string())?,
        Err(status) => status_object(&status),
    };
    Ok(Observation { body, ..Observation::default() })
}

/// What of a Status does not belong to HTTP.
fn status_object(status: &Status) -> Value {
    let mut object = json!({ "kind": "Status", "message": status.message });
    if !status.reason.as_str().is_empty() {
        object["reason"] = status.reason.as_str().into();
    }
    if !status.continue_token.is_empty() {
        object["metadata"] = json!({ "continue": status.continue_token });
    }
    object["details"] = status.details().into();
    object
}
