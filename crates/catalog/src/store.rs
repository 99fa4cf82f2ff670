//! The storage of one resource: its keys, its cache, and the guarded update that every write goes through.
//!
//! In: a decision made on the current object. Out: that decision, committed on exactly that object. Never:
//! decides.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_apimachinery::{Key, Reason, Revision, Status};
use forebay_backend::{Backend as _, Expect, Op, Txn, TxnResponse, Versioned, why_undecrypted};
use forebay_object::{Interner, Object, Scope};
use forebay_rt::Clock;
use forebay_watchcache::limits::FRESH_WAIT;
use forebay_watchcache::{Cacher, Reach, Snapshot};

use crate::counts::ListCounts;
use crate::errors;
use crate::instrumented::Instrumented;
use crate::limits::ROUNDS_MAX;

/// One resource's storage. All versions of the resource share it.
pub struct Store {
    pub group: Arc<str>,
    pub resource: Arc<str>,
    pub cacher: Cacher,
    pub backend: Arc<Instrumented>,
    pub lists: Arc<ListCounts>,
    /// Where keys begin as errors show them: behind what all of the store's begin with.
    pub shown_from: usize,
}

/// An object as a decision is made on it.
#[derive(Clone)]
pub struct Current {
    pub object: Arc<Object>,
}

/// What to do with the current object.
pub enum Decision {
    /// Store this instead.
    Put { value: Bytes, ttl: Option<Duration> },
    /// Remove it.
    Delete,
    /// Leave it.
    Keep,
}

/// What was done.
pub enum Done {
    Put {
        object: Arc<Object>,
    },
    /// `object` is the last state; its revision is still that of the last put, `revision` is the delete's.
    Deleted {
        object: Arc<Object>,
        revision: Revision,
    },
    Kept {
        object: Arc<Object>,
    },
}

/// Whether a write is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Commit,
    /// Everything but the commit.
    DryRun,
}

impl Mode {
    pub fn of(dry_run: bool) -> Mode {
        if dry_run { Mode::DryRun } else { Mode::Commit }
    }
}

/// The attempts to change one object, each on what is there by then.
///
/// The first is on the cached object: a commit finds out that it is stale. A refusal judged on it is judged
/// again on a live one, so that a stale cache never refuses what is right (reference §6, "cached-first"). A
/// dry run commits nothing that would find it out, so it begins on the live one.
pub struct Attempts {
    key: Key,
    mode: Mode,
    current: Option<Current>,
    live: bool,
}

impl Attempts {
    pub async fn begin(store: &Store, key: Key, mode: Mode) -> Result<Attempts, Status> {
        let cached = if mode == Mode::DryRun { None } else { store.cached(&key) };
        let live = cached.is_none();
        let current = if live { store.live(&key).await? } else { cached };
        Ok(Attempts { key, mode, current, live })
    }

    /// What is there, as far as is known; none where there is nothing.
    pub fn current(&self) -> Option<&Current> {
        self.current.as_ref()
    }

    /// Looks at the live object after a refusal of the cached one.
    ///
    /// # Errors
    /// The refusal, where it was of the live object: looked at as such, or as it was cached.
    pub async fn judge_again(&mut self, store: &Store, refusal: Status) -> Result<(), Status> {
        // What takes too much takes it again.
        if self.live || refusal.reason == Reason::RequestEntityTooLarge {
            return Err(refusal);
        }
        let cached = self.current.take().map(|current| current.object.revision());
        (self.current, self.live) = (store.live(&self.key).await?, true);
        match &self.current {
            Some(live) if Some(live.object.revision()) == cached => Err(refusal),
            _ => Ok(()),
        }
    }

    /// Carries out what was decided on the current object. None where another one is there instead, which is
    /// current now.
    ///
    /// # Errors
    /// The store's own failures; the same object is current still.
    pub async fn carry_out(&mut self, store: &Store, decision: Decision) -> Result<Option<Done>, Status> {
        match self.attempt(store, self.current.clone(), decision).await? {
            Ok(done) => {
                self.current = None;
                Ok(Some(done))
            }
            Err(newer) => {
                (self.current, self.live) = (newer, true);
                Ok(None)
            }
        }
    }

    /// The outcome, or the object that is there instead.
    async fn attempt(
        &self,
        store: &Store,
        current: Option<Current>,
        decision: Decision,
    ) -> Result<Result<Done, Option<Current>>, Status> {
        let key = &self.key;
        let expect = current.as_ref().map_or(Expect::Absent, |current| Expect::At(current.object.revision()));
        let op = match decision {
            Decision::Keep => {
                let Some(current) = current else { return Err(Status::internal("nothing to keep")) };
                // "No change" judged on a cached object holds only if that is still the object.
                if !self.live {
                    let newest = store.live(key).await?;
                    if newest.as_ref().map(|newest| newest.object.revision())
                        != Some(current.object.revision())
                    {
                        return Ok(Err(newest));
                    }
                }
                return Ok(Ok(Done::Kept { object: current.object }));
            }
            Decision::Put { value, ttl } => Op::Put { value, ttl },
            Decision::Delete => Op::Delete,
        };
        let outcome = match self.mode {
            Mode::Commit => {
                let txn = Txn { key: key.clone(), expect, op: op.clone() };
                store.backend.commit(txn).await.map_err(|error| errors::txn(&error))?
            }
            Mode::DryRun => {
                TxnResponse::Committed(store.backend.barrier().await.map_err(|error| errors::read(&error))?)
            }
        };
        // A dry run shows the resourceVersion that the object has.
        let own =
            current.as_ref().filter(|_| self.mode == Mode::DryRun).map(|current| current.object.revision());
        match (outcome, op) {
            (TxnResponse::Committed(revision), Op::Put { value, .. }) => {
                let shown = own.unwrap_or(revision);
                Ok(Ok(Done::Put { object: store.decode(key.clone(), shown, &value)? }))
            }
            (TxnResponse::Committed(revision), Op::Delete) => {
                let Some(current) = current else { return Err(Status::internal("nothing to delete")) };
                Ok(Ok(Done::Deleted { object: current.object, revision: own.unwrap_or(revision) }))
            }
            (TxnResponse::Conflict(found), _) => {
                Ok(Err(found.map(|found| store.current(key.clone(), &found)).transpose()?))
            }
        }
    }
}

impl Store {
    /// The storage key of an object.
    pub fn key(&self, namespace: &str, name: &str) -> Key {
        let prefix = self.cacher.resource().prefix.as_str();
        match self.scope() {
            Scope::Namespaced => Key::from(format!("{prefix}{namespace}/{name}")),
            Scope::Cluster => Key::from(format!("{prefix}{name}")),
        }
    }

    /// The keys of one object, one namespace, or the whole resource.
    pub fn reach(&self, namespace: Option<&str>, name: Option<&str>) -> Reach {
        let prefix = &self.cacher.resource().prefix;
        match (self.scope(), namespace, name) {
            (Scope::Namespaced, Some(namespace), Some(name)) => Reach::One(self.key(namespace, name)),
            (Scope::Cluster, _, Some(name)) => Reach::One(self.key("", name)),
            (Scope::Namespaced, Some(namespace), None) => {
                Reach::Below(Key::from(format!("{prefix}{namespace}/")))
            }
            _ => Reach::Below(prefix.clone()),
        }
    }

    /// Why some of what is kept cannot be read for now, if that is so.
    pub fn hindered(&self) -> Option<String> {
        self.backend.hindered()
    }

    pub fn scope(&self) -> Scope {
        self.cacher.resource().layout.scope
    }

    /// Creates the object at `key`.
    ///
    /// # Errors
    /// `None` in place of a status: the key has a value already.
    pub async fn create(
        &self,
        key: Key,
        value: Bytes,
        ttl: Option<Duration>,
        mode: Mode,
    ) -> Result<Arc<Object>, Option<Status>> {
        if mode == Mode::DryRun {
            let present = self.live(&key).await.map_err(Some)?;
            let current = self.backend.barrier().await.map_err(|error| Some(errors::read(&error)))?;
            let object = self.decode(key, current, &value).map_err(Some)?;
            return if present.is_some() { Err(None) } else { Ok(object) };
        }
        let txn = Txn { key: key.clone(), expect: Expect::Absent, op: Op::Put { value: value.clone(), ttl } };
        match self.backend.commit(txn).await.map_err(|error| Some(errors::txn(&error)))? {
            TxnResponse::Committed(revision) => self.decode(key, revision, &value).map_err(Some),
            TxnResponse::Conflict(Some(_)) => Err(None),
            TxnResponse::Conflict(None) => {
                Err(Some(Status::internal("the store refused to create an absent key")))
            }
        }
    }

    /// What to do in place of keeping `current`: to write it anew as it is, where the store keeps it as it
    /// would not be written now, such as under a key that was replaced.
    ///
    /// # Errors
    /// The store's own failures.
    pub async fn keep_or_renew(
        &self,
        current: &Object,
        ttl: Option<Duration>,
        mode: Mode,
    ) -> Result<Decision, Status> {
        let key = current.key();
        if mode == Mode::DryRun || !self.backend.may_be_stale() {
            return Ok(Decision::Keep);
        }
        if !self.backend.is_stale(key).await.map_err(|error| errors::read(&error))? {
            return Ok(Decision::Keep);
        }
        let found = self.backend.get(key).await.map_err(|error| errors::read(&error))?;
        // Where another one is there, that is found out as always.
        let found = found.filter(|found| found.revision == current.revision());
        Ok(found.map_or(Decision::Keep, |found| Decision::Put { value: found.value, ttl }))
    }

    /// Calls `judge` with the current object until its decision commits on exactly that object: for the
    /// server's own objects. What clients write goes through the stages of `write/chain.rs`, around which
    /// `write/rounds.rs` does the same.
    ///
    /// # Errors
    /// What `judge` says of the live object, or the store's own failures.
    pub async fn guarded_update(
        &self,
        key: &Key,
        mode: Mode,
        mut judge: impl FnMut(Option<&Current>) -> Result<Decision, Status>,
    ) -> Result<Done, Status> {
        let mut attempts = Attempts::begin(self, key.clone(), mode).await?;
        for _ in 0..ROUNDS_MAX {
            match judge(attempts.current()) {
                Ok(decision) => {
                    if let Some(done) = attempts.carry_out(self, decision).await? {
                        return Ok(done);
                    }
                }
                Err(refusal) => attempts.judge_again(self, refusal).await?,
            }
        }
        Err(errors::too_contended())
    }

    /// Bytes that an object may have in the store. Of a dry run nobody asks, as upstream.
    pub fn bytes_max(&self, mode: Mode) -> usize {
        if mode == Mode::DryRun { usize::MAX } else { self.backend.value_bytes_max() }
    }

    /// The object as the cache has it.
    pub fn cached(&self, key: &Key) -> Option<Current> {
        let snapshot = self.cacher.snapshot().ok()?;
        // What is there under a key that is not decrypted is an earlier one.
        let object = snapshot.get(key).filter(|_| !snapshot.may_be_undecrypted(key))?;
        Some(Current { object: object.clone() })
    }

    /// The object as the store has it now.
    pub async fn live(&self, key: &Key) -> Result<Option<Current>, Status> {
        let found = self.backend.get(key).await.map_err(|error| errors::read(&error))?;
        found.map(|found| self.current(key.clone(), &found)).transpose()
    }

    /// What is there once it is read, with every commit that was acknowledged before.
    ///
    /// # Errors
    /// 429 and 504 when the cache cannot answer.
    pub async fn fresh(&self, clock: &Clock) -> Result<Arc<Snapshot>, Status> {
        self.cacher.wait_ready().await;
        let deadline = clock.now() + FRESH_WAIT;
        self.cacher.fresh(deadline).await.map_err(|error| errors::cache(&error))
    }

    fn current(&self, key: Key, found: &Versioned) -> Result<Current, Status> {
        Ok(Current { object: self.decode(key, found.revision, &found.value)? })
    }

    /// An object from a value, outside the cache.
    pub fn decode(&self, key: Key, revision: Revision, value: &[u8]) -> Result<Arc<Object>, Status> {
        let (layout, unread) = (&self.cacher.resource().layout, key.clone());
        Object::decode(layout, key, revision, value, &mut Interner::default())
            .map(Arc::new)
            .map_err(|error| self.corrupt(&unread, revision, value, &error))
    }

    /// What is at `key`, of which `value` is all that is known.
    fn corrupt(&self, key: &Key, revision: Revision, value: &[u8], error: &dyn std::fmt::Display) -> Status {
        let why = match why_undecrypted(value) {
            Some(why) => format!("data from the storage is not transformable revision=0: {why}"),
            None => format!("object not decodable revision={revision}: {error}"),
        };
        let key = key.as_str().get(self.shown_from..).unwrap_or(key.as_str());
        Status::internal(format!(
            "StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
        ))
    }

    /// Removes what is at `key` although it cannot be read. Whether there was such a thing.
    ///
    /// # Errors
    /// The store's own failures.
    pub async fn remove_corrupt(&self, key: &Key) -> Result<bool, Status> {
        for _ in 0..ROUNDS_MAX {
            let found = self.backend.get(key).await.map_err(|error| errors::read(&error))?;
            let Some(found) = found.filter(|found| self.current(key.clone(), found).is_err()) else {
                return Ok(false);
            };
            let txn = Txn { key: key.clone(), expect: Expect::At(found.revision), op: Op::Delete };
            match self.backend.commit(txn).await.map_err(|error| errors::txn(&error))? {
                TxnResponse::Committed(_) => return Ok(true),
                TxnResponse::Conflict(_) => {}
            }
        }
        Err(errors::too_contended())
    }
}
