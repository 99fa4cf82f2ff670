//! The definition of a built-in type.
//!
//! In: a type of the table, and what is said of it. Out: its schema, and the types it refers to. Never:
//! follows a reference.

use serde_json::{Map, Value, json};

use super::descriptions::Descriptions;
use super::dialect::Dialect;
use super::gvk::Kinds;
use crate::builtin::{Field, ListType, MapType, Table, TypeId, TypeKind};

/// Lists of lists and the like; the deepest built-in type has 3.
const NESTING_MAX: usize = 16;

/// The schema of a named type: what stands under its name in a document.
///
/// - `within`: the group and version that the document is about; its kinds alone are named.
pub fn definition(
    table: &Table,
    kinds: &Kinds,
    descriptions: &Descriptions,
    ty: TypeId,
    dialect: Dialect,
    within: Option<(&str, &str)>,
) -> Value {
    let writer = Writer { table, descriptions, dialect };
    let mut schema = match table.ty(ty).kind {
        TypeKind::Struct => writer.structure(ty),
        kind => writer.special(kind),
    };
    if let Some(object) = schema.as_object_mut() {
        describe(object, descriptions.of_type(ty));
        if let Some(gvks) = kinds.extension(ty, within) {
            object.insert("x-kubernetes-group-version-kind".into(), gvks);
        }
    }
    schema
}

fn describe(schema: &mut Schema, text: Option<&str>) {
    if let Some(text) = text {
        schema.insert("description".into(), text.into());
    }
}

/// The named types that the definition of `ty` refers to, each once, in order of appearance.
pub fn references(table: &Table, ty: TypeId) -> Vec<TypeId> {
    let mut found = Vec::new();
    for field in table.members(ty) {
        let target = innermost(table, field.ty);
        if is_definition(table, target) && !found.contains(&target) {
            found.push(target);
        }
    }
    found
}

/// The type that lists and maps are of in the end.
fn innermost(table: &Table, mut ty: TypeId) -> TypeId {
    for _ in 0..NESTING_MAX {
        match table.ty(ty).kind {
            TypeKind::List | TypeKind::Map => ty = table.elem(ty),
            _ => break,
        }
    }
    ty
}

/// Whether other definitions refer to the type by name, rather than spell it out.
fn is_definition(table: &Table, ty: TypeId) -> bool {
    !matches!(
        table.ty(ty).kind,
        TypeKind::List
            | TypeKind::Map
            | TypeKind::String
            | TypeKind::Bool
            | TypeKind::Int32
            | TypeKind::Int64
            | TypeKind::Double
            | TypeKind::Bytes
            | TypeKind::Any
    )
}

type Schema = Map<String, Value>;

struct Writer<'t> {
    table: &'t Table,
    descriptions: &'t Descriptions,
    dialect: Dialect,
}

impl Writer<'_> {
    fn structure(&self, ty: TypeId) -> Value {
        let table = self.table;
        let mut schema = Schema::new();
        schema.insert("type".into(), "object".into());
        let properties: Schema =
            table.members(ty).map(|field| (field.name.to_string(), self.property(ty, field))).collect();
        let required: Vec<&str> =
            table.members(ty).filter(|field| is_required(field)).map(|field| field.name).collect();
        if !properties.is_empty() {
            schema.insert("properties".into(), Value::Object(properties));
        }
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
        if let Some(map_type) = table.ty(ty).map_type {
            schema.insert("x-kubernetes-map-type".into(), map_type_name(map_type).into());
        }
        let mut unions = Vec::new();
        self.unions(ty, 0, &mut unions);
        if !unions.is_empty() {
            schema.insert("x-kubernetes-unions".into(), unions.into());
        }
        Value::Object(schema)
    }

    fn property(&self, of: TypeId, field: &Field) -> Value {
        let attrs = self.table.attrs(field);
        let mut schema = self.of_type(field.ty, 0);
        if self.dialect == Dialect::V3 {
            let default = attrs.default.and_then(|text| serde_json::from_str(text).ok());
            let enforced = || match field.flags.pointer() {
                true => None,
                false => self.zero(field.ty, field.flags.omit_empty(), 0),
            };
            if let Some(default) = default.or_else(enforced) {
                schema.insert("default".into(), default);
            }
        }
        if let Some(list_type) = attrs.list_type {
            schema.insert("x-kubernetes-list-type".into(), list_type_name(list_type).into());
        }
        let keys: Vec<&str> = attrs.list_map_keys().collect();
        if !keys.is_empty() {
            schema.insert("x-kubernetes-list-map-keys".into(), keys.into());
        }
        if let Some(map_type) = attrs.map_type {
            schema.insert("x-kubernetes-map-type".into(), map_type_name(map_type).into());
        }
        if let Some(strategy) = attrs.patch_strategy {
            schema.insert("x-kubernetes-patch-strategy".into(), strategy.into());
        }
        if let Some(key) = attrs.patch_merge_key {
            schema.insert("x-kubernetes-patch-merge-key".into(), key.into());
        }
        describe(&mut schema, self.descriptions.of_field(self.table, of, field.name));
        // Upstream has a description in nearly every field, and so something beside the reference.
        Value::Object(self.wrapped(schema, true))
    }

    /// In v3 a reference has no members beside it.
    fn wrapped(&self, mut schema: Schema, described: bool) -> Schema {
        if self.dialect == Dialect::V3
            && (described || schema.len() > 1)
            && let Some(reference) = schema.remove("$ref")
        {
            schema.insert("allOf".into(), json!([{ "$ref": reference }]));
        }
        schema
    }

    /// A type as it is spelled out where it is used.
    fn of_type(&self, ty: TypeId, depth: usize) -> Schema {
        let mut schema = Schema::new();
        let mut scalar = |name: &str, format: &str| {
            schema.insert("type".into(), name.into());
            if !format.is_empty() {
                schema.insert("format".into(), format.into());
            }
        };
        match self.table.ty(ty).kind {
            TypeKind::String => scalar("string", ""),
            TypeKind::Bool => scalar("boolean", ""),
            TypeKind::Int32 => scalar("integer", "int32"),
            TypeKind::Int64 => scalar("integer", "int64"),
            TypeKind::Double => scalar("number", "double"),
            TypeKind::Bytes => scalar("string", "byte"),
            TypeKind::Any => {}
            TypeKind::List => {
                scalar("array", "");
                schema.insert("items".into(), self.element(ty, depth));
            }
            TypeKind::Map => {
                scalar("object", "");
                schema.insert("additionalProperties".into(), self.element(ty, depth));
            }
            _ => {
                let name = self.table.openapi_name(ty).unwrap_or_default();
                schema.insert("$ref".into(), self.dialect.reference(&name).into());
            }
        }
        if let Some(values) = self.table.enum_values(ty) {
            schema.insert("enum".into(), values.collect::<Vec<_>>().into());
        }
        schema
    }

    /// The elements of a list or map.
    fn element(&self, of: TypeId, depth: usize) -> Value {
        if depth >= NESTING_MAX {
            return json!({});
        }
        let elem = self.table.elem(of);
        let mut schema = self.of_type(elem, depth + 1);
        if self.dialect == Dialect::V3
            && !self.table.ty(of).elem_pointer
            && let Some(zero) = self.zero(elem, false, 0)
        {
            schema.insert("default".into(), zero);
        }
        Value::Object(self.wrapped(schema, false))
    }

    /// What Go writes for a value that is not there; `None` where it writes nothing or null.
    fn zero(&self, ty: TypeId, omit_empty: bool, depth: usize) -> Option<Value> {
        let zero = match self.table.ty(ty).kind {
            TypeKind::Struct => return self.zero_of_structure(ty, omit_empty, depth),
            TypeKind::String => json!(""),
            TypeKind::Bool => json!(false),
            TypeKind::Int32 | TypeKind::Int64 | TypeKind::Double => json!(0),
            _ => return None,
        };
        (!omit_empty).then_some(zero)
    }

    fn zero_of_structure(&self, ty: TypeId, omit_empty: bool, depth: usize) -> Option<Value> {
        match self.table.fields(ty) {
            [only] if only.name.is_empty() && depth < NESTING_MAX => match only.flags.pointer() {
                true => None,
                false => self.zero(only.ty, omit_empty, depth + 1),
            },
            _ => Some(json!({})),
        }
    }

    /// The unions of a struct and of those embedded in it.
    fn unions(&self, ty: TypeId, depth: usize, out: &mut Vec<Value>) {
        let fields = self.table.fields(ty);
        if self.table.ty(ty).union {
            let discriminator = fields.iter().find(|field| field.flags.union_discriminator());
            let members: Schema = fields
                .iter()
                .filter(|field| !field.flags.union_discriminator())
                .map(|field| (field.name.to_string(), capitalized(field.name).into()))
                .collect();
            let mut union = json!({ "fields-to-discriminateBy": members });
            if let Some(discriminator) = discriminator {
                union["discriminator"] = discriminator.name.into();
            }
            out.push(union);
        }
        for field in fields.iter().filter(|field| field.name.is_empty() && depth < NESTING_MAX) {
            self.unions(field.ty, depth + 1, out);
        }
    }

    /// A type that writes its own JSON.
    fn special(&self, kind: TypeKind) -> Value {
        match (kind, self.dialect) {
            (TypeKind::Quantity, Dialect::V3) => {
                json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] })
            }
            (TypeKind::Quantity, Dialect::V2) => json!({ "type": "string" }),
            (TypeKind::IntOrString, Dialect::V3) => {
                json!({ "format": "int-or-string", "oneOf": [{ "type": "integer" }, { "type": "string" }] })
            }
            (TypeKind::IntOrString, Dialect::V2) => json!({ "type": "string", "format": "int-or-string" }),
            (TypeKind::Time | TypeKind::MicroTime, _) => json!({ "type": "string", "format": "date-time" }),
            (TypeKind::RawExtension | TypeKind::FieldsV1, _) => json!({ "type": "object" }),
            _ => json!({}),
        }
    }
}

/// Upstream looks at the markers first, then at `omitempty`.
fn is_required(field: &Field) -> bool {
    field.flags.required() || !(field.flags.optional() || field.flags.omit_empty())
}

fn list_type_name(list_type: ListType) -> &'static str {
    match list_type {
        ListType::Atomic => "atomic",
        ListType::Set => "set",
        ListType::Map => "map",
    }
}

fn map_type_name(map_type: MapType) -> &'static str {
    match map_type {
        MapType::Atomic => "atomic",
        MapType::Granular => "granular",
    }
}

/// The Go name of a union's member, which the table does not keep: they differ in the first letter only.
fn capitalized(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
