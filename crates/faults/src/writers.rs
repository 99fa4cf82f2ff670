//! Those who write past the proxies while informers watch: a steady churn, and what is true.
//!
//! In: a client's configuration of the server itself. Out: namespaces with objects, writes at a rate, and the
//! server's own list. Owner of a thread while the churn lasts. Never: a write that counts before it is
//! acknowledged.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::Error;
use crate::limits::{DELETE_EVERY, FILL_AT_ONCE, OBJECTS};
use crate::subject::Digest;

/// The server past the proxies.
pub struct Direct {
    runtime: Runtime,
    client: Client,
}

/// What the server holds in a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    pub objects: u64,
    pub digest: u64,
}

/// Namespaces, and what is in them.
#[derive(Debug)]
pub struct World {
    namespaces: Vec<Place>,
    // Writes so far, each with a number of its own.
    writes: u64,
}

#[derive(Debug)]
struct Place {
    name: String,
    // The numbers of its objects: from, to. Names are made of them, and none comes twice.
    from: u64,
    to: u64,
    writes: u64,
}

/// Writes that go on until they are stopped.
#[derive(Debug)]
pub struct Churn {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<World, Error>>,
}

#[derive(Debug, Default)]
struct Shared {
    stopped: AtomicBool,
    marked: Mutex<Marked>,
}

#[derive(Debug, Default)]
struct Marked {
    mark: u64,
    // namespace -> revision of the first write that was begun since the mark.
    first: BTreeMap<String, u64>,
}

impl Direct {
    pub fn new(config: &kube::Config) -> Result<Direct, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("writers")
            .enable_all()
            .build()
            .map_err(Error::Start)?;
        let entered = runtime.enter();
        let client = Client::try_from(config.clone()).map_err(direct)?;
        drop(entered);
        Ok(Direct { runtime, client })
    }

    /// Makes `count` namespaces and fills them.
    pub fn make(&self, count: usize) -> Result<World, Error> {
        let places =
            (0..count).map(|at| Place { name: format!("faults-{at}"), from: 0, to: OBJECTS, writes: 0 });
        let namespaces: Vec<Place> = places.collect();
        self.runtime.block_on(async {
            let all = Api::<Namespace>::all(self.client.clone());
            for place in &namespaces {
                let namespace = serde_json::from_value(json!({"metadata": {"name": place.name}}));
                let namespace = namespace.map_err(|e| Error::Config(e.to_string()))?;
                all.create(&PostParams::default(), &namespace).await.map_err(direct)?;
            }
            let objects =
                namespaces.iter().flat_map(|place| (place.from..place.to).map(|at| (&place.name, at)));
            let made = stream::iter(objects).map(|(namespace, at)| async move {
                self.maps(namespace).create(&PostParams::default(), &map(at, 0)).await.map_err(direct)
            });
            made.buffer_unordered(FILL_AT_ONCE).try_for_each(|_| async { Ok(()) }).await
        })?;
        Ok(World { namespaces, writes: 0 })
    }

    /// What the server lists, by namespace.
    pub fn truth(&self) -> Result<BTreeMap<String, Truth>, Error> {
        let all = Api::<ConfigMap>::all(self.client.clone());
        let list = self.runtime.block_on(all.list(&ListParams::default())).map_err(direct)?;
        let mut truth = BTreeMap::<String, (u64, Digest)>::new();
        for map in list {
            let (objects, digest) = truth.entry(map.namespace().unwrap_or_default()).or_default();
            *objects += 1;
            digest.add(&map.name_any(), map.metadata.resource_version.as_deref().unwrap_or_default());
        }
        let truth = truth.into_iter();
        Ok(truth.map(|(name, (objects, digest))| (name, Truth { objects, digest: digest.0 })).collect())
    }

    fn maps(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// One write. The revision of an object that was written; none of one that was deleted.
    async fn write(&self, place: &mut Place, number: u64) -> Result<Option<u64>, Error> {
        let maps = self.maps(&place.name);
        place.writes += 1;
        let written = if place.writes.is_multiple_of(2 * DELETE_EVERY) {
            let made = maps.create(&PostParams::default(), &map(place.to, number)).await.map_err(direct)?;
            place.to += 1;
            made
        } else if place.writes.is_multiple_of(DELETE_EVERY) {
            maps.delete(&object(place.from), &DeleteParams::default()).await.map_err(direct)?;
            place.from += 1;
            return Ok(None);
        } else {
            let at = place.from + number % (place.to - place.from);
            let patch = Patch::Merge(json!({"data": {"counter": number.to_string()}}));
            maps.patch(&object(at), &PatchParams::default(), &patch).await.map_err(direct)?
        };
        Ok(written.metadata.resource_version.and_then(|revision| revision.parse().ok()))
    }
}

fn object(at: u64) -> String {
    format!("object-{at}")
}

fn map(at: u64, counter: u64) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(object(at));
    map.data = Some(BTreeMap::from([("counter".to_owned(), counter.to_string())]));
    map
}

fn direct(why: kube::Error) -> Error {
    Error::Direct(Box::new(why))
}

impl World {
    pub fn namespaces(&self) -> Vec<String> {
        self.namespaces.iter().map(|place| place.name.clone()).collect()
    }

    /// Starts to write, one namespace after another.
    pub fn churn(mut self, direct: Arc<Direct>, writes_per_second: u32) -> Result<Churn, Error> {
        let shared = Arc::new(Shared::default());
        let (seen, pause) = (shared.clone(), Duration::from_secs(1) / writes_per_second.max(1));
        let work = move || {
            let mut next = Instant::now();
            while !seen.stopped.load(Ordering::Relaxed) {
                let at = (self.writes % self.namespaces.len() as u64) as usize;
                self.writes += 1;
                let mark = seen.marked().mark;
                let place = &mut self.namespaces[at];
                let revision = direct.runtime.block_on(direct.write(place, self.writes))?;
                seen.note(mark, &place.name, revision);
                next += pause;
                // Nobody unparks: it is a rate. What is late is not made up for by a burst.
                match next.checked_duration_since(Instant::now()) {
                    Some(rest) => thread::park_timeout(rest),
                    None => next = Instant::now(),
                }
            }
            Ok(self)
        };
        let thread = thread::Builder::new().name("churn".to_owned()).spawn(work).map_err(Error::Start)?;
        Ok(Churn { shared, thread })
    }
}

impl Churn {
    /// From now on [`Churn::first`] tells of writes that are begun later.
    pub fn mark(&self) {
        let mut marked = self.shared.marked();
        marked.mark += 1;
        marked.first.clear();
    }

    /// The revision of the first write in each namespace since the mark, as far as there is one.
    ///
    /// # Errors
    /// Nobody writes any more.
    pub fn first(&self) -> Result<BTreeMap<String, u64>, Error> {
        match self.thread.is_finished() {
            true => Err(Error::Harness("the churn has ended; see the server".to_owned())),
            false => Ok(self.shared.marked().first.clone()),
        }
    }

    /// Ends the churn.
    pub fn stop(self) -> Result<World, Error> {
        self.shared.stopped.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().map_err(|_| Error::Harness("the churn panicked".to_owned()))?
    }
}

impl Shared {
    fn marked(&self) -> MutexGuard<'_, Marked> {
        self.marked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, mark: u64, namespace: &str, revision: Option<u64>) {
        let mut marked = self.marked();
        if let Some(revision) = revision
            && marked.mark == mark
            && !marked.first.contains_key(namespace)
        {
            marked.first.insert(namespace.to_owned(), revision);
        }
    }
}
