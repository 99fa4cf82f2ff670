//! How much an informer may hold, and what happens there.
//!
//! In: what each of its caches holds. Out: whether that is too much, all together. Owner: shared by the drivers of one informer. Never:
//! does anything about it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_backend::Rewrite;
use forebay_client::wire::{ObjectText, Projection, TypeMeta};
use forebay_view::PARTIAL_HEAD;

use crate::change;
use forebay_apimachinery::Revision;

/// What an informer does that would hold more than its `max_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AtLimit {
    /// It lets go of all that it holds and says so: [`Error::OverLimit`](crate::Error::OverLimit) from reads,
    /// [`Why::OverLimit`](crate::Why::OverLimit) in its health, [`Notice::LetGo`](crate::Notice::LetGo) to handlers, and it counts as not
    /// synced. It tries again after a minute at first, and a quarter of an hour at last.
    Refuse,
    /// It holds no more of an object than its metadata and what there is an index of, from then on and for as long as it lives: what it
    /// holds already is cut down, without a list. Handles [say so](crate::Handle::is_partial). Where that is too much as well, it does as
    /// for [`AtLimit::Refuse`].
    MetadataOnly,
}

/// What an informer would hold, and what it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverLimit {
    pub held_bytes: usize,
    pub max_bytes: usize,
}

/// Shared by the caches of an informer.
#[derive(Debug)]
pub(crate) struct Ceiling {
    pub(crate) max_bytes: usize,
    pub(crate) at_limit: AtLimit,
    held: AtomicUsize,
}

/// What one cache holds of it. Dropping it gives that back.
pub(crate) struct Share {
    ceiling: Arc<Ceiling>,
    bytes: usize,
}

impl Ceiling {
    pub(crate) fn new(max_bytes: usize, at_limit: AtLimit) -> Ceiling {
        Ceiling { max_bytes, at_limit, held: AtomicUsize::new(0) }
    }

    pub(crate) fn share(self: &Arc<Ceiling>) -> Share {
        Share { ceiling: self.clone(), bytes: 0 }
    }
}

impl Share {
    pub(crate) fn at_limit(&self) -> AtLimit {
        self.ceiling.at_limit
    }

    /// The cache holds so much now. What is held by all, if it is too much.
    pub(crate) fn set(&mut self, bytes: usize) -> Option<OverLimit> {
        // Wraps where it is less, and comes out right.
        let more = bytes.wrapping_sub(self.bytes);
        let held_bytes = self.ceiling.held.fetch_add(more, Ordering::Relaxed).wrapping_add(more);
        self.bytes = bytes;
        let max_bytes = self.ceiling.max_bytes;
        (bytes > 0 && held_bytes > max_bytes).then_some(OverLimit { held_bytes, max_bytes })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let _within = self.set(0);
    }
}

/// What makes such values of all that is held.
pub(crate) fn cut_down(projection: Arc<Projection>) -> Rewrite {
    Rewrite::new(move |body| {
        if body.starts_with(PARTIAL_HEAD) {
            return None;
        }
        let object = ObjectText::read(body).ok()?;
        let revision = object.revision().and_then(Revision::new)?;
        let change = change::change(object, revision, &TypeMeta::default(), &projection, change::Of::Part);
        change.ok()?.value.map(Vec::from)
    })
}
