//! Reads messages into the JSON values that Go would write for them.
//!
//! In: the bytes of a message. Out: a value as [`normalize`](super::super::codec::normalize) leaves it: times
//! and quantities canonical, nothing that Go's omitempty leaves out. Never: the envelope, `kind` and
//! `apiVersion` of the whole (they are in the envelope).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use forebay_apimachinery::Lease;
use forebay_apimachinery::json::weight::{self, ARRAY_BYTES, ITEM_BYTES, MEMBER_BYTES, OBJECT_BYTES};
use forebay_apimachinery::lease::Meter;
use serde_json::{Map, Number, Value};

use super::super::codec::DEPTH_MAX;
use super::super::table::{Field, Table, TypeId, TypeKind};
use super::error::DecodeError;
use super::plan::{Plan, plan};
use super::reader::{BYTES, FIXED64, Reader, VARINT, text};
use super::special::{expect, expect_field};

/// What becomes of a field that the table does not have, which a server of another version writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownFields {
    /// As gogo-protobuf does: nothing is left of it.
    PassedOver,
    /// The message is not read.
    Refused,
}

/// JSON objects that a message of any size may hold.
pub(super) const OBJECTS_FREE: usize = 1 << 16;

/// A message may hold another JSON object for each of so many bytes. An object takes up to 700 bytes of
/// memory and as little as 2 of a message: a body of 3 MiB becomes at most 262,144 objects, 180 MB, rather
/// than 1 GB. Real objects have more than 30 bytes. What has more is refused.
const BYTES_PER_OBJECT: usize = 16;

/// Decodes a message of a type as gogo-protobuf would: fields that the type does not have are passed over, of
/// several values the last one counts, messages merge, lists grow.
///
/// - `ty`: a type for which [`super::is_message`] holds.
/// - `lease`: what the value takes is charged to it while it is made, and stays charged.
///
/// Cost: one walk over the bytes.
///
/// # Errors
/// [`DecodeError`] for bytes that are no such message, and beyond the bounds of this module.
pub fn decode(ty: TypeId, bytes: &[u8], lease: &Lease) -> Result<Value, DecodeError> {
    Ok(Decoder::of(bytes, lease).merge(ty, bytes, None, 0)?.unwrap_or_default())
}

/// As [`decode`], of a message of which nothing is lost: it has no field that the table does not have.
///
/// # Errors
/// Those of [`decode`], and [`DecodeError::UnknownField`].
pub fn decode_known(ty: TypeId, bytes: &[u8], lease: &Lease) -> Result<Value, DecodeError> {
    let mut decoder = Decoder { unknown: UnknownFields::Refused, ..Decoder::of(bytes, lease) };
    Ok(decoder.merge(ty, bytes, None, 0)?.unwrap_or_default())
}

pub(super) struct Decoder {
    pub(super) table: &'static Table,
    plan: &'static Plan,
    objects: usize, // that may still be made
    unknown: UnknownFields,
    pub(super) meter: Meter,
}

impl Decoder {
    /// One that makes as many objects as a message of that length may hold.
    pub(super) fn of(message: &[u8], lease: &Lease) -> Decoder {
        let objects = OBJECTS_FREE.saturating_add(message.len() / BYTES_PER_OBJECT);
        let unknown = UnknownFields::PassedOver;
        Decoder { table: super::super::table(), plan: plan(), objects, unknown, meter: lease.meter() }
    }

    /// Counts one more object, unless those are too many.
    pub(super) fn count_object(&mut self) -> Option<()> {
        self.objects = self.objects.checked_sub(1)?;
        Some(())
    }

    /// Decodes a struct's message into its members.
    pub(super) fn message(
        &mut self,
        ty: TypeId,
        message: &[u8],
        into: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), DecodeError> {
        if depth > DEPTH_MAX {
            return Err(DecodeError::TooDeep);
        }
        self.count_object().ok_or(DecodeError::TooMany)?;
        if !message.is_empty() && into.is_empty() {
            self.meter.charge(OBJECT_BYTES)?;
        }
        let name = self.table.ty(ty).name;
        let mut reader = Reader::new(message);
        while let Some(tag) = reader.tag(name)? {
            match self.plan.find(ty, tag.number) {
                Some(field) => self.field(field, tag.wire, &mut reader, into, depth)?,
                None if self.unknown == UnknownFields::Refused => {
                    return Err(DecodeError::UnknownField { message: name, number: tag.number });
                }
                None => reader.skip(tag.wire)?,
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &'static Field,
        wire: u8,
        reader: &mut Reader<'_>,
        into: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let ty = self.table.ty(field.ty);
        match ty.kind {
            _ if field.name.is_empty() => {
                expect_field(self.table, wire, BYTES, field)?;
                self.message(field.ty, reader.bytes()?, into, depth + 1)
            }
            TypeKind::List if !ty.proto_message => self.list(field, wire, reader, into, depth + 1),
            TypeKind::Map => {
                expect_field(self.table, wire, BYTES, field)?;
                self.entry(field, reader.bytes()?, into, depth + 1)
            }
            kind => {
                expect_field(self.table, wire, wire_type(kind), field)?;
                let old = into.remove(field.name);
                if let Some(value) = self.single(field.ty, reader, old, depth + 1)?
                    && (field.flags.pointer() || !field.flags.omit_empty() || !is_empty(kind, &value))
                {
                    self.meter.charge(weight::text(field.name.len()))?;
                    into.insert(field.name.to_owned(), value);
                }
                Ok(())
            }
        }
    }

    /// Decodes one value whose wire type is known to be right. `None` is Go's `null`.
    fn single(
        &mut self,
        ty: TypeId,
        reader: &mut Reader<'_>,
        old: Option<Value>,
        depth: usize,
    ) -> Result<Option<Value>, DecodeError> {
        Ok(Some(match self.table.ty(ty).kind {
            TypeKind::String => Value::String(self.text(reader.bytes()?)?),
            TypeKind::Bool => Value::Bool(reader.varint()? != 0),
            TypeKind::Int32 => Value::from(reader.varint()? as i32),
            TypeKind::Int64 => Value::from(reader.varint()? as i64),
            TypeKind::Double => Value::Number(number(f64::from_bits(reader.fixed64()?))?),
            TypeKind::Bytes => {
                let bytes = reader.bytes()?;
                self.meter.charge(weight::text(bytes.len().div_ceil(3) * 4))?;
                Value::String(STANDARD.encode(bytes))
            }
            _ => return self.merge(ty, reader.bytes()?, old, depth),
        }))
    }

    /// Decodes an element of a list, which has a value even where a member would be absent.
    pub(super) fn element(
        &mut self,
        ty: TypeId,
        wire: u8,
        reader: &mut Reader<'_>,
        field: &str,
        depth: usize,
    ) -> Result<Value, DecodeError> {
        expect(wire, wire_type(self.table.ty(ty).kind), field)?;
        Ok(self.single(ty, reader, None, depth)?.unwrap_or_else(|| self.zero(ty)))
    }

    fn list(
        &mut self,
        field: &'static Field,
        wire: u8,
        reader: &mut Reader<'_>,
        into: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let elem = self.table.elem(field.ty);
        let wanted = wire_type(self.table.ty(elem).kind);
        if wire == BYTES && wanted != BYTES {
            let mut packed = Reader::new(reader.bytes()?);
            while !packed.is_empty() {
                let value = self.single(elem, &mut packed, None, depth + 1)?;
                self.push(into, field.name, value.unwrap_or_default())?;
            }
            return Ok(());
        }
        expect_field(self.table, wire, wanted, field)?;
        let value = self.single(elem, reader, None, depth + 1)?;
        let value = value.unwrap_or_else(|| self.zero(elem));
        self.push(into, field.name, value)
    }

    /// A map is a list of messages of a key and a value.
    fn entry(
        &mut self,
        field: &'static Field,
        message: &[u8],
        into: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let elem = self.table.elem(field.ty);
        let mut key = String::new();
        let mut value = None;
        let mut reader = Reader::new(message);
        while let Some(tag) = reader.tag(field.name)? {
            match tag.number {
                1 => {
                    expect_field(self.table, tag.wire, BYTES, field)?;
                    key = self.text(reader.bytes()?)?;
                }
                2 => {
                    expect_field(self.table, tag.wire, wire_type(self.table.ty(elem).kind), field)?;
                    value = self.single(elem, &mut reader, None, depth + 1)?;
                }
                _ => reader.skip(tag.wire)?,
            }
        }
        let value = value.unwrap_or_else(|| self.zero(elem));
        self.meter.charge(MEMBER_BYTES)?;
        match into.get_mut(field.name) {
            Some(Value::Object(map)) => drop(map.insert(key, value)),
            _ => {
                self.meter.charge(OBJECT_BYTES)?;
                into.insert(field.name.to_owned(), Value::Object(Map::from_iter([(key, value)])));
            }
        }
        Ok(())
    }

    /// A string, charged before it is made.
    pub(super) fn text(&mut self, bytes: &[u8]) -> Result<String, DecodeError> {
        self.meter.charge(weight::text(bytes.len()))?;
        Ok(text(bytes).into_owned())
    }

    fn push(
        &mut self,
        into: &mut Map<String, Value>,
        name: &'static str,
        item: Value,
    ) -> Result<(), DecodeError> {
        self.meter.charge(ITEM_BYTES)?;
        match into.get_mut(name) {
            Some(Value::Array(items)) => items.push(item),
            _ => {
                self.meter.charge(ARRAY_BYTES + weight::text(name.len()))?;
                into.insert(name.to_owned(), Value::Array(vec![item]));
            }
        }
        Ok(())
    }

    /// Go's zero value of an element, as JSON.
    fn zero(&self, ty: TypeId) -> Value {
        match self.table.ty(ty).kind {
            TypeKind::Struct | TypeKind::Map => Value::Object(Map::new()),
            TypeKind::List => Value::Array(Vec::new()),
            TypeKind::String | TypeKind::Bytes => Value::String(String::new()),
            TypeKind::Bool | TypeKind::SchemaOrBool => Value::Bool(false),
            TypeKind::Int32 | TypeKind::Int64 | TypeKind::Double | TypeKind::IntOrString => Value::from(0),
            TypeKind::Quantity => Value::String("0".into()),
            _ => Value::Null,
        }
    }
}

pub(super) fn wire_type(kind: TypeKind) -> u8 {
    match kind {
        TypeKind::Bool | TypeKind::Int32 | TypeKind::Int64 => VARINT,
        TypeKind::Double => FIXED64,
        _ => BYTES,
    }
}

/// What Go's omitempty leaves out of JSON, unless it is behind a pointer.
fn is_empty(kind: TypeKind, value: &Value) -> bool {
    match (kind, value) {
        (TypeKind::String | TypeKind::Bytes, Value::String(text)) => text.is_empty(),
        (TypeKind::Bool, Value::Bool(value)) => !value,
        (TypeKind::Int32 | TypeKind::Int64 | TypeKind::Double, Value::Number(n)) => n.as_f64() == Some(0.0),
        _ => false,
    }
}

/// The number that is parsed from what Go writes: whole numbers have no point.
fn number(float: f64) -> Result<Number, DecodeError> {
    let unsupported = || match float {
        _ if float.is_nan() => DecodeError::Float("NaN"),
        _ if float > 0.0 => DecodeError::Float("+Inf"),
        _ => DecodeError::Float("-Inf"),
    };
    let whole = float.fract() == 0.0 && !(float == 0.0 && float.is_sign_negative());
    if whole && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float) {
        return Ok(Number::from(float as i64));
    }
    if whole && (0.0..18_446_744_073_709_551_616.0).contains(&float) {
        return Ok(Number::from(float as u64));
    }
    Number::from_f64(float).ok_or_else(unsupported)
}
