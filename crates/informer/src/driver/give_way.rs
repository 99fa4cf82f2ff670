//! What a driver does when its informer would hold more than it may.
//!
//! In: what the cache holds. Out: that each object be cut down, or that all be let go of. Never: waits.

use forebay_backend::GiveWay;
use forebay_client::reflector::Input;

use super::{Driver, Saved};
use crate::ceiling::{self, AtLimit};
use crate::change::Of;

impl Driver {
    /// The cache holds so much now: what is to become of it.
    pub(super) fn note_held(&mut self, bytes: usize) -> Option<GiveWay> {
        self.progress.holds(bytes);
        let over = self.share.as_mut()?.set(bytes)?;
        let at_limit = self.share.as_ref()?.at_limit();
        if let (AtLimit::MetadataOnly, Of::Whole) = (at_limit, self.of) {
            self.of = Of::Part;
            self.progress.partial();
            let path = self.collection.path();
            tracing::warn!(path, ?over, "more than may be held: metadata alone is from now on");
            return Some(GiveWay::Rewrite(ceiling::cut_down(self.stored.part.clone())));
        }
        self.progress.refuses(Some(over));
        // Nothing of what is told now counts.
        let mut told = Vec::new();
        if !matches!(self.saved, Saved::Past) {
            self.saved = Saved::Past;
            self.step(Input::Start { from: None }, &mut told);
        }
        self.step(Input::OverLimit, &mut told);
        Some(GiveWay::LetGo)
    }

    /// Nothing is held any more.
    pub(super) fn note_let_go(&mut self) {
        self.progress.holds(0);
        if let Some(share) = &mut self.share {
            let _within = share.set(0);
        }
    }
}
