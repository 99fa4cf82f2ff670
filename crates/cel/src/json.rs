//! What an expression made, as JSON: for the objects and patches of mutating policies.
//!
//! In: a value, how much of it there may be. Out: a tree. Never: more than that, however often the value has
//! a part that it shares.
//!
//! Source: apiserver v0.36.3 `pkg/cel/mutation/dynamic/objects.go`.

use std::sync::Arc;

use serde_json::{Map as Members, Number, Value as Json};

use forebay_apimachinery::json::DEPTH_MAX;

use crate::base64;
use crate::error::Error;
use crate::limits::ELEMENT_BYTES;
use crate::messages::JSON_NUMBER_MAX;
use crate::spent::Spent;
use crate::time;
use crate::value::{Map, MapKey, Value};

/// How numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// As they are.
    Native,
    /// As protobuf's JSON has them: what no double can be is a text.
    Doubles,
}

/// What came of it.
#[derive(Debug)]
pub struct Converted {
    pub json: Json,
    /// What its literals are called that should be called by the path to them, each as a sentence.
    pub misnamed: Vec<String>,
    /// What it was counted for.
    pub bytes: usize,
}

impl Value<'_> {
    /// The value as a tree.
    ///
    /// - `bytes_max`: what the tree may take, each of its parts for [`ELEMENT_BYTES`] and its texts.
    ///
    /// # Errors
    /// What JSON does not have, and [`Error::CostExceeded`] for too much.
    pub fn to_json(&self, numbers: Numbers, bytes_max: usize) -> Result<Converted, Error> {
        let path = match self {
            Value::Struct(it) => vec![it.name.clone()],
            _ => Vec::new(),
        };
        let mut conversion = Conversion { numbers, left: bytes_max, depth: 0, path, misnamed: Vec::new() };
        let json = conversion.convert(self)?;
        Ok(Converted { json, misnamed: conversion.misnamed, bytes: bytes_max - conversion.left })
    }
}

struct Conversion {
    numbers: Numbers,
    left: usize,
    depth: usize,
    /// From the root's type, by the names of fields.
    path: Vec<Arc<str>>,
    misnamed: Vec<String>,
}

impl Conversion {
    fn pay(&mut self, bytes: usize) -> Result<(), Error> {
        self.left = self.left.checked_sub(bytes.saturating_add(ELEMENT_BYTES)).ok_or(Error::CostExceeded)?;
        Ok(())
    }

    fn convert(&mut self, value: &Value<'_>) -> Result<Json, Error> {
        // What is deeper nobody could read again.
        if self.depth > DEPTH_MAX {
            return Err(Error::new(format!("it is deeper than {DEPTH_MAX} levels")));
        }
        self.depth += 1;
        let converted = self.at_depth(value);
        self.depth -= 1;
        converted
    }

    fn at_depth(&mut self, value: &Value<'_>) -> Result<Json, Error> {
        self.pay(0)?;
        let is_narrow = self.numbers == Numbers::Doubles;
        Ok(match value {
            Value::Null => Json::Null,
            Value::Bool(it) => Json::Bool(*it),
            Value::Int(it) if is_narrow && it.unsigned_abs() > JSON_NUMBER_MAX as u64 => {
                Json::String(it.to_string())
            }
            Value::Int(it) => Json::from(*it),
            Value::Uint(it) if is_narrow && *it > JSON_NUMBER_MAX as u64 => Json::String(it.to_string()),
            Value::Uint(it) => Json::from(*it),
            Value::Double(it) if it.fract() == 0.0 && it.abs() <= JSON_NUMBER_MAX as f64 => {
                Json::from(*it as i64)
            }
            Value::Double(it) => match Number::from_f64(*it) {
                Some(number) => Json::Number(number),
                None => return Err(unsupported(value)),
            },
            Value::String(text) => {
                self.pay(text.len())?;
                Json::String(text.to_string())
            }
            Value::Bytes(bytes) => {
                self.pay(bytes.len().saturating_mul(2))?;
                Json::String(base64::encode(bytes))
            }
            Value::Duration(nanos) => Json::String(time::seconds_text(*nanos)),
            Value::Timestamp(at) => Json::String(time::text(*at)),
            Value::List(list) => {
                let mut items = Vec::new();
                for item in list.iter() {
                    items.push(self.convert(&item?)?);
                }
                Json::Array(items)
            }
            Value::Map(map) => Json::Object(self.members(map)?),
            Value::Struct(it) => {
                let expected = self.path.join(".");
                if *it.name != *expected {
                    self.pay(it.name.len() + expected.len() + 128)?;
                    self.misnamed.push(format!(
                        "unexpected type name {:?}, expected {expected:?}, which matches field name path from root Object \
                         type",
                        it.name
                    ));
                }
                let mut members = Members::new();
                for (name, value) in &it.fields {
                    self.pay(name.len())?;
                    self.path.push(name.clone());
                    let value = self.convert(value);
                    self.path.pop();
                    members.insert(name.to_string(), value?);
                }
                Json::Object(members)
            }
            Value::Optional(Some(inner)) => self.convert(inner)?,
            Value::Optional(None) => Json::Null,
            Value::Type(_) | Value::Object(_) | Value::Composed => return Err(unsupported(value)),
        })
    }

    fn members(&mut self, map: &Map<'_>) -> Result<Members<String, Json>, Error> {
        let mut members = Members::new();
        // What there may be of it is bounded by what is paid.
        let spent = Spent::default();
        for key in map.keys(&spent) {
            let key = key?;
            let Some(MapKey::String(name)) = key.key() else {
                let shown = key.key().map(|key| key.shown().into_owned()).unwrap_or_default();
                return Err(Error::new(format!(
                    "map key {shown:?} is of type {}, not string",
                    key.type_name()
                )));
            };
            self.pay(name.len())?;
            let value = map.get_text(&name)?.unwrap_or(Value::Null);
            members.insert(name.to_string(), self.convert(&value)?);
        }
        Ok(members)
    }
}

fn unsupported(value: &Value<'_>) -> Error {
    Error::new(format!("unsupported conversion from {} to JSON", value.type_name()))
}
