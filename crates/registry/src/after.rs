//! What follows a write, before its client is answered: what other requests are judged by is taken in, and
//! what the object had is given back.
//!
//! In: what was stored or deleted. Out: nothing; what fails is told in the log, and made good by who looks
//! after it. Never: refuses.

use std::sync::Arc;

use forebay_apimachinery::options::DeleteOptions;
use forebay_apimachinery::{Reason, Revision, Status};
use forebay_catalog::Served;
use forebay_catalog::store::{Current, Done, Mode};
use forebay_object::Object;

use crate::context::Context;
use crate::limits::TAKEN_IN_WAIT;
use crate::policy_source;
use crate::rights_source;
use crate::services;
use crate::write::deletion;

/// What other writes are judged by, or filled in from, out of the cache, once its writer is answered.
const DECIDES: [(&str, &str); 7] = [
    ("", "namespaces"),
    ("", "limitranges"),
    ("", "resourcequotas"),
    ("networking.k8s.io", "ingressclasses"),
    ("node.k8s.io", "runtimeclasses"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("storage.k8s.io", "storageclasses"),
];

/// What follows a write. A CRD is served, and a namespace that is on its way out takes nothing new, or
/// no more than its limits say.
pub(crate) async fn write(context: &Context, served: &Served, object: &Object) {
    taken_in(context, served, object.revision()).await;
}

/// What follows a delete: a CRD's end is taken in, what the object had is given back, and the Endpoints of a
/// Service go with it.
pub(crate) async fn delete(
    context: &Arc<Context>,
    served: &Served,
    object: &Object,
    revision: Revision,
    mode: Mode,
) {
    if mode == Mode::Commit {
        taken_in(context, served, revision).await;
        services::after_delete(context, served, object, revision).await;
        if served.is("", "services") {
            match delete_endpoints(context, object).await {
                Ok(()) => {}
                Err(status) if status.reason == Reason::NotFound => {}
                Err(status) => tracing::warn!(why = status.message, "endpoints of a deleted Service stay"),
            }
        }
        services::look_after_delete(context, served, object);
    }
}

/// Waits until other requests are judged by what there is as of `revision`, if they are by what is served.
async fn taken_in(context: &Context, served: &Served, revision: Revision) {
    let deadline = context.clock.now() + TAKEN_IN_WAIT;
    if served.is_crd() {
        context.catalog_at_least(revision, deadline).await;
    } else if policy_source::has(served) {
        policy_source::take_in(context, served, revision).await;
    } else if rights_source::has(served) {
        rights_source::take_in(context, served, revision).await;
    } else if DECIDES.iter().any(|(group, resource)| served.is(group, resource))
        && let Some(store) = &served.store
    {
        // A cache that is behind for so long is behind for everybody: the write itself is done.
        let _late = store.cacher.at_least(revision, deadline).await;
    }
}

/// Deletes the Endpoints of a Service that is gone, as upstream does, lest a new one of its name finds them.
async fn delete_endpoints(context: &Arc<Context>, service: &Object) -> Result<(), Status> {
    let Some(served) = context.catalog().resource("", "v1", "endpoints").cloned() else { return Ok(()) };
    let store = served.stored()?;
    let (now, options) = (context.now_rfc3339(), DeleteOptions::default());
    let judge = |current: Option<&Current>| {
        let current = current.ok_or_else(|| Status::not_found("", "endpoints", service.name()))?;
        let mut value = served.to_judged_value(&current.object)?;
        let then = deletion::begin(&served, &mut value, &options, &now);
        then.decision(&served, value, None)
    };
    let key = store.key(service.namespace(), service.name());
    if let Done::Deleted { object, .. } = store.guarded_update(&key, Mode::Commit, judge).await? {
        services::look_after_delete(context, &served, &object);
    }
    Ok(())
}
