//! The keys of a state whose values cannot be read: those that nobody can make an object of, and those that
//! are encrypted and cannot be decrypted now.
//!
//! In: keys. Out: whether a key may be one of them. Cloned in O(1), and free while there are none. Beyond
//! [`UNREADABLE_MAX`](limits::UNREADABLE_MAX) keys of a sort no more of it are remembered, and any key may be
//! one of them. Never: keeps a value.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};

use crate::error::ReadError;
use crate::interest::Reach;
use crate::limits;

/// See the module's doc.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unreadable(Option<Arc<Keys>>);

#[derive(Clone, Debug, Default)]
struct Keys {
    malformed: BTreeSet<Key>,
    are_more_malformed: bool,
    undecrypted: BTreeMap<Key, Undecrypted>,
    are_more_undecrypted: bool,
}

/// A value that cannot be decrypted now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Undecrypted {
    /// That put it.
    pub(crate) revision: Revision,
    pub(crate) why: Arc<str>,
}

impl Undecrypted {
    /// - `why`: of which no more is kept than [`limits::WHY_BYTES_MAX`].
    pub(crate) fn new(revision: Revision, why: &str) -> Undecrypted {
        let end = why.floor_char_boundary(limits::WHY_BYTES_MAX);
        Undecrypted { revision, why: why[..end].into() }
    }
}

impl Unreadable {
    /// Notes that nobody can make an object of the value at `key`.
    pub(crate) fn note(&mut self, key: Key) {
        let keys = Arc::make_mut(self.0.get_or_insert_default());
        keys.undecrypted.remove(&key);
        if keys.malformed.len() < limits::UNREADABLE_MAX {
            keys.malformed.insert(key);
        } else if !keys.malformed.contains(&key) {
            keys.are_more_malformed = true;
        }
    }

    /// Notes that the value at `key` cannot be decrypted.
    pub(crate) fn note_undecrypted(&mut self, key: Key, what: Undecrypted) {
        let keys = Arc::make_mut(self.0.get_or_insert_default());
        keys.malformed.remove(&key);
        if keys.undecrypted.len() < limits::UNREADABLE_MAX || keys.undecrypted.contains_key(&key) {
            keys.undecrypted.insert(key, what);
        } else {
            keys.are_more_undecrypted = true;
        }
    }

    /// Notes that the key is gone, or that its value can be read now.
    pub(crate) fn forget(&mut self, key: &Key) {
        let has = |keys: &&mut Arc<Keys>| keys.malformed.contains(key) || keys.undecrypted.contains_key(key);
        let Some(keys) = self.0.as_mut().filter(has) else { return };
        let keys = Arc::make_mut(keys);
        keys.malformed.remove(key);
        keys.undecrypted.remove(key);
        let are_known = !keys.malformed.is_empty() || !keys.undecrypted.is_empty();
        if !are_known && !keys.are_more_malformed && !keys.are_more_undecrypted {
            self.0 = None;
        }
    }

    /// Whether there may be such a value at `key`.
    pub(crate) fn may_have(&self, key: &Key) -> bool {
        self.0.as_ref().is_some_and(|keys| {
            keys.are_more_malformed || keys.malformed.contains(key) || keys.may_have_undecrypted(key)
        })
    }

    /// Whether there may be such a value within `reach`.
    pub(crate) fn may_have_within(&self, reach: &Reach) -> bool {
        let are_more = |keys: &Arc<Keys>| keys.are_more_malformed || keys.are_more_undecrypted;
        self.0.as_ref().is_some_and(are_more) || self.within(reach).next().is_some()
    }

    /// The unreadable keys that are known, of `reach`.
    pub(crate) fn within<'a>(&'a self, reach: &'a Reach) -> impl Iterator<Item = &'a Key> {
        let known = |keys: &'a Arc<Keys>| keys.malformed.iter().chain(keys.undecrypted.keys());
        self.0.iter().flat_map(known).filter(|key| reach.contains(key))
    }

    /// How many unreadable keys are known.
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |keys| keys.malformed.len() + keys.undecrypted.len())
    }

    /// Whether there may be a value at `key` that cannot be decrypted.
    pub(crate) fn may_be_undecrypted(&self, key: &Key) -> bool {
        self.0.as_ref().is_some_and(|keys| keys.may_have_undecrypted(key))
    }

    /// What is known of the value at `key` that cannot be decrypted.
    pub(crate) fn undecrypted_at(&self, key: &Key) -> Option<&Undecrypted> {
        self.0.as_ref()?.undecrypted.get(key)
    }

    /// The keys that are known of values that cannot be decrypted.
    pub(crate) fn undecrypted(&self) -> impl Iterator<Item = (&Key, &Undecrypted)> {
        self.0.iter().flat_map(|keys| &keys.undecrypted)
    }

    /// Whether there are values that cannot be decrypted.
    pub(crate) fn has_undecrypted(&self) -> bool {
        self.0.as_ref().is_some_and(|keys| keys.are_more_undecrypted || !keys.undecrypted.is_empty())
    }

    /// Whether there are values that cannot be decrypted at keys that are not known.
    pub(crate) fn are_more_undecrypted(&self) -> bool {
        self.0.as_ref().is_some_and(|keys| keys.are_more_undecrypted)
    }

    /// # Errors
    /// [`ReadError::Undecrypted`] when there may be such a value within `reach`.
    pub(crate) fn check_decrypted(&self, reach: &Reach) -> Result<(), ReadError> {
        let Some(keys) = &self.0 else { return Ok(()) };
        let mut within = keys.undecrypted.iter().filter(|(key, _)| reach.contains(key));
        // Where there are more than are known, one of them is told of in the place of all.
        let told =
            within.next().or_else(|| keys.undecrypted.iter().next().filter(|_| keys.are_more_undecrypted));
        match (told, keys.are_more_undecrypted) {
            (Some((key, what)), _) => Err(ReadError::Undecrypted { key: key.clone(), why: what.why.clone() }),
            (None, true) => {
                let (Reach::Below(key) | Reach::One(key)) = reach;
                Err(ReadError::Undecrypted { key: key.clone(), why: MANY.into() })
            }
            (None, false) => Ok(()),
        }
    }
}

/// What is said where it is not known of which key.
const MANY: &str = "some of what is stored could not be decrypted";

impl Keys {
    fn may_have_undecrypted(&self, key: &Key) -> bool {
        self.are_more_undecrypted || self.undecrypted.contains_key(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        Key::from(format!("/a/{number}"))
    }

    fn there(number: usize) -> Reach {
        Reach::One(key(number))
    }

    #[test]
    fn what_is_not_known_any_more_may_be_anything() {
        let mut unreadable = Unreadable::default();
        assert!(!unreadable.may_have(&key(1)));
        unreadable.note(key(1));
        assert!(unreadable.may_have(&key(1)) && !unreadable.may_have(&key(2)));
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
        assert!(unreadable.check_decrypted(&there(3)).is_ok(), "it is no question of keys");
    }

    #[test]
    fn what_is_not_decrypted_is_told_of_within_its_reach_and_everywhere_once_not_all_are_known() {
        let mut unreadable = Unreadable::default();
        let what = |why: &str| Undecrypted::new(Revision::FIRST, why);
        unreadable.note_undecrypted(key(1), what("no key"));
        let told = |unreadable: &Unreadable, number| {
            unreadable.check_decrypted(&there(number)).err().map(|error| error.to_string())
        };
        assert_eq!(told(&unreadable, 1).as_deref(), Some("unable to transform key \"/a/1\": no key"));
        assert_eq!(told(&unreadable, 2), None);
        // One sort in the place of the other.
        unreadable.note(key(1));
        assert!(!unreadable.may_be_undecrypted(&key(1)) && unreadable.may_have(&key(1)));
        unreadable.note_undecrypted(key(1), what("no key"));
        assert_eq!((unreadable.len(), unreadable.undecrypted().count()), (1, 1));
        unreadable.forget(&key(1));
        assert!(unreadable.0.is_none(), "nothing is held for nothing");
        for number in 0..limits::UNREADABLE_MAX + 1 {
            unreadable.note_undecrypted(key(number), what("no key"));
        }
        assert!(unreadable.are_more_undecrypted());
        assert!(told(&unreadable, limits::UNREADABLE_MAX + 7).is_some());
        (0..limits::UNREADABLE_MAX).for_each(|number| unreadable.forget(&key(number)));
        assert!(told(&unreadable, 3).is_some_and(|why| why.contains(MANY)));
        assert!(unreadable.may_be_undecrypted(&key(3)));
        let long = Undecrypted::new(Revision::FIRST, &"\u{e4}".repeat(limits::WHY_BYTES_MAX));
        assert_eq!(long.why.len(), limits::WHY_BYTES_MAX);
    }
}
