//! The types of upstream's tests.
//!
//! In: schemas as they were recorded. Out: handles to their types. Never: a type that no test has.

use std::collections::BTreeMap;

use forebay_merge::{Atom, List, Map, Relation, ScalarType, TypeRef};
use serde_json::Value;

/// The schemas, by name; they live as long as the test's process.
#[derive(Default)]
pub struct Schemas(BTreeMap<String, &'static Schema>);

#[derive(Default)]
struct Schema {
    types: BTreeMap<String, KnownAtom>,
}

#[derive(Default)]
struct KnownAtom {
    scalar: Option<ScalarType>,
    list: Option<ListAtom>,
    map: Option<MapAtom>,
}

struct ListAtom {
    item: Option<Reference>,
    relation: String,
    keys: Vec<String>,
}

struct MapAtom {
    fields: BTreeMap<String, (Option<Reference>, Option<Value>)>,
    item: Option<Reference>,
    relation: String,
    deduced: bool,
}

/// To a type: by name or as it is, with another relation perhaps.
struct Reference {
    to: Result<String, Box<KnownAtom>>,
    relation: Option<String>,
}

/// A handle to a type.
#[derive(Clone, Copy)]
pub struct Handle {
    schema: &'static Schema,
    atom: &'static KnownAtom,
    relation: Option<&'static str>,
}

impl Schemas {
    pub fn add(&mut self, record: &Value) {
        let types = record["types"].as_object().expect("types");
        let types = types.iter().map(|(name, value)| (name.clone(), atom(value))).collect();
        let schema = Box::leak(Box::new(Schema { types }));
        self.0.insert(record["name"].as_str().expect("a name").to_owned(), schema);
    }

    pub fn handle(&self, ty: &Value) -> Option<Handle> {
        let schema = self.0[ty["schema"].as_str().expect("a name")];
        let reference = Box::leak(Box::new(reference(&ty["ref"])?));
        Handle::of(schema, reference)
    }
}

impl Handle {
    fn of(schema: &'static Schema, reference: &'static Reference) -> Option<Handle> {
        let atom = match &reference.to {
            Ok(name) => schema.types.get(name)?,
            Err(inlined) => inlined,
        };
        Some(Handle { schema, atom, relation: reference.relation.as_deref() })
    }
}

impl TypeRef for Handle {
    fn atom(self) -> Atom<Handle> {
        let to = |reference: &'static Option<Reference>| Handle::of(self.schema, reference.as_ref()?);
        let list = self.atom.list.as_ref().map(|list| List {
            relation: match self.relation.unwrap_or(&list.relation) {
                "atomic" => Relation::Atomic,
                _ => Relation::Associative,
            },
            item: to(&list.item),
        });
        let map = self.atom.map.as_ref().map(|map| Map {
            atomic: self.relation.unwrap_or(&map.relation) == "atomic",
            item: to(&map.item),
            deduced: map.deduced,
        });
        // A scalar with a relation is no type.
        Atom {
            scalar: self.atom.scalar.filter(|_| self.relation.is_none() || list.is_some() || map.is_some()),
            list,
            map,
        }
    }

    fn field(self, name: &str) -> Option<Handle> {
        let (reference, _) = self.atom.map.as_ref()?.fields.get(name)?;
        Handle::of(self.schema, reference.as_ref()?)
    }

    fn key(&self, at: usize) -> Option<&str> {
        self.atom.list.as_ref()?.keys.get(at).map(String::as_str)
    }

    fn default_of(self, field: &str) -> Option<Value> {
        self.atom.map.as_ref()?.fields.get(field)?.1.clone()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn reference(value: &Value) -> Option<Reference> {
    let to = match &value["named"] {
        Value::String(name) => Ok(name.clone()),
        _ if value.is_null() => return None,
        _ => Err(Box::new(atom(&value["inlined"]))),
    };
    Some(Reference { to, relation: value["relation"].as_str().map(str::to_owned) })
}

fn atom(value: &Value) -> KnownAtom {
    let scalar = value["scalar"].as_str().map(|name| match name {
        "numeric" => ScalarType::Numeric,
        "string" => ScalarType::String,
        "boolean" => ScalarType::Boolean,
        _ => ScalarType::Untyped,
    });
    let list = value.get("list").map(|list| ListAtom {
        item: reference(&list["element"]),
        relation: text(&list["relation"]),
        keys: list["keys"].as_array().into_iter().flatten().map(text).collect(),
    });
    let fields = |map: &Value| {
        let fields = map["fields"].as_object().into_iter().flatten();
        let field = |value: &Value| (reference(&value["type"]), value.get("default").cloned());
        fields.map(|(name, value)| (name.clone(), field(value))).collect()
    };
    let map = value.get("map").map(|map| MapAtom {
        fields: fields(map),
        item: reference(&map["element"]),
        relation: text(&map["relation"]),
        deduced: map["deduced"] == true,
    });
    KnownAtom { scalar, list, map }
}
