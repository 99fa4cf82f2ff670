//! The kinds that the contract is read on, and what is written to them.
//!
//! In: `contract/history.txt`. Out: [`KINDS`], [`Write`]s, and the objects that they are made of. Never:
//! sends anything.

use serde_json::{Value, json};

/// A kind of object that the rows are run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiResource {
    pub group: &'static str,
    pub version: &'static str,
    pub plural: &'static str,
    pub kind: &'static str,
    pub namespaced: bool,
    /// The field that `on` is, as a selector names it; empty where there is none.
    pub field: &'static str,
}

/// The group of the custom resources.
pub const GROUP: &str = "contract.forebay.dev";

/// What namespaces of the tables are called on the server.
pub const NAMESPACE_PREFIX: &str = "contract-";

/// Two built-in kinds, and a custom resource of either scope. Nobody else may write what the rows list, so
/// none of them is what a controller puts into each namespace.
pub const KINDS: [ApiResource; 4] = [
    ApiResource {
        group: "",
        version: "v1",
        plural: "podtemplates",
        kind: "PodTemplate",
        namespaced: true,
        field: "",
    },
    ApiResource {
        group: "",
        version: "v1",
        plural: "pods",
        kind: "Pod",
        namespaced: true,
        field: "spec.nodeName",
    },
    ApiResource {
        group: GROUP,
        version: "v1",
        plural: "widgets",
        kind: "Widget",
        namespaced: true,
        field: "spec.color",
    },
    ApiResource {
        group: GROUP,
        version: "v1",
        plural: "gadgets",
        kind: "Gadget",
        namespaced: false,
        field: "spec.color",
    },
];

/// What else the set-up writes to.
pub const NAMESPACES: ApiResource = ApiResource {
    group: "",
    version: "v1",
    plural: "namespaces",
    kind: "Namespace",
    namespaced: false,
    field: "",
};
pub const CRDS: ApiResource = ApiResource {
    group: "apiextensions.k8s.io",
    version: "v1",
    plural: "customresourcedefinitions",
    kind: "CustomResourceDefinition",
    namespaced: false,
    field: "",
};

/// When a write is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// Before everything, and compacted away.
    Old,
    /// Before the reads.
    Static,
    /// While the watches are open.
    Live,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    Create,
    Update,
    Delete,
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub label: String,
    pub period: Period,
    pub mutation: Mutation,
    /// As the tables call it, without [`NAMESPACE_PREFIX`].
    pub namespace: String,
    pub name: String,
    pub app: String,
    pub on: String,
}

impl ApiResource {
    /// The object that `write` creates.
    pub fn object(&self, write: &Write) -> Value {
        let mut object = json!({
            "apiVersion": self.api_version(),
            "kind": self.kind,
            "metadata": { "name": write.name, "labels": { "app": write.app } },
        });
        if self.namespaced {
            object["metadata"]["namespace"] = format!("{NAMESPACE_PREFIX}{}", write.namespace).into();
        }
        let containers = json!([{ "name": "c", "image": "i" }]);
        match self.kind {
            "Pod" => {
                // No scheduler is to take it.
                object["spec"] = json!({ "containers": containers, "schedulerName": "nobody" });
                if !write.on.is_empty() {
                    object["spec"]["nodeName"] = write.on.as_str().into();
                }
            }
            "PodTemplate" => object["template"] = json!({ "spec": { "containers": containers } }),
            _ => object["spec"] = json!({ "color": write.on }),
        }
        object
    }

    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// As messages name it: `widgets.contract.forebay.dev`.
    pub fn of_group(&self, name: &str) -> String {
        if self.group.is_empty() { name.to_owned() } else { format!("{name}.{}", self.group) }
    }

    /// Whether `write` is done to this kind.
    pub fn takes(&self, write: &Write) -> bool {
        self.namespaced || write.namespace == "a"
    }

    /// The CRD of a custom resource.
    pub fn definition(&self) -> Option<Value> {
        (self.group == GROUP).then(|| {
            let color = json!({ "type": "string" });
            let spec = json!({ "type": "object", "properties": { "color": color } });
            json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": { "name": format!("{}.{}", self.plural, self.group) },
                "spec": {
                    "group": self.group,
                    "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
                    "names": { "plural": self.plural, "kind": self.kind },
                    "versions": [{
                        "name": self.version,
                        "served": true,
                        "storage": true,
                        "selectableFields": [{ "jsonPath": ".spec.color" }],
                        "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } },
                    }],
                },
            })
        })
    }
}

/// Every write, in order.
///
/// # Errors
/// A line that is none.
pub fn writes() -> Result<Vec<Write>, String> {
    let text = include_str!("../../contract/history.txt");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| write(line).ok_or_else(|| format!("history.txt: {line:?} is no write"))).collect()
}

fn write(line: &str) -> Option<Write> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [label, mutation, place, with @ ..] = words.as_slice() else { return None };
    let (namespace, name) = place.split_once('/')?;
    let with = |key: &str| {
        let found = with.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        found.unwrap_or_default().to_owned()
    };
    Some(Write {
        label: (*label).to_owned(),
        period: match label.as_bytes().first()? {
            b'o' => Period::Old,
            b's' => Period::Static,
            b'l' => Period::Live,
            _ => return None,
        },
        mutation: match *mutation {
            "create" => Mutation::Create,
            "update" => Mutation::Update,
            "delete" => Mutation::Delete,
            _ => return None,
        },
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        app: with("app"),
        on: with("on"),
    })
}
