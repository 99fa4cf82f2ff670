//! Objects in messages as kube-apiserver shows its internal types: Go's names and order, and what is unset
//! with its zero.
//!
//! In: an object and the name of its internal type. Out: JSON on one line; a diff of two. Never: anything
//! that is stored or sent as an object.
//!
//! Source: kubernetes v1.36.3 `apis/{core,batch}/types.go`, the table `types.txt`.

#[cfg(test)]
mod tests;

mod difference;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::LazyLock;

use forebay_apimachinery::json::to_go_text;
use serde_json::Value;

use super::field::BadValue;
use super::value::{Members, child_or_empty, list, objects, take_over};

pub use difference::{Differences, difference};

/// Types nest a dozen deep; deeper there is nothing in them.
const DEPTH_MAX: usize = 32;
/// What is shown of one object, in bytes, and what a member counts as besides its text: an empty container,
/// three bytes on the wire, has two dozen of them. A pod of a hundred containers has some ten thousand.
const BYTES_MAX: usize = 2 << 20;
const MEMBER_BYTES: usize = 64;

/// A value as Go's encoder has it.
enum Shown {
    Scalar(String),
    List(Vec<Shown>),
    Object(Vec<(String, Shown)>),
}

/// Bytes that may still be shown. What there is no room for is three dots.
struct Room(Cell<usize>);

impl Room {
    fn new() -> Room {
        Room(Cell::new(BYTES_MAX))
    }

    fn take(&self, bytes: usize) -> bool {
        let left = self.0.get().checked_sub(bytes);
        if let Some(left) = left {
            self.0.set(left);
        }
        left.is_some()
    }

    /// `value` as text. Escaped it is six times as long at most, which is reckoned for no more than what it
    /// is.
    fn scalar(&self, value: &Value) -> Shown {
        let len = value.as_str().map_or(0, str::len);
        if self.take(MEMBER_BYTES + len) { Shown::Scalar(to_go_text(value)) } else { dots() }
    }
}

struct Field {
    shown: &'static str,
    name: String,
    kind: &'static str,
}

/// Name of a type -> its members, in order.
static TYPES: LazyLock<HashMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    let mut types: HashMap<&'static str, Vec<Field>> = HashMap::new();
    let mut current = "";
    for line in include_str!("types.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        if !line.starts_with(' ') {
            current = words.next().unwrap_or("");
        }
        types.entry(current).or_default().extend(words.filter_map(field));
    }
    types
});

fn field(word: &'static str) -> Option<Field> {
    let (names, kind) = word.split_once(':')?;
    let (shown, name) = match names.split_once('=') {
        Some((shown, name)) => (shown, name.to_string()),
        None => (names, names[..1].to_ascii_lowercase() + &names[1..]),
    };
    Some(Field { shown, name, kind })
}

/// `object` of the internal type `ty`, on one line.
pub fn shown(ty: &str, object: &Members) -> BadValue<'static> {
    BadValue::shown(text(ty, object))
}

/// `object` as Go writes the internal type `ty`.
pub fn text(ty: &str, object: &Members) -> String {
    let mut line = String::new();
    write_line(&whole(ty, object), &mut line);
    line
}

/// A list of objects of the internal type `ty`.
pub fn list_shown(ty: &str, object: &Members, name: &str) -> BadValue<'static> {
    let room = Room::new();
    let items: Vec<Shown> = objects(object, name).map(|item| structure(ty, item, 0, &room)).collect();
    if items.is_empty() {
        return BadValue::Nil;
    }
    let mut line = String::new();
    write_line(&Shown::List(items), &mut line);
    BadValue::shown(line)
}

fn whole(ty: &str, object: &Members) -> Shown {
    structure(ty, object, 0, &Room::new())
}

fn structure(ty: &str, object: &Members, depth: usize, room: &Room) -> Shown {
    let Some(fields) = TYPES.get(ty).filter(|_| depth < DEPTH_MAX) else { return Shown::Object(Vec::new()) };
    if !room.take(fields.len() * MEMBER_BYTES) {
        return dots();
    }
    let mut members = Vec::with_capacity(fields.len());
    for field in fields {
        if field.kind == "M" {
            members.extend(metadata(child_or_empty(object, "metadata"), room));
            continue;
        }
        let value = object.get(&field.name);
        let moved = (ty == "PodSpec" && field.name == "securityContext").then(|| security_context(object));
        let value = moved.as_ref().or(value);
        members.push((field.shown.to_string(), of_kind(field.kind, value, depth, room)));
    }
    Shown::Object(members)
}

/// What clients know as members of the pod's spec are members of its security context inside.
fn security_context(spec: &Members) -> Value {
    let mut context = child_or_empty(spec, "securityContext").clone();
    for name in ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"] {
        take_over(&mut context, spec, name);
    }
    Value::Object(context)
}

fn of_kind(kind: &str, value: Option<&Value>, depth: usize, room: &Room) -> Shown {
    if let Some(pointed) = kind.strip_prefix('*') {
        return value.map_or_else(null, |value| of_kind(pointed, Some(value), depth, room));
    }
    if let Some(item) = kind.strip_prefix("[]") {
        let (item, absent) = match item.strip_prefix('!') {
            Some(item) => (item, Shown::List(Vec::new())),
            None => (item, null()),
        };
        let Some(Value::Array(items)) = value else { return absent };
        let shown = items.iter().map(|value| of_kind(item, Some(value), depth + 1, room));
        return Shown::List(shown.collect());
    }
    let scalar =
        |zero: &str| value.map_or_else(|| Shown::Scalar(zero.to_string()), |value| room.scalar(value));
    match kind {
        "s" => scalar("\"\""),
        "i" => scalar("0"),
        "b" => scalar("false"),
        "q" => scalar("\"0\""),
        "t" => scalar("null"),
        "{}" => value.map_or_else(null, |value| plain(value, room)),
        "L" => value.and_then(Value::as_object).map_or_else(null, |selector| label_selector(selector, room)),
        ty => {
            static EMPTY: LazyLock<Members> = LazyLock::new(Members::new);
            structure(ty, value.and_then(Value::as_object).unwrap_or_else(|| &EMPTY), depth + 1, room)
        }
    }
}

fn null() -> Shown {
    Shown::Scalar("null".into())
}

fn dots() -> Shown {
    Shown::Scalar("...".into())
}

/// A map of scalars, sorted as Go sorts it.
fn plain(value: &Value, room: &Room) -> Shown {
    match value {
        Value::Object(members) => {
            let mut entries: Vec<(&String, &Value)> = members.iter().collect();
            entries.sort_unstable_by_key(|(name, _)| *name);
            // Ends with the first one that there is no room for.
            let entries = entries.into_iter().map_while(|(name, value)| {
                room.take(MEMBER_BYTES + name.len()).then(|| (name.clone(), plain(value, room)))
            });
            Shown::Object(entries.collect())
        }
        Value::Array(items) => Shown::List(items.iter().map(|item| plain(item, room)).collect()),
        scalar => room.scalar(scalar),
    }
}

/// A type that has the names of the wire inside, too.
fn label_selector(selector: &Members, room: &Room) -> Shown {
    let mut members = Vec::new();
    if !child_or_empty(selector, "matchLabels").is_empty() {
        members.push(("matchLabels".into(), plain(&selector["matchLabels"], room)));
    }
    let expressions: Vec<Shown> = objects(selector, "matchExpressions")
        .map(|expression| {
            let known = ["key", "operator", "values"]
                .into_iter()
                .filter_map(|name| Some((name, expression.get(name)?)));
            Shown::Object(known.map(|(name, value)| (name.to_string(), plain(value, room))).collect())
        })
        .collect();
    if !expressions.is_empty() {
        members.push(("matchExpressions".into(), Shown::List(expressions)));
    }
    Shown::Object(members)
}

/// Metadata has the names of the wire, too, and stands among the members of what has it.
fn metadata(meta: &Members, room: &Room) -> impl Iterator<Item = (String, Shown)> {
    const ORDER: [&str; 5] = ["name", "generateName", "namespace", "labels", "annotations"];
    let finalizers = Some("finalizers").filter(|name| !list(meta, name).is_empty());
    let known = ORDER.into_iter().chain(finalizers).filter_map(|name| Some((name, meta.get(name)?)));
    known.map(|(name, value)| (name.to_string(), plain(value, room)))
}

fn write_line(shown: &Shown, out: &mut String) {
    match shown {
        Shown::Scalar(text) => out.push_str(text),
        Shown::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_line(item, out);
            }
            out.push(']');
        }
        Shown::Object(members) => {
            out.push('{');
            for (index, (name, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&to_go_text(&Value::from(name.as_str())));
                out.push(':');
                write_line(member, out);
            }
            out.push('}');
        }
    }
}

/// One member a line, indented by a space a level. What is empty stays on its line.
fn write_lines(shown: &Shown, depth: usize, out: &mut String) {
    let (open, close, items): (char, char, Vec<(Option<&str>, &Shown)>) = match shown {
        Shown::Scalar(text) => return out.push_str(text),
        Shown::List(items) => ('[', ']', items.iter().map(|item| (None, item)).collect()),
        Shown::Object(members) => {
            ('{', '}', members.iter().map(|(name, member)| (Some(name.as_str()), member)).collect())
        }
    };
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth));
    };
    out.push(open);
    for (index, (name, item)) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        line(out, depth + 1);
        if let Some(name) = name {
            out.push_str(&to_go_text(&Value::from(*name)));
            out.push_str(": ");
        }
        write_lines(item, depth + 1, out);
    }
    if !items.is_empty() {
        line(out, depth);
    }
    out.push(close);
}
