//! The keys of a state whose values cannot be read.
//!
//! In: keys. Out: whether a key may be one of them. Cloned in O(1), and free while there are none. Beyond
//! [`UNREADABLE_MAX`](limits::UNREADABLE_MAX) keys are no longer remembered, and any key may be one of them.
//! Never: keeps a value.

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_apimachinery::Key;

use crate::interest::Reach;
use crate::limits;

/// See the module's doc.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unreadable(Option<Arc<Keys>>);

#[derive(Clone, Debug, Default)]
struct Keys {
    known: BTreeSet<Key>,
    are_more: bool,
}

impl Unreadable {
    pub(crate) fn note(&mut self, key: Key) {
        let keys = Arc::make_mut(self.0.get_or_insert_default());
        if keys.known.len() < limits::UNREADABLE_MAX {
            keys.known.insert(key);
        } else if !keys.known.contains(&key) {
            keys.are_more = true;
        }
    }

    /// Notes that the key is gone, or that its value can be read now.
    pub(crate) fn forget(&mut self, key: &Key) {
        let Some(keys) = self.0.as_mut().filter(|keys| keys.known.contains(key)) else { return };
        let keys = Arc::make_mut(keys);
        keys.known.remove(key);
        if keys.known.is_empty() && !keys.are_more {
            self.0 = None;
        }
    }

    /// Whether there may be such a value at `key`.
    pub(crate) fn may_have(&self, key: &Key) -> bool {
        self.0.as_ref().is_some_and(|keys| keys.are_more || keys.known.contains(key))
    }

    /// Whether there may be such a value within `reach`.
    pub(crate) fn may_have_within(&self, reach: &Reach) -> bool {
        self.0.as_ref().is_some_and(|keys| keys.are_more || keys.known.iter().any(|key| reach.contains(key)))
    }

    /// The unreadable keys that are known, of `reach`.
    pub(crate) fn within<'a>(&'a self, reach: &'a Reach) -> impl Iterator<Item = &'a Key> {
        let known = self.0.iter().flat_map(|keys| &keys.known);
        known.filter(|key| reach.contains(key))
    }

    /// How many unreadable keys are known.
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |keys| keys.known.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_any_more_may_be_anything() {
        let mut unreadable = Unreadable::default();
        let key = |number: usize| Key::from(format!("/a/{number}"));
        assert!(!unreadable.may_have(&key(1)));
        unreadable.note(key(1));
        assert!(unreadable.may_have(&key(1)) && !unreadable.may_have(&key(2)));
        let there = |number| Reach::One(key(number));
        assert!(unreadable.may_have_within(&there(1)) && !unreadable.may_have_within(&there(2)));
        unreadable.forget(&key(1));
        assert!(unreadable.0.is_none(), "nothing is held for nothing");
        for number in 0..limits::UNREADABLE_MAX + 1 {
            unreadable.note(key(number));
            unreadable.note(key(number));
        }
        assert_eq!(unreadable.len(), limits::UNREADABLE_MAX);
        assert!(unreadable.may_have(&key(limits::UNREADABLE_MAX + 7)));
        assert_eq!(unreadable.within(&there(3)).count(), 1);
        assert!(unreadable.may_have_within(&there(limits::UNREADABLE_MAX + 7)));
    }
}
