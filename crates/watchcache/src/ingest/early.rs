//! Early history: the events from before the revision that the cache was filled at, read once the server
//! serves.
//!
//! A cache that took in minutes of history first would be ready much later. So it is filled at a recent
//! revision, and older history is read beside it, into a second state that nobody sees: the state at the
//! beginning of the store's history, and every change from there on. Objects that the cache has already are
//! shared, so only replaced ones are decoded and sealed. Then the events are put in front of the window, all
//! at once. A watcher that comes with one of these revisions waits until then.
//!
//! In: the store's history. Out: events, at rest. Never: holds up what is shown; shows a part of the
//! history as if it was all of it.

use std::collections::HashMap;
use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{FeedError, FeedStep};
use forebay_object::Object;
use tokio::sync::oneshot;

use super::{Ingest, State, check_order};
use crate::counters::Counters;
use crate::event::Event;
use crate::limits;
use crate::published::Published;
use crate::seal::{self, Haste};
use crate::snapshot::Snapshot;
use crate::source::Source;

/// The filling that is early history's own: nobody is shown it.
const EARLY: u64 = u64::MAX;

/// The reading of early history. Dropping it ends it.
pub(super) struct Early {
    /// The revision after which history is expected to begin.
    pub(super) after: Revision,
    // Closed by whoever drops it, which ends the reading.
    reading: oneshot::Receiver<Option<Box<State>>>,
}

impl Early {
    /// Begins to read what came after `after`, up to the revision of `known`.
    pub(super) fn read(ingest: &Arc<Ingest>, after: Revision, known: Snapshot) -> Early {
        let (mut send, reading) = oneshot::channel();
        let reader = ingest.clone();
        ingest.tasks.spawn("watchcache early history", async move {
            let early = tokio::select! {
                biased;
                () = send.closed() => return,
                early = reader.early(after, known) => early,
            };
            // It fails when nobody waits for the history any more.
            let _gone = send.send(early.map(Box::new));
        });
        Early { after, reading }
    }
}

/// Waits until all early history was read; for ever when none is being read. `None` when it could not be
/// read. Cancel-safe.
pub(super) async fn read_through(early: &mut Option<Early>) -> Option<Box<State>> {
    match early {
        Some(early) => (&mut early.reading).await.ok().flatten(),
        None => std::future::pending().await,
    }
}

impl Ingest {
    /// The history before `known`. `None` if it was compacted meanwhile, or the cache has ended.
    async fn early(&self, mut after: Revision, known: Snapshot) -> Option<State> {
        let mut shown = self.publish.subscribe();
        shown.wait_for(|now| !matches!(now, Published::Filling { .. })).await.ok()?;
        let _turn = self.resource.early.turn().await?;
        let (mut overtaken, mut pause) = (0, limits::REOPEN_PAUSE.0);
        loop {
            let cause = match self.early_after(after, &known).await {
                Ok(state) => return Some(state),
                Err(FeedError::Compacted { .. }) => {
                    overtaken += 1;
                    after = self.backend.oldest().await.ok()?;
                    if overtaken < limits::FILLS_FROM_HISTORY_MAX && after < known.revision() {
                        continue;
                    }
                    Counters::add(&self.counters.windows_begun_late, 1);
                    tracing::warn!(resource = self.resource.name, start = %known.revision(), "the window begins now: clients from before list again");
                    return None;
                }
                Err(FeedError::Failed { cause }) => cause,
                Err(FeedError::Closed | FeedError::WentBack { .. }) => return None,
            };
            tracing::warn!(resource = self.resource.name, cause, "early history cannot be read yet");
            self.clock.sleep(pause).await;
            pause = (pause * 2).min(limits::RETRY_PAUSE.1);
        }
    }

    async fn early_after(&self, after: Revision, known: &Snapshot) -> Result<State, FeedError> {
        let upto = known.revision();
        let mut source = Source::open(self.backend.clone(), self.resource.prefix.clone(), after).await?;
        let mut state = self.state(after, EARLY);
        state.known = Some(known.clone());
        self.fill(&mut state, after).await?;
        let mut changes = Vec::new();
        while state.snapshot.revision() < upto {
            let step = source.take(&mut changes).await?;
            check_order(state.snapshot.revision(), &step, &changes)?;
            let is_last = match step {
                FeedStep::Changes => changes.last().is_some_and(|last| last.revision >= upto),
                FeedStep::Progress(revision) => revision >= upto,
                FeedStep::Idle => false,
            };
            // What comes after is the cache's own.
            changes.retain(|change| change.revision <= upto);
            self.drain(&step, &mut state, &mut changes, None).await;
            let haste = self.haste(&mut state);
            self.seal(&mut state, haste);
            if is_last {
                break;
            }
            if let FeedStep::Idle = step {
                source.hasten(upto);
                let may_hasten = state.may_hasten();
                tokio::select! {
                    () = source.ready() => {}
                    () = state.sealing.finished() => {}
                    () = self.resource.room.short(), if may_hasten => {}
                }
            }
        }
        self.rest(&mut state).await;
        Ok(state)
    }

    /// Seals all objects that are in plain form.
    async fn rest(&self, state: &mut State) {
        self.seal(state, Haste::Now);
        while !state.through {
            state.sealing.finished().await;
            self.seal(state, Haste::Now);
        }
    }
}

impl State {
    /// Puts early history in front of the window; does nothing if the window has evicted events since.
    pub(super) fn begin_with(&mut self, early: Option<Box<State>>, now_ms: u64) {
        // Readers that wait for early history are woken, whatever became of it.
        self.renewed = true;
        let Some(mut early) = early else { return };
        // The window began at the revision that `early` was read up to.
        let upto = self.window.log().oldest();
        self.hand_over(&mut early, upto);
        let (log, floor) = (early.window.log(), early.window.log().oldest());
        let events = log.undo(floor, upto).unwrap_or_default().into_iter().rev();
        let batch = events.map(|event| (event.revision.get(), event.clone(), event.cost_bytes()));
        let is_longer = self.window.prepend(floor, batch.collect(), now_ms);
        tracing::debug!(from = floor, upto, is_longer, "early history was read");
    }

    /// Whether `object` is shared with the other state, which has it at rest, or puts it there: the state of
    /// a filling before does nothing any more.
    pub(super) fn is_known(&self, object: &Arc<Object>) -> bool {
        let known = self.known.as_ref().and_then(|known| known.get(object.key()));
        let is_it = known.is_some_and(|known| Arc::ptr_eq(known, object));
        is_it && (self.snapshot.fill() == EARLY || object.is_at_rest())
    }

    /// Replaces objects of `early` that are also here by the form that they have here.
    fn hand_over(&self, early: &mut State, upto: u64) {
        // What was there at `upto` and is not any more, by key.
        let mut replaced: HashMap<Key, Arc<Object>> = HashMap::new();
        let progress = self.window.progress();
        for event in self.window.log().undo(upto, progress).unwrap_or_default() {
            if let Some(previous) = event.previous.as_ref().filter(|object| object.revision().get() <= upto) {
                replaced.insert(previous.key().clone(), previous.clone());
            }
        }
        let mut moved = Vec::new();
        let log = early.window.log();
        for event in log.undo(log.oldest(), upto).unwrap_or_default() {
            let Event { current: Some(current), .. } = &*event else { continue };
            let is_it = |object: &&Arc<Object>| object.revision() == current.revision();
            let here = self.snapshot.get(current.key()).filter(is_it);
            let here = here.or_else(|| replaced.get(current.key()).filter(is_it));
            if let Some(here) = here.filter(|here| !Arc::ptr_eq(here, current)) {
                moved.push((current.clone(), here.clone()));
            }
        }
        for (old, new) in moved {
            seal::renew(&mut early.window, &old, &new, None);
        }
    }
}
