//! Fields and items taken out of a value, or all but them.
//!
//! In: a value of one's own and a set. Out: what is left of it. Never: another tree; a value that is known to
//! be of its type is not checked again.
//!
//! Source: structured-merge-diff v6.3.3 `typed/remove.go`. An object or list that nothing is left of becomes null, as there.

use serde_json::Value;

use super::list::element_of;
use crate::element::Element;
use crate::schema::{List, Map, Relation, Treated, TypeRef};
use crate::set::{Nodes, Set};

/// What is extracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extract {
    Fields,
    /// With the keys of the items that the fields are in.
    FieldsAndKeys,
}

/// Without what is in the set.
pub fn remove<T: TypeRef>(value: Value, fields: &Set, ty: T) -> Value {
    visit(value, fields.nodes(), Some(ty), Take::Out)
}

/// Only what is in the set.
pub fn extract<T: TypeRef>(value: Value, fields: &Set, ty: T) -> Value {
    visit(value, fields.nodes(), Some(ty), Take::Only)
}

/// What happens to what is in the set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Take {
    Out,
    Only,
}

fn visit<T: TypeRef>(value: Value, nodes: Nodes<'_>, ty: Option<T>, take: Take) -> Value {
    let Some(ty) = ty else { return Value::Null };
    match (ty.atom().of(&value), value) {
        (Treated::Scalar(_), value) => value,
        (Treated::List(list), Value::Array(items))
            if items.is_empty() || list.relation == Relation::Atomic =>
        {
            whole(Value::Array(items), take)
        }
        (Treated::List(list), Value::Array(items)) => visit_items(items, nodes, ty, &list, take),
        (Treated::Map(map), Value::Object(members)) if members.is_empty() || map.atomic => {
            whole(Value::Object(members), take)
        }
        (Treated::Map(map), Value::Object(members)) => visit_members(members, nodes, ty, &map, take),
        _ => Value::Null,
    }
}

/// What has no fields of its own.
fn whole(value: Value, take: Take) -> Value {
    if take == Take::Only { value } else { Value::Null }
}

fn visit_items<T: TypeRef>(items: Vec<Value>, nodes: Nodes<'_>, ty: T, list: &List<T>, take: Take) -> Value {
    let level = nodes.level();
    let mut left = Vec::with_capacity(items.len());
    for item in items {
        let element = element_of(ty, list, &item);
        let found = element.ok().and_then(|element| level.find(&element));
        let is_member = found.is_some_and(|node| node.member);
        let below = found.map(|node| node.below).filter(|below| !below.is_empty());
        match (take, below) {
            (Take::Out, _) if is_member => {}
            (_, Some(below)) => left.push(visit(item, below, list.item, take)),
            (Take::Only, None) if !is_member => {}
            _ => left.push(item),
        }
    }
    if left.is_empty() { Value::Null } else { Value::Array(left) }
}

fn visit_members<T: TypeRef>(
    members: serde_json::Map<String, Value>,
    nodes: Nodes<'_>,
    ty: T,
    map: &Map<T>,
    take: Take,
) -> Value {
    let level = nodes.level();
    let mut left = serde_json::Map::new();
    for (name, value) in members {
        let field = ty.field(&name).or(map.item);
        let found = level.find(&Element::field(&name));
        let below = found.map(|node| node.below).filter(|below| !below.is_empty());
        let value = match (take, found.is_some_and(|node| node.member), below) {
            (Take::Out, true, _) => continue,
            // As upstream: what is below is looked for in the same set, where only fields of the same names
            // are found.
            (Take::Only, true, _) => visit(value, nodes, field, take),
            (_, false, Some(below)) => visit(value, below, field, take),
            (Take::Only, false, None) => continue,
            (Take::Out, false, None) => value,
        };
        left.insert(name, value);
    }
    if left.is_empty() { Value::Null } else { Value::Object(left) }
}
