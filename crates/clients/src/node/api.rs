//! What a node asks its server, and how it reads what it is answered.
//!
//! In: requests in JSON. Out: objects, or an error that begins with the code of the answer; parts of
//! objects that may be absent. Never: a look at what an object means.

use serde_json::Value;

use crate::https::{self, Call, Credentials};

/// Now, as objects have it.
pub(super) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The server, as the node's owner asks it.
pub(super) struct Api {
    pub port: u16,
    pub credentials: Credentials,
}

impl Api {
    /// The answer's body, or an error that begins with its code.
    pub(super) fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let answer = https::call(self.port, &self.credentials, &Call { method, path, body: &text })?;
        let read = serde_json::from_str(&answer.body).unwrap_or(Value::Null);
        match answer.code {
            200..=299 => Ok(read),
            code => Err(format!("{code} {method} {path}: {}", text_of(&read["message"]))),
        }
    }

    pub(super) fn get(&self, path: &str) -> Result<Value, String> {
        self.ask("GET", path, &Value::Null)
    }
}

/// What was asked of an object that has changed meanwhile, or is gone: the next look tells.
pub(super) fn or_gone(asked: Result<(), String>) -> Result<(), String> {
    asked.or_else(|why| if why.starts_with("409 ") || why.starts_with("404 ") { Ok(()) } else { Err(why) })
}

pub(super) fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The elements of a list that may be absent.
pub(super) fn each(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_seconds_of_utc() {
        let now = now();
        assert_eq!((now.len(), &now[10..11], &now[19..]), (20, "T", "Z"), "{now}");
    }
}
