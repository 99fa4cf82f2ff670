//! Built-in types: the table's rows as they are.
//!
//! In: a type of the table and the field that has it. Out: what a merge asks. Never: anything that the table
//! does not say.
//!
//! Truth: the swagger of Kubernetes as kube-apiserver reads it, field by field (`tests/upstream/types.rs`).

use forebay_merge::{Always, Atom, List, Map, Relation, ScalarType, TypeRef};
use forebay_schema::builtin::{self, Field, ListType, MapType, TypeId, TypeKind, table};
use serde_json::{Value, json};

use super::{ATOMIC, DEDUCED, FieldType};

pub(super) fn atom<'s>(ty: TypeId, field: Option<&'static Field>) -> Atom<FieldType<'s>> {
    let attrs = field.map(|field| table().attrs(field));
    let map_type = attrs.and_then(|attrs| attrs.map_type).or(table().ty(ty).map_type);
    let atomic = map_type == Some(MapType::Atomic);
    let element = || Some(FieldType::BuiltIn(table().elem(ty), None));
    match table().ty(ty).kind {
        TypeKind::RawExtension => ATOMIC.atom(),
        // Nothing is known of what is in it.
        TypeKind::FieldsV1 => FieldType::AnyObject.atom(),
        TypeKind::Struct if table().members(ty).len() == 0 => FieldType::AnyObject.atom(),
        TypeKind::Struct => Atom::map(Map { atomic, item: None, deduced: false }),
        TypeKind::Map => Atom::map(Map { atomic, item: element(), deduced: false }),
        TypeKind::List => {
            let relation = match attrs.and_then(|attrs| attrs.list_type) {
                Some(ListType::Set | ListType::Map) => Relation::Associative,
                _ => Relation::Atomic,
            };
            Atom::list(List { relation, item: element() })
        }
        TypeKind::Bool => Atom::scalar(ScalarType::Boolean),
        TypeKind::Int32 | TypeKind::Int64 | TypeKind::Double => Atom::scalar(ScalarType::Numeric),
        TypeKind::String | TypeKind::Bytes => Atom::scalar(ScalarType::String),
        TypeKind::Quantity | TypeKind::Time | TypeKind::MicroTime => Atom::scalar(ScalarType::Untyped),
        _ => DEDUCED.atom(),
    }
}

pub(super) fn field<'s>(ty: TypeId, name: &str) -> Option<FieldType<'s>> {
    let is_struct = table().ty(ty).kind == TypeKind::Struct;
    let field = is_struct.then(|| table().member(ty, name)).flatten()?;
    Some(FieldType::BuiltIn(field.ty, Some(field)))
}

/// What Go always writes.
pub(super) fn always<'s>(ty: TypeId) -> impl Iterator<Item = Always<FieldType<'s>>> {
    builtin::always(ty).map(|(field, object)| Always {
        name: field.name,
        object: object.map(|ty| FieldType::BuiltIn(ty, Some(field))),
    })
}

/// What Go always writes has its zero as a default.
pub(super) fn default_of(ty: TypeId, field: &str) -> Option<Value> {
    let field = table().member(ty, field)?;
    if let Some(text) = table().attrs(field).default {
        return serde_json::from_str(text).ok();
    }
    let is_written = !field.flags.omitted_when_absent() && !field.flags.pointer();
    is_written.then(|| zero(table().ty(field.ty).kind)).flatten()
}

fn zero(kind: TypeKind) -> Option<Value> {
    match kind {
        TypeKind::Struct => Some(json!({})),
        TypeKind::String => Some(json!("")),
        TypeKind::Bool => Some(json!(false)),
        TypeKind::Int32 | TypeKind::Int64 | TypeKind::Double => Some(json!(0)),
        _ => None,
    }
}

/// The type of the metadata of every object.
pub(super) fn metadata() -> TypeId {
    table().type_named("meta/v1", "ObjectMeta").expect("every object has metadata")
}
