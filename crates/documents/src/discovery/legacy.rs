//! The older discovery documents: one for the groups, one for each group, one for each version.
//!
//! In: a catalog. Out: APIVersions, APIGroupList, APIGroup and APIResourceList as JSON.
//! Never: a group, version or resource that is not served.

use base64::Engine;
use forebay_apimachinery::GroupVersionKind;
use forebay_apimachinery::resource::api_version;
use forebay_catalog::{Catalog, Served};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{Extension, Group, groups, subresources, to_json, verbs};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiVersions<'a> {
    kind: &'static str,
    versions: Vec<&'a str>,
    #[serde(rename = "serverAddressByClientCIDRs")]
    server_addresses: [ServerAddress<'a>; 1],
}

#[derive(Serialize)]
struct ServerAddress<'a> {
    #[serde(rename = "clientCIDR")]
    client_cidr: &'static str,
    #[serde(rename = "serverAddress")]
    server_address: &'a str,
}

#[derive(Serialize)]
struct ApiGroupList<'a> {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    groups: Vec<ApiGroup<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiGroup<'a> {
    // Only where the group is a document of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    name: &'a str,
    versions: Vec<GroupVersion<'a>>,
    preferred_version: GroupVersion<'a>,
}

#[derive(Serialize)]
struct GroupVersion<'a> {
    #[serde(rename = "groupVersion")]
    group_version: String,
    version: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiResourceList<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    group_version: String,
    resources: Vec<ApiResource<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiResource<'a> {
    name: String,
    singular_name: &'a str,
    namespaced: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    kind: &'a str,
    verbs: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_version_hash: Option<String>,
}

/// `/api`: the versions of the core group.
///
/// - `server_address`: host and port that clients reach this server at.
pub fn core_versions(catalog: &Catalog, server_address: &str) -> Vec<u8> {
    let core = groups(catalog, &[]).into_iter().find(|group| group.name.is_empty());
    let versions = core.map(|core| core.versions.iter().map(|version| version.name).collect());
    to_json(&ApiVersions {
        kind: "APIVersions",
        versions: versions.unwrap_or_default(),
        server_addresses: [ServerAddress { client_cidr: "0.0.0.0/0", server_address }],
    })
}

/// `/apis`: the groups, the most important first.
///
/// - `extensions`: what other servers serve.
pub fn group_list(catalog: &Catalog, extensions: &[Extension]) -> Vec<u8> {
    let mut named: Vec<Group<'_>> =
        groups(catalog, extensions).into_iter().filter(|group| !group.name.is_empty()).collect();
    named.sort_by_cached_key(|group| {
        // Among equals the name of the first APIService decides, which begins with its version.
        let names = group.versions.iter().map(|version| format!("{}.{}", version.name, group.name));
        (u32::MAX - group.priority, names.min())
    });
    to_json(&ApiGroupList {
        kind: "APIGroupList",
        api_version: "v1",
        groups: named.iter().filter_map(|group| api_group(group, None)).collect(),
    })
}

/// `/apis/<group>`; `None` when nothing of it is served.
///
/// - `extensions`: what other servers serve.
pub fn group(catalog: &Catalog, extensions: &[Extension], name: &str) -> Option<Vec<u8>> {
    let group =
        groups(catalog, extensions).into_iter().find(|group| group.name == name && !name.is_empty())?;
    Some(to_json(&api_group(&group, Some("APIGroup"))?))
}

fn api_group<'a>(group: &Group<'a>, kind: Option<&'static str>) -> Option<ApiGroup<'a>> {
    let group_version = |version: &str| api_version(group.name, version);
    let mut versions = group
        .versions
        .iter()
        .map(|version| GroupVersion { group_version: group_version(version.name), version: version.name });
    let preferred = group.versions.first()?.name;
    Some(ApiGroup {
        kind,
        api_version: kind.map(|_| "v1"),
        name: group.name,
        versions: versions.by_ref().collect(),
        preferred_version: GroupVersion { group_version: group_version(preferred), version: preferred },
    })
}

/// `/api/v1` and `/apis/<group>/<version>`; `None` when nothing of it is served.
pub fn resource_list(catalog: &Catalog, group: &str, version: &str) -> Option<Vec<u8>> {
    if !catalog.has_version(group, version) {
        return None;
    }
    let in_version = |served: &&_| is_in(served, group, version);
    let resources = catalog.iter().map(AsRef::as_ref).filter(in_version).flat_map(api_resources).collect();
    Some(to_json(&ApiResourceList {
        kind: "APIResourceList",
        api_version: (!group.is_empty()).then_some("v1"), // kube-apiserver leaves it out of /api/v1
        group_version: api_version(group, version),
        resources,
    }))
}

fn is_in(served: &Served, group: &str, version: &str) -> bool {
    (&*served.gvr.group, &*served.gvr.version) == (group, version)
}

/// The resource and its subresources.
fn api_resources(served: &Served) -> impl Iterator<Item = ApiResource<'_>> {
    let main = ApiResource {
        name: served.resource().to_string(),
        singular_name: &served.singular,
        namespaced: served.namespaced,
        group: None,
        version: None,
        kind: &served.gvk.kind,
        verbs: verbs(served),
        short_names: served.short_names.iter().map(AsRef::as_ref).collect(),
        categories: served.categories.iter().map(AsRef::as_ref).collect(),
        storage_version_hash: storage_version_hash(served),
    };
    let below = subresources(served).into_iter().map(|subresource| {
        let foreign =
            (&subresource.gvk.group, &subresource.gvk.version) != (&served.gvr.group, &served.gvr.version);
        ApiResource {
            name: format!("{}/{}", served.resource(), subresource.name),
            singular_name: "",
            namespaced: served.namespaced,
            group: foreign.then_some(&*subresource.gvk.group),
            version: foreign.then_some(&*subresource.gvk.version),
            kind: &subresource.gvk.kind,
            verbs: subresource.verbs.clone(),
            short_names: Vec::new(),
            categories: Vec::new(),
            storage_version_hash: None,
        }
    });
    std::iter::once(main).chain(below)
}

/// What kube-apiserver 1.36 stores as v1beta1. The hash tells clients of a change of versions, so it is the
/// same one here.
const PINNED: [(&str, &str); 3] = [
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
];

/// Changes when the objects are stored as another group, version or kind; `None` for what has no storage.
fn storage_version_hash(served: &Served) -> Option<String> {
    served.kind.storage_path()?;
    let GroupVersionKind { group, version, kind } = served.kind.stored_kind();
    let is_pinned = PINNED.contains(&(served.group(), served.resource()));
    let version = if is_pinned { "v1beta1" } else { &version };
    let stored = format!("{group}/{version}/{kind}");
    let hash = Sha256::digest(stored.as_bytes());
    Some(base64::engine::general_purpose::STANDARD.encode(&hash[..8]))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::Value;

    use super::*;
    use crate::discovery::ISSUE_GROUPS;

    fn text(bytes: Option<Vec<u8>>) -> String {
        String::from_utf8(bytes.expect("served")).expect("text")
    }

    #[test]
    fn a_resource_list_has_kube_apiservers_members_in_order() {
        let leases = text(resource_list(&crate::built_ins(), "coordination.k8s.io", "v1"));
        expect![[r#"
            {"kind":"APIResourceList","apiVersion":"v1","groupVersion":"coordination.k8s.io/v1","resources":[{"name":"leases","singularName":"lease","namespaced":true,"kind":"Lease","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"storageVersionHash":"gqkMMb/YqFM="}]}
        "#]]
        .assert_eq(&leases);
    }

    #[test]
    fn subresources_name_the_group_of_a_foreign_body() {
        let list: Value =
            serde_json::from_slice(&resource_list(&crate::built_ins(), "", "v1").expect("core")).unwrap();
        assert_eq!(list.get("apiVersion"), None);
        let find = |name: &str| {
            let resources = list["resources"].as_array().expect("list").iter();
            resources.clone().find(|resource| resource["name"] == name).expect(name).clone()
        };
        assert_eq!(find("pods/eviction")["group"], "policy");
        assert_eq!(find("pods/eviction")["version"], "v1");
        assert_eq!(find("pods/status").get("group"), None);
        assert_eq!(find("pods/status")["singularName"], "");
        assert_eq!(find("bindings").get("storageVersionHash"), None);
        assert_eq!(find("configmaps")["storageVersionHash"], "qFsyl6wFWjQ=");
        assert_eq!(find("events")["storageVersionHash"], "r2yiGXH7wu8=");
    }

    #[test]
    fn versions_of_one_resource_are_stored_as_one() {
        for (group, version, hash) in [
            ("events.k8s.io", "v1", "r2yiGXH7wu8="),
            ("autoscaling", "v1", "qwQve8ut294="),
            ("autoscaling", "v2", "qwQve8ut294="),
        ] {
            let list = text(resource_list(&crate::built_ins(), group, version));
            assert!(list.contains(&format!(r#""storageVersionHash":"{hash}""#)), "{list}");
        }
    }

    #[test]
    fn groups_are_ordered_by_priority_and_core_is_not_among_them() {
        let list: Value = serde_json::from_slice(&group_list(&crate::built_ins(), &[])).unwrap();
        let names: Vec<_> =
            list["groups"].as_array().unwrap().iter().map(|g| g["name"].as_str().unwrap()).collect();
        expect![[r#"["apps", "events.k8s.io", "batch", "rbac.authorization.k8s.io", "apiextensions.k8s.io", "coordination.k8s.io", "discovery.k8s.io"]"#]]
        .assert_eq(&format!("{:?}", names.into_iter().filter(|name| ISSUE_GROUPS.contains(name)).collect::<Vec<_>>()));
    }

    #[test]
    fn a_group_is_a_document_of_its_own() {
        expect![[r#"
            {"kind":"APIGroup","apiVersion":"v1","name":"batch","versions":[{"groupVersion":"batch/v1","version":"v1"}],"preferredVersion":{"groupVersion":"batch/v1","version":"v1"}}
        "#]]
        .assert_eq(&text(group(&crate::built_ins(), &[], "batch")));
    }

    #[test]
    fn core_versions_name_the_servers_address() {
        expect![[r#"
            {"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"127.0.0.1:6443"}]}
        "#]]
        .assert_eq(&text(Some(core_versions(&crate::built_ins(), "127.0.0.1:6443"))));
    }

    #[test]
    fn what_is_not_served_has_no_document() {
        let catalog = crate::built_ins();
        assert_eq!(group(&catalog, &[], ""), None);
        assert_eq!(group(&catalog, &[], "nope.example.com"), None);
        assert_eq!(resource_list(&catalog, "apps", "v2"), None);
        assert_eq!(resource_list(&catalog, "nope", "v1"), None);
    }
}
