//! The state of one resource at one revision: immutable, ordered by key, cloned in O(1).

use std::ops::Bound;
use std::sync::Arc;

use forebay_apimachinery::{Key, Object, Revision};
use imbl::OrdMap;

use crate::event::Event;
use crate::interest::Reach;

/// A resource's objects at a revision. Pins its tree until dropped.
#[derive(Clone, Debug)]
pub struct Snapshot {
    revision: Revision,
    // storage key -> object
    tree: OrdMap<Key, Arc<Object>>,
    bytes: usize,
}

impl Snapshot {
    pub(crate) fn new(revision: Revision) -> Snapshot {
        Snapshot { revision, tree: OrdMap::new(), bytes: 0 }
    }

    /// The revision up to which it holds every change.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Objects in it.
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// Bytes of the objects in it, headers counted.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.tree.get(key)
    }

    /// The objects in `reach` whose keys come after `after`, in key order. O(log n) to begin, then an iterator.
    pub fn range<'a>(
        &'a self,
        reach: &'a Reach,
        after: Option<&'a Key>,
    ) -> impl Iterator<Item = &'a Arc<Object>> {
        let (start, one) = match (reach, after) {
            (Reach::Below(prefix), Some(after)) if after > prefix => (Bound::Excluded(after), false),
            (Reach::Below(prefix), _) => (Bound::Included(prefix), false),
            (Reach::One(key), Some(after)) if after >= key => (Bound::Excluded(after), true),
            (Reach::One(key), _) => (Bound::Included(key), true),
        };
        self.tree
            .range::<_, Key>((start, Bound::Unbounded))
            .take_while(move |(key, _)| reach.contains(key))
            .take(if one { 1 } else { usize::MAX })
            .map(|(_, object)| object)
    }

    pub(crate) fn set_revision(&mut self, revision: Revision) {
        debug_assert!(revision >= self.revision);
        self.revision = revision;
    }

    pub(crate) fn put(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        self.bytes += object.cost_bytes();
        let previous = self.tree.insert(object.key().clone(), object);
        self.bytes -= previous.as_ref().map_or(0, |object| object.cost_bytes());
        previous
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Arc<Object>> {
        let previous = self.tree.remove(key);
        self.bytes -= previous.as_ref().map_or(0, |object| object.cost_bytes());
        previous
    }

    /// The state at `revision`, made by undoing `events`, newest first.
    pub(crate) fn undo(&self, revision: Revision, events: &[Arc<Event>]) -> Snapshot {
        let mut past = self.clone();
        for event in events {
            match (&event.previous, &event.current) {
                (Some(previous), _) => drop(past.put(previous.clone())),
                (None, Some(current)) => drop(past.remove(current.key())),
                (None, None) => {}
            }
        }
        past.revision = revision;
        past
    }
}
