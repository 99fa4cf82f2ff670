//! Every type of every built-in kind, and those of custom resources, as kube-apiserver has them for apply.

use std::collections::BTreeSet;

use forebay_fieldmanager::FieldType;
use forebay_merge::{Atom, Map, Relation, ScalarType, TypeRef};
use forebay_schema::builtin::{TypeId, table};
use serde_json::Value;

use crate::go;

/// What is told of a type on both sides, in one line; named types by their names.
pub fn told(ty: FieldType<'_>) -> String {
    if let FieldType::BuiltIn(id, _) = ty
        && let Some(name) = table().openapi_name(id)
        && ty.atom().list.is_none()
        && ty.atom().map.is_some_and(|map| map.item.is_none())
    {
        let atomic = if ty.atom().map.is_some_and(|map| map.atomic) { " atomic" } else { "" };
        return format!("{name}{atomic}");
    }
    let Atom { scalar, list, map } = ty.atom();
    if scalar.is_some() && map.is_some_and(|map| map.deduced) {
        return "untyped deduced".to_owned();
    }
    if scalar.is_some() && map.is_some_and(|map| map.atomic) {
        return "untyped atomic".to_owned();
    }
    let scalar = scalar.map(|scalar| {
        match scalar {
            ScalarType::Numeric => "numeric",
            ScalarType::String => "string",
            ScalarType::Boolean => "boolean",
            ScalarType::Untyped => "untyped",
        }
        .to_owned()
    });
    let list = list.map(|list| {
        let keys: Vec<&str> = (0..).map_while(|at| ty.key(at)).collect();
        format!("list {:?} {keys:?} of {}", list.relation, list.item.map(told).unwrap_or_default())
    });
    let map = map.map(|map| format!("map of {}", told_map(map)));
    [scalar, list, map].into_iter().flatten().collect::<Vec<_>>().join(" or ")
}

fn told_map(map: Map<FieldType<'_>>) -> String {
    let atomic = if map.atomic { " atomic" } else { "" };
    format!("{}{atomic}", map.item.map(told).unwrap_or_default())
}

/// The same of a reference as upstream has it.
pub fn upstream_told(types: &Value, reference: &Value) -> String {
    let named = reference["named"].as_str();
    let atom = named.map_or(&reference["inlined"], |name| &types[name]);
    let is_atomic = |of: &Value| {
        reference["relation"].as_str().or(of["relation"].as_str()).unwrap_or_default() == "atomic"
    };
    let (scalar, list, map) = (atom.get("scalar"), atom.get("list"), atom.get("map"));
    if scalar.is_some()
        && map.is_some_and(|map| map["element"]["named"] == "__untyped_deduced_" && no_fields(map))
    {
        return "untyped deduced".to_owned();
    }
    if scalar.is_some() && map.is_some_and(is_atomic) {
        return "untyped atomic".to_owned();
    }
    if let (Some(name), Some(map), None) = (named, map, list)
        && map["element"].is_null()
    {
        return format!("{name}{}", if is_atomic(map) { " atomic" } else { "" });
    }
    let list = list.map(|list| {
        let relation = if is_atomic(list) { Relation::Atomic } else { Relation::Associative };
        let keys: Vec<&str> =
            list["keys"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        format!("list {relation:?} {keys:?} of {}", upstream_told(types, &list["element"]))
    });
    let map = map.map(|map| {
        let item =
            if map["element"].is_null() { String::new() } else { upstream_told(types, &map["element"]) };
        format!("map of {item}{}", if is_atomic(map) { " atomic" } else { "" })
    });
    let scalar = scalar.and_then(Value::as_str).map(str::to_owned);
    [scalar, list, map].into_iter().flatten().collect::<Vec<_>>().join(" or ")
}

fn no_fields(map: &Value) -> bool {
    map["fields"].as_object().is_none_or(serde_json::Map::is_empty)
}

#[test]
fn the_table_says_of_each_field_what_kube_apiserver_says() {
    let Some(definitions) = go::definitions() else { return };
    let Some(answers) = go::ask(&["types", definitions.to_str().expect("a path")], "") else { return };
    let types = &answers[0];
    let (mut compared, mut differ) = (0, Vec::new());
    let ids: Vec<TypeId> = table().types().map(|(id, _)| id).collect();
    for id in ids {
        let name = table().openapi_name(id).unwrap_or_default();
        let Some(theirs) = types.get(&name) else { continue };
        let fields = theirs["map"]["fields"].as_object();
        let mut names: BTreeSet<&str> = table().members(id).map(|field| field.name).collect();
        names.extend(fields.into_iter().flatten().map(|(field, _)| field.as_str()));
        for field in names {
            compared += 1;
            let ty = FieldType::BuiltIn(id, None);
            let ours = ty.field(field).map(|ours| (told(ours), ty.default_of(field)));
            let theirs = theirs["map"]["fields"].get(field);
            let theirs = theirs.map(|of| (upstream_told(types, &of["type"]), of.get("default").cloned()));
            if ours != theirs {
                differ.push(format!("{name}.{field}: {ours:?}, but upstream: {theirs:?}"));
            }
        }
    }
    assert!(differ.is_empty(), "{} of {compared} fields differ:\n{}", differ.len(), differ.join("\n"));
    println!("{compared} fields compared");
    assert!(compared > 3_000, "{compared}");
}
