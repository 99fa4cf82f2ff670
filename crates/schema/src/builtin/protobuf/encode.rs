//! Writes values as kube-apiserver's protobuf: fields by number, what is no pointer even where it is zero,
//! map keys sorted.
//!
//! In: values that [`normalize`](super::super::codec::normalize) made canonical. Out: bytes appended to a
//! buffer. Never: changes to the value; on error the buffer is as before.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::super::codec::{DEPTH_MAX, EncodeError, write_any, write_fields};
use super::super::table::{Field, Table, TypeId, TypeKind};
use super::plan::{Plan, plan};
use super::time::{self, Precision};
use super::tree::{Members, Tree};
use super::writer;

/// Writes a message of a type. `kind` and `apiVersion` of the whole are not part of it.
///
/// - `ty`: a type for which [`super::is_message`] holds.
///
/// # Errors
/// [`EncodeError::Mismatch`] if the value is not canonical.
pub fn encode(ty: TypeId, value: &Value, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    tree(ty, &Tree::from(value), out)
}

/// The same of a canonical value's text: what is stored. Makes no value of it.
///
/// # Errors
/// As [`encode`], and [`EncodeError::NotAnObject`] for what is no JSON.
pub fn encode_json(ty: TypeId, json: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    tree(ty, &serde_json::from_slice(json).map_err(|_| EncodeError::NotAnObject)?, out)
}

fn tree(ty: TypeId, value: &Tree, out: &mut Vec<u8>) -> Result<(), EncodeError> {
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
        value: &Tree,
        depth: usize,
    ) -> Result<(), EncodeError> {
        if depth > DEPTH_MAX {
            return Err(EncodeError::TooDeep);
        }
        match (self.table.ty(ty).kind, value) {
            (_, Tree::Null) => self.zero(field, ty, depth)?,
            (TypeKind::Struct, Tree::Object(map)) => return self.members(ty, map, depth),
            (TypeKind::List, Tree::Array(items)) => {
                for item in items {
                    self.value(field, 1, self.table.elem(ty), item, depth + 1)?;
                }
            }
            (TypeKind::Quantity, Tree::String(text)) => writer::bytes_field(1, text.as_bytes(), self.out),
            (TypeKind::IntOrString, value) => self.int_or_string(field, value)?,
            (TypeKind::Time, Tree::String(text)) => self.time(field, text, Precision::Seconds)?,
            (TypeKind::MicroTime, Tree::String(text)) => self.time(field, text, Precision::Micros)?,
            (kind @ (TypeKind::RawExtension | TypeKind::FieldsV1 | TypeKind::Json), value) => {
                let write = if kind == TypeKind::FieldsV1 { write_fields } else { write_any };
                let open = writer::open(1, self.out);
                write(&value.to_value(), self.out)?;
                writer::close(open, self.out);
            }
            (TypeKind::SchemaOrBool, &Tree::Bool(allows)) => {
                writer::varint_field(1, allows.into(), self.out);
            }
            (TypeKind::SchemaOrBool, value @ Tree::Object(_)) => {
                writer::varint_field(1, 1, self.out);
                self.value(field, 2, self.table.elem(ty), value, depth + 1)?;
            }
            (TypeKind::SchemaOrArray | TypeKind::SchemaOrStrings, value @ Tree::Object(_)) => {
                self.value(field, 1, self.table.elem(ty), value, depth + 1)?;
            }
            (TypeKind::SchemaOrArray, Tree::Array(items)) => {
                for item in items {
                    self.value(field, 2, self.table.elem(ty), item, depth + 2)?;
                }
            }
            (TypeKind::SchemaOrStrings, Tree::Array(items)) => {
                for item in items {
                    let Tree::String(text) = item else { return Err(EncodeError::Mismatch { field }) };
                    writer::bytes_field(2, text.as_bytes(), self.out);
                }
            }
            _ => return Err(EncodeError::Mismatch { field }),
        }
        Ok(())
    }

    fn members(&mut self, ty: TypeId, map: &Members, depth: usize) -> Result<(), EncodeError> {
        let mut next = 0;
        for field in self.plan.fields(ty) {
            if field.name.is_empty() {
                let open = writer::open(field.proto, self.out);
                self.members(field.ty, map, depth)?;
                writer::close(open, self.out);
                continue;
            }
            match map.find(field.name, &mut next).filter(|value| !value.is_null()) {
                Some(value) => self.member(field, value, depth + 1)?,
                None if field.flags.pointer() => {}
                None => self.absent(field, depth + 1)?,
            }
        }
        Ok(())
    }

    fn member(&mut self, field: &'static Field, value: &Tree, depth: usize) -> Result<(), EncodeError> {
        let ty = self.table.ty(field.ty);
        match (ty.kind, value) {
            (TypeKind::List, Tree::Array(items)) if !ty.proto_message => {
                for item in items {
                    self.value(field.name, field.proto, ty.elem, item, depth + 1)?;
                }
                Ok(())
            }
            (TypeKind::Map, Tree::Object(map)) => map.for_each_sorted(|key, value| {
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
        value: &Tree,
        depth: usize,
    ) -> Result<(), EncodeError> {
        let mismatch = EncodeError::Mismatch { field };
        match (self.table.ty(ty).kind, value) {
            (TypeKind::String, Tree::String(text)) => writer::bytes_field(number, text.as_bytes(), self.out),
            (TypeKind::Bool, &Tree::Bool(value)) => writer::varint_field(number, value.into(), self.out),
            (TypeKind::Int32, Tree::Number(n)) => {
                let int = n.as_i64().and_then(|int| i32::try_from(int).ok()).ok_or(mismatch)?;
                writer::varint_field(number, i64::from(int).cast_unsigned(), self.out);
            }
            (TypeKind::Int64, Tree::Number(n)) => {
                writer::varint_field(number, n.as_i64().ok_or(mismatch)?.cast_unsigned(), self.out);
            }
            (TypeKind::Double, Tree::Number(n)) => {
                writer::double_field(number, n.as_f64().ok_or(mismatch)?, self.out);
            }
            (TypeKind::Bytes, Tree::String(text)) => {
                let bytes = STANDARD.decode(text.as_bytes()).map_err(|_| mismatch)?;
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
            TypeKind::Struct => self.members(ty, &Members::NONE, depth)?,
            TypeKind::Quantity => writer::bytes_field(1, b"0", self.out),
            TypeKind::IntOrString => self.int_or_string(field, &Tree::Number(0.into()))?,
            TypeKind::SchemaOrBool => writer::varint_field(1, 0, self.out),
            // The zero time, an empty list, and no bytes where JSON is embedded.
            _ => {}
        }
        Ok(())
    }

    fn int_or_string(&mut self, field: &'static str, value: &Tree) -> Result<(), EncodeError> {
        let mismatch = EncodeError::Mismatch { field };
        let (kind, int, string) = match value {
            Tree::String(text) => (1, 0, &**text),
            Tree::Number(number) => {
                let int = number.as_i64().and_then(|int| i32::try_from(int).ok()).ok_or(mismatch)?;
                (0, int, "")
            }
            _ => return Err(mismatch),
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
