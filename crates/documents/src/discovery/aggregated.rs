//! Discovery in two documents, for the core group and for the named ones.
//!
//! In: a catalog. Out: `APIGroupDiscoveryList` (`apidiscovery.k8s.io/v2`) as JSON, and its ETag.
//! Never: v2beta1, which kube-apiserver 1.36 does not serve either.

use forebay_apimachinery::GroupVersionKind;
use forebay_catalog::{Catalog, Served};
use serde::Serialize;

use super::extensions::{Extension, ExtensionResource};
use super::{Group, Serves, Version, groups, subresources, to_json, verbs};

/// As the answer names it; its parameters are in this order whatever the request had.
pub const CONTENT_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Which of the two documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupsPart {
    /// `/api`.
    Core,
    /// `/apis`.
    Named,
}

#[derive(Serialize)]
struct GroupDiscoveryList<'a> {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    metadata: Metadata<'a>,
    items: Vec<GroupDiscovery<'a>>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
}

#[derive(Serialize)]
struct GroupDiscovery<'a> {
    metadata: Metadata<'a>,
    versions: Vec<VersionDiscovery<'a>>,
}

#[derive(Serialize)]
struct VersionDiscovery<'a> {
    version: &'a str,
    resources: Resources<'a>,
    freshness: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Resources<'a> {
    Here(Vec<ResourceDiscovery<'a>>),
    There(&'a [ExtensionResource]),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDiscovery<'a> {
    resource: &'a str,
    response_kind: ResponseKind<'a>,
    scope: &'static str,
    singular_resource: &'a str,
    verbs: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<SubresourceDiscovery<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceDiscovery<'a> {
    subresource: &'a str,
    response_kind: ResponseKind<'a>,
    verbs: Vec<&'static str>,
}

#[derive(Serialize)]
struct ResponseKind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

/// One of the two documents: each group with its versions and their resources, the most important group
/// first.
///
/// - `extensions`: what other servers serve.
pub fn group_discovery_list(catalog: &Catalog, extensions: &[Extension], part: GroupsPart) -> Vec<u8> {
    let wanted = |group: &Group<'_>| group.name.is_empty() == (part == GroupsPart::Core);
    let mut groups: Vec<Group<'_>> = groups(catalog, extensions).into_iter().filter(wanted).collect();
    groups.sort_by_key(|group| (u32::MAX - group.priority, group.name));
    to_json(&GroupDiscoveryList {
        kind: "APIGroupDiscoveryList",
        api_version: "apidiscovery.k8s.io/v2",
        metadata: Metadata { name: "" },
        items: groups.iter().map(group_discovery).collect(),
    })
}

fn group_discovery<'a>(group: &Group<'a>) -> GroupDiscovery<'a> {
    GroupDiscovery {
        metadata: Metadata { name: group.name },
        versions: group.versions.iter().map(version_discovery).collect(),
    }
}

fn version_discovery<'a>(version: &Version<'a>) -> VersionDiscovery<'a> {
    let (resources, freshness) = match &version.serves {
        Serves::Here(all) => {
            (Resources::Here(all.iter().map(|served| resource_discovery(served)).collect()), "Current")
        }
        Serves::There(extension) => {
            (Resources::There(&extension.resources), if extension.is_stale { "Stale" } else { "Current" })
        }
    };
    VersionDiscovery { version: version.name, resources, freshness }
}

fn resource_discovery(served: &Served) -> ResourceDiscovery<'_> {
    let below = subresources(served).into_iter().map(|subresource| SubresourceDiscovery {
        subresource: &subresource.name,
        response_kind: response_kind(served, &subresource.gvk),
        verbs: subresource.verbs.clone(),
    });
    ResourceDiscovery {
        resource: served.resource(),
        response_kind: response_kind(served, &served.gvk),
        scope: if served.namespaced { "Namespaced" } else { "Cluster" },
        singular_resource: &served.singular,
        verbs: verbs(served),
        short_names: served.short_names.iter().map(AsRef::as_ref).collect(),
        categories: served.categories.iter().map(AsRef::as_ref).collect(),
        subresources: below.collect(),
    }
}

/// The kind of an answer. For a built-in resource its own group and version are left empty, and clients fill
/// them in.
fn response_kind<'a>(served: &Served, gvk: &'a GroupVersionKind) -> ResponseKind<'a> {
    let own = (&gvk.group, &gvk.version) == (&served.gvr.group, &served.gvr.version);
    let (group, version): (&str, &str) =
        if own && !served.is_custom() { ("", "") } else { (&gvk.group, &gvk.version) };
    ResponseKind { group, version, kind: &gvk.kind }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::Value;

    use super::*;

    fn list(part: GroupsPart) -> Value {
        serde_json::from_slice(&group_discovery_list(&crate::built_ins(), &[], part)).expect("JSON")
    }

    fn names(list: &Value) -> Vec<&str> {
        list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|i| i["metadata"]["name"].as_str().unwrap_or(""))
            .collect()
    }

    #[test]
    fn a_resource_has_kube_apiservers_members_in_order() {
        let text =
            String::from_utf8(group_discovery_list(&crate::built_ins(), &[], GroupsPart::Named)).unwrap();
        let from = text.find(r#"{"resource":"deployments""#).expect("deployments");
        let to = from + text[from..].find(r#"{"resource":"replicasets""#).expect("the next one");
        expect![[r#"{"resource":"deployments","responseKind":{"group":"","version":"","kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["deploy"],"categories":["all"],"subresources":[{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get","patch","update"]},{"subresource":"status","responseKind":{"group":"","version":"","kind":"Deployment"},"verbs":["get","patch","update"]}]},"#]].assert_eq(&text[from..to]);
        assert!(text.starts_with(
            r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":["#
        ));
        assert!(text.ends_with("\"freshness\":\"Current\"}]}]}\n"));
    }

    #[test]
    fn the_core_group_is_alone_in_its_document() {
        let (core, named) = (list(GroupsPart::Core), list(GroupsPart::Named));
        assert_eq!(names(&core), [""]);
        assert_eq!(core["items"][0]["metadata"], serde_json::json!({}));
        assert!(!names(&named).contains(&""));
        assert_eq!(names(&named)[0], "apiregistration.k8s.io");
    }
}
