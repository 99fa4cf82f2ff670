//! The AdmissionReview that a webhook is sent.
//!
//! In: a request, what the webhook takes it for, its objects as text. Out: the bytes, in parts of which the
//! objects are shared by all who are sent them. Never: a tree of an object.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/webhook/request/admissionreview.go`.

use bytes::Bytes;
use forebay_apimachinery::json::write_string;
use forebay_policy::{PolicyRequest, RequestedResource, request_json};

use crate::configuration::ReviewVersion;

pub(crate) const V1: &str = "admission.k8s.io/v1";
pub(crate) const V1BETA1: &str = "admission.k8s.io/v1beta1";

/// See the module's doc.
pub struct Review<'a> {
    pub version: ReviewVersion,
    pub uid: &'a str,
    pub request: &'a PolicyRequest<'a>,
    pub taken_for: &'a RequestedResource,
    /// As JSON; `None` is null.
    pub object: Option<&'a Bytes>,
    pub old_object: Option<&'a Bytes>,
}

impl ReviewVersion {
    pub fn api_version(self) -> &'static str {
        match self {
            ReviewVersion::V1 => V1,
            ReviewVersion::V1beta1 => V1BETA1,
        }
    }

    /// Without its group.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "v1",
            ReviewVersion::V1beta1 => "v1beta1",
        }
    }
}

impl Review<'_> {
    /// Its bytes, one after the other.
    pub fn parts(&self) -> Vec<Bytes> {
        let of = &self.taken_for;
        let mut request = request_json(self.request, &of.resource, &of.kind);
        let mut head = Vec::with_capacity(1 << 10);
        let api_version = self.version.api_version();
        head.extend_from_slice(b"{\"kind\":\"AdmissionReview\",\"apiVersion\":");
        write_string(api_version, &mut head);
        head.extend_from_slice(b",\"request\":{\"uid\":");
        write_string(self.uid, &mut head);
        let members = request.as_object_mut().map(std::mem::take).unwrap_or_default();
        for (name, value) in members {
            if !matches!(name.as_str(), "uid" | "object" | "oldObject") {
                head.push(b',');
                write_string(&name, &mut head);
                head.push(b':');
                head.extend_from_slice(value.to_string().as_bytes());
            }
        }
        head.extend_from_slice(b",\"object\":");
        let null = Bytes::from_static(b"null");
        vec![
            Bytes::from(head),
            self.object.unwrap_or(&null).clone(),
            Bytes::from_static(b",\"oldObject\":"),
            self.old_object.unwrap_or(&null).clone(),
            Bytes::from_static(b"}}"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::{Caller, GroupVersionKind, GroupVersionResource};
    use forebay_policy::AdmissionOperation;

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_review_has_its_objects_as_they_were_given() {
        let own = RequestedResource {
            resource: GroupVersionResource::new("apps", "v1", "deployments"),
            kind: GroupVersionKind::new("apps", "v1", "Deployment"),
        };
        let request = PolicyRequest {
            operation: AdmissionOperation::Create,
            own: &own,
            equivalents: &[],
            subresource: "",
            name: "d",
            namespace: "n",
            caller: &Caller { name: "u".into(), groups: vec!["g".into()], ..Caller::default() },
            dry_run: false,
            options: &json!({ "kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1" }),
            object: None,
            old_object: None,
        };
        let object = Bytes::from_static(b"{\"a\":1}");
        let review = Review {
            version: ReviewVersion::V1,
            uid: "x",
            request: &request,
            taken_for: &own,
            object: Some(&object),
            old_object: None,
        };
        let bytes = review.parts().concat();
        let read: Value = serde_json::from_slice(&bytes).expect("JSON");
        let kind = json!({ "group": "apps", "version": "v1", "kind": "Deployment" });
        let resource = json!({ "group": "apps", "version": "v1", "resource": "deployments" });
        assert_eq!(
            read,
            json!({
                "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
                "request": {
                    "uid": "x", "kind": kind, "resource": resource, "requestKind": kind,
                    "requestResource": resource, "name": "d", "namespace": "n", "operation": "CREATE",
                    "userInfo": { "username": "u", "groups": ["g"] }, "object": { "a": 1 }, "oldObject": null,
                    "dryRun": false, "options": { "kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1" }
                }
            })
        );
    }
}
