//! What the ingest task publishes: the state, and the window of events as watchers see it.
//!
//! In: what ingest has. Out: the same, for readers. Never: changed where it is read.

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
    // What the store had reached before it went back, or 0: from the current revision to there, revisions are of a future
    // that never was.
    pub(crate) lost_upto: u64,
    // Where history is not known.
    pub(crate) holes: Arc<[Hole]>,
    // Up to where it will reach back once that has been read.
    pub(crate) early: Option<Revision>,
    pub(crate) states: States,
}

/// The states that a store which tells them has told, the first among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct States {
    pub told: u64,
    /// Objects by which the last one was not as the one before: those of the first are all.
    pub differences: usize,
    /// The revision of the last state; `None` before there is one.
    pub revision: Option<Revision>,
}

/// Revisions of which nobody here knows all changes: those between, without the ends.
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
    /// Whether `revision`, which is still to come, was reached by a store that has gone back since.
    pub(crate) fn is_lost(&self, revision: Revision) -> bool {
        revision.get() <= self.lost_upto
    }

    /// Whether it does not reach back to `revision` yet, and will.
    pub(crate) fn is_to_reach(&self, revision: Revision) -> bool {
        self.early.is_some_and(|early| early <= revision) && revision.get() < self.log.oldest()
    }

    pub(crate) fn expired(&self, asked: Revision) -> ReadError {
        ReadError::Expired { asked, oldest: Revision::from_log(self.log.oldest()) }
    }

    /// # Errors
    /// [`ReadError::Expired`] when what came right after `revision` is not known.
    pub(crate) fn check_holes(&self, revision: Revision) -> Result<(), ReadError> {
        match self.holes.iter().find(|hole| hole.has(revision)) {
            Some(hole) => Err(ReadError::Expired { asked: revision, oldest: hole.after }),
            None => Ok(()),
        }
    }
}
