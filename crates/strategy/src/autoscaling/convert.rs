//! HorizontalPodAutoscalers of v1 and v2, made of one another.
//!
//! In: an object of the one version in canonical form. Out: the same as the other has it; what v1 has no
//! fields for is in annotations there. Never: fails: an annotation that cannot be read is as good as none.
//!
//! Source: kubernetes v1.36.3 `apis/autoscaling/v1/conversion.go`.

use forebay_apimachinery::json::to_go_text;
use forebay_apimachinery::quantity;
use forebay_schema::builtin::{TypeId, codec, table};
use serde_json::{Map, Value, json};

use super::defaults::{CPU_UTILIZATION, cpu};
use super::drop_round_trip_annotations;
use crate::internal;
use crate::value::{Members, child, child_made, child_mut, child_or_empty, int, set, text};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// A member of a source: its name in v1, its path in v2, and what v1 has where it is absent. In the order of
/// v1.
type Field = (&'static str, &'static str, Option<&'static str>);
const ZERO: Option<&str> = Some("0");
const EMPTY: Option<&str> = Some("");
type Sources = [(&'static str, &'static [Field]); 5];

const SPEC_SOURCES: Sources = [
    (
        "object",
        &[
            ("target", "describedObject", None),
            ("metricName", "metric.name", EMPTY),
            ("targetValue", "target.value", ZERO),
            ("selector", "metric.selector", None),
            ("averageValue", "target.averageValue", None),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "metric.name", EMPTY),
            ("targetAverageValue", "target.averageValue", ZERO),
            ("selector", "metric.selector", None),
        ],
    ),
    (
        "resource",
        &[
            ("name", "name", EMPTY),
            ("targetAverageUtilization", "target.averageUtilization", None),
            ("targetAverageValue", "target.averageValue", None),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name", EMPTY),
            ("targetAverageUtilization", "target.averageUtilization", None),
            ("targetAverageValue", "target.averageValue", None),
            ("container", "container", EMPTY),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "metric.name", EMPTY),
            ("metricSelector", "metric.selector", None),
            ("targetValue", "target.value", None),
            ("targetAverageValue", "target.averageValue", None),
        ],
    ),
];

const STATUS_SOURCES: Sources = [
    (
        "object",
        &[
            ("target", "describedObject", None),
            ("metricName", "metric.name", EMPTY),
            ("currentValue", "current.value", ZERO),
            ("selector", "metric.selector", None),
            ("averageValue", "current.averageValue", None),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "metric.name", EMPTY),
            ("currentAverageValue", "current.averageValue", ZERO),
            ("selector", "metric.selector", None),
        ],
    ),
    (
        "resource",
        &[
            ("name", "name", EMPTY),
            ("currentAverageUtilization", "current.averageUtilization", None),
            ("currentAverageValue", "current.averageValue", ZERO),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name", EMPTY),
            ("currentAverageUtilization", "current.averageUtilization", None),
            ("currentAverageValue", "current.averageValue", ZERO),
            ("container", "container", EMPTY),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "metric.name", EMPTY),
            ("metricSelector", "metric.selector", None),
            ("currentValue", "current.value", ZERO),
            ("currentAverageValue", "current.averageValue", None),
        ],
    ),
];

/// Makes a v1 object of a v2 one.
pub fn to_v1(value: &mut Value) {
    let Some(autoscaler) = value.as_object_mut() else { return };
    drop_round_trip_annotations(autoscaler);
    set(autoscaler, "apiVersion", Some("autoscaling/v1".into()));
    let mut annotations: Vec<(&str, String)> = Vec::new();

    let spec = child_made(autoscaler, "spec");
    if let Some(Value::Array(metrics)) = spec.remove("metrics") {
        let percent = metrics.iter().find_map(cpu_percent);
        set(spec, "targetCPUUtilizationPercentage", percent.map(Value::from));
        let others = metrics.iter().filter(|metric| cpu_percent(metric).is_none());
        let others = others.filter_map(Value::as_object).map(|metric| source_to_v1(metric, &SPEC_SOURCES));
        annotations.extend(list_of(others).map(|text| (METRICS, text)));
    }
    if let Some(Value::Object(behavior)) = spec.remove("behavior") {
        annotations.push((BEHAVIOR, internal::text("HorizontalPodAutoscalerBehavior", &behavior)));
    }

    if let Some(status) = child_mut(autoscaler, "status") {
        status_to_v1(status, &mut annotations);
    }
    if !annotations.is_empty() {
        let kept = child_made(child_made(autoscaler, "metadata"), "annotations");
        kept.extend(annotations.into_iter().map(|(name, text)| (name.to_string(), text.into())));
    }
}

fn status_to_v1(status: &mut Members, annotations: &mut Vec<(&str, String)>) {
    if let Some(Value::Array(metrics)) = status.remove("currentMetrics") {
        let current = metrics.iter().filter_map(Value::as_object);
        let mut percent = current.clone().filter(|metric| is_cpu(metric)).filter_map(|metric| {
            int(child_or_empty(child_or_empty(metric, "resource"), "current"), "averageUtilization")
        });
        set(status, "currentCPUUtilizationPercentage", percent.next_back().map(Value::from));
        let all = current.map(|metric| source_to_v1(metric, &STATUS_SOURCES));
        annotations.extend(list_of(all).map(|text| (CURRENT_METRICS, text)));
    }
    if let Some(Value::Array(conditions)) = status.remove("conditions") {
        let ty = table().type_named("autoscaling/v2", "HorizontalPodAutoscalerCondition");
        let all = conditions.iter().map(|condition| written(ty, condition));
        annotations.extend(list_of(all).map(|text| (CONDITIONS, text)));
    }
}

/// Makes a v2 object of a v1 one.
pub fn to_v2(value: &mut Value) {
    let Some(autoscaler) = value.as_object_mut() else { return };
    set(autoscaler, "apiVersion", Some("autoscaling/v2".into()));
    let annotations = child_or_empty(child_or_empty(autoscaler, "metadata"), "annotations");
    let metrics = decoded(annotations, METRICS, "MetricSpec", spec_source_to_v2);
    let current =
        decoded(annotations, CURRENT_METRICS, "MetricStatus", |metric| source_to_v2(metric, &STATUS_SOURCES));
    let same = |condition: &Members| Value::Object(condition.clone());
    let conditions = decoded(annotations, CONDITIONS, "HorizontalPodAutoscalerCondition", same);
    let behavior = behavior_of(text(annotations, BEHAVIOR));
    drop_round_trip_annotations(autoscaler);

    let spec = child_made(autoscaler, "spec");
    let mut metrics = metrics.unwrap_or_default();
    metrics
        .extend(spec.remove("targetCPUUtilizationPercentage").and_then(|percent| percent.as_i64()).map(cpu));
    if metrics.is_empty() {
        metrics.push(cpu(CPU_UTILIZATION));
    }
    spec.insert("metrics".into(), Value::Array(metrics));
    if let Some(behavior) = behavior {
        spec.insert("behavior".into(), behavior);
    }

    if autoscaler.contains_key("status") || current.is_some() || conditions.is_some() {
        let status = child_made(autoscaler, "status");
        let percent = status.remove("currentCPUUtilizationPercentage").and_then(|percent| percent.as_i64());
        let current = current.unwrap_or_else(|| percent.map(current_cpu).into_iter().collect());
        set_list(status, "currentMetrics", current);
        set_list(status, "conditions", conditions.unwrap_or_default());
    }
}

fn set_list(object: &mut Members, name: &str, items: Vec<Value>) {
    set(object, name, (!items.is_empty()).then_some(Value::Array(items)));
}

fn is_cpu(metric: &Members) -> bool {
    text(metric, "type") == "Resource" && text(child_or_empty(metric, "resource"), "name") == "cpu"
}

/// The percentage of CPU that a metric aims at, which v1 has a field for.
fn cpu_percent(metric: &Value) -> Option<i64> {
    let metric = metric.as_object().filter(|metric| is_cpu(metric))?;
    int(child_or_empty(child_or_empty(metric, "resource"), "target"), "averageUtilization")
}

fn current_cpu(percent: i64) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": percent}}})
}

/// A metric as Go writes v1's.
fn source_to_v1(metric: &Members, sources: &Sources) -> String {
    let mut out = format!("{{\"type\":{}", to_go_text(&text(metric, "type").into()));
    for (name, fields) in sources {
        let Some(source) = child(metric, name) else { continue };
        let member = |(v1, v2, absent): &Field| {
            let value = at(source, v2).cloned().or_else(|| absent.map(Value::from))?;
            let ty = match *v1 {
                "target" => table().type_named("autoscaling/v1", "CrossVersionObjectReference"),
                "selector" | "metricSelector" => table().type_named("meta/v1", "LabelSelector"),
                _ => None,
            };
            Some(format!("\"{v1}\":{}", written(ty, &value)))
        };
        let members: Vec<String> = fields.iter().filter_map(member).collect();
        out.push_str(&format!(",\"{name}\":{{{}}}", members.join(",")));
    }
    out.push('}');
    out
}

/// A value as Go writes it: in the order of its type, where it is a struct.
fn written(ty: Option<TypeId>, value: &Value) -> String {
    let mut out = Vec::new();
    match ty.map(|ty| codec::write_json(ty, value, &mut out)) {
        Some(Ok(())) => String::from_utf8(out).unwrap_or_default(),
        _ => to_go_text(value),
    }
}

/// A list of what is JSON already; `None` for an empty one.
fn list_of(items: impl Iterator<Item = String>) -> Option<String> {
    let items: Vec<String> = items.collect();
    (!items.is_empty()).then(|| format!("[{}]", items.join(",")))
}

fn source_to_v2(metric: &Members, sources: &Sources) -> Value {
    let mut converted = Map::new();
    set(&mut converted, "type", metric.get("type").cloned());
    for (name, fields) in sources {
        let Some(source) = child(metric, name) else { continue };
        let made = child_made(&mut converted, name);
        for (v1, v2, absent) in *fields {
            let zero = || absent.filter(|absent| !absent.is_empty()).map(Value::from);
            if let Some(value) = source.get(*v1).cloned().or_else(zero) {
                put_at(made, v2, value);
            }
        }
    }
    Value::Object(converted)
}

/// As [`source_to_v2`], with the type of target that v1 does not name.
fn spec_source_to_v2(metric: &Members) -> Value {
    let mut converted = source_to_v2(metric, &SPEC_SOURCES);
    for (name, _) in SPEC_SOURCES {
        let Some(source) = converted.get_mut(name).and_then(Value::as_object_mut) else { continue };
        let target = child_made(source, "target");
        let has = |name: &str| target.contains_key(name);
        let kind = match name {
            "object" if !has("averageValue") => "Value",
            "external" if has("value") => "Value",
            "resource" | "containerResource" if has("averageUtilization") => "Utilization",
            _ => "AverageValue",
        };
        // v1 cannot leave the value out, so a zero beside an average means none.
        if name == "object" && kind == "AverageValue" && target.get("value").map(quantity::of) == Some(0) {
            target.remove("value");
        }
        set(target, "type", Some(kind.into()));
    }
    converted
}

fn at<'o>(object: &'o Members, path: &str) -> Option<&'o Value> {
    match path.split_once('.') {
        Some((head, rest)) => child(object, head)?.get(rest),
        None => object.get(path),
    }
}

fn put_at(object: &mut Members, path: &str, value: Value) {
    match path.split_once('.') {
        Some((head, rest)) => child_made(object, head).insert(rest.to_string(), value),
        None => object.insert(path.to_string(), value),
    };
}

/// The list in an annotation, each item made one of the type `name` of v2, if all of them can be.
fn decoded(
    annotations: &Members,
    annotation: &str,
    name: &str,
    convert: impl Fn(&Members) -> Value,
) -> Option<Vec<Value>> {
    let ty = table().type_named("autoscaling/v2", name)?;
    let Value::Array(items) = serde_json::from_str(text(annotations, annotation)).ok()? else { return None };
    let item = |item: &Value| {
        let mut item = convert(item.as_object()?);
        codec::normalize(ty, &mut item).ok().map(|_| item)
    };
    items.iter().map(item).collect()
}

/// The behavior in an annotation, whose members have the names of Go's internal type, in any case.
fn behavior_of(text: &str) -> Option<Value> {
    let ty = table().type_named("autoscaling/v2", "HorizontalPodAutoscalerBehavior")?;
    let mut behavior = serde_json::from_str(text).ok().filter(Value::is_object)?;
    rename(&mut behavior, 0);
    codec::normalize(ty, &mut behavior).ok()?;
    behavior.as_object().is_some_and(|members| !members.is_empty()).then_some(behavior)
}

/// Gives members the names that v2 has for them.
fn rename(value: &mut Value, depth: usize) {
    const NAMES: [&str; 9] = [
        "scaleUp",
        "scaleDown",
        "stabilizationWindowSeconds",
        "selectPolicy",
        "policies",
        "tolerance",
        "type",
        "value",
        "periodSeconds",
    ];
    const DEPTH_MAX: usize = 4;
    if depth > DEPTH_MAX {
        return;
    }
    match value {
        Value::Object(members) => {
            let renamed = std::mem::take(members).into_iter().map(|(name, mut value)| {
                rename(&mut value, depth + 1);
                let known = NAMES.iter().find(|known| known.eq_ignore_ascii_case(&name));
                (known.map_or(name, ToString::to_string), value)
            });
            *members = renamed.collect();
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, depth + 1)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
