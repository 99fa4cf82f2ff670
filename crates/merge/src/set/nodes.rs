//! The encoded form of a set: siblings, in order, each with what is below it.
//!
//! In: elements in order. Out: bytes, and a walk over them that builds nothing. Never: reads bytes that were
//! not written here.
//!
//! A node is a byte (the element's kind, whether it is in the set, whether there is more below it), the
//! length of the element, the element, and, if there is more, the length of that in four bytes and the nodes.
//! Every node is in the set or has one below it that is: what is empty is not written. A level is passed over
//! without being looked at.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::iter::Peekable;

use forebay_apimachinery::{steps, varint};

use crate::element::{Element, ElementKind};

const KIND: u8 = 0b111;
const MEMBER: u8 = 0b1000;
const BELOW: u8 = 0b1_0000;

/// Bytes of the length of what is below.
const LENGTH: usize = 4;

/// One level of a set: siblings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nodes<'a>(pub &'a [u8]);

/// An element of a level, and what is below it.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    pub element: Element<'a>,
    pub member: bool,
    pub below: Nodes<'a>,
    /// All of it.
    pub bytes: &'a [u8],
}

impl<'a> Nodes<'a> {
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The node of an element. Cost: a walk over the level.
    pub fn find(self, element: &Element<'_>) -> Option<Node<'a>> {
        let mut nodes = self.skip_while(|node| node.element < *element);
        nodes.next().filter(|node| node.element == *element)
    }

    /// The level, so that many elements are found in it.
    pub fn level(self) -> Level<'a> {
        Level(self.collect())
    }
}

impl<'a> Iterator for Nodes<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        let whole = self.0;
        let (&head, mut rest) = whole.split_first()?;
        steps::add(1);
        let len = varint::read(&mut rest).expect("a length that was written here") as usize;
        let (element, rest) = rest.split_at(len);
        let (below, rest) = match head & BELOW {
            0 => (Nodes(&[]), rest),
            _ => {
                let (len, rest) = rest.split_first_chunk::<LENGTH>().expect("a length that was written here");
                let (below, rest) = rest.split_at(u32::from_le_bytes(*len) as usize);
                (Nodes(below), rest)
            }
        };
        self.0 = rest;
        let bytes = &whole[..whole.len() - rest.len()];
        let element = Element { kind: kind_of(head), bytes: Cow::Borrowed(element) };
        Some(Node { element, member: head & MEMBER != 0, below, bytes })
    }
}

fn kind_of(head: u8) -> ElementKind {
    match head & KIND {
        0 => ElementKind::Field,
        1 => ElementKind::Key,
        2 => ElementKind::Value,
        3 => ElementKind::Index,
        _ => ElementKind::Keyless,
    }
}

/// The nodes of a level, in order.
pub struct Level<'a>(Vec<Node<'a>>);

impl<'a> Level<'a> {
    /// The node of an element. Cost: log n.
    pub fn find(&self, element: &Element<'_>) -> Option<&Node<'a>> {
        let at = self.0.binary_search_by(|node| node.element.cmp(element)).ok()?;
        Some(&self.0[at])
    }
}

/// Appends a node; nothing if it is not in the set and `below` appends nothing.
pub fn write(out: &mut Vec<u8>, element: &Element<'_>, member: bool, below: impl FnOnce(&mut Vec<u8>)) {
    let begun = begin(out, element);
    below(out);
    begun.end(out, member);
}

/// A node that is being written.
#[must_use]
pub struct Begun {
    head: usize,
    length: usize,
}

/// Begins a node: what is appended until it ends is below it.
pub fn begin(out: &mut Vec<u8>, element: &Element<'_>) -> Begun {
    let head = out.len();
    write_head(out, element, BELOW);
    let length = out.len();
    out.extend_from_slice(&[0; LENGTH]);
    Begun { head, length }
}

impl Begun {
    /// Whether something was appended.
    pub fn has_below(&self, out: &[u8]) -> bool {
        out.len() > self.length + LENGTH
    }

    /// Ends it; it is not there if it is not in the set and has nothing below it.
    pub fn end(self, out: &mut Vec<u8>, member: bool) {
        if member {
            out[self.head] |= MEMBER;
        }
        if self.has_below(out) {
            write_length(out, self.length);
        } else if member {
            out[self.head] &= !BELOW;
            out.truncate(self.length);
        } else {
            out.truncate(self.head);
        }
    }
}

fn write_head(out: &mut Vec<u8>, element: &Element<'_>, flags: u8) {
    out.push(element.kind as u8 | flags);
    varint::write(element.bytes.len() as u64, out);
    out.extend_from_slice(&element.bytes);
}

/// Writes down what was appended since `at`, where its length stands.
fn write_length(out: &mut [u8], at: usize) {
    let below = u32::try_from(out.len() - at - LENGTH).expect("a set is smaller than 4 GiB");
    out[at..at + LENGTH].copy_from_slice(&below.to_le_bytes());
}

/// The nodes of two levels, side by side, in order.
pub struct Zip<'a, 'b> {
    a: Peekable<Nodes<'a>>,
    b: Peekable<Nodes<'b>>,
}

impl<'a, 'b> Zip<'a, 'b> {
    pub fn new(a: Nodes<'a>, b: Nodes<'b>) -> Zip<'a, 'b> {
        Zip { a: a.peekable(), b: b.peekable() }
    }

    /// The nodes of the first level, each with that of the second. What the second has behind the last one is
    /// not looked at.
    pub fn of_first(self) -> impl Iterator<Item = (Node<'a>, Option<Node<'b>>)> {
        let Zip { a, mut b } = self;
        a.map(move |node| {
            while b.next_if(|other| other.element < node.element).is_some() {}
            let other = b.next_if(|other| other.element == node.element);
            (node, other)
        })
    }
}

impl<'a, 'b> Iterator for Zip<'a, 'b> {
    type Item = (Option<Node<'a>>, Option<Node<'b>>);

    fn next(&mut self) -> Option<Self::Item> {
        let order = match (self.a.peek(), self.b.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.element.cmp(&b.element),
        };
        let a = if order.is_le() { self.a.next() } else { None };
        let b = if order.is_ge() { self.b.next() } else { None };
        Some((a, b))
    }
}

/// Makes a set of paths that come in order, from a walk that has the path that it is at.
#[derive(Default)]
pub struct SetBuilder {
    out: Vec<u8>,
    /// The nodes that are open, from the top: where each begins, and where the length of what is below it
    /// stands.
    open: Vec<(usize, Option<usize>)>,
}

impl SetBuilder {
    /// Puts `path` in; the empty one is the object, which nobody owns.
    pub fn add(&mut self, path: &[Element<'_>]) {
        self.leave(path.len());
        // Once: each step of the path is opened once, until the walk leaves it.
        for element in &path[self.open.len()..] {
            self.open(element);
        }
        if let Some((head, _)) = self.open.last() {
            self.out[*head] |= MEMBER;
        }
    }

    fn open(&mut self, element: &Element<'_>) {
        if let Some((head, below @ None)) = self.open.last_mut() {
            self.out[*head] |= BELOW;
            *below = Some(self.out.len());
            self.out.extend_from_slice(&[0; LENGTH]);
        }
        self.open.push((self.out.len(), None));
        write_head(&mut self.out, element, 0);
    }

    /// The walk is at a path of so many steps now, which begins as the last one did.
    pub fn leave(&mut self, steps: usize) {
        while self.open.len() > steps {
            if let Some((_, Some(length))) = self.open.pop() {
                write_length(&mut self.out, length);
            }
        }
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.leave(0);
        self.out
    }
}
