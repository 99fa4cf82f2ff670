//! What other servers serve, told to clients of this one.
//!
//! In: what such a server says of a version. Out: the same, as far as clients are told it. Never: asked for
//! here; whoever follows the APIServices asks.
//!
//! Source: kube-aggregator v0.36.3 `apiserver/handler_discovery.go`; api v0.36.3 `apidiscovery/v2`.

use std::sync::Arc;

use arc_swap::ArcSwap;
use serde::{Deserialize, Deserializer, Serialize};

use crate::openapi::part::OpenApiPart;

/// A version that another server serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extension {
    pub group: Box<str>,
    pub version: Box<str>,
    pub group_priority: u32,
    pub version_priority: u32,
    /// What was known last; empty where nothing is.
    pub resources: Arc<[ExtensionResource]>,
    /// Bytes that they take to tell.
    pub told_bytes: usize,
    /// It could not be asked lately.
    pub is_stale: bool,
    /// Where its document of OpenAPI v3 is, with a hash, if it has one.
    pub openapi_url: Option<Box<str>>,
    /// What it says in OpenAPI v2.
    pub openapi_v2: Option<Arc<OpenApiPart>>,
}

/// All of them, ordered by group and version; each once.
#[derive(Default)]
pub struct Extensions(ArcSwap<Vec<Extension>>);

/// A resource, as aggregated discovery has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtensionResource {
    #[serde(deserialize_with = "or_none")]
    pub resource: Box<str>,
    #[serde(deserialize_with = "or_none")]
    pub response_kind: ExtensionKind,
    #[serde(deserialize_with = "or_none")]
    pub scope: Box<str>,
    #[serde(deserialize_with = "or_none")]
    pub singular_resource: Box<str>,
    #[serde(deserialize_with = "or_none")]
    pub verbs: Vec<Box<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_none")]
    pub short_names: Vec<Box<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_none")]
    pub categories: Vec<Box<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_none")]
    pub subresources: Vec<ExtensionSubresource>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtensionSubresource {
    #[serde(deserialize_with = "or_none")]
    pub subresource: Box<str>,
    #[serde(deserialize_with = "or_none")]
    pub response_kind: ExtensionKind,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_none")]
    pub accepted_types: Vec<ExtensionKind>,
    #[serde(deserialize_with = "or_none")]
    pub verbs: Vec<Box<str>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExtensionKind {
    #[serde(deserialize_with = "or_none")]
    pub group: Box<str>,
    #[serde(deserialize_with = "or_none")]
    pub version: Box<str>,
    #[serde(deserialize_with = "or_none")]
    pub kind: Box<str>,
}

/// What a server answers at `/apis`, as far as it is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GroupDiscoveryList {
    #[serde(deserialize_with = "or_none")]
    items: Vec<GroupDiscovery>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GroupDiscovery {
    #[serde(deserialize_with = "or_none")]
    metadata: Named,
    #[serde(deserialize_with = "or_none")]
    versions: Vec<VersionDiscovery>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    #[serde(deserialize_with = "or_none")]
    name: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct VersionDiscovery {
    #[serde(deserialize_with = "or_none")]
    version: Box<str>,
    #[serde(deserialize_with = "or_none")]
    resources: Vec<ExtensionResource>,
}

/// What it answers at `/apis/<group>/<version>`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ApiResourceList {
    #[serde(deserialize_with = "or_none")]
    resources: Vec<ApiResource>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ApiResource {
    #[serde(deserialize_with = "or_none")]
    name: Box<str>,
    #[serde(deserialize_with = "or_none")]
    singular_name: Box<str>,
    #[serde(deserialize_with = "or_none")]
    namespaced: bool,
    #[serde(deserialize_with = "or_none")]
    group: Box<str>,
    #[serde(deserialize_with = "or_none")]
    version: Box<str>,
    #[serde(deserialize_with = "or_none")]
    kind: Box<str>,
    #[serde(deserialize_with = "or_none")]
    verbs: Vec<Box<str>>,
    #[serde(deserialize_with = "or_none")]
    short_names: Vec<Box<str>>,
    #[serde(deserialize_with = "or_none")]
    categories: Vec<Box<str>>,
}

impl Extensions {
    /// - `all`: ordered by group and version, each once.
    pub fn replace(&self, all: Vec<Extension>) {
        self.0.store(Arc::new(all));
    }

    /// As they are now.
    pub fn now(&self) -> Arc<Vec<Extension>> {
        self.0.load_full()
    }

    /// The resource of a kind in `api_version`, `group/version`, as far as is known.
    ///
    /// Cost: the versions there are, and the resources of that one.
    pub fn resource_of(&self, api_version: &str, kind: &str) -> Option<ExtensionResource> {
        let (group, version) = api_version.split_once('/')?;
        let all = self.0.load();
        // Once: for a question.
        let of = all.iter().find(|known| (&*known.group, &*known.version) == (group, version))?;
        of.resources.iter().find(|known| &*known.response_kind.kind == kind).cloned()
    }
}

impl Extension {
    /// What of its group and version a server says in aggregated discovery; nothing where that says nothing
    /// of them.
    ///
    /// # Errors
    /// It is no such document.
    pub fn read_aggregated(&self, document: &[u8]) -> Result<Vec<ExtensionResource>, String> {
        let list: GroupDiscoveryList = serde_json::from_slice(document).map_err(|why| why.to_string())?;
        let groups = list.items.into_iter().filter(|group| group.metadata.name == self.group);
        let mut versions = groups.flat_map(|group| group.versions);
        // Once: for a document.
        let found = versions.find(|version| version.version == self.version);
        Ok(found.map(|found| found.resources).unwrap_or_default())
    }

    /// The same of the older document of a version.
    ///
    /// # Errors
    /// It is no such document.
    pub fn read_legacy(&self, document: &[u8]) -> Result<Vec<ExtensionResource>, String> {
        let list: ApiResourceList = serde_json::from_slice(document).map_err(|why| why.to_string())?;
        let mut resources: Vec<ExtensionResource> = Vec::new();
        let mut places = std::collections::HashMap::<Box<str>, usize>::new();
        for known in list.resources {
            let response_kind =
                ExtensionKind { group: known.group, version: known.version, kind: known.kind };
            let (resource, subresource) = match known.name.split_once('/') {
                Some((resource, subresource)) => (resource, Some(subresource)),
                None => (&*known.name, None),
            };
            let scope = if known.namespaced { "Namespaced" } else { "Cluster" };
            let at = *places.entry(resource.into()).or_insert_with(|| {
                let (resource, scope) = (resource.into(), scope.into());
                resources.push(ExtensionResource { resource, scope, ..ExtensionResource::default() });
                resources.len() - 1
            });
            let entry = &mut resources[at];
            match subresource {
                Some(subresource) => {
                    // Of one without a kind nothing is said of what it answers.
                    let is_said = !response_kind.kind.is_empty();
                    let (subresource, verbs) = (subresource.into(), known.verbs);
                    let response_kind = if is_said { response_kind } else { ExtensionKind::default() };
                    let accepted_types = Vec::new();
                    let told = ExtensionSubresource { subresource, response_kind, accepted_types, verbs };
                    entry.subresources.push(told);
                }
                None => {
                    entry.response_kind = response_kind;
                    entry.singular_resource = known.singular_name;
                    entry.verbs = known.verbs;
                    entry.short_names = known.short_names;
                    entry.categories = known.categories;
                }
            }
        }
        Ok(resources)
    }
}

/// `null` is nothing, which Go writes for a list without memory, and takes for whatever there is.
///
/// # Errors
/// What is there is of another type.
pub fn or_none<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::discovery::aggregated::{GroupsPart, group_discovery_list};
    use crate::discovery::{legacy, root_paths};

    fn wardle(version: &str, priority: u32) -> Extension {
        Extension {
            group: "wardle.example.com".into(),
            version: version.into(),
            group_priority: 2_000,
            version_priority: priority,
            ..Extension::default()
        }
    }

    fn json_of(bytes: Vec<u8>) -> Value {
        serde_json::from_slice(&bytes).expect("JSON")
    }

    fn group(list: &Value, name: &str) -> Value {
        let items = list["items"].as_array().or(list["groups"].as_array()).expect("a list");
        let is_it = |item: &&Value| item["metadata"]["name"] == name || item["name"] == name;
        items.iter().find(is_it).unwrap_or(&Value::Null).clone()
    }

    #[test]
    fn a_kind_leads_to_its_resource_in_the_version_that_is_named() {
        let mut v1 = wardle("v1", 10);
        let response_kind = ExtensionKind { kind: "Fischer".into(), ..ExtensionKind::default() };
        let (resource, scope) = ("fischers".into(), "Cluster".into());
        v1.resources =
            vec![ExtensionResource { resource, response_kind, scope, ..ExtensionResource::default() }].into();
        let all = Extensions::default();
        all.replace(vec![v1, wardle("v2", 20)]);
        let found =
            |api_version: &str, kind: &str| all.resource_of(api_version, kind).map(|known| known.resource);
        assert_eq!(found("wardle.example.com/v1", "Fischer").as_deref(), Some("fischers"));
        for (api_version, kind) in [
            ("wardle.example.com/v1", "Flunder"),
            ("wardle.example.com/v2", "Fischer"),
            ("example.com/v1", "Fischer"),
            ("v1", "Fischer"),
        ] {
            assert_eq!(found(api_version, kind), None, "{api_version} {kind}");
        }
    }

    #[test]
    fn an_older_document_becomes_resources_with_their_subresources() {
        let document = json!({
            "kind": "APIResourceList", "groupVersion": "wardle.example.com/v1", "resources": [
                { "name": "flunders/status", "singularName": "", "namespaced": true, "kind": "Flunder",
                  "verbs": ["get"] },
                { "name": "flunders", "singularName": "flunder", "namespaced": true, "kind": "Flunder",
                  "verbs": ["get", "list"], "shortNames": ["fl"], "storageVersionHash": "x=" },
                { "name": "fischers", "singularName": "fischer", "namespaced": false, "kind": "Fischer",
                  "verbs": ["get"] },
            ],
        });
        let resources = wardle("v1", 10).read_legacy(document.to_string().as_bytes()).expect("a document");
        assert_eq!(
            serde_json::to_value(&resources).expect("JSON"),
            json!([
                {
                    "resource": "flunders", "responseKind": { "group": "", "version": "", "kind": "Flunder" },
                    "scope": "Namespaced", "singularResource": "flunder", "verbs": ["get", "list"],
                    "shortNames": ["fl"],
                    "subresources": [{
                        "subresource": "status",
                        "responseKind": { "group": "", "version": "", "kind": "Flunder" }, "verbs": ["get"],
                    }],
                },
                {
                    "resource": "fischers", "responseKind": { "group": "", "version": "", "kind": "Fischer" },
                    "scope": "Cluster", "singularResource": "fischer", "verbs": ["get"],
                },
            ])
        );
        assert!(wardle("v1", 10).read_legacy(b"<html>").is_err());
    }

    #[test]
    fn what_a_subresource_takes_is_told_and_one_without_a_kind_answers_none() {
        let document = json!({ "items": [{ "metadata": { "name": "wardle.example.com" }, "versions": [
            { "version": "v1", "resources": [{ "resource": "flunders", "subresources": [{
                "subresource": "scale", "responseKind": { "kind": "Scale" }, "verbs": ["get"],
                "acceptedTypes": [{ "group": "autoscaling", "version": "v1", "kind": "Scale" }],
            }] }] },
        ] }] });
        let wardle = wardle("v1", 10);
        let read = wardle.read_aggregated(document.to_string().as_bytes()).expect("a document");
        let told = serde_json::to_value(&read[0].subresources[0]).expect("JSON");
        let scale = json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" });
        assert_eq!(told["acceptedTypes"], json!([scale]));
        let older = br#"{"resources":[{"name":"flunders/x","group":"other","version":"v9","kind":""}]}"#;
        let read = wardle.read_legacy(older).expect("a document");
        assert_eq!(read[0].subresources[0].response_kind, ExtensionKind::default());
    }

    #[test]
    fn what_go_writes_for_no_list_is_an_empty_one() {
        let wardle = wardle("v1", 10);
        let read = wardle.read_legacy(br#"{"kind":"APIResourceList","resources":null}"#);
        assert_eq!(read, Ok(Vec::new()));
        let resource = r#"{"resources":[{"name":"flunders","namespaced":true,"kind":"Flunder","verbs":null,
                           "shortNames":null,"categories":null,"singularName":null,"group":null}]}"#;
        let read = wardle.read_legacy(resource.as_bytes()).expect("a document");
        assert_eq!((read.len(), read[0].verbs.len()), (1, 0));
        for (list, want) in [
            (r#"{"items":null}"#, 0),
            (r#"{"items":[{"metadata":null,"versions":null}]}"#, 0),
            (
                r#"{"items":[{"metadata":{"name":"wardle.example.com"},
                "versions":[{"version":"v1","resources":null}]}]}"#,
                0,
            ),
            (
                r#"{"items":[{"metadata":{"name":"wardle.example.com"},"versions":[{"version":"v1","resources":[
                {"resource":"flunders","responseKind":null,"verbs":null,"subresources":[
                {"subresource":"status","responseKind":null,"verbs":null}]}]}]}]}"#,
                1,
            ),
        ] {
            let read = wardle.read_aggregated(list.as_bytes()).expect("a document");
            assert_eq!(read.len(), want, "{list}");
        }
        assert!(wardle.read_legacy(br#"{"resources":[{"verbs":"get"}]}"#).is_err());
    }

    #[test]
    fn of_aggregated_discovery_its_own_version_is_read() {
        let document = json!({ "kind": "APIGroupDiscoveryList", "items": [
            { "metadata": { "name": "other.example.com" }, "versions": [{ "version": "v1", "resources": [] }] },
            { "metadata": { "name": "wardle.example.com" }, "versions": [
                { "version": "v1", "resources": [{ "resource": "flunders" }], "freshness": "Current" },
                { "version": "v2", "resources": [{ "resource": "fischers" }] },
            ] },
        ] });
        let read = |version| {
            let read = wardle(version, 10).read_aggregated(document.to_string().as_bytes());
            read.expect("a document").iter().map(|one| one.resource.to_string()).collect::<Vec<_>>()
        };
        assert_eq!((read("v2"), read("v3")), (vec!["fischers".to_owned()], Vec::new()));
    }

    #[test]
    fn versions_of_others_are_listed_by_their_priorities_with_what_they_serve() {
        let catalog = crate::built_ins();
        let flunders = ExtensionResource { resource: "flunders".into(), ..ExtensionResource::default() };
        let mut newer = wardle("v2", 5);
        newer.resources = vec![flunders].into();
        newer.is_stale = true;
        let extensions = [wardle("v1", 10), newer];
        let list = json_of(group_discovery_list(&catalog, &extensions, GroupsPart::Named));
        let versions = group(&list, "wardle.example.com")["versions"].clone();
        assert_eq!((&versions[0]["version"], &versions[0]["freshness"]), (&"v1".into(), &"Current".into()));
        assert_eq!((&versions[1]["version"], &versions[1]["freshness"]), (&"v2".into(), &"Stale".into()));
        assert_eq!(versions[1]["resources"][0]["resource"], "flunders");
        let last = list["items"].as_array().and_then(|items| items.last()).expect("groups");
        assert_eq!(last["metadata"]["name"], "wardle.example.com");
        let groups = json_of(legacy::group_list(&catalog, &extensions));
        assert_eq!(group(&groups, "wardle.example.com")["preferredVersion"]["version"], "v1");
        let alone = legacy::group(&catalog, &extensions, "wardle.example.com").expect("a document");
        assert_eq!(json_of(alone)["versions"][1]["groupVersion"], "wardle.example.com/v2");
        let paths = String::from_utf8(root_paths(&catalog, &extensions, [])).expect("text");
        assert!(paths.contains("\"/apis/wardle.example.com\"") && paths.contains("wardle.example.com/v2\""));
    }

    #[test]
    fn who_serves_a_version_in_this_servers_place_is_listed_there() {
        let extension = Extension {
            group: "batch".into(),
            version: "v1".into(),
            group_priority: 1,
            version_priority: 1,
            ..Extension::default()
        };
        let list = json_of(group_discovery_list(&crate::built_ins(), &[extension], GroupsPart::Named));
        let batch = group(&list, "batch");
        assert_eq!(batch["versions"], json!([{ "version": "v1", "resources": [], "freshness": "Current" }]));
    }
}
