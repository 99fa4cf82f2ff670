//! Sees to it that each namespace has the ConfigMap `kube-root-ca.crt`, with the authority that clients of this server
//! are to trust.
//!
//! In: namespaces, and the maps of that name. Out: creates and updates. Keeps nothing but the authority.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/certificates/rootcacertpublisher`.

use std::sync::Arc;

use forebay_apimachinery::Status;
use forebay_registry::{Informer, Notice, Registry};
use forebay_rt::Instant;
use serde_json::json;

use crate::objects::{built_in, collection, create, find, named, update};
use crate::queue::{Queue, Verdict};
use crate::run::Named;
use crate::service_accounts::{in_each_namespace, is_about_the_namespace};

const NAME: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";
/// What the annotation says, as clients know it.
const DESCRIBED: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// The controller.
pub struct Publisher {
    registry: Registry,
    root_ca: Arc<str>,
}

impl Publisher {
    pub fn new(registry: Registry, root_ca: String) -> Publisher {
        Publisher { registry, root_ca: root_ca.into() }
    }
}

impl Named for Publisher {
    const NAME: &'static str = crate::Controller::RootCaPublisher.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        in_each_namespace(&self.registry, "configmaps", NAME)
    }

    fn observe(&self, source: usize, notice: &Notice, _now: Instant, queue: &mut Queue<String>) {
        match (source, notice) {
            (0, Notice::Put(namespace)) => queue.add(namespace.name().to_string()),
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

async fn sync(registry: &Registry, namespace: &str, root_ca: &str) -> Result<(), Status> {
    let maps = built_in(registry, "", "v1", "configmaps")?;
    let target = named(&maps, namespace, NAME);
    let data = json!({ "ca.crt": root_ca });
    let Some(found) = find(registry, &target).await? else {
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
