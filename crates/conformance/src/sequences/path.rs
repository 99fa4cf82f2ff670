//! Paths to fields, as those who apply think of them: members, items by their keys, elements of a set.
//!
//! In: `spec.ports[port=80,protocol="TCP"].name`, `metadata.finalizers[]`, `data["a.b"]`. Out: an object
//! with the field set or taken away, and what a patch of either sort says for that. Never: a path through a
//! scalar; there nothing is set.

use serde_json::{Map, Value, json};

/// One step of a path.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Member(String),
    /// The item of a list that has these members.
    Item(Map<String, Value>),
    /// The element of a set; the value says which.
    Element,
}

/// Reads a path.
///
/// # Errors
/// What is wrong with the text.
pub(super) fn parse(text: &str) -> Result<Vec<Part>, String> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let Some(inner) = rest.strip_prefix('[') else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            parts.push(Part::Member(rest[..end].to_owned()));
            rest = &rest[end..];
            continue;
        };
        let (keys, after) = inner.split_once(']').ok_or_else(|| format!("{text}: no ]"))?;
        rest = after;
        parts.push(match keys {
            "" => Part::Element,
            quoted if quoted.starts_with('"') => {
                Part::Member(serde_json::from_str(quoted).map_err(|e| format!("{text}: {e}"))?)
            }
            keys => Part::Item(keys.split(',').map(key).collect::<Option<_>>().ok_or(text)?),
        });
    }
    Ok(parts)
}

fn key(text: &str) -> Option<(String, Value)> {
    let (name, value) = text.split_once('=')?;
    Some((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

/// Sets `value` at `path`, and makes what is missing above it.
pub(super) fn set(object: &mut Value, path: &[Part], value: &Value) {
    let Some((first, rest)) = path.split_first() else {
        match (object, value) {
            (Value::Object(members), Value::Object(more)) if !members.is_empty() => {
                members.extend(more.clone());
            }
            (object, value) => *object = value.clone(),
        }
        return;
    };
    match first {
        Part::Member(name) => {
            if object.is_null() {
                *object = json!({});
            }
            let Some(members) = object.as_object_mut() else { return };
            if rest.is_empty() {
                members.insert(name.clone(), value.clone());
            } else {
                set(members.entry(name.clone()).or_insert(Value::Null), rest, value);
            }
        }
        Part::Item(keys) => {
            let Some(items) = list(object) else { return };
            let at = items.iter().position(|item| has(item, keys)).unwrap_or_else(|| {
                items.push(keys.clone().into());
                items.len() - 1
            });
            set(&mut items[at], rest, value);
        }
        Part::Element => {
            let Some(items) = list(object) else { return };
            if !items.contains(value) {
                items.push(value.clone());
            }
        }
    }
}

/// Takes away what is at `path`; the element `value` of a set. What is not there stays so.
pub(super) fn remove(object: &mut Value, path: &[Part], value: &Value) {
    let Some((first, rest)) = path.split_first() else { return };
    match first {
        Part::Member(name) => {
            let Some(members) = object.as_object_mut() else { return };
            if rest.is_empty() {
                members.remove(name);
            } else if let Some(member) = members.get_mut(name) {
                remove(member, rest, value);
            }
        }
        Part::Item(keys) => {
            let Some(items) = object.as_array_mut() else { return };
            let Some(at) = items.iter().position(|item| has(item, keys)) else { return };
            if rest.is_empty() {
                items.remove(at);
            } else {
                remove(&mut items[at], rest, value);
            }
        }
        Part::Element => {
            if let Some(items) = object.as_array_mut() {
                items.retain(|item| item != value);
            }
        }
    }
}

/// Adds to a merge patch what makes the field of `current` at `path` that of `edited`: a list goes whole.
pub(super) fn merge_patch(patch: &mut Value, path: &[Part], edited: &Value) {
    let is_member = |part: &&Part| matches!(part, Part::Member(_));
    let names: Vec<Part> = path.iter().take_while(is_member).cloned().collect();
    set(patch, &names, at(edited, &names).unwrap_or(&Value::Null));
}

/// Adds to a strategic merge patch what takes away the field at `path`.
pub(super) fn strategic_removal(patch: &mut Value, path: &[Part], value: &Value) {
    let Some((last, above)) = path.split_last() else { return };
    match last {
        Part::Member(_) => set(patch, path, &Value::Null),
        Part::Item(_) => set(patch, path, &json!({ "$patch": "delete" })),
        Part::Element => {
            let Some((Part::Member(list), above)) = above.split_last() else { return };
            let mut path = above.to_vec();
            path.extend([Part::Member(format!("$deleteFromPrimitiveList/{list}")), Part::Element]);
            set(patch, &path, value);
        }
    }
}

/// The operation of a JSON patch that makes the field of `current` at `path` that of `edited`, with its
/// pointer.
pub(super) fn json_operation(current: &Value, edited: &Value, path: &[Part], value: &Value) -> Value {
    let (mut pointer, mut now, mut then) = (String::new(), current, edited);
    for (depth, part) in path.iter().enumerate() {
        let is_last = depth + 1 == path.len();
        let step = match (part, now) {
            (Part::Member(name), _) => name.replace('~', "~0").replace('/', "~1"),
            (Part::Item(keys), Value::Array(items)) => {
                items.iter().position(|item| has(item, keys)).map_or("-".to_owned(), |at| at.to_string())
            }
            (Part::Element, Value::Array(items)) => {
                items.iter().position(|item| item == value).map_or("-".to_owned(), |at| at.to_string())
            }
            _ => "-".to_owned(),
        };
        let place = [part.clone()];
        let is_gone = child(then, part, value).is_none();
        pointer = format!("{pointer}/{step}");
        match (at_value(now, &place, value), is_gone) {
            (_, true) => return json!({ "op": "remove", "path": pointer }),
            (Some(_), false) if is_last => {
                let to = child(then, part, value);
                return json!({ "op": "replace", "path": pointer, "value": to });
            }
            (Some(below), false) => {
                now = below;
                then = child(then, part, value).unwrap_or(&Value::Null);
            }
            (None, false) => {
                let to = child(then, part, value);
                return json!({ "op": "add", "path": pointer, "value": to });
            }
        }
    }
    json!({ "op": "test", "path": "", "value": null })
}

fn at_value<'a>(object: &'a Value, path: &[Part], value: &Value) -> Option<&'a Value> {
    path.iter().try_fold(object, |object, part| child(object, part, value))
}

fn at<'a>(object: &'a Value, path: &[Part]) -> Option<&'a Value> {
    at_value(object, path, &Value::Null)
}

fn child<'a>(object: &'a Value, part: &Part, value: &Value) -> Option<&'a Value> {
    match part {
        Part::Member(name) => object.get(name),
        Part::Item(keys) => object.as_array()?.iter().find(|item| has(item, keys)),
        Part::Element => object.as_array()?.iter().find(|item| *item == value),
    }
}

fn list(object: &mut Value) -> Option<&mut Vec<Value>> {
    if object.is_null() {
        *object = json!([]);
    }
    object.as_array_mut()
}

fn has(item: &Value, keys: &Map<String, Value>) -> bool {
    keys.iter().all(|(name, value)| item.get(name) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Value {
        json!({ "s": { "c": [{ "name": "a", "x": 1 }], "f": ["p"] } })
    }

    fn edited(path: &str, value: &Value) -> Value {
        let mut object = object();
        set(&mut object, &parse(path).expect("a path"), value);
        object
    }

    #[test]
    fn a_field_is_found_by_keys_and_made_where_it_is_missing() {
        assert_eq!(edited("s.c[name=a].x", &json!(2))["s"]["c"], json!([{ "name": "a", "x": 2 }]));
        assert_eq!(edited("s.c[name=b,n=1].y.z", &json!(2))["s"]["c"][1]["y"], json!({ "z": 2 }));
        assert_eq!(edited("s.f[]", &json!("q"))["s"]["f"], json!(["p", "q"]));
        assert_eq!(edited("t[\"a.b\"]", &json!(1))["t"], json!({ "a.b": 1 }));
        let mut object = object();
        remove(&mut object, &parse("s.c[name=a]").expect("a path"), &Value::Null);
        remove(&mut object, &parse("s.f[]").expect("a path"), &json!("p"));
        assert_eq!(object, json!({ "s": { "c": [], "f": [] } }));
    }

    #[test]
    fn patches_of_each_sort_say_the_same_edit() {
        let (path, value) = (parse("s.c[name=b].x").expect("a path"), json!(3));
        let to = edited("s.c[name=b].x", &value);
        assert_eq!(
            json_operation(&object(), &to, &path, &value),
            json!({ "op": "add", "path": "/s/c/-", "value": { "name": "b", "x": 3 } })
        );
        let mut patch = json!({});
        merge_patch(&mut patch, &path, &to);
        assert_eq!(patch, json!({ "s": { "c": [{ "name": "a", "x": 1 }, { "name": "b", "x": 3 }] } }));
        let mut patch = json!({});
        strategic_removal(&mut patch, &parse("s.c[name=a]").expect("a path"), &Value::Null);
        strategic_removal(&mut patch, &parse("s.f[]").expect("a path"), &json!("p"));
        let list = json!([{ "name": "a", "$patch": "delete" }]);
        assert_eq!(patch, json!({ "s": { "c": list, "$deleteFromPrimitiveList/f": ["p"] } }));
    }
}
