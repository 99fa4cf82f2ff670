//! NodeRestriction: a node writes what is its own: its Node, pods and evictions of pods that are on it, its
//! lease, CSINode and slices, tokens for its pods. Its labels and taints do not draw others' pods to it.
//!
//! In: a write by a node. Out: a refusal in kube-apiserver's words. Never: says anything of who is no node;
//! podcertificaterequests, which only a gate serves that is off by default.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/noderestriction`.

use forebay_api::Eventual;
use forebay_apimachinery::Status;
use serde::Deserialize;
use serde_json::Value;

use super::node_objects::{forbidden_labels, is_same, referenced, text};
use super::node_tokens;
use super::service_account::items;
use crate::plugin::{Admitted, Plugin, ReadFrom, Switch, Tools, WriteAttributes};
use forebay_strategy::requested_common_name;

pub(super) const PODS: ReadFrom = ("", "pods");
const NODES: ReadFrom = ("", "nodes");
const SLICES: ReadFrom = ("resource.k8s.io", "resourceslices");
const MIRROR: &str = "kubernetes.io/config.mirror";
const NODE_LEASES: &str = "kube-node-lease";

pub struct NodeRestriction;

impl Plugin for NodeRestriction {
    fn name(&self) -> &'static str {
        "NodeRestriction"
    }

    fn switch(&self) -> Switch {
        Switch::IfEnabled
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        let is_node = write.caller.is_some_and(|caller| caller.node().is_some());
        is_node && (write.creates() || write.updates() || write.deletes())
    }

    /// What a pod or a node is may be newer than the cache.
    fn decides_by(&self) -> &'static [ReadFrom] {
        &[PODS, NODES]
    }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let Some(node) = write.caller.and_then(|caller| caller.node()) else { return Eventual::Now(Ok(())) };
        if is_token(write) {
            return Eventual::later(async move { node_tokens::admit(write, node, object, tools).await });
        }
        if write.deletes() && write.is_of(SLICES.0, SLICES.1) && !node.is_empty() {
            return Eventual::later(async move { delete_slice(write, node, tools).await });
        }
        Eventual::Now(admit(write, node, object, tools))
    }
}

/// What is looked at in a pod or a node that is stored.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Stored {
    pub metadata: StoredMetadata,
    pub spec: StoredSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StoredMetadata {
    pub uid: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct StoredSpec {
    pub node_name: String,
}

/// Whether a token is asked for.
fn is_token(write: &WriteAttributes<'_>) -> bool {
    write.creates() && write.is_of_part("", "serviceaccounts", "token")
}

/// The object as it is cached.
///
/// # Errors
/// 404, as a lister of upstream's says it.
pub(super) fn stored(
    tools: &Tools<'_>,
    from: ReadFrom,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Stored, Status> {
    let found = tools.lookup.cached(from, namespace, name);
    let found = found.ok_or_else(|| Status::not_found(from.0, kind, name))?;
    serde_json::from_slice(&found.untyped_json()).map_err(Status::internal)
}

/// Upstream looks at the slice that is there when it is deleted, not at what a cache has of it.
async fn delete_slice(write: &WriteAttributes<'_>, node: &str, tools: &Tools<'_>) -> Result<(), Status> {
    let name = write.of.name;
    let found = tools.lookup.live(SLICES, "", name).wait().await?;
    let found = found.ok_or_else(|| Status::not_found(SLICES.0, SLICES.1, name))?;
    let slice: Stored = serde_json::from_slice(&found.untyped_json()).map_err(Status::internal)?;
    match slice.spec.node_name == node {
        true => Ok(()),
        false => {
            let why = "can only delete ResourceSlice with the same NodeName as the requesting node";
            Err(write.forbidden_as(name, why))
        }
    }
}

fn admit(write: &WriteAttributes<'_>, node: &str, object: &Value, tools: &Tools<'_>) -> Result<(), Status> {
    let refuse = |why: String| match write.of.name {
        "" => write.forbidden(object, &why),
        name => write.forbidden_as(name, &why),
    };
    if node.is_empty() {
        let user = write.caller.map_or("", |caller| caller.name.as_str());
        return Err(refuse(format!("could not determine node from user {user:?}")));
    }
    let of = Restricted { write, node, object, tools };
    match (write.of.group, write.of.resource, write.of.subresource) {
        ("", "pods", "") => of.pod(),
        ("", "pods", "status") => of.pod_status().map_err(refuse),
        ("", "pods", "eviction") => of.eviction(),
        ("", "pods", other) => Err(refuse(format!(
            "unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed"
        ))),
        ("", "nodes", _) => of.own_node().map_err(refuse),
        ("", "persistentvolumeclaims", "status") => of.claim_status().map_err(refuse),
        ("", "persistentvolumeclaims", _) => Err(refuse("may only update PVC status".to_owned())),
        ("coordination.k8s.io", "leases", _) => of.lease().map_err(refuse),
        ("storage.k8s.io", "csinodes", _) => of.csi_node().map_err(refuse),
        ("resource.k8s.io", "resourceslices", _) => of.slice().map_err(refuse),
        ("certificates.k8s.io", "certificatesigningrequests", _) => of.certificate().map_err(refuse),
        _ => Ok(()),
    }
}

/// A write by a node.
#[derive(Clone, Copy)]
struct Restricted<'a> {
    write: &'a WriteAttributes<'a>,
    node: &'a str,
    object: &'a Value,
    tools: &'a Tools<'a>,
}

impl Restricted<'_> {
    fn refuse(&self, why: &str) -> Status {
        match self.write.of.name {
            "" => self.write.forbidden(self.object, why),
            name => self.write.forbidden_as(name, why),
        }
    }

    /// As upstream names what is done.
    fn operation(&self) -> &'static str {
        match (self.write.creates(), self.write.updates()) {
            (true, _) => "CREATE",
            (_, true) => "UPDATE",
            _ => "DELETE",
        }
    }

    fn old(&self) -> &Value {
        self.write.old.unwrap_or(&Value::Null)
    }

    /// What it is called, be it new.
    fn name(&self) -> &str {
        match self.write.of.name {
            "" => text(&self.object["metadata"], "name"),
            name => name,
        }
    }

    fn pod(&self) -> Result<(), Status> {
        let node = self.node;
        if self.write.creates() {
            return self.mirror();
        }
        if !self.write.deletes() {
            let operation = self.operation();
            return Err(self.refuse(&format!(
                "unexpected operation {operation:?}, node {node:?} can only create and delete mirror pods"
            )));
        }
        // Whose a pod is that is not known nobody can tell: it is not there, or not yet in the cache, which
        // is seen when it is looked at again.
        let pod = stored(self.tools, PODS, "pods", self.write.of.namespace, self.write.of.name)?;
        if pod.spec.node_name != node {
            let why = format!("node {node:?} can only delete pods with spec.nodeName set to itself");
            return Err(self.refuse(&why));
        }
        Ok(())
    }

    /// A pod that a node made by itself, shown to others.
    fn mirror(&self) -> Result<(), Status> {
        let (node, pod) = (self.node, self.object);
        let (metadata, spec) = (&pod["metadata"], &pod["spec"]);
        if metadata["annotations"].get(MIRROR).is_none() {
            return Err(self.refuse(&format!(
                "pod does not have {MIRROR:?} annotation, node {node:?} can only create mirror pods"
            )));
        }
        if text(spec, "nodeName") != node {
            let why = format!("node {node:?} can only create pods with spec.nodeName set to itself");
            return Err(self.refuse(&why));
        }
        let owners: Vec<&Value> = items(&metadata["ownerReferences"]).collect();
        let owner = match owners.as_slice() {
            [owner] => *owner,
            [] => {
                let why = format!("node {node:?} can only create pods with an owner reference set to itself");
                return Err(self.refuse(&why));
            }
            _ => {
                let why =
                    format!("node {node:?} can only create pods with a single owner reference set to itself");
                return Err(self.refuse(&why));
            }
        };
        self.owner(owner).map_err(|why| self.refuse(&why))?;
        let known = stored(self.tools, NODES, "node", "", node)?.metadata.uid;
        let said = text(owner, "uid");
        if said != known {
            return Err(self.refuse(&format!("node {node} UID mismatch: expected {said} got {known}")));
        }
        match referenced(spec) {
            Ok(None) => Ok(()),
            Ok(Some(what)) => {
                Err(self.refuse(&format!("node {node:?} can not create pods that reference {what}")))
            }
            Err(why) => Err(self.refuse(&format!("error checking mirror pod for API references: {why}"))),
        }
    }

    fn owner(&self, owner: &Value) -> Result<(), String> {
        let node = self.node;
        let is_own =
            text(owner, "apiVersion") == "v1" && text(owner, "kind") == "Node" && text(owner, "name") == node;
        if !is_own {
            return Err(format!("node {node:?} can only create pods with an owner reference set to itself"));
        }
        if owner["controller"] != true {
            return Err(format!(
                "node {node:?} can only create pods with a controller owner reference set to itself"
            ));
        }
        if owner["blockOwnerDeletion"] == true {
            return Err(format!("node {node:?} must not set blockOwnerDeletion on an owner reference"));
        }
        Ok(())
    }

    fn pod_status(&self) -> Result<(), String> {
        let (node, old, new) = (self.node, self.old(), self.object);
        if !self.write.updates() {
            return Err(format!("unexpected operation {:?}", self.operation()));
        }
        if text(&old["spec"], "nodeName") != node {
            return Err(format!(
                "node {node:?} can only update pod status for pods with spec.nodeName set to itself"
            ));
        }
        if !is_same(&old["metadata"]["labels"], &new["metadata"]["labels"]) {
            return Err(format!("node {node:?} cannot update labels through pod status"));
        }
        let status = |member: &str| (&old["status"][member], &new["status"][member]);
        let (old, new) = status("resourceClaimStatuses");
        if !is_same(old, new) {
            return Err(format!("node {node:?} cannot update resource claim statues"));
        }
        let (old, new) = status("extendedResourceClaimStatus");
        if !is_same(old, new) {
            return Err(format!("node {node:?} cannot update extended resource claim status"));
        }
        Ok(())
    }

    fn eviction(&self) -> Result<(), Status> {
        let (node, operation) = (self.node, self.operation());
        if !self.write.creates() {
            return Err(self.refuse(&format!("unexpected operation {operation}")));
        }
        let name = match self.write.of.name {
            "" => text(&self.write.sent["metadata"], "name"),
            name => name,
        };
        if name.is_empty() {
            return Err(self.refuse("could not determine pod from request data"));
        }
        let pod = stored(self.tools, PODS, "pod", self.write.of.namespace, name)?;
        if pod.spec.node_name != node {
            return Err(
                self.refuse(&format!("node {node} can only evict pods with spec.nodeName set to itself"))
            );
        }
        Ok(())
    }

    fn own_node(&self) -> Result<(), String> {
        let (node, name, new, old) = (self.node, self.name(), self.object, self.old());
        if name != node {
            return Err(format!("node {node:?} is not allowed to modify node {name:?}"));
        }
        let source = &new["spec"]["configSource"];
        if self.write.creates() {
            if !source.is_null() {
                return Err(format!(
                    "node {node:?} is not allowed to create pods with a non-nil configSource"
                ));
            }
            let forbidden = forbidden_labels(&new["metadata"]["labels"], &Value::Null);
            if !forbidden.is_empty() {
                let labels = forbidden.join(", ");
                return Err(format!("node {node:?} is not allowed to set the following labels: {labels}"));
            }
        }
        if self.write.updates() {
            if !source.is_null() && !is_same(source, &old["spec"]["configSource"]) {
                return Err(format!(
                    "node {node:?} is not allowed to update configSource to a new non-nil configSource"
                ));
            }
            if !is_same(&new["spec"]["taints"], &old["spec"]["taints"]) {
                return Err(format!("node {node:?} is not allowed to modify taints"));
            }
            if !is_same(&new["metadata"]["ownerReferences"], &old["metadata"]["ownerReferences"]) {
                return Err(format!("node {node:?} is not allowed to modify ownerReferences"));
            }
            let forbidden = forbidden_labels(&new["metadata"]["labels"], &old["metadata"]["labels"]);
            if !forbidden.is_empty() {
                return Err(format!("is not allowed to modify labels: {}", forbidden.join(", ")));
            }
        }
        Ok(())
    }

    fn claim_status(&self) -> Result<(), String> {
        if !self.write.updates() {
            return Err(format!("unexpected operation {:?}", self.operation()));
        }
        let rest = |claim: &Value| {
            let mut claim = claim.clone();
            for (of, members) in [
                ("/metadata", &["managedFields", "resourceVersion"][..]),
                (
                    "/status",
                    &["allocatedResourceStatuses", "allocatedResources", "capacity", "conditions"][..],
                ),
            ] {
                if let Some(of) = claim.pointer_mut(of).and_then(Value::as_object_mut) {
                    members.iter().for_each(|member| drop(of.remove(*member)));
                }
            }
            claim
        };
        match is_same(&rest(self.old()), &rest(self.object)) {
            true => Ok(()),
            false => Err(format!(
                "node {:?} is not allowed to update fields other than status.quantity and status.conditions",
                self.node
            )),
        }
    }

    fn lease(&self) -> Result<(), String> {
        if self.write.of.namespace != NODE_LEASES {
            return Err(format!("can only access leases in the {NODE_LEASES:?} system namespace"));
        }
        match self.name() == self.node {
            true => Ok(()),
            false => Err("can only access node lease with the same name as the requesting node".to_owned()),
        }
    }

    fn csi_node(&self) -> Result<(), String> {
        match self.name() == self.node {
            true => Ok(()),
            false => Err("can only access CSINode with the same name as the requesting node".to_owned()),
        }
    }

    fn slice(&self) -> Result<(), String> {
        if self.write.creates() && text(&self.object["spec"], "nodeName") != self.node {
            return Err(
                "can only create ResourceSlice with the same NodeName as the requesting node".to_owned()
            );
        }
        Ok(())
    }

    /// What the signers of kubelets sign is called as the node is.
    fn certificate(&self) -> Result<(), String> {
        let signer = text(&self.object["spec"], "signerName");
        let is_of_kubelets =
            matches!(signer, "kubernetes.io/kubelet-serving" | "kubernetes.io/kube-apiserver-client-kubelet");
        if !self.write.creates() || !is_of_kubelets {
            return Ok(());
        }
        let name = requested_common_name(self.object).map_err(|why| format!("unable to parse csr: {why}"))?;
        let wanted = format!("system:node:{}", self.node);
        match name == wanted {
            true => Ok(()),
            false => Err(format!("can only create a node CSR with CN={wanted}")),
        }
    }
}
