//! What a driver does when its informer would hold more than it may.
//!
//! In: what the cache holds. Out: that each object be cut down, that blocks go into a file, or that all be
//! let go of. Never: waits.

use std::task::Context;

use forebay_backend::GiveWay;
use forebay_client::reflector::Input;

use super::{Driver, Saved};
use crate::ceiling::{self, AtLimit, OverLimit};
use crate::change::Of;
use crate::progress::Refused;

impl Driver {
    /// The cache holds so much now: what is to become of it.
    pub(super) fn note_held(&mut self, bytes: usize) -> Option<GiveWay> {
        self.progress.holds(bytes);
        let share = self.share.as_mut()?;
        let over = share.set(bytes);
        let has_spilled = share.end_spill();
        if share.file().is_some_and(|file| file.is_damaged()) {
            let path = self.collection.path();
            tracing::error!(path, "what was put into a file did not come back: all of it is asked for again");
            return Some(self.refuse(Refused::SpillLost));
        }
        let over = over?;
        match (share.at_limit().clone(), self.of) {
            (AtLimit::MetadataOnly, Of::Whole) => Some(self.cut_down(over)),
            (AtLimit::Spill { dir, .. }, _) if !has_spilled => {
                let (to, goal_bytes) = share.begin_spill(&dir, over, &self.progress);
                Some(GiveWay::Spill { to, goal_bytes })
            }
            // They say next what they hold then.
            (AtLimit::Spill { .. }, _) if share.others_spill() => None,
            _ => Some(self.refuse(Refused::OverLimit(over))),
        }
    }

    fn cut_down(&mut self, over: OverLimit) -> GiveWay {
        self.of = Of::Part;
        self.progress.partial();
        let path = self.collection.path();
        tracing::warn!(path, ?over, "more than may be held: metadata alone is from now on");
        GiveWay::Rewrite(ceiling::cut_down(self.stored.part.clone()))
    }

    fn refuse(&mut self, why: Refused) -> GiveWay {
        self.progress.refuses(Some(why));
        // Nothing of what is told now counts.
        let mut told = Vec::new();
        if !matches!(self.saved, Saved::Past) {
            self.saved = Saved::Past;
            self.step(Input::Start { from: None }, &mut told);
        }
        self.step(Input::OverLimit, &mut told);
        GiveWay::LetGo
    }

    /// Nothing is held any more.
    pub(super) fn note_let_go(&mut self) {
        self.progress.holds(0);
        if let Some(share) = &mut self.share {
            share.let_go();
        }
    }

    /// Whether what is held is to be asked about, because some of it is lost.
    pub(super) fn poll_lost(&self, context: &mut Context<'_>) -> bool {
        let file = self.share.as_ref().and_then(|share| share.file());
        file.is_some_and(|file| file.poll_damaged(context))
    }
}
