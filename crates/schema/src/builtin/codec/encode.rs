//! Writes values as kube-apiserver's JSON: members in Go struct order, map keys sorted, Go's omitempty and
//! omitzero.
//!
//! In: values that [`super::normalize`] made canonical. Out: bytes appended to a buffer, and for stored
//! objects the [`Slot`] where their resourceVersion goes. Never: changes to the value; on error the buffer is
//! as before.

use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::super::table::{Field, Table, TypeId, TypeKind};
use super::text::{write_int, write_number, write_string};
use super::{DEPTH_MAX, EncodeError};

/// Where `"resourceVersion":"N",` is to be inserted: an offset from the start of what was written.
pub type Slot = usize;

/// Writes a stored object of a built-in kind: without its opening brace, `kind`, `apiVersion` and
/// `metadata.resourceVersion`, from its first member to its closing brace.
///
/// # Errors
/// [`EncodeError::NoSlot`] if no member of metadata comes after resourceVersion (creationTimestamp or uid
/// always does in a stored object); [`EncodeError::Mismatch`] if the value is not canonical.
pub fn encode(ty: TypeId, value: &Value, out: &mut Vec<u8>) -> Result<Slot, EncodeError> {
    encode_new(ty, value, None, out)
}

/// The same of a new object.
///
/// - `fields`: the `fieldsV1` of its first entry of `managedFields`, as JSON, in the place of what the value
///   has there.
///
/// # Errors
/// As [`encode`].
pub fn encode_new(
    ty: TypeId,
    value: &Value,
    fields: Option<&[u8]>,
    out: &mut Vec<u8>,
) -> Result<Slot, EncodeError> {
    let start = out.len();
    let mut writer = Writer { fields, ..Writer::new(start, out) };
    let result = match value {
        Value::Object(map) => writer.object(ty, map, Part::Stored, 0),
        _ => Err(EncodeError::NotAnObject),
    };
    let slot = writer.slot;
    finish(result.and(slot.ok_or(EncodeError::NoSlot)), start, out)
}

/// Writes a whole value of a type: a body that is not stored, or a part of one.
///
/// # Errors
/// [`EncodeError::Mismatch`] if the value is not canonical.
pub fn write_json(ty: TypeId, value: &Value, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    let result = Writer::new(start, out).value("", ty, value, 0);
    finish(result, start, out)
}

/// Writes a stored custom resource: whole, keys sorted, without `metadata.resourceVersion`.
///
/// # Errors
/// [`EncodeError::NoSlot`] if no key of metadata sorts after resourceVersion (uid does).
pub fn encode_sorted(value: &Value, out: &mut Vec<u8>) -> Result<Slot, EncodeError> {
    let start = out.len();
    let mut slot = None;
    let result = match value {
        Value::Object(map) => sorted_object(map, out, |key, value, out| match value {
            Value::Object(metadata) if key == "metadata" => {
                stored_metadata(metadata, out, |offset| slot = Some(offset - start))
            }
            _ => any(value, out, 1),
        }),
        _ => Err(EncodeError::NotAnObject),
    };
    finish(result.and(slot.ok_or(EncodeError::NoSlot)), start, out)
}

/// Writes any JSON value with keys sorted, as Go writes maps and interfaces.
///
/// # Errors
/// [`EncodeError::TooDeep`].
pub fn write_any(value: &Value, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    let result = any(value, out, 0);
    finish(result, start, out)
}

/// Writes a set of fields: what `fieldsV1` says.
///
/// # Errors
/// [`EncodeError::TooDeep`].
pub fn write_fields(value: &Value, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    let result = fields(value, out, 0);
    finish(result, start, out)
}

fn finish<T>(result: Result<T, EncodeError>, start: usize, out: &mut Vec<u8>) -> Result<T, EncodeError> {
    if result.is_err() {
        out.truncate(start);
    }
    result
}

fn stored_metadata(
    metadata: &Map<String, Value>,
    out: &mut Vec<u8>,
    mut found: impl FnMut(usize),
) -> Result<(), EncodeError> {
    const RV: &str = "resourceVersion";
    out.push(b'{');
    let mut first = true;
    let mut after = false;
    for_each_sorted(metadata, |key, value| {
        if key == RV {
            return Ok(());
        }
        comma(&mut first, out);
        if !after && key > RV {
            after = true;
            found(out.len());
        }
        write_string(key, out);
        out.push(b':');
        any(value, out, 2)
    })?;
    out.push(b'}');
    Ok(())
}

fn any(value: &Value, out: &mut Vec<u8>, depth: usize) -> Result<(), EncodeError> {
    if depth > DEPTH_MAX {
        return Err(EncodeError::TooDeep);
    }
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            let mut first = true;
            for item in items {
                comma(&mut first, out);
                any(item, out, depth + 1)?;
            }
            out.push(b']');
        }
        Value::Object(map) => sorted_object(map, out, |_, value, out| any(value, out, depth + 1))?,
    }
    Ok(())
}

/// Go keeps the text of a set, whose members are in an order of their own.
fn fields(value: &Value, out: &mut Vec<u8>, depth: usize) -> Result<(), EncodeError> {
    let Value::Object(level) = value else { return any(value, out, depth) };
    if depth > DEPTH_MAX {
        return Err(EncodeError::TooDeep);
    }
    out.push(b'{');
    let mut first = true;
    for (key, value) in forebay_merge::in_order(level) {
        comma(&mut first, out);
        write_string(key, out);
        out.push(b':');
        fields(value, out, depth + 1)?;
    }
    out.push(b'}');
    Ok(())
}

fn sorted_object(
    map: &Map<String, Value>,
    out: &mut Vec<u8>,
    mut write: impl FnMut(&str, &Value, &mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    out.push(b'{');
    let mut first = true;
    for_each_sorted(map, |key, value| {
        comma(&mut first, out);
        write_string(key, out);
        out.push(b':');
        write(key, value, out)
    })?;
    out.push(b'}');
    Ok(())
}

/// Visits keys in byte order, in which Go writes them; serde_json's own order is usually the same.
fn for_each_sorted<'v>(
    map: &'v Map<String, Value>,
    mut visit: impl FnMut(&'v str, &'v Value) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    if map.keys().is_sorted() {
        return map.iter().try_for_each(|(key, value)| visit(key, value));
    }
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries.into_iter().try_for_each(|(key, value)| visit(key, value))
}

fn comma(first: &mut bool, out: &mut Vec<u8>) {
    if !std::mem::take(first) {
        out.push(b',');
    }
}

/// Which part of an object a struct is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Part {
    Other,
    /// The stored object itself.
    Stored,
    /// The stored object's metadata.
    Metadata,
}

struct Writer<'v, 'o> {
    table: &'static Table,
    out: &'o mut Vec<u8>,
    start: usize,
    slot: Option<Slot>,
    /// What is written in the place of the first field set: the object's own, as its metadata comes first.
    fields: Option<&'v [u8]>,
    found: Vec<Option<&'v Value>>, // one stretch per open struct: its members' values in Go order
}

impl<'v, 'o> Writer<'v, 'o> {
    fn new(start: usize, out: &'o mut Vec<u8>) -> Self {
        Self {
            table: super::super::table(),
            out,
            start,
            slot: None,
            fields: None,
            found: Vec::with_capacity(128),
        }
    }

    /// Writes a struct's members and the closing brace, and the opening one unless the object is stored.
    fn object(
        &mut self,
        ty: TypeId,
        map: &'v Map<String, Value>,
        part: Part,
        depth: usize,
    ) -> Result<(), EncodeError> {
        if depth > DEPTH_MAX {
            return Err(EncodeError::TooDeep);
        }
        let table = self.table;
        let members = table.member_indexes(ty);
        let base = self.find(ty, map);
        let mut skip = 0;
        if part == Part::Stored {
            skip = if table.has_type_meta(ty) { 2 } else { 0 };
        } else {
            self.out.push(b'{');
        }
        let mut first = true;
        let mut after_rv = false;
        for (position, &index) in members.iter().enumerate().skip(skip) {
            let field = table.field_at(index);
            let value = self.found[base + position].filter(|value| !value.is_null());
            if part == Part::Metadata && field.name == "resourceVersion" {
                after_rv = true;
                continue;
            }
            if !is_written(table, field, value) {
                continue;
            }
            comma(&mut first, self.out);
            if after_rv && self.slot.is_none() {
                self.slot = Some(self.out.len() - self.start);
            }
            self.out.push(b'"');
            self.out.extend_from_slice(field.name.as_bytes());
            self.out.extend_from_slice(b"\":");
            match value {
                Some(Value::Object(map)) if part == Part::Stored && field.name == "metadata" => {
                    self.object(field.ty, map, Part::Metadata, depth + 1)?;
                }
                Some(value) => self.value(field.name, field.ty, value, depth + 1)?,
                None => self.absent(field, depth + 1)?,
            }
        }
        self.found.truncate(base);
        self.out.push(b'}');
        Ok(())
    }

    /// Puts the values of a struct's members on the stack in Go order; returns where they start. Keys that
    /// the struct does not have are passed over.
    fn find(&mut self, ty: TypeId, map: &'v Map<String, Value>) -> usize {
        let base = self.found.len();
        self.found.resize(base + self.table.member_indexes(ty).len(), None);
        let mut near = 0;
        for (key, value) in map {
            if let Some(position) = self.table.seek(ty, &mut near, key) {
                self.found[base + position] = Some(value);
            }
        }
        base
    }

    fn value(
        &mut self,
        field: &'static str,
        ty: TypeId,
        value: &'v Value,
        depth: usize,
    ) -> Result<(), EncodeError> {
        match (self.table.ty(ty).kind, value) {
            (_, Value::Null) => self.out.extend_from_slice(b"null"),
            (TypeKind::Struct, Value::Object(map)) => return self.object(ty, map, Part::Other, depth),
            (TypeKind::List, Value::Array(items)) => {
                return self.list(field, self.table.elem(ty), items, depth);
            }
            (TypeKind::Map, Value::Object(map)) => return self.map(field, self.table.elem(ty), map, depth),
            (TypeKind::String | TypeKind::Bytes | TypeKind::Quantity, Value::String(text))
            | (TypeKind::IntOrString | TypeKind::Time | TypeKind::MicroTime, Value::String(text)) => {
                write_string(text, self.out);
            }
            (TypeKind::Bool | TypeKind::SchemaOrBool, &Value::Bool(value)) => {
                self.out.extend_from_slice(if value { b"true" } else { b"false" });
            }
            (TypeKind::Int32 | TypeKind::Int64 | TypeKind::IntOrString, Value::Number(number)) => {
                write_int(number.as_i64().ok_or(EncodeError::Mismatch { field })?, self.out);
            }
            (TypeKind::Double, Value::Number(number)) => write_number(number, self.out),
            (TypeKind::FieldsV1, value) => match self.fields.take() {
                Some(fields) => self.out.extend_from_slice(fields),
                None => return fields(value, self.out, depth),
            },
            (TypeKind::Any | TypeKind::RawExtension | TypeKind::Json, value) => {
                return any(value, self.out, depth);
            }
            (
                TypeKind::SchemaOrBool | TypeKind::SchemaOrArray | TypeKind::SchemaOrStrings,
                Value::Object(map),
            ) => {
                return self.object(self.table.elem(ty), map, Part::Other, depth);
            }
            (TypeKind::SchemaOrArray, Value::Array(items)) => {
                return self.list(field, self.table.elem(ty), items, depth);
            }
            (TypeKind::SchemaOrStrings, value @ Value::Array(_)) => return any(value, self.out, depth),
            _ => return Err(EncodeError::Mismatch { field }),
        }
        Ok(())
    }

    fn list(
        &mut self,
        field: &'static str,
        elem: TypeId,
        items: &'v [Value],
        depth: usize,
    ) -> Result<(), EncodeError> {
        self.out.push(b'[');
        let mut first = true;
        for item in items {
            comma(&mut first, self.out);
            self.value(field, elem, item, depth + 1)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn map(
        &mut self,
        field: &'static str,
        elem: TypeId,
        map: &'v Map<String, Value>,
        depth: usize,
    ) -> Result<(), EncodeError> {
        self.out.push(b'{');
        let mut first = true;
        for_each_sorted(map, |key, value| {
            comma(&mut first, self.out);
            write_string(key, self.out);
            self.out.push(b':');
            self.value(field, elem, value, depth + 1)
        })?;
        self.out.push(b'}');
        Ok(())
    }

    /// Writes Go's zero value for a member that is written though it is absent.
    fn absent(&mut self, field: &Field, depth: usize) -> Result<(), EncodeError> {
        match self.table.ty(field.ty).kind {
            TypeKind::Struct if !field.flags.pointer() => {
                return self.object(field.ty, empty_map(), Part::Other, depth);
            }
            _ => self.out.extend_from_slice(zero(self.table, field)),
        }
        Ok(())
    }
}

/// Go's zero value of a member that is no struct.
pub(in super::super) fn zero(table: &Table, field: &Field) -> &'static [u8] {
    match table.ty(field.ty).kind {
        _ if field.flags.pointer() => b"null",
        TypeKind::String => b"\"\"",
        TypeKind::Quantity => b"\"0\"",
        TypeKind::Bool | TypeKind::SchemaOrBool => b"false",
        TypeKind::Int32 | TypeKind::Int64 | TypeKind::Double | TypeKind::IntOrString => b"0",
        _ => b"null",
    }
}

fn empty_map() -> &'static Map<String, Value> {
    static EMPTY: OnceLock<Map<String, Value>> = OnceLock::new();
    EMPTY.get_or_init(Map::new)
}

/// Go's omitempty and omitzero. A pointer is only left out when it is absent.
pub(in super::super) fn is_written(table: &Table, field: &Field, value: Option<&Value>) -> bool {
    let Some(value) = value else { return !field.flags.omitted_when_absent() };
    if field.flags.pointer() || !field.flags.omit_empty() {
        return true;
    }
    match (table.ty(field.ty).kind, value) {
        (TypeKind::String | TypeKind::Bytes, Value::String(text)) => !text.is_empty(),
        (TypeKind::List, Value::Array(items)) => !items.is_empty(),
        (TypeKind::Map, Value::Object(map)) => !map.is_empty(),
        (TypeKind::Bool, Value::Bool(value)) => *value,
        (TypeKind::Int32 | TypeKind::Int64 | TypeKind::Double, Value::Number(n)) => n.as_f64() != Some(0.0),
        _ => true,
    }
}
