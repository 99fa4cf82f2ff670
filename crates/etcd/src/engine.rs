//! The store on an etcd cluster: each call of the contract as calls of etcd.
//!
//! Owns the connections, the task that reads what is current, and what is remembered of etcd's answers.
//! Requests in flight are bounded, each has a deadline, and none is sent twice unless the first was never
//! sent.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{
    Backend, BoxFuture, Feed, FeedError, Pages, Range, RangePage, ReadError, Sent, Size, Txn, TxnError,
    TxnResponse, Versioned,
};
use forebay_rt::{Clock, Duration, Tasks};
use tokio::sync::Semaphore;

use crate::barrier;
use crate::cluster::Cluster;
use crate::codec::Codec;
use crate::compaction;
use crate::error::RequestError;
use crate::feed;
use crate::follow::Follower;
use crate::lease::Leases;
use crate::limits;
use crate::pool::Pool;
use crate::shared::{Counters, Shared, probe_key};
use crate::tls::{Tls, TlsError, TlsFiles};
use crate::url::Endpoint;
use crate::values::Values;
use crate::walk::Walk;

/// Where the cluster is, and how its values are kept.
pub struct StorageConfig {
    /// At least one.
    pub endpoints: Vec<Endpoint>,
    pub tls: TlsFiles,
    pub codec: Arc<dyn Codec>,
    /// Of all keys of objects, without a slash behind: `/registry`. Nothing beside it has to be readable.
    pub prefix: String,
    /// How often old history is given up, if another server has not done it; `None` leaves that to others.
    pub compact_every: Option<Duration>,
    pub clock: Clock,
    /// What the engine does beside answering.
    pub tasks: Tasks,
}

/// The store. Cheap to share.
pub struct Etcd(Arc<Shared>);

impl Etcd {
    /// A store on the cluster. Connects when it is first asked something. To be called within a runtime.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn open(options: StorageConfig) -> Result<Arc<Etcd>, TlsError> {
        let StorageConfig { endpoints, tls, codec, prefix, compact_every, clock, tasks } = options;
        let tls = match endpoints.iter().any(|endpoint| endpoint.tls) {
            true => Some(Tls::new(tls)?),
            false => None,
        };
        let (barrier, questions) = barrier::barrier();
        let cluster = Cluster::new(clock.clone());
        let shared = Arc::new(Shared {
            pool: Pool::new(endpoints, tls, cluster.clone(), clock.clone(), tasks.clone()),
            clock: clock.clone(),
            pages: Semaphore::new(limits::PAGES_MAX),
            streams: Arc::new(Semaphore::new(limits::RANGE_STREAMS_MAX)),
            ahead: Arc::new(Semaphore::new(limits::AHEAD_MAX)),
            tasks: tasks.clone(),
            values: Values::new(codec),
            barrier,
            leases: Leases::new(clock.clone()),
            writes: Semaphore::new(limits::WRITES_MAX),
            reads: Semaphore::new(limits::READS_MAX),
            cluster,
            probe_key: probe_key(&prefix),
            page_keys: AtomicUsize::new(500),
            oldest: AtomicU64::new(0),
            oldest_seen: Mutex::default(),
            oldest_denied: AtomicBool::new(false),
            followers: AtomicUsize::new(0),
            counters: Counters::default(),
            size: Mutex::default(),
            failure: Mutex::default(),
        });
        let reader = shared.clone();
        tasks.spawn("etcd barrier", async move {
            questions.answer(clock, || reader.read_current()).await;
        });
        let upkeep = shared.clone();
        tasks.spawn("etcd upkeep", async move { upkeep.keep_up().await });
        if let Some(period) = compact_every {
            tasks.spawn("etcd compaction", compaction::run(shared.clone(), period));
        }
        Ok(Arc::new(Etcd(shared)))
    }

    /// Why etcd could not be read when that was last tried, if it could not.
    pub fn failure(&self) -> Option<String> {
        self.0.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0
    }

    pub fn counters(&self) -> &Counters {
        &self.0.counters
    }

    /// Values that could not be read so far.
    pub fn unreadable(&self) -> u64 {
        self.0.values.unreadable()
    }

    /// Waits until the cluster answers.
    ///
    /// # Errors
    /// What it answered last, when it has not by the end of `wait`; at once when it will not let us in.
    pub async fn reach(&self, wait: Duration) -> Result<(), RequestError> {
        let until = self.0.clock.now() + wait;
        loop {
            match self.0.quorum().await {
                Ok(_) => return Ok(()),
                Err(
                    fault @ (RequestError::Denied { .. }
                    | RequestError::Refused { .. }
                    | RequestError::Untrusted { .. }),
                ) => {
                    return Err(fault);
                }
                Err(fault) if self.0.clock.now() >= until => return Err(fault),
                Err(fault) => tracing::warn!(%fault, "waiting for etcd"),
            }
            self.0.clock.sleep(limits::CONNECT_HOLD).await;
        }
    }
}

impl Backend for Etcd {
    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>> {
        Box::pin(self.0.commit(txn))
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>> {
        Box::pin(self.0.get(key))
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        Box::pin(self.0.page(range))
    }

    fn pages<'a>(&'a self, range: Range) -> Box<dyn Pages + 'a> {
        Box::new(Walk::new(self.0.clone(), range))
    }

    fn keys(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        Box::pin(self.0.keys(range))
    }

    fn count(&self, range: Range) -> BoxFuture<'_, Result<u64, ReadError>> {
        Box::pin(self.0.count(range))
    }

    fn barrier(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        Box::pin(async {
            let header = self.0.quorum().await;
            let header = header.map_err(|fault| fault.into_read(None, Revision::FIRST))?;
            Ok(Revision::from_log(header.revision.max(1)))
        })
    }

    fn oldest(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        Box::pin(async {
            let oldest = self.0.oldest().await;
            oldest.map_err(|fault| fault.into_read(None, Revision::FIRST))
        })
    }

    fn oldest_known(&self) -> Revision {
        self.0.oldest_known()
    }

    fn feed<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>> {
        let generation = match self.0.cluster.begin_feed(prefix, after) {
            Ok(generation) => generation,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let (writer, reader) = feed::feed(self.0.cluster.clone(), prefix);
        let follower = Follower {
            shared: self.0.clone(),
            prefix: prefix.into(),
            reached: after.get(),
            generation,
            number: self.0.followers.fetch_add(1, Ordering::Relaxed),
            feed: writer,
        };
        self.0.tasks.spawn("etcd watch", follower.run());
        Box::pin(std::future::ready(Ok(Feed::following(Box::new(reader)))))
    }

    fn may_be_stale(&self) -> bool {
        self.0.values.may_be_stale()
    }

    fn is_stale<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<bool, ReadError>> {
        Box::pin(self.0.is_stale(key))
    }

    fn hindered(&self) -> Option<String> {
        self.0.values.hindered()
    }

    fn rekeyed(&self, seen: u64) -> BoxFuture<'_, u64> {
        self.0.values.rekeyed(seen)
    }

    fn size(&self) -> Size {
        *self.0.size.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sent(&self) -> Option<Sent> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { requests, barriers, reopened, .. } = &self.0.counters;
        Some(Sent { requests: read(requests), barriers: read(barriers), reopened: read(reopened) })
    }
}
