//! What expressions are made of when they are evaluated.
//!
//! In: trees of JSON, borrowed, with what is declared of them; what a library makes. Out: values that are
//! compared, sized and looked into. Never: a copy of a tree; a value deeper than the tree or the expression
//! that it is of.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::decl::{Decl, DeclKind, ListKind};
use crate::error::Error;
use crate::heights::{Entries, Inner, Items};
use crate::limits::ELEMENT_BYTES;
use crate::messages::Struct;
use crate::objects::Object;
use crate::spent::Spent;
use crate::time;
pub use crate::time::Timestamp;

/// The type of what has a policy's variables.
pub const COMPOSED: &str = "kubernetes.variables";

/// A value, of a tree that lives as long as `'a` or of its own.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(TextValue<'a>),
    Bytes(Arc<[u8]>),
    /// In nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    List(List<'a>),
    Map(Map<'a>),
    /// A type, by its name.
    Type(Arc<str>),
    Optional(Option<Arc<Inner<'a>>>),
    /// What a literal of a mutating policy makes.
    Struct(Arc<Struct<'a>>),
    /// What a library made.
    Object(Arc<Object>),
    /// Has what a [`Composer`](crate::Composer) makes of each name.
    Composed,
}

/// A text that is borrowed or shared.
#[derive(Clone, Debug)]
pub enum TextValue<'a> {
    Borrowed(&'a str),
    Shared(Arc<str>),
}

#[derive(Clone, Debug)]
pub enum List<'a> {
    /// With what is declared of a list that it is put together from.
    Owned(Arc<Items<'a>>, Option<&'a Decl>),
    Tree(&'a [Json], Option<&'a Decl>),
}

#[derive(Clone, Debug)]
pub enum Map<'a> {
    Owned(Arc<Entries<'a>>),
    Tree(&'a serde_json::Map<String, Json>, Option<&'a Decl>),
}

/// What a map may be asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MapKey<'a> {
    Bool(bool),
    /// Ints and uints, which are the same key where they are the same number.
    Number(i128, Signed),
    String(TextValue<'a>),
}

/// How a number that is a key was written, which does not tell it from another.
#[derive(Clone, Copy, Debug)]
pub enum Signed {
    Int,
    Uint,
}

impl PartialEq for Signed {
    fn eq(&self, _: &Signed) -> bool {
        true
    }
}

impl Eq for Signed {}

impl PartialOrd for Signed {
    fn partial_cmp(&self, other: &Signed) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Signed {
    fn cmp(&self, _: &Signed) -> Ordering {
        Ordering::Equal
    }
}

impl std::ops::Deref for TextValue<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            TextValue::Borrowed(text) => text,
            TextValue::Shared(text) => text,
        }
    }
}

impl PartialEq for TextValue<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for TextValue<'_> {}

impl PartialOrd for TextValue<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TextValue<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl<'a> Value<'a> {
    pub fn text(text: impl Into<Arc<str>>) -> Value<'a> {
        Value::String(TextValue::Shared(text.into()))
    }

    /// A list.
    ///
    /// # Errors
    /// If it would be too high.
    pub fn list(items: Vec<Value<'a>>) -> Result<Value<'a>, Error> {
        Ok(Value::List(List::Owned(Arc::new(Items::of(items)?), None)))
    }

    /// A map.
    ///
    /// # Errors
    /// If it would be too high.
    pub(crate) fn map(entries: BTreeMap<MapKey<'a>, Value<'a>>) -> Result<Value<'a>, Error> {
        Ok(Value::Map(Map::Owned(Arc::new(Entries::of(entries)?))))
    }

    /// An optional with a value.
    ///
    /// # Errors
    /// If it would be too high.
    pub fn some(inner: Value<'a>) -> Result<Value<'a>, Error> {
        Ok(Value::Optional(Some(Arc::new(Inner::of(inner)?))))
    }

    /// An optional.
    ///
    /// # Errors
    /// If it would be too high.
    pub fn optional(inner: Option<Value<'a>>) -> Result<Value<'a>, Error> {
        inner.map_or(Ok(Value::Optional(None)), Value::some)
    }

    /// How often values are within each other in it, those of trees not counted.
    pub(crate) fn height(&self) -> u16 {
        match self {
            Value::List(List::Owned(items, _)) => items.height(),
            Value::Map(Map::Owned(entries)) => entries.height(),
            Value::List(List::Tree(..)) | Value::Map(Map::Tree(..)) => 1,
            Value::Optional(Some(inner)) => inner.height(),
            Value::Struct(it) => it.height(),
            _ => 0,
        }
    }

    pub(crate) fn object(object: Object) -> Value<'a> {
        Value::Object(Arc::new(object))
    }

    /// A tree as nobody declared it.
    pub fn from_tree(json: &'a Json) -> Value<'a> {
        match json {
            Json::Null => Value::Null,
            Json::Bool(it) => Value::Bool(*it),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => Value::Int(whole),
                (None, Some(double)) => Value::Double(double),
                (None, None) => Value::Null,
            },
            Json::String(text) => Value::String(TextValue::Borrowed(text)),
            Json::Array(items) => Value::List(List::Tree(items, None)),
            Json::Object(members) => Value::Map(Map::Tree(members, None)),
        }
    }

    /// A tree as it is declared.
    ///
    /// # Errors
    /// If a text is not of its format, or a value not of its type.
    pub fn from_declared(json: &'a Json, decl: &'a Decl) -> Result<Value<'a>, Error> {
        Ok(match (&decl.kind, json) {
            (_, Json::Null) if decl.nullable => Value::Null,
            (_, Json::Null) => {
                return Err(Error::new("invalid data, got null for schema with nullable=false"));
            }
            (DeclKind::IntOrString, Json::String(_)) => Value::from_tree(json),
            (DeclKind::IntOrString, Json::Number(it)) if it.is_i64() => Value::from_tree(json),
            (DeclKind::Double, Json::Number(number)) => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
            (DeclKind::List { .. }, Json::Array(items)) => Value::List(List::Tree(items, Some(decl))),
            (DeclKind::Map(_) | DeclKind::Object(_), Json::Object(members)) => {
                Value::Map(Map::Tree(members, Some(decl)))
            }
            (DeclKind::Duration, Json::String(text)) => Value::Duration(time::schema_duration(text)?),
            (DeclKind::Date, Json::String(text)) => Value::Timestamp(time::schema_date(text)?),
            (DeclKind::Timestamp, Json::String(text)) => Value::Timestamp(time::schema_time(text)?),
            (DeclKind::Bytes, Json::String(text)) => Value::Bytes(crate::base64::decode(text)?.into()),
            (DeclKind::Bool, Json::Bool(_)) | (DeclKind::String, Json::String(_)) => Value::from_tree(json),
            (DeclKind::Int, Json::Number(it)) if it.is_i64() => Value::from_tree(json),
            (kind, found) => {
                return Err(Error::new(format!("invalid data, expected {}", kind.expected(found))));
            }
        })
    }

    /// The name of its type.
    pub fn type_name(&self) -> &str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Type(_) => "type",
            Value::Optional(_) => "optional_type",
            Value::Struct(it) => &it.name,
            Value::Object(it) => it.type_name(),
            Value::Composed => COMPOSED,
        }
    }

    /// What a cost is counted by, where it has a size.
    pub(crate) fn size(&self) -> Option<u64> {
        Some(match self {
            Value::String(text) => text.chars().count() as u64,
            Value::Bytes(bytes) => bytes.len() as u64,
            Value::List(list) => list.len() as u64,
            Value::Map(map) => map.len() as u64,
            Value::Object(it) => return it.size(),
            _ => return None,
        })
    }

    /// Of a text, or what is one: it takes as long to look at as it is long.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Value::String(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::Object(it) => it.bytes(),
            Value::Struct(it) => it.name.len(),
            _ => 0,
        }
    }

    pub(crate) fn key(&self) -> Option<MapKey<'a>> {
        Some(match self {
            Value::Bool(it) => MapKey::Bool(*it),
            Value::Int(it) => MapKey::Number(i128::from(*it), Signed::Int),
            Value::Uint(it) => MapKey::Number(i128::from(*it), Signed::Uint),
            Value::Double(it) if it.fract() == 0.0 && it.abs() < 1e19 => {
                MapKey::Number(*it as i128, Signed::Int)
            }
            Value::String(text) => MapKey::String(text.clone()),
            _ => return None,
        })
    }

    /// Whether two values are equal, numbers whatever their types.
    ///
    /// # Errors
    /// If a tree has a text that is not of its format, or there were too many comparisons.
    pub(crate) fn equals(&self, other: &Value<'a>, spent: &Spent) -> Result<bool, Error> {
        spent.walk(compared(self, other))?;
        Ok(match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(one), Value::Bool(two)) => one == two,
            (Value::String(one), Value::String(two)) => one == two,
            (Value::Bytes(one), Value::Bytes(two)) => one == two,
            (Value::Duration(one), Value::Duration(two)) => one == two,
            (Value::Timestamp(one), Value::Timestamp(two)) => one == two,
            (Value::Type(one), Value::Type(two)) => one == two,
            (Value::List(one), Value::List(two)) => one.equals(two, spent)?,
            (Value::Map(one), Value::Map(two)) => one.equals(two, spent)?,
            (Value::Optional(one), Value::Optional(two)) => match (one, two) {
                (Some(one), Some(two)) => one.equals(two, spent)?,
                (one, two) => one.is_none() && two.is_none(),
            },
            (Value::Struct(one), Value::Struct(two)) => {
                one.name == two.name
                    && one.fields.len() == two.fields.len()
                    && same_fields(&one.fields, &two.fields, spent)?
            }
            (Value::Object(one), Value::Object(two)) => one == two,
            (Value::Composed, Value::Composed) => true,
            _ => compare(self, other) == Some(Ordering::Equal),
        })
    }
}

/// Bytes that are looked at where two are compared: of texts of two lengths none are.
fn compared(one: &Value<'_>, two: &Value<'_>) -> usize {
    match (one, two) {
        (Value::String(one), Value::String(two)) if one.len() != two.len() => 0,
        (Value::Bytes(one), Value::Bytes(two)) if one.len() != two.len() => 0,
        _ => one.bytes(),
    }
}

fn same_fields<'a>(
    ones: &BTreeMap<Arc<str>, Value<'a>>,
    twos: &BTreeMap<Arc<str>, Value<'a>>,
    spent: &Spent,
) -> Result<bool, Error> {
    for (name, one) in ones {
        let Some(two) = twos.get(name) else { return Ok(false) };
        if one.type_name() != two.type_name() || !one.equals(two, spent)? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl<'a> List<'a> {
    pub fn len(&self) -> usize {
        match self {
            List::Owned(items, _) => items.len(),
            List::Tree(items, _) => items.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `at`, if there is one.
    ///
    /// # Errors
    /// If it is not of its format.
    pub fn get(&self, at: usize) -> Result<Option<Value<'a>>, Error> {
        match self {
            List::Owned(items, _) => Ok(items.get(at).cloned()),
            List::Tree(items, decl) => items.get(at).map(|json| item(json, *decl)).transpose(),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, Error>> {
        (0..self.len()).map(|at| self.get(at).map(|found| found.unwrap_or(Value::Null)))
    }

    /// All elements.
    pub(crate) fn to_vec(&self) -> Result<Vec<Value<'a>>, Error> {
        self.iter().collect()
    }

    fn decl(&self) -> Option<&'a Decl> {
        match self {
            List::Owned(_, decl) | List::Tree(_, decl) => *decl,
        }
    }

    pub(crate) fn kind(&self) -> Option<&'a ListKind> {
        match self.decl()?.kind {
            DeclKind::List { ref kind, .. } => Some(kind),
            _ => None,
        }
    }

    pub(crate) fn contains(&self, wanted: &Value<'a>, spent: &Spent) -> Result<bool, Error> {
        for found in self.iter() {
            if found?.equals(wanted, spent)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn equals(&self, other: &List<'a>, spent: &Spent) -> Result<bool, Error> {
        if self.len() != other.len() {
            return Ok(false);
        }
        match self.kind() {
            Some(ListKind::Set) => {
                for found in self.iter() {
                    if !other.contains(&found?, spent)? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            Some(ListKind::Map(keys)) => {
                for found in self.iter() {
                    let found = found?;
                    let Some(twin) = other.twin(&found, keys, spent)? else { return Ok(false) };
                    if !found.equals(&twin, spent)? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            _ => {}
        }
        for (one, two) in self.iter().zip(other.iter()) {
            if !one?.equals(&two?, spent)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The element with the same keys.
    fn twin(&self, of: &Value<'a>, keys: &[Arc<str>], spent: &Spent) -> Result<Option<Value<'a>>, Error> {
        for found in self.iter() {
            let found = found?;
            if has_same_keys(&found, of, keys, spent)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Both lists: those of the second that a set has are left out, those that a map list has take their
    /// twins' places.
    pub(crate) fn concat(self, other: &List<'a>, spent: &Spent) -> Result<List<'a>, Error> {
        let (kind, decl) = (self.kind(), self.decl());
        let mut all = match self {
            List::Owned(items, _) => items,
            tree => Arc::new(Items::of(tree.to_vec()?)?),
        };
        let items = Arc::make_mut(&mut all);
        for added in other.iter() {
            let added = added?;
            let mut is_new = true;
            match kind {
                Some(ListKind::Set) => {
                    for found in items.iter() {
                        is_new &= !found.equals(&added, spent)?;
                    }
                }
                Some(ListKind::Map(keys)) => {
                    for at in 0..items.len() {
                        if has_same_keys(&items[at], &added, keys, spent)? {
                            items.replace(at, added.clone())?;
                            is_new = false;
                        }
                    }
                }
                _ => {}
            }
            if is_new {
                items.push(added)?;
            }
        }
        Ok(List::Owned(all, decl))
    }
}

fn has_same_keys<'a>(
    one: &Value<'a>,
    two: &Value<'a>,
    keys: &[Arc<str>],
    spent: &Spent,
) -> Result<bool, Error> {
    spent.walk_all(1 + keys.len())?;
    let (Value::Map(one), Value::Map(two)) = (one, two) else { return Ok(false) };
    for key in keys {
        let same = match (one.get_text(key)?, two.get_text(key)?) {
            (Some(one), Some(two)) => one.equals(&two, spent)?,
            (one, two) => one.is_none() && two.is_none(),
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

fn item<'a>(json: &'a Json, decl: Option<&'a Decl>) -> Result<Value<'a>, Error> {
    match decl.map(|decl| &decl.kind) {
        Some(DeclKind::List { items, .. }) => Value::from_declared(json, items),
        _ => Ok(Value::from_tree(json)),
    }
}

impl<'a> MapKey<'a> {
    pub(crate) fn value(&self) -> Value<'a> {
        match self {
            MapKey::Bool(it) => Value::Bool(*it),
            MapKey::Number(it, Signed::Int) => Value::Int(*it as i64),
            MapKey::Number(it, Signed::Uint) => Value::Uint(*it as u64),
            MapKey::String(text) => Value::String(text.clone()),
        }
    }

    /// Of a text.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            MapKey::String(text) => text.len(),
            MapKey::Bool(_) | MapKey::Number(..) => 0,
        }
    }

    /// As an error has it.
    pub(crate) fn shown(&self) -> Cow<'_, str> {
        match self {
            MapKey::Bool(it) => it.to_string().into(),
            MapKey::Number(it, _) => it.to_string().into(),
            MapKey::String(text) => Cow::Borrowed(text),
        }
    }
}

/// The order of two values of one type, or of two numbers.
pub(crate) fn compare(one: &Value<'_>, two: &Value<'_>) -> Option<Ordering> {
    Some(match (one, two) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
        (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
        (Value::Double(a), Value::Double(b)) => return a.partial_cmp(b),
        (Value::Double(a), _) => return compare_double(*a, whole(two)?),
        (_, Value::Double(b)) => return compare_double(*b, whole(one)?).map(Ordering::reverse),
        _ => whole(one)?.cmp(&whole(two)?),
    })
}

fn whole(it: &Value<'_>) -> Option<i128> {
    match it {
        Value::Int(it) => Some(i128::from(*it)),
        Value::Uint(it) => Some(i128::from(*it)),
        _ => None,
    }
}

/// A double is compared with a whole number as a double, unless it is out of their range.
fn compare_double(one: f64, two: i128) -> Option<Ordering> {
    one.partial_cmp(&(two as f64))
}

const _: () = assert!(size_of::<Value<'static>>() <= ELEMENT_BYTES);
