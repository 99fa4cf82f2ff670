//! Past snapshots that somebody may come back to: the first page of a paged LIST, or one that was made for a LIST of the past.
//!
//! Readers put them there and find them; the ingest task forgets those that nobody asks for, and those that hold the plain
//! bytes of what has been sealed since: they are made again when they are asked for. Never: the only way to a state.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use forebay_apimachinery::Revision;
use forebay_rt::Instant;

use crate::limits;
use crate::snapshot::Snapshot;

#[derive(Default)]
pub(crate) struct Recent(
    // (last asked for, snapshot), oldest first, at most RECENT_MAX.
    Mutex<VecDeque<(Instant, Arc<Snapshot>)>>,
);

impl Recent {
    /// The state at `revision`, of `current`'s history.
    pub(crate) fn find(&self, revision: Revision, current: &Snapshot, now: Instant) -> Option<Arc<Snapshot>> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |known: &Snapshot| known.revision() == revision && known.shares_history(current);
        let (used, found) = held.iter_mut().find(|(_, known)| is_it(known))?;
        *used = now;
        Some(found.clone())
    }

    pub(crate) fn remember(&self, snapshot: Arc<Snapshot>, now: Instant) {
        if self.find(snapshot.revision(), &snapshot, now).is_some() {
            return;
        }
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() == limits::RECENT_MAX {
            held.pop_front();
        }
        held.push_back((now, snapshot));
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Forgets those that were not asked for since `used`.
    pub(crate) fn forget_unused(&self, used: Instant) {
        self.retain(|(last, _)| *last >= used);
    }

    /// Forgets those from `oldest` on, which the window can make again.
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
        // What they alone hold is let go of outside of the lock.
        drop(gone);
    }
}
