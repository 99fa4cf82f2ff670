//! What a bookmark shows, which media types write each in its own way.
//!
//! In: the revision up to which nothing was missed. Out: an object, or its metadata. Never: writes a frame.

use forebay_apimachinery::Revision;
use forebay_catalog::Served;

/// A bookmark's object: of the kind, with nothing but its metadata, and what kube-apiserver's conversion of
/// such an object leaves in it.
pub fn bookmark_object(served: &Served, revision: Revision, initial_end: bool) -> serde_json::Value {
    let mut value = serde_json::json!({ "metadata": bookmark_metadata(revision, initial_end) });
    match (served.group(), &*served.gvk.kind) {
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") => value["spec"]["replicas"] = 0.into(),
        ("apps", "DaemonSet") => {
            value["metadata"]["annotations"]["deprecated.daemonset.template.generation"] = "0".into();
        }
        _ => {}
    }
    value
}

/// The metadata of a bookmark's object.
pub fn bookmark_metadata(revision: Revision, initial_end: bool) -> serde_json::Value {
    let mut metadata = serde_json::json!({ "resourceVersion": revision.to_string() });
    if initial_end {
        metadata["annotations"] = serde_json::json!({ "k8s.io/initial-events-end": "true" });
    }
    metadata
}
