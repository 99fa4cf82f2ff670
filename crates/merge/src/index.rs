//! A set that many others are held against.
//!
//! In: a set. Out: what others have in common with it, and what they have beside it. Never: outlives the set;
//! walks over what the others do not have, so that many small sets cost what they are long, however long this
//! is.

use crate::set::Set;
use crate::set::nodes::{self, Node, Nodes};

/// A set whose levels are lists.
pub struct Index<'s>(Vec<Indexed<'s>>);

struct Indexed<'s> {
    node: Node<'s>,
    below: Index<'s>,
}

impl<'s> Index<'s> {
    /// Cost: linear in the set, and [`Index::bytes_of`] memory.
    pub fn of(set: &'s Set) -> Index<'s> {
        Index::of_nodes(set.nodes())
    }

    fn of_nodes(nodes: Nodes<'s>) -> Index<'s> {
        Index(nodes.map(|node| Indexed { below: Index::of_nodes(node.below), node }).collect())
    }

    /// Bytes that the index of a set takes, from above: a list may have room for as much as it has.
    pub fn bytes_of(set: &Set) -> usize {
        fn count(nodes: Nodes<'_>) -> usize {
            nodes.map(|node| 1 + count(node.below)).sum()
        }
        // The first of a list has room for four.
        4 * count(set.nodes()) * size_of::<Indexed<'_>>()
    }

    /// What `set` has in common with it. Cost: n log m in `set` and this.
    pub fn intersection(&self, set: &Set) -> Set {
        let mut out = Vec::new();
        self.write_common(set.nodes(), &mut out);
        Set(out)
    }

    /// What `set` has beside it. Cost: as [`Index::intersection`].
    pub fn taken_from(&self, set: &Set) -> Set {
        let mut out = Vec::with_capacity(set.bytes());
        self.write_rest(set.nodes(), &mut out);
        Set(out)
    }

    fn find(&self, node: &Node<'_>) -> Option<&Indexed<'s>> {
        let at = self.0.binary_search_by(|indexed| indexed.node.element.cmp(&node.element)).ok()?;
        Some(&self.0[at])
    }

    fn write_common(&self, nodes: Nodes<'_>, out: &mut Vec<u8>) {
        for node in nodes {
            let Some(own) = self.find(&node) else { continue };
            let is_member = node.member && own.node.member;
            nodes::write(out, &node.element, is_member, |out| own.below.write_common(node.below, out));
        }
    }

    fn write_rest(&self, nodes: Nodes<'_>, out: &mut Vec<u8>) {
        for node in nodes {
            match self.find(&node) {
                Some(own) => {
                    let is_member = node.member && !own.node.member;
                    nodes::write(out, &node.element, is_member, |out| own.below.write_rest(node.below, out));
                }
                None => out.extend_from_slice(node.bytes),
            }
        }
    }
}
