//! Goes on across a hole in the history: the differences between its two ends become events at its far end.
//!
//! A hole is there when the store has compacted changes that the cache has not had. The state after them is
//! read, and compared with the cache's. A watcher that none of the differences concerns has missed nothing,
//! and goes on. A watcher that would see a difference has missed events that nobody knows any more, and is
//! told Expired: an event of a hole is never given out. A watcher that comes with a revision from within the
//! hole is told Expired as well, because nobody knows which part of the changes it has seen.
//!
//! In: the store's state at the oldest revision that is kept. Out: events, and a [`Hole`]. Never: changes
//! what is published before all differences are known.

use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{FeedError, Range, RangePage};
use forebay_object::Object;

use super::fill::page_limit;
use super::{Ingest, Made, State};
use crate::compare::{self, Differs};
use crate::counters::Counters;
use crate::event::{Event, Hidden};
use crate::interest::Reach;
use crate::limits;
use crate::published::Hole;
use crate::source::Source;
use crate::unreadable::Unreadable;

/// A key that differs, and the revision of its last change.
pub(super) struct Difference {
    pub(super) revision: Revision,
    pub(super) previous: Option<Arc<Object>>,
    pub(super) current: Option<Arc<Object>>,
    pub(super) hidden: Option<Box<Hidden>>,
}

impl Ingest {
    /// Goes on at the far end of a hole; waits for a store that cannot be reached.
    ///
    /// # Errors
    /// [`FeedError::Compacted`] when history is given up faster than the state can be read; else as for a
    /// feed.
    pub(super) async fn bridge(&self, source: &mut Source, state: &mut State) -> Result<(), FeedError> {
        let (mut overtaken, mut pause) = (0, limits::REOPEN_PAUSE.0);
        loop {
            let far_end = match overtaken {
                limits::FILLS_FROM_HISTORY_MAX => self.backend.barrier().await,
                _ => self.backend.oldest().await,
            };
            let bridged = match far_end {
                Ok(far_end) => self.bridge_to(far_end, source, state).await,
                Err(error) => Err(error.into()),
            };
            match bridged {
                Err(FeedError::Compacted { .. }) if overtaken < limits::FILLS_FROM_HISTORY_MAX => {
                    overtaken += 1;
                }
                Err(FeedError::Failed { cause }) => {
                    tracing::warn!(
                        resource = self.resource.name,
                        cause,
                        "the state cannot be read again yet"
                    );
                    self.clock.sleep(pause).await;
                    pause = (pause * 2).min(limits::REOPEN_PAUSE.1);
                }
                bridged => return bridged,
            }
        }
    }

    async fn bridge_to(
        &self,
        far_end: Revision,
        source: &mut Source,
        state: &mut State,
    ) -> Result<(), FeedError> {
        let before = state.snapshot.revision();
        if far_end <= before {
            // The store contradicts itself: it says that the next change is gone, and that it is not.
            return Err(FeedError::Compacted { oldest: far_end });
        }
        // Before the state is read, so that nothing between the two is missed.
        let opened = Source::open(self.backend.clone(), self.resource.prefix.clone(), far_end).await?;
        let mut differences = self.differences(far_end, state).await?;
        differences.sort_by_key(|difference| difference.revision);
        let count = differences.len();
        let hole = Hole { before, after: far_end };
        tracing::warn!(
            resource = self.resource.name, %before, after = %far_end, objects = count,
            "history is gone between two revisions: who watches what differs lists again, the others go on"
        );
        Counters::add(&self.counters.holes_bridged, 1);
        state.cross(hole, differences, self.clock.unix_ms());
        self.note_pressure(state);
        *source = opened;
        Ok(())
    }

    /// What differs between the cache and the store at `at`.
    async fn differences(&self, at: Revision, state: &mut State) -> Result<Vec<Difference>, FeedError> {
        let (mut after, mut limit) = (None, limits::FILL_FIRST);
        let mut differences = Vec::new();
        let unread = state.snapshot.unread().clone();
        state.snapshot.forget_unreadable();
        let prefix = self.resource.prefix.clone();
        let mut pages = self.backend.pages(Range { prefix, start_after: None, limit, at: Some(at) });
        loop {
            let page = pages.next(limit).await?;
            limit = page_limit(&page);
            let (more, last) = (page.more, page.items.last().map(|(key, _)| key.clone()));
            self.compare((at, &unread), after.as_ref(), page, state, &mut differences);
            if !more {
                return Ok(differences);
            }
            after = last;
        }
    }

    /// Holds a page against what the cache has between the same keys.
    ///
    /// - `unread`: what the cache could not read before.
    fn compare(
        &self,
        (at, unread): (Revision, &Unreadable),
        after: Option<&Key>,
        page: RangePage,
        state: &mut State,
        differences: &mut Vec<Difference>,
    ) {
        let before = state.snapshot.clone();
        let reach = Reach::Below(self.resource.prefix.clone());
        for differs in compare::differences(&before, &reach, after, page) {
            let difference = match differs {
                Differs::Gone(held) => {
                    let hidden = hidden_before(unread, held.key());
                    Difference { revision: at, previous: Some(held.clone()), current: None, hidden }
                }
                Differs::Found { held, key, found } => {
                    // An object whose revision is from before the hole: the cache had missed it, and it is
                    // told now.
                    let revision = if found.revision > before.revision() { found.revision } else { at };
                    let hidden = hidden_before(unread, &key);
                    let (previous, current, hidden) =
                        match self.read(state, &key, found.revision, &found.value) {
                            Made::Object(current) => (held.cloned(), Some(current), hidden),
                            Made::Malformed => (held.cloned(), None, hidden),
                            // What is shown stays.
                            Made::Undecrypted(what) => {
                                let before = unread.undecrypted_at(&key).cloned();
                                let is_new =
                                    before.as_ref().is_none_or(|before| before.revision != what.revision);
                                let hidden = Hidden { key: key.clone(), before, shown: held.cloned() };
                                state.snapshot.note_undecrypted(key, what);
                                (None, None, is_new.then(|| Box::new(hidden)))
                            }
                        };
                    Difference { revision, previous, current, hidden }
                }
            };
            let Difference { previous, current, hidden, .. } = &difference;
            if previous.is_some() || current.is_some() || hidden.is_some() {
                differences.push(difference);
            }
        }
    }
}

/// That what was at `key` could not be decrypted, if that is so.
fn hidden_before(unread: &Unreadable, key: &Key) -> Option<Box<Hidden>> {
    let before = Some(unread.undecrypted_at(key)?.clone());
    Some(Box::new(Hidden { key: key.clone(), before, shown: None }))
}

impl State {
    /// Takes in the differences at the far end of `hole`.
    fn cross(&mut self, hole: Hole, differences: Vec<Difference>, now_ms: u64) {
        for Difference { previous, current, .. } in &differences {
            match (previous, current) {
                (_, Some(current)) => drop(self.snapshot.put(current.clone())),
                (Some(previous), None) => drop(self.snapshot.remove(previous.key())),
                (None, None) => {}
            }
        }
        self.append_differences(differences, now_ms);
        self.window.announce(hole.after.get());
        self.snapshot.set_revision(hole.after);
        self.note_hole(hole);
    }

    /// Appends the events of a hole to the window; the state has their objects already.
    pub(super) fn append_differences(&mut self, differences: Vec<Difference>, now_ms: u64) {
        let event = |Difference { revision, previous, current, hidden }| {
            let event = Event { revision, previous, current, is_of_hole: true, hidden };
            let bytes = event.cost_bytes();
            (revision.get(), Arc::new(event), bytes)
        };
        let events = differences.into_iter().map(event).collect();
        self.append(events, now_ms);
    }

    /// Keeps the hole for as long as the window reaches back beyond it.
    pub(super) fn note_hole(&mut self, hole: Hole) {
        let oldest = Revision::from_log(self.window.log().oldest());
        let mut holes: Vec<Hole> =
            self.holes.iter().copied().filter(|hole| hole.after > oldest).chain([hole]).collect();
        if let [first, second, ..] = holes[..]
            && holes.len() > limits::HOLES_MAX
        {
            holes.splice(..2, [Hole { before: first.before, after: second.after }]);
        }
        self.holes = holes.into();
    }
}
