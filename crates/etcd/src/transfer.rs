//! Moving a whole state into etcd or out of it, as it is kept there: keys and values as bytes, leases, and
//! what a cluster needs before and after.
//!
//! In: keys with the bytes to keep. Out: the same, page by page, of one revision. For a command that nobody
//! serves from meanwhile: each request is tried again for a while, since each may be repeated.

use std::future::Future;

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::ReadError;
use forebay_rt::Duration;

use crate::engine::Etcd;
use crate::error::RequestError;
use crate::limits;
use crate::messages::{self, Action, Compare, KeyValue, RangeRequest, path};
use crate::pool::Use;
use crate::range::{end_of, key_behind};
use crate::stretch::Stretch;

/// A key as etcd keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub key: Bytes,
    pub value: Bytes,
    pub revision: Revision,
    /// The lease that it goes with.
    pub lease: Option<u64>,
}

/// All keys below a prefix, in order, page by page, of one revision: what is current when the first page is
/// read.
pub struct KeptPages<'a> {
    etcd: &'a Etcd,
    // Where the next page begins; empty when there is none.
    begin: Vec<u8>,
    end: String,
    at: Option<Revision>,
    stretch: Stretch,
}

impl KeptPages<'_> {
    /// The next page, which may be empty, and the revision of all; `None` behind the last.
    ///
    /// # Errors
    /// [`ReadError::Compacted`] when that state was given up meanwhile.
    pub async fn next(&mut self) -> Result<Option<(Revision, Vec<Kept>)>, ReadError> {
        if self.begin.is_empty() {
            return Ok(None);
        }
        let shared = self.etcd.shared();
        let (end, limit) = (self.end.as_bytes(), shared.page_keys() as u64);
        let near = if self.at.is_some() { self.stretch.near(&self.begin, end) } else { end.to_vec() };
        let request = RangeRequest {
            key: &self.begin,
            end: &near,
            limit,
            revision: self.at.map_or(0, Revision::get),
            ..RangeRequest::default()
        };
        let response = match self.etcd.tried(|| shared.ask_values(request)).await {
            Ok(response) => response,
            Err(fault) => return Err(shared.read_error(fault, self.at).await),
        };
        let revision = response.revision(self.at);
        self.begin = self.stretch.pass(&self.begin, near, end, limit, &response).unwrap_or_default();
        self.at = Some(revision);
        let kept = |kv: KeyValue| {
            let KeyValue { key, value, mod_revision, lease, .. } = kv;
            let revision = Revision::new(mod_revision)?;
            Some(Kept { key, value, revision, lease: (lease != 0).then_some(lease) })
        };
        Ok(Some((revision, response.kvs.into_iter().filter_map(kept).collect())))
    }
}

impl Etcd {
    /// The revision that is current.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn current(&self) -> Result<Revision, RequestError> {
        let header = self.tried(|| self.shared().quorum()).await?;
        Ok(Revision::from_log(header.revision.max(1)))
    }

    /// How many keys there are below `prefix`, which ends with `/`.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn keys_below(&self, prefix: &str) -> Result<u64, RequestError> {
        let end = end_of(prefix);
        let request = RangeRequest {
            key: prefix.as_bytes(),
            end: end.as_bytes(),
            count_only: true,
            ..RangeRequest::default()
        };
        Ok(self.tried(|| self.shared().ask_page(&request)).await?.count)
    }

    /// What is kept below `prefix`, which ends with `/`.
    pub fn kept(&self, prefix: &str) -> KeptPages<'_> {
        let stretch = Stretch::default();
        KeptPages { etcd: self, begin: prefix.into(), end: end_of(prefix), at: None, stretch }
    }

    /// How long a lease still lasts; `None` when it is gone.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn time_left(&self, lease: u64) -> Result<Option<Duration>, RequestError> {
        let message = messages::lease_time_to_live(lease);
        match self.asked(path::LEASE_TIME_TO_LIVE, &message).await {
            Ok(answer) => Ok(messages::read_lease_time_to_live(answer)?.map(Duration::from_secs)),
            Err(RequestError::NoLease) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// A lease of that many seconds.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn grant(&self, seconds: u64) -> Result<u64, RequestError> {
        let answer = self.asked(path::LEASE_GRANT, &messages::lease_grant(seconds)).await?;
        Ok(messages::read_lease_grant(answer)?.0)
    }

    /// Puts `value` where there is none. `false`: there is another one, and it stays.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn add(&self, key: &[u8], value: &[u8], lease: Option<u64>) -> Result<bool, RequestError> {
        let action = Action::Put { value, lease: lease.unwrap_or(0) };
        let answer = self.asked(path::TXN, &messages::txn(key, Compare::ModRevision(0), action)).await?;
        let response = messages::read_txn(answer)?;
        // What is there may be of an attempt that was not answered.
        Ok(response.succeeded || response.found.is_some_and(|kv| kv.value == value))
    }

    /// Puts `value`, whatever is there.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn put(&self, key: &[u8], value: &[u8]) -> Result<(), RequestError> {
        self.asked(path::PUT, &messages::put(key, value)).await.map(drop)
    }

    /// The value of one key now.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn value(&self, key: &[u8]) -> Result<Option<Bytes>, RequestError> {
        let request = RangeRequest { key, limit: 1, ..RangeRequest::default() };
        let found = self.tried(|| self.shared().read_key(&request)).await?;
        Ok(found.map(|kv| kv.value))
    }

    /// Deletes one key.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn remove(&self, key: &[u8]) -> Result<(), RequestError> {
        self.asked(path::DELETE_RANGE, &messages::delete_range(key, &[])).await.map(drop)
    }

    /// Deletes what is below `prefix`, which ends with `/`, some thousand keys at a time.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn remove_below(&self, prefix: &str) -> Result<(), RequestError> {
        let (begin, end) = (prefix.as_bytes(), end_of(prefix));
        loop {
            let request = RangeRequest {
                key: begin,
                end: end.as_bytes(),
                limit: REMOVED_AT_ONCE,
                keys_only: true,
                ..RangeRequest::default()
            };
            let response = self.tried(|| self.shared().ask_page(&request)).await?;
            let Some(last) = response.kvs.last() else { return Ok(()) };
            self.asked(path::DELETE_RANGE, &messages::delete_range(begin, &key_behind(&last.key))).await?;
        }
    }

    /// Gives up history before `revision`: nobody can watch from an earlier one any more.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn give_up_history(&self, revision: Revision) -> Result<(), RequestError> {
        match self.asked(path::COMPACT, &messages::compact(revision.get())).await {
            // It was given up already, or by an attempt that was not answered.
            Ok(_) | Err(RequestError::Compacted) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Waits until what is kept can be read, or will never be.
    ///
    /// # Errors
    /// What cannot be found out now.
    pub async fn prepare(&self, kept: &[Kept]) -> Result<(), String> {
        let values = self.shared().values();
        values.lacking(kept.iter().map(|kept| (&kept.key[..], &kept.value))).known().await
    }

    /// The value that stands for `stored` at `key`, or why it cannot be read.
    ///
    /// # Errors
    /// The codec's words.
    pub fn decoded(&self, key: &Key, stored: Bytes) -> Result<Bytes, String> {
        self.shared().values().read(key, stored)
    }

    /// What is kept for `value` at `key`.
    ///
    /// # Errors
    /// The codec's words.
    pub fn encoded(&self, key: &Key, value: &Bytes) -> Result<Bytes, String> {
        self.shared().values().to_stored(key, value)
    }

    async fn asked(&self, path: &str, message: &[u8]) -> Result<Bytes, RequestError> {
        self.tried(|| self.shared().ask(Use::Keys, path, message, limits::COMMIT_WAIT)).await
    }

    /// Tries again while a member has no leader, goes, or is too slow.
    async fn tried<T, F: Future<Output = Result<T, RequestError>>>(
        &self,
        ask: impl Fn() -> F,
    ) -> Result<T, RequestError> {
        let passes =
            |fault: &RequestError| fault.is_of_the_member() || *fault == RequestError::TooManyRequests;
        self.shared().again(limits::TRANSFER_TRIES_MAX, passes, ask).await
    }
}

/// Keys that are deleted in one transaction.
const REMOVED_AT_ONCE: u64 = 4_096;
