//! One informer: what is there, what happens, and how it fares.
//!
//! In: what a cache shows. Out: [`View`]s, [`Subscription`]s. Owner: whoever holds it; the last to let go of
//! it ends it. Never: changes an object.

use std::marker::PhantomData;
use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_rt::{Duration, Instant};
use forebay_view::TypeMeta;
use forebay_watchcache::{Interest, Reach};

use crate::error::Error;
use crate::limits;
use crate::progress::{Health, Stats};
use crate::shared::{Part, Shared};
use crate::subscription::Subscription;
use crate::view::View;

/// The objects of a [`Watched`](crate::Watched). Cheap to clone.
pub struct Informer<K> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) kind: Arc<TypeMeta>,
    of: PhantomData<fn() -> K>,
}

impl<K> Clone for Informer<K> {
    fn clone(&self) -> Informer<K> {
        Informer::new(self.shared.clone(), self.kind.clone())
    }
}

impl<K> Informer<K> {
    pub(crate) fn new(shared: Arc<Shared>, kind: Arc<TypeMeta>) -> Informer<K> {
        Informer { shared, kind, of: PhantomData }
    }

    /// The same informer, whose objects are read as another type: metadata alone, or what one part of a
    /// program knows of them.
    pub fn cast<J>(&self) -> Informer<J> {
        Informer::new(self.shared.clone(), self.kind.clone())
    }

    /// Waits until there is a whole state, however long that takes. Cancel-safe.
    ///
    /// # Errors
    /// [`Error::OverLimit`] and [`Error::SpillLost`], after which another call may find it synced;
    /// [`Error::Stopped`].
    pub async fn synced(&self) -> Result<(), Error> {
        let _awaits = self.shared.await_it();
        for part in &self.shared.parts {
            tokio::select! {
                biased;
                why = part.progress.until_refused() => return Err(why.into()),
                () = part.cacher.wait_ready() => {}
            }
            part.snapshot()?;
        }
        Ok(())
    }

    /// Whether there is a whole state, however old.
    pub fn has_synced(&self) -> bool {
        self.shared.parts.iter().all(|part| part.snapshot().is_ok())
    }

    /// The objects as they are now, to look at for as long as it is held. O(1), no copy.
    ///
    /// # Errors
    /// [`Error::NotSynced`], [`Error::OverLimit`], [`Error::Stopped`].
    pub fn view(&self) -> Result<View<K>, Error> {
        let snapshots = self.shared.parts.iter().map(Part::snapshot);
        Ok(View::new(self.shared.clone(), self.kind.clone(), snapshots.collect::<Result<_, _>>()?))
    }

    /// The same once everything up to `revision` is in it: of an answer to a write for instance, which is in
    /// sight as soon as its event is. Waits at most [`limits::READ_WAIT`].
    ///
    /// # Errors
    /// [`Error::Late`], [`Error::OverLimit`], [`Error::Stopped`]. A revision whose change does not match is
    /// in sight with the next change or bookmark.
    pub async fn wait_for(&self, revision: Revision) -> Result<View<K>, Error> {
        self.wait_until(revision, self.shared.clock.now() + limits::READ_WAIT).await
    }

    /// The same at most until `deadline`. Cancel-safe.
    ///
    /// # Errors
    /// As [`Informer::wait_for`].
    pub async fn wait_until(&self, revision: Revision, deadline: Instant) -> Result<View<K>, Error> {
        let _awaits = self.shared.await_it();
        let mut snapshots = Vec::with_capacity(self.shared.parts.len());
        for part in &self.shared.parts {
            tokio::select! {
                biased;
                why = part.progress.until_refused() => return Err(why.into()),
                () = part.cacher.wait_ready() => {}
                () = self.shared.clock.sleep_until(deadline) => {}
            }
            tokio::select! {
                biased;
                why = part.progress.until_refused() => return Err(why.into()),
                shown = part.cacher.at_least(revision, deadline) => snapshots.push(shown?),
            }
        }
        Ok(View::new(self.shared.clone(), self.kind.clone(), snapshots))
    }

    /// What there is, then what happens, at the pace of whoever listens.
    pub fn subscribe(&self) -> Subscription<K> {
        let all = || Interest::all(Reach::Below(Key::from("/")));
        let followers = self.shared.parts.iter().map(|part| part.cacher.follow(all())).collect();
        Subscription::new(self.shared.clone(), followers, self.kind.clone())
    }

    /// How long ago something last came from the server: an object, a bookmark, an answer. `None` before
    /// anything did. A state is at most so old, unless the server itself lags.
    pub fn age(&self) -> Option<Duration> {
        let now = self.shared.clock.now();
        let heard = self.shared.parts.iter().map(|part| part.progress.health().last_heard_at);
        heard.collect::<Option<Vec<_>>>()?.into_iter().min().map(|oldest| now.duration_since(oldest))
    }

    /// How it fares; of several namespaces, that of the worst.
    pub fn health(&self) -> Health {
        let all = self.shared.parts.iter().map(|part| part.progress.health());
        let worst = |health: &Health| {
            (health.failing.is_none(), health.failing.map(|(_, since)| since), health.synced_since.is_some())
        };
        all.min_by_key(worst).unwrap_or(Health { synced_since: None, last_heard_at: None, failing: None })
    }

    /// What it has cost so far, a value for each namespace, or one for all.
    pub fn stats(&self) -> Vec<(Option<&str>, Stats)> {
        self.shared.parts.iter().map(|part| (part.namespace.as_deref(), part.progress.stats())).collect()
    }

    /// Whether it holds no more than metadata of an object, because the whole of them is more than it may
    /// hold: see [`AtLimit::MetadataOnly`](crate::AtLimit::MetadataOnly).
    pub fn is_partial(&self) -> bool {
        self.shared.parts.iter().any(|part| part.progress.is_partial())
    }

    /// Bytes that it holds: objects at rest and in plain form, their keys and indexes, and what its window
    /// keeps for who is behind.
    pub fn held_bytes(&self) -> usize {
        self.shared.parts.iter().map(Part::held_bytes).sum()
    }
}
