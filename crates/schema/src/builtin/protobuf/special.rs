//! The messages of types that are no object in JSON: quantities, times, embedded JSON, schema-or-something.
//!
//! In: the bytes of such a message and the value that an earlier occurrence of the field left. Out: the JSON
//! value, or `None` where Go would write `null`. Never: structs, lists and maps.

use forebay_apimachinery::json::weight::{self, ITEM_BYTES};
use forebay_apimachinery::lease::Meter;
use forebay_apimachinery::quantity;
use serde_json::{Map, Value};

use super::super::codec::DEPTH_MAX;
use super::super::table::{Field, Table, TypeId, TypeKind};
use super::decode::Decoder;
use super::error::DecodeError;
use super::reader::{BYTES, Reader, VARINT, text};
use super::time::{self, Precision, Timestamp};

impl Decoder {
    /// Decodes a message into a value of its type.
    ///
    /// - `old`: what an earlier occurrence of the same field left; messages merge.
    pub(super) fn merge(
        &mut self,
        ty: TypeId,
        message: &[u8],
        old: Option<Value>,
        depth: usize,
    ) -> Result<Option<Value>, DecodeError> {
        let name = self.table.ty(ty).name;
        match self.table.ty(ty).kind {
            TypeKind::Struct => {
                let mut map = match old {
                    Some(Value::Object(map)) => map,
                    _ => Map::new(),
                };
                self.message(ty, message, &mut map, depth)?;
                Ok(Some(Value::Object(map)))
            }
            TypeKind::List => self.list_message(ty, message, old, depth).map(Some),
            TypeKind::Quantity => quantity(message, old),
            TypeKind::IntOrString => {
                self.meter.charge(weight::text(message.len()))?;
                int_or_string(message, old).map(Some)
            }
            TypeKind::Time => time(message, Precision::Seconds),
            TypeKind::MicroTime => time(message, Precision::Micros),
            TypeKind::RawExtension => raw("RawExtension", message, old, depth, &mut self.meter),
            TypeKind::FieldsV1 => raw("FieldsV1", message, old, depth, &mut self.meter),
            TypeKind::Json => raw("JSON", message, old, depth, &mut self.meter),
            TypeKind::SchemaOrBool => self.schema_or_bool(ty, name, message, old, depth).map(Some),
            TypeKind::SchemaOrArray | TypeKind::SchemaOrStrings => {
                self.schema_or_list(ty, name, message, old, depth)
            }
            // Neither a message nor, in a struct, anything with a number of its own.
            _ => Ok(old),
        }
    }

    /// A list that is a message of its own, with `items` as its only field. An empty one is a list, too.
    fn list_message(
        &mut self,
        ty: TypeId,
        message: &[u8],
        old: Option<Value>,
        depth: usize,
    ) -> Result<Value, DecodeError> {
        let mut items = match old {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        let elem = self.table.elem(ty);
        let mut reader = Reader::new(message);
        while let Some(tag) = reader.tag(self.table.ty(ty).name)? {
            if tag.number == 1 {
                let item = self.element(elem, tag.wire, &mut reader, "Items", depth + 1)?;
                self.meter.charge(ITEM_BYTES)?;
                items.push(item);
            } else {
                reader.skip(tag.wire)?;
            }
        }
        Ok(Value::Array(items))
    }

    fn schema_or_bool(
        &mut self,
        ty: TypeId,
        name: &'static str,
        message: &[u8],
        old: Option<Value>,
        depth: usize,
    ) -> Result<Value, DecodeError> {
        let (mut allows, mut schema) = match old {
            Some(Value::Bool(allows)) => (allows, None),
            schema => (false, schema),
        };
        let mut reader = Reader::new(message);
        while let Some(tag) = reader.tag(name)? {
            match tag.number {
                1 => {
                    expect(tag.wire, VARINT, "Allows")?;
                    allows = reader.varint()? != 0;
                }
                2 => {
                    expect(tag.wire, BYTES, "Schema")?;
                    schema = self.merge(self.table.elem(ty), reader.bytes()?, schema, depth + 1)?;
                }
                _ => reader.skip(tag.wire)?,
            }
        }
        Ok(schema.unwrap_or(Value::Bool(allows)))
    }

    /// A list wins over a schema, as it does when Go writes JSON.
    fn schema_or_list(
        &mut self,
        ty: TypeId,
        name: &'static str,
        message: &[u8],
        old: Option<Value>,
        depth: usize,
    ) -> Result<Option<Value>, DecodeError> {
        let (mut schema, mut list) = match old {
            Some(Value::Array(list)) => (None, list),
            schema => (schema, Vec::new()),
        };
        let strings = self.table.ty(ty).kind == TypeKind::SchemaOrStrings;
        let elem = self.table.elem(ty);
        let mut reader = Reader::new(message);
        while let Some(tag) = reader.tag(name)? {
            match tag.number {
                1 => {
                    expect(tag.wire, BYTES, "Schema")?;
                    schema = self.merge(elem, reader.bytes()?, schema, depth + 1)?;
                }
                2 if strings => {
                    expect(tag.wire, BYTES, "Property")?;
                    self.meter.charge(ITEM_BYTES)?;
                    list.push(Value::String(self.text(reader.bytes()?)?));
                }
                2 => {
                    expect(tag.wire, BYTES, "JSONSchemas")?;
                    let item = self.merge(elem, reader.bytes()?, None, depth + 2)?;
                    self.meter.charge(ITEM_BYTES)?;
                    list.push(item.unwrap_or_default());
                }
                _ => reader.skip(tag.wire)?,
            }
        }
        Ok(if list.is_empty() { schema } else { Some(Value::Array(list)) })
    }
}

/// # Errors
/// [`DecodeError::WrongWireType`], which names the field as Go does.
pub(super) fn expect(wire: u8, wanted: u8, field: &str) -> Result<(), DecodeError> {
    if wire == wanted {
        return Ok(());
    }
    Err(DecodeError::WrongWireType { wire_type: wire, field: field.to_owned() })
}

/// Like [`expect`], for a field of the table.
pub(super) fn expect_field(table: &Table, wire: u8, wanted: u8, field: &Field) -> Result<(), DecodeError> {
    if wire == wanted {
        return Ok(());
    }
    Err(DecodeError::WrongWireType { wire_type: wire, field: go_name(table, field) })
}

/// The name of the Go field, as far as it follows from the JSON name: `ObjectMeta` is embedded, as all inline
/// fields are, and others begin with a capital letter.
fn go_name(table: &Table, field: &Field) -> String {
    let mut chars = field.name.chars();
    match chars.next() {
        Some(first) if field.name != "metadata" => first.to_uppercase().chain(chars).collect(),
        _ => table.ty(field.ty).name.to_owned(),
    }
}

fn quantity(message: &[u8], old: Option<Value>) -> Result<Option<Value>, DecodeError> {
    let mut quantity = old;
    let mut reader = Reader::new(message);
    while let Some(tag) = reader.tag("Quantity")? {
        if tag.number == 1 {
            expect(tag.wire, BYTES, "String_")?;
            let text = text(reader.bytes()?);
            quantity =
                Some(Value::String(quantity::canonical(&text, quantity::Precision::Nano)?.into_owned()));
        } else {
            reader.skip(tag.wire)?;
        }
    }
    Ok(Some(quantity.unwrap_or_else(|| Value::String("0".into()))))
}

fn int_or_string(message: &[u8], old: Option<Value>) -> Result<Value, DecodeError> {
    let (mut kind, mut int, mut string) = match old {
        Some(Value::String(string)) => (1, 0, string),
        Some(value) => (0, value.as_i64().unwrap_or_default() as i32, String::new()),
        None => (0, 0, String::new()),
    };
    let mut reader = Reader::new(message);
    while let Some(tag) = reader.tag("IntOrString")? {
        match tag.number {
            1 => {
                expect(tag.wire, VARINT, "Type")?;
                kind = reader.varint()?;
            }
            2 => {
                expect(tag.wire, VARINT, "IntVal")?;
                int = reader.varint()? as i32;
            }
            3 => {
                expect(tag.wire, BYTES, "StrVal")?;
                string = text(reader.bytes()?).into_owned();
            }
            _ => reader.skip(tag.wire)?,
        }
    }
    match kind {
        0 => Ok(Value::from(int)),
        1 => Ok(Value::String(string)),
        _ => Err(DecodeError::IntOrString),
    }
}

/// Times do not merge: an empty message is the zero time.
fn time(message: &[u8], precision: Precision) -> Result<Option<Value>, DecodeError> {
    if message.is_empty() {
        return Ok(None);
    }
    let mut stamp = Timestamp::default();
    let mut reader = Reader::new(message);
    while let Some(tag) = reader.tag("Timestamp")? {
        match tag.number {
            1 => {
                expect(tag.wire, VARINT, "Seconds")?;
                stamp.seconds = reader.varint()? as i64;
            }
            2 => {
                expect(tag.wire, VARINT, "Nanos")?;
                stamp.nanos = reader.varint()? as i32;
            }
            _ => reader.skip(tag.wire)?,
        }
    }
    Ok(time::text(stamp, precision)?.map(Value::String))
}

/// JSON as bytes. None at all is `null`.
fn raw(
    name: &'static str,
    message: &[u8],
    old: Option<Value>,
    depth: usize,
    meter: &mut Meter,
) -> Result<Option<Value>, DecodeError> {
    let mut value = old;
    let mut reader = Reader::new(message);
    while let Some(tag) = reader.tag(name)? {
        if tag.number == 1 {
            expect(tag.wire, BYTES, "Raw")?;
            value = json(name, reader.bytes()?, depth, meter)?;
        } else {
            reader.skip(tag.wire)?;
        }
    }
    Ok(value)
}

fn json(
    name: &'static str,
    bytes: &[u8],
    depth: usize,
    meter: &mut Meter,
) -> Result<Option<Value>, DecodeError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    meter.charge(weight::of_text(bytes))?;
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| DecodeError::Json { field: name, why: error.to_string() })?;
    if depth + height(&value) > DEPTH_MAX {
        return Err(DecodeError::TooDeep);
    }
    Ok(Some(value).filter(|value| !value.is_null()))
}

/// Levels of nesting; the parser allows 128.
fn height(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(height).max(),
        Value::Object(map) => map.values().map(height).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or_default()
}
