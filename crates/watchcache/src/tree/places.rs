//! The walk over a part of a tree, from either end.

use std::ops::Range;

use super::{Child, Entry, Node};

/// A walk over a part of a tree. See [`Tree::places`].
pub(crate) struct Places<'a, E: Entry> {
    root: Option<&'a Node<E>>,
    // The places that are still to come.
    places: Range<usize>,
    front: Option<Path<'a, E>>,
    back: Option<Path<'a, E>>,
}

/// What lies on one side of a place: of its leaf, and of each node above, the outermost first.
struct Path<'a, E: Entry> {
    above: Vec<&'a [Child<E>]>,
    leaf: &'a [E],
}

impl<'a, E: Entry> Places<'a, E> {
    pub(super) fn new(root: Option<&'a Node<E>>, places: Range<usize>) -> Places<'a, E> {
        Places { root, places, front: None, back: None }
    }
}

impl<'a, E: Entry> Path<'a, E> {
    /// What comes at `place` and after it.
    fn after(mut node: &'a Node<E>, mut place: usize) -> Path<'a, E> {
        let mut above = Vec::new();
        loop {
            match node {
                Node::Inner(children) => {
                    let at = children.iter().position(|child| {
                        let here = place < child.sum.len;
                        place -= if here { 0 } else { child.sum.len };
                        here
                    });
                    let at = at.unwrap_or(children.len() - 1);
                    above.push(&children[at + 1..]);
                    node = &children[at].node;
                }
                Node::Leaf(entries) => return Path { above, leaf: &entries[place.min(entries.len())..] },
            }
        }
    }

    /// What comes before `place`.
    fn before(mut node: &'a Node<E>, mut place: usize) -> Path<'a, E> {
        let mut above = Vec::new();
        loop {
            match node {
                Node::Inner(children) => {
                    let at = children.iter().position(|child| {
                        let here = place <= child.sum.len;
                        place -= if here { 0 } else { child.sum.len };
                        here
                    });
                    let at = at.unwrap_or(children.len() - 1);
                    above.push(&children[..at]);
                    node = &children[at].node;
                }
                Node::Leaf(entries) => return Path { above, leaf: &entries[..place.min(entries.len())] },
            }
        }
    }

    fn next(&mut self) -> Option<&'a E> {
        loop {
            if let Some((first, rest)) = self.leaf.split_first() {
                self.leaf = rest;
                return Some(first);
            }
            let (child, rest) = loop {
                match self.above.pop()?.split_first() {
                    Some(next) => break next,
                    None => continue,
                }
            };
            self.above.push(rest);
            let mut node = &*child.node;
            while let Node::Inner(children) = node {
                self.above.push(&children[1..]);
                node = &children[0].node;
            }
            if let Node::Leaf(entries) = node {
                self.leaf = entries;
            }
        }
    }

    fn next_back(&mut self) -> Option<&'a E> {
        loop {
            if let Some((last, rest)) = self.leaf.split_last() {
                self.leaf = rest;
                return Some(last);
            }
            let (child, rest) = loop {
                match self.above.pop()?.split_last() {
                    Some(next) => break next,
                    None => continue,
                }
            };
            self.above.push(rest);
            let mut node = &*child.node;
            while let Node::Inner(children) = node
                && let Some((last, rest)) = children.split_last()
            {
                self.above.push(rest);
                node = &last.node;
            }
            if let Node::Leaf(entries) = node {
                self.leaf = entries;
            }
        }
    }
}

impl<'a, E: Entry> Iterator for Places<'a, E> {
    type Item = &'a E;

    fn next(&mut self) -> Option<&'a E> {
        let place = self.places.next()?;
        let root = self.root?;
        self.front.get_or_insert_with(|| Path::after(root, place)).next()
    }

    fn nth(&mut self, skip: usize) -> Option<&'a E> {
        if skip > 0 {
            self.places.start = self.places.start.saturating_add(skip).min(self.places.end);
            self.front = None;
        }
        self.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.places.size_hint()
    }
}

impl<E: Entry> DoubleEndedIterator for Places<'_, E> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let place = self.places.next_back()?;
        let root = self.root?;
        self.back.get_or_insert_with(|| Path::before(root, place + 1)).next_back()
    }
}

impl<E: Entry> ExactSizeIterator for Places<'_, E> {}
