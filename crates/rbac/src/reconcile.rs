//! What a start makes of a role or a binding of Kubernetes' own that is there: what is missing is added, what
//! somebody added stays, and what is not to be looked after is let be.
//!
//! In: the object that is there, and as it is to be. Out: what is to be stored in its place. Never: takes a
//! right away.
//!
//! Source: component-helpers v0.36.3 `auth/rbac/reconciliation`.

use serde_json::{Map, Value};

use crate::covers::uncovered;
use crate::role::Role;

/// Whether a start looks after an object.
const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// What becomes of an object.
#[derive(Debug, PartialEq, Eq)]
pub enum Reconciled {
    /// It is left as it is.
    Kept,
    /// This takes its place.
    Updated(Value),
    /// It is deleted and made anew: a binding to another role than it should be.
    Recreated,
}

/// What becomes of `existing`, a role or a binding that is to be as `expected`.
pub fn reconciled(existing: &Value, expected: &Value) -> Reconciled {
    if existing["metadata"]["annotations"][AUTOUPDATE] == "false" {
        return Reconciled::Kept;
    }
    let mut updated = existing.clone();
    for member in ["annotations", "labels"] {
        add_members(&mut updated["metadata"], member, &expected["metadata"][member]);
    }
    if expected["roleRef"].is_object() {
        let told = |of: &Value| ["apiGroup", "kind", "name"].map(|name| text(&of["roleRef"], name));
        if told(existing) != told(expected) {
            return Reconciled::Recreated;
        }
        append(&mut updated, "subjects", missing_subjects(existing, expected));
    } else {
        let (held, wanted) = (Role::read(existing), Role::read(expected));
        let held: Vec<_> = held.rules().iter().collect();
        append(&mut updated, "rules", uncovered(&held, wanted.rules()).to_rules());
        reconcile_aggregation(&mut updated, existing, expected);
    }
    if updated == *existing { Reconciled::Kept } else { Reconciled::Updated(updated) }
}

fn text(of: &Value, name: &str) -> String {
    of[name].as_str().unwrap_or("").to_owned()
}

/// Those of `expected` that are not there.
fn missing_subjects(existing: &Value, expected: &Value) -> Vec<Value> {
    let told = |of: &Value| ["kind", "apiGroup", "name", "namespace"].map(|name| text(of, name));
    let subjects = |of: &Value| of["subjects"].as_array().cloned().unwrap_or_default();
    let there: std::collections::HashSet<_> = subjects(existing).iter().map(told).collect();
    subjects(expected).into_iter().filter(|subject| !there.contains(&told(subject))).collect()
}

fn reconcile_aggregation(updated: &mut Value, existing: &Value, expected: &Value) {
    const RULE: &str = "aggregationRule";
    const SELECTORS: &str = "clusterRoleSelectors";
    if !expected[RULE].is_object() {
        if let Some(object) = updated.as_object_mut() {
            object.remove(RULE);
        }
        return;
    }
    let selectors = |of: &Value| of[RULE][SELECTORS].as_array().cloned().unwrap_or_default();
    let there = selectors(existing);
    // Few: one is expected.
    let missing = selectors(expected).into_iter().filter(|selector| !there.contains(selector)).collect();
    if !updated[RULE].is_object() {
        updated[RULE] = Value::Object(Map::new());
    }
    append(&mut updated[RULE], SELECTORS, missing);
}

/// Adds what `object` has not yet.
fn add_members(object: &mut Value, member: &str, added: &Value) {
    for (key, value) in added.as_object().into_iter().flatten() {
        if object[member].get(key).is_none() {
            object[member][key] = value.clone();
        }
    }
}

fn append(object: &mut Value, list: &str, added: Vec<Value>) {
    if added.is_empty() {
        return;
    }
    match &mut object[list] {
        Value::Array(there) => there.extend(added),
        other => *other = Value::Array(added),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn role(rules: Value) -> Value {
        json!({
            "kind": "ClusterRole",
            "metadata": {
                "name": "r", "uid": "u",
                "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" },
                "annotations": { AUTOUPDATE: "true" },
            },
            "rules": rules,
        })
    }

    fn get(resource: &str) -> Value {
        json!({ "verbs": ["get"], "apiGroups": [""], "resources": [resource] })
    }

    #[test]
    fn missing_rules_are_added_and_others_stay() {
        let expected = role(json!([{ "verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"] }]));
        assert_eq!(reconciled(&expected, &expected), Reconciled::Kept);
        let Reconciled::Updated(updated) = reconciled(&role(json!([get("nodes"), get("pods")])), &expected)
        else {
            panic!("is updated")
        };
        let listed = json!({ "verbs": ["list"], "apiGroups": [""], "resources": ["pods"] });
        assert_eq!(updated["rules"], json!([get("nodes"), get("pods"), listed]));
        assert_eq!(updated["metadata"]["uid"], "u");
        // More than is expected is no reason.
        let more = role(json!([{ "verbs": ["*"], "apiGroups": [""], "resources": ["pods"] }]));
        assert_eq!(reconciled(&more, &expected), Reconciled::Kept);
    }

    #[test]
    fn who_is_not_looked_after_is_let_be() {
        let mut existing = role(json!([]));
        existing["metadata"]["annotations"][AUTOUPDATE] = "false".into();
        assert_eq!(reconciled(&existing, &role(json!([get("pods")]))), Reconciled::Kept);
        existing["metadata"]["annotations"][AUTOUPDATE] = "no".into();
        let Reconciled::Updated(updated) = reconciled(&existing, &role(json!([get("pods")]))) else {
            panic!("is updated")
        };
        assert_eq!(updated["metadata"]["annotations"][AUTOUPDATE], "no", "what is there is kept");
    }

    #[test]
    fn labels_and_annotations_are_added() {
        let mut existing = role(json!([]));
        existing["metadata"] = json!({ "name": "r", "labels": { "own": "x" } });
        let Reconciled::Updated(updated) = reconciled(&existing, &role(json!([]))) else {
            panic!("is updated")
        };
        let labels = json!({ "own": "x", "kubernetes.io/bootstrapping": "rbac-defaults" });
        assert_eq!(updated["metadata"]["labels"], labels);
        assert_eq!(updated["metadata"]["annotations"], json!({ AUTOUPDATE: "true" }));
    }

    #[test]
    fn aggregation_is_as_expected_and_the_rules_of_the_controller_stay() {
        let aggregating = |labels: &[&str]| {
            let mut role = role(json!([get("pods")]));
            let selectors: Vec<Value> =
                labels.iter().map(|label| json!({ "matchLabels": { *label: "true" } })).collect();
            role["aggregationRule"] = json!({ "clusterRoleSelectors": selectors });
            role
        };
        let mut expected = aggregating(&["a"]);
        expected.as_object_mut().expect("an object").remove("rules");
        assert_eq!(reconciled(&aggregating(&["a"]), &expected), Reconciled::Kept);
        let Reconciled::Updated(updated) = reconciled(&aggregating(&["b"]), &expected) else {
            panic!("is updated")
        };
        assert_eq!(updated["aggregationRule"], aggregating(&["b", "a"])["aggregationRule"]);
        assert_eq!(updated["rules"], json!([get("pods")]));
        let Reconciled::Updated(updated) = reconciled(&aggregating(&["a"]), &role(json!([]))) else {
            panic!("is updated")
        };
        assert!(updated.get("aggregationRule").is_none());
    }

    #[test]
    fn missing_subjects_are_added_and_another_role_makes_a_binding_anew() {
        let binding = |role: &str, groups: &[&str]| {
            let subject = |name: &&str| json!({ "kind": "Group", "apiGroup": crate::GROUP, "name": name });
            let subjects: Vec<Value> = groups.iter().map(subject).collect();
            json!({
                "metadata": { "name": "b", "annotations": {}, "labels": {} },
                "roleRef": { "apiGroup": crate::GROUP, "kind": "ClusterRole", "name": role },
                "subjects": subjects,
            })
        };
        assert_eq!(reconciled(&binding("r", &["a", "b"]), &binding("r", &["b"])), Reconciled::Kept);
        assert_eq!(
            reconciled(&binding("r", &["a"]), &binding("r", &["b"])),
            Reconciled::Updated(binding("r", &["a", "b"]))
        );
        assert_eq!(reconciled(&binding("s", &["a"]), &binding("r", &["a"])), Reconciled::Recreated);
        let mut protected = binding("s", &["a"]);
        protected["metadata"]["annotations"][AUTOUPDATE] = "false".into();
        assert_eq!(reconciled(&protected, &binding("r", &["a"])), Reconciled::Kept);
    }
}
