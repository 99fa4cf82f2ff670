//! POST to a pod's `eviction`: a DELETE that the disruption budgets of its namespace have to let through.
//!
//! In: an Eviction. Out: the pod deleted, and one disruption taken of its budget in a guarded update. Never:
//! waits until a budget lets it through; the client does.
//!
//! Source: kubernetes v1.36.3 `registry/core/pod/storage/eviction.go`.

use std::sync::Arc;

use forebay_apimachinery::options::DeleteOptions;
use forebay_apimachinery::{Cause, CauseReason, Reason, Status};
use forebay_catalog::errors;
use forebay_catalog::store::{Decision, Done, Mode};
use serde_json::Value;

use crate::context::Context;
use crate::delete;
use crate::incoming::name_of;
use crate::limits::{EVICTION_ROUNDS_MAX, UNPROCESSED_RETRY_SECONDS};
use crate::write::preconditions;
use forebay_catalog::Target;
use forebay_strategy::{Refusal, Standing, eviction};

const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// Deletes a pod as its Eviction asks, if its budget allows.
///
/// # Errors
/// 429 with the budget's reason; 500 when there is more than one budget; else as a DELETE.
pub(crate) async fn evict(
    context: &Arc<Context>,
    target: &Target,
    eviction: &Value,
    dry_run: bool,
) -> Result<(), Status> {
    if name_of(eviction) != target.name() {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let mut options = match eviction.get("deleteOptions") {
        Some(given) => DeleteOptions::of_eviction(given, target.name())?,
        None => DeleteOptions::default(),
    };
    options.dry_run |= dry_run;
    let target = Target { subresource: None, ..target.clone() };
    let Some(pod) = evict_what_disrupts_nothing(context, &target, &options).await? else { return Ok(()) };
    let budget = budget_of(context, &target, &pod).await?;
    let Some(budget) = budget else {
        delete_evicted(context, &target, options).await?;
        return Ok(());
    };
    match eviction::standing(&budget, &pod) {
        Standing::Counted => {
            spend_budget(context, &target, name_of(&budget), options.dry_run).await?;
            delete_evicted(context, &target, options).await?;
        }
        Standing::Uncounted => {
            let unasked = options.preconditions.resource_version.is_none();
            options.preconditions.resource_version = revision_of(&pod);
            let done = delete_evicted(context, &target, options).await;
            done.map_err(|status| match status.reason {
                Reason::Conflict if unasked => unprocessed(name_of(&budget)),
                _ => status,
            })?;
        }
    }
    Ok(())
}

/// Deletes a pod that no budget counts. A pod that one may count is left as it is, and returned.
async fn evict_what_disrupts_nothing(
    context: &Arc<Context>,
    target: &Target,
    options: &DeleteOptions,
) -> Result<Option<Value>, Status> {
    let store = target.served.stored()?;
    let key = store.key(target.namespace(), target.name());
    let mut last = None;
    for _ in 0..EVICTION_ROUNDS_MAX {
        let found = store.live(&key).await?.ok_or_else(|| target.not_found())?;
        let pod = target.served.to_value(&found.object)?;
        if !eviction::disrupts_nothing(&pod) {
            return Ok(Some(pod));
        }
        let mut options = options.clone();
        let unasked = options.preconditions.resource_version.is_none();
        if unasked && eviction::may_begin(&pod) {
            options.preconditions.resource_version = revision_of(&pod);
        }
        match delete_evicted(context, target, options).await {
            Ok(()) => return Ok(None),
            Err(status) if unasked && status.reason == Reason::Conflict => last = Some(status),
            Err(status) => return Err(status),
        }
    }
    Err(last.unwrap_or_else(errors::too_contended))
}

/// The one budget that covers `pod`, if there is one.
async fn budget_of(context: &Arc<Context>, target: &Target, pod: &Value) -> Result<Option<Value>, Status> {
    let served = context.catalog().resource("policy", "v1", "poddisruptionbudgets").cloned();
    let Some(served) = served else { return Ok(None) };
    let store = served.stored()?;
    let deadline = context.clock.now() + forebay_watchcache::limits::FRESH_WAIT;
    let snapshot = store.cacher.fresh(deadline).await.map_err(|error| errors::cache(&error))?;
    let mut found = None;
    let reach = store.reach(target.namespace.as_deref(), None);
    for object in snapshot.range(&reach, None) {
        let budget = served.to_value(object)?;
        if !eviction::covers(&budget, pod) {
            continue;
        }
        if found.is_some() {
            let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(Status::new(Reason::Unknown, why));
        }
        found = Some(budget);
    }
    Ok(found)
}

async fn spend_budget(
    context: &Arc<Context>,
    target: &Target,
    name: &str,
    dry_run: bool,
) -> Result<(), Status> {
    let served = context.catalog().resource("policy", "v1", "poddisruptionbudgets").cloned();
    let served = served.ok_or_else(|| Status::not_found("policy", "poddisruptionbudgets", name))?;
    let store = served.stored()?;
    let key = store.key(target.namespace(), name);
    let now = context.now_rfc3339();
    let judge = |current: Option<&forebay_catalog::store::Current>| {
        let current = current.ok_or_else(|| Status::not_found("policy", "poddisruptionbudgets", name))?;
        let mut budget = served.to_value(&current.object)?;
        eviction::spend(&mut budget, target.name(), &now).map_err(|refusal| refused(name, refusal))?;
        Ok(Decision::Put { value: served.encode(budget)?, ttl: None })
    };
    store.guarded_update(&key, Mode::of(dry_run), judge).await.map(|_| ())
}

/// Tells in the pod's status why it goes, and deletes it.
async fn delete_evicted(
    context: &Arc<Context>,
    target: &Target,
    mut options: DeleteOptions,
) -> Result<(), Status> {
    if !options.dry_run {
        let served = &target.served;
        let store = served.stored()?;
        let key = store.key(target.namespace(), target.name());
        let now = context.now_rfc3339();
        let judge = |current: Option<&forebay_catalog::store::Current>| {
            let current = current.ok_or_else(|| target.not_found())?;
            let mut pod = served.to_value(&current.object)?;
            preconditions::of_deletion(target, &pod, &options)?;
            let before = pod.clone();
            eviction::mark_disrupted(&mut pod, &now);
            if pod == before {
                return Ok(Decision::Keep);
            }
            Ok(Decision::Put { value: served.encode(pod)?, ttl: None })
        };
        let done = store.guarded_update(&key, Mode::Commit, judge).await?;
        let (Done::Put { object } | Done::Kept { object } | Done::Deleted { object, .. }) = done;
        if let Some(revision) = &mut options.preconditions.resource_version {
            *revision = object.revision().to_string();
        }
    }
    delete::delete_evicted(context, target, &options).await.map(drop)
}

fn revision_of(pod: &Value) -> Option<String> {
    pod["metadata"]["resourceVersion"].as_str().map(String::from)
}

fn unprocessed(budget: &str) -> Status {
    let why = format!("The disruption budget {budget} is still being processed by the server.");
    too_many(why).retry_after(UNPROCESSED_RETRY_SECONDS)
}

fn too_many(why: String) -> Status {
    Status::new(Reason::TooManyRequests, REFUSED).because([Cause::new(
        CauseReason::DisruptionBudget,
        "",
        why,
    )])
}

fn refused(budget: &str, refusal: Refusal) -> Status {
    match refusal {
        Refusal::Unprocessed => unprocessed(budget),
        Refusal::Spent(why) => too_many(why),
        Refusal::Broken(why) => {
            let message = format!("poddisruptionbudget.policy {budget:?} is forbidden: {why}");
            Status::new(Reason::Forbidden, message).about("policy", "poddisruptionbudget", budget)
        }
    }
}
