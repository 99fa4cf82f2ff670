//! All objects of a version, as a cache like any other: its store is the cache of what is stored, with a
//! webhook in between.
//!
//! In: who reads. Out: the cache; what failed to convert, to all who read it. Never: an older state in the
//! place of what cannot be converted, without a word.

use std::sync::{Arc, Mutex, PoisonError};

use forebay_apimachinery::{Reason, Revision, Status};
use forebay_rt::{Clock, Duration, Instant};
use forebay_watchcache::{Cacher, History, Resource};
use tokio::sync::{Notify, watch};

use super::attempts::Attempts;
use super::converter::Converter;
use super::tell::Layered;
use crate::instrumented::Instrumented;
use crate::limits::{VIEW_RETRY_SECONDS, VIEW_WAIT};
use crate::opener::Opener;
use crate::store::Store;

/// See the module's doc. The cache ends when this and all its watchers are dropped.
pub struct View {
    store: Arc<Store>,
    attempts: watch::Receiver<Attempts>,
    again: Arc<Notify>,
    clock: Clock,
    // Locked for one line.
    used_at: Mutex<Instant>,
    // Whether memory is too short for it.
    given_up: watch::Sender<bool>,
}

impl View {
    /// - `after`: see [`Converted::view`](super::Converted::view).
    pub(super) fn open(converter: &Arc<Converter>, opener: &Opener, after: Option<Revision>) -> View {
        let (tell, attempts) = watch::channel(Attempts::default());
        let again = Arc::<Notify>::default();
        let layered = Arc::new(Layered {
            converter: converter.clone(),
            below: opener.backend.clone(),
            clock: opener.clock.clone(),
            tasks: opener.tasks.clone(),
            attempts: tell,
            again: again.clone(),
            after,
            wanted: watch::Sender::new(after),
        });
        let base = &converter.store;
        // What is converted is not compared with the store: it is not what is there.
        let resource = Resource { history: History::Own, ..base.cacher.resource().clone() };
        let cacher = Cacher::start(resource, layered.clone(), opener.clock.clone(), &opener.tasks);
        let store = Store {
            group: base.group.clone(),
            resource: base.resource.clone(),
            cacher,
            backend: Arc::new(Instrumented::new(layered, opener.clock.clone())),
            lists: base.lists.clone(),
            shown_from: base.shown_from,
        };
        let used_at = Mutex::new(opener.clock.now());
        let (clock, given_up) = (opener.clock.clone(), watch::Sender::new(false));
        View { store: Arc::new(store), attempts, again, clock, used_at, given_up }
    }

    /// Where its objects are read. Nothing is written to it.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Somebody reads it.
    pub(super) fn touch(&self) {
        *self.used_at.lock().unwrap_or_else(PoisonError::into_inner) = self.clock.now();
    }

    /// Whether nobody has begun to read it for so long.
    pub(super) fn is_idle(&self, long: Duration) -> bool {
        let used_at = *self.used_at.lock().unwrap_or_else(PoisonError::into_inner);
        self.clock.now() - used_at >= long
    }

    /// There is no memory for it: whoever reads it is told.
    pub(super) fn give_up(&self) {
        self.given_up.send_replace(true);
    }

    /// Waits until it can be read: until everything was converted once, and what failed was tried again.
    /// After [`VIEW_WAIT`] the read itself says that it cannot.
    ///
    /// # Errors
    /// What failed to convert.
    pub async fn ready(&self) -> Result<(), Status> {
        let deadline = self.clock.now() + VIEW_WAIT;
        let first = {
            let seen = self.attempts.borrow();
            // One that is under way may have begun before what it failed for was mended.
            if seen.failed.is_some() { seen.begun + 1 } else { 0 }
        };
        if first > 0 {
            self.again.notify_one();
        }
        let passed = async {
            let mut attempts = self.attempts.clone();
            // An error means that the cache has ended, which the read says.
            let _ended = attempts.wait_for(|now| now.failed.is_none()).await.is_err();
            self.store.cacher.wait_ready().await;
        };
        tokio::select! {
            biased;
            status = self.fails(first) => Err(status),
            () = passed => Ok(()),
            () = self.clock.sleep_until(deadline) => {
                let failed = self.attempts.borrow().failed.clone();
                failed.map_or(Ok(()), |(_, status)| Err(Status::clone(&status)))
            }
        }
    }

    /// What `read` says, unless something fails to convert meanwhile.
    ///
    /// # Errors
    /// What failed to convert.
    pub async fn guard<T>(&self, read: impl Future<Output = T>) -> Result<T, Status> {
        tokio::select! {
            biased;
            status = self.fails(0) => Err(status),
            done = read => Ok(done),
        }
    }

    /// Waits until something fails to convert. Keeps the view.
    pub async fn failed(self: Arc<Self>) -> Status {
        self.fails(0).await
    }

    /// - `first`: the first attempt that counts.
    async fn fails(&self, first: u64) -> Status {
        let (mut attempts, mut given_up) = (self.attempts.clone(), self.given_up.subscribe());
        let counts = |now: &Attempts| now.failed.as_ref().is_some_and(|(number, _)| *number >= first);
        let failed = async {
            let failed = attempts.wait_for(counts).await.ok().and_then(|now| now.failed.clone());
            match failed {
                Some((_, status)) => Status::clone(&status),
                // The cache has ended: nothing is converted any more.
                None => std::future::pending().await,
            }
        };
        let given_up = async {
            // It is this view's own, so that it does not end sooner.
            let _seen = given_up.wait_for(|given_up| *given_up).await.is_ok();
        };
        tokio::select! {
            biased;
            () = given_up => no_memory(&self.store.resource),
            status = failed => status,
        }
    }
}

/// What reads are told while objects are not kept in another version than they are stored in.
pub(super) fn no_memory(resource: &str) -> Status {
    let message = format!(
        "memory is short, see --memory-limit: {resource} are not kept in a version that a webhook makes"
    );
    Status::new(Reason::TooManyRequests, message).retry_after(VIEW_RETRY_SECONDS)
}
