//! A lane: an index of the items in a log that belong to one interest.
//!
//! In: the revision and the number of each item that is routed to it. Out: the same, for its cursors. Never:
//! holds an item; decides what belongs to it.
//!
//! A lane keeps sixteen bytes an item. Its cursors take the items themselves from the log, so they expire
//! exactly when the log's own cursors would. Whoever routes items decides which lanes there are.
//!
//! An append goes into the log first, then into the lanes; then progress is announced, and the bells are rung
//! last. A cursor on a lane reads progress before it looks into the lane, so every item that progress covers
//! is in the lane by then.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use crate::sync::{Bell, Ear, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The writing side of a lane. Clones are the same lane. Once the last one is dropped nobody wakes the lane's
/// cursors.
#[derive(Clone, Debug)]
pub struct Lane {
    shared: Arc<Shared>,
    bell: Bell,
}

/// The reading side of a lane: what a cursor needs to join it.
#[derive(Debug)]
pub struct LaneReader {
    pub(crate) shared: Arc<Shared>,
    pub(crate) bell: Ear,
}

#[derive(Debug)]
pub(crate) struct Shared(RwLock<Places>);

#[derive(Debug)]
pub(crate) struct Places {
    // Oldest first; revisions never decrease.
    pub(crate) held: VecDeque<Place>,
    // How many places came before `held[0]`.
    pub(crate) first: u64,
    // No item of this lane above this revision is missing from `held`.
    pub(crate) floor: u64,
}

/// Where an item stands in the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) revision: u64,
    pub(crate) seq: u64,
}

impl Lane {
    /// An empty lane whose history begins after `floor`: every item above it will be routed to it.
    pub fn new(floor: u64) -> Lane {
        let places = Places { held: VecDeque::new(), first: 0, floor };
        Lane { shared: Arc::new(Shared(RwLock::new(places))), bell: Bell::new(1) }
    }

    /// A new reader. [`Lane::is_read`] is true while it, or a cursor made of it, lives.
    pub fn reader(&self) -> LaneReader {
        LaneReader { shared: self.shared.clone(), bell: self.bell.ear() }
    }

    /// Whether a reader, or a cursor made of one, is alive.
    pub fn is_read(&self) -> bool {
        self.bell.is_heard()
    }

    pub(crate) fn id(&self) -> usize {
        Arc::as_ptr(&self.shared) as usize
    }

    /// Adds the places of whole revisions, and drops those below `first_seq`, which the log has evicted.
    pub(crate) fn push(&self, places: impl Iterator<Item = Place>, first_seq: u64) {
        let mut held = self.shared.write();
        held.held.extend(places);
        held.trim(first_seq);
    }

    pub(crate) fn trim(&self, first_seq: u64) {
        self.shared.write().trim(first_seq);
    }

    pub(crate) fn ring(&self) {
        self.bell.ring();
    }
}

impl LaneReader {
    /// The revision after which the lane is complete.
    pub(crate) fn floor(&self) -> u64 {
        self.shared.read().floor
    }
}

impl Shared {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Places> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Places> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    fn trim(&mut self, first_seq: u64) {
        while let Some(front) = self.held.front().filter(|front| front.seq < first_seq) {
            self.floor = front.revision;
            self.first += 1;
            self.held.pop_front();
        }
        if self.held.capacity() > 64 && self.held.len() * 4 < self.held.capacity() {
            self.held.shrink_to(self.held.len() * 2);
        }
    }
}
