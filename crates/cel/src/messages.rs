//! Literals with a type's name before them: what protobuf calls well known, and what mutating policies make
//! objects and patches of.
//!
//! In: a type's name, values by field. Out: the fields that a type has, what a literal of it is. Never: other
//! messages of protobuf, which no object of Kubernetes has.
//!
//! Source: cel-go v0.26.0 `common/types/{provider,types}.go`; apiserver v0.36.3 `pkg/cel/mutation`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base64;
use crate::error::Error;
use crate::heights;
use crate::spent::Spent;
use crate::time;
use crate::types::{Fields, StructType, Type};
use crate::value::{Map, MapKey, Signed, TextValue, Timestamp, Value};

/// The root of what a mutating policy makes; what stands below it has the path to it in its name.
const OBJECT: &str = "Object";
pub(crate) const JSON_PATCH: &str = "JSONPatch";

/// Numbers up to here are numbers in JSON, others are texts.
pub(crate) const JSON_NUMBER_MAX: i64 = (1 << 53) - 1;

/// An object or a patch that a literal spells out.
#[derive(Clone, Debug)]
pub struct Struct<'a> {
    pub name: Arc<str>,
    pub fields: BTreeMap<Arc<str>, Value<'a>>,
    height: u16,
}

impl<'a> Struct<'a> {
    fn of(name: Arc<str>, fields: BTreeMap<Arc<str>, Value<'a>>) -> Result<Struct<'a>, Error> {
        let mut height = 1;
        for value in fields.values() {
            height = height.max(heights::above(value)?);
        }
        Ok(Struct { name, fields, height })
    }

    pub(crate) fn height(&self) -> u16 {
        self.height
    }

    pub(crate) fn get(&self, field: &str) -> Option<Value<'a>> {
        self.fields.get(field).cloned()
    }

    /// Whether a field says anything: those of a patch that are texts are all there.
    pub(crate) fn has(&self, field: &str) -> bool {
        match self.fields.get(field) {
            Some(Value::String(text)) if &*self.name == JSON_PATCH && field != "value" => !text.is_empty(),
            found => found.is_some(),
        }
    }
}

/// The type that a message of protobuf is to an expression.
pub(crate) fn well_known(name: &str) -> Option<Type> {
    Some(match name.strip_prefix("google.protobuf.")? {
        "BoolValue" => Type::wrapper(Type::Bool),
        "BytesValue" => Type::wrapper(Type::Bytes),
        "DoubleValue" | "FloatValue" => Type::wrapper(Type::Double),
        "Int32Value" | "Int64Value" => Type::wrapper(Type::Int),
        "UInt32Value" | "UInt64Value" => Type::wrapper(Type::Uint),
        "StringValue" => Type::wrapper(Type::String),
        "Any" => Type::Any,
        "Duration" => Type::Duration,
        "Timestamp" => Type::Timestamp,
        "ListValue" => Type::list(Type::Dyn),
        "Struct" => Type::map(Type::String, Type::Dyn),
        "Value" => Type::Dyn,
        _ => return None,
    })
}

/// The types that mutating policies may name.
pub(crate) fn of_mutations(name: &str) -> Option<Type> {
    let fields = match name.strip_prefix(OBJECT) {
        Some(rest) if rest.is_empty() || rest.starts_with('.') => Fields::Any,
        _ if name == JSON_PATCH => Fields::Known(BTreeMap::from([
            ("op".into(), Type::String),
            ("path".into(), Type::String),
            ("from".into(), Type::String),
            ("value".into(), Type::Dyn),
        ])),
        _ => return None,
    };
    Some(Type::Struct(Arc::new(StructType { name: name.into(), fields })))
}

/// Whether there are literals of a type.
pub(crate) fn is_message(of: &Type) -> bool {
    match of {
        Type::List(item) => **item == Type::Dyn,
        Type::Map(both) => **both == (Type::String, Type::Dyn),
        _ => matches!(
            of,
            Type::Struct(_)
                | Type::Wrapper(_)
                | Type::Any
                | Type::Dyn
                | Type::Null
                | Type::Duration
                | Type::Timestamp
        ),
    }
}

/// What a field of a literal takes, if it has the field.
pub(crate) fn field(of: &Type, name: &str) -> Option<Type> {
    Some(match (of, name) {
        (Type::Struct(it), _) => return it.field(name),
        (Type::Wrapper(inner), "value") => (**inner).clone(),
        (Type::Any, "type_url") => Type::String,
        (Type::Any, "value") => Type::Bytes,
        (Type::Duration | Type::Timestamp, "seconds" | "nanos") => Type::Int,
        (Type::List(_), "values") => Type::list(Type::Dyn),
        (Type::Map(_), "fields") | (Type::Dyn, "struct_value") => Type::map(Type::String, Type::Dyn),
        (Type::Dyn, "null_value") => Type::Int,
        (Type::Dyn, "number_value") => Type::Double,
        (Type::Dyn, "string_value") => Type::String,
        (Type::Dyn, "bool_value") => Type::Bool,
        (Type::Dyn, "list_value") => Type::list(Type::Dyn),
        _ => return None,
    })
}

/// What a literal is, its fields evaluated.
///
/// # Errors
/// If a value is not what its field takes.
pub(crate) fn make<'a>(
    name: &Arc<str>,
    mut fields: BTreeMap<Arc<str>, Value<'a>>,
    spent: &Spent,
) -> Result<Value<'a>, Error> {
    let of_protobuf = name.strip_prefix("google.protobuf.");
    let Some(short) = of_protobuf else {
        if &**name == JSON_PATCH {
            for field in ["op", "path", "from"] {
                fields.entry(field.into()).or_insert_with(|| Value::text(""));
            }
        }
        return Ok(Value::Struct(Arc::new(Struct::of(name.clone(), fields)?)));
    };
    let whole = |field: &str| match fields.get(field) {
        Some(Value::Int(it)) => Ok(*it),
        None => Ok(0),
        Some(other) => Err(unsuited(name, field, other)),
    };
    Ok(match short {
        "Duration" => {
            let nanos = whole("seconds")?.checked_mul(1_000_000_000);
            let nanos = nanos.and_then(|nanos| nanos.checked_add(whole("nanos").ok()?));
            Value::Duration(nanos.ok_or_else(|| Error::new("integer overflow"))?)
        }
        "Timestamp" => {
            let at = Timestamp::utc(whole("seconds")?, 0);
            Value::Timestamp(time::moved(at, whole("nanos")?)?)
        }
        "ListValue" => match fields.into_iter().next() {
            Some((_, list)) => json(list, spent)?,
            None => Value::list(Vec::new())?,
        },
        "Struct" => match fields.into_iter().next() {
            Some((_, map)) => json(map, spent)?,
            None => Value::Map(Map::Owned(Arc::default())),
        },
        "Value" if fields.contains_key("null_value") => Value::Null,
        // Of one of these fields the last that is set is there.
        "Value" => fields.into_values().next_back().map_or(Ok(Value::Null), |value| json(value, spent))?,
        "Any" => return any(&fields),
        _ => wrapped(name, short, fields.into_values().next())?,
    })
}

fn unsuited(name: &str, field: &str, value: &Value<'_>) -> Error {
    let found = value.type_name();
    Error::new(format!("field type conversion error for {name}.{field} value type: unsupported type {found}"))
}

/// What is in a message of any type: none is known that could be.
fn any<'a>(fields: &BTreeMap<Arc<str>, Value<'a>>) -> Result<Value<'a>, Error> {
    Err(match fields.get("type_url") {
        Some(Value::String(url)) if !url.is_empty() => {
            let name = url.rsplit_once('/').map_or(&**url, |(_, name)| name);
            Error::new(format!("unknown type: '{name}'"))
        }
        _ => Error::new("unsupported conversion to ref.Val: (*dynamicpb.Message)"),
    })
}

fn wrapped<'a>(name: &Arc<str>, short: &str, value: Option<Value<'a>>) -> Result<Value<'a>, Error> {
    let overflow = |what: &str| {
        let message = format!("field type conversion error for {name}.value value type: {what} overflow");
        Error::new(message)
    };
    Ok(match (short, value) {
        ("BoolValue", None) => Value::Bool(false),
        ("BytesValue", None) => Value::Bytes(Arc::new([])),
        ("DoubleValue" | "FloatValue", None) => Value::Double(0.0),
        ("Int32Value" | "Int64Value", None) => Value::Int(0),
        ("UInt32Value" | "UInt64Value", None) => Value::Uint(0),
        ("StringValue", None) => Value::text(""),
        ("FloatValue", Some(Value::Double(it))) => Value::Double(f64::from(it as f32)),
        ("Int32Value", Some(Value::Int(it))) if i32::try_from(it).is_err() => {
            return Err(overflow("integer"));
        }
        ("UInt32Value", Some(Value::Uint(it))) if u32::try_from(it).is_err() => {
            return Err(overflow("unsigned integer"));
        }
        ("BoolValue", Some(it @ Value::Bool(_)))
        | ("BytesValue", Some(it @ Value::Bytes(_)))
        | ("DoubleValue", Some(it @ Value::Double(_)))
        | ("Int32Value" | "Int64Value", Some(it @ Value::Int(_)))
        | ("UInt32Value" | "UInt64Value", Some(it @ Value::Uint(_)))
        | ("StringValue", Some(it @ Value::String(_))) => it,
        (_, Some(other)) => return Err(unsuited(name, "value", &other)),
        (_, None) => return Err(Error::new(format!("unknown type: {name}"))),
    })
}

/// A value as JSON has it: numbers are doubles, what JSON does not have is a text. What is in it many times
/// is made as often, and what is of a tree is one's own.
fn json<'a>(value: Value<'a>, spent: &Spent) -> Result<Value<'a>, Error> {
    spent.walk(value.bytes())?;
    Ok(match value {
        Value::Int(it) if (-JSON_NUMBER_MAX..=JSON_NUMBER_MAX).contains(&it) => Value::Double(it as f64),
        Value::Int(it) => Value::text(it.to_string()),
        Value::Uint(it) if it <= JSON_NUMBER_MAX as u64 => Value::Double(it as f64),
        Value::Uint(it) => Value::text(it.to_string()),
        Value::Bytes(bytes) => {
            spent.make(bytes.len().saturating_mul(2))?;
            Value::text(base64::encode(&bytes))
        }
        Value::Duration(nanos) => Value::text(time::seconds_text(nanos)),
        Value::Timestamp(at) => Value::text(time::text(at)),
        Value::List(list) => {
            spent.make_list(list.len())?;
            let mut items = Vec::with_capacity(list.len());
            for item in list.iter() {
                items.push(json(item?, spent)?);
            }
            Value::list(items)?
        }
        Value::Map(map) => {
            spent.make_map(map.len())?;
            let mut entries = BTreeMap::new();
            for key in map.keys(spent) {
                let key = key?.key().ok_or_else(Error::no_such_overload)?;
                let value = map.get(&key)?.unwrap_or(Value::Null);
                entries.insert(MapKey::String(key_text(key)), json(value, spent)?);
            }
            Value::map(entries)?
        }
        same @ (Value::Null | Value::Bool(_) | Value::Double(_) | Value::String(_)) => same,
        other => {
            let message = format!("unsupported conversion from {} to JSON", other.type_name());
            return Err(Error::new(message));
        }
    })
}

fn key_text(key: MapKey<'_>) -> TextValue<'_> {
    match key {
        MapKey::String(text) => text,
        MapKey::Bool(it) => TextValue::Shared(it.to_string().into()),
        MapKey::Number(it, Signed::Int | Signed::Uint) => TextValue::Shared(it.to_string().into()),
    }
}
