//! HorizontalPodAutoscalers and the Scale subresource.
//!
//! In: autoscaling/v2 values (the CPU fields of v1 are understood too, its annotations are not). Out: their
//! cells. Never: a judgement on whether the target is met.

use forebay_apimachinery::quantity::Precision;
use jiff::Timestamp;
use serde_json::Value;

use crate::lists::with_more;
use crate::member::Member;
use crate::table::{AGE, NAME, Printer, cells, integer, string};

pub(crate) static HORIZONTAL_POD_AUTOSCALER: Printer = Printer::new(
    &[
        NAME,
        string("Reference", "What is scaled."),
        string("Targets", "Metrics: current value and target."),
        string("MinPods", "Least number of pods."),
        string("MaxPods", "Greatest number of pods."),
        string("Replicas", "Pods last counted."),
        AGE,
    ],
    autoscaler_cells,
);

pub(crate) static SCALE: Printer = Printer::new(
    &[NAME.format(""), integer("Desired", "Pods wanted."), integer("Available", "Pods there are."), AGE],
    scale_cells,
);

/// Metrics shown in full.
const METRICS_SHOWN: usize = 2;

/// Percent of requested CPU that is aimed at when no metric is given.
const CPU_UTILIZATION_DEFAULT: i64 = 80;

fn autoscaler_cells(autoscaler: Member<'_>, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (autoscaler.get("spec"), autoscaler.get("status"));
    let target = spec.get("scaleTargetRef");
    cells![
        autoscaler.name(),
        format!("{}/{}", target.get("kind").text(), target.get("name").text()),
        metrics(spec, status),
        spec.get("minReplicas").int_if_set().unwrap_or(1).to_string(),
        spec.get("maxReplicas").int(),
        status.get("currentReplicas").int(),
        autoscaler.age(now),
    ]
}

/// Current values belong to targets by their place in the list, whatever their type.
fn metrics(spec: Member<'_>, status: Member<'_>) -> String {
    let metrics = spec.get("metrics").items();
    if metrics.len() == 0 {
        return cpu_utilization(spec, status);
    }
    let more = metrics.len().saturating_sub(METRICS_SHOWN);
    let mut statuses = status.get("currentMetrics").items();
    let shown = metrics.take(METRICS_SHOWN).map(|metric| self::metric(metric, statuses.next()));
    with_more(shown.collect::<Vec<_>>().join(", "), more as i64)
}

/// The only metric of autoscaling/v1, and the default one.
fn cpu_utilization(spec: Member<'_>, status: Member<'_>) -> String {
    let target = spec.get("targetCPUUtilizationPercentage").int_if_set().unwrap_or(CPU_UTILIZATION_DEFAULT);
    let current = match status.get("currentMetrics").items().next() {
        Some(metric) => metric.get("resource").get("current").get("averageUtilization"),
        None => status.get("currentCPUUtilizationPercentage"),
    };
    format!("cpu: {}/{target}%", percent(current, "<unknown>"))
}

fn metric(metric: Member<'_>, status: Option<Member<'_>>) -> String {
    let field = match metric.get("type").text() {
        "External" => "external",
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let source = metric.get(field);
    let target = source.get("target");
    // `None` without a status of the same type.
    let current = status.map(|status| status.get(field)).filter(|status| status.is_set());
    let current = current.map(|status| status.get("current"));
    let has_average = target.get("averageValue").is_set();
    match field {
        "pods" => format!("{}/{}", value(current, "averageValue"), amount(target.get("averageValue"))),
        "external" | "object" if has_average => {
            let current = current.filter(|current| current.get("averageValue").is_set());
            format!("{}/{} (avg)", value(current, "averageValue"), amount(target.get("averageValue")))
        }
        "external" | "object" => format!("{}/{}", value(current, "value"), amount(target.get("value"))),
        _ if has_average => {
            let average = amount(target.get("averageValue"));
            format!("{}: {}/{average}", source.get("name").text(), value(current, "averageValue"))
        }
        _ => {
            let current = current.map(|current| percent(current.get("averageUtilization"), "<unknown>"));
            let target = percent(target.get("averageUtilization"), "<auto>");
            let current = current.unwrap_or_else(|| "<unknown>".to_owned());
            format!("{}: {current}/{target}", source.get("name").text())
        }
    }
}

/// One of the current values of a metric, `<unknown>` without a status.
fn value(current: Option<Member<'_>>, field: &str) -> String {
    current.map_or_else(|| "<unknown>".to_owned(), |current| amount(current.get(field)))
}

/// A quantity, worded as Go words an absent one.
fn amount(quantity: Member<'_>) -> String {
    quantity.quantity(Precision::Nano).unwrap_or_else(|| "<nil>".to_owned())
}

fn percent(utilization: Member<'_>, absent: &str) -> String {
    utilization.int_if_set().map_or_else(|| absent.to_owned(), |percent| format!("{percent}%"))
}

fn scale_cells(scale: Member<'_>, now: Timestamp) -> Vec<Value> {
    let replicas = |part: &str| scale.get(part).get("replicas").int();
    cells![scale.name(), replicas("spec"), replicas("status"), scale.age(now)]
}
