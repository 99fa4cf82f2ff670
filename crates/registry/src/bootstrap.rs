//! What exists from the first start on: the four namespaces, and what is called `kubernetes`.

use forebay_apimachinery::options::CreateOptions;
use forebay_apimachinery::{Reason, Status};
use serde_json::json;

use crate::registry::Registry;
use crate::request::{Body, Target};

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

impl Registry {
    /// Waits for the caches, then makes sure that the namespaces exist and serves the CRDs.
    ///
    /// # Errors
    /// When the store cannot be written or read.
    pub async fn start(&self) -> Result<(), Status> {
        for store in self.catalog().stores() {
            store.cacher.wait_ready().await;
        }
        let served = self.catalog().resource("", "v1", "namespaces").cloned();
        let served = served.ok_or_else(|| Status::internal("namespaces are not served"))?;
        let target = Target { served, namespace: None, name: None, subresource: None, caller: None };
        for name in NAMESPACES {
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            let body = Body::Value(namespace);
            match self.create(&target, &body, &CreateOptions::default()).await {
                Ok(_) => {}
                Err(status) if status.reason == Reason::AlreadyExists => {}
                Err(status) => return Err(status),
            }
        }
        self.start_services().await;
        self.start_crds().await
    }
}
