//! The state of one resource at one revision: immutable, ordered by key, cloned in O(1), with the keys of each value of
//! the indexed fields beside it.

use std::ops::Bound;
use std::sync::Arc;

use forebay_apimachinery::{Key, Object, Revision};
use imbl::{OrdMap, OrdSet};

use crate::event::Event;
use crate::interest::{FieldTerm, Interest, Reach};

/// A resource's objects at a revision. Pins its tree until dropped.
#[derive(Clone, Debug)]
pub struct Snapshot {
    revision: Revision,
    // Which filling of the cache it comes from.
    fill: u64,
    // storage key -> object
    tree: OrdMap<Key, Arc<Object>>,
    // For each object and each field in `indexed`, its value's key: changes with the tree, so it is always the tree's.
    index: OrdSet<Indexed>,
    // Which of the layout's fields.
    indexed: Arc<[usize]>,
    bytes: usize,
}

/// A field, its value, and a key that has it there. `None` is no value, or an empty one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Indexed(usize, Option<Arc<str>>, Key);

impl Snapshot {
    pub(crate) fn new(revision: Revision, fill: u64, indexed: Arc<[usize]>) -> Snapshot {
        Snapshot { revision, fill, tree: OrdMap::new(), index: OrdSet::new(), indexed, bytes: 0 }
    }

    /// The revision up to which it holds every change.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether both come from the same filling of the cache, so that their revisions are of one history.
    pub(crate) fn shares_history(&self, other: &Snapshot) -> bool {
        self.fill == other.fill
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

    /// The objects in `interest`'s reach whose keys come after `after`, in key order: all that match, and others. Few
    /// others when the interest pins an indexed field's value.
    pub fn candidates<'a>(
        &'a self,
        interest: &'a Interest,
        after: Option<&'a Key>,
    ) -> Box<dyn Iterator<Item = &'a Arc<Object>> + Send + 'a> {
        let mut pinned = interest.fields.iter().filter(|term| term.equal);
        let indexed = |term: &'a FieldTerm| Some((term.field.index(&self.indexed)?, term.value.as_str()));
        match (&interest.reach, pinned.find_map(indexed)) {
            (Reach::Below(prefix), Some((field, value))) => {
                Box::new(self.with_value(field, value, prefix, after))
            }
            _ => Box::new(self.range(&interest.reach, after)),
        }
    }

    fn with_value<'a>(
        &'a self,
        field: usize,
        value: &str,
        prefix: &'a Key,
        after: Option<&Key>,
    ) -> impl Iterator<Item = &'a Arc<Object>> + Send + 'a {
        let value = Some(value).filter(|value| !value.is_empty()).map(Arc::from);
        let from = |key: &Key| Indexed(field, value.clone(), key.clone());
        let start = match after {
            Some(after) if after > prefix => Bound::Excluded(from(after)),
            _ => Bound::Included(from(prefix)),
        };
        self.index
            .range((start, Bound::Unbounded))
            .take_while(move |Indexed(at, text, key)| {
                *at == field && *text == value && key.as_str().starts_with(prefix.as_str())
            })
            .filter_map(|Indexed(_, _, key)| self.tree.get(key))
    }

    pub(crate) fn set_revision(&mut self, revision: Revision) {
        debug_assert!(revision >= self.revision);
        self.revision = revision;
    }

    pub(crate) fn put(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        self.bytes += object.cost_bytes();
        let previous = self.tree.insert(object.key().clone(), object.clone());
        self.bytes -= previous.as_ref().map_or(0, |object| object.cost_bytes());
        self.reindex(previous.as_deref(), Some(&object));
        previous
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Arc<Object>> {
        let previous = self.tree.remove(key);
        self.bytes -= previous.as_ref().map_or(0, |object| object.cost_bytes());
        self.reindex(previous.as_deref(), None);
        previous
    }

    /// Entries of the index: one for each object and indexed field.
    #[cfg(test)]
    pub(crate) fn index_len(&self) -> usize {
        self.index.len()
    }

    fn reindex(&mut self, previous: Option<&Object>, current: Option<&Object>) {
        for &field in &*self.indexed {
            let entry = |object: &Object| {
                let value = object.field_text(field).filter(|value| !value.is_empty());
                Indexed(field, value.cloned(), object.key().clone())
            };
            let (old, new) = (previous.map(entry), current.map(entry));
            if old == new {
                continue;
            }
            if let Some(old) = old {
                self.index.remove(&old);
            }
            if let Some(new) = new {
                self.index.insert(new);
            }
        }
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
