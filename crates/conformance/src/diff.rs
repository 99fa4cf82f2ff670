//! Where two JSON documents differ, as lines that an allowed file can name.
//!
//! In: ours and theirs. Out: `path: ours X, theirs Y`, where an item of a list is called by what identifies
//! it, not by its place. Never: members that are prose.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

/// Members that say who an item of a list is, the first that all items have.
const IDENTITIES: [&str; 8] = [
    "/name",
    "/metadata/name",
    "/resource",
    "/subresource",
    "/groupVersion",
    "/version",
    "/kind",
    "/clientCIDR",
];
/// Bytes of a value that a line shows.
const SHOWN_BYTES_MAX: usize = 300;

/// The differences below `path`, in order.
pub fn lines(path: &str, ours: &Value, theirs: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare(path, ours, theirs, &mut lines);
    lines
}

fn compare(path: &str, ours: &Value, theirs: &Value, lines: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let names: std::collections::BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
            for name in names.into_iter().filter(|name| *name != "description") {
                pair(&format!("{path}.{name}"), ours.get(name), theirs.get(name), lines);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => match identity(ours, theirs) {
            Some(identity) => {
                let (by_name, their_names) = (named(ours, identity), named(theirs, identity));
                let order =
                    |items: &[(String, &Value)]| items.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
                let (one, other) = (order(&by_name), order(&their_names));
                let (ours, theirs): (BTreeMap<_, _>, BTreeMap<_, _>) =
                    (by_name.into_iter().collect(), their_names.into_iter().collect());
                let names: std::collections::BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
                let same_names = ours.len() == theirs.len() && names.len() == ours.len();
                if same_names && one != other {
                    lines.push(format!("{path}: order: ours {one:?}, theirs {other:?}"));
                }
                for name in names {
                    let (one, other) = (ours.get(name).copied(), theirs.get(name).copied());
                    pair(&format!("{path}[{name}]"), one, other, lines);
                }
            }
            None if ours.len() == theirs.len() => {
                for (at, (one, other)) in ours.iter().zip(theirs).enumerate() {
                    compare(&format!("{path}[{at}]"), one, other, lines);
                }
            }
            None => different(
                path,
                &shown(Some(&ours.clone().into())),
                &shown(Some(&theirs.clone().into())),
                lines,
            ),
        },
        (ours, theirs) if ours == theirs => {}
        (ours, theirs) => different(path, &shown(Some(ours)), &shown(Some(theirs)), lines),
    }
}

fn pair(path: &str, ours: Option<&Value>, theirs: Option<&Value>, lines: &mut Vec<String>) {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => compare(path, ours, theirs, lines),
        (ours, theirs) => different(path, &shown(ours), &shown(theirs), lines),
    }
}

fn different(path: &str, ours: &str, theirs: &str, lines: &mut Vec<String>) {
    lines.push(format!("{path}: ours {ours}, theirs {theirs}"));
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let mut text = value.to_string();
    if text.len() > SHOWN_BYTES_MAX {
        let end = (0..=SHOWN_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        let _ = write!(text, "…");
    }
    text
}

/// The member by which the items of both lists can be told apart.
fn identity(ours: &[Value], theirs: &[Value]) -> Option<&'static str> {
    if ours.is_empty() && theirs.is_empty() {
        return None;
    }
    IDENTITIES.into_iter().find(|identity| {
        [ours, theirs].iter().all(|items| {
            let mut names: Vec<&str> =
                items.iter().filter_map(|item| item.pointer(identity).and_then(Value::as_str)).collect();
            let all = names.len() == items.len();
            names.sort_unstable();
            names.dedup();
            all && names.len() == items.len()
        })
    })
}

fn named<'a>(items: &'a [Value], identity: &str) -> Vec<(String, &'a Value)> {
    items
        .iter()
        .map(|item| (item.pointer(identity).and_then(Value::as_str).unwrap_or_default().to_owned(), item))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn items_are_compared_by_name_and_prose_is_not() {
        let ours = json!({ "r": [{ "name": "a", "x": 1 }, { "name": "b" }], "description": "mine" });
        let theirs =
            json!({ "r": [{ "name": "b" }, { "name": "a", "x": 2 }], "description": "theirs", "y": [] });
        assert_eq!(
            lines("/d", &ours, &theirs),
            [
                r#"/d.r: order: ours ["a", "b"], theirs ["b", "a"]"#,
                "/d.r[a].x: ours 1, theirs 2",
                "/d.y: ours nothing, theirs []",
            ]
        );
        assert!(lines("/d", &ours, &ours).is_empty());
    }

    #[test]
    fn lists_without_names_are_compared_by_place_and_length() {
        assert_eq!(lines("", &json!([1, 2]), &json!([1, 3])), ["[1]: ours 2, theirs 3"]);
        assert_eq!(lines("", &json!([1]), &json!([])), [": ours [1], theirs []"]);
    }
}
