//! A reader's place in a log, or in a lane of it.
//!
//! In: a log, perhaps a lane, and the revision to start after. Out: the items after it, each exactly once and
//! in order, or why there are none. Never: holds an item.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use smallvec::SmallVec;

use crate::lane::{LaneReader, Place};
use crate::log::{Entry, Shared, State};
use crate::sync::Ear;

/// What a cursor yields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// The next item and its revision.
    Item(u64, T),
    /// Every item at or below this revision was delivered.
    Progress(u64),
    /// The next item was evicted before it was read; history begins after `oldest` now. The cursor yields
    /// this from now on.
    Expired { oldest: u64 },
    /// The writer is gone and everything was delivered. The cursor yields this from now on.
    Closed,
}

/// A place in a log. Two cursors with equal positions yield the same item next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    log: u64,
    seq: u64,
}

/// Where a pull may stop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Split {
    Anywhere,
    BetweenRevisions,
}

/// The number that a cursor has before it has looked for its place: below every item's number.
const UNPLACED: u64 = 0;

/// Items of the history that was asked for were evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The lowest revision that a cursor may start after.
    pub oldest: u64,
}

/// A reader's place: a few numbers, and what wakes the reader. A reader leaves by dropping it.
#[derive(Debug)]
pub struct Cursor<T> {
    shared: Arc<Shared<T>>,
    route: Route,
    // Sequence number of the next item to read, in the log or in the lane.
    seq: u64,
    // Items at or below this revision are skipped: they come before the start, which may be still to come.
    start: u64,
    // Everything at or below this revision was delivered, or lies before the start.
    seen: u64,
    // The last pull took everything there was, and the bell was marked as heard before it: until it rings
    // there is nothing new.
    is_drained: bool,
}

/// What a cursor reads.
#[derive(Debug)]
enum Route {
    Log {
        bell: Ear,
        // The lane it goes over to once everything up to a revision was delivered, and that revision.
        then: Option<(LaneReader, u64)>,
    },
    Lane(LaneReader),
}

impl Position {
    /// The position once the next item was read.
    #[must_use]
    pub fn after(self) -> Position {
        Position { seq: self.seq + 1, ..self }
    }
}

impl<T: Clone> Cursor<T> {
    pub(crate) fn on_log(
        shared: Arc<Shared<T>>,
        bell: Ear,
        start: u64,
        then: Option<(LaneReader, u64)>,
    ) -> Cursor<T> {
        Cursor {
            shared,
            route: Route::Log { bell, then },
            seq: UNPLACED,
            start,
            seen: start,
            is_drained: false,
        }
    }

    pub(crate) fn on_lane(shared: Arc<Shared<T>>, lane: LaneReader, start: u64) -> Cursor<T> {
        Cursor { shared, route: Route::Lane(lane), seq: UNPLACED, start, seen: start, is_drained: false }
    }

    /// The next step if there is one now; never waits.
    pub fn try_next(&mut self) -> Option<Step<T>> {
        let mut items = Vec::new();
        match self.pull(1, Split::Anywhere, &mut items) {
            Some(step) => Some(step),
            None => items.pop().map(|(revision, item)| Step::Item(revision, item)),
        }
    }

    /// Adds about `max` items to `items`: more where the last one's revision has more. When there was none,
    /// returns what else there is: progress, the end, or `None` when there is nothing new.
    ///
    /// Until the cursor has reached its lane's beginning, these are items of the whole log.
    pub fn take(&mut self, max: usize, items: &mut impl Extend<(u64, T)>) -> Option<Step<T>> {
        self.pull(max, Split::BetweenRevisions, items)
    }

    fn pull(&mut self, max: usize, split: Split, items: &mut impl Extend<(u64, T)>) -> Option<Step<T>> {
        // Progress is read before the entries: what it covers was appended before it was announced.
        let progress = self.shared.progress();
        let closed = loop {
            let pulled = match self.route {
                Route::Log { .. } => self.pull_log(progress, max, split, items),
                Route::Lane(_) => self.pull_lane(max, split, items),
            };
            match pulled {
                Pulled::Items => return None,
                Pulled::Expired { oldest } => return Some(Step::Expired { oldest }),
                Pulled::Joined => {}
                Pulled::Nothing { closed } => break closed,
            }
        };
        if closed {
            return Some(Step::Closed);
        }
        if progress > self.seen {
            self.seen = progress;
            return Some(Step::Progress(progress));
        }
        None
    }

    fn pull_log(
        &mut self,
        progress: u64,
        max: usize,
        split: Split,
        items: &mut impl Extend<(u64, T)>,
    ) -> Pulled {
        let Route::Log { bell, then } = &mut self.route else { return Pulled::Joined };
        let seen = self.seen;
        if let Some((lane, until)) = then.take_if(|(_, until)| seen >= *until) {
            self.join(lane, until);
            return Pulled::Joined;
        }
        bell.hear();
        let state = self.shared.read();
        if state.lost || missed(self.seq, self.start, state.first_seq, state.floor) {
            return Pulled::Expired { oldest: state.floor };
        }
        self.seq = pass(self.seq, self.start, state.first_seq, &state.entries);
        let until = then.as_ref().map_or(u64::MAX, |(_, until)| *until);
        let from = (self.seq - state.first_seq) as usize;
        let (range, seen) = next(&state.entries, from, max, split, until);
        self.is_drained = from + range.len() == state.entries.len() && !state.closed && then.is_none();
        if !range.is_empty() {
            self.seq += range.len() as u64;
            self.seen = self.seen.max(seen);
            items.extend(state.entries.range(range).map(|entry| (entry.revision, entry.item.clone())));
            return Pulled::Items;
        }
        let passed = progress >= until || state.entries.get(from).is_some();
        if let Some((lane, until)) = then.take_if(|_| passed) {
            drop(state);
            self.join(lane, until);
            return Pulled::Joined;
        }
        Pulled::Nothing { closed: state.closed }
    }

    /// Goes over to the lane, once everything up to `until` was delivered.
    fn join(&mut self, lane: LaneReader, until: u64) {
        self.start = self.start.max(until);
        self.seen = self.seen.max(until);
        self.seq = UNPLACED;
        self.route = Route::Lane(lane);
    }

    fn pull_lane(&mut self, max: usize, split: Split, items: &mut impl Extend<(u64, T)>) -> Pulled {
        let Route::Lane(lane) = &mut self.route else { return Pulled::Joined };
        lane.bell.hear();
        // Before the places are looked at: what was appended before the end is in them.
        let closed = {
            let state = self.shared.read();
            if state.lost {
                return Pulled::Expired { oldest: state.floor };
            }
            state.closed
        };
        let places = lane.shared.read();
        if missed(self.seq, self.start, places.first, places.floor) {
            drop(places);
            return Pulled::Expired { oldest: self.shared.read().floor };
        }
        self.seq = pass(self.seq, self.start, places.first, &places.held);
        let from = (self.seq - places.first) as usize;
        let (range, seen) = next(&places.held, from, max, split, u64::MAX);
        self.is_drained = from + range.len() == places.held.len() && !closed;
        let found: SmallVec<[Place; 4]> = places.held.range(range).copied().collect();
        drop(places);
        let Some(first) = found.first() else { return Pulled::Nothing { closed } };
        let state = self.shared.read();
        if first.seq < state.first_seq {
            self.is_drained = false;
            return Pulled::Expired { oldest: state.floor };
        }
        self.seq += found.len() as u64;
        self.seen = self.seen.max(seen);
        items.extend(found.iter().map(|place| {
            let entry = &state.entries[(place.seq - state.first_seq) as usize];
            (entry.revision, entry.item.clone())
        }));
        Pulled::Items
    }

    /// Waits until there may be an item, or the end. Cancel-safe. Progress alone wakes nobody.
    ///
    /// Returns true when it slept and was woken. It has not looked then whether there is an item for this
    /// cursor: the one that it was woken for may come before the cursor's start.
    pub async fn ready(&mut self) -> bool {
        poll_fn(|cx| self.poll_ready(cx)).await
    }

    /// [`Cursor::ready`] as a poll, for a task that waits for other things as well.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if !self.is_drained {
            // Marked as heard before looking, so that an append after the look rings.
            self.bell().hear();
            if self.has_next() {
                return Poll::Ready(false);
            }
            self.is_drained = true;
        }
        let rung = ready!(self.bell().poll_rung(cx));
        self.is_drained = false;
        Poll::Ready(rung)
    }

    fn bell(&mut self) -> &mut Ear {
        match &mut self.route {
            Route::Log { bell, .. } => bell,
            Route::Lane(lane) => &mut lane.bell,
        }
    }

    /// The next item, or the end; waits for it. Cancel-safe.
    pub async fn next(&mut self) -> Step<T> {
        loop {
            match self.try_next() {
                None | Some(Step::Progress(_)) => {
                    self.ready().await;
                }
                Some(step) => return step,
            }
        }
    }

    /// The cursor's position in the log. `None` on a lane, before it has reached its lane, and before its
    /// first read.
    pub fn position(&self) -> Option<Position> {
        match self.route {
            Route::Log { then: None, .. } if self.seq > UNPLACED => {
                Some(Position { log: self.shared.id, seq: self.seq })
            }
            Route::Log { .. } | Route::Lane(_) => None,
        }
    }

    /// Skips the next item, which the caller already has from another cursor that was at position `at`. It
    /// has to be the only one of its revision. Returns false, and skips nothing, when this cursor is not at
    /// `at`, or starts at `revision` or later.
    pub fn step_over(&mut self, at: Position, revision: u64) -> bool {
        let is_next = self.position() == Some(at) && revision > self.start;
        if is_next {
            self.seq += 1;
            self.seen = self.seen.max(revision);
            self.is_drained = false;
        }
        is_next
    }

    /// Whether everything that there is now was delivered, as far as can be told without a lock.
    pub fn is_at_end(&mut self) -> bool {
        if let Route::Log { bell, then: None } = &mut self.route {
            // Before the look, so that an append after it rings.
            bell.hear();
            self.is_drained = self.shared.ends_at(self.seq);
        }
        self.is_drained
    }

    /// Whether the cursor has still to go over to its lane. Until then [`Cursor::take`] may yield fewer items
    /// than there are.
    pub fn is_joining(&self) -> bool {
        matches!(self.route, Route::Log { then: Some(_), .. })
    }

    /// Everything at or below this revision was delivered by this cursor, or lies before its start.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Whether the next item was evicted before it was read.
    pub fn is_expired(&self) -> bool {
        let Route::Lane(lane) = &self.route else {
            let state = self.shared.read();
            return missed(self.seq, self.start, state.first_seq, state.floor);
        };
        let places = lane.shared.read();
        if missed(self.seq, self.start, places.first, places.floor) {
            return true;
        }
        let at = (pass(self.seq, self.start, places.first, &places.held) - places.first) as usize;
        let next = places.held.get(at).map(|place| place.seq);
        drop(places);
        next.is_some_and(|seq| seq < self.shared.read().first_seq)
    }

    fn has_next(&self) -> bool {
        let closed = {
            let state = self.shared.read();
            match &self.route {
                Route::Log { .. } => return state.closed || self.follows(&state),
                Route::Lane(_) => state.closed,
            }
        };
        let Route::Lane(lane) = &self.route else { return closed };
        let places = lane.shared.read();
        closed || follows(self.seq, self.start, places.first, places.floor, &places.held)
    }

    fn follows(&self, state: &State<T>) -> bool {
        follows(self.seq, self.start, state.first_seq, state.floor, &state.entries)
    }
}

/// What one look at the log or the lane found.
enum Pulled {
    Items,
    Nothing {
        closed: bool,
    },
    Expired {
        oldest: u64,
    },
    /// The cursor has gone over to its lane.
    Joined,
}

/// An item of a log, or its place in a lane.
trait Revisioned {
    fn revision(&self) -> u64;
}

impl<T> Revisioned for Entry<T> {
    fn revision(&self) -> u64 {
        self.revision
    }
}

impl Revisioned for Place {
    fn revision(&self) -> u64 {
        self.revision
    }
}

/// Whether an item was evicted that the cursor has not read. Items at or below `start` do not count: it would
/// have skipped them.
fn missed(seq: u64, start: u64, first: u64, floor: u64) -> bool {
    seq < first && start < floor
}

/// The number to go on at, once everything at or below `start` is skipped.
fn pass(seq: u64, start: u64, first: u64, held: &VecDeque<impl Revisioned>) -> u64 {
    let passed = held.partition_point(|one| one.revision() <= start) as u64;
    seq.max(first + passed)
}

/// Whether there is an item to read, or one that was missed.
fn follows(seq: u64, start: u64, first: u64, floor: u64, held: &VecDeque<impl Revisioned>) -> bool {
    let unread = seq < first + held.len() as u64;
    let reached = held.back().is_some_and(|newest| newest.revision() > start);
    (unread && reached) || missed(seq, start, first, floor)
}

/// The range of items that come next, none above `until`, and the revision up to which everything is
/// delivered with them.
fn next(
    held: &VecDeque<impl Revisioned>,
    from: usize,
    max: usize,
    split: Split,
    until: u64,
) -> (Range<usize>, u64) {
    let mut to = held.len().min(from.saturating_add(max));
    if held.get(to.wrapping_sub(1)).is_some_and(|last| last.revision() > until) {
        to = held.partition_point(|one| one.revision() <= until);
    }
    if to <= from {
        return (from..from, 0);
    }
    let last = held[to - 1].revision();
    if split == Split::BetweenRevisions {
        to += held.range(to..).take_while(|one| one.revision() == last).count();
    }
    let whole = held.get(to).is_none_or(|next| next.revision() > last);
    (from..to, if whole { last } else { last - 1 })
}
