//! The resources that the simulation's clients write and read, and selections of them.

use forebay_rt::Random;
use serde_json::Value;

pub const NAMESPACES: [&str; 2] = ["a", "ab"];
pub const NODES: [&str; 3] = ["", "n1", "n2"];
const APPS: [&str; 3] = ["web", "db", ""];

/// What is written and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collection {
    /// Written through the verbs.
    ConfigMaps,
    /// Written into the store directly, so that a pod may move from node to node.
    Pods,
    /// Written into the store directly, with a time to live.
    Events,
}

impl Collection {
    pub const ALL: [Collection; 3] = [Collection::ConfigMaps, Collection::Pods, Collection::Events];

    pub fn plural(self) -> &'static str {
        match self {
            Collection::ConfigMaps => "configmaps",
            Collection::Pods => "pods",
            Collection::Events => "events",
        }
    }

    pub fn kind(self) -> &'static str {
        match self {
            Collection::ConfigMaps => "ConfigMap",
            Collection::Pods => "Pod",
            Collection::Events => "Event",
        }
    }

    pub fn key(self, namespace: &str, name: &str) -> String {
        format!("/registry/{}/{namespace}/{name}", self.plural())
    }

    /// The resource of a storage key.
    pub fn of(key: &str) -> Option<Collection> {
        let plural = key.strip_prefix("/registry/")?.split('/').next()?;
        Collection::ALL.into_iter().find(|resource| resource.plural() == plural)
    }
}

/// Some objects of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    pub resource: Collection,
    pub namespace: Option<&'static str>,
    pub name: Option<String>,
    pub label: Option<Label>,
    pub node: Option<&'static str>,
}

/// A requirement of the label `app`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    Is(&'static str),
    IsNot(&'static str),
    Exists,
}

impl Selection {
    pub fn everything(resource: Collection) -> Selection {
        Selection { resource, namespace: None, name: None, label: None, node: None }
    }

    pub fn draw(random: &Random) -> Selection {
        let resource = Collection::ALL[random.below(Collection::ALL.len() as u64) as usize];
        let mut selection = Selection::everything(resource);
        if random.below(3) == 0 {
            selection.namespace = Some(NAMESPACES[random.below(2) as usize]);
        }
        match random.below(5) {
            0 => selection.label = Some(Label::Is(APPS[random.below(2) as usize])),
            1 => selection.label = Some(Label::IsNot(APPS[random.below(2) as usize])),
            2 => selection.label = Some(Label::Exists),
            3 if selection.namespace.is_some() => selection.name = Some(name(random)),
            _ => {}
        }
        if resource == Collection::Pods && selection.name.is_none() && random.below(3) > 0 {
            selection.node = Some(NODES[random.below(3) as usize]);
        }
        selection
    }

    pub fn matches(&self, key: &str, value: &Value) -> bool {
        let mut parts = key.rsplit('/');
        let (name, namespace) = (parts.next(), parts.next());
        self.namespace.is_none_or(|wanted| namespace == Some(wanted))
            && self.name.as_deref().is_none_or(|wanted| name == Some(wanted))
            && self.label.is_none_or(|label| label.matches(value["metadata"]["labels"]["app"].as_str()))
            && self.node.is_none_or(|node| value["spec"]["nodeName"].as_str().unwrap_or("") == node)
    }

    /// The selectors as a query has them.
    pub fn query(&self) -> String {
        let label = self.label.map(|label| match label {
            Label::Is(app) => format!("&labelSelector=app%3D{app}"),
            Label::IsNot(app) => format!("&labelSelector=app%21%3D{app}"),
            Label::Exists => "&labelSelector=app".to_string(),
        });
        let node = self.node.map(|node| format!("&fieldSelector=spec.nodeName%3D{node}"));
        let name = self.name.as_ref().map(|name| format!("&fieldSelector=metadata.name%3D{name}"));
        [label, node, name].into_iter().flatten().collect()
    }
}

impl Label {
    fn matches(self, app: Option<&str>) -> bool {
        match self {
            Label::Is(wanted) => app == Some(wanted),
            Label::IsNot(other) => app != Some(other),
            Label::Exists => app.is_some(),
        }
    }
}

/// One of a few names, so that clients meet.
pub fn name(random: &Random) -> String {
    format!("o{}", random.below(6))
}

/// An object with drawn labels and node; `marker` tells it from every other.
pub fn object(resource: Collection, namespace: &str, name: &str, marker: u64, random: &Random) -> Value {
    let mut value = serde_json::json!({
        "apiVersion": "v1", "kind": resource.kind(),
        "metadata": { "name": name, "namespace": namespace, "annotations": { "marker": marker.to_string() } },
    });
    let app = APPS[random.below(3) as usize];
    if !app.is_empty() {
        value["metadata"]["labels"] = serde_json::json!({ "app": app });
    }
    match resource {
        Collection::ConfigMaps => value["data"] = serde_json::json!({ "n": marker.to_string() }),
        Collection::Pods => {
            let node = NODES[random.below(3) as usize];
            value["spec"] = match node {
                "" => serde_json::json!({}),
                node => serde_json::json!({ "nodeName": node }),
            };
            value["status"] = serde_json::json!({});
        }
        Collection::Events => value["message"] = Value::from(marker.to_string()),
    }
    if resource != Collection::ConfigMaps {
        value["metadata"]["uid"] = Value::from(format!("u-{namespace}-{name}"));
    }
    value
}

/// The marker of a stored or shown object.
pub fn marker(value: &Value) -> Option<u64> {
    value["metadata"]["annotations"]["marker"].as_str()?.parse().ok()
}
