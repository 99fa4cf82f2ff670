//! One change, with the object before and after it.

use std::sync::Arc;

use forebay_apimachinery::Revision;
use forebay_object::Object;

/// One key at one revision, with its previous and its current object. At least one of them is there.
#[derive(Debug)]
pub struct Event {
    pub revision: Revision,
    /// From the cache's own tree, never from the store.
    pub previous: Option<Arc<Object>>,
    /// `None` when the object was deleted.
    pub current: Option<Arc<Object>>,
    /// Whether it stands for what was lost of the history: who sees it has missed something.
    pub(crate) is_of_hole: bool,
}

/// What an event is to one watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

impl Event {
    /// What this event is to a watcher whose selector matched the previous and the current object thus, and the
    /// object that it is sent: a DELETED event carries the last state that matched.
    pub fn seen_by(&self, matches: impl Fn(&Object) -> bool) -> Option<(EventKind, &Arc<Object>)> {
        let previous = self.previous.as_ref().filter(|object| matches(object));
        let current = self.current.as_ref().filter(|object| matches(object));
        match (previous, current) {
            (None, Some(current)) => Some((EventKind::Added, current)),
            (Some(_), Some(current)) => Some((EventKind::Modified, current)),
            (Some(previous), None) => Some((EventKind::Deleted, previous)),
            (None, None) => None,
        }
    }

    /// Bytes that the window alone holds because of this event: the replaced object's with its messages, and the
    /// event's own.
    pub(crate) fn cost_bytes(&self) -> usize {
        let replaced = |object: &Arc<Object>| object.cost_bytes() + object.message_bytes();
        size_of::<Event>() + self.previous.as_ref().map_or(0, replaced)
    }
}
