//! The few lists and maps that Go writes though they are empty, `rules` of a Role, `endpoints` of a slice,
//! and one that it fills in unless it is said to be empty.
//!
//! In: a value that has them as they were sent. Out: the same as protobuf keeps it, where an empty list is
//! none. Never: of types that are stored as JSON, which keeps the difference.
//!
//! Go has two values until an object is stored, and who owns which fields is told by those.

use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::table::{Field, Table, TypeId, TypeKind};

/// Takes the empty lists and maps out that [`super::codec::normalize_as_sent`] leaves in.
///
/// Cost: a walk over what may have some below it, which most of an object may not.
pub fn forget_empty_lists(ty: TypeId, value: &mut Value) {
    let table = super::table();
    if !table.stored_as_json(ty) {
        forget(table, ty, value);
    }
}

/// A list that has a default where it is absent, and none where it is empty; of a struct.
const FILLED_IN_IF_ABSENT: (&str, &str) = ("HPAScalingRules", "policies");

/// Whether it matters of a struct's member, if that is a list or a map, that it is there and empty.
pub(super) fn is_told_empty(table: &Table, owner: TypeId, field: &Field) -> bool {
    let is_written = || !field.flags.omitted_when_absent() && !field.flags.pointer();
    let is_filled_in = || (table.ty(owner).name, field.name) == FILLED_IN_IF_ABSENT;
    matches!(table.ty(field.ty).kind, TypeKind::List | TypeKind::Map) && (is_written() || is_filled_in())
}

fn forget(table: &Table, ty: TypeId, value: &mut Value) {
    if !holders(table)[usize::from(ty.index())] {
        return;
    }
    match (table.ty(ty).kind, value) {
        (TypeKind::Struct, Value::Object(map)) => forget_in(table, ty, map),
        (TypeKind::List, Value::Array(items)) => {
            items.iter_mut().for_each(|item| forget(table, table.elem(ty), item));
        }
        (TypeKind::Map, Value::Object(map)) => {
            map.values_mut().for_each(|value| forget(table, table.elem(ty), value));
        }
        _ => {}
    }
}

fn forget_in(table: &Table, ty: TypeId, map: &mut Map<String, Value>) {
    let members = table.member_indexes(ty);
    let mut near = 0;
    map.retain(|key, value| {
        let Some(position) = table.seek(ty, &mut near, key) else { return true };
        let field = table.field_at(members[position]);
        if is_told_empty(table, ty, field) && is_empty(value) {
            return false;
        }
        forget(table, field.ty, value);
        true
    });
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}

/// Of each type, by its index, whether a value of it may have such a member, however deep.
fn holders(table: &Table) -> &'static [bool] {
    static HOLDERS: OnceLock<Vec<bool>> = OnceLock::new();
    HOLDERS.get_or_init(|| {
        let mut holders = vec![false; table.types.len()];
        // Types name one another in circles: as often as one more is found.
        while mark(table, &mut holders) {}
        holders
    })
}

/// Marks the types that are seen to hold one by what is marked; whether there are any more.
fn mark(table: &Table, holders: &mut [bool]) -> bool {
    let mut found = false;
    for at in (0..table.types.len()).filter_map(|at| u16::try_from(at).ok()) {
        let (ty, at) = (TypeId(at), usize::from(at));
        let holds = |holders: &[bool], ty: TypeId| holders[usize::from(ty.index())];
        let is_holder = match table.ty(ty).kind {
            TypeKind::Struct => {
                table.members(ty).any(|field| is_told_empty(table, ty, field) || holds(holders, field.ty))
            }
            TypeKind::List | TypeKind::Map => holds(holders, table.elem(ty)),
            _ => false,
        };
        found |= is_holder && !holders[at];
        holders[at] = is_holder;
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{codec, table};
    use super::*;

    fn check(package: &str, name: &str, sent: Value, kept: Value, stored: Value) {
        let ty = table().type_named(package, name).expect("a type");
        let mut value = sent.clone();
        codec::normalize_as_sent(ty, &mut value).expect("it is of the type");
        assert_eq!(value, kept, "{sent}");
        forget_empty_lists(ty, &mut value);
        assert_eq!(value, stored, "{sent}");
        let mut value = sent.clone();
        codec::normalize(ty, &mut value).expect("it is of the type");
        assert_eq!(value, stored, "{sent}");
    }

    #[test]
    fn a_list_that_go_writes_is_kept_empty_until_it_is_stored() {
        let role = json!({"metadata": {"labels": {}, "finalizers": []}, "rules": []});
        check("rbac/v1", "Role", role, json!({"metadata": {}, "rules": []}), json!({"metadata": {}}));
        let role = json!({"rules": [{"verbs": [], "resources": []}]});
        check("rbac/v1", "Role", role, json!({"rules": [{"verbs": []}]}), json!({"rules": [{}]}));
        check("rbac/v1", "Role", json!({"rules": null}), json!({}), json!({}));
    }

    #[test]
    fn a_list_that_is_filled_in_where_it_is_absent_is_kept_empty_until_then() {
        let rules = |rules| json!({"spec": {"behavior": {"scaleUp": rules}}});
        let (sent, stored) = (rules(json!({"policies": []})), rules(json!({})));
        check("autoscaling/v2", "HorizontalPodAutoscaler", sent.clone(), sent, stored);
    }

    #[test]
    fn what_is_stored_as_json_keeps_them() {
        let crd = json!({"spec": {"versions": []}});
        check("apiextensions/v1", "CustomResourceDefinition", crd.clone(), crd.clone(), crd);
    }
}
