//! Sets of fields.
//!
//! In: paths, other sets, `fieldsV1`. Out: sets, encoded, and `fieldsV1` byte for byte as upstream writes it.
//! Never: a tree; a hash, which a client could aim at.
//!
//! Every operation is a walk over the encoded sets side by side, which writes the next one: linear in their
//! bytes, as deep as they are. ADR 62 says why.

mod filter;
mod json;
pub(crate) mod nodes;
mod typed;

use std::fmt;

pub use filter::{Filter, Matcher};
pub use json::{SetError, in_order};
pub(crate) use nodes::{Nodes, SetBuilder};

use crate::element::{Element, Path, path_text};
use nodes::Zip;

/// A set of fields: paths from the root of an object.
#[derive(Clone, Default)]
pub struct Set(pub(crate) Vec<u8>);

impl Set {
    /// Of paths, in any order. Cost: n log n.
    pub fn of_paths<'a>(paths: impl IntoIterator<Item = Vec<Element<'a>>>) -> Set {
        let mut paths: Vec<_> = paths.into_iter().collect();
        paths.sort();
        let (mut builder, mut last): (SetBuilder, Vec<Element<'_>>) = (SetBuilder::default(), Vec::new());
        for path in paths {
            builder.leave(path.iter().zip(&last).take_while(|(a, b)| a == b).count());
            builder.add(&path);
            last = path;
        }
        Set(builder.finish())
    }

    /// Of nodes that were written in order.
    pub(crate) fn of_nodes(nodes: Vec<u8>) -> Set {
        Set(nodes)
    }

    pub(crate) fn of(builder: SetBuilder) -> Set {
        Set(builder.finish())
    }

    pub(crate) fn nodes(&self) -> Nodes<'_> {
        Nodes(&self.0)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// How many fields are in it.
    pub fn size(&self) -> usize {
        fn size(nodes: Nodes<'_>) -> usize {
            nodes.map(|node| usize::from(node.member) + size(node.below)).sum()
        }
        size(self.nodes())
    }

    pub fn contains(&self, path: &Path<'_>) -> bool {
        let Some((last, above)) = path.split_last() else { return false };
        let below = above.iter().try_fold(self.nodes(), |nodes, step| Some(nodes.find(step)?.below));
        below.and_then(|nodes| nodes.find(last)).is_some_and(|node| node.member)
    }

    /// What is below an element.
    pub fn below(&self, element: &Element<'_>) -> Set {
        Set(self.nodes().find(element).map_or_else(Vec::new, |node| node.below.0.to_vec()))
    }

    /// What is in either.
    pub fn union(&self, other: &Set) -> Set {
        self.with(other, union)
    }

    /// What is in any. Cost: n log n in all of their bytes, however many they are.
    pub fn union_of(sets: &[&Set]) -> Set {
        match sets {
            [] => Set::default(),
            [one] => (*one).clone(),
            _ => {
                let (few, more) = sets.split_at(sets.len() / 2);
                Set::union_of(few).union(&Set::union_of(more))
            }
        }
    }

    /// What is in both.
    pub fn intersection(&self, other: &Set) -> Set {
        self.with(other, intersection)
    }

    /// What is in this one only; a field stays if only what is above or below it is in the other.
    pub fn difference(&self, other: &Set) -> Set {
        self.with(other, difference)
    }

    /// What is in this one only, nor below anything that is in the other.
    pub fn recursive_difference(&self, other: &Set) -> Set {
        self.with(other, recursive_difference)
    }

    fn with(&self, other: &Set, operation: fn(Nodes<'_>, Nodes<'_>, &mut Vec<u8>)) -> Set {
        let mut out = Vec::with_capacity(self.0.len());
        operation(self.nodes(), other.nodes(), &mut out);
        Set(out)
    }

    /// The fields that have none below them.
    pub fn leaves(&self) -> Set {
        let mut out = Vec::with_capacity(self.0.len());
        leaves(self.nodes(), &mut out);
        Set(out)
    }

    /// The keys of all items on its paths, as fields of them.
    pub(crate) fn keys_of_items(&self) -> Set {
        let mut out = Vec::new();
        keys_of_items(self.nodes(), Nodes::default(), &mut out);
        Set(out)
    }

    /// Calls `each` with every path of it: those of a level before those below.
    pub fn for_each(&self, mut each: impl FnMut(&Path<'_>)) {
        for_each(self.nodes(), &mut Vec::new(), &mut each);
    }
}

/// By what is in them: equal values may be encoded in different ways.
impl PartialEq for Set {
    fn eq(&self, other: &Set) -> bool {
        self.0 == other.0 || equal(self.nodes(), other.nodes())
    }
}

impl Eq for Set {}

/// A path a line.
impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        self.for_each(|path| lines.push(path_text(path)));
        f.write_str(&lines.join("\n"))
    }
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_json()))
    }
}

fn union(a: Nodes<'_>, b: Nodes<'_>, out: &mut Vec<u8>) {
    for pair in Zip::new(a, b) {
        match pair {
            (Some(a), Some(b)) => {
                // The one that the second has counts, as it does for upstream's members.
                let element = if b.member { &b.element } else { &a.element };
                nodes::write(out, element, a.member || b.member, |out| union(a.below, b.below, out));
            }
            (Some(node), None) => out.extend_from_slice(node.bytes),
            (None, Some(node)) => out.extend_from_slice(node.bytes),
            (None, None) => {}
        }
    }
}

fn intersection(a: Nodes<'_>, b: Nodes<'_>, out: &mut Vec<u8>) {
    for (a, b) in Zip::new(a, b).of_first() {
        let Some(b) = b else { continue };
        let below = |out: &mut Vec<u8>| intersection(a.below, b.below, out);
        nodes::write(out, &a.element, a.member && b.member, below);
    }
}

fn difference(a: Nodes<'_>, b: Nodes<'_>, out: &mut Vec<u8>) {
    for (a, b) in Zip::new(a, b).of_first() {
        match b {
            Some(b) => {
                let below = |out: &mut Vec<u8>| difference(a.below, b.below, out);
                nodes::write(out, &a.element, a.member && !b.member, below);
            }
            None => out.extend_from_slice(a.bytes),
        }
    }
}

fn recursive_difference(a: Nodes<'_>, b: Nodes<'_>, out: &mut Vec<u8>) {
    for (a, b) in Zip::new(a, b).of_first() {
        match b {
            Some(b) if b.member => {}
            Some(b) => {
                let below = |out: &mut Vec<u8>| recursive_difference(a.below, b.below, out);
                nodes::write(out, &a.element, a.member, below);
            }
            None => out.extend_from_slice(a.bytes),
        }
    }
}

fn leaves(nodes: Nodes<'_>, out: &mut Vec<u8>) {
    for node in nodes {
        let is_leaf = node.member && node.below.is_empty();
        nodes::write(out, &node.element, is_leaf, |out| leaves(node.below, out));
    }
}

/// - `keys`: those of the item that the nodes are in.
fn keys_of_items(nodes: Nodes<'_>, keys: Nodes<'_>, out: &mut Vec<u8>) {
    for (node, key) in Zip::new(nodes, keys) {
        let Some(element) = node.as_ref().or(key.as_ref()).map(|node| &node.element) else { continue };
        nodes::write(out, element, key.is_some(), |out| {
            let Some(node) = &node else { return };
            let mut keys = Vec::new();
            for name in node.element.key_names() {
                nodes::write(&mut keys, &Element::field(name), true, |_| ());
            }
            keys_of_items(node.below, Nodes(&keys), out);
        });
    }
}

fn equal(a: Nodes<'_>, b: Nodes<'_>) -> bool {
    Zip::new(a, b).all(|pair| match pair {
        (Some(a), Some(b)) => a.member == b.member && (a.below.0 == b.below.0 || equal(a.below, b.below)),
        _ => false,
    })
}

fn for_each<'a>(nodes: Nodes<'a>, path: &mut Vec<Element<'a>>, each: &mut impl FnMut(&Path<'_>)) {
    for node in nodes.filter(|node| node.member) {
        path.push(node.element);
        each(path);
        path.pop();
    }
    for node in nodes.filter(|node| !node.below.is_empty()) {
        path.push(node.element);
        for_each(node.below, path, each);
        path.pop();
    }
}
