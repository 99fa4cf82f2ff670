//! What the status of a pod may become: what is refused, and what is dropped.
//!
//! In: pods with their status. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::{Value, json};

use crate::{GroupKind, Privileged, prepare_update, validate_update};

/// What is said of a pod of this spec whose status was `before` and is to be `after`.
fn told(spec: &Value, before: &Value, after: &Value) -> Vec<String> {
    let pod = |status: &Value| {
        let metadata = json!({"name": "p", "namespace": "default", "resourceVersion": "1"});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})
    };
    let kind = GroupKind::built_in("", "Pod");
    let causes = validate_update(&kind, Some("status"), &pod(after), &pod(before), Privileged::Allowed);
    causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

/// Whether a container of this spec that ended may run again.
fn restarts(spec: &Value, list: &str, name: &str, exit_code: i64) -> bool {
    let of = |state: Value| json!({list: [{"name": name, "state": state}]});
    let before = of(json!({"terminated": {"exitCode": exit_code}}));
    assert_eq!(told(spec, &before, &before), [""; 0], "{spec}");
    let told = told(spec, &before, &of(json!({"running": {}})));
    let refused =
        format!("status.{list}[0].state: Forbidden: may not be transitioned to non-terminated state");
    assert!(told.is_empty() || told == [refused], "{spec}: {told:?}");
    told.is_empty()
}

#[test]
fn a_container_that_ended_is_started_again_as_its_rules_say() {
    let of_pod = |policy: &str| json!({"restartPolicy": policy, "containers": [{"name": "c"}]});
    let own = |policy: &str, operator: &str, action: &str| {
        let rule = json!({"action": action, "exitCodes": {"operator": operator, "values": [3]}});
        let container = json!({"name": "c", "restartPolicy": policy, "restartPolicyRules": [rule]});
        json!({"restartPolicy": "Never", "containers": [container]})
    };
    for (spec, exit_code, expected) in [
        (of_pod("Always"), 0, true),
        (of_pod("OnFailure"), 1, true),
        (of_pod("OnFailure"), 0, false),
        (of_pod("Never"), 1, false),
        (own("Never", "In", "Restart"), 3, true),
        (own("Never", "In", "Restart"), 4, false),
        (own("Never", "NotIn", "Restart"), 4, true),
        (own("Never", "NotIn", "Restart"), 3, false),
        (own("OnFailure", "In", "Restart"), 1, true),
        (own("OnFailure", "In", "Restart"), 0, false),
        // The end of any container may start all of them again.
        (own("Never", "In", "RestartAllContainers"), 4, true),
    ] {
        assert_eq!(restarts(&spec, "containerStatuses", "c", exit_code), expected, "{spec} {exit_code}");
    }
    let init = |policy: Value| json!({"restartPolicy": "Always", "initContainers": [{"name": "i", "restartPolicy": policy}]});
    assert!(restarts(&init(Value::Null), "initContainerStatuses", "i", 0));
    assert!(!restarts(&init("Never".into()), "initContainerStatuses", "i", 1));
}

#[test]
fn what_the_spec_does_not_have_or_joined_later_is_not_started_again() {
    let spec = json!({"restartPolicy": "Always", "containers": [{"name": "c"}]});
    assert!(!restarts(&spec, "containerStatuses", "x", 1));
    let spec = json!({"restartPolicy": "Always", "ephemeralContainers": [{"name": "e"}]});
    assert!(!restarts(&spec, "ephemeralContainerStatuses", "e", 1));
}

#[test]
fn addresses_that_are_none_are_of_no_family() {
    let after = json!({"podIPs": [{"ip": "1.1.1.1"}, {"ip": "x"}]});
    assert_eq!(
        told(&json!({}), &json!({}), &after),
        [
            r#"status.podIPs[1]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#,
            "status.podIPs: Internal error: failed to check for dual stack with error:invalid IP[1]: x",
            r#"status.podIPs: Invalid value: [{"IP":"1.1.1.1"},{"IP":"x"}]: may specify no more than one IP for each IP family"#,
        ]
    );
}

#[test]
fn what_belongs_to_features_that_are_off_is_dropped() {
    let mount = json!({"name": "v", "mountPath": "/v", "volumeStatus": {"image": {"imageRef": "x"}}});
    let list = json!([{"name": "c", "volumeMounts": [mount]}]);
    let old = json!({"metadata": {"name": "p"}, "status": {}});
    for name in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        let claims = json!([{"resourceClaimName": "x"}]);
        let status = json!({name: list, "nodeAllocatableResourceClaimStatuses": claims});
        let mut pod = json!({"metadata": {"name": "p"}, "status": status});
        let context = crate::Context { now: "2026-01-01T00:00:00Z", user: None };
        prepare_update(&GroupKind::built_in("", "Pod"), Some("status"), &mut pod, &old, &context);
        let kept = json!([{"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]);
        assert_eq!(pod["status"], json!({name: kept}));
    }
}
