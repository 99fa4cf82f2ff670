//! Label keys that stand for the pod's own labels in its affinity and spread.
//!
//! In: a new pod. Out: its selectors with the values of its labels merged in. Never: an update.
//!
//! Source: kubernetes v1.36.3 `registry/core/pod/strategy.go`.

use serde_json::{Value, json};

use crate::value::{Members, child, child_made, child_mut, child_or_empty, objects_mut, texts};

/// Writes `key in (value)` and `key notin (value)` for every `matchLabelKeys` and `mismatchLabelKeys`.
pub fn merge_label_keys(pod: &mut Members) {
    let spec = child_or_empty(pod, "spec");
    if !spec.contains_key("affinity") && !spec.contains_key("topologySpreadConstraints") {
        return;
    }
    let labels = child_or_empty(child_or_empty(pod, "metadata"), "labels").clone();
    let spec = child_made(pod, "spec");
    if let Some(affinity) = child_mut(spec, "affinity") {
        for name in ["podAffinity", "podAntiAffinity"] {
            let Some(terms) = child_mut(affinity, name) else { continue };
            for weighted in objects_mut(terms, "preferredDuringSchedulingIgnoredDuringExecution") {
                if let Some(term) = child_mut(weighted, "podAffinityTerm") {
                    merge(term, &labels);
                }
            }
            for term in objects_mut(terms, "requiredDuringSchedulingIgnoredDuringExecution") {
                merge(term, &labels);
            }
        }
    }
    for constraint in objects_mut(spec, "topologySpreadConstraints") {
        merge(constraint, &labels);
    }
}

fn merge(term: &mut Members, labels: &Members) {
    if child(term, "labelSelector").is_none() {
        return; // a selector that selects nothing is left alone
    }
    let mut added: Vec<Value> = Vec::new();
    for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let known = texts(term, keys).filter_map(|key| Some((key, labels.get(key)?)));
        added.extend(known.map(|(key, value)| json!({"key": key, "operator": operator, "values": [value]})));
    }
    if added.is_empty() {
        return;
    }
    let selector = child_made(term, "labelSelector");
    match selector.get_mut("matchExpressions") {
        Some(Value::Array(expressions)) => expressions.append(&mut added),
        _ => {
            selector.insert("matchExpressions".into(), Value::Array(added));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_requirements_where_there_is_a_selector() {
        let mut pod = json!({
            "metadata": {"labels": {"app": "web", "rev": "1"}},
            "spec": {
                "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": {}, "matchLabelKeys": ["app", "none"], "mismatchLabelKeys": ["rev"]},
                ]}},
                "topologySpreadConstraints": [{"matchLabelKeys": ["app"]}],
            },
        });
        merge_label_keys(pod.as_object_mut().expect("an object"));
        let terms =
            &pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        assert_eq!(
            terms[0]["labelSelector"]["matchExpressions"],
            json!([
                {"key": "app", "operator": "In", "values": ["web"]},
                {"key": "rev", "operator": "NotIn", "values": ["1"]},
            ])
        );
        assert_eq!(pod["spec"]["topologySpreadConstraints"], json!([{"matchLabelKeys": ["app"]}]));
    }
}
