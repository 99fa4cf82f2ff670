//! The items of associative lists: which is which.
//!
//! In: an item and the type of its list. Out: the element that it is, or why it is none. Never: a hash of
//! what a client sent: items are found by order.

use serde_json::Value;

use crate::element::Element;
use crate::gotext;
use crate::schema::{List, Relation, TypeRef};

/// The list that `value` is, or its null; what is wrong if it is neither.
pub fn list_of(value: &Value) -> Result<Option<&Vec<Value>>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Array(items) => Ok(Some(items)),
        other => Err(format!("expected list, got {}", gotext::shown(other))),
    }
}

/// The object that `value` is, or its null; what is wrong if it is neither.
pub fn map_of(value: &Value) -> Result<Option<&serde_json::Map<String, Value>>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Object(members) => Ok(Some(members)),
        other => Err(format!("expected map, got {}", gotext::shown(other))),
    }
}

/// The members of an object by name; those of a tree are, unless some crate in the build asks serde_json for
/// another order.
pub fn members(map: Option<&serde_json::Map<String, Value>>) -> impl Iterator<Item = (&String, &Value)> {
    let mut members: Vec<_> = map.into_iter().flatten().collect();
    members.sort_by_key(|(name, _)| *name);
    members.into_iter()
}

/// The element that an item of an associative list is.
pub fn element_of<T: TypeRef>(ty: T, list: &List<T>, item: &Value) -> Result<Element<'static>, String> {
    if list.relation != Relation::Associative {
        return Err("invalid indexing of non-associative list".into());
    }
    match (ty.key(0), item) {
        (Some(_), Value::Object(members)) => keyed_element(ty, list, members),
        (Some(_), Value::Null) => Err("associative list with keys may not have a null element".into()),
        (Some(_), _) => Err("associative list with keys may not have non-map elements".into()),
        (None, Value::Object(_)) => {
            Err("associative list without keys has an element that's a map type".into())
        }
        (None, Value::Array(_)) => Err("not supported: associative list with lists as elements".into()),
        (None, Value::Null) => {
            Err("associative list without keys has an element that's an explicit null".into())
        }
        (None, scalar) => Ok(Element::value(scalar)),
    }
}

fn keyed_element<T: TypeRef>(
    ty: T,
    list: &List<T>,
    members: &serde_json::Map<String, Value>,
) -> Result<Element<'static>, String> {
    let names = || (0..).map_while(|at| ty.key(at));
    let mut defaults = Vec::new();
    for name in names().filter(|name| !members.contains_key(*name)) {
        let item =
            list.item.ok_or_else(|| no_default(name, "associative list may not have non-map types"))?;
        if item.atom().map.is_none() {
            return Err(no_default(name, "associative list may not have non-map types"));
        }
        defaults.extend(item.default_of(name).map(|value| (name, value)));
    }
    let given = names().filter_map(|name| Some((name, members.get(name)?)));
    let keys: Vec<_> = given.chain(defaults.iter().map(|(name, value)| (*name, value))).collect();
    if keys.is_empty() {
        let names: Vec<String> = names().map(forebay_apimachinery::json::go_quote).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any \
             key fields)",
            names.join(" ")
        ));
    }
    Ok(Element::keys(keys))
}

fn no_default(name: &str, why: &str) -> String {
    format!("couldn't find default value for {name}: {why}")
}
