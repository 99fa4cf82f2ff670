//! The state of one resource at one revision: immutable, ordered by key, cloned in O(1), with the keys of
//! each value of the indexed fields beside it.

use std::ops::Range;
use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_object::Object;

use crate::entries::ByField;
use crate::error::ReadError;
use crate::event::Event;
use crate::interest::{FieldTerm, Interest, Reach};
use crate::tree::{Entry, Side, Tree};
use crate::unreadable::{Undecrypted, Unreadable};

/// A resource's objects at a revision. Pins its tree until dropped.
#[derive(Clone, Debug)]
pub struct Snapshot {
    revision: Revision,
    // The number of the filling of the cache that this state comes from.
    fill: u64,
    tree: Tree<Arc<Object>>,
    // For each field in `indexed`, the tree's objects by the field's value. Changes with the tree.
    index: Vec<Tree<ByField>>,
    // Which of the layout's fields.
    indexed: Arc<[usize]>,
    held: Held,
    unreadable: Unreadable,
    // Bytes in plain form that may be put at rest.
    loose: usize,
}

/// Bytes that the objects of a state take, by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Bodies as they go on the wire.
    pub plain: usize,
    /// Bodies at rest: their parts of blocks.
    pub blocks: usize,
    /// Keys, labels, fields, and the objects themselves.
    pub headers: usize,
    /// Their places in the tree and in the indexes: about 12 and 24 bytes, of nodes that are three quarters
    /// full.
    pub places: usize,
}

/// Bytes of a state's objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtRest {
    /// In plain form, of those at rest, and of all.
    pub(crate) plain: usize,
    pub(crate) of_plain: usize,
    /// As they are at rest.
    pub(crate) deflated: usize,
}

impl Held {
    fn of(object: &Object) -> Held {
        let headers = object.header_bytes();
        let body = object.cost_bytes() - headers;
        let (plain, blocks) = if object.is_sealed() { (0, body) } else { (body, 0) };
        Held { plain, blocks, headers, places: 0 }
    }

    /// All of it.
    pub fn total(&self) -> usize {
        self.plain + self.blocks + self.headers + self.places
    }

    fn add(&mut self, object: &Object) {
        let Held { plain, blocks, headers, .. } = Held::of(object);
        self.plain += plain;
        self.blocks += blocks;
        self.headers += headers;
    }

    fn subtract(&mut self, object: &Object) {
        let Held { plain, blocks, headers, .. } = Held::of(object);
        self.plain -= plain;
        self.blocks -= blocks;
        self.headers -= headers;
    }
}

const TREE_PLACE_BYTES: usize = 12;
const INDEX_PLACE_BYTES: usize = 24;

impl Snapshot {
    pub(crate) fn new(revision: Revision, fill: u64, indexed: Arc<[usize]>) -> Snapshot {
        let index = indexed.iter().map(|_| Tree::default()).collect();
        let (tree, held, unreadable) = Default::default();
        Snapshot { revision, fill, tree, index, indexed, held, unreadable, loose: 0 }
    }

    /// The revision up to which it holds every change.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether both come from the same filling of the cache, so that their revisions are of one history.
    pub(crate) fn shares_history(&self, other: &Snapshot) -> bool {
        self.fill == other.fill
    }

    /// Whether it is of the same history as `other`, and no older.
    pub fn follows(&self, other: &Snapshot) -> bool {
        self.shares_history(other) && self.revision >= other.revision
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
        self.held.total()
    }

    /// What it takes, by what it is. Counted as it changes.
    pub fn held(&self) -> Held {
        let places = TREE_PLACE_BYTES + INDEX_PLACE_BYTES * self.index.len();
        Held { places: places * self.len(), ..self.held }
    }

    /// Bytes of the objects in it that are in plain form and may be put at rest.
    pub(crate) fn loose_bytes(&self) -> usize {
        self.loose
    }

    pub fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.tree.get(key)
    }

    /// Whether something may be there at `key` that cannot be read, which it does not show.
    pub fn may_hide(&self, key: &Key) -> bool {
        self.unreadable.may_have(key)
    }

    /// The keys of `reach` whose values cannot be read, as far as they are known.
    pub fn unreadable<'a>(&'a self, reach: &'a Reach) -> impl Iterator<Item = &'a Key> {
        self.unreadable.within(reach)
    }

    /// Whether there may be such a value within `reach`.
    pub fn may_have_unreadable(&self, reach: &Reach) -> bool {
        self.unreadable.may_have_within(reach)
    }

    /// Whether there may be a value at `key` that cannot be decrypted. What the state has there is then an
    /// earlier one: it was not deleted.
    pub fn may_be_undecrypted(&self, key: &Key) -> bool {
        self.unreadable.may_be_undecrypted(key)
    }

    /// Lets through what reads all of `reach`.
    ///
    /// # Errors
    /// [`ReadError::Undecrypted`] when there may be a value in it that cannot be decrypted.
    pub fn check_decrypted(&self, reach: &Reach) -> Result<(), ReadError> {
        self.unreadable.check_decrypted(reach)
    }

    /// What it knows of values that cannot be read.
    pub(crate) fn unread(&self) -> &Unreadable {
        &self.unreadable
    }

    /// How many values cannot be read, as far as they are known.
    pub fn unreadable_len(&self) -> usize {
        self.unreadable.len()
    }

    /// The objects in `reach` whose keys come after `after`, in key order, from either end. O(log n) to
    /// begin, or to skip; how many they are is known.
    pub fn range<'a>(
        &'a self,
        reach: &Reach,
        after: Option<&Key>,
    ) -> impl DoubleEndedIterator<Item = &'a Arc<Object>> + ExactSizeIterator + Send + use<'a> {
        self.tree.places(self.places(reach, after))
    }

    /// How many bytes the objects of [`Snapshot::range`] have in plain form. O(log n).
    pub fn plain_bytes(&self, reach: &Reach, after: Option<&Key>) -> usize {
        let ((start, side), (end, end_side)) = ends(reach, after);
        let upto = self.tree.weight_before(&end, end_side);
        upto.saturating_sub(self.tree.weight_before(&start, side))
    }

    /// How much of it is at rest.
    pub(crate) fn at_rest(&self) -> AtRest {
        let of_plain = self.tree.weight();
        let plain = of_plain.saturating_sub(self.held.plain);
        // What is held is whole buffers, which are a tenth longer than what is in them.
        AtRest { plain, deflated: self.held.blocks / 11 * 10, of_plain }
    }

    /// Objects that a read of `interest` looks at, no more than `count`, one of each of as many equal parts;
    /// and how many all of them are. O(log n) for each.
    pub(crate) fn sample<'a>(
        &'a self,
        interest: &Interest,
        count: usize,
    ) -> (usize, Box<dyn Iterator<Item = &'a Arc<Object>> + 'a>) {
        let indexed = self.indexed_term(interest);
        match indexed.and_then(|term| Some((self.index_of(term)?, term))) {
            Some((index, term)) => {
                let places = index.places(places_of(index, &term.value, &interest.reach, None));
                (places.len(), Box::new(one_of_each(places, count).map(|entry| &entry.object)))
            }
            None => {
                let all = self.range(&interest.reach, None);
                (all.len(), Box::new(one_of_each(all, count)))
            }
        }
    }

    /// Where in the tree the objects of `reach` are.
    fn places(&self, reach: &Reach, after: Option<&Key>) -> Range<usize> {
        let ((start, side), (end, end_side)) = ends(reach, after);
        let end = self.tree.rank(&end, end_side);
        self.tree.rank(&start, side).min(end)..end
    }

    /// The objects in `interest`'s reach whose keys come after `after`, in key order: all that match, and
    /// others. Few others when the interest pins an indexed field's value.
    pub fn candidates<'a>(
        &'a self,
        interest: &'a Interest,
        after: Option<&'a Key>,
    ) -> Box<dyn Iterator<Item = &'a Arc<Object>> + Send + 'a> {
        match self.indexed_term(interest).and_then(|term| Some((self.index_of(term)?, term))) {
            Some((index, term)) => Box::new(self.with_value(index, &term.value, &interest.reach, after)),
            None => Box::new(self.range(&interest.reach, after)),
        }
    }

    /// What `interest` asks of a field that there is an index of, if it does.
    pub fn indexed_term<'a>(&self, interest: &'a Interest) -> Option<&'a FieldTerm> {
        let Reach::Below(_) = interest.reach else { return None };
        interest.fields.iter().find(|term| term.equal && self.index_of(term).is_some())
    }

    /// The index of the field that `term` asks for.
    fn index_of(&self, term: &FieldTerm) -> Option<&Tree<ByField>> {
        let field = term.field.index(&self.indexed)?;
        self.index.get(self.indexed.iter().position(|indexed| *indexed == field)?)
    }

    fn with_value<'a>(
        &'a self,
        index: &'a Tree<ByField>,
        value: &str,
        reach: &Reach,
        after: Option<&Key>,
    ) -> impl Iterator<Item = &'a Arc<Object>> + Send + use<'a> {
        index.places(places_of(index, value, reach, after)).map(|entry| &entry.object)
    }

    /// How many objects come before the one at `key`, if there is one. O(log n).
    pub(crate) fn place_of(&self, key: &Key) -> Option<usize> {
        self.tree.get(key)?;
        Some(self.tree.rank(key, Side::Before))
    }

    /// The object that so many others come before. O(log n).
    pub(crate) fn at_place(&self, place: usize) -> Option<&Arc<Object>> {
        self.tree.places(place.min(self.len())..self.len()).next()
    }

    /// Which filling of the cache it comes from.
    pub(crate) fn fill(&self) -> u64 {
        self.fill
    }

    /// The same as the state of another filling, at its revision.
    pub(crate) fn begun_at(self, revision: Revision, fill: u64) -> Snapshot {
        Snapshot { revision, fill, ..self }
    }

    /// The objects from `key` on, and the ones before it, backwards.
    pub(crate) fn around(
        &self,
        key: &Key,
    ) -> (impl Iterator<Item = &Arc<Object>>, impl Iterator<Item = &Arc<Object>>) {
        let place = self.tree.rank(key, Side::Before);
        (self.tree.places(place..self.len()), self.tree.places(0..place).rev())
    }

    /// Puts another form of an object in its place, if it is still there.
    pub(crate) fn replace(&mut self, old: &Arc<Object>, new: Arc<Object>) -> bool {
        let is_there = self.tree.get(old.key()).is_some_and(|there| Arc::ptr_eq(there, old));
        if is_there {
            self.put(new);
        }
        is_there
    }

    pub(crate) fn set_revision(&mut self, revision: Revision) {
        debug_assert!(revision >= self.revision);
        self.revision = revision;
    }

    pub(crate) fn put(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        let previous = self.place(object.clone());
        self.reindex(previous.as_ref(), Some(&object));
        previous
    }

    /// Puts an object in its place; nobody finds it by a field before [`Snapshot::with_indexes`].
    pub(crate) fn place(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        self.held.add(&object);
        self.unreadable.forget(object.key());
        self.loose += object.loose_bytes();
        let previous = self.tree.insert(object);
        previous.iter().for_each(|object| self.leaves(object));
        previous
    }

    /// The same with indexes of all objects. All at once costs a fraction of what they cost one by one, each
    /// of which is looked for among those that are elsewhere in memory.
    pub(crate) fn with_indexes(mut self) -> Snapshot {
        for (index, &field) in self.index.iter_mut().zip(&*self.indexed) {
            let all = self.tree.places(0..self.tree.len());
            let mut by_value: Vec<_> =
                all.map(|object| (object.field(field).unwrap_or(""), object)).collect();
            // Those of one value stay in the order of their keys.
            by_value.sort_by_key(|(value, _)| *value);
            *index = Tree::default();
            for (_, object) in by_value {
                index.insert(ByField { object: object.clone(), field });
            }
        }
        self
    }

    /// Notes that what is at `key` cannot be read.
    pub(crate) fn note_unreadable(&mut self, key: Key) {
        self.unreadable.note(key);
    }

    /// Notes that what is at `key` cannot be decrypted: what it has there stays.
    pub(crate) fn note_undecrypted(&mut self, key: Key, what: Undecrypted) {
        self.unreadable.note_undecrypted(key, what);
    }

    /// Forgets which values cannot be read: all of the state is read again.
    pub(crate) fn forget_unreadable(&mut self) {
        self.unreadable = Unreadable::default();
    }

    /// Notes that nothing is at `key`.
    pub(crate) fn note_gone(&mut self, key: &Key) {
        self.unreadable.forget(key);
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Arc<Object>> {
        let previous = self.tree.remove(key);
        previous.iter().for_each(|object| self.leaves(object));
        self.reindex(previous.as_ref(), None);
        previous
    }

    fn leaves(&mut self, object: &Object) {
        self.held.subtract(object);
        self.loose -= object.loose_bytes();
    }

    /// Entries of the index: one for each object and indexed field.
    #[cfg(test)]
    pub(crate) fn index_len(&self) -> usize {
        self.index.iter().map(Tree::len).sum()
    }

    fn reindex(&mut self, previous: Option<&Arc<Object>>, current: Option<&Arc<Object>>) {
        for (index, &field) in self.index.iter_mut().zip(&*self.indexed) {
            let entry = |object: &Arc<Object>| ByField { object: object.clone(), field };
            let (old, new) = (previous.map(entry), current.map(entry));
            if let Some(old) = &old
                && new.as_ref().is_none_or(|new| old.cmp_entry(new).is_ne())
            {
                index.remove(&old.to_key());
            }
            if let Some(new) = new {
                index.insert(new);
            }
        }
    }

    /// Undoes `events`, newest first, which led to this state.
    pub(crate) fn undo(&mut self, events: &[Arc<Event>]) {
        for event in events {
            match (&event.previous, &event.current) {
                (Some(previous), _) => drop(self.put(previous.clone())),
                (None, Some(current)) => drop(self.remove(current.key())),
                (None, None) => {}
            }
            let Some(hidden) = &event.hidden else { continue };
            match (&event.previous, &event.current, &hidden.shown) {
                (None, None, Some(shown)) => drop(self.put(shown.clone())),
                (None, None, None) => drop(self.remove(&hidden.key)),
                _ => {}
            }
            match &hidden.before {
                Some(before) => self.note_undecrypted(hidden.key.clone(), before.clone()),
                None => self.unreadable.forget(&hidden.key),
            }
        }
    }

    /// This is the state at `revision`, as all that came after it was undone.
    pub(crate) fn went_back_to(&mut self, revision: Revision) {
        debug_assert!(revision <= self.revision);
        self.revision = revision;
    }
}

/// One of each of `count` equal parts; all, where they are fewer. Now from here, now from there in a part:
/// what is labelled in turn would be found always or never at equal distances.
fn one_of_each<T>(mut all: impl ExactSizeIterator<Item = T>, count: usize) -> impl Iterator<Item = T> {
    let (len, mut part, mut passed) = (all.len(), 0, 0);
    let parts = count.min(len);
    std::iter::from_fn(move || {
        if part == parts {
            return None;
        }
        let (begin, end) = (part * len / parts, (part + 1) * len / parts);
        // The golden ratio of 64 bits: its multiples are spread over all of them.
        let scattered = (part as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let place = begin + scattered as usize % (end - begin);
        let skip = place - passed;
        (part, passed) = (part + 1, place + 1);
        all.nth(skip)
    })
}

/// Where in an index the objects of `reach` are that have `value`.
fn places_of(index: &Tree<ByField>, value: &str, reach: &Reach, after: Option<&Key>) -> Range<usize> {
    let ((start, side), (end, end_side)) = ends(reach, after);
    let end = index.rank(&(value.into(), end), end_side);
    index.rank(&(value.into(), start), side).min(end)..end
}

/// Where the keys of `reach` that come after `after` begin and end.
fn ends(reach: &Reach, after: Option<&Key>) -> ((Key, Side), (Key, Side)) {
    let (first, end) = match reach {
        Reach::Below(prefix) => (prefix, (behind(prefix), Side::Before)),
        Reach::One(one) => (one, (one.clone(), Side::After)),
    };
    match after {
        Some(after) if after >= first => ((after.clone(), Side::After), end),
        _ => ((first.clone(), Side::Before), end),
    }
}

/// The least key that comes after all that begin with `prefix`.
fn behind(prefix: &Key) -> Key {
    let mut text = prefix.as_str().to_string();
    // A prefix ends with a slash.
    let last = text.pop().map_or('\0', |last| char::from_u32(u32::from(last) + 1).unwrap_or(char::MAX));
    text.push(last);
    Key::from(text)
}
