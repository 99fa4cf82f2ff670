//! What a token claims, read as Go reads it into a text, a truth or a list.
//!
//! In: claims as a tree. Out: values, or Go's words for what they are instead. Never: decides whether a claim
//! counts.
//!
//! Source: apiserver v0.36.3 `plugin/pkg/authenticator/token/oidc/oidc.go`.

use serde_json::{Map, Value};

/// The claim `name` as a text.
///
/// # Errors
/// Go's words.
pub fn text(claims: &Map<String, Value>, name: &str) -> Result<String, String> {
    match claims.get(name) {
        None => Err("claim not present".to_owned()),
        Some(value) => of_text(value),
    }
}

fn of_text(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        // What is null leaves what was there: nothing.
        Value::Null => Ok(String::new()),
        other => Err(unsuited(other, "string")),
    }
}

/// The claim `name` as a truth.
///
/// # Errors
/// Go's words.
pub fn truth(claims: &Map<String, Value>, name: &str) -> Result<bool, String> {
    match claims.get(name) {
        None => Err("claim not present".to_owned()),
        Some(Value::Bool(is)) => Ok(*is),
        Some(Value::Null) => Ok(false),
        Some(other) => Err(unsuited(other, "bool")),
    }
}

/// A list of texts, or one text.
///
/// # Errors
/// Go's words.
pub fn texts(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => {
            let each = items.iter().map(|item| of_text(item).ok()).collect::<Option<Vec<_>>>();
            each.ok_or_else(|| unsuited(value, "string"))
        }
        other => of_text(other).map(|only| vec![only]),
    }
}

/// Seconds since 1970; `None` where nothing is said.
///
/// # Errors
/// Go's words.
pub fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, String> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => {
            let whole = number.as_i64().or_else(|| number.as_f64().map(|seconds| seconds as i64));
            whole.map(Some).ok_or_else(|| format!("{number} is no time"))
        }
        Some(other) => Err(unsuited(other, "json.Number")),
    }
}

/// Go's words for a value that is of another type.
fn unsuited(value: &Value, wanted: &str) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn claims_are_read_as_go_reads_them() {
        let claims = json!({
            "s": "x", "n": 1, "f": 1.9, "b": true, "z": null, "l": ["a", null], "m": ["a", 1], "o": {}, "big": 1e300,
        });
        let claims = claims.as_object().expect("an object");
        let no = |found: &str, wanted: &str| {
            Err(format!("json: cannot unmarshal {found} into Go value of type {wanted}"))
        };
        assert_eq!(text(claims, "s"), Ok("x".to_owned()));
        assert_eq!(text(claims, "z"), Ok(String::new()));
        assert_eq!(text(claims, "n"), no("number", "string"));
        assert_eq!(text(claims, "none"), Err("claim not present".to_owned()));
        assert_eq!(truth(claims, "b"), Ok(true));
        assert_eq!(truth(claims, "z"), Ok(false));
        assert_eq!(
            truth(claims, "s"),
            Err("json: cannot unmarshal string into Go value of type bool".to_owned())
        );
        let list = |name: &str| texts(&claims[name]).map(|all| all.join(","));
        assert_eq!(list("l"), Ok("a,".to_owned()));
        assert_eq!(list("s"), Ok("x".to_owned()));
        assert_eq!(list("z"), Ok(String::new()));
        assert_eq!(list("m"), no("array", "string"));
        assert_eq!(list("o"), no("object", "string"));
        assert_eq!(time(claims, "n"), Ok(Some(1)));
        assert_eq!(time(claims, "f"), Ok(Some(1)));
        assert_eq!(time(claims, "big"), Ok(Some(i64::MAX)));
        assert_eq!(time(claims, "none"), Ok(None));
        assert!(time(claims, "s").is_err());
    }
}
