//! What every verb works with: the store, the catalog, a clock, randomness, tasks. Passed as an argument,
//! never reached for.
//!
//! Owns the published catalog. In: what the server is made of. Out: the same, to who answers a request.
//! Never: a verb.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use forebay_admission::Admission;
use forebay_apimachinery::{Revision, Status};
use forebay_backend::Backend;
use forebay_catalog::store::Store;
use forebay_catalog::{Catalog, Opener, Served, table};
use forebay_object::Object;
use forebay_reads::Planner;
use forebay_rt::{Clock, Random, Tasks, UnderWay};
use forebay_service_claims::ServerClaims;
use forebay_watchcache::{History, Snapshot};
use tokio::sync::watch;

use crate::config::Config;
use crate::in_force::InForce;
use crate::kubernetes_service::state::KubernetesService;
use crate::limits::{BUSY_RETRY_SECONDS_MAX, HINDERED_LOOK};
use crate::own_writes::OwnWrites;
use crate::quota_queue::Quotas;
use crate::rights_source::RightsTaken;
use crate::ruled::Ruled as _;

/// See the module's doc.
pub(crate) struct Context {
    pub(crate) config: Config,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) opener: Opener,
    pub(crate) clock: Clock,
    pub(crate) random: Arc<Random>,
    pub(crate) tasks: Tasks,
    pub(crate) claims: Arc<ServerClaims>,
    pub(crate) kubernetes: KubernetesService,
    pub(crate) planner: Planner,
    pub(crate) admission: Admission,
    pub(crate) in_force: InForce,
    pub(crate) quotas: Quotas,
    pub(crate) own_writes: OwnWrites,
    pub(crate) rights: RightsTaken,
    /// Creates in namespaces, from the last look at the namespace until they are stored, or are not.
    pub(crate) creates: UnderWay,
    catalog: ArcSwap<Catalog>,
    // The revision of CRDs that the catalog has taken in, for those who wait for it.
    catalog_revision: watch::Sender<Option<Revision>>,
}

impl Context {
    /// When whom there was no room for behind a webhook is asked to come again.
    pub(crate) fn busy_retry_seconds(&self) -> u32 {
        1 + self.random.below(BUSY_RETRY_SECONDS_MAX) as u32
    }

    /// The built-in resources on `backend`.
    pub(crate) fn new(
        config: Config,
        backend: Arc<dyn Backend>,
        clock: Clock,
        random: Random,
        tasks: Tasks,
    ) -> Context {
        let opener = config.opener(&backend, &clock, &tasks);
        let catalog = table::catalog(&opener, forebay_strategy::convert::of);
        let random = Arc::new(random);
        let given_out = config.services.given_out();
        let claims = ServerClaims::new(&opener, &catalog, given_out, clock.clone(), random.clone());
        Context {
            admission: config.admission.clone(),
            in_force: InForce::default(),
            quotas: Quotas::default(),
            own_writes: OwnWrites::default(),
            rights: RightsTaken::default(),
            creates: UnderWay::default(),
            planner: Planner::new(
                clock.clone(),
                random.clone(),
                config.frame_lead_bytes,
                config.min_request_timeout,
            ),
            config,
            backend,
            opener,
            clock,
            random,
            tasks,
            claims: Arc::new(claims),
            kubernetes: KubernetesService::default(),
            catalog: ArcSwap::from_pointee(catalog),
            catalog_revision: watch::Sender::new(None),
        }
    }

    /// What is served now.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Whether nobody else writes to the store.
    pub(crate) fn is_alone(&self) -> bool {
        self.config.history == History::Own
    }

    /// Wall time as Tables show ages at.
    pub(crate) fn timestamp(&self) -> jiff::Timestamp {
        forebay_reads::timestamp(&self.clock)
    }

    /// Wall time as `creationTimestamp` has it.
    pub(crate) fn now_rfc3339(&self) -> String {
        forebay_reads::rfc3339(self.timestamp())
    }

    /// How long objects of this kind are kept.
    pub(crate) fn ttl(&self, served: &Served) -> Option<Duration> {
        self.config.event_ttl.filter(|_| served.rules().flags().expires)
    }

    /// The store of a built-in resource.
    pub(crate) fn built_in(&self, group: &str, version: &str, resource: &str) -> Result<Arc<Store>, Status> {
        let served = self.catalog().resource(group, version, resource).cloned();
        let store = served.and_then(|served| served.store.clone());
        store.ok_or_else(|| Status::internal(format!("{resource} has no storage")))
    }

    /// What is in `store` once that is read, with every commit that was acknowledged before.
    ///
    /// # Errors
    /// 429 and 504 when the cache cannot answer.
    pub(crate) async fn fresh(&self, store: &Store) -> Result<Arc<Snapshot>, Status> {
        store.fresh(&self.clock).await
    }

    /// Waits until some of what is kept cannot be read for now; why.
    pub(crate) async fn hindered(&self) -> String {
        loop {
            self.clock.sleep(HINDERED_LOOK).await;
            if let Some(why) = self.backend.hindered() {
                return why;
            }
        }
    }

    /// Publishes a catalog. Only the CRD controller does.
    pub(crate) fn publish(&self, catalog: Catalog) {
        let revision = catalog.revision;
        self.catalog.store(Arc::new(catalog));
        self.catalog_revision.send_replace(revision);
    }

    /// Tells of each new catalog.
    pub(crate) fn watch_catalog(&self) -> watch::Receiver<Option<Revision>> {
        self.catalog_revision.subscribe()
    }

    /// Waits until the catalog has taken in every CRD up to `revision`, at most until `deadline`.
    pub(crate) async fn catalog_at_least(&self, revision: Revision, deadline: forebay_rt::Instant) {
        let mut seen = self.catalog_revision.subscribe();
        tokio::select! {
            _ = seen.wait_for(|now| now.is_some_and(|now| now >= revision)) => {}
            () = self.clock.sleep_until(deadline) => {}
        }
    }
}

/// The whole object as an answer has it.
pub(crate) fn whole(served: &Served, object: &Object, revision: Option<Revision>) -> bytes::Bytes {
    let mut out = Vec::with_capacity(object.body_len() + 64);
    served.write_object(object, revision, &mut out);
    out.push(b'\n');
    bytes::Bytes::from(out)
}
