//! What is served, told to clients: groups, versions and resources.
//!
//! In: a catalog. Out: the documents of `/api`, `/apis` and below as JSON, with the members in
//! kube-apiserver's order and the newline it ends with. Never: kept here (the caller does, per catalog), nor
//! chosen by `Accept`.
//!
//! Two generations live side by side. The older one has a document for each group and each version
//! ([`legacy`]); the newer one has everything in two ([`aggregated`]), which is what current clients ask for
//! first.
//!
//! Source: apiserver v1.36.3 `endpoints/discovery`, kube-aggregator `apiserver/handler_apis.go`,
//! apiextensions-apiserver `customresource_discovery_controller.go`.

pub mod aggregated;
pub mod legacy;
mod paths;

use std::sync::Arc;

use forebay_apimachinery::version_order::kube_aware;
use forebay_catalog::{Catalog, Served, SubresourceInfo};
use serde::Serialize;

pub use paths::root_paths;

/// The named groups that are served from the first version on.
#[cfg(test)]
const ISSUE_GROUPS: [&str; 7] = [
    "apiextensions.k8s.io",
    "apps",
    "batch",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "rbac.authorization.k8s.io",
];

/// One group of the catalog: its versions, the preferred one first.
pub(crate) struct Group<'c> {
    pub name: &'c str,
    pub versions: Vec<Version<'c>>,
}

/// One version of a group: its resources, ordered by name.
pub(crate) struct Version<'c> {
    pub name: &'c str,
    pub resources: Vec<&'c Arc<Served>>,
}

/// The groups in the catalog's order, which is by name; the core group, named "", is the first.
pub(crate) fn groups(catalog: &Catalog) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for served in catalog.iter() {
        let (group, version) = (&*served.gvr.group, &*served.gvr.version);
        if groups.last().is_none_or(|last| last.name != group) {
            groups.push(Group { name: group, versions: Vec::new() });
        }
        let Some(last) = groups.last_mut() else { continue };
        if last.versions.last().is_none_or(|known| known.name != version) {
            last.versions.push(Version { name: version, resources: Vec::new() });
        }
        if let Some(known) = last.versions.last_mut() {
            known.resources.push(served);
        }
    }
    for group in &mut groups {
        group.versions.sort_by(|a, b| kube_aware(b.name, a.name));
    }
    groups
}

/// The verbs that CRDs list, in the order that they list them in.
const CUSTOM_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

fn verbs(served: &Served) -> Vec<&'static str> {
    let mut verbs = served.verbs.clone();
    if served.is_custom() {
        verbs.sort_by_key(|verb| CUSTOM_VERBS.iter().position(|known| known == verb));
    }
    verbs
}

/// The subresources in the order that they are listed in: by name, but a CRD's status before its scale.
fn subresources(served: &Served) -> Vec<&SubresourceInfo> {
    let mut subresources: Vec<&SubresourceInfo> = served.subresources.iter().collect();
    subresources.sort_by(|a, b| a.name.cmp(&b.name));
    if served.is_custom() {
        subresources.reverse();
    }
    subresources
}

fn to_json(document: &impl Serialize) -> Vec<u8> {
    // Structs of texts, lists and booleans cannot fail to be written into memory.
    let mut out = serde_json::to_vec(document).unwrap_or_default();
    out.push(b'\n');
    out
}
