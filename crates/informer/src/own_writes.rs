//! Read your own writes: a read that waits until what this program wrote is in sight, and for nothing else.
//!
//! In: what the server answered to writes. Out: reads that show at least that. Owner: the informer. Never:
//! waits for what others wrote; holds more than [`limits::WRITES_MAX`] writes that are not in sight.

use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_rt::Instant;
use forebay_view::Handle;
use forebay_watchcache::{Followed, Interest, Reach, Snapshot};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::change::key;
use crate::error::Error;
use crate::informer::Informer;
use crate::limits;
use crate::shared::Part;
use crate::unseen::Seen;
use crate::view::View;

/// A `kube::Api` whose writes are seen by later reads of the informer: see [`Informer::writes_of`].
#[derive(Clone)]
pub struct OwnWrites<K> {
    api: Api<K>,
    informer: Informer<K>,
}

impl<K> Informer<K> {
    /// Writes through `api` that later calls of [`Informer::read`] and [`Informer::read_object`] wait for.
    pub fn writes_of(&self, api: Api<K>) -> OwnWrites<K> {
        OwnWrites { api, informer: self.clone() }
    }

    /// Notes what the server answered to a write that was made in another way.
    pub fn wrote(&self, answer: &impl kube::ResourceExt) {
        let revision = answer.resource_version().and_then(|revision| revision.parse().ok());
        if let Some(revision) = revision.and_then(Revision::new) {
            let key = key(&answer.namespace().unwrap_or_default(), &answer.name_any());
            self.note(key, Seen::At(revision));
        }
    }

    /// The objects, with all that was written through [`OwnWrites`] before the call. Waits at most
    /// [`limits::READ_WAIT`].
    ///
    /// # Errors
    /// [`Error::NotInSight`], [`Error::Stopped`].
    pub async fn read(&self) -> Result<View<K>, Error> {
        let deadline = self.shared.clock.now() + limits::READ_WAIT;
        let pending: Vec<(Key, Seen)> = self.shared.writes.pending().clone().into_iter().collect();
        for (key, seen) in pending {
            self.until_in_sight(&key, &seen, deadline).await?;
        }
        self.view()
    }

    /// One object, with what was written of it before the call; writes of others are not waited for.
    ///
    /// # Errors
    /// As [`Informer::read`].
    pub async fn read_object(&self, namespace: &str, name: &str) -> Result<Option<Handle<K>>, Error> {
        let deadline = self.shared.clock.now() + limits::READ_WAIT;
        let key = key(namespace, name);
        let seen = self.shared.writes.pending().get(&key).cloned();
        if let Some(seen) = seen {
            self.until_in_sight(&key, &seen, deadline).await?;
        }
        Ok(self.view()?.get(namespace, name))
    }

    fn note(&self, key: Key, seen: Seen) {
        if self.part(&key).is_none() {
            // Of a namespace that it does not watch.
            return;
        }
        let mut pending = self.shared.writes.pending();
        if pending.len() >= limits::WRITES_MAX {
            pending.retain(|key, seen| !self.is_in_sight(key, seen));
        }
        if pending.len() < limits::WRITES_MAX {
            let is_older =
                |held: &Seen| matches!((held, &seen), (Seen::At(held), Seen::At(new)) if held > new);
            if !pending.get(&key).is_some_and(is_older) {
                pending.insert(key, seen);
            }
        }
    }

    /// Which part has `key`.
    fn part(&self, key: &Key) -> Option<&Part> {
        let is_in = |part: &&Part| match &part.namespace {
            None => true,
            Some(namespace) => key.as_str()[1..].split('/').next() == Some(namespace),
        };
        self.shared.parts.iter().find(is_in)
    }

    fn is_in_sight(&self, key: &Key, seen: &Seen) -> bool {
        let shown = self.part(key).map(|part| part.cacher.snapshot());
        shown.is_none_or(|shown| shown.is_ok_and(|shown| self.shows(&shown, key, seen)))
    }

    fn shows(&self, shown: &Arc<Snapshot>, key: &Key, seen: &Seen) -> bool {
        let held = shown.get(key);
        match seen {
            Seen::At(revision) => {
                shown.revision() >= *revision || held.is_some_and(|held| held.revision() >= *revision)
            }
            Seen::Deleted { uid } => held.is_none_or(|held| {
                let handle = Handle::<K>::new(held.clone(), self.kind.clone());
                // What cannot be read is not to be waited for.
                handle.metadata().map_or(true, |metadata| metadata.uid != *uid || metadata.is_deleting())
            }),
        }
    }

    async fn until_in_sight(&self, key: &Key, seen: &Seen, deadline: Instant) -> Result<(), Error> {
        let Some(part) = self.part(key) else { return Ok(()) };
        let in_sight = async {
            let mut follower = part.cacher.follow(Interest::all(Reach::One(key.clone())));
            loop {
                if self.is_in_sight(key, seen) {
                    return Ok(());
                }
                let Seen::At(revision) = seen else {
                    match follower.next().await {
                        Followed::Ended => return Err(Error::Stopped),
                        Followed::Change(_)
                        | Followed::Synced(_)
                        | Followed::Relisted(_)
                        | Followed::LetGo => continue,
                    }
                };
                part.cacher.wait_ready().await;
                part.cacher.at_least(*revision, deadline).await?;
            }
        };
        tokio::select! {
            biased;
            done = in_sight => done?,
            () = self.shared.clock.sleep_until(deadline) => {
                return Err(Error::NotInSight { object: key.as_str().trim_start_matches('/').into() });
            }
        }
        let mut pending = self.shared.writes.pending();
        if pending.get(key) == Some(seen) {
            pending.remove(key);
        }
        Ok(())
    }
}

impl<K> OwnWrites<K>
where
    K: Resource + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    /// As `Api::create`.
    ///
    /// # Errors
    /// The server's; then nothing is waited for.
    pub async fn create(&self, params: &PostParams, object: &K) -> kube::Result<K> {
        self.noted(self.api.create(params, object).await?)
    }

    /// As `Api::replace`.
    ///
    /// # Errors
    /// The server's.
    pub async fn replace(&self, name: &str, params: &PostParams, object: &K) -> kube::Result<K> {
        self.noted(self.api.replace(name, params, object).await?)
    }

    /// As `Api::patch`.
    ///
    /// # Errors
    /// The server's.
    pub async fn patch<P: Serialize + std::fmt::Debug>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> kube::Result<K> {
        self.noted(self.api.patch(name, params, patch).await?)
    }

    /// As `Api::patch_status`.
    ///
    /// # Errors
    /// The server's.
    pub async fn patch_status<P: Serialize + std::fmt::Debug>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> kube::Result<K> {
        self.noted(self.api.patch_status(name, params, patch).await?)
    }

    /// As `Api::delete`. In sight is that the object is gone, or is being deleted.
    ///
    /// - `namespace`: of the object; empty for a kind without namespaces.
    ///
    /// # Errors
    /// The server's.
    pub async fn delete(&self, namespace: &str, name: &str, params: &DeleteParams) -> kube::Result<()> {
        let answer = self.api.delete(name, params).await?;
        let uid = answer.either(
            |object| object.uid().unwrap_or_default(),
            |status| status.details.map_or(String::new(), |details| details.uid),
        );
        if !uid.is_empty() {
            self.informer.note(key(namespace, name), Seen::Deleted { uid });
        }
        Ok(())
    }

    fn noted(&self, answer: K) -> kube::Result<K> {
        self.informer.wrote(&answer);
        Ok(answer)
    }
}
