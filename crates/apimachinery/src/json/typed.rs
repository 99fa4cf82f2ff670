//! Members of a small fixed object, read with Go's complaints about types.
//!
//! In: an object whose fields are known here, such as `DeleteOptions`. Out: what its members hold. Never:
//! kinds with a schema; those are read elsewhere.

use serde_json::{Map, Value};

use super::write::to_go_text;

/// The members of an object that Go would read into a struct. `null` is the same as no member.
pub(crate) struct Members<'v> {
    object: Option<&'v Map<String, Value>>,
    /// `DeleteOptions.` or `Preconditions.preconditions.`: what stands before a field's name in messages.
    prefix: String,
}

impl<'v> Members<'v> {
    /// The members of `value`, which Go would read into the struct `go_type`.
    pub(crate) fn of(value: &'v Value, go_type: &str, prefix: &str) -> Result<Members<'v>, String> {
        let object = match value {
            Value::Null => None,
            Value::Object(object) => Some(object),
            other => {
                return Err(format!(
                    "json: cannot unmarshal {} into Go value of type {go_type}",
                    kind_of(other)
                ));
            }
        };
        Ok(Members { object, prefix: prefix.to_string() })
    }

    fn get(&self, name: &str) -> Option<&'v Value> {
        self.object?.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, name: &str, go_type: &str) -> Result<Option<&'v str>, String> {
        self.read(name, go_type, Value::as_str)
    }

    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>, String> {
        self.read(name, "bool", Value::as_bool)
    }

    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, String> {
        match self.get(name) {
            Some(Value::Number(number)) if !number.is_i64() => {
                let shown = to_go_text(&Value::Number(number.clone()));
                Err(self.mismatch(&format!("number {shown}"), name, "int64"))
            }
            _ => self.read(name, "int64", Value::as_i64),
        }
    }

    /// A list of strings; a `null` in it is the empty string.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        let items = self.read(name, "[]string", Value::as_array)?;
        let text = |item: &Value| match item {
            Value::Null => Ok(String::new()),
            Value::String(text) => Ok(text.clone()),
            other => Err(self.mismatch(kind_of(other), name, "string")),
        };
        items.into_iter().flatten().map(text).collect()
    }

    /// A nested object, which Go would read into the struct `go_struct`.
    pub(crate) fn object(&self, name: &str, go_struct: &str) -> Result<Option<Members<'v>>, String> {
        let object = self.read(name, &format!("v1.{go_struct}"), Value::as_object)?;
        Ok(object.map(|object| Members { object: Some(object), prefix: format!("{go_struct}.{name}.") }))
    }

    fn read<T>(
        &self,
        name: &str,
        go_type: &str,
        read: impl Fn(&'v Value) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| self.mismatch(kind_of(value), name, go_type))
    }

    fn mismatch(&self, found: &str, name: &str, go_type: &str) -> String {
        format!("json: cannot unmarshal {found} into Go struct field {}{name} of type {go_type}", self.prefix)
    }
}

/// What Go calls this kind of JSON.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
