//! A request as policies see it.
//!
//! In: what a write is, who asks. Out: what rules match by, what `request` and `namespaceObject` are. Never:
//! an object in another version than it is given.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/cel/condition.go`.

use forebay_apimachinery::{Caller, GroupVersionKind, GroupVersionResource};
use serde_json::{Map, Value, json};

use crate::matching::RequestedResource;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionOperation {
    Create,
    Update,
    Delete,
    Connect,
}

/// See the module's doc.
#[derive(Clone, Copy)]
pub struct PolicyRequest<'a> {
    pub operation: AdmissionOperation,
    /// What is asked for, as it is asked for.
    pub own: &'a RequestedResource,
    /// The same in other versions and groups, itself not among them.
    pub equivalents: &'a [RequestedResource],
    /// Empty for none.
    pub subresource: &'a str,
    /// Empty where the server makes one.
    pub name: &'a str,
    /// Of a namespace its own name; empty at cluster scope.
    pub namespace: &'a str,
    pub caller: &'a Caller,
    pub dry_run: bool,
    /// The options of the verb.
    pub options: &'a Value,
    /// As its kind's rules know it; it is only looked at for its labels.
    pub object: Option<&'a Value>,
    pub old_object: Option<&'a Value>,
}

impl AdmissionOperation {
    pub fn as_str(self) -> &'static str {
        match self {
            AdmissionOperation::Create => "CREATE",
            AdmissionOperation::Update => "UPDATE",
            AdmissionOperation::Delete => "DELETE",
            AdmissionOperation::Connect => "CONNECT",
        }
    }
}

/// What `request` is.
///
/// - `resource`, `kind`: what the policy takes it for.
pub fn request_json(
    request: &PolicyRequest<'_>,
    resource: &GroupVersionResource,
    kind: &GroupVersionKind,
) -> Value {
    let mut all = Map::new();
    all.insert("uid".into(), json!(""));
    all.insert("kind".into(), kind_json(kind));
    all.insert("resource".into(), resource_json(resource));
    said(&mut all, "subResource", request.subresource);
    all.insert("requestKind".into(), kind_json(&request.own.kind));
    all.insert("requestResource".into(), resource_json(&request.own.resource));
    said(&mut all, "requestSubResource", request.subresource);
    said(&mut all, "name", request.name);
    said(&mut all, "namespace", request.namespace);
    all.insert("operation".into(), json!(request.operation.as_str()));
    all.insert("userInfo".into(), user_json(request.caller));
    all.insert("object".into(), Value::Null);
    all.insert("oldObject".into(), Value::Null);
    all.insert("dryRun".into(), json!(request.dry_run));
    all.insert("options".into(), request.options.clone());
    Value::Object(all)
}

fn said(all: &mut Map<String, Value>, name: &str, text: &str) {
    if !text.is_empty() {
        all.insert(name.into(), json!(text));
    }
}

fn kind_json(kind: &GroupVersionKind) -> Value {
    json!({ "group": *kind.group, "version": *kind.version, "kind": *kind.kind })
}

fn resource_json(of: &GroupVersionResource) -> Value {
    json!({ "group": *of.group, "version": *of.version, "resource": *of.resource })
}

fn user_json(caller: &Caller) -> Value {
    let mut user = Map::new();
    said(&mut user, "username", &caller.name);
    said(&mut user, "uid", &caller.uid);
    if !caller.groups.is_empty() {
        user.insert("groups".into(), json!(caller.groups));
    }
    if !caller.extra.is_empty() {
        user.insert("extra".into(), json!(caller.extra));
    }
    Value::Object(user)
}

/// What policies see of a namespace's metadata.
const SHOWN: [&str; 12] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "name",
    "namespace",
    "resourceVersion",
    "uid",
];

/// What policies see of a namespace: not its owners, nor who manages its fields.
pub fn shown_namespace(mut namespace: Value) -> Value {
    if let Some(all) = namespace.as_object_mut() {
        all.retain(|name, _| matches!(name.as_str(), "metadata" | "spec" | "status"));
        if let Some(metadata) = all.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| SHOWN.binary_search(&name.as_str()).is_ok());
        }
    }
    namespace
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_shown_without_its_owners_and_managers() {
        assert!(SHOWN.is_sorted());
        let metadata =
            json!({ "name": "n", "labels": { "a": "b" }, "managedFields": [], "ownerReferences": [] });
        let namespace = json!({ "kind": "Namespace", "metadata": metadata, "status": { "phase": "Active" } });
        let shown =
            json!({ "metadata": { "name": "n", "labels": { "a": "b" } }, "status": { "phase": "Active" } });
        assert_eq!(shown_namespace(namespace), shown);
    }
}
