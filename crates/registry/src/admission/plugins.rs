//! The admission plugins of kube-apiserver that are carried out here: which there are, and which are on.
//!
//! In: a new object, or one that takes the place of another, and the classes that there are. Out: the object filled in, or
//! a refusal. Never: IO; what the caches do not have is not there.
//!
//! Source: kubernetes v1.36.3 `kubeapiserver/options/plugins.go`, `plugin/pkg/admission`.

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_apimachinery::{Reason, Status};
use serde_json::Value;

use super::{classes, pods};
use crate::catalog::{Catalog, Served};
use forebay_strategy as strategy;
use forebay_strategy::value::{Members, child_or_empty, text};

/// Carried out elsewhere, and turned off like the others.
const LIFECYCLE: &str = "NamespaceLifecycle";

/// Which plugins are on: all that are carried out, but for those turned off.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    off: BTreeSet<String>,
}

impl Admission {
    /// Whether the plugin `name` is carried out, unless it is turned off.
    pub fn carries_out(name: &str) -> bool {
        name == LIFECYCLE || PLUGINS.iter().any(|plugin| plugin.name == name)
    }

    /// All but `names`; a name of none of them turns nothing off.
    pub fn without<'n>(names: impl IntoIterator<Item = &'n str>) -> Admission {
        let carried_out = names.into_iter().filter(|name| Admission::carries_out(name));
        Admission { off: carried_out.map(String::from).collect() }
    }

    pub(crate) fn is_on(&self, name: &str) -> bool {
        !self.off.contains(name)
    }

    /// Fills in what plugins fill in.
    ///
    /// - `old`: the stored object, if there is one.
    pub(super) fn mutate(
        &self,
        served: &Served,
        value: &mut Value,
        old: Option<&Value>,
        classes: &Classes,
    ) -> Result<(), Status> {
        for plugin in self.plugins(served, old) {
            let (Some(mutate), Some(members)) = (plugin.mutate, value.as_object_mut()) else { continue };
            let refused = mutate(members, old.and_then(Value::as_object), classes);
            refused.map_err(|why| forbidden(served, value, &why))?;
        }
        Ok(())
    }

    /// Refuses what is valid and yet may not be.
    pub(super) fn validate(
        &self,
        served: &Served,
        value: &Value,
        old: Option<&Value>,
        classes: &Classes,
    ) -> Result<(), Status> {
        for plugin in self.plugins(served, old) {
            let (Some(validate), Some(members)) = (plugin.validate, value.as_object()) else { continue };
            validate(members, classes).map_err(|why| forbidden(served, value, &why))?;
        }
        Ok(())
    }

    fn plugins(&self, served: &Served, old: Option<&Value>) -> impl Iterator<Item = &'static Plugin> {
        let created = old.is_none();
        PLUGINS.iter().filter(move |plugin| {
            served.is(plugin.group, plugin.resource)
                && (created || plugin.on == On::CreateAndUpdate)
                && self.is_on(plugin.name)
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Create,
    CreateAndUpdate,
}

/// Changes a new object, or says why there may be none; with the stored one, if there is one.
type Mutate = fn(&mut Members, Option<&Members>, &Classes) -> Result<(), String>;
type Validate = fn(&Members, &Classes) -> Result<(), String>;

/// What one plugin does to one resource.
struct Plugin {
    name: &'static str,
    group: &'static str,
    resource: &'static str,
    on: On,
    mutate: Option<Mutate>,
    validate: Option<Validate>,
}

/// In kube-apiserver's order.
static PLUGINS: [Plugin; 8] = [
    Plugin {
        name: "TaintNodesByCondition",
        group: "",
        resource: "nodes",
        on: On::Create,
        mutate: Some(|node, _, _| pods::taint_node(node)),
        validate: None,
    },
    Plugin {
        name: "Priority",
        group: "",
        resource: "pods",
        on: On::CreateAndUpdate,
        mutate: Some(pods::priority),
        validate: None,
    },
    Plugin {
        name: "Priority",
        group: "scheduling.k8s.io",
        resource: "priorityclasses",
        on: On::CreateAndUpdate,
        mutate: None,
        validate: Some(classes::only_one_default),
    },
    Plugin {
        name: "DefaultTolerationSeconds",
        group: "",
        resource: "pods",
        on: On::CreateAndUpdate,
        mutate: Some(|pod, _, _| pods::tolerate_lost_nodes(pod)),
        validate: None,
    },
    Plugin {
        name: "DefaultStorageClass",
        group: "",
        resource: "persistentvolumeclaims",
        on: On::Create,
        mutate: Some(|claim, _, known| classes::storage_class(claim, known)),
        validate: None,
    },
    Plugin {
        name: "RuntimeClass",
        group: "",
        resource: "pods",
        on: On::Create,
        mutate: Some(|pod, _, known| pods::runtime_class(pod, known)),
        validate: Some(pods::overhead_of_class),
    },
    Plugin {
        name: "CertificateSubjectRestriction",
        group: "certificates.k8s.io",
        resource: "certificatesigningrequests",
        on: On::Create,
        mutate: None,
        validate: Some(|request, _| {
            strategy::subject_restriction(&Value::Object(request.clone())).map_or(Ok(()), Err)
        }),
    },
    Plugin {
        name: "DefaultIngressClass",
        group: "networking.k8s.io",
        resource: "ingresses",
        on: On::Create,
        mutate: Some(|ingress, _, known| classes::ingress_class(ingress, known)),
        validate: None,
    },
];

/// The classes that there are, as the caches have them.
pub(crate) struct Classes {
    pub(crate) catalog: Arc<Catalog>,
}

/// A resource of classes: its group and plural name, all of version v1.
pub(super) type ClassKind = (&'static str, &'static str);

pub(super) const PRIORITY: ClassKind = ("scheduling.k8s.io", "priorityclasses");
pub(super) const RUNTIME: ClassKind = ("node.k8s.io", "runtimeclasses");
pub(super) const STORAGE: ClassKind = ("storage.k8s.io", "storageclasses");
pub(super) const INGRESS: ClassKind = ("networking.k8s.io", "ingressclasses");

impl Classes {
    fn served(&self, (group, resource): ClassKind) -> Option<&Arc<Served>> {
        self.catalog.resource(group, "v1", resource)
    }

    /// The class of a name.
    pub(super) fn named(&self, kind: ClassKind, name: &str) -> Option<Value> {
        let served = self.served(kind)?;
        let store = served.store.as_ref()?;
        let found = store.cached(&store.key("", name))?;
        served.to_value(&found.object).ok()
    }

    /// The classes that have `mark` in their JSON text, which the caller looks at more closely. There are few classes, and
    /// fewer that are marked: only these are decoded.
    pub(super) fn marked(&self, kind: ClassKind, mark: &str) -> Vec<Value> {
        let Some(served) = self.served(kind) else { return Vec::new() };
        let Some(store) = served.store.as_ref() else { return Vec::new() };
        let Ok(snapshot) = store.cacher.snapshot() else { return Vec::new() };
        let reach = store.reach(None, None);
        let marked = snapshot.range(&reach, None).filter(|object| holds(&object.body(), mark.as_bytes()));
        marked.filter_map(|object| served.to_value(object).ok()).collect()
    }
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// 403 for an object that a plugin refuses.
fn forbidden(served: &Served, value: &Value, why: &str) -> Status {
    let empty = Members::new();
    let meta = child_or_empty(value.as_object().unwrap_or(&empty), "metadata");
    let name = match (text(meta, "name"), text(meta, "generateName")) {
        ("", "") => "Unknown",
        ("", base) => base,
        (name, _) => name,
    };
    let message = format!("{} {name:?} is forbidden: {why}", served.gvr.group_resource());
    Status::new(Reason::Forbidden, message).about(served.group(), served.resource(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_turned_off_by_name() {
        let without = Admission::without(["Priority", "ServiceAccount", "NamespaceLifecycle"]);
        assert!(!without.is_on("Priority") && !without.is_on(LIFECYCLE));
        assert!(without.is_on("RuntimeClass") && without.is_on("ServiceAccount"));
        assert!(Admission::carries_out("Priority") && !Admission::carries_out("priority"));
    }
}
