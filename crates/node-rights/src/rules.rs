//! What all nodes may do with what nothing more is known of.
//!
//! In: a question about a resource that is not looked into. Out: whether the rules allow it. Those of gates
//! that are off by default are not among them.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go` (`NodeRules`).

use std::sync::LazyLock;

use forebay_apimachinery::Attributes;
use forebay_rbac::Role;
use serde_json::json;

static RULES: LazyLock<Role> = LazyLock::new(|| {
    let rule = |verbs: &[&str], groups: &[&str], resources: &[&str]| json!({ "verbs": verbs, "apiGroups": groups, "resources": resources });
    let read = ["get", "list", "watch"];
    Role::read(&json!({ "rules": [
        rule(&["create"], &["authentication.k8s.io"], &["tokenreviews"]),
        rule(&["create"], &["authorization.k8s.io"], &["subjectaccessreviews", "localsubjectaccessreviews"]),
        rule(&read, &[""], &["services"]),
        rule(&["create", "update", "patch"], &["", "events.k8s.io"], &["events"]),
        rule(&["get"], &[""], &["endpoints"]),
        rule(&["create", "get", "list", "watch"], &["certificates.k8s.io"], &["certificatesigningrequests"]),
        rule(&read, &["storage.k8s.io"], &["csidrivers"]),
        rule(&read, &["node.k8s.io"], &["runtimeclasses"]),
    ] }))
});

pub(crate) fn allow(asked: &Attributes<'_>) -> bool {
    RULES.permits(asked)
}
