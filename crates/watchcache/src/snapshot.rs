//! The state of one resource at one revision: immutable, ordered by key, cloned in O(1), with the keys of each value of
//! the indexed fields beside it.

use std::ops::Range;
use std::sync::Arc;

use forebay_apimachinery::{Key, Object, Revision};

use crate::event::Event;
use crate::interest::{FieldTerm, Interest, Reach};
use crate::tree::{Entry, Tree};

/// A resource's objects at a revision. Pins its tree until dropped.
#[derive(Clone, Debug)]
pub struct Snapshot {
    revision: Revision,
    // Which filling of the cache it comes from.
    fill: u64,
    tree: Tree<Arc<Object>>,
    // For each field in `indexed`, each object's value and key: changes with the tree, so it is always the tree's.
    index: Vec<Tree<Indexed>>,
    // Which of the layout's fields.
    indexed: Arc<[usize]>,
    bytes: usize,
}

/// A field's value, and a key that has it there. `None` is no value, or an empty one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Indexed(Option<Arc<str>>, Key);

/// By storage key; weighs what its bytes are in plain form.
impl Entry for Arc<Object> {
    type Key = Key;

    fn key(&self) -> &Key {
        Object::key(self)
    }

    fn weight(&self) -> usize {
        self.body_len()
    }
}

impl Entry for Indexed {
    type Key = Indexed;

    fn key(&self) -> &Indexed {
        self
    }
}

impl Snapshot {
    pub(crate) fn new(revision: Revision, fill: u64, indexed: Arc<[usize]>) -> Snapshot {
        let index = indexed.iter().map(|_| Tree::default()).collect();
        Snapshot { revision, fill, tree: Tree::default(), index, indexed, bytes: 0 }
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

    /// The objects in `reach` whose keys come after `after`, in key order, from either end. O(log n) to begin, or to skip;
    /// how many they are is known.
    pub fn range<'a>(
        &'a self,
        reach: &Reach,
        after: Option<&Key>,
    ) -> impl DoubleEndedIterator<Item = &'a Arc<Object>> + ExactSizeIterator + Send + use<'a> {
        self.tree.places(self.places(reach, after))
    }

    /// How many bytes the objects of [`Snapshot::range`] have in plain form. O(log n).
    pub fn plain_bytes(&self, reach: &Reach, after: Option<&Key>) -> usize {
        let Range { start, end } = self.places(reach, after);
        let upto = |place: usize| match self.tree.places(place..self.len()).next() {
            Some(first) => self.tree.sum_before(|key| key < first.key()).weight,
            None => self.tree.sum_before(|_| true).weight,
        };
        upto(end) - upto(start)
    }

    /// Where in the tree they are.
    fn places(&self, reach: &Reach, after: Option<&Key>) -> Range<usize> {
        let passed = |key: &Key| after.is_some_and(|after| key <= after);
        let (start, end) = match reach {
            Reach::Below(prefix) => (
                self.tree.rank(|key| key < prefix || passed(key)),
                self.tree.rank(|key| key < prefix || key.as_str().starts_with(prefix.as_str())),
            ),
            Reach::One(one) => {
                (self.tree.rank(|key| key < one || passed(key)), self.tree.rank(|key| key <= one))
            }
        };
        start.min(end)..end
    }

    /// The objects in `interest`'s reach whose keys come after `after`, in key order: all that match, and others. Few
    /// others when the interest pins an indexed field's value.
    pub fn candidates<'a>(
        &'a self,
        interest: &'a Interest,
        after: Option<&'a Key>,
    ) -> Box<dyn Iterator<Item = &'a Arc<Object>> + Send + 'a> {
        let mut pinned = interest.fields.iter().filter(|term| term.equal);
        let indexed = |term: &'a FieldTerm| Some((self.index_of(term)?, term.value.as_str()));
        match (&interest.reach, pinned.find_map(indexed)) {
            (Reach::Below(prefix), Some((index, value))) => {
                Box::new(self.with_value(index, value, prefix, after))
            }
            _ => Box::new(self.range(&interest.reach, after)),
        }
    }

    /// The index of the field that `term` asks for.
    fn index_of(&self, term: &FieldTerm) -> Option<&Tree<Indexed>> {
        let field = term.field.index(&self.indexed)?;
        self.index.get(self.indexed.iter().position(|indexed| *indexed == field)?)
    }

    fn with_value<'a>(
        &'a self,
        index: &'a Tree<Indexed>,
        value: &str,
        prefix: &Key,
        after: Option<&Key>,
    ) -> impl Iterator<Item = &'a Arc<Object>> + Send + use<'a> {
        let value: Option<Arc<str>> = Some(value).filter(|value| !value.is_empty()).map(Arc::from);
        let passed = |key: &Key| after.is_some_and(|after| key <= after);
        let start =
            index.rank(|Indexed(text, key)| *text < value || *text == value && (key < prefix || passed(key)));
        let end = index.rank(|Indexed(text, key)| {
            *text < value || *text == value && (key < prefix || key.as_str().starts_with(prefix.as_str()))
        });
        index.places(start.min(end)..end).filter_map(|Indexed(_, key)| self.tree.get(key))
    }

    pub(crate) fn set_revision(&mut self, revision: Revision) {
        debug_assert!(revision >= self.revision);
        self.revision = revision;
    }

    pub(crate) fn put(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        self.bytes += object.cost_bytes();
        let previous = self.tree.insert(object.clone());
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
        self.index.iter().map(Tree::len).sum()
    }

    fn reindex(&mut self, previous: Option<&Object>, current: Option<&Object>) {
        for (index, field) in self.index.iter_mut().zip(&*self.indexed) {
            let entry = |object: &Object| {
                let value = object.field_text(*field).filter(|value| !value.is_empty());
                Indexed(value.cloned(), object.key().clone())
            };
            let (old, new) = (previous.map(entry), current.map(entry));
            if old == new {
                continue;
            }
            if let Some(old) = old {
                index.remove(&old);
            }
            if let Some(new) = new {
                index.insert(new);
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
