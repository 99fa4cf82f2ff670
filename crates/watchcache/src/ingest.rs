//! The one task that writes a cache: from the feed into the tree, the snapshot and the window.
//!
//! In: the feed, and orders ([`Commands`]). Out: what is published, and the window. Never: waits for a
//! reader.
//!
//! Owns the tree, the interner, the log's writer and the router of its lanes. An event is in the window
//! before the snapshot that shows it is published, and progress is announced with the snapshot.

mod bridge;
mod early;
mod fill;
mod loose;
mod packed;
mod part;
mod read;
mod reveal;
mod rewrite;
mod spill;
mod told;

use early::Early;
use read::Made;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{Backend, Change, FeedError, FeedStep};
use forebay_object::seal::RecentBlocks;
use forebay_object::{Interner, Object};
use forebay_revlog::{Limits, Writer};
use forebay_rt::{Clock, Instant, Tasks};
use tokio::sync::watch;

use crate::commands::{Commands, Order, Seen};
use crate::counters::Counters;
use crate::event::{Event, Hidden};
use crate::lanes::Router;
use crate::limits;
use crate::published::{Hole, Published, States, Window};
use crate::recent::Recent;
use crate::relief;
use crate::resource::{History, Resource};
use crate::room::Share;
use crate::seal::{Haste, Sealing};
use crate::snapshot::Snapshot;
use crate::source::Source;
use crate::unreadable::Undecrypted;

const LIMITS: Limits = Limits {
    items_max: limits::EVENTS_MAX,
    bytes_max: limits::WINDOW_BYTES_MAX,
    age_ms_max: limits::WINDOW_MS,
};

pub(crate) struct Ingest {
    pub(crate) resource: Resource,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) clock: Clock,
    pub(crate) tasks: Tasks,
    pub(crate) publish: watch::Sender<Published>,
    // What the task is told to do.
    pub(crate) commands: Arc<Commands>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) recent: Arc<Recent>,
    // The blocks that were inflated last.
    pub(crate) inflated: Arc<RecentBlocks>,
}

/// Why a cache has to be filled anew.
enum Lost {
    Feed(FeedError),
    /// The self-check found that the cache differs from the store.
    Diverged,
}

impl<E: Into<FeedError>> From<E> for Lost {
    fn from(error: E) -> Lost {
        Lost::Feed(error.into())
    }
}

/// One filling of the cache.
#[derive(Clone, Copy)]
struct Fill {
    number: u64,
    // The highest revision that the store had reached before it went back; 0 when it never did.
    lost_upto: u64,
    // How often in a row the history was compacted while the cache was being filled from it.
    overtaken: u32,
}

/// When a cache that was lost is filled again.
enum Again {
    Now,
    /// After a pause, because a store that keeps losing its history would be read without end.
    Later,
}

/// The cache's state while it is being followed.
struct State {
    snapshot: Snapshot,
    lost_upto: u64,
    // Oldest first, at most HOLES_MAX.
    holes: Arc<[Hole]>,
    states: States,
    // Another state whose objects this one shares where they are the same, and keeps where a value cannot be
    // decrypted.
    known: Option<Snapshot>,
    // History before the window that is still being read.
    early: Option<Early>,
    // Dropped before its lanes, so that a watcher that is woken by a lane's end finds the window closed.
    window: Writer<Arc<Event>>,
    window_cap: usize,
    lanes: Router,
    interner: Interner,
    sealing: Sealing,
    // The room that loose bytes take; none before there are any.
    share: Option<Share>,
    // In haste nothing was found to be sealed: it is looked for again when the time comes, or when more is
    // taken in.
    through: bool,
    // The state differs from what is published in how its objects are kept, or in some of what is revealed.
    renewed: bool,
    // How often objects were taken in without an event.
    revealed: u64,
    // When to look next for old events, and for objects to seal.
    sweep_at: Instant,
    seal_at: Instant,
    // How many events were evicted before their time when that was last logged, and when it may be logged
    // again.
    pressed_out: u64,
    complain_at: Instant,
}

impl Ingest {
    /// Fills the cache and follows the feed until the store is closed or the task is dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut pause = limits::RETRY_PAUSE.0;
        let mut fill = Fill { number: 0, lost_upto: 0, overtaken: 0 };
        let mut last = None;
        loop {
            let mut filled_at = None;
            let Err(lost) = self.fill_and_follow(fill, &mut last, &mut filled_at).await;
            fill.number += 1;
            if filled_at.is_some() {
                fill.overtaken = 0;
            }
            if filled_at.is_some_and(|at| self.clock.now() - at >= limits::RETRY_PAUSE.1) {
                pause = limits::RETRY_PAUSE.0;
            }
            let again = match lost {
                Lost::Diverged => Again::Now,
                Lost::Feed(FeedError::WentBack { reached, current }) => {
                    tracing::error!(
                        resource = self.resource.name,
                        %reached,
                        %current,
                        "the store has gone back: everything is forgotten, clients list again"
                    );
                    Counters::add(&self.counters.went_back, 1);
                    fill.lost_upto = fill.lost_upto.max(reached.get());
                    last = None;
                    Again::Now
                }
                Lost::Feed(FeedError::Closed) => break,
                // The feed began while history was being compacted, or fell behind too far.
                Lost::Feed(FeedError::Compacted { oldest }) => {
                    fill.overtaken += 1;
                    tracing::info!(resource = self.resource.name, %oldest, "history was compacted, reading the state again");
                    Again::Later
                }
                Lost::Feed(FeedError::Failed { cause }) => {
                    tracing::error!(resource = self.resource.name, cause, "the watch cache lost its feed");
                    Again::Later
                }
            };
            self.publish.send_replace(Published::Filling { since: self.clock.now() });
            if let Again::Later = again {
                self.clock.sleep(pause).await;
                pause = (pause * 2).min(limits::RETRY_PAUSE.1);
            }
        }
        self.publish.send_replace(Published::Closed);
    }

    /// - `last`: the state of the filling before, which was not lost by the store: what is the same is
    ///   shared, and what cannot be decrypted stays as it was. Is set to this filling's when it ends.
    /// - `filled_at`: is set to the time at which the cache was filled and began to follow.
    async fn fill_and_follow(
        self: &Arc<Self>,
        fill: Fill,
        last: &mut Option<Snapshot>,
        filled_at: &mut Option<Instant>,
    ) -> Result<std::convert::Infallible, Lost> {
        if let Some(tell) = self.backend.tell(self.resource.prefix.as_str()) {
            return self.follow_told(fill, tell, filled_at).await;
        }
        let (oldest, current) = tokio::try_join!(self.backend.oldest(), self.backend.barrier())?;
        let current = current.max(oldest);
        let is_overtaken = fill.overtaken >= limits::FILLS_FROM_HISTORY_MAX;
        if is_overtaken {
            // The store compacts faster than history can be read: the cache is filled without history.
            Counters::add(&self.counters.windows_begun_late, 1);
            tracing::warn!(resource = self.resource.name, start = %current, "the window begins now: clients from before list again");
        }
        // After the store went back, a revision of a watcher may be one that was lost, and nobody could tell.
        // So there is no history from before.
        let has_history = !is_overtaken && fill.lost_upto == 0;
        let recent = Revision::new(current.get().saturating_sub(self.resource.pace.recent));
        let start = if has_history { recent.map_or(oldest, |recent| recent.max(oldest)) } else { current };
        let (backend, prefix) = (self.backend.clone(), self.resource.prefix.clone());
        let mut source = Source::open_upto(backend, prefix, start, current).await?;
        let mut state = self.state(start, fill.number);
        state.lost_upto = fill.lost_upto;
        state.known = last.clone();
        self.fill(&mut state, start).await?;
        (state.known, *last) = (None, None);
        if has_history && start > oldest {
            state.early = Some(Early::read(self, oldest, state.snapshot.clone()));
        }
        self.counters.initializations.fetch_add(1, Ordering::Relaxed);
        *filled_at = Some(self.clock.now());
        loop {
            let lost = match self.follow(&mut source, &mut state).await {
                Err(Lost::Feed(lost)) => lost,
                Err(Lost::Diverged) => {
                    *last = Some(state.snapshot);
                    state.window.lose();
                    return Err(Lost::Diverged);
                }
            };
            let gone_on = self.go_on(&mut source, state.snapshot.revision(), lost).await;
            let gone_on = match gone_on {
                Err(FeedError::Compacted { .. }) if self.resource.history != History::Own => {
                    self.bridge(&mut source, &mut state).await
                }
                gone_on => gone_on,
            };
            if let Err(error @ FeedError::WentBack { .. }) = gone_on {
                state.window.lose();
                return Err(error.into());
            }
            if let Err(error) = gone_on {
                *last = Some(state.snapshot);
                return Err(error.into());
            }
        }
    }

    /// A state at `start` with nothing in it.
    ///
    /// - `number`: of the filling.
    fn state(&self, start: Revision, number: u64) -> State {
        let window = Writer::new(start.get(), LIMITS);
        State {
            snapshot: Snapshot::new(start, number, self.resource.indexed.clone().into()),
            lost_upto: 0,
            holes: Arc::from([]),
            states: States::default(),
            known: None,
            early: None,
            sealing: Sealing::new(self.resource.pace, self.inflated.clone(), window.next_seq()),
            window,
            window_cap: usize::MAX,
            lanes: Router::new(start),
            interner: Interner::default(),
            share: None,
            through: false,
            renewed: false,
            revealed: 0,
            sweep_at: self.clock.now() + limits::EVICT_PERIOD,
            seal_at: self.clock.now() + self.resource.pace.period,
            pressed_out: 0,
            complain_at: self.clock.now(),
        }
    }

    /// Opens the lost feed again after `reached`, and keeps what is shown. A store that cannot be reached has
    /// lost nothing, so this waits for it. Only after a hole in the history the state has to be read again.
    ///
    /// # Errors
    /// [`FeedError::Compacted`], the hole; [`FeedError::WentBack`]; [`FeedError::Closed`].
    async fn go_on(
        &self,
        source: &mut Source,
        reached: Revision,
        mut lost: FeedError,
    ) -> Result<(), FeedError> {
        let mut pause = limits::REOPEN_PAUSE.0;
        loop {
            let opened = match lost {
                FeedError::Closed | FeedError::WentBack { .. } => return Err(lost),
                // The cache was too slow for the feed's memory. The store's own history reaches further back.
                FeedError::Compacted { .. } => source.resume(reached, lost).await,
                FeedError::Failed { cause } => {
                    tracing::warn!(resource = self.resource.name, cause, "the watch cache lost its feed");
                    self.clock.sleep(pause).await;
                    pause = (pause * 2).min(limits::REOPEN_PAUSE.1);
                    source.open_again(reached).await
                }
            };
            match opened {
                Ok(()) => break,
                Err(error @ FeedError::Failed { .. }) => lost = error,
                Err(error) => return Err(error),
            }
        }
        Counters::add(&self.counters.resumptions, 1);
        tracing::debug!(resource = self.resource.name, revision = %reached, "going on from history");
        Ok(())
    }

    /// Follows the feed until it ends.
    async fn follow(&self, source: &mut Source, state: &mut State) -> Result<std::convert::Infallible, Lost> {
        let (mut changes, mut seen) = (Vec::new(), Seen::default());
        loop {
            let step = source.take(&mut changes).await?;
            check_order(state.snapshot.revision(), &step, &changes)?;
            self.drain(&step, state, &mut changes, Some(source.current())).await;
            self.tidy(state);
            self.show(state, Some(source.current()));
            if !matches!(step, FeedStep::Idle) {
                continue;
            }
            // Until the cache has reached the revision that was current when it began, it counts as a reader
            // that waits.
            if state.snapshot.revision() < source.current() {
                source.hasten(self.wanted(source));
            }
            let behind = state.sealing.is_behind(&state.window);
            let alarm = if behind { state.sweep_at.min(state.seal_at) } else { state.sweep_at };
            let may_hasten = state.may_hasten();
            tokio::select! {
                biased;
                () = source.ready() => {}
                order = self.commands.next(&mut seen) => match order {
                    Order::Hasten => source.hasten(self.wanted(source)),
                    Order::Cap => {}
                    Order::CheckStore => self.check_store(state.snapshot.revision()).await?,
                    Order::TakeFound => self.reveal(state).await,
                    Order::FillAnew => return Err(Lost::Diverged),
                },
                early = early::read_through(&mut state.early) => {
                    state.begin_with(early, self.clock.unix_ms());
                    state.early = None;
                    self.show(state, Some(source.current()));
                }
                () = state.sealing.finished() => {}
                () = self.resource.room.short(), if may_hasten => {}
                () = self.clock.sleep_until(alarm) => {}
            }
        }
    }

    /// Asks the store whether it is where the cache is.
    ///
    /// # Errors
    /// [`FeedError::WentBack`] when the store is behind the cache. A store that does not answer is asked
    /// again with the next read.
    async fn check_store(&self, reached: Revision) -> Result<(), FeedError> {
        match self.backend.barrier().await {
            Ok(current) if current < reached => Err(FeedError::WentBack { reached, current }),
            _ => Ok(()),
        }
    }

    /// The highest revision that a reader, or the cache itself, waits for.
    fn wanted(&self, source: &Source) -> Revision {
        self.commands.wanted().max(source.current())
    }

    /// Does the periodic work.
    fn tidy(&self, state: &mut State) {
        let now = self.clock.now();
        let cap = self.commands.window_cap();
        if cap != state.window_cap {
            state.window_cap = cap;
            state.window.set_limits(relief::capped(LIMITS, cap), self.clock.unix_ms());
        }
        if now >= state.sweep_at {
            self.sweep(state);
        }
        let haste = self.haste(state);
        let in_haste = haste == Haste::Now && !state.through;
        if in_haste || now >= state.seal_at || state.sealing.is_finished() {
            self.seal(state, haste);
        }
    }

    /// Drops events that are too old, and lanes that nobody reads.
    fn sweep(&self, state: &mut State) {
        state.window.evict(self.clock.unix_ms());
        state.lanes.sweep(|lane| state.window.trim(lane));
        self.inflated.clear();
        if let Some(used) = self.clock.now().checked_sub(limits::RECENT_UNUSED) {
            self.recent.forget_unused(used);
        }
        state.interner.sweep();
        state.sweep_at = self.clock.now() + limits::EVICT_PERIOD;
    }

    /// Logs that the window is shorter than it should be, at most every [`limits::PRESSURE_PERIOD`].
    fn note_pressure(&self, state: &mut State) {
        let usage = state.window.usage();
        if usage.pressed_out == state.pressed_out || self.clock.now() < state.complain_at {
            return;
        }
        let log = state.window.log();
        let begins_at_ms = log.begins_at_ms().unwrap_or(0);
        tracing::warn!(
            resource = self.resource.name,
            events = usage.pressed_out - state.pressed_out,
            held_events = usage.items,
            held_bytes = usage.bytes,
            seconds = self.clock.unix_ms().saturating_sub(begins_at_ms) / 1000,
            oldest = log.oldest(),
            "the window is full: clients that come back later than its seconds list again"
        );
        state.pressed_out = usage.pressed_out;
        state.complain_at = self.clock.now() + limits::PRESSURE_PERIOD;
    }

    /// Takes one step of the feed into the state.
    ///
    /// - `shown_from`: the revision from which on the state is published; without it nothing is.
    async fn drain(
        &self,
        step: &FeedStep,
        state: &mut State,
        changes: &mut Vec<Change>,
        shown_from: Option<Revision>,
    ) {
        match step {
            FeedStep::Changes => {
                while let Some((part, bytes)) = part::next_part(changes) {
                    self.make_room(state, bytes, shown_from).await;
                    self.apply(state, part);
                    self.settle(state);
                    self.go_on_in_haste(state);
                }
            }
            FeedStep::Progress(revision) => {
                state.window.announce(revision.get());
                state.snapshot.set_revision(*revision);
            }
            FeedStep::Idle => {}
        }
    }

    fn apply(&self, state: &mut State, changes: Vec<Change>) {
        Counters::add(&self.counters.events_received, changes.len());
        let mut events = Vec::with_capacity(changes.len());
        let mut last = state.snapshot.revision();
        for Change { key, revision, value } in changes {
            last = revision;
            let before = state.snapshot.unread().undecrypted_at(&key).cloned();
            let made = value.map(|value| self.read(state, &key, revision, &value));
            events.extend(self.take_change(state, (key, revision), before, made));
        }
        Counters::add(&self.counters.events_dispatched, events.len());
        state.append(events, self.clock.unix_ms());
        self.note_pressure(state);
        state.window.announce(last.get());
        state.snapshot.set_revision(last);
    }

    /// Takes one change into the state. The event that tells it; none when nobody was shown what is gone.
    ///
    /// - `before`: what was there could not be decrypted.
    /// - `made`: none when the key was deleted.
    fn take_change(
        &self,
        state: &mut State,
        (key, revision): (Key, Revision),
        before: Option<Undecrypted>,
        made: Option<Made>,
    ) -> Option<(u64, Arc<Event>, usize)> {
        let hides = |shown| Some(Box::new(Hidden { key: key.clone(), before: before.clone(), shown }));
        let hidden = before.as_ref().and_then(|_| hides(None));
        let (previous, current, hidden) = match made {
            Some(Made::Object(object)) => (state.snapshot.put(object.clone()), Some(object), hidden),
            // What was shown is still there, in a form that nobody knows here: it was not deleted.
            Some(Made::Undecrypted(what)) => {
                let hidden = hides(state.snapshot.get(&key).cloned());
                state.snapshot.note_undecrypted(key, what);
                (None, None, hidden)
            }
            // The object that was there before is shown as deleted, and the unreadable value is reported.
            Some(Made::Malformed) => (state.snapshot.remove(&key), None, hidden),
            None => {
                state.snapshot.note_gone(&key);
                (state.snapshot.remove(&key), None, hidden)
            }
        };
        let is_told = previous.is_some() || current.is_some() || hidden.is_some();
        is_told.then(|| event(revision, previous, current, hidden))
    }

    /// Publishes the state, unless the cache has not reached `shown_from` yet, which was current when its
    /// feed was opened.
    fn show(&self, state: &mut State, shown_from: Option<Revision>) {
        if shown_from.is_some_and(|from| state.snapshot.revision() >= from) {
            self.publish(state);
        }
    }

    fn publish(&self, state: &mut State) {
        let shown = match &*self.publish.borrow() {
            Published::Ready { snapshot, .. } => Some(snapshot.revision()),
            _ => None,
        };
        if shown != Some(state.snapshot.revision()) || state.renewed {
            if std::mem::take(&mut state.renewed) {
                self.recent.forget_from(Revision::from_log(state.window.log().oldest()));
            }
            let snapshot = Arc::new(state.snapshot.clone());
            let (log, lanes) = (state.window.log(), state.lanes.lanes());
            let early = state.early.as_ref().map(|early| early.after);
            let (lost_upto, holes, states) = (state.lost_upto, state.holes.clone(), state.states);
            let revealed = state.revealed;
            let window = Window { log, lanes, lost_upto, holes, early, states, revealed };
            self.publish.send_replace(Published::Ready { snapshot, window });
            // Behind what is published, so that whoever looks for it finds it there.
            if state.snapshot.unread().has_undecrypted() {
                self.commands.look();
            }
        }
    }
}

impl State {
    /// Appends events to the window; the state has their objects already.
    fn append(&mut self, events: Vec<(u64, Arc<Event>, usize)>, now_ms: u64) {
        let routes = self.lanes.route(&events);
        self.sealing.note(self.window.next_seq(), events.iter().map(|(_, event, _)| event));
        self.window.append_routed(events, routes, now_ms);
        self.through = false;
    }
}

fn event(
    revision: Revision,
    previous: Option<Arc<Object>>,
    current: Option<Arc<Object>>,
    hidden: Option<Box<Hidden>>,
) -> (u64, Arc<Event>, usize) {
    let event = Event { revision, previous, current, is_of_hole: false, hidden };
    let bytes = event.cost_bytes();
    (revision.get(), Arc::new(event), bytes)
}

/// Checks that revisions ascend. Where they do not, the store has gone back.
fn check_order(reached: Revision, step: &FeedStep, changes: &[Change]) -> Result<(), FeedError> {
    let next = match step {
        FeedStep::Changes => changes.first().map(|change| change.revision),
        FeedStep::Progress(revision) => Some(revision.next()),
        FeedStep::Idle => None,
    };
    match next {
        Some(current) if current <= reached => Err(FeedError::WentBack { reached, current }),
        _ => Ok(()),
    }
}
