//! What exists from the first start on: the four namespaces, the classes of priority that the system has, what is
//! called `kubernetes`, and what [`built_ins`] keeps.

mod built_ins;
mod roles;

use forebay_apimachinery::options::CreateOptions;
use forebay_apimachinery::{Lease, Reason, Status};
use serde_json::{Value, json};

use crate::registry::Registry;
use crate::request::{Body, Target};
use crate::store::Store;
use forebay_strategy::SYSTEM_PRIORITY_CLASSES;

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// What takes longest to be read, as a rule: nothing of what a start writes depends on it, so that is written meanwhile.
fn is_largest(store: &Store) -> bool {
    (&*store.group, &*store.resource) == ("", "pods")
}

impl Registry {
    /// Makes sure that what is always there exists, serves the CRDs, and waits for the caches: for the largest last. Then early
    /// history may be read.
    ///
    /// # Errors
    /// When the store cannot be written or read.
    pub async fn start(&self) -> Result<(), Status> {
        let (largest, others): (Vec<_>, Vec<_>) =
            self.catalog().stores().into_iter().partition(|store| is_largest(store));
        for store in others.iter().chain([&self.services.ports]) {
            store.cacher.wait_ready().await;
        }
        for name in NAMESPACES {
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            self.ensure("", "namespaces", namespace).await?;
        }
        for (name, value, description) in SYSTEM_PRIORITY_CLASSES {
            let class = json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": name },
                "value": value, "description": description,
            });
            self.ensure("scheduling.k8s.io", "priorityclasses", class).await?;
        }
        self.start_services().await;
        self.start_crds().await?;
        self.ensure_built_ins().await?;
        self.ensure_roles().await?;
        self.start_identity().await;
        for store in largest {
            store.cacher.wait_ready().await;
        }
        self.config.early.let_in();
        self.tasks.spawn("built-in objects", self.clone().keep_built_ins());
        Ok(())
    }

    /// Creates an object of a resource of version v1 at cluster scope, unless it is there.
    async fn ensure(&self, group: &str, resource: &str, object: Value) -> Result<(), Status> {
        let served = self.catalog().resource(group, "v1", resource).cloned();
        let served = served.ok_or_else(|| Status::internal(format!("{resource} are not served")))?;
        let target = Target {
            served,
            namespace: None,
            name: None,
            subresource: None,
            caller: None,
            lease: Lease::of_server(),
        };
        match self.create(&target, &Body::Value(object), &CreateOptions::default()).await {
            Err(status) if status.reason != Reason::AlreadyExists => Err(status),
            _ => Ok(()),
        }
    }
}
