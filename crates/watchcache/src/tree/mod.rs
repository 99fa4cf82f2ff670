//! An ordered collection that is cloned in O(1): a B+ tree whose nodes are shared until one of their owners
//! changes them.
//!
//! Entries carry their own keys and stand in the leaves, shoulder to shoulder, so that walking costs what
//! walking slices costs. Inner nodes know how many entries each child has and what they weigh, so that a
//! place is found by its number, and counted, in O(log n). A change copies the nodes on its way that somebody
//! else holds, and no others.
//!
//! In: entries. Out: the same, by key or by place, in either direction. Never: knows what an entry is.

mod places;

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub(crate) use places::Places;

/// What a [`Tree`] holds: found by its key, cheap to clone.
pub(crate) trait Entry: Clone {
    /// What it is found by; inner nodes keep some.
    type Key: Clone + Ord;
    fn to_key(&self) -> Self::Key;
    fn cmp_key(&self, key: &Self::Key) -> Ordering;
    /// Compares entries by their keys.
    fn cmp_entry(&self, other: &Self) -> Ordering;
    /// What it counts for in [`Sum::weight`]; never changes.
    fn weight(&self) -> usize {
        0
    }
}

/// Entries, and what they weigh together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) len: usize,
    pub(crate) weight: usize,
}

/// On which side of a key: of an entry that has it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

/// Entries of a leaf, children of an inner node. See ADR-0026 for the sizes that were tried.
#[cfg(not(test))]
pub(crate) const NODE_MAX: usize = 32;
/// Small, so that tests see trees of many levels.
#[cfg(test)]
pub(crate) const NODE_MAX: usize = 6;

/// A node that has less joins a neighbour that has room for it.
const NODE_MIN: usize = NODE_MAX / 3;

/// By how much a full vector grows: doubling would leave half of it empty.
#[cfg(not(test))]
const ROOM: usize = 4;
/// Less than a node has, so that tests see vectors grow and shrink.
#[cfg(test)]
const ROOM: usize = 2;

/// See the module's doc.
#[derive(Clone)]
pub(crate) struct Tree<E: Entry> {
    // `None` when it is empty. All leaves are at one depth, and no node is empty.
    root: Option<Arc<Node<E>>>,
    sum: Sum,
}

enum Node<E: Entry> {
    // By key, ascending, at most NODE_MAX.
    Leaf(Vec<E>),
    // The same.
    Inner(Vec<Child<E>>),
}

#[derive(Clone)]
struct Child<E: Entry> {
    // No key below is less; but for the first child of a node, where the parent's word counts.
    from: E::Key,
    sum: Sum,
    node: Arc<Node<E>>,
}

/// What became of an entry that was put below a node.
enum Put<E: Entry> {
    Replaced(E),
    Added,
    /// The node was full: this comes behind it now.
    Split {
        right: Child<E>,
        // Whether it holds nothing but what came last.
        appended: bool,
    },
}

impl<E: Entry> Default for Tree<E> {
    fn default() -> Tree<E> {
        Tree { root: None, sum: Sum::default() }
    }
}

impl<E: Entry> fmt::Debug for Tree<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("sum", &self.sum).finish_non_exhaustive()
    }
}

impl<E: Entry> Tree<E> {
    pub(crate) fn len(&self) -> usize {
        self.sum.len
    }

    /// What all entries weigh.
    pub(crate) fn weight(&self) -> usize {
        self.sum.weight
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    pub(crate) fn get(&self, key: &E::Key) -> Option<&E> {
        let mut node = &**self.root.as_ref()?;
        loop {
            match node {
                Node::Inner(children) => node = &children[child_of(children, |from| from <= key)].node,
                Node::Leaf(entries) => return find(entries, key).ok().map(|at| &entries[at]),
            }
        }
    }

    /// Puts `entry` in its place, and returns the one with its key that was there.
    pub(crate) fn insert(&mut self, entry: E) -> Option<E> {
        let weight = entry.weight();
        let Some(root) = &mut self.root else {
            let Child { node, sum, .. } = Child::leaf(vec![entry]);
            *self = Tree { root: Some(node), sum };
            return None;
        };
        let put = root.insert(entry);
        self.sum.weight += weight;
        if let Put::Replaced(old) = put {
            self.sum.weight -= old.weight();
            return Some(old);
        }
        self.sum.len += 1;
        if let Put::Split { right, .. } = put {
            let left = Child { from: root.first_key(), sum: root.sum(), node: root.clone() };
            self.root = Some(Child::inner(vec![left, right]).node);
        }
        None
    }

    pub(crate) fn remove(&mut self, key: &E::Key) -> Option<E> {
        self.get(key)?;
        let root = self.root.as_mut()?;
        let old = root.remove(key)?;
        self.sum.len -= 1;
        self.sum.weight -= old.weight();
        while let Node::Inner(children) = &**root
            && let [only] = &children[..]
        {
            *root = only.node.clone();
        }
        if root.size() == 0 {
            self.root = None;
        }
        Some(old)
    }

    /// How many entries come before this side of `key`, which need not be there. O(log n).
    pub(crate) fn rank(&self, key: &E::Key, side: Side) -> usize {
        let mut len = 0;
        let rest =
            self.descend(key, side, |passed| len += passed.iter().map(|child| child.sum.len).sum::<usize>());
        len + rest.len()
    }

    /// What these entries weigh.
    pub(crate) fn weight_before(&self, key: &E::Key, side: Side) -> usize {
        let mut weight = 0;
        let rest = self.descend(key, side, |passed| {
            weight += passed.iter().map(|child| child.sum.weight).sum::<usize>();
        });
        weight + rest.iter().map(Entry::weight).sum::<usize>()
    }

    /// Goes down to this side of `key`. Calls `pass` with the children that lie before it, and returns those
    /// entries of its leaf that do.
    fn descend<'a>(&'a self, key: &E::Key, side: Side, mut pass: impl FnMut(&'a [Child<E>])) -> &'a [E] {
        let Some(mut node) = self.root.as_deref() else { return &[] };
        loop {
            match node {
                Node::Inner(children) => {
                    let at = child_of(children, |from| side.is_after(from.cmp(key)));
                    pass(&children[..at]);
                    node = &children[at].node;
                }
                Node::Leaf(entries) => {
                    return &entries[..entries.partition_point(|entry| side.is_after(entry.cmp_key(key)))];
                }
            }
        }
    }

    /// The entries at these places, in order, from either end.
    pub(crate) fn places(&self, places: Range<usize>) -> Places<'_, E> {
        assert!(places.start <= places.end && places.end <= self.len(), "{places:?} of {}", self.len());
        Places::new(self.root.as_deref(), places)
    }

    #[cfg(test)]
    pub(crate) fn check(&self) {
        if let Some(root) = &self.root {
            let (_, sum) = root.check(None, None);
            assert_eq!(sum, self.sum);
            assert!(!matches!(&**root, Node::Inner(children) if children.len() == 1), "a root of one child");
        } else {
            assert_eq!(self.sum, Sum::default());
        }
    }
}

impl Side {
    /// Whether this side of a key comes after what compares so with it.
    fn is_after(self, ordering: Ordering) -> bool {
        match self {
            Side::Before => ordering.is_lt(),
            Side::After => ordering.is_le(),
        }
    }
}

impl Sum {
    fn one<E: Entry>(entry: &E) -> Sum {
        Sum { len: 1, weight: entry.weight() }
    }

    fn add(&mut self, other: Sum) {
        self.len += other.len;
        self.weight += other.weight;
    }
}

impl<E: Entry> Child<E> {
    fn leaf(entries: Vec<E>) -> Child<E> {
        Child::new(Node::Leaf(entries))
    }

    fn inner(children: Vec<Child<E>>) -> Child<E> {
        Child::new(Node::Inner(children))
    }

    fn new(node: Node<E>) -> Child<E> {
        Child { from: node.first_key(), sum: node.sum(), node: Arc::new(node) }
    }
}

/// The copy that a change makes has room for what is added.
impl<E: Entry> Clone for Node<E> {
    fn clone(&self) -> Node<E> {
        match self {
            Node::Leaf(entries) => Node::Leaf(with_room(entries)),
            Node::Inner(children) => Node::Inner(with_room(children)),
        }
    }
}

impl<E: Entry> Node<E> {
    fn size(&self) -> usize {
        match self {
            Node::Leaf(entries) => entries.len(),
            Node::Inner(children) => children.len(),
        }
    }

    fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        match self {
            Node::Leaf(entries) => entries.iter().for_each(|entry| sum.add(Sum::one(entry))),
            Node::Inner(children) => children.iter().for_each(|child| sum.add(child.sum)),
        }
        sum
    }

    fn first_key(&self) -> E::Key {
        match self {
            Node::Leaf(entries) => entries[0].to_key(),
            Node::Inner(children) => children[0].from.clone(),
        }
    }
}

/// What changes a node, copied first if it is shared.
trait Change<E: Entry> {
    fn insert(&mut self, entry: E) -> Put<E>;
    fn remove(&mut self, key: &E::Key) -> Option<E>;
}

impl<E: Entry> Change<E> for Arc<Node<E>> {
    fn insert(&mut self, entry: E) -> Put<E> {
        match Arc::make_mut(self) {
            Node::Leaf(entries) => match entries.binary_search_by(|other| other.cmp_entry(&entry)) {
                Ok(at) => Put::Replaced(std::mem::replace(&mut entries[at], entry)),
                Err(at) => match add(entries, at, entry, at == entries.len()) {
                    Some((right, appended)) => Put::Split { right: Child::leaf(right), appended },
                    None => Put::Added,
                },
            },
            Node::Inner(children) => insert_below(children, entry),
        }
    }

    fn remove(&mut self, key: &E::Key) -> Option<E> {
        match Arc::make_mut(self) {
            Node::Leaf(entries) => {
                let old = entries.remove(find(entries, key).ok()?);
                shrink(entries);
                Some(old)
            }
            Node::Inner(children) => {
                let at = child_of(children, |from| from <= key);
                let child = &mut children[at];
                let old = child.node.remove(key)?;
                child.sum.len -= 1;
                child.sum.weight -= old.weight();
                if child.sum.len == 0 {
                    children.remove(at);
                } else if child.node.size() < NODE_MIN {
                    join(children, at);
                }
                shrink(children);
                Some(old)
            }
        }
    }
}

fn insert_below<E: Entry>(children: &mut Vec<Child<E>>, entry: E) -> Put<E> {
    let mut at = child_of(children, |from| entry.cmp_key(from).is_ge());
    // What would be appended to a full leaf goes to the front of the next, if that has room: else entries
    // that come in descending order right behind a full leaf would each get a leaf of its own.
    if let [this, next, ..] = &mut children[at..]
        && let (Node::Leaf(entries), Node::Leaf(after)) = (&*this.node, &*next.node)
        && entries.len() == NODE_MAX
        && after.len() < NODE_MAX
        && entries.last().is_some_and(|last| last.cmp_entry(&entry).is_lt())
    {
        next.from = entry.to_key();
        at += 1;
    }
    let child = &mut children[at];
    child.sum.weight += entry.weight();
    match child.node.insert(entry) {
        Put::Replaced(old) => {
            child.sum.weight -= old.weight();
            Put::Replaced(old)
        }
        Put::Added => {
            child.sum.len += 1;
            Put::Added
        }
        Put::Split { right, appended } => {
            child.sum = child.node.sum();
            match add(children, at + 1, right, appended) {
                Some((right, appended)) => Put::Split { right: Child::inner(right), appended },
                None => Put::Added,
            }
        }
    }
}

/// Adds `item` at `at`. If there is no room, what comes last goes off: `item` alone if it was appended, so
/// that what comes in order fills its nodes, else half.
fn add<T>(items: &mut Vec<T>, at: usize, item: T, appended: bool) -> Option<(Vec<T>, bool)> {
    if items.len() < NODE_MAX {
        make_room(items);
        items.insert(at, item);
        return None;
    }
    if appended && at == items.len() {
        return Some((vec![item], true));
    }
    let half = items.len() / 2;
    let mut right = items.split_off(half);
    shrink(items);
    if at <= half {
        make_room(items);
        items.insert(at, item);
    } else {
        make_room(&mut right);
        right.insert(at - half, item);
    }
    Some((right, false))
}

/// Puts the small child at `at` and a neighbour into one node, if they fit with room to spare.
fn join<E: Entry>(children: &mut Vec<Child<E>>, at: usize) {
    let fits = |left: usize| {
        let pair = children.get(left..left + 2)?;
        (pair[0].node.size() + pair[1].node.size() <= NODE_MAX - NODE_MIN).then_some(left)
    };
    let Some(left) = fits(at).or_else(|| fits(at.checked_sub(1)?)) else { return };
    let right = children.remove(left + 1);
    let into = &mut children[left];
    into.sum.add(right.sum);
    match (Arc::make_mut(&mut into.node), Arc::unwrap_or_clone(right.node)) {
        (Node::Leaf(entries), Node::Leaf(more)) => entries.extend(more),
        (Node::Inner(children), Node::Inner(mut more)) => {
            // It is no longer the first of its node.
            more[0].from = right.from;
            children.extend(more);
        }
        _ => unreachable!("all leaves are at one depth"),
    }
}

/// Which child has the place up to which `before` holds.
fn child_of<E: Entry>(children: &[Child<E>], before: impl Fn(&E::Key) -> bool) -> usize {
    children.partition_point(|child| before(&child.from)).saturating_sub(1)
}

fn find<E: Entry>(entries: &[E], key: &E::Key) -> Result<usize, usize> {
    entries.binary_search_by(|entry| entry.cmp_key(key))
}

fn with_room<T: Clone>(items: &[T]) -> Vec<T> {
    let mut copy = Vec::with_capacity((items.len() + 1).min(NODE_MAX));
    copy.extend_from_slice(items);
    copy
}

fn make_room<T>(items: &mut Vec<T>) {
    if items.len() == items.capacity() {
        items.reserve_exact(ROOM.min(NODE_MAX - items.len()));
    }
}

fn shrink<T>(items: &mut Vec<T>) {
    if items.len() + 2 * ROOM < items.capacity() {
        items.shrink_to(items.len() + 1);
    }
}

#[cfg(test)]
impl<E: Entry> Node<E> {
    /// The depth of its leaves, and its sum.
    fn check(&self, from: Option<&E::Key>, to: Option<&E::Key>) -> (usize, Sum) {
        assert!((1..=NODE_MAX).contains(&self.size()), "{} in a node", self.size());
        let room = match self {
            Node::Leaf(entries) => entries.capacity(),
            Node::Inner(children) => children.capacity(),
        };
        assert!(
            room <= NODE_MAX.min(self.size() + 2 * ROOM),
            "room for {room}, of which {} is needed",
            self.size()
        );
        let within = |key: &E::Key| from.is_none_or(|from| from <= key) && to.is_none_or(|to| key < to);
        match self {
            Node::Leaf(entries) => {
                assert!(entries.is_sorted_by(|one, next| one.cmp_entry(next).is_lt()), "out of order");
                assert!(entries.iter().all(|entry| within(&entry.to_key())), "where it would not be found");
                (1, self.sum())
            }
            Node::Inner(children) => {
                let depths: Vec<usize> = (0..children.len())
                    .map(|at| {
                        let from = if at == 0 { from } else { Some(&children[at].from) };
                        let to = children.get(at + 1).map(|next| &next.from).or(to);
                        let (depth, sum) = children[at].node.check(from, to);
                        assert_eq!(sum, children[at].sum);
                        depth
                    })
                    .collect();
                assert!(depths.windows(2).all(|pair| pair[0] == pair[1]), "leaves at {depths:?}");
                (depths[0] + 1, self.sum())
            }
        }
    }
}

#[cfg(test)]
impl<E: Entry> Tree<E> {
    pub(crate) fn leaves(&self) -> usize {
        fn below<E: Entry>(node: &Node<E>) -> usize {
            match node {
                Node::Leaf(_) => 1,
                Node::Inner(children) => children.iter().map(|child| below(&child.node)).sum(),
            }
        }
        self.root.as_deref().map_or(0, below)
    }
}
