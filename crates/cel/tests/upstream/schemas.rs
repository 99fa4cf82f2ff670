//! Objects with schemas: what selecting, comparing and adding does, and what is estimated by their sizes.

use forebay_cel::decl::{Decl, DeclField, DeclKind, ListKind, escape};
use serde_json::{Value as Json, json};

/// Bytes of a request, less two quotes: how long a text is whose schema does not say.
const TEXT_MAX: u64 = 3 * 1024 * 1024 - 2;

/// A schema whose sizes are all given, as a declaration.
pub fn decl(schema: &Json) -> Decl {
    let number = |name: &str| schema[name].as_u64();
    let (kind, most) = match (schema["type"].as_str(), schema["format"].as_str()) {
        _ if schema["x-kubernetes-int-or-string"] == true => (DeclKind::IntOrString, Some(TEXT_MAX)),
        (Some("boolean"), _) => (DeclKind::Bool, Some(0)),
        (Some("integer"), _) => (DeclKind::Int, Some(0)),
        (Some("number"), _) => (DeclKind::Double, Some(0)),
        (Some("string"), Some("byte")) => (DeclKind::Bytes, number("maxLength")),
        (Some("string"), Some("duration")) => (DeclKind::Duration, Some(TEXT_MAX)),
        (Some("string"), Some("date")) => (DeclKind::Date, Some(TEXT_MAX)),
        (Some("string"), Some("date-time")) => (DeclKind::Timestamp, Some(TEXT_MAX)),
        (Some("string"), _) => {
            (DeclKind::String, number("maxLength").map(|most| most * 4).or(Some(TEXT_MAX)))
        }
        (Some("array"), _) => {
            let items = std::sync::Arc::new(decl(&schema["items"]));
            (DeclKind::List { items, kind: list_kind(schema) }, number("maxItems"))
        }
        (Some("object"), _) if schema["additionalProperties"].is_object() => {
            let values = std::sync::Arc::new(decl(&schema["additionalProperties"]));
            (DeclKind::Map(values), number("maxProperties"))
        }
        _ => (object(schema), Some(0)),
    };
    let elements_max = most.expect("the schemas of these tests say how much there may be");
    Decl { kind, elements_max, bytes_min: 0, nullable: schema["nullable"] == true }
}

/// What upstream made of a schema.
pub fn declared(it: &Json) -> Decl {
    let items = || std::sync::Arc::new(declared(&it["items"]));
    let kind = match it["kind"].as_str().expect("a kind") {
        "object" => {
            let fields = it["fields"].as_object().expect("fields");
            let field = |(name, field): (&String, &Json)| {
                let name: std::sync::Arc<str> = name.as_str().into();
                (name.clone(), DeclField { key: name, decl: declared(field).into() })
            };
            DeclKind::Object(fields.iter().map(field).collect())
        }
        "list" => DeclKind::List { items: items(), kind: ListKind::Atomic },
        "map" => DeclKind::Map(items()),
        "bool" => DeclKind::Bool,
        "int" => DeclKind::Int,
        "double" => DeclKind::Double,
        "string" => DeclKind::String,
        "bytes" => DeclKind::Bytes,
        "google.protobuf.Duration" => DeclKind::Duration,
        "google.protobuf.Timestamp" => DeclKind::Timestamp,
        "dyn" => DeclKind::IntOrString,
        other => panic!("no declaration is {other}"),
    };
    Decl { kind, elements_max: it["max"].as_u64().expect("a size"), bytes_min: 0, nullable: false }
}

fn list_kind(schema: &Json) -> ListKind {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListKind::Set,
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array().expect("keys");
            ListKind::Map(keys.iter().map(|key| key.as_str().expect("a name").into()).collect())
        }
        _ => ListKind::Atomic,
    }
}

fn object(schema: &Json) -> DeclKind {
    let properties = schema["properties"].as_object().expect("properties");
    let field = |(name, schema): (&String, &Json)| {
        let name: std::sync::Arc<str> = name.as_str().into();
        let escaped = escape(&name).expect("a name").into();
        (escaped, DeclField { key: name, decl: decl(schema).into() })
    };
    DeclKind::Object(properties.iter().map(field).collect())
}

pub fn schema() -> Json {
    let text = json!({"type": "string", "maxLength": 20});
    let port = json!({"type": "object", "properties": {"name": text, "port": {"type": "integer"}}});
    json!({"type": "object", "properties": {
        "name": text,
        "count": {"type": "integer"},
        "a-b.c/d__e": text,
        "ratio": {"type": "number"},
        "on": {"type": "boolean"},
        "data": {"type": "string", "format": "byte", "maxLength": 64},
        "for": {"type": "string", "format": "duration"},
        "at": {"type": "string", "format": "date-time"},
        "any": {"x-kubernetes-int-or-string": true},
        "nothing": {"type": "integer", "nullable": true},
        "zoned": {"type": "string", "format": "date-time"},
        "names": {"type": "array", "maxItems": 10, "items": text},
        "numbers": {"type": "array", "maxItems": 1000, "items": {"type": "integer"}},
        "set": {"type": "array", "maxItems": 10, "items": text, "x-kubernetes-list-type": "set"},
        "other": {"type": "array", "maxItems": 10, "items": text, "x-kubernetes-list-type": "set"},
        "ports": {"type": "array", "maxItems": 5, "items": port,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        "labels": {"type": "object", "maxProperties": 8, "additionalProperties": text},
    }})
}

pub fn value() -> Json {
    json!({
        "name": "web", "a-b.c/d__e": "odd", "count": 3, "ratio": 2, "on": true, "data": "aGk=", "for": "90s", "at": "2024-02-29T10:00:00Z",
        "any": "50%", "nothing": null, "zoned": "2024-02-29T10:00:00+02:00", "names": ["a", "b"], "numbers": [1, 2, 3], "set": ["x", "y"], "other": ["y", "x"],
        "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}], "labels": {"app": "web"},
    })
}

const EXPRESSIONS: [&str; 57] = [
    "self.a__dash__b__dot__c__slash__d__underscores__e",
    "self.for",
    "dyn(self).count",
    "self == self",
    "self.name == 'web'",
    "self.name.size() > 2 && self.count < 5",
    "self.ratio == 2.0",
    "self.ratio / 4.0",
    "self.on ? self.count : 0",
    "has(self.name) && !has(self.missing)",
    "has(self.any)",
    "self.any == '50%'",
    "type(self.any) == string ? self.any.endsWith('%') : self.any > 1",
    "self.data == b'hi'",
    "self.data.size()",
    "self.__for__ == duration('1m30s')",
    "self.__for__ > duration('1s')",
    "self.at < timestamp('2025-01-01T00:00:00Z')",
    "self.at.getDayOfMonth()",
    "self.names.all(n, n.startsWith('a') || n.size() == 1)",
    "self.names.exists(n, n == 'b')",
    "self.names.exists_one(n, n == 'b')",
    "self.names.map(n, n + '-x')",
    "self.names.filter(n, n != 'a').size()",
    "self.names.join(',')",
    "self.names[0] + self.names[1]",
    "self.names[5]",
    "'a' in self.names",
    "self.numbers.sum() == 6",
    "self.numbers.map(n, n * 2).filter(n, n > 2)",
    "self.numbers.sortBy(n, -n)",
    "self.numbers.isSorted()",
    "self.set == self.other",
    "self.set + self.other",
    "self.names == self.set",
    "self.ports.map(p, p.port)",
    "self.ports.exists(p, p.name == 'http' && p.port == 80)",
    "self.ports.all(p, self.ports.exists_one(q, q.name == p.name))",
    "self.ports[0].name.matches('^h[a-z]+$')",
    "self.labels['app'] == self.name",
    "self.labels.app",
    "self.labels.nope",
    "self.labels.?nope.orValue('none')",
    "self.labels.exists(k, k == 'app')",
    "self.labels.transformList(k, v, k + v)",
    "self.nope.x == 1",
    "has(self.null)",
    "has(self.nothing) || has(dyn(self).nothing)",
    "self.nothing == 1",
    "self.for == self.__for__",
    "self.ports + [self.ports[1], self.ports[0]] == [self.ports[1], self.ports[0]]",
    "self.ports + self.ports == self.ports",
    "[self.ports[1], self.ports[0]] == self.ports",
    "self.set + ['z'] == ['z', 'x', 'y']",
    "self.set + ['z'] == self.other",
    "dyn(self).all(k, k != 'for')",
    "self.zoned",
];

pub fn cases() -> Vec<Json> {
    let (schema, value) = (schema(), value());
    EXPRESSIONS
        .iter()
        .map(|expr| json!({"file": "schemas", "expr": expr, "schema": schema, "self": value}))
        .collect()
}
