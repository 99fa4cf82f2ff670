//! What a node may do.
//!
//! In: the graph, a question. Out: that it is allowed, or upstream's reason; nothing where nobody is a node.
//! What an object says that is written is NodeRestriction's to look at. Never: allocates for what is allowed.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/auth/authorizer/node/node_authorizer.go`.

use std::borrow::Cow;

use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::selector::{FieldOperator, FieldRequirement};
use forebay_apimachinery::{About, Attributes, ResourceAttributes};

use crate::graph::{NodeGraph, Related};
use crate::rules;

/// Where the leases of nodes are.
const NODE_LEASES: &str = "kube-node-lease";

/// What is said of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeRuling {
    /// Nobody who asks is a node.
    NoNode,
    Allowed,
    /// With why, if there is something to say.
    NotAllowed(Cow<'static, str>),
}

use NodeRuling::{Allowed, NotAllowed};

const UNSAID: NodeRuling = NotAllowed(Cow::Borrowed(""));

/// A question of a node about a resource.
struct Asked<'a> {
    graph: &'a NodeGraph,
    node: &'a str,
    verb: &'a str,
    of: ResourceAttributes<'a>,
}

/// See the module's doc.
pub fn decide(graph: &NodeGraph, asked: &Attributes<'_>) -> NodeRuling {
    let node = match asked.caller.node() {
        None => return NodeRuling::NoNode,
        Some("") => {
            let user = go_quote(&asked.caller.name);
            return NotAllowed(format!("unknown node for user {user}").into());
        }
        Some(node) => node,
    };
    let About::Resource(of) = asked.about else { return by_rules(asked) };
    let this = Asked { graph, node, verb: asked.verb.as_str(), of };
    match (of.group, of.resource) {
        ("", "secrets") => this.read(|| this.leads_to(Related::Secret)),
        ("", "configmaps") => this.read(|| this.leads_to(Related::ConfigMap)),
        ("", "persistentvolumeclaims") if of.subresource == "status" => this.claim_status(),
        ("", "persistentvolumeclaims") => this.get(|| this.leads_to(Related::Claim)),
        ("", "persistentvolumes") => this.get(|| graph.has_volume(node, of.name)),
        ("resource.k8s.io", "resourceclaims") => this.get(|| this.leads_to(Related::ResourceClaim)),
        ("storage.k8s.io", "volumeattachments") => this.get(|| graph.has_attachment(node, of.name)),
        ("", "serviceaccounts") => this.service_account(),
        ("coordination.k8s.io", "leases") => this.lease(),
        ("storage.k8s.io", "csinodes") => this.csi_node(),
        ("resource.k8s.io", "resourceslices") => this.slice(),
        ("", "nodes") => this.own_node(),
        ("", "pods") => this.pod(),
        // Served behind a gate that is off by default.
        ("certificates.k8s.io", "podcertificaterequests") => UNSAID,
        _ => by_rules(asked),
    }
}

fn by_rules(asked: &Attributes<'_>) -> NodeRuling {
    if rules::allow(asked) { Allowed } else { UNSAID }
}

fn no(why: &'static str) -> NodeRuling {
    NotAllowed(Cow::Borrowed(why))
}

impl Asked<'_> {
    fn leads_to(&self, of: Related) -> bool {
        self.graph.leads_to(self.node, of, self.of.namespace, self.of.name)
    }

    /// A `get`, or a LIST or a WATCH of one object.
    fn read(&self, is_related: impl FnOnce() -> bool) -> NodeRuling {
        match self.verb {
            "get" | "list" | "watch" => {}
            _ => return no("can only read resources of this type"),
        }
        if !self.of.subresource.is_empty() {
            return no("cannot read subresource");
        }
        if self.of.namespace.is_empty() {
            return no("can only read namespaced object of this type");
        }
        self.related(is_related)
    }

    fn get(&self, is_related: impl FnOnce() -> bool) -> NodeRuling {
        if self.verb != "get" {
            return no("can only get individual resources of this type");
        }
        if !self.of.subresource.is_empty() {
            return no("cannot get subresource");
        }
        self.related(is_related)
    }

    fn related(&self, is_related: impl FnOnce() -> bool) -> NodeRuling {
        if self.of.name.is_empty() {
            return no("No Object name found");
        }
        if is_related() { Allowed } else { self.unrelated() }
    }

    fn unrelated(&self) -> NodeRuling {
        let node = self.node;
        NotAllowed(format!("no relationship found between node '{node}' and this object").into())
    }

    fn claim_status(&self) -> NodeRuling {
        match self.verb {
            "update" | "patch" => self.related(|| self.leads_to(Related::Claim)),
            _ => no("can only get/update/patch this type"),
        }
    }

    fn service_account(&self) -> NodeRuling {
        if self.verb == "get" && self.of.subresource.is_empty() {
            return self.read(|| self.leads_to(Related::ServiceAccount));
        }
        if self.verb != "create" || self.of.name.is_empty() {
            return no("can only create tokens for individual service accounts");
        }
        if self.of.subresource != "token" {
            return no("can only create token subresource of serviceaccount");
        }
        if self.leads_to(Related::ServiceAccount) { Allowed } else { self.unrelated() }
    }

    fn is_of_own(&self) -> bool {
        matches!(self.verb, "get" | "create" | "update" | "patch" | "delete")
    }

    /// What is called as the node is. The name of what is created is not known yet.
    fn is_own(&self) -> bool {
        self.verb == "create" || self.of.name == self.node
    }

    fn lease(&self) -> NodeRuling {
        if !self.is_of_own() {
            return no("can only get, create, update, patch, or delete a node lease");
        }
        if self.of.namespace != NODE_LEASES {
            return no("can only access leases in the \"kube-node-lease\" system namespace");
        }
        match self.is_own() {
            true => Allowed,
            false => no("can only access node lease with the same name as the requesting node"),
        }
    }

    fn csi_node(&self) -> NodeRuling {
        if !self.is_of_own() {
            return no("can only get, create, update, patch, or delete a CSINode");
        }
        if !self.of.subresource.is_empty() {
            return no("cannot authorize CSINode subresources");
        }
        match self.is_own() {
            true => Allowed,
            false => no("can only access CSINode with the same name as the requesting node"),
        }
    }

    fn slice(&self) -> NodeRuling {
        if !self.of.subresource.is_empty() {
            return no("cannot authorize ResourceSlice subresources");
        }
        match self.verb {
            "create" => Allowed,
            "get" | "update" | "patch" | "delete" => {
                self.related(|| self.graph.has_slice(self.node, self.of.name))
            }
            "watch" | "list" | "deletecollection" if self.selects_itself() => Allowed,
            "watch" | "list" | "deletecollection" => {
                no("can only list/watch/deletecollection resourceslices with nodeName field selector")
            }
            _ => no(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection",
            ),
        }
    }

    /// Whether a field selector confines it to what is of this node: `spec.nodeName` is called so of slices
    /// as well as of pods.
    fn selects_itself(&self) -> bool {
        let confines = |one: &FieldRequirement| {
            &*one.path == "spec.nodeName" && one.operator == FieldOperator::Equals && *one.value == *self.node
        };
        self.of.fields.iter().any(confines)
    }

    fn own_node(&self) -> NodeRuling {
        match (self.of.subresource, self.verb) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Allowed,
            ("", "get" | "list" | "watch") => {
                let (node, name) = (self.node, self.of.name);
                match name {
                    _ if name == node => Allowed,
                    "" => {
                        let why = format!("node '{node}' cannot read all nodes, only its own Node object");
                        NotAllowed(why.into())
                    }
                    _ => {
                        let why = format!("node '{node}' cannot read '{name}', only its own Node object");
                        NotAllowed(why.into())
                    }
                }
            }
            _ => UNSAID,
        }
    }

    fn pod(&self) -> NodeRuling {
        let is_own = || self.graph.has_pod(self.node, self.of.namespace, self.of.name);
        match (self.of.subresource, self.verb) {
            ("", "get") => self.get(is_own),
            ("", "list" | "watch") if self.selects_itself() => Allowed,
            ("", "list" | "watch") if !self.of.name.is_empty() => self.related(is_own),
            ("", "list" | "watch") => no("can only list/watch pods with spec.nodeName field selector"),
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => Allowed,
            _ => UNSAID,
        }
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
