//! What several plugins do: a member filled in, an item appended, the class that is the default.

use serde_json::Value;

use crate::plugin::{ReadFrom, Tools};
use forebay_strategy::value::{Members, child_made, child_or_empty, set};

/// Key of the taint of a node that is not ready.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub fn has_annotation(object: &Members, name: &str) -> bool {
    child_or_empty(child_or_empty(object, "metadata"), "annotations").contains_key(name)
}

/// Sets `name` of the object's spec to `class` where it says nothing.
pub fn fill_in(object: &mut Members, name: &str, class: Option<String>) {
    let spec = child_made(object, "spec");
    if let Some(class) = class.filter(|_| !spec.contains_key(name)) {
        set(spec, name, Some(class.into()));
    }
}

pub fn push(object: &mut Members, name: &str, item: Value) {
    match object.get_mut(name) {
        Some(Value::Array(items)) => items.push(item),
        _ => set(object, name, Some(Value::Array(vec![item]))),
    }
}

pub fn name_of(class: &Value) -> Option<&str> {
    class["metadata"]["name"].as_str()
}

/// The newest class that one of the annotations marks as the default; of equally new ones the first by name.
pub fn default_class(tools: &Tools<'_>, from: ReadFrom, marks: &[&str]) -> Option<String> {
    let mut marked: Vec<Value> = tools.marked_classes(from, "/is-default-class\":\"true\"");
    // Few: the annotations that mark a default.
    marked.retain(|class| marks.iter().any(|mark| class["metadata"]["annotations"][*mark] == "true"));
    let newest = marked
        .iter()
        .filter_map(|class| Some((class["metadata"]["creationTimestamp"].as_str()?, name_of(class)?)));
    // RFC 3339 in UTC sorts as time does.
    newest.min_by(|a, b| b.0.cmp(a.0).then(a.1.cmp(b.1))).map(|(_, name)| name.to_string())
}
