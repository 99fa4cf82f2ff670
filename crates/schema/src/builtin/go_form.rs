//! An object with all that Go writes of it, zeros among it.
//!
//! In: a canonical object, which says nothing where Go has a zero. Out: the same as Go's encoder would write
//! it: a struct that is not there is `{}`, a list that must be there is null, what is omitted when empty is
//! gone. Never: changes what is said.
//!
//! Who owns which fields is kept by what Go has, and there `resources: {}` of a container is a field.

use serde_json::{Map, Value};

use super::codec::{is_written, zero};
use super::table::{Field, Table, TypeId, TypeKind};

/// Makes a canonical value of the type what Go would write.
///
/// - `value`: null is a zero.
///
/// Cost: one walk; allocates for what is put in.
pub fn to_go_form(ty: TypeId, value: &mut Value) {
    let table = super::table();
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    walk(table, ty, value);
}

/// The members that Go writes of a struct whatever is said of them, by name; each with its type where what it
/// writes then is a struct.
pub fn always(ty: TypeId) -> impl Iterator<Item = (&'static Field, Option<TypeId>)> {
    let table = super::table();
    let members = table.members_by_name(ty).filter(|field| !field.flags.omitted_when_absent());
    members.map(|field| (field, is_struct(table, field).then_some(field.ty)))
}

/// Whether Go writes a member of a struct of which `value` is said.
pub fn is_said(field: &Field, value: &Value) -> bool {
    !value.is_null() && is_written(super::table(), field, Some(value))
}

fn walk(table: &Table, ty: TypeId, value: &mut Value) {
    match (table.ty(ty).kind, value) {
        (TypeKind::Struct, Value::Object(map)) => object(table, ty, map),
        (TypeKind::List | TypeKind::SchemaOrArray, Value::Array(items)) => {
            items.iter_mut().for_each(|item| walk(table, table.elem(ty), item));
        }
        (TypeKind::Map, Value::Object(map)) => {
            map.values_mut().for_each(|value| walk(table, table.elem(ty), value));
        }
        (
            TypeKind::SchemaOrBool | TypeKind::SchemaOrArray | TypeKind::SchemaOrStrings,
            Value::Object(map),
        ) => {
            object(table, table.elem(ty), map);
        }
        _ => {}
    }
}

fn object(table: &Table, ty: TypeId, map: &mut Map<String, Value>) {
    let members = table.member_indexes(ty);
    let mut near = 0;
    map.retain(|key, value| {
        let Some(position) = table.seek(ty, &mut near, key) else { return true };
        let field = table.field_at(members[position]);
        walk(table, field.ty, value);
        !value.is_null() && is_written(table, field, Some(value))
    });
    for field in table.members(ty).filter(|field| !field.flags.omitted_when_absent()) {
        if !map.contains_key(field.name) {
            map.insert(field.name.to_owned(), absent(table, field));
        }
    }
}

/// What Go writes for a member that is not there.
fn absent(table: &Table, field: &Field) -> Value {
    if is_struct(table, field) {
        let mut map = Map::new();
        object(table, field.ty, &mut map);
        return Value::Object(map);
    }
    serde_json::from_slice(zero(table, field)).expect("a zero is JSON")
}

fn is_struct(table: &Table, field: &Field) -> bool {
    table.ty(field.ty).kind == TypeKind::Struct && !field.flags.pointer()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::table;
    use super::*;

    fn check(package: &str, name: &str, value: Value, want: Value) {
        let ty = table().type_named(package, name).expect("a type");
        let mut got = value.clone();
        to_go_form(ty, &mut got);
        assert_eq!(got, want, "{value}");
    }

    #[test]
    fn structs_and_lists_that_must_be_there_are() {
        let pod = json!({"spec": {"containers": [{"name": "a", "ports": []}]}});
        let want = json!({
            "metadata": {}, "status": {}, "spec": {"containers": [{"name": "a", "resources": {}}]},
        });
        check("core/v1", "Pod", pod, want);
        check("rbac/v1", "Role", json!({}), json!({"metadata": {}, "rules": null}));
    }

    #[test]
    fn what_is_omitted_when_empty_is_gone() {
        let port = json!({"containerPort": 0, "hostPort": 0, "name": "", "protocol": "TCP"});
        check("core/v1", "ContainerPort", port, json!({"containerPort": 0, "protocol": "TCP"}));
        // Behind a pointer a zero is a value.
        check("core/v1", "ObjectReference", Value::Null, json!({}));
    }
}
