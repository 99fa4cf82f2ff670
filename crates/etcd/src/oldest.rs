//! Where etcd's history begins.
//!
//! kube-apiserver, and we, note in `compact_rev_key` what was compacted last. That is held against a read,
//! since others may have compacted beside; if it does not hold, or we may not read it, the revision is found
//! by halving.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use forebay_apimachinery::Revision;
use forebay_rt::Instant;

use crate::compaction::COMPACT_REV_KEY;
use crate::error::RequestError;
use crate::limits;
use crate::messages::{KeyValue, RangeRequest};
use crate::shared::Shared;

impl Shared {
    /// The oldest revision that can be read at, and watched from the next on.
    pub(crate) async fn oldest(&self) -> Result<Revision, RequestError> {
        let current = self.quorum().await?.revision.max(1);
        if let Some(known) = self.seen_oldest().filter(|known| known.get() <= current) {
            return Ok(known);
        }
        let noted = self.noted().await?;
        let known = noted.max(self.oldest.load(Ordering::Acquire)).clamp(1, current);
        let oldest = if self.is_kept(known).await? { known } else { self.halve(known, current).await? };
        self.oldest.fetch_max(oldest, Ordering::AcqRel);
        let oldest = Revision::from_log(oldest);
        *self.oldest_seen() = Some((self.clock.now(), oldest));
        Ok(oldest)
    }

    /// The same as it was when that was last heard of, be it from those who compact. Never later than what
    /// the cluster has told of itself, which may have gone back.
    pub(crate) fn oldest_known(&self) -> Revision {
        let told = self.cluster.asked().told();
        Revision::new(self.oldest.load(Ordering::Acquire).min(told)).unwrap_or(Revision::FIRST)
    }

    /// History up to `revision` is given up, or about to be.
    pub(crate) fn note_compacted(&self, revision: u64) {
        if self.oldest.fetch_max(revision, Ordering::AcqRel) < revision {
            self.forget_oldest();
        }
    }

    /// What somebody has just found: the caches of a server that starts ask all at once.
    fn seen_oldest(&self) -> Option<Revision> {
        let (at, oldest) = (*self.oldest_seen())?;
        (self.clock.now() < at + limits::OLDEST_HOLD).then_some(oldest)
    }

    /// History begins later than was thought: whoever asks now is told of no less.
    pub(crate) fn forget_oldest(&self) {
        *self.oldest_seen() = None;
    }

    fn oldest_seen(&self) -> MutexGuard<'_, Option<(Instant, Revision)>> {
        self.oldest_seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was compacted last, as far as the key for it says; 0 when it says nothing.
    async fn noted(&self) -> Result<u64, RequestError> {
        let request = RangeRequest { key: COMPACT_REV_KEY, limit: 1, ..RangeRequest::default() };
        let found = self.read_key(&request).await;
        if let Err(fault @ RequestError::Denied { .. }) = &found
            && !self.oldest_denied.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(%fault, "compact_rev_key may not be read: where history begins is found without it, by more reads");
        }
        revision_of(found)
    }

    /// The oldest kept revision in `(gone, kept]`.
    async fn halve(&self, mut gone: u64, mut kept: u64) -> Result<u64, RequestError> {
        for _ in 0..limits::BISECTION_MAX {
            if kept - gone <= 1 {
                break;
            }
            let middle = gone + (kept - gone) / 2;
            match self.is_kept(middle).await? {
                true => kept = middle,
                false => gone = middle,
            }
        }
        Ok(kept)
    }

    async fn is_kept(&self, revision: u64) -> Result<bool, RequestError> {
        let request = RangeRequest {
            // Which one does not matter, as long as it may be read.
            key: &self.probe_key,
            limit: 1,
            revision,
            keys_only: true,
            ..RangeRequest::default()
        };
        match self.read_key(&request).await {
            Ok(_) => Ok(true),
            Err(RequestError::Compacted) => Ok(false),
            Err(fault) => Err(fault),
        }
    }
}

/// The revision that a read of the key has found; 0 for none. One that may not be read is as good as not
/// there.
pub(crate) fn revision_of(found: Result<Option<KeyValue>, RequestError>) -> Result<u64, RequestError> {
    let number = |kv: KeyValue| std::str::from_utf8(&kv.value).ok()?.parse::<u64>().ok();
    match found {
        Ok(found) => Ok(found.and_then(number).unwrap_or(0)),
        Err(RequestError::Denied { .. }) => Ok(0),
        Err(fault) => Err(fault),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;
    use forebay_apimachinery::Key;
    use forebay_backend::{Backend, Expect, Op, Txn, TxnResponse};
    use forebay_clients::etcd::{Cluster, Security, Series};
    use forebay_clients::needs;
    use forebay_rt::{Clock, Tasks};

    use super::*;
    use crate::pool::Use;
    use crate::{Etcd, StorageConfig, TlsFiles, Verbatim};
    use forebay_grpc::proto::Message;

    #[test]
    fn what_may_not_be_read_says_as_little_as_what_is_not_there() {
        let kv =
            |value: &'static [u8]| Some(KeyValue { value: Bytes::from_static(value), ..KeyValue::default() });
        for (found, revision) in [(None, 0), (kv(b"17"), 17), (kv(b"x"), 0), (kv(b"\xff"), 0)] {
            assert_eq!(revision_of(Ok(found)), Ok(revision));
        }
        assert_eq!(revision_of(Err(RequestError::Denied { text: String::new() })), Ok(0));
        for fault in [RequestError::TooManyRequests, RequestError::Lost { text: String::new() }] {
            assert_eq!(revision_of(Err(fault.clone())), Err(fault));
        }
    }

    fn open(cluster: &Cluster, prefix: &str) -> Arc<Etcd> {
        let read = |name| std::fs::read_to_string(cluster.dir().join(name)).expect("written");
        let client = Some((read("client.crt"), read("client.key")));
        let tls = TlsFiles { ca: Some(read("ca.crt")), client, reread: None };
        let endpoints = cluster.endpoints().iter().map(|url| url.parse().expect("a URL")).collect();
        let (clock, tasks, codec) = (Clock::system(), Tasks::new(), Arc::new(Verbatim));
        let prefix = prefix.to_string();
        let options = StorageConfig { endpoints, tls, codec, prefix, compact_every: None, clock, tasks };
        Etcd::open(options).expect("valid")
    }

    /// Has whoever the certificate names read and write what is below `prefix`, and nothing else, from now
    /// on.
    async fn limit_to(store: &Etcd, prefix: &str) {
        let text = |field, text: &str| Message::default().bytes(field, text.as_bytes());
        let without_password = |name| text(1, name).message(3, Message::default().flag(1, true));
        // 2 is to read and to write.
        let end = crate::range::end_of(prefix);
        let below = Message::default().number(1, 2).bytes(2, prefix.as_bytes()).bytes(3, end.as_bytes());
        for (method, message) in [
            ("UserAdd", without_password("root")),
            ("UserGrantRole", text(1, "root").bytes(2, b"root")),
            ("RoleAdd", text(1, "objects")),
            ("RoleGrantPermission", text(1, "objects").message(2, below)),
            ("UserAdd", without_password("client")),
            ("UserGrantRole", text(1, "client").bytes(2, b"objects")),
            ("AuthEnable", Message::default()),
        ] {
            let path = format!("/etcdserverpb.Auth/{method}");
            let done = store.shared().ask(Use::Keys, &path, &message.finish(), limits::COMMIT_WAIT).await;
            assert!(done.is_ok(), "{method}: {done:?}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn who_may_read_what_is_below_the_prefix_needs_no_more() {
        if needs::built_peers().is_none() {
            return;
        }
        for series in Series::ALL {
            needs_no_more(series).await;
        }
    }

    async fn needs_no_more(series: Series) {
        let wait = Duration::from_secs(120);
        let cluster = Cluster::start_of(series, 1, Security::Mutual).expect("starts");
        let before = open(&cluster, "/other");
        before.reach(wait).await.expect("answers");
        let mut last = Revision::FIRST;
        for number in 0..20 {
            let op = Op::Put { value: Bytes::from_static(b"x"), ttl: None };
            let key = Key::new(&format!("/other/a/{number}"));
            let outcome = before.commit(Txn { key, expect: Expect::Absent, op }).await.expect("works");
            let TxnResponse::Committed(revision) = outcome else { panic!("{outcome:?}") };
            last = revision;
        }
        let gone = Revision::from_log(last.get() - 7);
        before.give_up_history(gone).await.expect("compacted");
        limit_to(&before, "/other/").await;

        let elsewhere = open(&cluster, "/registry").reach(wait).await.expect_err("no key there may be read");
        assert!(matches!(elsewhere, RequestError::Denied { .. }), "{elsewhere}");
        let store = open(&cluster, "/other");
        store.reach(wait).await.expect("the probe may be read");
        for _ in 0..2 {
            assert_eq!(store.oldest().await.expect("found without the key"), gone);
            store.shared().forget_oldest();
        }
        // What somebody has just found is taken for it, unless it is too old, or of no store like this.
        let (now, seen) = (store.shared().clock.now(), Revision::from_log(gone.get() - 1));
        let later = now + Duration::from_secs(3_600);
        for (at, known, told) in [
            (later, seen, seen),
            (later, Revision::from_log(last.get() + 100), gone),
            (now - limits::OLDEST_HOLD, seen, gone),
        ] {
            *store.shared().oldest_seen() = Some((at, known));
            assert_eq!(store.oldest().await.expect("known or found"), told);
        }
        assert!(store.shared().oldest_denied.load(Ordering::Relaxed));
        let mut feed = store.feed("/other/a/", gone).await.expect("begun");
        let mut changes = Vec::new();
        while changes.is_empty() {
            feed.ready().await;
            feed.take(99, &mut changes).expect("kept");
        }
        assert_eq!(changes.first().map(|change| change.revision), Some(gone.next()));
    }
}
