//! Random objects of a type: few names and values, so that what several clients write is partly the same.

use forebay_fieldmanager::FieldType;
use forebay_merge::TypeRef;
use forebay_schema::builtin::{TypeKind, table};
use serde_json::{Map, Value, json};

use crate::random::Random;

const NAMES: [&str; 3] = ["a", "b", "c"];
/// Fields of a struct that are there at most.
const FIELDS_MAX: usize = 5;
const ITEMS_MAX: usize = 3;

/// A random value of a type, as a client may send it.
pub fn value(
    random: &mut Random,
    ty: FieldType<'_>,
    names: &dyn Fn(FieldType<'_>) -> Vec<String>,
    depth: usize,
) -> Value {
    if let FieldType::BuiltIn(id, _) = ty {
        match table().ty(id).kind {
            TypeKind::Quantity => return json!(*random.of(&["1", "100m", "2Gi"])),
            TypeKind::IntOrString => return random.of(&[json!(80), json!("http")]).clone(),
            TypeKind::Time => return json!(*random.of(&["2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"])),
            TypeKind::MicroTime => return json!("2020-01-01T00:00:00.000000Z"),
            TypeKind::Bytes => return json!(*random.of(&["YQ==", "Yg=="])),
            TypeKind::RawExtension => return json!({"apiVersion": "v1", "kind": "X", "a": random.below(2)}),
            TypeKind::Int32 | TypeKind::Int64 => return json!(random.below(3)),
            TypeKind::Double => return json!(random.below(3)),
            TypeKind::FieldsV1 => return json!({}),
            TypeKind::SchemaOrBool => return json!(random.below(2) == 0),
            TypeKind::SchemaOrArray => return json!([{"type": "string"}]),
            TypeKind::SchemaOrStrings => return json!(["a"]),
            _ => {}
        }
    }
    let atom = ty.atom();
    if let FieldType::Untyped(_) = ty {
        return anything(random, depth);
    }
    if atom.scalar.is_some() && (atom.map.is_none() || random.below(2) == 0) {
        return match atom.scalar {
            Some(forebay_merge::ScalarType::Numeric) => json!(random.below(3)),
            Some(forebay_merge::ScalarType::Boolean) => json!(random.below(2) == 0),
            _ => json!(*random.of(&NAMES)),
        };
    }
    if atom.map.is_some() {
        return object(random, ty, names, depth);
    }
    list(random, ty, names, depth)
}

fn anything(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 2 } else { 4 }) {
        0 => json!(random.below(3)),
        1 => json!(*random.of(&NAMES)),
        2 => json!([anything(random, 0), random.below(3)]),
        _ => {
            let members =
                (0..random.below(3)).map(|_| ((*random.of(&NAMES)).to_owned(), anything(random, depth - 1)));
            Value::Object(members.collect())
        }
    }
}

fn object(
    random: &mut Random,
    ty: FieldType<'_>,
    names: &dyn Fn(FieldType<'_>) -> Vec<String>,
    depth: usize,
) -> Value {
    let mut members = Map::new();
    let declared = names(ty);
    if depth > 0 && !declared.is_empty() {
        for _ in 0..random.below(FIELDS_MAX + 1) {
            let name = random.of(&declared).clone();
            if let Some(field) = ty.field(&name) {
                let value = value(random, field, names, depth - 1);
                if !is_empty(field, &value) {
                    members.insert(name, value);
                }
            }
        }
    }
    // Upstream compares lists that are one value by what Go has in memory, where a quantity that was not sent
    // is another than one that was read as 0, and a list that was sent empty another than one that was not.
    // That is not in any object.
    for name in declared.iter().filter(|name| is_quantity(ty, name)) {
        members.entry(name).or_insert_with(|| json!("1"));
    }
    if let Some(item) = ty.atom().map.and_then(|map| map.item).filter(|_| depth > 0) {
        for _ in 0..random.below(ITEMS_MAX) {
            let name = *random.of(&NAMES);
            if !declared.iter().any(|declared| declared == name) {
                members.insert(name.to_owned(), value(random, item, names, depth - 1));
            }
        }
    }
    Value::Object(members)
}

/// Whether a built-in list or map is empty, which nothing says once it is stored.
fn is_empty(ty: FieldType<'_>, value: &Value) -> bool {
    let FieldType::BuiltIn(id, _) = ty else { return false };
    match table().ty(id).kind {
        TypeKind::List => value.as_array().is_none_or(Vec::is_empty),
        TypeKind::Map => value.as_object().is_none_or(Map::is_empty),
        _ => false,
    }
}

/// Whether a field is a quantity that Go always has.
fn is_quantity(ty: FieldType<'_>, name: &str) -> bool {
    let FieldType::BuiltIn(id, _) = ty else { return false };
    let field = table().member(id, name);
    field.is_some_and(|field| table().ty(field.ty).kind == TypeKind::Quantity && !field.flags.pointer())
}

fn list(
    random: &mut Random,
    ty: FieldType<'_>,
    names: &dyn Fn(FieldType<'_>) -> Vec<String>,
    depth: usize,
) -> Value {
    let Some(list) = ty.atom().list else { return Value::Null };
    let Some(item) = list.item.filter(|_| depth > 0) else { return json!([]) };
    let is_set = list.relation == forebay_merge::Relation::Associative;
    let keys: Vec<String> = (0..).map_while(|at| ty.key(at).map(str::to_owned)).collect();
    let mut items: Vec<Value> = Vec::new();
    let mut seen: Vec<Value> = Vec::new();
    for _ in 0..random.below(ITEMS_MAX + 1) {
        let mut one = value(random, item, names, depth - 1);
        let is_object = one.is_object();
        for key in keys.iter().filter(|_| is_object) {
            let field = item.field(key).or(item.atom().map.and_then(|map| map.item));
            if let Some(field) = field {
                one[key] = value(random, field, names, 0);
            }
        }
        let identity = match keys.is_empty() {
            true => one.clone(),
            false => keys.iter().map(|key| one[key].clone()).collect(),
        };
        if !is_set || !seen.contains(&identity) {
            seen.push(identity);
            items.push(one);
        }
    }
    Value::Array(items)
}
