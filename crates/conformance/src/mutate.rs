//! Edits that nobody had to think of: every member of a sample made wrong, changed, and taken away.
//!
//! In: a sample. Out: rows, the same ones each time. Never: metadata and type, which `every.txt` has.

use serde_json::Value;

use crate::cases::{Case, Fixture, WriteVerb};

/// Deepest member that is looked at.
const DEPTH_MAX: usize = 12;

/// The rows for every member of `kind`'s sample.
pub fn rows(kind: &Fixture) -> Vec<Case> {
    let mut rows = Vec::new();
    let Some(members) = kind.sample.as_object() else { return rows };
    for (name, value) in members {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            below(name, value, 0, &mut rows);
        }
    }
    rows
}

fn below(path: &str, value: &Value, depth: usize, rows: &mut Vec<Case>) {
    let wrong: &[&str] = match value {
        Value::String(_) => &["7", "\"\"", "\"Not_Valid!\""],
        Value::Number(_) => &["\"x\"", "-1", "1.5"],
        Value::Bool(_) => &["\"x\""],
        Value::Array(_) => &["[]", "{}"],
        Value::Object(_) => &["[]", "\"x\""],
        Value::Null => &[],
    };
    for json in wrong {
        rows.push(row(WriteVerb::Create, format!("{path}={json}")));
    }
    let is_item = path.rsplit('.').next().is_some_and(|last| last.parse::<usize>().is_ok());
    if !is_item {
        rows.push(row(WriteVerb::Create, format!("{path}=null")));
        rows.push(row(WriteVerb::Update(None), format!("{path}=null")));
    }
    let other = match value {
        Value::String(text) => Some(format!("\"{text}x\"")),
        Value::Number(number) => number.as_i64().map(|number| (number + 1).to_string()),
        Value::Bool(flag) => Some((!flag).to_string()),
        _ => None,
    };
    if let Some(json) = other.filter(|json| serde_json::from_str::<Value>(json).is_ok()) {
        rows.push(row(WriteVerb::Update(None), format!("{path}={json}")));
    }
    if depth == DEPTH_MAX {
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, value) in members.iter().filter(|(name, _)| !name.contains(['.', '=', ';'])) {
                below(&format!("{path}.{name}"), value, depth + 1, rows);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                below(&format!("{path}.{at}"), value, depth + 1, rows);
            }
            if let Some(first) = items.first() {
                rows.push(row(WriteVerb::Create, format!("{path}.+={first}")));
            }
        }
        _ => {}
    }
}

fn row(operation: WriteVerb, edits: String) -> Case {
    Case { operation, before: String::new(), edits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cases, edit};

    #[test]
    fn every_row_can_be_applied_and_none_stands_twice() {
        for kind in cases::all().expect("cases") {
            let rows = rows(&kind);
            for (at, row) in rows.iter().enumerate() {
                edit::edited(&kind.sample, &row.edits)
                    .unwrap_or_else(|why| panic!("{}: {why}", kind.title()));
                assert!(!rows[..at].contains(row), "{}: {}", kind.title(), row.title());
            }
        }
    }
}
