//! The storage of one resource: its keys, its cache, and the guarded update that every write goes through.
//!
//! In: a decision made on the current object. Out: that decision, committed on exactly that object. Never: decides.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_apimachinery::{Key, Reason, Revision, Status};
use forebay_backend::{Backend as _, Expect, Op, Outcome, Txn, Versioned};
use forebay_object::{Interner, Object, Scope};
use forebay_schema::builtin::protobuf;
use forebay_watchcache::{Cacher, Reach};

use crate::asked::Asked;
use crate::counts::ListCounts;
use crate::errors;

/// One resource's storage. All versions of the resource share it.
pub struct Store {
    pub group: Arc<str>,
    pub resource: Arc<str>,
    pub cacher: Cacher,
    pub backend: Arc<Asked>,
    pub lists: Arc<ListCounts>,
    /// Where keys begin as errors show them: behind what all of the store's begin with.
    pub shown_from: usize,
}

/// An object as a decision is made on it.
pub struct Current {
    pub object: Arc<Object>,
}

/// What to do with the current object.
pub enum Decision<T> {
    /// Store this instead.
    Put { value: Bytes, ttl: Option<Duration>, carry: T },
    /// Remove it.
    Delete { carry: T },
    /// Leave it.
    Keep { carry: T },
}

impl Decision<Vec<String>> {
    /// Adds what the client is to be told first.
    pub fn with_warnings(mut self, mut warnings: Vec<String>) -> Self {
        let (Decision::Put { carry, .. } | Decision::Delete { carry } | Decision::Keep { carry }) = &mut self;
        warnings.append(carry);
        *carry = warnings;
        self
    }
}

/// What was done.
pub enum Done<T> {
    Put {
        object: Arc<Object>,
        carry: T,
    },
    /// `object` is the last state; its revision is still that of the last put, `revision` is the delete's.
    Deleted {
        object: Arc<Object>,
        revision: Revision,
        carry: T,
    },
    Kept {
        object: Arc<Object>,
        carry: T,
    },
}

/// Whether a write is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Commit,
    /// Everything but the commit.
    DryRun,
}

/// Retries of one guarded update against concurrent writers. Each lost round means that another write won, so the
/// system as a whole moves; beyond this the client is told to try again.
pub const ROUNDS_MAX: usize = 1_000;

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
            Outcome::Committed(revision) => self.decode(key, revision, &value).map_err(Some),
            Outcome::Conflict(Some(_)) => Err(None),
            Outcome::Conflict(None) => {
                Err(Some(Status::internal("the store refused to create an absent key")))
            }
        }
    }

    /// Calls `judge` with the current object until its decision commits on exactly that object.
    ///
    /// The first round uses the cached object. A refusal judged on it is judged again on a live one, so that a stale
    /// cache never refuses what is right (reference §6, "cached-first").
    ///
    /// # Errors
    /// What `judge` says of the live object, or the store's own failures.
    pub async fn guarded_update<T>(
        &self,
        key: &Key,
        mode: Mode,
        mut judge: impl FnMut(Option<&Current>) -> Result<Decision<T>, Status>,
    ) -> Result<Done<T>, Status> {
        let mut current = self.cached(key);
        let mut live = false;
        if current.is_none() {
            (current, live) = (self.live(key).await?, true);
        }
        for _ in 0..ROUNDS_MAX {
            let decision = match judge(current.as_ref()) {
                Ok(decision) => decision,
                // What takes too much takes it again.
                Err(refusal) if !live && refusal.reason != Reason::RequestEntityTooLarge => {
                    (current, live) = (self.live(key).await?, true);
                    continue;
                }
                Err(refusal) => return Err(refusal),
            };
            match self.carry_out(key, current, decision, mode, live).await? {
                Ok(done) => return Ok(done),
                Err(newer) => (current, live) = (newer, true),
            }
        }
        Err(errors::too_contended())
    }

    /// One attempt: the outcome, or the object that is there instead.
    async fn carry_out<T>(
        &self,
        key: &Key,
        current: Option<Current>,
        decision: Decision<T>,
        mode: Mode,
        live: bool,
    ) -> Result<Result<Done<T>, Option<Current>>, Status> {
        let expect = current.as_ref().map_or(Expect::Absent, |current| Expect::At(current.object.revision()));
        let (op, carry) = match decision {
            Decision::Keep { carry } => {
                let Some(current) = current else { return Err(Status::internal("nothing to keep")) };
                // "No change" judged on a cached object holds only if that is still the object.
                if !live {
                    let newest = self.live(key).await?;
                    if newest.as_ref().map(|newest| newest.object.revision())
                        != Some(current.object.revision())
                    {
                        return Ok(Err(newest));
                    }
                }
                return Ok(Ok(Done::Kept { object: current.object, carry }));
            }
            Decision::Put { value, ttl, carry } => (Op::Put { value, ttl }, carry),
            Decision::Delete { carry } => (Op::Delete, carry),
        };
        let outcome = match mode {
            Mode::Commit => {
                let txn = Txn { key: key.clone(), expect, op: op.clone() };
                self.backend.commit(txn).await.map_err(|error| errors::txn(&error))?
            }
            Mode::DryRun => {
                Outcome::Committed(self.backend.barrier().await.map_err(|error| errors::read(&error))?)
            }
        };
        match (outcome, op) {
            (Outcome::Committed(revision), Op::Put { value, .. }) => {
                // A dry run shows the resourceVersion that the object has.
                let shown = match (&current, mode) {
                    (Some(current), Mode::DryRun) => current.object.revision(),
                    _ => revision,
                };
                Ok(Ok(Done::Put { object: self.decode(key.clone(), shown, &value)?, carry }))
            }
            (Outcome::Committed(revision), Op::Delete) => {
                let Some(current) = current else { return Err(Status::internal("nothing to delete")) };
                Ok(Ok(Done::Deleted { object: current.object, revision, carry }))
            }
            (Outcome::Conflict(found), _) => {
                Ok(Err(found.map(|found| self.current(key.clone(), &found)).transpose()?))
            }
        }
    }

    /// The object as the cache has it.
    pub fn cached(&self, key: &Key) -> Option<Current> {
        let snapshot = self.cacher.snapshot().ok()?;
        snapshot.get(key).map(|object| Current { object: object.clone() })
    }

    /// The object as the store has it now.
    pub async fn live(&self, key: &Key) -> Result<Option<Current>, Status> {
        let found = self.backend.get(key).await.map_err(|error| errors::read(&error))?;
        found.map(|found| self.current(key.clone(), &found)).transpose()
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
        let why = match value.starts_with(&protobuf::ENCRYPTED_PREFIX) {
            true => {
                "data from the storage is not transformable revision=0: identity transformer tried to read \
                     encrypted data"
                    .to_string()
            }
            false => format!("object not decodable revision={revision}: {error}"),
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
                Outcome::Committed(_) => return Ok(true),
                Outcome::Conflict(_) => {}
            }
        }
        Err(errors::too_contended())
    }
}
