//! One informer: what is there, what happens, and how it fares.
//!
//! In: what a cache shows. Out: [`View`]s, [`Subscription`]s. Owner: whoever holds it; the last to let go of it ends it. Never: changes
//! an object.

use std::marker::PhantomData;
use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_rt::{Clock, Duration, Instant, Tasks};
use forebay_view::TypeMeta;
use forebay_watchcache::{Cacher, Interest, Reach, Snapshot};
use tokio::runtime;

use crate::ceiling::Ceiling;
use crate::error::Error;
use crate::handlers::{HandlerStats, Handlers};
use crate::limits;
use crate::own_writes::Writes;
use crate::progress::{Health, Progress, Stats};
use crate::saved::{self, Place};
use crate::subscription::Subscription;
use crate::view::View;

/// The objects of a [`Watched`](crate::Watched). Cheap to clone.
pub struct Informer<K> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) kind: Arc<TypeMeta>,
    of: PhantomData<fn() -> K>,
}

/// What all handles to an informer share.
pub(crate) struct Shared {
    /// One, or one for each namespace.
    pub(crate) parts: Vec<Part>,
    pub(crate) indexes: Vec<String>,
    pub(crate) writes: Writes,
    pub(crate) handlers: Handlers,
    pub(crate) clock: Clock,
    pub(crate) tasks: Tasks,
    /// Where it was begun: who lets go of it may be on any thread.
    pub(crate) runtime: runtime::Handle,
}

pub(crate) struct Part {
    pub(crate) cacher: Cacher,
    pub(crate) progress: Arc<Progress>,
    pub(crate) namespace: Option<String>,
    pub(crate) saved: Option<Arc<Place>>,
    pub(crate) ceiling: Option<Arc<Ceiling>>,
}

impl Part {
    /// Bytes of its state and of its window; while a first state comes, of what of it is at rest.
    pub(crate) fn held_bytes(&self) -> usize {
        match self.cacher.snapshot() {
            Ok(snapshot) => snapshot.held().total() + self.cacher.window().bytes,
            Err(_) => self.progress.held_bytes(),
        }
    }

    /// # Errors
    /// [`Error::OverLimit`], [`Error::SpillLost`].
    fn is_held(&self) -> Result<(), Error> {
        match self.progress.refused() {
            Some(why) => Err(why.into()),
            None => Ok(()),
        }
    }

    /// What there is.
    ///
    /// # Errors
    /// [`Error::OverLimit`], [`Error::SpillLost`], [`Error::NotSynced`], [`Error::Stopped`].
    fn snapshot(&self) -> Result<Arc<Snapshot>, Error> {
        self.is_held()?;
        Ok(self.cacher.snapshot()?)
    }
}

impl Shared {
    /// That of each part.
    pub(crate) fn revisions(&self) -> Vec<Option<Revision>> {
        let revision = |part: &Part| Some(part.cacher.snapshot().ok()?.revision());
        self.parts.iter().map(revision).collect()
    }

    /// How each handler fares, by name.
    pub(crate) fn handlers(&self) -> Vec<(String, HandlerStats)> {
        self.handlers.stats()
    }

    /// Writes what there is to disk, where it is to be kept there.
    pub(crate) async fn save(&self) {
        for (place, snapshot) in self.states() {
            saved::save(place, snapshot).await;
        }
    }

    /// What there is of what is to be kept on disk.
    fn states(&self) -> Vec<(Arc<Place>, Arc<Snapshot>)> {
        // What is less than was asked for is not to be gone on from.
        let whole = self.parts.iter().filter(|part| !part.progress.is_partial());
        whole.filter_map(|part| Some((part.saved.clone()?, part.cacher.snapshot().ok()?))).collect()
    }
}

impl Drop for Shared {
    /// Nobody holds it any more: what it has is kept for who asks next, in this program or the next start of it.
    fn drop(&mut self) {
        let states = self.states();
        // After [`Factory::stop`](crate::Factory::stop) that is done.
        if states.is_empty() || self.tasks.shutdown().is_raised() {
            return;
        }
        let _in_it = self.runtime.enter();
        self.tasks.spawn_graceful("informer states", async move {
            for (place, snapshot) in states {
                saved::save(place, snapshot).await;
            }
        });
    }
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

    /// The same informer, whose objects are read as another type: metadata alone, or what one part of a program knows of them.
    pub fn cast<J>(&self) -> Informer<J> {
        Informer::new(self.shared.clone(), self.kind.clone())
    }

    /// Waits until there is a whole state, however long that takes. Cancel-safe.
    ///
    /// # Errors
    /// [`Error::OverLimit`] and [`Error::SpillLost`], after which another call may find it synced; [`Error::Stopped`].
    pub async fn synced(&self) -> Result<(), Error> {
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

    /// The same once everything up to `revision` is in it: of an answer to a write for instance, which is in sight as soon as its
    /// event is. Waits at most [`limits::READ_WAIT`].
    ///
    /// # Errors
    /// [`Error::Late`], [`Error::OverLimit`], [`Error::Stopped`]. A revision whose change does not match is in sight with the next change or bookmark.
    pub async fn wait_for(&self, revision: Revision) -> Result<View<K>, Error> {
        self.wait_until(revision, self.shared.clock.now() + limits::READ_WAIT).await
    }

    /// The same at most until `deadline`. Cancel-safe.
    ///
    /// # Errors
    /// As [`Informer::wait_for`].
    pub async fn wait_until(&self, revision: Revision, deadline: Instant) -> Result<View<K>, Error> {
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

    /// How long ago something last came from the server: an object, a bookmark, an answer. `None` before anything did. A state is at
    /// most so old, unless the server itself lags.
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

    /// Whether it holds no more than metadata of an object, because the whole of them is more than it may hold: see
    /// [`AtLimit::MetadataOnly`](crate::AtLimit::MetadataOnly).
    pub fn is_partial(&self) -> bool {
        self.shared.parts.iter().any(|part| part.progress.is_partial())
    }

    /// Bytes that it holds: objects at rest and in plain form, their keys and indexes, and what its window keeps for who is behind.
    pub fn held_bytes(&self) -> usize {
        self.shared.parts.iter().map(Part::held_bytes).sum()
    }
}
