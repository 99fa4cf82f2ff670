//! What a controller of this process sees of a resource: its objects, then what happens to them, without frames.
//!
//! In: a target and selectors. Out: [`Notice`]s, in order, with the objects themselves; a consistent look at a
//! collection ([`Objects`]); word of every new catalog. Never: keeps an object, or shows one to a client.

use std::sync::Arc;

use forebay_apimachinery::options::ListOptions;
use forebay_apimachinery::{GroupResource, Object, Revision, Status};
use forebay_rt::{Clock, Duration, Instant};
use forebay_watchcache::{Cacher, EventKind, Interest, ReadError, Snapshot, WatchStep, Watcher};
use tokio::sync::watch;

use crate::errors;
use crate::plan;
use crate::registry::Registry;
use crate::request::Target;

/// What an informer tells.
#[derive(Clone, Debug)]
pub enum Notice {
    /// The object is there, or is there now as it is.
    Put(Arc<Object>),
    /// The object is gone; its last state.
    Deleted(Arc<Object>),
    /// Everything that was there when the list began has been told.
    Synced,
    /// History was lost. The list begins anew: what is not told of again until `Synced` is gone.
    Reset,
    /// The resource is no longer served. Nothing follows.
    Ended,
}

/// Lists a collection, follows it, and lists it again when its history is gone.
///
/// Nothing is told before a GET shows it: who looks at an object because of a notice sees at least that state. The window
/// of the cache has an event a moment before its snapshot does.
pub struct Informer {
    cacher: Cacher,
    clock: Clock,
    interest: Interest,
    state: State,
    // Read, and to be told once the snapshot has this revision.
    early: Option<(Revision, Notice)>,
}

/// How long one wait for a snapshot is; after it there is another.
const SHOWN_WAIT: Duration = Duration::from_secs(60);

enum State {
    /// To be listed, for the first time or again.
    Unlisted,
    Following(Box<Watcher>),
    Ended,
}

/// The objects of a collection at one moment. Pins its snapshot until dropped.
pub struct Objects {
    snapshot: Arc<Snapshot>,
    interest: Interest,
    resource: GroupResource,
}

/// Word of every new catalog.
pub struct CatalogChanges(watch::Receiver<Option<Revision>>);

impl Registry {
    /// An informer of the collection that `target` names.
    ///
    /// # Errors
    /// 405 for what has no storage, 400 for a field that cannot be selected by.
    pub fn informer(&self, target: &Target, options: &ListOptions) -> Result<Informer, Status> {
        let store = self.store_of(&target.served)?;
        let interest = plan::interest(target, &store, options)?;
        let (cacher, clock) = (store.cacher.clone(), self.clock.clone());
        Ok(Informer { cacher, clock, interest, state: State::Unlisted, early: None })
    }

    /// The objects of a collection, with every commit that was acknowledged before the call.
    ///
    /// # Errors
    /// 429 and 504 when the cache cannot answer.
    pub async fn objects(&self, target: &Target) -> Result<Objects, Status> {
        let store = self.store_of(&target.served)?;
        let interest = plan::interest(target, &store, &ListOptions::default())?;
        let deadline = self.clock.now() + forebay_watchcache::limits::FRESH_WAIT;
        let snapshot = store.cacher.fresh(deadline).await.map_err(|error| errors::cache(&error))?;
        Ok(Objects { snapshot, interest, resource: target.served.gvr.group_resource() })
    }

    /// The revision of the store: no older than any commit acknowledged before the call.
    ///
    /// # Errors
    /// When the store cannot say.
    pub async fn current_revision(&self) -> Result<Revision, Status> {
        self.backend.barrier().await.map_err(|error| errors::read(&error))
    }

    /// Tells of every catalog that is published from now on.
    pub fn catalog_changes(&self) -> CatalogChanges {
        CatalogChanges(self.watch_catalog())
    }
}

impl Objects {
    /// In key order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Object>> {
        let interest = &self.interest;
        self.snapshot.candidates(interest, None).filter(|object| interest.selects(object))
    }

    /// Whether these are all.
    ///
    /// # Errors
    /// There may be values among them that cannot be read, in kube-apiserver's words.
    pub fn are_all(&self) -> Result<(), Status> {
        match self.snapshot.may_have_unreadable(&self.interest.reach) {
            true => Err(errors::unreadable(&self.resource)),
            false => Ok(()),
        }
    }
}

impl CatalogChanges {
    /// Waits for the next one; for ever once the registry is gone. Cancel-safe.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Informer {
    /// The next notice if there is one now; never waits.
    pub fn try_next(&mut self) -> Option<Notice> {
        if let Some((revision, notice)) = self.early.take() {
            return self.once_shown(revision, notice);
        }
        loop {
            let step = match &mut self.state {
                State::Ended => return None,
                State::Following(watcher) => watcher.try_next()?,
                State::Unlisted => match self.list() {
                    Ok(watcher) => {
                        self.state = State::Following(Box::new(watcher));
                        continue;
                    }
                    Err(_) if self.cacher.is_stopped() => return Some(self.end()),
                    Err(_) => return None,
                },
            };
            return Some(match step {
                WatchStep::Event { kind, object, revision } => {
                    let notice = match kind {
                        EventKind::Added | EventKind::Modified => Notice::Put(object),
                        EventKind::Deleted => Notice::Deleted(object),
                    };
                    return self.once_shown(revision, notice);
                }
                WatchStep::InitialEventsEnd(_) => Notice::Synced,
                WatchStep::Closed if self.cacher.is_stopped() => self.end(),
                WatchStep::Expired { .. } | WatchStep::Closed => {
                    self.state = State::Unlisted;
                    Notice::Reset
                }
            });
        }
    }

    /// Waits until [`Informer::try_next`] may have something; for ever after the end. Cancel-safe.
    pub async fn ready(&mut self) {
        if let Some((revision, _)) = &self.early {
            // In vain or not: what is next is seen by looking.
            let _shown = self.cacher.at_least(*revision, self.clock.now() + SHOWN_WAIT).await;
            return;
        }
        match &mut self.state {
            State::Ended => std::future::pending().await,
            State::Following(watcher) => watcher.ready().await,
            State::Unlisted => self.cacher.wait_ready().await,
        }
    }

    /// Waits until everything up to `revision` can be had from [`Informer::try_next`] without waiting, at most until
    /// `deadline`. Whether it can; not while the cache is being filled. Cancel-safe.
    pub async fn reaches(&mut self, revision: Revision, deadline: Instant) -> bool {
        if self.cacher.is_stopped() {
            return true;
        }
        self.cacher.at_least(revision, deadline).await.is_ok()
    }

    /// `notice`, if a GET shows what it tells; else it is kept. A cache that shows nothing now begins anew anyway.
    fn once_shown(&mut self, revision: Revision, notice: Notice) -> Option<Notice> {
        if self.cacher.snapshot().is_ok_and(|shown| shown.revision() < revision) {
            self.early = Some((revision, notice));
            return None;
        }
        Some(notice)
    }

    fn list(&self) -> Result<Watcher, ReadError> {
        self.cacher.watch_list(self.interest.clone(), self.cacher.snapshot()?)
    }

    fn end(&mut self) -> Notice {
        self.state = State::Ended;
        Notice::Ended
    }
}
