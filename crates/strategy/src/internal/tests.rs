//! How objects are shown as Go shows its internal types.
//!
//! In: JSON. Out: text. Never: a store.

use serde_json::json;

use super::*;

#[test]
fn every_type_that_is_named_is_in_the_table() {
    for field in TYPES.values().flatten() {
        let kind = field.kind.trim_start_matches(['*', '[', ']', '!']);
        let known =
            matches!(kind, "s" | "i" | "b" | "q" | "t" | "{}" | "L" | "M") || TYPES.contains_key(kind);
        assert!(known, "{}:{}", field.shown, field.kind);
    }
    assert!(TYPES.contains_key("PodSpec"));
}

#[test]
fn what_is_unset_is_shown_as_gos_zero() {
    let rows = [
        ("SeccompProfile", json!({"type": "X"}), r#"{"Type":"X","LocalhostProfile":null}"#),
        (
            "NodeSelectorTerm",
            json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}),
            r#"{"MatchExpressions":[{"Key":"a","Operator":"In","Values":["b"]}],"MatchFields":null}"#,
        ),
        (
            "ResourceRequirements",
            json!({"limits": {"b": "2", "a": "1"}}),
            r#"{"Limits":{"a":"1","b":"2"},"Requests":null,"Claims":null}"#,
        ),
        (
            "ContainerPort",
            json!({"containerPort": 1}),
            r#"{"Name":"","HostPort":0,"ContainerPort":1,"Protocol":"","HostIP":""}"#,
        ),
    ];
    for (ty, object, line) in rows {
        match shown(ty, object.as_object().expect("an object")) {
            BadValue::Shown(text) => assert_eq!(text, line, "{ty}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_security_context_of_a_pod_has_what_the_spec_has_outside() {
    let spec = json!({"hostNetwork": true, "securityContext": {"runAsUser": 5}});
    match shown("PodSpec", spec.as_object().expect("an object")) {
        BadValue::Shown(text) => {
            let context = r#""SecurityContext":{"HostNetwork":true,"HostPID":false,"HostIPC":false,"ShareProcessNamespace":null,"#;
            assert!(text.contains(context), "{text}");
            assert!(text.contains(r#""RunAsUser":5"#), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_empty_on_the_wire_is_not_shown_without_end() {
    let containers: Vec<Value> = vec![json!({}); 100_000];
    let spec = json!({ "containers": containers });
    let shown = text("PodSpec", spec.as_object().expect("an object"));
    assert!(shown.len() < 2 << 20, "{}", shown.len());
    assert!(shown.contains(",...,...,"));
}
