//! What the ingest task publishes: the state, and the window of events as watchers see it.
//!
//! In: the ingest task's state. Out: the same, for readers. Never: changed by a reader.

use std::sync::Arc;

use forebay_apimachinery::Revision;
use forebay_revlog::Log;
use forebay_rt::Instant;

use crate::error::ReadError;
use crate::event::Event;
use crate::lanes::Lanes;
use crate::snapshot::Snapshot;

/// What the ingest task publishes.
#[derive(Clone, Debug)]
pub(crate) enum Published {
    Filling { since: Instant },
    Ready { snapshot: Arc<Snapshot>, window: Window },
    Closed,
}

/// The window as watchers see it.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) log: Log<Arc<Event>>,
    pub(crate) lanes: Arc<Lanes>,
    // The revision that the store had reached before it went back, or 0. Revisions from the current one up to
    // it were lost.
    pub(crate) lost_upto: u64,
    // The parts of the history that are not known.
    pub(crate) holes: Arc<[Hole]>,
    // The revision to which the window will reach back once early history was read.
    pub(crate) early: Option<Revision>,
    pub(crate) states: States,
    // How often objects came into the state without an event, because their values could be decrypted at
    // last: see `ingest/reveal.rs`.
    pub(crate) revealed: u64,
}

/// The states that the store has told, the first included. Only the informer's store tells its state as a
/// whole, at each LIST.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct States {
    pub told: u64,
    /// In how many objects the last state differed from the one before. For the first state, all of its
    /// objects.
    pub differences: usize,
    /// The revision of the last state; `None` before there is one.
    pub revision: Option<Revision>,
}

/// A hole in the history: not all changes at the revisions between these two are known. The ends themselves
/// are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) before: Revision,
    pub(crate) after: Revision,
}

impl Hole {
    pub(crate) fn has(&self, revision: Revision) -> bool {
        self.before < revision && revision < self.after
    }
}

impl Window {
    /// Whether `revision` is above the current one, and the store had reached it before it went back.
    pub(crate) fn is_lost(&self, revision: Revision) -> bool {
        revision.get() <= self.lost_upto
    }

    /// Whether the window will reach back to `revision` once early history was read, and does not yet.
    pub(crate) fn is_to_reach(&self, revision: Revision) -> bool {
        self.early.is_some_and(|early| early <= revision) && revision.get() < self.log.oldest()
    }

    pub(crate) fn expired(&self, asked: Revision) -> ReadError {
        ReadError::Expired { asked, oldest: Revision::from_log(self.log.oldest()) }
    }

    /// # Errors
    /// [`ReadError::Expired`] when the changes directly after `revision` are not known.
    pub(crate) fn check_holes(&self, revision: Revision) -> Result<(), ReadError> {
        match self.holes.iter().find(|hole| hole.has(revision)) {
            Some(hole) => Err(ReadError::Expired { asked: revision, oldest: hole.after }),
            None => Ok(()),
        }
    }
}
