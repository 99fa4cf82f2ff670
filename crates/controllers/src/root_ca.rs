//! Sees to it that each namespace has the ConfigMap `kube-root-ca.crt`, with the authorities that clients of
//! this cluster are to trust.
//!
//! Servers that share a store may have authorities of their own, and a client is led to any of them: each
//! adds its own to what the map of kube-system has, where only administrators write, and that is what the
//! maps of all namespaces are to have.
//!
//! In: namespaces, and the maps of that name. Out: creates and updates. Keeps the namespaces' names.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/certificates/rootcacertpublisher`.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use forebay_apimachinery::Status;
use forebay_registry::{Informer, Notice};
use forebay_rt::Instant;
use serde_json::json;

use crate::RootCa;
use crate::acting::ActingRegistry;
use crate::objects::{built_in, collection, create, find, named, update};
use crate::queue::{Queue, Verdict};
use crate::run::Named;
use crate::service_accounts::{in_each_namespace, is_about_the_namespace};

const NAME: &str = "kube-root-ca.crt";
/// Whose map says which authorities there are.
const SOURCE: &str = "kube-system";
const KEY: &str = "ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";
/// What the annotation says, as clients know it.
const DESCRIBED: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// The controller.
pub struct Publisher {
    registry: ActingRegistry,
    root_ca: RootCa,
    namespaces: Mutex<BTreeSet<String>>,
}

impl Publisher {
    pub fn new(registry: ActingRegistry, root_ca: RootCa) -> Publisher {
        Publisher { registry, root_ca, namespaces: Mutex::default() }
    }
}

impl Named for Publisher {
    const NAME: &'static str = crate::Controller::RootCaPublisher.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        in_each_namespace(&self.registry, "configmaps", NAME)
    }

    fn observe(&self, source: usize, notice: &Notice, _now: Instant, queue: &mut Queue<String>) {
        let mut namespaces = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        match (source, notice) {
            (0, Notice::Put(namespace)) => {
                namespaces.insert(namespace.name().to_string());
                queue.add(namespace.name().to_string());
            }
            (0, Notice::Deleted(namespace)) => {
                namespaces.remove(namespace.name());
            }
            (1, Notice::Put(map) | Notice::Deleted(map)) if map.namespace() == SOURCE => {
                namespaces.iter().for_each(|namespace| queue.add(namespace.clone()));
            }
            (1, Notice::Put(map) | Notice::Deleted(map)) => queue.add(map.namespace().to_string()),
            _ => {}
        }
    }

    fn sync(&self, name: String) -> impl Future<Output = Verdict> + Send + 'static {
        let (registry, root_ca) = (self.registry.clone(), self.root_ca.clone());
        async move {
            match sync(&registry, &name, &root_ca).await {
                Ok(()) => Verdict::Done,
                Err(status) if is_about_the_namespace(&status) => Verdict::Done,
                Err(status) => Verdict::Retry(status.message),
            }
        }
    }
}

async fn sync(registry: &ActingRegistry, namespace: &str, root_ca: &RootCa) -> Result<(), Status> {
    let maps = built_in(registry, "", "v1", "configmaps")?;
    let target = named(&maps, namespace, NAME);
    let found = find(registry, &target).await?;
    // What is replaced is what was read, or what another server has added to it in between would be gone.
    let source = match namespace {
        SOURCE => found.clone(),
        _ => find(registry, &named(&maps, SOURCE, NAME)).await?,
    };
    let published = match source {
        Some(source) => maps.to_value(&source)?["data"][KEY].as_str().unwrap_or_default().to_string(),
        None => String::new(),
    };
    let data = json!({ KEY: root_ca(&published) });
    let Some(found) = found else {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": { "name": NAME, "annotations": { DESCRIPTION: DESCRIBED } },
        });
        return create(registry, &collection(&maps, Some(namespace)), map).await;
    };
    let mut map = maps.to_value(&found)?;
    let described = map["metadata"]["annotations"][DESCRIPTION].as_str().is_some_and(|text| !text.is_empty());
    if map["data"] == data && described {
        return Ok(());
    }
    map["data"] = data;
    if !map["metadata"]["annotations"].is_object() {
        map["metadata"]["annotations"] = json!({});
    }
    map["metadata"]["annotations"][DESCRIPTION] = json!(DESCRIBED);
    update(registry, &target, map).await
}
