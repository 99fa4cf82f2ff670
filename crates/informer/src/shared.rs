//! What all handles to an informer share: its caches, and what is known of who reads them.
//!
//! In: what a factory put together. Out: the same, and what it comes to. Never: a type of objects.

use std::sync::Arc;

use forebay_apimachinery::Revision;
use forebay_rt::{Clock, Tasks};
use forebay_watchcache::{Cacher, Snapshot};
use tokio::runtime;

use crate::ceiling::Ceiling;
use crate::error::Error;
use crate::handler_stats::{HandlerStats, Handlers};
use crate::progress::{Awaiting, Progress};
use crate::saved::{self, Place};
use crate::unseen::Writes;

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

impl Shared {
    /// For as long as somebody waits for what comes.
    pub(crate) fn await_it(&self) -> Awaiting {
        Awaiting::new(self.parts.iter().map(|part| part.progress.clone()))
    }
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
    pub(crate) fn is_held(&self) -> Result<(), Error> {
        match self.progress.refused() {
            Some(why) => Err(why.into()),
            None => Ok(()),
        }
    }

    /// What there is.
    ///
    /// # Errors
    /// [`Error::OverLimit`], [`Error::SpillLost`], [`Error::NotSynced`], [`Error::Stopped`].
    pub(crate) fn snapshot(&self) -> Result<Arc<Snapshot>, Error> {
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
    /// Nobody holds it any more: what it has is kept for who asks next, in this program or the next start of
    /// it.
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
