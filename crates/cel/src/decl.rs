//! What a schema says of a value that an expression is given: its types, its names in JSON, how much there
//! may be.
//!
//! In: what somebody who knows schemas declares. Out: the checker's types, a tree's values, sizes for an
//! estimate. Never: reads a schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::parser::RESERVED;
use crate::types::{Fields, StructType, Type};

/// A declared type.
#[derive(Debug, Clone)]
pub struct Decl {
    pub kind: DeclKind,
    /// Characters of a string, elements of a list, entries of a map: as many as there may be.
    pub elements_max: u64,
    /// Bytes of JSON that it takes at least.
    pub bytes_min: u64,
    /// Whether it may be null.
    pub nullable: bool,
}

#[derive(Debug, Clone)]
pub enum DeclKind {
    /// One or the other, told apart when it is evaluated.
    IntOrString,
    Bool,
    Int,
    Double,
    String,
    /// Base64 in JSON.
    Bytes,
    /// A text that is a duration, as Go writes it or in words.
    Duration,
    /// A text that is a date.
    Date,
    /// A text that is a time.
    Timestamp,
    List {
        items: Arc<Decl>,
        kind: ListKind,
    },
    Map(Arc<Decl>),
    /// Fields by the name that an expression has for each.
    Object(BTreeMap<Arc<str>, DeclField>),
}

/// What is equal among lists, and what adding one to another does.
#[derive(Debug, Clone, PartialEq)]
pub enum ListKind {
    Atomic,
    Set,
    /// By these members.
    Map(Arc<[Arc<str>]>),
}

#[derive(Debug, Clone)]
pub struct DeclField {
    /// The name in JSON.
    pub key: Arc<str>,
    pub decl: Arc<Decl>,
}

/// The name that an expression has for a field: words of the language and characters of no identifier are
/// written out. `None` for a field that no expression can name.
pub fn escape(name: &str) -> Option<String> {
    const KEYWORDS: [&str; 4] = ["true", "false", "null", "in"];
    // Few: the language has no more words.
    if KEYWORDS.contains(&name) || RESERVED.contains(&name) {
        return Some(reserved(name));
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/');
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_name) {
        return None;
    }
    let escaped = name.replace("__", "__underscores__").replace('.', "__dot__").replace('-', "__dash__");
    Some(escaped.replace('/', "__slash__"))
}

/// A word of the language as an identifier.
fn reserved(word: &str) -> String {
    format!("__{word}__")
}

impl Decl {
    /// As the checker knows it, objects by `name` and the way to them. What is below an object is named when
    /// it is selected: a rule is checked in what it names, however large the schema.
    pub fn checked(self: &Arc<Decl>, name: &str) -> Type {
        match &self.kind {
            DeclKind::IntOrString => Type::Dyn,
            DeclKind::Bool => Type::Bool,
            DeclKind::Int => Type::Int,
            DeclKind::Double => Type::Double,
            DeclKind::String => Type::String,
            DeclKind::Bytes => Type::Bytes,
            DeclKind::Duration => Type::Duration,
            DeclKind::Date | DeclKind::Timestamp => Type::Timestamp,
            DeclKind::List { items, .. } => Type::list(items.checked(&format!("{name}.@idx"))),
            DeclKind::Map(values) => Type::map(Type::String, values.checked(&format!("{name}.@elem"))),
            DeclKind::Object(_) => Type::Struct(Arc::new(StructType {
                name: name.into(),
                fields: Fields::Declared(self.clone()),
            })),
        }
    }

    /// A field of an object, also where a word of the language is written as it is.
    pub(crate) fn field(&self, name: &str) -> Option<&DeclField> {
        let DeclKind::Object(fields) = &self.kind else { return None };
        fields.get(name).or_else(|| fields.get(&*reserved(name)))
    }

    /// The most elements of what `path` leads to, if it leads anywhere.
    pub(crate) fn elements_at(&self, path: &[Arc<str>]) -> Option<u64> {
        let Some((step, rest)) = path.split_first() else { return Some(self.elements_max) };
        match (&self.kind, &**step) {
            (DeclKind::List { items, .. }, "@items") => items.elements_at(rest),
            (DeclKind::Map(values), "@values") => values.elements_at(rest),
            // Upstream has it so: nobody says how long a key is.
            (DeclKind::Map(_), "@keys") if rest.is_empty() => Some(0),
            (DeclKind::Object(fields), name) => fields.get(name)?.decl.elements_at(rest),
            _ => None,
        }
    }
}

impl DeclKind {
    /// What an error says was expected instead of what there is, as Go calls that.
    pub(crate) fn expected(&self, found: &Json) -> String {
        let of_go = match found {
            Json::Null => "<nil>",
            Json::Bool(_) => "bool",
            Json::Number(it) if it.is_i64() => "int64",
            Json::Number(_) => "float64",
            Json::String(_) => "string",
            Json::Array(_) => "[]interface {}",
            Json::Object(_) => "map[string]interface {}",
        };
        match self {
            DeclKind::IntOrString => "XIntOrString value to be either a string or integer".into(),
            DeclKind::List { .. } => "an array for the provided schema with type=array".into(),
            DeclKind::Map(_) | DeclKind::Object(_) => "a map for the provided schema with type=object".into(),
            DeclKind::Bool => format!("bool, got {of_go}"),
            DeclKind::Int => format!("int, got {of_go}"),
            DeclKind::Double => format!("float, got {of_go}"),
            DeclKind::String
            | DeclKind::Bytes
            | DeclKind::Duration
            | DeclKind::Date
            | DeclKind::Timestamp => {
                format!("string, got {of_go}")
            }
        }
    }
}
