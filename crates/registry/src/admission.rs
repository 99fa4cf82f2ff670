//! What stands between a valid request and the store: the life of namespaces, and whom a certificate may make of one.
//!
//! Source: kube-apiserver v1.36.3 `plugin/namespace/lifecycle`, `plugin/certificates/subjectrestriction`.

use forebay_apimachinery::{Cause, CauseReason, Reason, Status};

use serde_json::Value;

use crate::catalog::Served;
use crate::registry::Registry;
use crate::strategy;

/// Namespaces that are never deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

impl Registry {
    /// Refuses to create in a namespace that is missing or on its way out.
    ///
    /// A miss in the cache is judged again on the live object, so that a namespace counts from the moment that its
    /// creation was acknowledged.
    pub(crate) async fn admit_into_namespace(
        &self,
        served: &Served,
        namespace: &str,
        name: &str,
    ) -> Result<(), Status> {
        if !served.namespaced {
            return Ok(());
        }
        let store = self.built_in("", "v1", "namespaces")?;
        let key = store.key("", namespace);
        let mut found = store.cached(&key);
        if found.is_none() {
            found = store.live(&key).await?;
        }
        let Some(found) = found else { return Err(Status::not_found("", "namespaces", namespace)) };
        if found.object.field(NAMESPACE_PHASE) == Some("Terminating") {
            return Err(terminating(served, namespace, name));
        }
        Ok(())
    }
}

/// Index of `status.phase` in the layout of namespaces: its only selectable field beside the name.
const NAMESPACE_PHASE: usize = 0;

fn terminating(served: &Served, namespace: &str, name: &str) -> Status {
    let qualified = served.gvr.group_resource();
    let message = format!(
        "{qualified} {name:?} is forbidden: unable to create new content in namespace {namespace} because it is being terminated"
    );
    let cause = Cause::new(
        CauseReason::NamespaceTerminating,
        "metadata.namespace",
        format!("namespace {namespace} is being terminated"),
    );
    Status::new(Reason::Forbidden, message).about(served.group(), served.resource(), name).because([cause])
}

/// Refuses a new object that is valid and yet may not be.
pub(crate) fn admit_create(served: &Served, value: &Value) -> Result<(), Status> {
    if served.is("certificates.k8s.io", "certificatesigningrequests")
        && let Some(why) = strategy::subject_restriction(value)
    {
        let name = crate::create::name_of(value);
        let message = format!("{} {name:?} is forbidden: {why}", served.gvr.group_resource());
        return Err(Status::new(Reason::Forbidden, message).about(served.group(), served.resource(), name));
    }
    Ok(())
}

/// Refuses to delete the namespaces that a cluster cannot do without.
pub(crate) fn admit_delete(served: &Served, name: &str) -> Result<(), Status> {
    if served.is("", "namespaces") && IMMORTAL.contains(&name) {
        let message = format!("namespaces {name:?} is forbidden: this namespace may not be deleted");
        return Err(Status::new(Reason::Forbidden, message).about("", "namespaces", name));
    }
    Ok(())
}
