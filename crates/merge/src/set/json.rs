//! `fieldsV1`: a set as JSON.
//!
//! In: a tree that a client sent, or text as it is stored. Out: a set, or what is wrong; a set's JSON. Never:
//! deeper than [`DEPTH_MAX`]; keeps what it does not know: elements of kinds to come are left out, as
//! upstream leaves them out.
//!
//! Source: structured-merge-diff v6.3.3 `fieldpath/serialize.go`, `serialize-pe.go`.

use std::borrow::Cow;

use forebay_apimachinery::json::{Reader, Unexpected, weight};
use forebay_apimachinery::lease::{Exhausted, Lease};
use serde_json::{Map, Value};

use super::Set;
use super::nodes::{self, Nodes};
use crate::element::{Element, ElementKind};
use crate::gotext;
use crate::leaf;
use crate::limits::DEPTH_MAX;

/// What stands for the object that it is in.
const SELF: &str = ".";

/// Why something is no set of fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    #[error("a set of fields is an object, not {found}")]
    NotAnObject { found: &'static str },
    #[error("key must be 2 characters long")]
    ShortKey,
    #[error("missing colon: {key}")]
    NoColon { key: String },
    #[error("parsing key {key:?} as path element: {why}")]
    BadElement { key: String, why: String },
    #[error("a set of fields is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    #[error("a set of fields is not JSON")]
    NotJson(#[from] Unexpected),
    #[error("a set of fields is not JSON: {0}")]
    NotRead(String),
}

impl Set {
    /// Reads a tree. Cost: n log n in its bytes.
    ///
    /// # Errors
    /// [`SetError`].
    pub fn of_json(value: &Value) -> Result<Set, SetError> {
        let mut out = Vec::new();
        read_tree(value, 0, &mut out)?;
        Ok(Set(out))
    }

    /// Reads compact text, as it is stored. Cost: linear in its bytes if it is in order, as whatever was
    /// written here is.
    ///
    /// # Errors
    /// [`SetError`].
    pub fn of_text(text: &[u8]) -> Result<Set, SetError> {
        let mut out = Vec::with_capacity(text.len());
        match read_text(&mut Reader::new(text), 0, &mut out) {
            Ok(_) => Ok(Set(out)),
            Err(Stop::Wrong(why)) => Err(why),
            Err(Stop::OutOfOrder) => {
                let tree = forebay_apimachinery::json::read(text)
                    .map_err(|why| SetError::NotRead(why.to_string()))?;
                Set::of_json(&tree)
            }
        }
    }

    /// Writes it as upstream does.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(2 * self.0.len() + 2);
        self.write_json(&mut out);
        out
    }

    /// How long its JSON is, without making it.
    pub fn json_bytes(&self) -> usize {
        bytes_of_level(self.nodes(), false, &mut (Vec::new(), Vec::new()))
    }

    /// The tree that its JSON is read as, charged before it is made; `None` if that nests deeper than
    /// `levels`.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub fn to_tree(&self, levels: usize, lease: &Lease) -> Result<Option<Value>, Exhausted> {
        if !is_within(self.nodes(), levels) {
            return Ok(None);
        }
        lease.charge(weight_of_tree(self.nodes(), false, &mut Vec::new()))?;
        Ok(Some(tree_of(self.nodes(), false)))
    }

    /// The same as the text that upstream writes, charged.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub fn to_text(&self, levels: usize, lease: &Lease) -> Result<Option<Vec<u8>>, Exhausted> {
        if !is_within(self.nodes(), levels) {
            return Ok(None);
        }
        // What has to be escaped takes more, which is rare.
        let usual = 2 * self.0.len() + 2;
        lease.charge(usual)?;
        let text = self.to_json();
        lease.charge(text.len().saturating_sub(usual))?;
        Ok(Some(text))
    }

    /// Appends it as upstream writes it.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        write_level(self.nodes(), false, out, &mut Vec::new());
    }
}

impl<'a> Element<'a> {
    /// Reads an element as it stands in `fieldsV1`; `None` if it is of a kind to come.
    ///
    /// # Errors
    /// [`SetError`].
    pub fn of_serial(serial: &'a str) -> Result<Option<Element<'a>>, SetError> {
        let (kind, text) = match serial.as_bytes() {
            [] | [_] => return Err(SetError::ShortKey),
            [kind, b':', ..] => (*kind, &serial[2..]),
            _ => return Err(SetError::NoColon { key: serial.to_owned() }),
        };
        let bad = |why: String| SetError::BadElement { key: serial.to_owned(), why };
        let value = || -> Result<Value, SetError> {
            forebay_apimachinery::json::read(text.as_bytes()).map_err(|why| bad(why.to_string()))
        };
        match kind {
            b'f' => Ok(Some(Element::field(text))),
            b'v' => {
                let mut bytes = Vec::new();
                leaf::write_read(&value()?, &mut bytes);
                Ok(Some(Element { kind: ElementKind::Value, bytes: Cow::Owned(bytes) }))
            }
            b'k' => match usual_keys(text.as_bytes()) {
                Some(bytes) => Ok(Some(Element { kind: ElementKind::Key, bytes: Cow::Owned(bytes) })),
                None => Ok(Some(of_keys(
                    value()?.as_object().ok_or_else(|| bad("the keys are no object".into()))?,
                ))),
            },
            b'i' => {
                text.parse().map(|index| Some(Element::index(index))).map_err(|_| bad("not a number".into()))
            }
            _ => Ok(None),
        }
    }
}

/// Keys as they are usually written: compact, in order, texts and small whole numbers; `None` if they are
/// not.
fn usual_keys(text: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader::new(text);
    let (mut bytes, mut last, mut index) = (Vec::with_capacity(text.len()), Vec::new(), 0);
    reader.begin(b'{').ok()?;
    while let Some(name) = reader.member(index).ok()? {
        if index > 0 && *last >= *name {
            return None;
        }
        leaf::write_name(std::str::from_utf8(&name).ok()?, &mut bytes);
        last = name.into_owned();
        index += 1;
        match reader.peek()? {
            b'"' => leaf::write_string(&reader.string().ok()?, &mut bytes),
            b'1'..=b'9' => {
                let digits = reader.scalar().ok()??;
                let is_small =
                    digits.len() <= SMALL_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
                leaf::write_float(digits.parse().ok().filter(|_| is_small)?, &mut bytes);
            }
            _ => return None,
        }
    }
    (reader.at() == text.len()).then_some(bytes)
}

/// Digits of whole numbers that every float has.
const SMALL_DIGITS: usize = 15;

fn of_keys(keys: &Map<String, Value>) -> Element<'static> {
    let mut sorted: Vec<_> = keys.iter().collect();
    sorted.sort_unstable_by_key(|(name, _)| name.as_str());
    let mut bytes = Vec::new();
    for (name, value) in sorted {
        leaf::write_name(name, &mut bytes);
        leaf::write_read(value, &mut bytes);
    }
    Element { kind: ElementKind::Key, bytes: Cow::Owned(bytes) }
}

/// Appends the level that `value` is. Cost: n log n, as levels are sorted before they are written.
fn read_tree(value: &Value, depth: usize, out: &mut Vec<u8>) -> Result<(), SetError> {
    let members = match value {
        Value::Object(members) => members,
        Value::Null => return Ok(()),
        other => return Err(SetError::NotAnObject { found: forebay_apimachinery::json::kind_of(other) }),
    };
    if depth >= DEPTH_MAX {
        return Err(SetError::TooDeep);
    }
    let mut siblings = Vec::with_capacity(members.len());
    for (key, value) in members.iter().filter(|(key, _)| *key != SELF) {
        siblings.extend(Element::of_serial(key)?.map(|element| (element, value)));
    }
    siblings.sort_by(|(a, _), (b, _)| a.cmp(b));
    for same in siblings.chunk_by(|(a, _), (b, _)| a == b) {
        let begun = nodes::begin(out, &same[0].0);
        let mut member = false;
        // One that is written in two ways may come twice: what stands below it last counts.
        for (_, value) in same.iter().rev() {
            let before = out.len();
            let had_below = begun.has_below(out);
            read_tree(value, depth + 1, out)?;
            member |= out.len() == before || value.get(SELF).is_some();
            if had_below {
                out.truncate(before);
            }
        }
        begun.end(out, member);
    }
    Ok(())
}

/// The members of a level of `fieldsV1` as upstream writes them: names as texts, items by their values, 80
/// before 443. As they come if one of them is no element.
///
/// Cost: n log n in their bytes; of a level that has names only, a walk.
pub fn in_order(level: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let mut members: Vec<_> = level.iter().map(|(key, value)| (key.as_str(), value)).collect();
    let is_name = |key: &str| key == SELF || key.starts_with("f:");
    if members.iter().filter(|(key, _)| !is_name(key)).count() > 1 {
        let keyed: Option<Vec<_>> =
            members.iter().map(|member| Some((place_of(member.0)?, *member))).collect();
        if let Some(mut keyed) = keyed {
            keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
            members = keyed.into_iter().map(|(_, member)| member).collect();
        }
    }
    members
}

/// What a member of a level is ordered by: what the level is below stands first. None of what is no element.
fn place_of(key: &str) -> Option<Option<Element<'_>>> {
    if key == SELF { Some(None) } else { Element::of_serial(key).ok()?.map(Some) }
}

/// Why text is not read as it stands.
enum Stop {
    /// It has to be sorted first.
    OutOfOrder,
    Wrong(SetError),
}

impl<E: Into<SetError>> From<E> for Stop {
    fn from(why: E) -> Stop {
        Stop::Wrong(why.into())
    }
}

/// Appends the level that comes next; whether the element that it is below is in the set.
fn read_text(reader: &mut Reader<'_>, depth: usize, out: &mut Vec<u8>) -> Result<bool, Stop> {
    if reader.peek() == Some(b'n') {
        reader.skip()?;
        return Ok(true);
    }
    if depth >= DEPTH_MAX {
        return Err(SetError::TooDeep.into());
    }
    reader.begin(b'{')?;
    let (begin, mut last, mut member, mut index) = (out.len(), out.len(), false, 0);
    while let Some(key) = reader.member(index)? {
        index += 1;
        let Ok(key) = std::str::from_utf8(&key) else { return Ok(reader.fail("not UTF-8")?) };
        let Some(element) = (if key == SELF { None } else { Element::of_serial(key)? }) else {
            member |= key == SELF;
            reader.skip()?;
            continue;
        };
        if Nodes(&out[last..]).next().is_some_and(|before| before.element >= element) {
            return Err(Stop::OutOfOrder);
        }
        last = out.len();
        let begun = nodes::begin(out, &element);
        let is_member = read_text(reader, depth + 1, out)?;
        begun.end(out, is_member);
    }
    Ok(member || out.len() == begin)
}

/// Whether a level, as JSON, nests no deeper than `levels`.
fn is_within(mut nodes: Nodes<'_>, levels: usize) -> bool {
    levels.checked_sub(1).is_some_and(|below| nodes.all(|node| is_within(node.below, below)))
}

/// What the tree of a level takes, from above.
///
/// - `is_member`, `serial`: as of [`write_level`].
fn weight_of_tree(nodes: Nodes<'_>, is_member: bool, serial: &mut Vec<u8>) -> usize {
    let mut members = usize::from(is_member && !nodes.is_empty());
    let mut bytes = weight::text(SELF.len()) * members;
    for node in nodes {
        members += 1;
        serial.clear();
        node.element.write_serial(serial);
        bytes += weight::text(serial.len());
        bytes += weight_of_tree(node.below, node.member, serial);
    }
    bytes + weight::object(members)
}

/// - `is_member`: as of [`write_level`].
fn tree_of(nodes: Nodes<'_>, is_member: bool) -> Value {
    let mut members = Map::new();
    if is_member && !nodes.is_empty() {
        members.insert(SELF.to_owned(), Value::Object(Map::new()));
    }
    for node in nodes {
        members.insert(node.element.serial(), tree_of(node.below, node.member));
    }
    Value::Object(members)
}

/// - `is_member`: whether the element that this is below is in the set itself.
/// - `serial`: room to write an element in.
fn write_level(nodes: Nodes<'_>, is_member: bool, out: &mut Vec<u8>, serial: &mut Vec<u8>) {
    out.push(b'{');
    if is_member && !nodes.is_empty() {
        out.extend_from_slice(b"\".\":{}");
    }
    let mut is_first = !is_member;
    for node in nodes {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        match node.element.plain_name() {
            Some(name) => {
                out.extend_from_slice(b"\"f:");
                out.extend_from_slice(name);
                out.push(b'"');
            }
            None => {
                serial.clear();
                node.element.write_serial(serial);
                gotext::write_string(std::str::from_utf8(serial).expect("made of text"), out);
            }
        }
        out.push(b':');
        write_level(node.below, node.member, out, serial);
    }
    out.push(b'}');
}

/// How long a level is as [`write_level`] writes it.
///
/// - `is_member`: as there.
/// - `room`: to write an element in, and what it is escaped.
fn bytes_of_level(nodes: Nodes<'_>, is_member: bool, room: &mut (Vec<u8>, Vec<u8>)) -> usize {
    let (braces, mut members) = (2, usize::from(is_member && !nodes.is_empty()));
    let mut bytes = members * (SELF.len() + r#""":{}"#.len());
    for node in nodes {
        members += 1;
        let name = match node.element.plain_name() {
            Some(name) => name.len() + r#""f:""#.len(),
            None => {
                let (serial, escaped) = &mut *room;
                serial.clear();
                escaped.clear();
                node.element.write_serial(serial);
                gotext::write_string(std::str::from_utf8(serial).expect("made of text"), escaped);
                escaped.len()
            }
        };
        bytes += name + 1 + bytes_of_level(node.below, node.member, room);
    }
    braces + bytes + members.saturating_sub(1)
}
