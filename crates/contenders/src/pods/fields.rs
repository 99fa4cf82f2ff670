//! Which fields a manager owns, as `managedFields` lists them: two fifths of a pod in a real cluster.
//!
//! In: the part of an object that a manager wrote. Out: text of the same length and the same repetitions as
//! `fieldsV1`, with single quotes so that it can stand in an annotation. Never: values.

use serde_json::Value;

/// What tells the items of a list apart, in the order of preference.
const LIST_KEYS: [&str; 6] = ["containerPort", "name", "type", "uid", "ip", "mountPath"];

/// The fields of `written`.
pub fn fields(written: &Value) -> String {
    let mut text = String::new();
    write(written, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    text.push('{');
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (format!("'f:{name}'"), value));
            write_all(members, text);
        }
        Value::Array(items) => {
            let keyed = items.iter().filter_map(|item| Some((list_key(item)?, item)));
            write_all(keyed, text);
        }
        _ => {}
    }
    text.push('}');
}

fn write_all<'a>(members: impl Iterator<Item = (String, &'a Value)>, text: &mut String) {
    for (at, (name, value)) in members.enumerate() {
        text.push_str(if at > 0 { "," } else { "" });
        text.push_str(&name);
        text.push(':');
        write(value, text);
    }
}

fn list_key(item: &Value) -> Option<String> {
    LIST_KEYS.iter().find_map(|key| {
        let value = item.get(key)?.to_string().replace('"', "'");
        Some(format!("'k:{{'{key}':{value}}}'"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_listed_by_member_and_lists_by_what_tells_items_apart() {
        let written =
            json!({"a": 1, "ports": [{"containerPort": 80, "name": "x"}], "args": ["-v"], "b": {"c": true}});
        assert_eq!(
            fields(&written),
            "{'f:a':{},'f:args':{},'f:b':{'f:c':{}},'f:ports':{'k:{'containerPort':80}':{'f:containerPort':{},'f:name':{}}}}"
        );
    }
}
