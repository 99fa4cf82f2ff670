//! The handle to one resource's watch cache: reads, waits for freshness, starts watchers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use forebay_apimachinery::Revision;
use forebay_backend::Backend;
use forebay_object::MessageBytes;
use forebay_object::seal::RecentBlocks;
use forebay_revlog::{Cursor, Usage};
use forebay_rt::{Clock, Instant, Tasks};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::check::Checker;
use crate::commands::Commands;
use crate::counters::Counters;
use crate::error::ReadError;
use crate::event::Event;
use crate::ingest;
use crate::interest::{Interest, Reach};
use crate::limits;
use crate::look::Looker;
use crate::messages;
use crate::published::{Published, Window};
use crate::recent::Recent;
use crate::relief::{self, Relief};
use crate::resource::{History, Resource};
use crate::snapshot::Snapshot;
use crate::watcher::Watcher;

/// One resource's watch cache as its readers see it. Cheap to clone. The ingest task owns everything that
/// changes.
#[derive(Clone)]
pub struct Cacher(Arc<Inner>);

struct Inner {
    backend: Arc<dyn Backend>,
    clock: Clock,
    resource: Resource,
    published: watch::Receiver<Published>,
    // What the ingest task is told to do.
    commands: Arc<Commands>,
    counters: Arc<Counters>,
    message_bytes: Arc<MessageBytes>,
    inflated: Arc<RecentBlocks>,
    stop: CancellationToken,
    recent: Arc<Recent>,
    // Only the holder makes a past state.
    undoing: Semaphore,
    // Until when consistent reads fail at once.
    stale_until: Mutex<Option<Instant>>,
    // Consistent reads that failed.
    stale_reads: AtomicU64,
}

/// Why a read is not proved to be consistent.
enum Unproved {
    /// The deadline passed first, or the store has gone back behind the cache.
    Late,
    Failed(ReadError),
}

impl From<ReadError> for Unproved {
    fn from(error: ReadError) -> Unproved {
        Unproved::Failed(error)
    }
}

impl Cacher {
    /// Starts the cache's ingest task; it is ready once it has reached what is current.
    pub fn start(resource: Resource, backend: Arc<dyn Backend>, clock: Clock, tasks: &Tasks) -> Cacher {
        let (publish, published) = watch::channel(Published::Filling { since: clock.now() });
        let commands = Arc::<Commands>::default();
        let counters = Arc::new(Counters::default());
        let recent = Arc::<Recent>::default();
        let inflated = Arc::<RecentBlocks>::default();
        let stop = CancellationToken::new();
        let ingest = Arc::new(ingest::Ingest {
            resource: resource.clone(),
            backend: backend.clone(),
            clock: clock.clone(),
            tasks: tasks.clone(),
            publish,
            commands: commands.clone(),
            counters: counters.clone(),
            recent: recent.clone(),
            inflated: inflated.clone(),
        });
        let checker = Checker {
            resource: resource.clone(),
            backend: backend.clone(),
            clock: clock.clone(),
            published: published.clone(),
            counters: counters.clone(),
            commands: commands.clone(),
        };
        let looker = Looker {
            backend: backend.clone(),
            clock: clock.clone(),
            published: published.clone(),
            commands: commands.clone(),
        };
        let history = resource.history;
        let check = async move {
            match history {
                History::Own => std::future::pending().await,
                History::Shared { check_every } => checker.run(check_every).await,
            }
        };
        let message_bytes = Arc::new(MessageBytes::within(resource.room.messages().clone()));
        let all = Reach::Below(resource.prefix.clone());
        let (counted, told) = (message_bytes.clone(), commands.clone());
        let let_go = messages::let_go(published.clone(), all, counted, told, clock.clone());
        let stopped = stop.clone();
        tasks.spawn("watchcache ingest", async move {
            tokio::select! { biased; () = stopped.cancelled() => {}, () = ingest.run() => {}, () = let_go => {}, () = check => {}, () = looker.run() => {} }
        });
        Cacher(Arc::new(Inner {
            backend,
            clock,
            resource,
            published,
            commands,
            counters,
            message_bytes,
            inflated,
            stop,
            recent,
            undoing: Semaphore::new(1),
            stale_until: Mutex::default(),
            stale_reads: AtomicU64::new(0),
        }))
    }

    /// Ends the cache. Its watchers end once they have read the events that are there.
    pub fn stop(&self) {
        self.0.stop.cancel();
    }

    /// Whether the cache has ended: nothing new is coming, though its last state can still be read.
    pub fn is_stopped(&self) -> bool {
        self.0.stop.is_cancelled() || self.0.published.has_changed().is_err()
    }

    pub fn resource(&self) -> &Resource {
        &self.0.resource
    }

    pub fn counters(&self) -> &Counters {
        &self.0.counters
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.0.backend
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// The count of the bytes of its objects' protobuf messages.
    pub fn message_bytes(&self) -> &Arc<MessageBytes> {
        &self.0.message_bytes
    }

    /// Drops memory that is held only to be faster.
    pub fn relieve(&self, relief: Relief) {
        if relief.made {
            self.0.inflated.clear();
            if self.0.message_bytes.get() > 0 {
                self.0.commands.press();
            }
        }
        if relief.snapshots {
            self.0.recent.forget_from(Revision::FIRST);
        }
    }

    /// Sets how many bytes the window may hold from now on; `None` is its full limit. Returns whether it
    /// holds more now.
    pub fn cap_window(&self, cap: Option<usize>) -> bool {
        let cap = cap.unwrap_or(usize::MAX);
        self.0.commands.cap_window(cap);
        relief::held_bytes(self.window()) > cap
    }

    /// What the window holds now.
    pub fn window(&self) -> Usage {
        match &*self.0.published.borrow() {
            Published::Ready { window, .. } => window.log.usage(),
            _ => Usage::default(),
        }
    }

    /// How many past states are kept for the next pages of LISTs. They share what has not changed since.
    pub fn recent_snapshots(&self) -> usize {
        self.0.recent.len()
    }

    /// How many lanes the window has: the parts of it that one interest reads, or did a moment ago.
    pub fn lanes(&self) -> usize {
        match &*self.0.published.borrow() {
            Published::Ready { window, .. } => window.lanes.count(),
            _ => 0,
        }
    }

    /// The current snapshot, however old.
    ///
    /// # Errors
    /// [`ReadError::NotReady`], [`ReadError::Closed`].
    pub fn snapshot(&self) -> Result<Arc<Snapshot>, ReadError> {
        self.ready().map(|(snapshot, _)| snapshot)
    }

    /// Waits until the cache was filled for the first time, or is closed.
    pub async fn wait_ready(&self) {
        let mut published = self.0.published.clone();
        // An error means that the ingest task is gone, which ends the wait as well.
        let _gone = published.wait_for(|now| !matches!(now, Published::Filling { .. })).await.map(drop);
    }

    /// Waits until the cache was filled anew, so that its filling is not `fill` any more, or has ended.
    /// Cancel-safe.
    pub(crate) async fn filled_again(&self, fill: u64) {
        let mut published = self.0.published.clone();
        let is_other = |now: &Published| match now {
            Published::Filling { .. } => false,
            Published::Ready { snapshot, .. } => snapshot.fill() != fill,
            Published::Closed => true,
        };
        // An error means that the ingest task is gone, which ends the wait as well.
        let _gone = published.wait_for(is_other).await.map(drop);
    }

    /// The published snapshot once its revision is at least `min`.
    ///
    /// - `min`: a revision the caller has seen, from a reply or a barrier.
    /// - `deadline`: the wait is the only await point, and is cancel-safe.
    ///
    /// Cost: O(1), no copy; the snapshot pins its tree until dropped.
    ///
    /// # Errors
    /// [`ReadError::TooLarge`] when `deadline` passes first; the caller may retry.
    ///
    /// Source: KEP-2340; apiserver v1.36.3 `cacher/watch_cache.go`.
    pub async fn at_least(&self, min: Revision, deadline: Instant) -> Result<Arc<Snapshot>, ReadError> {
        let (current, window) = self.ready()?;
        if current.revision() < min && window.is_lost(min) {
            return Err(window.expired(min));
        }
        self.reached(min, deadline).await
    }

    /// The published snapshot once its revision is at least `min`, which the store has.
    async fn reached(&self, min: Revision, deadline: Instant) -> Result<Arc<Snapshot>, ReadError> {
        let current = self.snapshot()?;
        if current.revision() >= min {
            return Ok(current);
        }
        let mut waiting = self.0.commands.wait(min);
        let mut published = self.0.published.clone();
        let reached = published.wait_for(|now| match now {
            Published::Ready { snapshot, .. } => snapshot.revision() >= min,
            Published::Filling { .. } => false,
            Published::Closed => true,
        });
        tokio::select! {
            biased;
            end = reached => {
                waiting.met();
                drop(end.map_err(|_gone| ReadError::Closed)?);
                self.snapshot()
            }
            () = self.0.clock.sleep_until(deadline) => {
                Err(ReadError::TooLarge { asked: min, current: self.snapshot()?.revision() })
            }
        }
    }

    /// The published snapshot once it holds every commit acknowledged before this call: a consistent read.
    ///
    /// # Errors
    /// [`ReadError::Stale`] when `deadline` passes first, and at once for [`limits::STALE_HOLD`] after that;
    /// [`ReadError::Store`] when the store cannot say what is current.
    pub async fn fresh(&self, deadline: Instant) -> Result<Arc<Snapshot>, ReadError> {
        if self.is_held() {
            return Err(self.stale());
        }
        self.prove(deadline).await.map_err(|why| match why {
            Unproved::Late => self.hold(),
            Unproved::Failed(error) => error,
        })
    }

    /// Whether a consistent read would be given a state of that revision now: known where the store says at
    /// once what is current, as one in this process does. Otherwise it is not.
    pub fn is_of_now(&self, revision: Revision) -> bool {
        let mut barrier = self.0.backend.barrier();
        let current = barrier.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        matches!(current, Poll::Ready(Ok(current)) if current <= revision)
    }

    /// Proves freshness without noting a failure for later reads.
    async fn prove(&self, deadline: Instant) -> Result<Arc<Snapshot>, Unproved> {
        let shown = self.snapshot()?.revision();
        let current = tokio::select! {
            biased;
            current = self.0.backend.barrier() => match current {
                Ok(current) => current,
                Err(forebay_backend::ReadError::Unanswered { .. }) => return Err(Unproved::Late),
                Err(error) => return Err(Unproved::Failed(error.into())),
            },
            () = self.0.clock.sleep_until(deadline) => return Err(Unproved::Late),
        };
        if current < shown {
            // What was shown came from the store, which has gone back since: the ingest task looks for
            // itself.
            self.0.commands.suspect();
            return Err(Unproved::Late);
        }
        // It is of now, though a store that has gone back had it before.
        match self.reached(current, deadline).await {
            Err(ReadError::TooLarge { .. }) => Err(Unproved::Late),
            read => read.map_err(Unproved::Failed),
        }
    }

    /// Whether consistent reads fail at once.
    fn is_held(&self) -> bool {
        let held = *self.0.stale_until.lock().unwrap_or_else(PoisonError::into_inner);
        held.is_some_and(|until| self.0.clock.now() < until)
    }

    /// Has the next consistent reads fail at once.
    fn hold(&self) -> ReadError {
        let until = self.0.clock.now() + limits::STALE_HOLD;
        *self.0.stale_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
        self.stale()
    }

    fn stale(&self) -> ReadError {
        // Each gets another time to come back, so that readers that fail together do not come back together.
        let turn = self.0.stale_reads.fetch_add(1, Ordering::Relaxed);
        let spread = turn % limits::STALE_RETRY_SECONDS_MAX;
        ReadError::Stale { retry_after_seconds: 1 + spread as u32 }
    }

    /// The state exactly at `revision`: a past one is made from the current one by undoing the window's
    /// events.
    ///
    /// Cost: O(events since then), counted from the next later state that is still kept; O(1) when it is kept
    /// itself. Other tasks have their turn meanwhile.
    ///
    /// # Errors
    /// [`ReadError::Expired`] when the window no longer reaches back that far; [`ReadError::Busy`] when
    /// others made past states up to `deadline`.
    pub async fn exact(&self, revision: Revision, deadline: Instant) -> Result<Arc<Snapshot>, ReadError> {
        self.at_least(revision, deadline).await?;
        let (current, window) = self.ready()?;
        if let Some(known) = self.known(revision, &current, &window)? {
            return Ok(known);
        }
        // One reader at a time: the second finds the state that the first has made, or begins there.
        let _turn = tokio::select! {
            biased;
            turn = self.0.undoing.acquire() => turn.map_err(|_closed| ReadError::Closed)?,
            () = self.0.clock.sleep_until(deadline) => return Err(ReadError::Busy { retry_after_seconds: 1 }),
        };
        let (current, window) = self.ready()?;
        if let Some(known) = self.known(revision, &current, &window)? {
            return Ok(known);
        }
        let later = self.0.recent.nearest(revision, &current).unwrap_or(current);
        let events = window.log.undo(revision.get(), later.revision().get());
        let events = events.map_err(|_| window.expired(revision))?;
        let mut past = Snapshot::clone(&later);
        for (number, batch) in events.chunks(limits::UNDO_BATCH).enumerate() {
            if number > 0 {
                tokio::task::yield_now().await;
            }
            past.undo(batch);
        }
        past.went_back_to(revision);
        let past = Arc::new(past);
        self.remember(past.clone());
        Ok(past)
    }

    /// The state exactly at `revision`, if nothing has to be undone for it.
    ///
    /// # Errors
    /// [`ReadError::Expired`], and [`ReadError::TooLarge`] where the cache was filled anew meanwhile.
    fn known(
        &self,
        revision: Revision,
        current: &Arc<Snapshot>,
        window: &Window,
    ) -> Result<Option<Arc<Snapshot>>, ReadError> {
        window.check_holes(revision)?;
        if current.revision() < revision {
            return Err(ReadError::TooLarge { asked: revision, current: current.revision() });
        }
        if current.revision() == revision {
            self.remember(current.clone());
            return Ok(Some(current.clone()));
        }
        let known = self.0.recent.find(revision, current, self.0.clock.now());
        if known.is_none() && revision.get() < window.log.oldest() {
            return Err(window.expired(revision));
        }
        Ok(known)
    }

    /// Keeps `snapshot` for the next pages of the LIST that began with it.
    pub fn remember(&self, snapshot: Arc<Snapshot>) {
        self.0.recent.remember(snapshot, self.0.clock.now());
    }

    /// Waits while history from `after` on is still being read; see [`Cacher::watch`].
    ///
    /// # Errors
    /// [`ReadError::NotReady`] after [`limits::EARLY_WAIT`].
    pub async fn reach_back(&self, after: Revision) -> Result<(), ReadError> {
        let mut published = self.0.published.clone();
        let began = self.0.clock.now();
        let is_known = |now: &Published| match now {
            Published::Ready { window, .. } => !window.is_to_reach(after),
            Published::Filling { .. } | Published::Closed => true,
        };
        tokio::select! {
            biased;
            // An error means that the cache has ended, which whoever watches finds out.
            _ = published.wait_for(is_known) => Ok(()),
            () = self.0.clock.sleep(limits::EARLY_WAIT) => {
                Err(ReadError::NotReady { since: self.0.clock.now().duration_since(began) })
            }
        }
    }

    /// A watcher of every event in `interest` after `after`, without an initial state.
    ///
    /// # Errors
    /// [`ReadError::Expired`] when the window begins later; [`ReadError::Undecrypted`].
    pub fn watch(&self, interest: Interest, after: Revision) -> Result<Watcher, ReadError> {
        let (current, window) = self.ready()?;
        if after > current.revision() && window.is_lost(after) {
            return Err(window.expired(after));
        }
        window.check_holes(after)?;
        current.check_decrypted(&interest.reach)?;
        let cursor = self.cursor(&window, &interest, after)?;
        Ok(Watcher::new(self.clone(), interest, cursor, None))
    }

    /// A watcher that begins with the state in `snapshot`, or a later one, and goes on from there.
    ///
    /// # Errors
    /// [`ReadError::NotReady`], [`ReadError::Closed`]; [`ReadError::Undecrypted`].
    pub fn watch_list(&self, interest: Interest, snapshot: Arc<Snapshot>) -> Result<Watcher, ReadError> {
        let (current, window) = self.ready()?;
        let snapshot = if snapshot.shares_history(&current) { snapshot } else { current.clone() };
        // A window that has moved past the caller's snapshot still reaches back to the current one.
        let (cursor, snapshot) = match self.cursor(&window, &interest, snapshot.revision()) {
            Ok(cursor) => (cursor, snapshot),
            Err(_) => (self.cursor(&window, &interest, current.revision())?, current.clone()),
        };
        // Of the current state as well: what it shows since without an event, the earlier one lacks.
        let states = [&snapshot, &current];
        states.into_iter().try_for_each(|state| state.check_decrypted(&interest.reach))?;
        Ok(Watcher::new(self.clone(), interest, cursor, Some(snapshot)))
    }

    /// A place in the window, or in the narrowest lane of it that has what `interest` asks for.
    pub(crate) fn cursor(
        &self,
        window: &Window,
        interest: &Interest,
        after: Revision,
    ) -> Result<Cursor<Arc<Event>>, ReadError> {
        let Resource { layout, indexed, .. } = &self.0.resource;
        let cursor = match window.lanes.join(interest, layout.prefix_len, indexed) {
            Some(lane) => window.log.lane_cursor(lane, after.get()),
            None => window.log.cursor(after.get()),
        };
        cursor.map_err(|_| window.expired(after))
    }

    /// Waits until the window has every event that the store had when this was called, at most until
    /// `deadline`. To miss a near deadline has no consequences for other readers, and with none left the
    /// store is not asked.
    pub(crate) async fn settle(&self, deadline: Instant) {
        if !self.is_held() && self.0.clock.now() < deadline {
            let _unproved = self.prove(deadline).await;
        }
    }

    pub(crate) fn ready(&self) -> Result<(Arc<Snapshot>, Window), ReadError> {
        match &*self.0.published.borrow() {
            Published::Ready { snapshot, window } => Ok((snapshot.clone(), window.clone())),
            Published::Filling { since } => {
                Err(ReadError::NotReady { since: self.0.clock.now().duration_since(*since) })
            }
            Published::Closed => Err(ReadError::Closed),
        }
    }
}

/// Nobody reads the cache any more: it ends.
impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
