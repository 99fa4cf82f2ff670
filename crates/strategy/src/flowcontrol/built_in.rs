//! The FlowSchemas and PriorityLevelConfigurations that exist from the first start on.
//!
//! In: the table that `flow` decides by, or a name. Out: the objects, complete. Never: writes them.

use std::sync::LazyLock;

use forebay_flow::Condition;
use forebay_flow::builtin::{AUTO_UPDATE, Necessity, level_objects, schema_objects};
use serde_json::Value;

use crate::value::same_member;

/// An object that is always there.
pub struct BuiltIn {
    pub kind: &'static str,
    pub resource: &'static str,
    pub name: String,
    /// Whether its spec is what it is; otherwise it is a suggestion.
    pub mandatory: bool,
    pub object: Value,
}

/// All of them, the levels first, which the schemas refer to.
pub static ALL: LazyLock<Vec<BuiltIn>> = LazyLock::new(|| {
    let levels =
        level_objects().map(|row| of("PriorityLevelConfiguration", "prioritylevelconfigurations", row));
    levels.chain(schema_objects().map(|row| of("FlowSchema", "flowschemas", row))).collect()
});

/// One of them.
pub fn built_in(kind: &str, name: &str) -> Option<&'static BuiltIn> {
    ALL.iter().find(|built_in| built_in.kind == kind && built_in.name == name)
}

/// What `current` is to be made when it is not what it should be: of one of these that is not to be kept as
/// it is, or that must be as it is, the spec is made up to date.
pub fn renewed(current: &Value, wanted: &Value) -> Option<Value> {
    let text = |value: &Value| value.as_str().unwrap_or("").to_string();
    let known = built_in(&text(&wanted["kind"]), &text(&wanted["metadata"]["name"]))?;
    let follows = current["metadata"]["annotations"][AUTO_UPDATE] == "true";
    // An administrator decides what the exempt level lends.
    let is_free = known.kind == "PriorityLevelConfiguration" && known.name == "exempt" && !follows;
    let is_kept = !(known.mandatory || follows) || is_free;
    let same = |current, wanted| same_member(wanted, current, "spec");
    if is_kept || current.as_object().zip(wanted.as_object()).is_some_and(|(a, b)| same(a, b)) {
        return None;
    }
    let mut renewed = current.clone();
    renewed["spec"] = wanted["spec"].clone();
    Some(renewed)
}

/// Says in a new FlowSchema of these that its level exists, as upstream's controller does.
pub fn settle(object: &mut Value, now: &str) {
    if object["kind"] != "FlowSchema" {
        return;
    }
    let name = |value: &Value| value.as_str().unwrap_or("").into();
    let schema = name(&object["metadata"]["name"]);
    let level = name(&object["spec"]["priorityLevelConfiguration"]["name"]);
    let found = Condition { schema, level, dangling: false }.on(object, now);
    *object = found.expect("a new one has no condition");
}

fn of(kind: &'static str, resource: &'static str, (necessity, object): (Necessity, Value)) -> BuiltIn {
    let name = object["metadata"]["name"].as_str().expect("a row has a name").to_string();
    BuiltIn { kind, resource, name, mandatory: necessity == Necessity::Mandatory, object }
}
