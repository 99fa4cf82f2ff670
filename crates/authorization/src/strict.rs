//! Trees that are read by hand, and what in them nobody knows.
//!
//! In: a tree, what was read of it. Out: members by type, or what is wrong, with the way to it. Never: a
//! member that is not named.
//!
//! Source: apimachinery v0.36.3 `pkg/runtime/serializer/json` (strict decoding).

use serde_json::{Map, Value};

/// An object, and how one comes to it: empty, or `authorizers[0]`.
pub(crate) struct Strict<'t> {
    members: &'t Map<String, Value>,
    pub way: String,
}

/// What is wrong with a tree.
#[derive(Default)]
pub(crate) struct Wrong {
    /// A type: nothing else is looked at then.
    pub types: Vec<String>,
    pub unknown: Vec<String>,
}

impl Wrong {
    /// # Errors
    /// What is wrong, in upstream's words.
    pub fn result(self) -> Result<(), String> {
        match (self.types.first(), self.unknown.as_slice()) {
            (Some(first), _) => Err(first.clone()),
            (None, []) => Ok(()),
            (None, unknown) => Err(format!("strict decoding error: {}", unknown.join(", "))),
        }
    }
}

impl<'t> Strict<'t> {
    /// The object of `value`, none where there is nothing.
    ///
    /// - `known`: its members.
    pub fn of(value: &'t Value, way: String, known: &[&str], wrong: &mut Wrong) -> Option<Strict<'t>> {
        match value {
            Value::Null => None,
            Value::Object(members) => {
                let strict = Strict { members, way };
                // Few: the members of a kind.
                for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
                    wrong.unknown.push(format!("unknown field {:?}", strict.to(name)));
                }
                Some(strict)
            }
            other => {
                wrong.types.push(mistyped(other, "object", &way));
                None
            }
        }
    }

    /// The way to a member.
    pub fn to(&self, name: &str) -> String {
        match self.way.as_str() {
            "" => name.to_owned(),
            way => format!("{way}.{name}"),
        }
    }

    pub fn value(&self, name: &str) -> &'t Value {
        self.members.get(name).unwrap_or(&Value::Null)
    }

    pub fn text(&self, name: &str, wrong: &mut Wrong) -> String {
        match self.value(name) {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => {
                wrong.types.push(mistyped(other, "string", &self.to(name)));
                String::new()
            }
        }
    }

    pub fn boolean(&self, name: &str, wrong: &mut Wrong) -> Option<bool> {
        match self.value(name) {
            Value::Null => None,
            Value::Bool(is) => Some(*is),
            other => {
                wrong.types.push(mistyped(other, "bool", &self.to(name)));
                None
            }
        }
    }

    pub fn list(&self, name: &str, wrong: &mut Wrong) -> &'t [Value] {
        match self.value(name) {
            Value::Null => &[],
            Value::Array(all) => all,
            other => {
                wrong.types.push(mistyped(other, "array", &self.to(name)));
                &[]
            }
        }
    }
}

/// Go's words for a value of another type than it should have.
pub(crate) fn mistyped(found: &Value, wanted: &str, way: &str) -> String {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {found} into Go struct field {way} of type {wanted}")
}
