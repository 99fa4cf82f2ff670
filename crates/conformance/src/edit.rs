//! Edits of a JSON object as text: `spec.replicas=-1;metadata.labels={"a":"b"}`.
//!
//! In: an object, and paths with the JSON that goes there; null takes a member away, `+` adds to a list, a
//! number is an item. Out: the edited object. Never: a path that the object cannot have; that is a fault of
//! the case.

use serde_json::Value;

/// Applies `edits` to a copy of `object`.
///
/// # Errors
/// What is wrong with the text.
pub fn edited(object: &Value, edits: &str) -> Result<Value, String> {
    let mut object = object.clone();
    for edit in apart(edits) {
        apply(&mut object, edit.trim()).map_err(|why| format!("{edit}: {why}"))?;
    }
    Ok(object)
}

fn apply(object: &mut Value, edit: &str) -> Result<(), String> {
    let (path, json) = edit.split_once('=').ok_or("no value")?;
    let value: Value = serde_json::from_str(json).map_err(|e| e.to_string())?;
    let mut steps: Vec<&str> = path.split('.').collect();
    let last = steps.pop().ok_or("no path")?;
    let mut parent = object;
    for step in steps {
        parent = match parent {
            Value::Array(items) => items.get_mut(index(step)?).ok_or("no such item")?,
            Value::Object(_) | Value::Null => &mut parent[step],
            _ => return Err(format!("{step} is below a scalar")),
        };
    }
    match parent {
        Value::Array(items) if last == "+" => items.push(value),
        Value::Array(items) => *items.get_mut(index(last)?).ok_or("no such item")? = value,
        Value::Object(members) if value.is_null() => drop(members.remove(last)),
        Value::Object(_) | Value::Null => parent[last] = value,
        _ => return Err(format!("{last} is below a scalar")),
    }
    Ok(())
}

fn index(step: &str) -> Result<usize, String> {
    step.parse().map_err(|_| format!("{step} is no index"))
}

/// Edits, where semicolons inside of texts part nothing.
fn apart(edits: &str) -> Vec<&str> {
    let (mut parts, mut from, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, c) in edits.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            ';' if !quoted => {
                parts.push(&edits[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&edits[from..]);
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_items_and_absent_parents_are_reached() {
        let object = json!({ "a": { "b": [1, 2] }, "c": "x" });
        for (edits, want) in [
            ("c=null", json!({ "a": { "b": [1, 2] } })),
            ("a.b.+=3;c=\"y;z\"", json!({ "a": { "b": [1, 2, 3] }, "c": "y;z" })),
            ("a.b.0={}", json!({ "a": { "b": [{}, 2] }, "c": "x" })),
            ("d.e=5", json!({ "a": { "b": [1, 2] }, "c": "x", "d": { "e": 5 } })),
        ] {
            assert_eq!(edited(&object, edits), Ok(want), "{edits}");
        }
    }

    #[test]
    fn a_case_that_cannot_be_is_an_error() {
        let object = json!({ "a": [1], "c": "x" });
        for edits in ["a", "a=", "a.5=1", "a.x=1", "c.d=1", "c.d.e=1"] {
            assert!(edited(&object, edits).is_err(), "{edits}");
        }
    }
}
