//! What exists from the first start on: the four namespaces, the classes of priority that the system has,
//! what is called `kubernetes`, and what [`built_ins`] keeps.

mod built_ins;
mod reconcile;
mod roles;

use std::sync::Arc;

use forebay_apimachinery::options::CreateOptions;
use forebay_apimachinery::{Reason, Status};
use forebay_catalog::store::Store;
use serde_json::{Value, json};

use crate::context::Context;
use crate::crd;
use crate::create;
use crate::identity::lease;
use crate::kubernetes_service;
use crate::limits::HINDERED_LOOK;
use crate::policy_source;
use crate::rights_source;
use forebay_api::Body;
use forebay_catalog::Target;
use forebay_strategy::SYSTEM_PRIORITY_CLASSES;

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// What takes longest to be read, as a rule: nothing of what a start writes depends on it, so that is written
/// meanwhile.
fn is_largest(store: &Store) -> bool {
    (&*store.group, &*store.resource) == ("", "pods")
}

/// Makes sure that what is always there exists, serves the CRDs, and waits for the caches: for the largest
/// last. Then early history may be read.
///
/// # Errors
/// When the store cannot be written or read.
pub(crate) async fn start(context: &Arc<Context>) -> Result<(), Status> {
    let (largest, others): (Vec<_>, Vec<_>) =
        context.catalog().stores().into_iter().partition(|store| is_largest(store));
    for store in others.iter().chain([context.claims.ports()]) {
        wait_ready(context, store).await;
    }
    match (ensure_namespaces(context).await, context.backend.hindered()) {
        (Err(status), Some(why)) => {
            tracing::error!(why, error = status.message, "the system's namespaces are looked after later");
            context.tasks.spawn("namespaces", keep_trying(context.clone()));
        }
        (ensured, _) => ensured?,
    }
    for (name, value, description) in SYSTEM_PRIORITY_CLASSES {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": name },
            "value": value, "description": description,
        });
        ensure(context, "scheduling.k8s.io", "priorityclasses", class).await?;
    }
    kubernetes_service::start_services(context).await;
    crd::start_crds(context).await?;
    policy_source::start(context).await?;
    built_ins::ensure_built_ins(context).await?;
    rights_source::start(context).await?;
    reconcile::ensure_roles(context).await?;
    // Whoever is let in from here on is judged by them.
    rights_source::current(context).await?;
    lease::start(context).await;
    context.in_force.begin_calling();
    for store in largest {
        wait_ready(context, &store).await;
    }
    context.config.early.let_in();
    context.tasks.spawn("built-in objects", built_ins::keep_built_ins(context.clone()));
    Ok(())
}

/// Waits for a cache, unless what it is filled from cannot be read for now: it says that it is not ready,
/// and the others are served.
async fn wait_ready(context: &Context, store: &Store) {
    tokio::select! {
        biased;
        () = store.cacher.wait_ready() => {}
        why = context.hindered() => {
            let resource = &*store.resource;
            tracing::error!(resource, why, "not waited for: what is stored cannot be read yet");
        }
    }
}

async fn ensure_namespaces(context: &Arc<Context>) -> Result<(), Status> {
    for name in NAMESPACES {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        ensure(context, "", "namespaces", namespace).await?;
    }
    Ok(())
}

/// Makes the system's namespaces as soon as they can be.
async fn keep_trying(context: Arc<Context>) {
    while ensure_namespaces(&context).await.is_err() {
        context.clock.sleep(HINDERED_LOOK).await;
    }
}

/// Creates an object of a resource of version v1 at cluster scope, unless it is there.
async fn ensure(context: &Arc<Context>, group: &str, resource: &str, object: Value) -> Result<(), Status> {
    let served = context.catalog().resource(group, "v1", resource).cloned();
    let served = served.ok_or_else(|| Status::internal(format!("{resource} are not served")))?;
    let target = Target::of_server(served, None, None);
    match create::create(context, &target, &Body::Value(object), &CreateOptions::default()).await {
        Err(status) if status.reason != Reason::AlreadyExists => Err(status),
        _ => Ok(()),
    }
}
