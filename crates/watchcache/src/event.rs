//! One change, with the object before and after it.

use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_object::Object;

use crate::unreadable::Undecrypted;

/// One key at one revision, with its previous and its current object. At least one of them is there, unless
/// one of them is [hidden](Event::hidden).
#[derive(Debug)]
pub struct Event {
    pub revision: Revision,
    /// From the cache's own tree, never from the store.
    pub previous: Option<Arc<Object>>,
    /// `None` when the object was deleted.
    pub current: Option<Arc<Object>>,
    /// Whether the event stands for a hole in the history: whoever sees it may have missed other events of
    /// this key.
    pub(crate) is_of_hole: bool,
    /// What was put or replaced could not be decrypted: nobody in reach may go on as if this event told all
    /// of it. Boxed, because there are hardly any.
    pub(crate) hidden: Option<Box<Hidden>>,
}

/// Of a change, what nobody could decrypt.
#[derive(Clone, Debug)]
pub(crate) struct Hidden {
    pub(crate) key: Key,
    /// What was there before could not be decrypted either.
    pub(crate) before: Option<Undecrypted>,
    /// The object that the state goes on to show, where what was put cannot be decrypted.
    pub(crate) shown: Option<Arc<Object>>,
}

/// What an event is to one watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

impl Event {
    /// The kind of this event for a watcher whose selector is `matches`, and the object that it is sent. A
    /// DELETED event carries the last object that matched. `None` where neither object matches.
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

    /// Bytes that only the window holds because of this event: the replaced object with its messages, and the
    /// event itself.
    pub(crate) fn cost_bytes(&self) -> usize {
        let replaced = |object: &Arc<Object>| object.cost_bytes() + object.message_bytes();
        let hidden = self.hidden.as_ref().map_or(0, |hidden| {
            size_of::<Hidden>() + hidden.key.as_str().len() + hidden.shown.as_ref().map_or(0, replaced)
        });
        size_of::<Event>() + self.previous.as_ref().map_or(0, replaced) + hidden
    }
}
