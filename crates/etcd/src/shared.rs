//! What every call and every follower of the store uses: connections, permits, what is known of the cluster.
//!
//! In: calls. Out: answers of the cluster that was asked, or a [`RequestError`]. Never: knows what a range or
//! a feed is.

use std::fmt::Display;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::{Expect, Op, ReadError, Size, Txn, TxnError, TxnResponse, Versioned};
use forebay_rt::{Clock, Instant, Tasks};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::barrier::Barrier;
use crate::cluster::{Asked, Cluster};
use crate::error::RequestError;
use crate::lease::Leases;
use crate::limits;
use crate::messages::{self, Action, Compare, Header, KeyValue, RangeRequest, path};
use crate::pool::{Pool, Use};
use crate::values::Values;

/// See the module's doc.
pub(crate) struct Shared {
    pub(crate) pool: Pool,
    pub(crate) clock: Clock,
    pub(crate) pages: Semaphore,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) ahead: Arc<Semaphore>,
    pub(crate) tasks: Tasks,
    pub(crate) values: Values,
    pub(crate) barrier: Barrier,
    pub(crate) leases: Leases,
    pub(crate) writes: Semaphore,
    pub(crate) reads: Semaphore,
    pub(crate) cluster: Arc<Cluster>,
    // What a quorum read reads.
    pub(crate) probe_key: Vec<u8>,
    // What the last keys of pages cost, so that pages are of a size.
    pub(crate) page_keys: AtomicUsize,
    // The revision that history was last seen to begin at.
    pub(crate) oldest: AtomicU64,
    // The same, and when.
    pub(crate) oldest_seen: Mutex<Option<(Instant, Revision)>>,
    // It was said that the key which should say so may not be read.
    pub(crate) oldest_denied: AtomicBool,
    pub(crate) followers: AtomicUsize,
    pub(crate) counters: Counters,
    pub(crate) size: Mutex<Size>,
    // Why etcd could not be read when that was last tried.
    pub(crate) failure: Mutex<Option<String>>,
}

/// What is counted.
#[derive(Debug, Default)]
pub struct Counters {
    /// Requests sent, other than those of open watches.
    pub requests: AtomicU64,
    /// Quorum reads for barriers among them.
    pub barriers: AtomicU64,
    /// Ranges that were asked for as a stream among them.
    pub range_streams: AtomicU64,
    /// Watches that were opened again.
    pub reopened: AtomicU64,
}

impl Shared {
    /// One call, within `wait`. Sent again, once, when it never was sent.
    pub(crate) async fn ask(
        &self,
        purpose: Use,
        path: &str,
        message: &[u8],
        wait: Duration,
    ) -> Result<Bytes, RequestError> {
        let until = self.clock.now() + wait;
        let nothing = || RequestError::Timeout { text: format!("nothing within {} ms", wait.as_millis()) };
        match self.ask_once(purpose, path, message, until).await {
            Some(Err(RequestError::Unreachable { .. })) => self.ask_once(purpose, path, message, until).await,
            answer => answer,
        }
        .unwrap_or_else(|| Err(nothing()))
    }

    /// One attempt; `None` when there was no answer by `until`. A connection that does not do its part is not
    /// used again.
    async fn ask_once(
        &self,
        purpose: Use,
        path: &str,
        message: &[u8],
        until: Instant,
    ) -> Option<Result<Bytes, RequestError>> {
        let connection = tokio::select! {
            connection = self.pool.connection(purpose) => connection,
            () = self.clock.sleep_until(until) => return None,
        };
        let connection = match connection {
            Ok(connection) => connection,
            Err(fault) => return Some(Err(fault)),
        };
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        let asked = self.cluster.asked();
        let answer = tokio::select! {
            answer = connection.channel.call(path, message) => Some(answer),
            () = self.clock.sleep_until(until) => None,
        };
        let answer = answer.map(|answer| answer.and_then(|answer| self.of_the_asked(path, answer, asked)));
        match &answer {
            Some(Ok(_)) => {}
            Some(Err(fault)) => self.pool.blame(&connection, fault),
            None => self
                .pool
                .blame(&connection, &RequestError::Timeout { text: format!("nothing of {path} in time") }),
        }
        answer
    }

    /// `answer`, if it is of the cluster that was asked.
    fn of_the_asked(&self, path: &str, answer: Bytes, asked: Asked) -> Result<Bytes, RequestError> {
        match path {
            // A member says how it is by itself, also one that has lost its cluster.
            path::STATUS => {}
            // Each is linearizable: no range is asked for otherwise, and each transaction may write.
            path::RANGE | path::TXN => {
                self.cluster.note_current(messages::read_header(answer.clone())?, asked)?;
            }
            _ => self.cluster.note(messages::read_header(answer.clone())?, asked.generation)?,
        }
        Ok(answer)
    }

    /// Asks, `tries` times at most and with longer and longer pauses, until it is answered by what does not
    /// pass.
    pub(crate) async fn again<T, E: Display, F: Future<Output = Result<T, E>>>(
        &self,
        tries: usize,
        passes: impl Fn(&E) -> bool,
        ask: impl Fn() -> F,
    ) -> Result<T, E> {
        let mut pause = limits::REOPEN_PAUSE.0;
        for _ in 1..tries {
            match ask().await {
                Err(error) if passes(&error) => tracing::debug!(%error, "asked again"),
                answer => return answer,
            }
            self.clock.sleep(pause).await;
            pause = (pause * 2).min(limits::REOPEN_PAUSE.1);
        }
        ask().await
    }

    /// What is current, by a quorum read that is sent after this was called.
    pub(crate) async fn quorum(&self) -> Result<Header, RequestError> {
        self.barrier.ask().await
    }

    pub(crate) async fn read_current(&self) -> Result<Header, RequestError> {
        self.counters.barriers.fetch_add(1, Ordering::Relaxed);
        let request = RangeRequest { key: &self.probe_key, limit: 1, ..RangeRequest::default() };
        let message = messages::range(&request);
        let answer = self.ask(Use::Keys, path::RANGE, &message, limits::BARRIER_WAIT).await;
        let header = answer.and_then(|answer| Ok(messages::read_header(answer)?));
        let failure = header.as_ref().err().map(ToString::to_string);
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        header
    }

    pub(crate) fn count_reopened(&self) {
        self.counters.reopened.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn values(&self) -> Values {
        self.values.clone()
    }

    pub(crate) fn key(&self, key: &[u8]) -> Option<Key> {
        self.values.key(key)
    }

    /// Keys that make a page of the size that pages are to have, going by the last one.
    pub(crate) fn page_keys(&self) -> usize {
        self.page_keys.load(Ordering::Relaxed)
    }

    /// Starts what ends with the store.
    pub(crate) fn spawn(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(name, work);
    }

    pub(crate) fn note_page(&self, kvs: &[KeyValue]) {
        let bytes: usize = kvs.iter().map(KeyValue::cost).sum();
        if !kvs.is_empty() {
            let keys = (limits::PAGE_BYTES * kvs.len() / bytes.max(1)).clamp(1, limits::PAGE_KEYS_MAX);
            self.page_keys.store(keys, Ordering::Relaxed);
        }
    }

    /// A seat among those in flight; `None` when there was none in time.
    async fn seat<'a>(&self, seats: &'a Semaphore) -> Option<SemaphorePermit<'a>> {
        tokio::select! {
            biased;
            seat = seats.acquire() => seat.ok(),
            () = self.clock.sleep(limits::SEAT_WAIT) => None,
        }
    }

    pub(crate) async fn commit(&self, txn: Txn) -> Result<TxnResponse, TxnError> {
        let Txn { key, expect, op } = txn;
        let stored = match &op {
            Op::Put { value, .. } => {
                self.values.to_stored(&key, value).map_err(|cause| TxnError::Failed { cause })?
            }
            Op::Delete => Bytes::new(),
        };
        let _seat = self.seat(&self.writes).await.ok_or(TxnError::Busy)?;
        let committed = tokio::select! {
            committed = self.commit_stored(&key, expect, &op, &stored) => committed,
            () = self.clock.sleep(limits::COMMIT_WAIT) => {
                Err(RequestError::Timeout { text: format!("nothing within {} s", limits::COMMIT_WAIT.as_secs()) })
            }
        };
        committed.map_err(|fault| match fault {
            RequestError::TooLarge => {
                TxnError::TooLarge { bytes: stored.len(), bytes_max: limits::REQUEST_BYTES_MAX }
            }
            fault => fault.into_txn(),
        })
    }

    async fn commit_stored(
        &self,
        key: &Key,
        expect: Expect,
        op: &Op,
        stored: &[u8],
    ) -> Result<TxnResponse, RequestError> {
        let compare = Compare::ModRevision(match expect {
            Expect::Absent => 0,
            Expect::At(revision) => revision.get(),
        });
        loop {
            let ttl = if let Op::Put { ttl, .. } = op { *ttl } else { None };
            let lease = match ttl {
                Some(ttl) => self.leases.lease(ttl, |seconds| self.grant(seconds)).await?,
                None => 0,
            };
            let action = match op {
                Op::Put { .. } => Action::Put { value: stored, lease },
                Op::Delete => Action::Delete,
            };
            let message = messages::txn(key.as_str().as_bytes(), compare, action);
            let answer = self.ask(Use::Keys, path::TXN, &message, limits::COMMIT_WAIT).await;
            if answer == Err(RequestError::NoLease) && lease != 0 {
                self.leases.forget(lease);
                continue;
            }
            let response = messages::read_txn(answer?)?;
            if !response.succeeded {
                let found = self.values.found(response.found).await;
                let found = found.map_err(|text| RequestError::Other { code: 0, text })?;
                return Ok(TxnResponse::Conflict(found.map(|(_, found)| found)));
            }
            return Ok(TxnResponse::Committed(Revision::from_log(response.header.revision.max(1))));
        }
    }

    async fn grant(&self, seconds: u64) -> Result<u64, RequestError> {
        let message = messages::lease_grant(seconds);
        let answer = self.ask(Use::Keys, path::LEASE_GRANT, &message, limits::READ_WAIT).await?;
        Ok(messages::read_lease_grant(answer)?.0)
    }

    pub(crate) async fn get(&self, key: &Key) -> Result<Option<Versioned>, ReadError> {
        let busy = || ReadError::Unanswered { cause: "too many reads are waiting".to_string() };
        let _seat = self.seat(&self.reads).await.ok_or_else(busy)?;
        let request = RangeRequest { key: key.as_str().as_bytes(), limit: 1, ..RangeRequest::default() };
        let answer = self.read_key(&request).await.map_err(|fault| fault.into_read(None, Revision::FIRST))?;
        let found = self.values.found(answer).await.map_err(|cause| ReadError::Unanswered { cause })?;
        Ok(found.map(|(_, found)| found))
    }

    /// Whether what is kept at `key` would be kept otherwise now.
    pub(crate) async fn is_stale(&self, key: &Key) -> Result<bool, ReadError> {
        let request = RangeRequest { key: key.as_str().as_bytes(), limit: 1, ..RangeRequest::default() };
        let answer = self.read_key(&request).await.map_err(|fault| fault.into_read(None, Revision::FIRST))?;
        let lacking = self.values.lacking(answer.iter().map(|kv| (&kv.key[..], &kv.value)));
        lacking.known().await.map_err(|cause| ReadError::Unanswered { cause })?;
        Ok(answer.is_some_and(|kv| self.values.is_stale(key, &kv.value)))
    }

    /// One key, at quorum.
    pub(crate) async fn read_key(
        &self,
        request: &RangeRequest<'_>,
    ) -> Result<Option<KeyValue>, RequestError> {
        let message = messages::range(request);
        let answer = self.ask(Use::Keys, path::RANGE, &message, limits::READ_WAIT).await?;
        Ok(messages::read_range(answer)?.kvs.pop())
    }

    /// Asks etcd how it is, again and again: how large, and whether it answers when nobody else asks.
    pub(crate) async fn keep_up(&self) {
        loop {
            let message = self.ask(Use::Keys, path::STATUS, &[], limits::READ_WAIT).await;
            if let Ok(status) = message.and_then(|answer| Ok(messages::read_status(answer)?)) {
                let size = Size { file_bytes: status.db_bytes, live_bytes: status.db_bytes_in_use, keys: 0 };
                *self.size.lock().unwrap_or_else(PoisonError::into_inner) = size;
            }
            // It says itself how it went.
            let _ = self.quorum().await;
            self.clock.sleep(limits::STATUS_PERIOD).await;
        }
    }
}

/// What a quorum read reads: a key that nobody writes, where all keys are that we may read. Its answer's
/// header is what matters.
/// Source: apiserver v1.36.3 `storage/storagebackend/factory/etcd3.go`.
pub(crate) fn probe_key(prefix: &str) -> Vec<u8> {
    format!("{}/health", prefix.trim_end_matches('/')).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Etcd, StorageConfig, TlsFiles, Verbatim};
    use forebay_grpc::proto::Message;

    #[test]
    fn what_is_probed_is_below_the_prefix() {
        for prefix in ["/registry", "/registry/"] {
            assert_eq!(probe_key(prefix), b"/registry/health");
        }
        assert_eq!(probe_key("/other/place"), b"/other/place/health");
    }

    #[tokio::test]
    async fn only_what_is_current_shows_that_the_store_went_back() {
        let answer = |revision| {
            let header = Message::default().number(1, 7).number(3, revision);
            Bytes::from(Message::default().message(1, header).finish())
        };
        for (path, shows) in
            [(path::RANGE, true), (path::TXN, true), (path::LEASE_GRANT, false), (path::STATUS, false)]
        {
            // Nobody listens there: what is heard is heard from here.
            let endpoints = vec!["http://127.0.0.1:1".parse().expect("a URL")];
            let (codec, prefix) = (Arc::new(Verbatim), "/a".to_string());
            let (clock, tasks, tls) = (Clock::system(), Tasks::new(), TlsFiles::default());
            let options = StorageConfig { endpoints, tls, codec, prefix, compact_every: None, clock, tasks };
            let store = Etcd::open(options).expect("valid");
            let shared = store.shared();
            let of = |revision| shared.of_the_asked(path, answer(revision), shared.cluster.asked());
            assert!(of(9).is_ok(), "{path}");
            assert_eq!(of(8) == Err(RequestError::Replaced), shows, "{path}");
        }
    }
}
