//! Evictions: what budgets say, as kube-apiserver v1.36.3 says it.
//!
//! In: budgets and pods. Out: refusals and what is stored. Never: a store.

use serde_json::{Value, json};

use crate::eviction::{
    Refusal, Standing, covers, disrupts_nothing, mark_disrupted, may_begin, spend, standing,
};

const NOW: &str = "2026-01-01T00:00:00Z";

fn budget(status: Value) -> Value {
    json!({
        "metadata": {"name": "x", "generation": 1},
        "spec": {"selector": {"matchLabels": {"a": "b"}}},
        "status": status,
    })
}

fn condition(reason: &str, message: &str) -> Value {
    json!([{"type": "DisruptionAllowed", "status": "False", "reason": reason, "message": message}])
}

#[test]
fn a_budget_that_is_spent_says_why() {
    let spent = |text: &str| Err(Refusal::Spent(format!("The disruption budget x {text}")));
    for (status, wanted) in [
        (json!({}), Err(Refusal::Unprocessed)),
        (
            json!({"observedGeneration": 1, "disruptionsAllowed": -1}),
            Err(Refusal::Broken("pdb disruptions allowed is negative")),
        ),
        (
            json!({"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1}),
            spent("needs 1 healthy pods and has 1 currently"),
        ),
        (
            json!({"observedGeneration": 1, "currentHealthy": 3, "desiredHealthy": 1}),
            spent("does not allow evicting pods currently"),
        ),
        (
            json!({
                "observedGeneration": 1, "currentHealthy": 0, "desiredHealthy": 1,
                "conditions": condition("SyncFailed", "boom"),
            }),
            spent("does not allow evicting pods currently because it failed sync: boom"),
        ),
        (
            json!({
                "observedGeneration": 1, "currentHealthy": 3, "desiredHealthy": 1,
                "conditions": condition("Other", "boom"),
            }),
            spent("does not allow evicting pods currently (Other): boom"),
        ),
        (json!({"observedGeneration": 1, "disruptionsAllowed": 2}), Ok(())),
    ] {
        assert_eq!(spend(&mut budget(status.clone()), "p", NOW), wanted, "{status}");
    }
}

#[test]
fn the_last_disruption_leaves_a_condition() {
    let status =
        json!({"observedGeneration": 1, "disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1});
    let mut spending = budget(status);
    assert_eq!(spend(&mut spending, "p", NOW), Ok(()));
    assert_eq!(spending["status"]["disruptionsAllowed"], 1);
    assert_eq!(spending["status"]["disruptedPods"], json!({"p": NOW}));
    assert!(spending["status"].get("conditions").is_none());
    assert_eq!(spend(&mut spending, "q", NOW), Ok(()));
    assert_eq!(
        spending["status"]["conditions"],
        json!([{
            "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
            "lastTransitionTime": NOW, "observedGeneration": 1,
        }])
    );
}

#[test]
fn a_pod_that_is_not_ready_may_go_without_the_budget() {
    let unready = json!({"status": {"phase": "Running"}});
    let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    let sated = json!({"currentHealthy": 1, "desiredHealthy": 1});
    let starved = json!({"currentHealthy": 0, "desiredHealthy": 1});
    let mut generous = budget(starved.clone());
    generous["spec"]["unhealthyPodEvictionPolicy"] = json!("AlwaysAllow");
    for (budget, pod, wanted) in [
        (budget(sated.clone()), &unready, Standing::Uncounted),
        (budget(sated), &ready, Standing::Counted),
        (budget(starved), &unready, Standing::Counted),
        (budget(json!({})), &unready, Standing::Counted),
        (generous.clone(), &unready, Standing::Uncounted),
        (generous, &ready, Standing::Counted),
    ] {
        assert_eq!(standing(&budget, pod), wanted, "{budget} {pod}");
    }
}

#[test]
fn a_selector_that_is_left_out_selects_nothing_and_an_empty_one_everything() {
    let pod = json!({"metadata": {"labels": {"a": "b"}}});
    for (selector, wanted) in [
        (json!({"selector": {"matchLabels": {"a": "b"}}}), true),
        (json!({"selector": {"matchLabels": {"a": "c"}}}), false),
        (json!({"selector": {}}), true),
        (json!({}), false),
        (json!({"selector": {"matchExpressions": [{"key": "a", "operator": "X"}]}}), false),
    ] {
        assert_eq!(covers(&json!({"spec": selector}), &pod), wanted, "{selector}");
    }
}

#[test]
fn pods_that_have_ended_or_not_begun_disrupt_nothing() {
    for (status, disrupts, begins) in [
        (json!({"status": {"phase": "Running"}}), true, true),
        (json!({"status": {"phase": "Pending"}}), false, true),
        (json!({"status": {"phase": "Succeeded"}}), false, false),
        (json!({"status": {"phase": "Failed"}}), false, false),
        (json!({"metadata": {"deletionTimestamp": NOW}, "status": {"phase": "Running"}}), false, false),
    ] {
        assert_eq!(disrupts_nothing(&status), !disrupts, "{status}");
        assert_eq!(may_begin(&status), begins, "{status}");
    }
}

#[test]
fn the_pod_is_told_once() {
    let mut pod = json!({"status": {}});
    mark_disrupted(&mut pod, NOW);
    let once = pod.clone();
    mark_disrupted(&mut pod, "2027-01-01T00:00:00Z");
    assert_eq!(pod, once);
    assert_eq!(pod["status"]["conditions"][0]["reason"], "EvictionByEvictionAPI");
}
