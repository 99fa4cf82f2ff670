//! Past snapshots that a client may ask for again: for the next page of a LIST, or because a LIST of the past
//! was made.
//!
//! In: snapshots, from readers. Out: the same, for later readers. The ingest task drops snapshots that nobody
//! asks for, and those that keep plain bytes in memory of objects that were sealed since. Never: the only way
//! to a state: each can be made again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use forebay_apimachinery::Revision;
use forebay_rt::Instant;

use crate::limits;
use crate::snapshot::Snapshot;

#[derive(Default)]
pub(crate) struct Recent(
    // (last asked for, snapshot), in that order, at most RECENT_MAX.
    Mutex<VecDeque<(Instant, Arc<Snapshot>)>>,
);

impl Recent {
    /// The state at `revision`, of `current`'s history.
    pub(crate) fn find(&self, revision: Revision, current: &Snapshot, now: Instant) -> Option<Arc<Snapshot>> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |known: &Snapshot| known.revision() == revision && known.shares_history(current);
        let place = held.iter().position(|(_, known)| is_it(known))?;
        let (_, found) = held.remove(place)?;
        held.push_back((now, found.clone()));
        Some(found)
    }

    /// The earliest state after `revision`, of `current`'s history and before it: less is to be undone from
    /// there.
    pub(crate) fn nearest(&self, revision: Revision, current: &Snapshot) -> Option<Arc<Snapshot>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let between = |known: &Snapshot| known.revision() > revision && known.revision() < current.revision();
        let known = held.iter().map(|(_, known)| known);
        let after = known.filter(|known| between(known) && known.shares_history(current));
        after.min_by_key(|known| known.revision()).cloned()
    }

    pub(crate) fn remember(&self, snapshot: Arc<Snapshot>, now: Instant) {
        if self.find(snapshot.revision(), &snapshot, now).is_some() {
            return;
        }
        let gone = {
            let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let gone = if held.len() >= limits::RECENT_MAX { held.pop_front() } else { None };
            held.push_back((now, snapshot));
            gone
        };
        // Dropped outside of the lock, because it may be large.
        drop(gone);
    }

    /// How many snapshots are kept.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Drops snapshots that were not asked for since `used`.
    pub(crate) fn forget_unused(&self, used: Instant) {
        self.retain(|(last, _)| *last >= used);
    }

    /// Drops snapshots from `oldest` on, which can be made again from the window.
    pub(crate) fn forget_from(&self, oldest: Revision) {
        self.retain(|(_, known)| known.revision() < oldest);
    }

    fn retain(&self, keep: impl FnMut(&(Instant, Arc<Snapshot>)) -> bool) {
        let gone: Vec<_> = {
            let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let (kept, gone): (Vec<_>, Vec<_>) = held.drain(..).partition(keep);
            held.extend(kept);
            gone
        };
        // Dropped outside of the lock, because they may be large.
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use forebay_rt::Clock;

    use super::*;

    fn state(revision: u64, fill: u64) -> Arc<Snapshot> {
        Arc::new(Snapshot::new(Revision::from_log(revision), fill, Arc::from([])))
    }

    #[test]
    fn what_nobody_has_asked_for_the_longest_is_forgotten_first() {
        let (recent, now) = (Recent::default(), Clock::system().now());
        let current = state(1_000, 0);
        let last = limits::RECENT_MAX as u64;
        let is_known = |revision| recent.find(Revision::from_log(revision), &current, now).is_some();
        for revision in 1..=last {
            recent.remember(state(revision, 0), now);
        }
        assert!(is_known(1));
        recent.remember(state(last + 1, 0), now);
        assert_eq!(recent.len(), limits::RECENT_MAX);
        assert_eq!([1, 2, 3, last + 1].map(is_known), [true, false, true, true]);
    }

    #[test]
    fn the_nearest_state_is_the_earliest_after_it_of_the_same_history() {
        let (recent, now) = (Recent::default(), Clock::system().now());
        for (revision, fill) in [(30, 0), (10, 0), (20, 0), (12, 1), (90, 0)] {
            recent.remember(state(revision, fill), now);
        }
        let nearest = |revision| {
            let nearest = recent.nearest(Revision::from_log(revision), &state(50, 0));
            nearest.map(|known| known.revision().get())
        };
        assert_eq!(
            [5, 10, 11, 29, 30, 60].map(nearest),
            [Some(10), Some(20), Some(20), Some(30), None, None]
        );
    }
}
