//! The store, whichever it is: in this process, or an etcd cluster.
//!
//! In: what was decided. Out: one handle for the server. Never: logic of either.

use std::sync::Arc;
use std::time::Duration;

use forebay_backend::Backend;
use forebay_embedded::{Engine, Options, Syncs};
use forebay_etcd::Etcd;
use forebay_etcd_codec::AsKubernetes;
use forebay_registry::History;
use forebay_rt::{Clock, Tasks};

use crate::error::Error;
use crate::prepare::Prepared;
use crate::server::failed;
use forebay_migrate::live;

/// How long it is waited for an etcd that does not answer when the server starts.
const REACH_WAIT: Duration = Duration::from_secs(20);

/// How often a cache is held against etcd, or up to half more: as kube-apiserver does it.
const CHECK_EVERY: Duration = Duration::from_secs(5 * 60);

/// After so long, something that a Service's address or port was claimed for is known to all servers, or
/// never was.
const LEAK_GRACE: Duration = Duration::from_secs(180);

/// See the module's doc. Cheap to clone.
#[derive(Clone)]
pub enum Store {
    Embedded(Arc<Engine>),
    Etcd(Arc<Etcd>),
}

impl Store {
    /// Opens the store that was asked for.
    ///
    /// # Errors
    /// [`Error::Serve`]: why it cannot be used.
    pub async fn open(
        prepared: &Prepared,
        syncs: Syncs,
        clock: &Clock,
        tasks: &Tasks,
    ) -> Result<Store, Error> {
        let config = &prepared.config;
        let Some(etcd) = &config.etcd else {
            let options = Options { clock: clock.clone(), syncs, ..Options::default() };
            let engine =
                Engine::open(&forebay_migrate::store_of(&config.data_dir), options).map_err(failed)?;
            live::serve(&config.data_dir, engine.clone(), clock.clone(), tasks);
            return Ok(Store::Embedded(engine));
        };
        let options = forebay_etcd::StorageConfig {
            endpoints: etcd.endpoints.clone(),
            tls: prepared.etcd_tls.clone(),
            codec: Arc::new(AsKubernetes::new(&config.etcd_prefix)),
            prefix: config.etcd_prefix.clone(),
            compact_every: etcd.compaction_interval,
            clock: clock.clone(),
            tasks: tasks.clone(),
        };
        let store = Etcd::open(options).map_err(failed)?;
        store.reach(REACH_WAIT).await.map_err(failed)?;
        Ok(Store::Etcd(store))
    }

    pub fn backend(&self) -> Arc<dyn Backend> {
        match self {
            Store::Embedded(engine) => engine.clone(),
            Store::Etcd(etcd) => etcd.clone(),
        }
    }

    /// Why it does not do its work, if it does not.
    pub fn failure(&self) -> Option<String> {
        match self {
            Store::Embedded(engine) => engine.failure(),
            Store::Etcd(etcd) => etcd.failure(),
        }
    }

    /// Whose its history is.
    pub fn history(&self) -> History {
        match self {
            Store::Embedded(_) => History::Own,
            Store::Etcd(_) => History::Shared { check_every: CHECK_EVERY },
        }
    }

    /// How long a claim without its Service may be one that another server is still at work on.
    pub fn leak_grace(&self) -> Duration {
        match self {
            // One server.
            Store::Embedded(_) => Duration::ZERO,
            Store::Etcd(_) => LEAK_GRACE,
        }
    }

    /// Ends it. An etcd goes on.
    pub fn close(&self) {
        if let Store::Embedded(engine) = self {
            engine.close();
        }
    }
}

impl From<Arc<Engine>> for Store {
    fn from(engine: Arc<Engine>) -> Store {
        Store::Embedded(engine)
    }
}
