//! The few lists and maps that Go writes though they are empty, `rules` of a Role, `endpoints` of a slice,
//! one that it fills in unless it is said to be empty, and those that are judged by whether they are said.
//!
//! In: a value that has them as they were sent. Out: the same as protobuf keeps it, where an empty list is
//! none, but for what is still to be judged: that goes when the object is written. Never: of types that are
//! stored as JSON, which keeps the difference.
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

/// Lists and maps that somebody may not say though they are empty; each of a struct. Go leaves them out of
/// what it writes when they are empty.
const JUDGED: [(&str, &str); 8] = [
    ("EphemeralContainer", "ports"),
    ("EphemeralContainer", "resizePolicy"),
    ("EphemeralContainer", "restartPolicyRules"),
    ("PodSpec", "overhead"),
    ("ResourceRequirements", "claims"),
    ("ResourceRequirements", "limits"),
    ("ResourceRequirements", "requests"),
    ("ResourceSliceSpec", "sharedCounters"),
];

fn is_judged(table: &Table, owner: TypeId, field: &Field) -> bool {
    JUDGED.contains(&(table.ty(owner).name, field.name))
}

/// Whether it matters of a struct's member, if that is a list or a map, that it is there and empty.
pub(super) fn is_told_empty(table: &Table, owner: TypeId, field: &Field) -> bool {
    let is_written = || !field.flags.omitted_when_absent() && !field.flags.pointer();
    let is_filled_in = || (table.ty(owner).name, field.name) == FILLED_IN_IF_ABSENT;
    let is_told = || is_written() || is_filled_in() || is_judged(table, owner, field);
    matches!(table.ty(field.ty).kind, TypeKind::List | TypeKind::Map) && is_told()
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
        if is_empty(value) && is_forgotten(table, ty, field) {
            return false;
        }
        forget(table, field.ty, value);
        true
    });
}

/// Whether a struct's member, if it is there and empty, is none once the object is judged.
fn is_forgotten(table: &Table, owner: TypeId, field: &Field) -> bool {
    is_told_empty(table, owner, field) && !is_judged(table, owner, field)
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
                table.members(ty).any(|field| is_forgotten(table, ty, field) || holds(holders, field.ty))
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
    fn what_is_judged_by_whether_it_is_said_stays_until_it_is_written() {
        let ty = table().type_named("core/v1", "PodSpec").expect("a type");
        for (package, name) in [("core/v1", "PodSpec"), ("resource/v1", "ResourceSliceSpec")] {
            let ty = table().type_named(package, name).expect("a type");
            let of = |(owner, _): &&(&str, &str)| *owner == name;
            assert!(
                JUDGED.iter().filter(of).all(|(_, member)| table().member(ty, member).is_some()),
                "{name}"
            );
        }
        let container = json!({"name": "a", "ports": [], "resources": {"claims": [], "limits": {}}});
        let spec = json!({"overhead": {}, "nodeSelector": {}, "ephemeralContainers": [container]});
        let mut value = spec.clone();
        codec::normalize_as_sent(ty, &mut value).expect("it is of the type");
        forget_empty_lists(ty, &mut value);
        assert_eq!(value, json!({"overhead": {}, "ephemeralContainers": [container]}));
        let mut written = Vec::new();
        codec::write_json(ty, &value, &mut written).expect("it is canonical");
        let written: Value = serde_json::from_slice(&written).expect("JSON");
        let container = json!({"name": "a", "resources": {}});
        assert_eq!(written, json!({"containers": null, "ephemeralContainers": [container]}));
        codec::normalize(ty, &mut spec.clone()).expect("it is of the type");
    }

    #[test]
    fn what_is_stored_as_json_keeps_them() {
        let crd = json!({"spec": {"versions": []}});
        check("apiextensions/v1", "CustomResourceDefinition", crd.clone(), crd.clone(), crd);
    }
}
