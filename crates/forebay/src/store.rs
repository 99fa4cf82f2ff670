//! The store, whichever it is: in this process, or an etcd cluster.
//!
//! In: what was decided. Out: one handle for the server; what is encrypted at rest is so in both. Never:
//! logic of either.

use std::sync::Arc;
use std::time::Duration;

use forebay_backend::Backend;
use forebay_embedded::{Engine, Options, Syncs};
use forebay_encryption::{EncryptedStore, Encryption, EncryptionMetrics, EncryptionSettings};
use forebay_etcd::{Codec, Etcd};
use forebay_etcd_codec::{AsKubernetes, Encrypted};
use forebay_registry::History;
use forebay_rt::{Clock, Tasks};

use crate::config::EncryptionFile;
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
pub struct Store {
    engine: StoreEngine,
    encryption: Option<Arc<Encryption>>,
}

#[derive(Clone)]
enum StoreEngine {
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
        let encryption = match &config.encryption {
            Some(given) => Some(encryption(given, &config.etcd_prefix, clock).await?),
            None => None,
        };
        if let Some(encryption) = &encryption {
            tasks.spawn("encryption", encryption.clone().follow());
        }
        let Some(etcd) = &config.etcd else {
            let options = Options { clock: clock.clone(), syncs, ..Options::default() };
            let engine =
                Engine::open(&forebay_migrate::store_of(&config.data_dir), options).map_err(failed)?;
            live::serve(&config.data_dir, engine.clone(), clock.clone(), tasks);
            return Ok(Store { engine: StoreEngine::Embedded(engine), encryption });
        };
        let options = forebay_etcd::StorageConfig {
            endpoints: etcd.endpoints.clone(),
            tls: prepared.etcd_tls.clone(),
            codec: codec(&config.etcd_prefix, encryption.clone()),
            prefix: config.etcd_prefix.clone(),
            compact_every: etcd.compaction_interval,
            clock: clock.clone(),
            tasks: tasks.clone(),
        };
        let store = Etcd::open(options).map_err(failed)?;
        store.reach(REACH_WAIT).await.map_err(failed)?;
        Ok(Store { engine: StoreEngine::Etcd(store), encryption })
    }

    pub fn backend(&self) -> Arc<dyn Backend> {
        match (&self.engine, &self.encryption) {
            (StoreEngine::Embedded(engine), Some(encryption)) => {
                Arc::new(EncryptedStore::new(engine.clone(), encryption.clone()))
            }
            (StoreEngine::Embedded(engine), None) => engine.clone(),
            (StoreEngine::Etcd(etcd), _) => etcd.clone(),
        }
    }

    /// What encrypts, if something does.
    pub fn encryption(&self) -> Option<&Arc<Encryption>> {
        self.encryption.as_ref()
    }

    /// What is counted of encryption.
    pub fn encryption_metrics(&self) -> Option<Arc<EncryptionMetrics>> {
        self.encryption.as_ref().map(|encryption| encryption.metrics().clone())
    }

    /// Why it does not do its work, if it does not.
    pub fn failure(&self) -> Option<String> {
        match &self.engine {
            StoreEngine::Embedded(engine) => engine.failure(),
            StoreEngine::Etcd(etcd) => etcd.failure(),
        }
    }

    /// Whose its history is.
    pub fn history(&self) -> History {
        match &self.engine {
            StoreEngine::Embedded(_) => History::Own,
            StoreEngine::Etcd(_) => History::Shared { check_every: CHECK_EVERY },
        }
    }

    /// How long a claim without its Service may be one that another server is still at work on.
    pub fn leak_grace(&self) -> Duration {
        match &self.engine {
            // One server.
            StoreEngine::Embedded(_) => Duration::ZERO,
            StoreEngine::Etcd(_) => LEAK_GRACE,
        }
    }

    /// Ends it. An etcd goes on.
    pub fn close(&self) {
        if let StoreEngine::Embedded(engine) = &self.engine {
            engine.close();
        }
    }
}

impl From<Arc<Engine>> for Store {
    fn from(engine: Arc<Engine>) -> Store {
        Store { engine: StoreEngine::Embedded(engine), encryption: None }
    }
}

/// What `given` says, in force.
///
/// # Errors
/// [`Error::Serve`]: what is wrong with the file.
pub(crate) async fn encryption(
    given: &EncryptionFile,
    prefix: &str,
    clock: &Clock,
) -> Result<Arc<Encryption>, Error> {
    let (file, reload, clock) = (given.file.clone(), given.reload, clock.clone());
    let settings = EncryptionSettings { file, reload, prefix: prefix.to_owned(), clock };
    Encryption::load(settings).await.map_err(Error::Serve)
}

/// How values are kept in etcd.
pub(crate) fn codec(prefix: &str, encryption: Option<Arc<Encryption>>) -> Arc<dyn Codec> {
    let plain = AsKubernetes::new(prefix);
    match encryption {
        Some(encryption) => Arc::new(Encrypted::new(plain, encryption)),
        None => Arc::new(plain),
    }
}
