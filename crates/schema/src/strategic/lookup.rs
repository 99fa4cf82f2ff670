//! What the table says of a key: the type below it, and how lists and maps of it merge.

use super::error::PatchError;
use crate::builtin::codec::go_quote;
use crate::builtin::{Table, TypeId, TypeKind, table};

/// The type of a map's or element's value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schema {
    pub ty: TypeId,
    /// Whether it is a pointer in Go, which only messages tell.
    pub pointer: bool,
}

/// How the value of a key merges.
#[derive(Debug, Clone, Copy)]
pub(super) struct Merging {
    /// Of the value, or of the elements if it is a list.
    pub schema: Schema,
    pub strategy: Strategy,
    /// Empty if the field has none.
    pub key: &'static str,
}

/// `patchStrategy` without `retainKeys`, which matters to those who compute patches only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    None,
    Merge,
    Replace,
}

impl Schema {
    /// Looks up a key whose value is a map.
    pub fn of_map(self, key: &str) -> Result<Merging, PatchError> {
        let table = table();
        let ty = table.ty(self.ty);
        let found = match ty.kind {
            TypeKind::Struct => table.member(self.ty, key),
            TypeKind::List | TypeKind::Bytes => return Err(PatchError::NotAStruct { kind: "slice" }),
            TypeKind::Map => return Err(PatchError::NotAStruct { kind: "map" }),
            TypeKind::Any => return Err(PatchError::NotAStruct { kind: "interface" }),
            TypeKind::String => return Err(PatchError::NotAStruct { kind: "string" }),
            TypeKind::Bool => return Err(PatchError::NotAStruct { kind: "bool" }),
            TypeKind::Int32 => return Err(PatchError::NotAStruct { kind: "int32" }),
            TypeKind::Int64 => return Err(PatchError::NotAStruct { kind: "int64" }),
            TypeKind::Double => return Err(PatchError::NotAStruct { kind: "float64" }),
            _ => None, // a struct in Go, without members in JSON
        };
        let Some(field) = found else {
            return Err(PatchError::NoSuchField { strukt: ty.name, field: go_quote(key) });
        };
        let attrs = table.attrs(field);
        Ok(Merging {
            schema: Schema { ty: field.ty, pointer: field.flags.pointer() },
            strategy: strategy(attrs.patch_strategy),
            key: attrs.patch_merge_key.unwrap_or_default(),
        })
    }

    /// Looks up a key whose value is a list; the schema is that of its elements.
    pub fn of_list(self, key: &str) -> Result<Merging, PatchError> {
        let table = table();
        let mut merging = self.of_map(key)?;
        let field = merging.schema;
        let ty = table.ty(field.ty);
        match ty.kind {
            TypeKind::List if !field.pointer && is_list(table, ty_elem(table, field.ty)) => {
                return Err(PatchError::SliceOfSlice);
            }
            TypeKind::List => {
                merging.schema = Schema { ty: ty_elem(table, field.ty), pointer: ty.elem_pointer };
            }
            TypeKind::Bytes => {}
            _ if field.pointer => merging.schema.pointer = false,
            _ => return Err(PatchError::NotASlice { kind: self.kind_name() }),
        }
        Ok(merging)
    }

    /// Go's word for the kind of the type.
    pub fn kind_name(self) -> &'static str {
        if self.pointer {
            return "ptr";
        }
        match table().ty(self.ty).kind {
            TypeKind::List | TypeKind::Bytes => "slice",
            TypeKind::Map => "map",
            TypeKind::String => "string",
            TypeKind::Bool => "bool",
            TypeKind::Int32 => "int32",
            TypeKind::Int64 => "int64",
            TypeKind::Double => "float64",
            TypeKind::Any => "interface",
            _ => "struct",
        }
    }
}

fn ty_elem(table: &Table, ty: TypeId) -> TypeId {
    table.elem(ty)
}

fn is_list(table: &Table, ty: TypeId) -> bool {
    matches!(table.ty(ty).kind, TypeKind::List | TypeKind::Bytes)
}

fn strategy(text: Option<&'static str>) -> Strategy {
    match text.unwrap_or_default().split(',').find(|strategy| *strategy != "retainKeys") {
        Some("merge") => Strategy::Merge,
        Some("replace") => Strategy::Replace,
        _ => Strategy::None,
    }
}
