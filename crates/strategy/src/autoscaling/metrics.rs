//! What an autoscaler goes by.
//!
//! In: the spec of a HorizontalPodAutoscaler of v2. Out: causes. Never: a measurement.

use forebay_apimachinery::quantity;

use super::{Groups, SPEC, reference};
use crate::core::pod::resources::{Of, container_resource};
use crate::field::{Causes, Path};
use crate::format;
use crate::value::{Members, child_or_empty, int, objects, text};

const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
/// The sources, in the order in which they are looked at, and the types that they are for.
const SOURCES: [(&str, &str); 5] = [
    ("object", "Object"),
    ("external", "External"),
    ("pods", "Pods"),
    ("resource", "Resource"),
    ("containerResource", "ContainerResource"),
];

pub fn validate(spec: &Members, groups: Groups, causes: &mut Causes) {
    let at = SPEC.child("metrics");
    for (index, of) in objects(spec, "metrics").enumerate() {
        metric(of, groups, &at.index(index), causes);
    }
    let from_outside = |metric: &Members| matches!(text(metric, "type"), "Object" | "External");
    if int(spec, "minReplicas") == Some(0) && !objects(spec, "metrics").any(from_outside) {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        causes.forbidden(&at, detail);
    }
}

fn metric(metric: &Members, groups: Groups, at: &Path<'_>, causes: &mut Causes) {
    let kind = text(metric, "type");
    if kind.is_empty() {
        causes.required(&at.child("type"), "must specify a metric source type");
    }
    if !TYPES.contains(&kind) {
        causes.not_supported(&at.child("type"), kind, &TYPES);
    }
    let present: Vec<&str> =
        SOURCES.iter().map(|(name, _)| *name).filter(|name| metric.contains_key(*name)).collect();
    if let Some(first) = present.first() {
        source(first, child_or_empty(metric, first), groups, &at.child(first), causes);
    }
    let expected = SOURCES.iter().find(|(_, known)| *known == kind).map(|(name, _)| *name);
    match expected {
        Some(name) if !metric.contains_key(name) => {
            causes.required(&at.child(name), "must populate information for the given metric source");
        }
        Some(_) => {}
        None => causes.not_supported(&at.child("type"), kind, &TYPES),
    }
    if present.len() > 1 {
        for name in present.iter().filter(|name| Some(**name) != expected) {
            causes.forbidden(&at.child(name), "must populate the given metric source only");
        }
    }
}

fn source(name: &str, source: &Members, groups: Groups, at: &Path<'_>, causes: &mut Causes) {
    match name {
        "object" => {
            let described = child_or_empty(source, "describedObject");
            reference(described, groups, &at.child("describedObject"), causes);
            identifier(source, at, causes);
        }
        "external" | "pods" => identifier(source, at, causes),
        _ => resource(name, source, at, causes),
    }
    let (target, target_at) = (child_or_empty(source, "target"), at.child("target"));
    target_rules(target, &target_at, causes);
    let has = |name: &str| target.contains_key(name);
    let average = target_at.child("averageValue");
    match name {
        "object" if !has("value") && !has("averageValue") => {
            causes.required(&average, "must set either a target value or averageValue");
        }
        "external" if !has("value") && !has("averageValue") => {
            causes.required(&average, "must set either a target value for metric or a per-pod target");
        }
        "external" if has("value") && has("averageValue") => {
            let detail = "may not set both a target value for metric and a per-pod target";
            causes.forbidden(&target_at.child("value"), detail);
        }
        "pods" if !has("averageValue") => {
            causes.required(&average, "must specify a positive target averageValue");
        }
        "resource" | "containerResource" => match (has("averageUtilization"), has("averageValue")) {
            (false, false) => {
                let detail = "must set either a target raw value or a target utilization";
                causes.required(&target_at.child("averageUtilization"), detail);
            }
            (true, true) => {
                causes.forbidden(&average, "may not set both a target raw value and a target utilization");
            }
            _ => {}
        },
        _ => {}
    }
}

fn identifier(source: &Members, at: &Path<'_>, causes: &mut Causes) {
    let at = at.child("metric");
    match text(child_or_empty(source, "metric"), "name") {
        "" => causes.required(&at.child("name"), "must specify a metric name"),
        name => causes.faults(&at.child("name"), name, format::path_segment(name, false)),
    }
}

fn resource(kind: &str, source: &Members, at: &Path<'_>, causes: &mut Causes) {
    match text(source, "name") {
        "" => causes.required(&at.child("name"), "must specify a resource name"),
        name if kind == "containerResource" => {
            container_resource(name, Of::Container, &at.child("name"), causes);
        }
        _ => {}
    }
    if kind != "containerResource" {
        return;
    }
    match text(source, "container") {
        "" => causes.required(&at.child("container"), "must specify a container"),
        name => causes.faults(&at.child("container"), name, format::dns1123_label(name)),
    }
}

fn target_rules(target: &Members, at: &Path<'_>, causes: &mut Causes) {
    let kind = text(target, "type");
    if kind.is_empty() {
        causes.required(&at.child("type"), "must specify a metric target type");
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        causes.invalid(&at.child("type"), kind, "must be either Utilization, Value, or AverageValue");
    }
    for name in ["value", "averageValue"] {
        if let Some(value) = target.get(name).filter(|value| quantity::of(value) <= 0) {
            causes.invalid(&at.child(name), value, "must be positive");
        }
    }
    if let Some(percent) = int(target, "averageUtilization").filter(|percent| *percent < 1) {
        causes.invalid(&at.child("averageUtilization"), percent, "must be greater than 0");
    }
}
