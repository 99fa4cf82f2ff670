//! Label selectors inside objects: whether they are well made, and how they are shown.
//!
//! In: a `metav1.LabelSelector`, or a map of labels that select. Out: causes; its text in a message, with the
//! members in the order of upstream's struct. Never: selects a list.
//!
//! Source: apimachinery v0.36.3 `apis/meta/v1/validation`.

use forebay_apimachinery::json::to_go_text;
use forebay_apimachinery::selector::LabelSelector;
use serde_json::Value;

use super::field::{BadValue, Causes, Path};
use super::meta::{label_key, label_value, labels};
use super::value::{Members, child, child_or_empty, objects, text, texts};

/// What is wrong with a selector.
pub fn validate(selector: &Members, at: &Path<'_>, causes: &mut Causes) {
    labels(child_or_empty(selector, "matchLabels"), &at.child("matchLabels"), causes);
    for (index, expression) in objects(selector, "matchExpressions").enumerate() {
        let at = at.child("matchExpressions");
        let at = at.index(index);
        requirement(expression, &at, causes);
        for (index, value) in texts(expression, "values").enumerate() {
            label_value(value, &at.child("values").index(index), causes);
        }
    }
}

/// As [`validate`], with the values of expressions as they are: older servers took anything.
pub fn validate_but_values(selector: &Members, at: &Path<'_>, causes: &mut Causes) {
    labels(child_or_empty(selector, "matchLabels"), &at.child("matchLabels"), causes);
    for (index, expression) in objects(selector, "matchExpressions").enumerate() {
        requirement(expression, &at.child("matchExpressions").index(index), causes);
    }
}

fn requirement(expression: &Members, at: &Path<'_>, causes: &mut Causes) {
    let values = texts(expression, "values").count();
    match text(expression, "operator") {
        "In" | "NotIn" if values == 0 => {
            causes.required(&at.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if values > 0 => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.forbidden(&at.child("values"), detail);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => causes.invalid(&at.child("operator"), other, "not a valid selector operator"),
    }
    label_key(text(expression, "key"), &at.child("key"), causes);
}

/// Whether a selector selects everything because it says nothing.
pub fn is_empty(selector: &Members) -> bool {
    child_or_empty(selector, "matchLabels").is_empty()
        && objects(selector, "matchExpressions").next().is_none()
}

/// A selector that an object holds under `name`, ready to match; none matches nothing.
pub fn of(object: &Members, name: &str) -> Result<LabelSelector, String> {
    LabelSelector::from_value(object.get(name).unwrap_or(&Value::Null))
}

/// Whether the labels of a template are selected.
pub fn selects(selector: &LabelSelector, labels: Option<&Members>) -> bool {
    selector.matches(|key| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str))
}

/// A selector as Go's encoder shows it.
pub fn shown(selector: Option<&Value>) -> BadValue<'static> {
    let Some(selector) = selector.and_then(Value::as_object) else { return BadValue::Nil };
    let mut members = Vec::new();
    if let Some(labels) = child(selector, "matchLabels").filter(|labels| !labels.is_empty()) {
        members.push(format!("\"matchLabels\":{}", to_go_text(&Value::Object(labels.clone()))));
    }
    let expressions: Vec<String> = objects(selector, "matchExpressions").map(requirement_shown).collect();
    if !expressions.is_empty() {
        members.push(format!("\"matchExpressions\":[{}]", expressions.join(",")));
    }
    BadValue::shown(format!("{{{}}}", members.join(",")))
}

fn requirement_shown(expression: &Members) -> String {
    let quoted = |name| to_go_text(&Value::from(text(expression, name)));
    let values = match expression.get("values") {
        Some(values) => format!(",\"values\":{}", to_go_text(values)),
        None => String::new(),
    };
    format!("{{\"key\":{},\"operator\":{}{values}}}", quoted("key"), quoted("operator"))
}

/// What upstream's `Selector.String` makes of a selector: `app=web,tier in (a,b)`.
pub fn to_text(selector: &LabelSelector) -> String {
    use forebay_apimachinery::selector::LabelOperator::*;
    let requirement = |requirement: &forebay_apimachinery::selector::LabelRequirement| {
        let key = requirement.key();
        let values: Vec<&str> = requirement.values().collect();
        match requirement.operator() {
            Equals => format!("{key}={}", values.join(",")),
            DoubleEquals => format!("{key}=={}", values.join(",")),
            NotEquals => format!("{key}!={}", values.join(",")),
            In => format!("{key} in ({})", values.join(",")),
            NotIn => format!("{key} notin ({})", values.join(",")),
            GreaterThan => format!("{key}>{}", values.join(",")),
            LessThan => format!("{key}<{}", values.join(",")),
            Exists => key.to_string(),
            DoesNotExist => format!("!{key}"),
        }
    };
    selector.requirements().iter().map(requirement).collect::<Vec<_>>().join(",")
}
