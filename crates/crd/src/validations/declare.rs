//! What a structural schema declares to the expressions of its rules: types, names, and how much there may
//! be.
//!
//! In: schemas. Out: declarations, each made once. Never: reads a rule.
//!
//! Source: apiserver v0.36.3 `pkg/cel/common/schemas.go`, `pkg/cel/limits.go`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use forebay_apimachinery::Seen;
use forebay_cel::decl::{Decl, DeclField, DeclKind, ListKind, escape};
use serde_json::Value;

use crate::limits::RULE_REQUEST_BYTES_MAX;
use crate::props::{Props, SchemaOrBool};

/// What a text may be at most, without its quotes.
const TEXT_MAX: u64 = RULE_REQUEST_BYTES_MAX - 2;

/// Declarations by where their schemas are, and whether each is the root of a resource.
#[derive(Default)]
pub(crate) struct Declarations(HashMap<(usize, bool), Option<Arc<Decl>>>);

impl Declarations {
    /// What `schema` declares; `None` for what expressions do not see.
    ///
    /// - `is_resource`: it has `apiVersion`, `kind`, and `metadata` with its names, whatever it says.
    pub(crate) fn of(&mut self, schema: Props<'_>, is_resource: bool) -> Option<Arc<Decl>> {
        let key = (schema.address(), is_resource);
        if let Some(known) = self.0.get(&key) {
            return known.clone();
        }
        let decl = self.make(schema, is_resource).map(Arc::new);
        self.0.insert(key, decl.clone());
        decl
    }

    /// What a schema below another declares.
    fn below(&mut self, schema: Props<'_>) -> Option<Arc<Decl>> {
        self.of(schema, schema.embedded_resource())
    }

    fn make(&mut self, schema: Props<'_>, is_resource: bool) -> Option<Decl> {
        let nullable = schema.nullable();
        if schema.int_or_string() {
            let elements_max = length_max(schema).map_or(TEXT_MAX, |chars| chars.saturating_mul(4));
            return Some(Decl { kind: DeclKind::IntOrString, elements_max, bytes_min: 1, nullable });
        }
        let plain = |kind, bytes_min| Some(Decl { kind, elements_max: 0, bytes_min, nullable });
        match schema.kind() {
            "array" => self.list(schema),
            "object" => match schema.schema_or_bool("additionalProperties").and_then(SchemaOrBool::schema) {
                Some(values) => self.map(schema, values),
                None => Some(self.object(schema, is_resource)),
            },
            "string" => Some(text(schema)),
            "boolean" => plain(DeclKind::Bool, 4),
            "number" => plain(DeclKind::Double, 1),
            "integer" => plain(DeclKind::Int, 1),
            _ => None,
        }
    }

    fn list(&mut self, schema: Props<'_>) -> Option<Decl> {
        let items = self.below(schema.item()?)?;
        // Brackets, and a comma for each.
        let unlimited = || (RULE_REQUEST_BYTES_MAX - 2) / (items.bytes_min + 1);
        let elements_max = schema.int("maxItems").map_or_else(unlimited, or_none);
        let kind = match schema.list_type() {
            Some("set") => ListKind::Set,
            Some("map") => ListKind::Map(schema.list_map_keys().filter_map(escape).map(Into::into).collect()),
            _ => ListKind::Atomic,
        };
        Some(Decl {
            kind: DeclKind::List { items, kind },
            elements_max,
            bytes_min: 2,
            nullable: schema.nullable(),
        })
    }

    fn map(&mut self, schema: Props<'_>, values: Props<'_>) -> Option<Decl> {
        let values = self.below(values)?;
        // Braces, and for each two bytes of a name, its quotes, a colon and a comma.
        let unlimited = || (RULE_REQUEST_BYTES_MAX - 2) / (values.bytes_min + 6);
        let elements_max = schema.int("maxProperties").map_or_else(unlimited, or_none);
        Some(Decl { kind: DeclKind::Map(values), elements_max, bytes_min: 2, nullable: schema.nullable() })
    }

    fn object(&mut self, schema: Props<'_>, is_resource: bool) -> Decl {
        let required: Seen<&str> = schema.strings("required").collect();
        let (mut fields, mut bytes_min) = (BTreeMap::new(), 2);
        let given = is_resource && !names_itself(schema);
        for (name, property) in schema.named("properties") {
            if given && matches!(name, "apiVersion" | "kind" | "metadata") {
                continue;
            }
            let Some(decl) = self.below(property) else { continue };
            if required.has(name) && property.default_value().is_none() {
                bytes_min += name.len() as u64 + decl.bytes_min + 4;
            }
            declare(&mut fields, name, decl);
        }
        if given {
            let text = Arc::new(Decl {
                kind: DeclKind::String,
                elements_max: TEXT_MAX,
                bytes_min: 2,
                nullable: false,
            });
            let mut names = BTreeMap::new();
            declare(&mut names, "name", text.clone());
            declare(&mut names, "generateName", text.clone());
            let metadata =
                Decl { kind: DeclKind::Object(names), elements_max: 0, bytes_min: 2, nullable: false };
            for (name, decl) in [("apiVersion", text.clone()), ("kind", text), ("metadata", metadata.into())]
            {
                if required.has(name) {
                    bytes_min += name.len() as u64 + decl.bytes_min + 4;
                }
                declare(&mut fields, name, decl);
            }
        }
        Decl { kind: DeclKind::Object(fields), elements_max: 0, bytes_min, nullable: schema.nullable() }
    }
}

/// A field that an expression can name.
fn declare(fields: &mut BTreeMap<Arc<str>, DeclField>, name: &str, decl: Arc<Decl>) {
    if let Some(escaped) = escape(name) {
        fields.insert(escaped.into(), DeclField { key: name.into(), decl });
    }
}

/// Whether the schema of a resource says of each part of its identity what it is.
fn names_itself(schema: Props<'_>) -> bool {
    let is = |schema: Props<'_>, name: &str, kind: &str| {
        schema.property(name).is_some_and(|property| property.kind() == kind)
    };
    let has_names =
        |metadata: Props<'_>| is(metadata, "name", "string") && is(metadata, "generateName", "string");
    is(schema, "kind", "string")
        && is(schema, "apiVersion", "string")
        && is(schema, "metadata", "object")
        && schema.property("metadata").is_some_and(has_names)
}

/// A limit below nothing is nothing.
fn or_none(limit: i64) -> u64 {
    limit.max(0) as u64
}

fn length_max(schema: Props<'_>) -> Option<u64> {
    schema.int("maxLength").map(or_none)
}

fn text(schema: Props<'_>) -> Decl {
    let (kind, elements_max, bytes_min) = match schema.str("format") {
        "byte" => (DeclKind::Bytes, length_max(schema).unwrap_or(TEXT_MAX), 2),
        "duration" => (DeclKind::Duration, 32, 3),
        "date" => (DeclKind::Date, 12, 12),
        "date-time" => (DeclKind::Timestamp, 32, 21),
        _ => {
            let choices = schema.list("enum");
            let longest = choices.iter().filter_map(Value::as_str).map(str::len).max().unwrap_or(0);
            let unlimited = if choices.is_empty() { TEXT_MAX } else { longest as u64 };
            let elements_max = length_max(schema).map_or(unlimited, |chars| chars.saturating_mul(4));
            (DeclKind::String, elements_max, 2)
        }
    };
    Decl { kind, elements_max, bytes_min, nullable: schema.nullable() }
}
