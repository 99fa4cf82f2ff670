//! A reader's place in a log.

use std::sync::Arc;

use tokio::sync::watch;

use crate::log::{Shared, State};

/// What a cursor meets next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// The next item and its revision.
    Item(u64, T),
    /// Every item at or below this revision was delivered.
    Progress(u64),
    /// What was to come next has been evicted; history begins after `oldest` now. The cursor yields this for ever.
    Expired { oldest: u64 },
    /// The writer is gone and everything was delivered. The cursor yields this for ever.
    Closed,
}

/// Where a pull may stop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Split {
    Anywhere,
    BetweenRevisions,
}

/// The history asked for begins below what is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The lowest revision that a cursor may start after.
    pub oldest: u64,
}

/// A reader's place: a few numbers and a doorbell. Dropping it is leaving.
#[derive(Debug)]
pub struct Cursor<T> {
    shared: Arc<Shared<T>>,
    bell: watch::Receiver<u64>,
    // Sequence number of the next item to read.
    seq: u64,
    // Items at or below this revision are passed in silence: they come before a start in the future.
    start: u64,
    // Everything at or below this revision was delivered, or lies before the start.
    seen: u64,
}

impl<T: Clone> Cursor<T> {
    pub(crate) fn new(shared: Arc<Shared<T>>, bell: watch::Receiver<u64>, seq: u64, start: u64) -> Cursor<T> {
        Cursor { shared, bell, seq, start, seen: start }
    }

    /// The next step if there is one now; never waits.
    pub fn try_next(&mut self) -> Option<Step<T>> {
        let mut items = Vec::new();
        match self.pull(1, Split::Anywhere, &mut items) {
            Some(step) => Some(step),
            None => items.pop().map(|(revision, item)| Step::Item(revision, item)),
        }
    }

    /// Moves about `max` items into `items`, to the end of the last one's revision. When there was none, says what
    /// else there is: progress, the end, or nothing new (`None`).
    pub fn take(&mut self, max: usize, items: &mut Vec<(u64, T)>) -> Option<Step<T>> {
        self.pull(max, Split::BetweenRevisions, items)
    }

    fn pull(&mut self, max: usize, split: Split, items: &mut Vec<(u64, T)>) -> Option<Step<T>> {
        // Progress is read before the entries: what it covers was appended before it was announced.
        let progress = self.shared.progress();
        let state = self.shared.read();
        if self.missed(&state) {
            return Some(Step::Expired { oldest: state.floor });
        }
        // What comes before a start in the future is passed over in one go.
        let passed = state.entries.partition_point(|entry| entry.revision <= self.start) as u64;
        self.seq = self.seq.max(state.first_seq + passed);
        let from = (self.seq - state.first_seq) as usize;
        let mut to = state.entries.len().min(from.saturating_add(max));
        if split == Split::BetweenRevisions && from < to {
            let last = state.entries[to - 1].revision;
            to += state.entries.range(to..).take_while(|entry| entry.revision == last).count();
        }
        if from < to {
            items.extend(state.entries.range(from..to).map(|entry| (entry.revision, entry.item.clone())));
            self.seq += (to - from) as u64;
            let last = state.entries[to - 1].revision;
            let whole = state.entries.get(to).is_none_or(|next| next.revision > last);
            self.seen = self.seen.max(if whole { last } else { last - 1 });
            return None;
        }
        if state.closed {
            return Some(Step::Closed);
        }
        drop(state);
        if progress > self.seen {
            self.seen = progress;
            return Some(Step::Progress(progress));
        }
        None
    }

    /// Waits until there is an item, or the end. Cancel-safe. Progress alone wakes nobody.
    pub async fn ready(&mut self) {
        loop {
            // Marked as seen before looking, so that an append after the look rings.
            self.bell.borrow_and_update();
            if self.has_next() || self.bell.changed().await.is_err() {
                return;
            }
        }
    }

    /// The next item, or the end; waits for it. Cancel-safe.
    pub async fn next(&mut self) -> Step<T> {
        loop {
            match self.try_next() {
                None | Some(Step::Progress(_)) => self.ready().await,
                Some(step) => return step,
            }
        }
    }

    /// Everything at or below this revision was delivered by this cursor, or lies before its start.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    fn has_next(&self) -> bool {
        let state = self.shared.read();
        let unread = self.seq < state.first_seq + state.entries.len() as u64;
        let reached = state.entries.back().is_some_and(|newest| newest.revision > self.start);
        state.closed || (unread && reached) || self.missed(&state)
    }

    /// Whether something was evicted that was to be read: not what comes before a start in the future.
    fn missed(&self, state: &State<T>) -> bool {
        self.seq < state.first_seq && self.start < state.floor
    }
}
