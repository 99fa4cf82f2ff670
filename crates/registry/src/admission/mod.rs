//! What stands between a valid request and the store: the life of namespaces, which service account a pod runs as, and
//! the plugins that need no more than the classes that there are.
//!
//! Source: kube-apiserver v1.36.3 `plugin/namespace/lifecycle`.

mod classes;
pub(crate) mod devices;
mod plugins;
mod pods;
mod secrets;
pub(crate) mod service_account;

use std::sync::Arc;

use forebay_apimachinery::{Cause, CauseReason, Reason, Status};
use serde_json::Value;

use crate::catalog::Served;
use crate::context::Context;
use crate::errors;
use forebay_strategy as strategy;

pub use plugins::Admission;
pub use service_account::ServiceAccountAdmission;

use plugins::{Classes, PRIORITY, RUNTIME};

/// Namespaces that are never deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Refuses to create in a namespace that is missing or on its way out.
///
/// A miss in the cache is judged again on the live object, so that a namespace counts from the moment that its
/// creation was acknowledged.
pub(crate) async fn admit_into_namespace(
    context: &Arc<Context>,
    served: &Served,
    namespace: &str,
    name: &str,
) -> Result<(), Status> {
    if !served.namespaced || !context.config.admission.is_on("NamespaceLifecycle") {
        return Ok(());
    }
    let store = context.built_in("", "v1", "namespaces")?;
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

/// Fills in what plugins fill in of a new object.
///
/// A refusal judged on the caches is judged again when they have all that was acknowledged before, so that a class
/// counts from then on. What is filled in twice is what is filled in once.
pub(crate) async fn admit_new(
    context: &Arc<Context>,
    served: &Served,
    value: &mut Value,
) -> Result<(), Status> {
    if context.config.admission.mutate(served, value, None, &classes(context)).is_ok() {
        return Ok(());
    }
    let deadline = context.clock.now() + forebay_watchcache::limits::FRESH_WAIT;
    for (group, resource) in [PRIORITY, RUNTIME] {
        let store = context.built_in(group, "v1", resource)?;
        store.cacher.fresh(deadline).await.map_err(|error| errors::cache(&error))?;
    }
    context.config.admission.mutate(served, value, None, &classes(context))
}

/// Fills in what plugins fill in of an object that takes the place of `old`.
pub(crate) fn admit_change(
    context: &Arc<Context>,
    served: &Served,
    value: &mut Value,
    old: &Value,
) -> Result<(), Status> {
    context.config.admission.mutate(served, value, Some(old), &classes(context))
}

/// Refuses what is valid and yet may not be.
///
/// - `old`: the stored object, if there is one.
pub(crate) fn admit_valid(
    context: &Arc<Context>,
    served: &Served,
    value: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    context.config.admission.validate(served, value, old, &classes(context))
}

fn classes(context: &Arc<Context>) -> Classes {
    Classes { catalog: context.catalog() }
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

/// Refuses to delete what a cluster cannot do without.
pub(crate) fn admit_delete(served: &Served, name: &str) -> Result<(), Status> {
    if served.is("", "namespaces") && IMMORTAL.contains(&name) {
        let message = format!("namespaces {name:?} is forbidden: this namespace may not be deleted");
        return Err(Status::new(Reason::Forbidden, message).about("", "namespaces", name));
    }
    let of_the_system = || strategy::SYSTEM_PRIORITY_CLASSES.iter().any(|(known, ..)| *known == name);
    if served.is("scheduling.k8s.io", "priorityclasses") && of_the_system() {
        let why = "this is a system priority class and cannot be deleted";
        let message = format!("priorityclasses.scheduling.k8s.io {name:?} is forbidden: {why}");
        return Err(Status::new(Reason::Forbidden, message).about(served.group(), served.resource(), name));
    }
    Ok(())
}
