//! A step of a path: a field's name, the keys of an item, an item of a set, or a place in a list.
//!
//! In: names and values. Out: elements, their order, which is that of `fieldsV1`, and their text. Never: a
//! path's object.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use forebay_apimachinery::steps;
use serde_json::Value;

use crate::gotext;
use crate::leaf;

/// The kinds of elements, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ElementKind {
    /// A member of an object.
    Field,
    /// The item of an associative list that has these keys.
    Key,
    /// The item of a set.
    Value,
    /// The item of a list at this place.
    Index,
    /// An item whose keys were taken out while it was pruned: one is not told from another. It is never
    /// written.
    Keyless,
}

/// A step of a path.
#[derive(Clone, Debug)]
pub struct Element<'a> {
    pub(crate) kind: ElementKind,
    /// A field's name; keys as names and values, by name; a value; an index in 8 bytes.
    pub(crate) bytes: Cow<'a, [u8]>,
}

/// Steps from an object to something in it.
pub type Path<'a> = [Element<'a>];

impl<'a> Element<'a> {
    pub fn field(name: &'a str) -> Element<'a> {
        Element { kind: ElementKind::Field, bytes: Cow::Borrowed(name.as_bytes()) }
    }

    /// The item of a set.
    pub fn value(value: &Value) -> Element<'a> {
        let mut bytes = Vec::new();
        leaf::write(value, &mut bytes);
        Element { kind: ElementKind::Value, bytes: Cow::Owned(bytes) }
    }

    /// The item with these keys, in any order; of two with one name, both stay.
    pub fn keys(mut keys: Vec<(&str, &Value)>) -> Element<'a> {
        keys.sort_by_key(|(name, _)| *name);
        let mut bytes = Vec::new();
        for (name, value) in keys {
            leaf::write_name(name, &mut bytes);
            leaf::write(value, &mut bytes);
        }
        Element { kind: ElementKind::Key, bytes: Cow::Owned(bytes) }
    }

    pub fn index(index: i64) -> Element<'a> {
        Element { kind: ElementKind::Index, bytes: Cow::Owned(index.to_le_bytes().to_vec()) }
    }

    pub(crate) fn keyless() -> Element<'a> {
        Element { kind: ElementKind::Keyless, bytes: Cow::Borrowed(&[]) }
    }

    pub fn kind(&self) -> ElementKind {
        self.kind
    }

    /// The name, of a field.
    pub fn name(&self) -> Option<&str> {
        let text = || std::str::from_utf8(&self.bytes).expect("a name is text");
        (self.kind == ElementKind::Field).then(text)
    }

    /// The name, of a field, if it stands in JSON as it is.
    pub(crate) fn plain_name(&self) -> Option<&[u8]> {
        let is_escaped = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
        let has_escapes = || self.bytes.iter().fold(false, |found, byte| found | is_escaped(byte));
        (self.kind == ElementKind::Field && !has_escapes()).then_some(&*self.bytes)
    }

    /// The names of the keys, of an item.
    pub(crate) fn key_names(&self) -> Vec<&str> {
        let (mut names, mut rest) = (Vec::new(), &*self.bytes);
        while self.kind == ElementKind::Key && !rest.is_empty() {
            names.push(leaf::read_name(&mut rest));
            leaf::read(&mut rest);
        }
        names
    }

    /// The same, on its own.
    pub fn into_owned(self) -> Element<'static> {
        Element { kind: self.kind, bytes: Cow::Owned(self.bytes.into_owned()) }
    }

    /// Appends what stands for it in `fieldsV1`, before that is escaped.
    pub(crate) fn write_serial(&self, out: &mut Vec<u8>) {
        match self.kind {
            ElementKind::Field => {
                out.extend_from_slice(b"f:");
                out.extend_from_slice(&self.bytes);
            }
            ElementKind::Key => {
                out.extend_from_slice(b"k:{");
                write_keys(&self.bytes, out);
                out.push(b'}');
            }
            ElementKind::Value => {
                out.extend_from_slice(b"v:");
                leaf::read(&mut &*self.bytes).write_json(out);
            }
            ElementKind::Keyless => {}
            ElementKind::Index => {
                out.extend_from_slice(b"i:");
                out.extend_from_slice(index_of(&self.bytes).to_string().as_bytes());
            }
        }
    }

    /// What stands for it in `fieldsV1`, before that is escaped.
    pub fn serial(&self) -> String {
        let mut out = Vec::new();
        self.write_serial(&mut out);
        String::from_utf8(out).expect("made of text")
    }
}

fn write_keys(mut keys: &[u8], out: &mut Vec<u8>) {
    let mut first = true;
    while !keys.is_empty() {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        gotext::write_string(leaf::read_name(&mut keys), out);
        out.push(b':');
        leaf::read(&mut keys).write_json(out);
    }
}

fn index_of(bytes: &[u8]) -> i64 {
    i64::from_le_bytes(bytes.try_into().expect("an index has 8 bytes"))
}

impl Ord for Element<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        steps::add(1);
        self.kind.cmp(&other.kind).then_with(|| match self.kind {
            ElementKind::Field => self.bytes.cmp(&other.bytes),
            _ if self.bytes == other.bytes => Ordering::Equal,
            ElementKind::Key => order_keys(&self.bytes, &other.bytes),
            ElementKind::Value => leaf::read(&mut &*self.bytes).order(leaf::read(&mut &*other.bytes)),
            ElementKind::Index => index_of(&self.bytes).cmp(&index_of(&other.bytes)),
            ElementKind::Keyless => Ordering::Equal,
        })
    }
}

/// Name by name, each with its value; what ends first is less.
fn order_keys(mut a: &[u8], mut b: &[u8]) -> Ordering {
    loop {
        if a.is_empty() || b.is_empty() {
            return b.is_empty().cmp(&a.is_empty());
        }
        let names = leaf::read_name(&mut a).cmp(leaf::read_name(&mut b));
        let order = names.then_with(|| leaf::read(&mut a).order(leaf::read(&mut b)));
        if order.is_ne() {
            return order;
        }
    }
}

impl PartialOrd for Element<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element<'_> {}

/// As upstream shows it: `.name`, `[key="value"]`, `[="value"]`, `[3]`.
impl fmt::Display for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ElementKind::Field => write!(f, ".{}", self.name().unwrap_or_default()),
            ElementKind::Key => {
                let (mut rest, mut shown) = (&*self.bytes, Vec::new());
                while !rest.is_empty() {
                    let name = leaf::read_name(&mut rest);
                    shown.push(format!("{name}={}", leaf::read(&mut rest).path_text()));
                }
                write!(f, "[{}]", shown.join(","))
            }
            ElementKind::Value => write!(f, "[={}]", leaf::read(&mut &*self.bytes).path_text()),
            ElementKind::Index => write!(f, "[{}]", index_of(&self.bytes)),
            ElementKind::Keyless => f.write_str("{{invalid path element}}"),
        }
    }
}

/// A path as upstream shows it: `.spec.ports[port=80,protocol="TCP"].name`.
pub fn path_text(path: &Path<'_>) -> String {
    path.iter().map(Element::to_string).collect()
}
