//! The verbs on one server's resources.
//!
//! Owns the published catalog. In: a target, options and a body. Out: an answer, or a `Status`. The steps of a write
//! are in reading order in `create.rs`, `update.rs`, `patch.rs` and `delete.rs`; all of them end in
//! `Store::guarded_update`.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use forebay_apimachinery::{Key, Revision, Status};
use forebay_backend::Backend;
use forebay_object::{Layout, Object};
use forebay_rt::{Clock, Random, Tasks};
use forebay_watchcache::limits::{self, Pace};
use forebay_watchcache::{EarlyReaders, History, Resource, Room};
use forebay_watchcache::{Relief, window_cap};
use tokio::sync::watch;

use crate::admission::{Admission, ServiceAccountAdmission};
use crate::catalog::{self, Catalog, Opener, Served};
use crate::errors;
use crate::frames::Frames;
use crate::identity::Identity;
use crate::services::{Services, ServicesConfig};
use crate::store::Store;

/// What a registry is made with.
#[derive(Clone)]
pub struct Config {
    /// `/registry`: what every storage key begins with.
    pub storage_prefix: String,
    /// How long events are kept (`--event-ttl`); `None` is until they are deleted.
    pub event_ttl: Option<Duration>,
    /// A watch without a timeout of its own ends after this to twice this (`--min-request-timeout`).
    pub min_request_timeout: Duration,
    /// Whether pods have to have a service account.
    pub service_account_admission: ServiceAccountAdmission,
    pub services: ServicesConfig,
    /// Which admission plugins are on (`--disable-admission-plugins`).
    pub admission: Admission,
    /// How soon the caches seal what is quiet.
    pub pace: Pace,
    /// Whose the store's history is.
    pub history: History,
    /// For what the caches hold in plain form and have not put at rest yet.
    pub room: Arc<Room>,
    /// Held back until [`Registry::start`] is through.
    pub early: Arc<EarlyReaders>,
    /// Which server this is; one without says nowhere that it is there.
    pub identity: Option<Identity>,
}

impl Config {
    /// What every store of the server is opened with.
    pub(crate) fn opener(&self, backend: &Arc<dyn Backend>, clock: &Clock, tasks: &Tasks) -> Opener {
        Opener {
            storage_prefix: self.storage_prefix.clone(),
            pace: self.pace,
            history: self.history,
            room: self.room.clone(),
            early: self.early.clone(),
            backend: backend.clone(),
            clock: clock.clone(),
            tasks: tasks.clone(),
        }
    }
}

/// A lone server's: nothing that a flag of its own would have to ask for, and events are kept.
impl Default for Config {
    fn default() -> Config {
        Config {
            storage_prefix: "/registry".to_string(),
            event_ttl: None,
            min_request_timeout: Duration::from_secs(1_800),
            service_account_admission: ServiceAccountAdmission::Off,
            services: ServicesConfig::default(),
            admission: Admission::default(),
            pace: limits::PACE,
            history: History::Own,
            room: Arc::new(Room::new(limits::LOOSE_BYTES_MAX)),
            early: Arc::new(EarlyReaders::held_back()),
            identity: None,
        }
    }
}

/// The verbs. Cheap to clone.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

pub struct Inner {
    pub(crate) config: Config,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) opener: Opener,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    pub(crate) tasks: Tasks,
    pub(crate) services: Services,
    pub(crate) frames: Arc<Frames>,
    catalog: ArcSwap<Catalog>,
    // The revision of CRDs that the catalog has taken in, for those who wait for it.
    catalog_revision: watch::Sender<Option<Revision>>,
}

impl std::ops::Deref for Registry {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Registry {
    /// A registry of the built-in resources on `backend`. CRDs are served once [`Registry::start`] has run.
    pub fn new(
        config: Config,
        backend: Arc<dyn Backend>,
        clock: Clock,
        random: Random,
        tasks: Tasks,
    ) -> Registry {
        let opener = config.opener(&backend, &clock, &tasks);
        let catalog = catalog::table::catalog(&opener, forebay_strategy::convert::of);
        let services = Services::new(&opener);
        Registry(Arc::new(Inner {
            config,
            backend,
            opener,
            clock,
            random,
            tasks,
            services,
            frames: Arc::default(),
            catalog: ArcSwap::from_pointee(catalog),
            catalog_revision: watch::Sender::new(None),
        }))
    }

    /// What is served now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.catalog.load_full()
    }

    /// Whether nobody else writes to the store.
    pub fn is_alone(&self) -> bool {
        self.0.config.history == History::Own
    }

    /// Resources that cannot be read yet.
    pub fn unready(&self) -> usize {
        self.catalog().stores().iter().filter(|store| store.cacher.snapshot().is_err()).count()
    }

    /// Sets what all caches together may keep of protobuf messages from now on, besides what they do: the messages of a whole state
    /// are two thirds of its JSON, and are made faster than memory can give way.
    pub fn keep_messages(&self, bytes: u64) {
        self.0.config.room.messages().set(bytes);
    }

    /// Lets every cache let go of what `relief` says. How many windows of events were made to forget something.
    pub fn relieve(&self, relief: Relief) -> usize {
        let stores = self.catalog().stores();
        let cap = window_cap(stores.iter().map(|store| store.cacher.window()), relief);
        let shrunk = stores.iter().filter(|store| {
            store.cacher.relieve(relief);
            store.cacher.cap_window(cap)
        });
        shrunk.count()
    }

    /// Wall time as Tables show ages at.
    pub fn timestamp(&self) -> jiff::Timestamp {
        crate::wall_time::timestamp(&self.0.clock)
    }

    /// The clock that the registry lives by.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// The store of a built-in resource.
    pub(crate) fn built_in(&self, group: &str, version: &str, resource: &str) -> Result<Arc<Store>, Status> {
        let served = self.catalog().resource(group, version, resource).cloned();
        let store = served.and_then(|served| served.store.clone());
        store.ok_or_else(|| Status::internal(format!("{resource} has no storage")))
    }

    /// Publishes a catalog. Only the CRD controller does.
    pub(crate) fn publish(&self, catalog: Catalog) {
        let revision = catalog.revision;
        self.0.catalog.store(Arc::new(catalog));
        self.0.catalog_revision.send_replace(revision);
    }

    /// Tells of each new catalog.
    pub(crate) fn watch_catalog(&self) -> watch::Receiver<Option<Revision>> {
        self.0.catalog_revision.subscribe()
    }

    /// Waits until the catalog has taken in every CRD up to `revision`, at most until `deadline`.
    pub(crate) async fn catalog_at_least(&self, revision: Revision, deadline: forebay_rt::Instant) {
        let mut seen = self.0.catalog_revision.subscribe();
        tokio::select! {
            _ = seen.wait_for(|now| now.is_some_and(|now| now >= revision)) => {}
            () = self.0.clock.sleep_until(deadline) => {}
        }
    }

    /// The store of `served`.
    pub(crate) fn store_of(&self, served: &Served) -> Result<Arc<Store>, Status> {
        served.store.clone().ok_or_else(|| served.method_not_supported("read"))
    }
}

/// The whole object as an answer has it.
pub(crate) fn whole(served: &Served, object: &Object, revision: Option<Revision>) -> bytes::Bytes {
    let mut out = Vec::with_capacity(object.body_len() + 64);
    served.write_object(object, revision, &mut out);
    out.push(b'\n');
    bytes::Bytes::from(out)
}
