//! The kinds of admission against what kube-apiserver says of them.

mod mutating_binding;
mod mutating_policy;
mod mutating_webhook;
mod validating_binding;
mod validating_policy;
mod validating_webhook;

use serde_json::json;

use crate::{Kind, warnings};

#[test]
fn clients_are_told_that_nothing_is_evaluated() {
    let object = |name: &str| json!({"metadata": {"name": name}});
    let rows = [
        ("MutatingWebhookConfiguration", "a", None, &["admission webhooks are stored"][..]),
        ("ValidatingAdmissionPolicy", "a", None, &["admission policies and their bindings are stored"]),
        ("ValidatingAdmissionPolicy", "a", Some("status"), &[]),
        (
            "MutatingAdmissionPolicyBinding",
            "a.static.k8s.io",
            None,
            &["metadata.name: names ending with \".static.k8s.io\" are reserved", "admission policies"],
        ),
    ];
    for (kind, name, subresource, expected) in rows {
        let kind = Kind::built_in("admissionregistration.k8s.io", kind);
        let update = subresource.map(|subresource| (Some(subresource), object(name)));
        let update = update.as_ref().map(|(subresource, old)| (*subresource, old));
        let told = warnings(&kind, &object(name), update);
        assert_eq!(told.len(), expected.len(), "{told:?}");
        assert!(told.iter().zip(expected).all(|(told, begin)| told.starts_with(begin)), "{told:?}");
    }
}
