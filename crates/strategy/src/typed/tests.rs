//! Values that mean the same, and that do not.
//!
//! In: canonical values of built-in kinds. Out: yes or no. Never: a write.

use serde_json::json;

use super::*;

fn same_specs(api_version: &str, kind: &str, a: &Value, b: &Value) -> bool {
    let object = json!({ "apiVersion": api_version, "kind": kind });
    let name = if kind == "EndpointSlice" { "endpoints" } else { "spec" };
    let field = field(object.as_object().expect("an object"), name).expect("a field");
    let (there, back) = (same(field, Some(a), Some(b)), same(field, Some(b), Some(a)));
    assert_eq!(there, back, "{a} {b}");
    there
}

#[test]
fn a_zero_is_absence_unless_the_field_is_a_pointer() {
    let template = |spec: Value| json!({ "template": { "spec": spec } });
    let volume = |csi: Value| template(json!({ "volumes": [{ "name": "v", "csi": csi }] }));
    let rows = [
        ("v1", "PersistentVolume", json!({ "csi": {} }), json!({ "csi": { "readOnly": false } }), true),
        ("apps/v1", "Deployment", volume(json!({})), volume(json!({ "readOnly": false })), false),
        ("apps/v1", "Deployment", volume(json!({})), volume(json!({ "fsType": "" })), false),
        ("apps/v1", "Deployment", template(json!({})), template(json!({ "resources": {} })), false),
        ("apps/v1", "Deployment", template(json!({})), template(json!({ "hostNetwork": false })), true),
        (
            "apps/v1",
            "DaemonSet",
            template(json!({ "containers": [{ "name": "c" }] })),
            template(json!({ "containers": [{ "name": "c", "resources": {} }] })),
            true,
        ),
        (
            "apps/v1",
            "Deployment",
            template(json!({ "dnsConfig": { "options": [{ "name": "o" }] } })),
            template(json!({ "dnsConfig": { "options": [{ "name": "o", "value": "" }] } })),
            false,
        ),
        (
            "batch/v1",
            "Job",
            json!({ "template": { "metadata": {} } }),
            json!({ "template": { "metadata": { "deletionGracePeriodSeconds": 0 } } }),
            false,
        ),
        ("networking.k8s.io/v1", "NetworkPolicy", json!({}), json!({ "podSelector": {} }), true),
        (
            "discovery.k8s.io/v1",
            "EndpointSlice",
            json!([{ "conditions": {} }]),
            json!([{ "conditions": { "ready": false } }]),
            false,
        ),
        ("discovery.k8s.io/v1", "EndpointSlice", json!([{}]), json!([{ "zone": "" }]), false),
        (
            "discovery.k8s.io/v1",
            "EndpointSlice",
            json!([{ "deprecatedTopology": { "a": "" } }]),
            json!([{}]),
            false,
        ),
        (
            "resource.k8s.io/v1",
            "ResourceClaim",
            json!({ "devices": { "requests": [{ "exactly": {} }] } }),
            json!({ "devices": { "requests": [{ "exactly": { "adminAccess": false } }] } }),
            false,
        ),
    ];
    for (api_version, kind, a, b, want) in rows {
        assert_eq!(same_specs(api_version, kind, &a, &b), want, "{kind} {a} {b}");
    }
}

#[test]
fn structs_are_compared_by_the_name_of_their_type() {
    let (plain, with) = (json!({}), json!({ "resources": {} }));
    let same = |name| {
        let of = |value: &Value| value.as_object().expect("an object").clone();
        same_of(("core/v1", name), &of(&plain), &of(&with))
    };
    assert!(same("Container"));
    assert!(!same("PodSpec"));
}

#[test]
fn what_says_no_built_in_kind_has_no_types() {
    for object in [json!({}), json!({ "apiVersion": "example.com/v1", "kind": "Pod" })] {
        assert!(field(object.as_object().expect("an object"), "spec").is_none(), "{object}");
    }
}

#[test]
fn names_tell_pointers_where_they_are_of_one_kind() {
    for name in ["adminAccess", "borrowingLimitPercent", "terminating", "zone", "ipFamilyPolicy"] {
        assert!(is_always_pointer(name), "{name}");
    }
    for name in ["hostNetwork", "readOnly", "replicas", "ready", "conditions", "no such name"] {
        assert!(!is_always_pointer(name), "{name}");
    }
}
