//! Writes values as kube-apiserver's protobuf: fields by number, what is no pointer even where it is zero, map keys
//! sorted.
//!
//! In: values that [`normalize`](super::super::codec::normalize) made canonical. Out: bytes appended to a buffer.
//! Never: changes to the value; on error the buffer is as before.

use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::super::codec::{DEPTH_MAX, EncodeError, write_any};
use super::super::table::{Field, Table, TypeId, TypeKind};
use super::plan::{Plan, plan};
use super::time::{self, Precision};
use super::writer;

/// Writes a message of a type. `kind` and `apiVersion` of the whole are not part of it.
///
/// - `ty`: a type for which [`super::is_message`] holds.
///
/// # Errors
/// [`EncodeError::Mismatch`] if the value is not canonical.
pub fn encode(ty: TypeId, value: &Value, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    let mut encoder = Encoder::new(out);
    let result = encoder.message("", ty, value, 0);
    if result.is_err() {
        out.truncate(start);
    }
    result
}

struct Encoder<'o> {
    table: &'static Table,
    plan: &'static Plan,
    out: &'o mut Vec<u8>,
}

impl<'o> Encoder<'o> {
    fn new(out: &'o mut Vec<u8>) -> Self {
        Self { table: super::super::table(), plan: plan(), out }
    }

    /// Writes what stands inside a message.
    fn message(
        &mut self,
        field: &'static str,
        ty: TypeId,
        value: &Value,
        depth: usize,
    ) -> Result<(), EncodeError> {
        if depth > DEPTH_MAX {
            return Err(EncodeError::TooDeep);
        }
        match (self.table.ty(ty).kind, value) {
            (_, Value::Null) => self.zero(field, ty, depth)?,
            (TypeKind::Struct, Value::Object(map)) => return self.members(ty, map, depth),
            (TypeKind::List, Value::Array(items)) => {
                for item in items {
                    self.value(field, 1, self.table.elem(ty), item, depth + 1)?;
                }
            }
            (TypeKind::Quantity, Value::String(text)) => writer::bytes_field(1, text.as_bytes(), self.out),
            (TypeKind::IntOrString, value) => self.int_or_string(field, value)?,
            (TypeKind::Time, Value::String(text)) => self.time(field, text, Precision::Seconds)?,
            (TypeKind::MicroTime, Value::String(text)) => self.time(field, text, Precision::Micros)?,
            (TypeKind::RawExtension | TypeKind::FieldsV1 | TypeKind::Json, value) => {
                let open = writer::open(1, self.out);
                write_any(value, self.out)?;
                writer::close(open, self.out);
            }
            (TypeKind::SchemaOrBool, &Value::Bool(allows)) => {
                writer::varint_field(1, allows.into(), self.out);
            }
            (TypeKind::SchemaOrBool, value @ Value::Object(_)) => {
                writer::varint_field(1, 1, self.out);
                self.value(field, 2, self.table.elem(ty), value, depth + 1)?;
            }
            (TypeKind::SchemaOrArray | TypeKind::SchemaOrStrings, value @ Value::Object(_)) => {
                self.value(field, 1, self.table.elem(ty), value, depth + 1)?;
            }
            (TypeKind::SchemaOrArray, Value::Array(items)) => {
                for item in items {
                    self.value(field, 2, self.table.elem(ty), item, depth + 2)?;
                }
            }
            (TypeKind::SchemaOrStrings, Value::Array(items)) => {
                for item in items {
                    let text = item.as_str().ok_or(EncodeError::Mismatch { field })?;
                    writer::bytes_field(2, text.as_bytes(), self.out);
                }
            }
            _ => return Err(EncodeError::Mismatch { field }),
        }
        Ok(())
    }

    fn members(&mut self, ty: TypeId, map: &Map<String, Value>, depth: usize) -> Result<(), EncodeError> {
        for field in self.plan.fields(ty) {
            if field.name.is_empty() {
                let open = writer::open(field.proto, self.out);
                self.members(field.ty, map, depth)?;
                writer::close(open, self.out);
                continue;
            }
            match map.get(field.name).filter(|value| !value.is_null()) {
                Some(value) => self.member(field, value, depth + 1)?,
                None if field.flags.pointer() => {}
                None => self.absent(field, depth + 1)?,
            }
        }
        Ok(())
    }

    fn member(&mut self, field: &'static Field, value: &Value, depth: usize) -> Result<(), EncodeError> {
        let ty = self.table.ty(field.ty);
        match (ty.kind, value) {
            (TypeKind::List, Value::Array(items)) if !ty.proto_message => {
                for item in items {
                    self.value(field.name, field.proto, ty.elem, item, depth + 1)?;
                }
                Ok(())
            }
            (TypeKind::Map, Value::Object(map)) => for_each_sorted(map, |key, value| {
                let open = writer::open(field.proto, self.out);
                writer::bytes_field(1, key.as_bytes(), self.out);
                self.value(field.name, 2, ty.elem, value, depth + 1)?;
                writer::close(open, self.out);
                Ok(())
            }),
            _ => self.value(field.name, field.proto, field.ty, value, depth),
        }
    }

    /// Writes a field of one value.
    fn value(
        &mut self,
        field: &'static str,
        number: u16,
        ty: TypeId,
        value: &Value,
        depth: usize,
    ) -> Result<(), EncodeError> {
        let mismatch = EncodeError::Mismatch { field };
        match (self.table.ty(ty).kind, value) {
            (TypeKind::String, Value::String(text)) => writer::bytes_field(number, text.as_bytes(), self.out),
            (TypeKind::Bool, &Value::Bool(value)) => writer::varint_field(number, value.into(), self.out),
            (TypeKind::Int32, Value::Number(n)) => {
                let int = n.as_i64().and_then(|int| i32::try_from(int).ok()).ok_or(mismatch)?;
                writer::varint_field(number, i64::from(int).cast_unsigned(), self.out);
            }
            (TypeKind::Int64, Value::Number(n)) => {
                writer::varint_field(number, n.as_i64().ok_or(mismatch)?.cast_unsigned(), self.out);
            }
            (TypeKind::Double, Value::Number(n)) => {
                writer::double_field(number, n.as_f64().ok_or(mismatch)?, self.out);
            }
            (TypeKind::Bytes, Value::String(text)) => {
                let bytes = STANDARD.decode(text).map_err(|_| mismatch)?;
                writer::bytes_field(number, &bytes, self.out);
            }
            _ => {
                let open = writer::open(number, self.out);
                self.message(field, ty, value, depth)?;
                writer::close(open, self.out);
            }
        }
        Ok(())
    }

    /// Writes Go's zero value of a field that is no pointer.
    fn absent(&mut self, field: &'static Field, depth: usize) -> Result<(), EncodeError> {
        let number = field.proto;
        match self.table.ty(field.ty).kind {
            TypeKind::List | TypeKind::Map | TypeKind::Bytes => {}
            TypeKind::String => writer::bytes_field(number, b"", self.out),
            TypeKind::Bool | TypeKind::Int32 | TypeKind::Int64 => writer::varint_field(number, 0, self.out),
            TypeKind::Double => writer::double_field(number, 0.0, self.out),
            _ => {
                let open = writer::open(number, self.out);
                self.zero(field.name, field.ty, depth)?;
                writer::close(open, self.out);
            }
        }
        Ok(())
    }

    /// Writes what stands inside the message of Go's zero value.
    fn zero(&mut self, field: &'static str, ty: TypeId, depth: usize) -> Result<(), EncodeError> {
        match self.table.ty(ty).kind {
            TypeKind::Struct => self.members(ty, empty_map(), depth)?,
            TypeKind::Quantity => writer::bytes_field(1, b"0", self.out),
            TypeKind::IntOrString => self.int_or_string(field, &Value::from(0))?,
            TypeKind::SchemaOrBool => writer::varint_field(1, 0, self.out),
            // The zero time, an empty list, and no bytes where JSON is embedded.
            _ => {}
        }
        Ok(())
    }

    fn int_or_string(&mut self, field: &'static str, value: &Value) -> Result<(), EncodeError> {
        let mismatch = EncodeError::Mismatch { field };
        let (kind, int, string) = match value {
            Value::String(text) => (1, 0, text.as_str()),
            value => {
                let int = value.as_i64().and_then(|int| i32::try_from(int).ok()).ok_or(mismatch)?;
                (0, int, "")
            }
        };
        writer::varint_field(1, kind, self.out);
        writer::varint_field(2, i64::from(int).cast_unsigned(), self.out);
        writer::bytes_field(3, string.as_bytes(), self.out);
        Ok(())
    }

    fn time(&mut self, field: &'static str, text: &str, precision: Precision) -> Result<(), EncodeError> {
        let stamp = time::stamp(text, precision).ok_or(EncodeError::Mismatch { field })?;
        if let Some(stamp) = stamp {
            writer::varint_field(1, stamp.seconds.cast_unsigned(), self.out);
            writer::varint_field(2, i64::from(stamp.nanos).cast_unsigned(), self.out);
        }
        Ok(())
    }
}

fn empty_map() -> &'static Map<String, Value> {
    static EMPTY: OnceLock<Map<String, Value>> = OnceLock::new();
    EMPTY.get_or_init(Map::new)
}

fn for_each_sorted(
    map: &Map<String, Value>,
    mut each: impl FnMut(&str, &Value) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    if map.keys().is_sorted() {
        return map.iter().try_for_each(|(key, value)| each(key, value));
    }
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries.into_iter().try_for_each(|(key, value)| each(key, value))
}
