//! The kinds of admission against what kube-apiserver says of them.

mod mutating_binding;
mod mutating_policy;
mod mutating_webhook;
mod validating_binding;
mod validating_policy;
mod validating_webhook;

use serde_json::json;

use crate::{GroupKind, warnings};

#[test]
fn clients_are_told_of_reserved_names() {
    let object = |name: &str| json!({"metadata": {"name": name}});
    let rows = [
        ("MutatingWebhookConfiguration", "a", None, &[][..]),
        ("ValidatingAdmissionPolicy", "a", None, &[]),
        ("ValidatingAdmissionPolicy", "a", Some("status"), &[]),
        (
            "MutatingAdmissionPolicyBinding",
            "a.static.k8s.io",
            None,
            &["metadata.name: names ending with \".static.k8s.io\" are reserved"],
        ),
    ];
    for (kind, name, subresource, expected) in rows {
        let kind = GroupKind::built_in("admissionregistration.k8s.io", kind);
        let update = subresource.map(|subresource| (Some(subresource), object(name)));
        let update = update.as_ref().map(|(subresource, old)| (*subresource, old));
        let told = warnings(&kind, &object(name), update);
        assert_eq!(told.len(), expected.len(), "{told:?}");
        assert!(told.iter().zip(expected).all(|(told, begin)| told.starts_with(begin)), "{told:?}");
    }
}
