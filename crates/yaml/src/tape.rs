//! A document in YAML, read and not yet written out.
//!
//! In: nodes in the order in which they stand. Out: what stands at a place, and what is in it. An alias is
//! the number of another place, before its own. Never: recurses; drops more than two rows.

use std::ops::Range;

/// What was read, in the order in which it stands: what is in a collection follows it. Texts are JSON.
pub(super) struct Tape {
    pub(super) nodes: Vec<Node>, // <= NODES_MAX
    /// The line that each node begins in, from 1.
    pub(super) lines: Vec<u32>,
    pub(super) texts: Vec<u8>,
}

/// A place among the nodes, or the texts, of a tape: a body is shorter than 4 GiB.
pub(super) type Place = u32;

#[derive(Clone, Copy)]
pub(super) enum Node {
    Scalar(Text),
    /// Items, up to `end`.
    Sequence {
        end: Place,
    },
    /// A key and a value in turn, up to `end`.
    Mapping {
        end: Place,
        merges: bool,
    },
    /// What stands at another place, before this one.
    Alias(Place),
    /// A key: the name that it becomes, and the scalar that it is, which an alias of it means.
    Key {
        name: Text,
        scalar: Text,
    },
    /// The key `<<`.
    Merge,
}

/// See [`Node::Key`].
#[derive(Clone, Copy)]
pub(super) struct Key {
    pub(super) name: Text,
    pub(super) scalar: Text,
}

/// Where a text stands among the texts.
#[derive(Clone, Copy)]
pub(super) struct Text {
    pub(super) from: Place,
    pub(super) to: Place,
}

impl Tape {
    pub fn text(&self, text: Text) -> &[u8] {
        &self.texts[text.from as usize..text.to as usize]
    }

    /// What an alias at a place stands for, which is never an alias; another node is itself.
    pub fn followed(&self, place: Place) -> Place {
        match self.nodes[place as usize] {
            Node::Alias(target) => target,
            _ => place,
        }
    }

    /// The scalar at a place.
    pub fn scalar(&self, place: Place) -> Option<Text> {
        match self.nodes[self.followed(place) as usize] {
            Node::Scalar(text) | Node::Key { scalar: text, .. } => Some(text),
            _ => None,
        }
    }

    /// The place behind a node.
    pub fn end(&self, place: Place) -> Place {
        match self.nodes[place as usize] {
            Node::Sequence { end } | Node::Mapping { end, .. } => end,
            Node::Scalar(_) | Node::Alias(_) | Node::Key { .. } | Node::Merge => place + 1,
        }
    }

    /// The items of a sequence.
    pub fn items(&self, within: Range<Place>) -> impl Iterator<Item = Place> + '_ {
        let mut at = within.start;
        std::iter::from_fn(move || {
            let item = (at < within.end).then_some(at)?;
            at = self.end(item);
            Some(item)
        })
    }

    /// The members of a mapping: the key of each, none for a `<<`, and where its value stands.
    pub fn members(&self, within: Range<Place>) -> impl Iterator<Item = (Option<Key>, Place)> + '_ {
        let mut at = within.start;
        std::iter::from_fn(move || {
            let key = match self.nodes[(at < within.end).then_some(at)? as usize] {
                Node::Key { name, scalar } => Some(Key { name, scalar }),
                _ => None,
            };
            let value = at + 1;
            at = self.end(value);
            Some((key, value))
        })
    }
}
