//! The Lease by which a server says that it is there: `apiserver-<hash>` in kube-system, as kube-apiserver
//! keeps one.
//!
//! In: what the host is called, and where the server is reached. Out: the Lease, made at the start and
//! renewed from then on at a pace that leaves an idle disk alone (ADR 47), and the end of those whose servers
//! are gone. It also moves the store's revision: a continue token names one, and is over once history has
//! moved past it. Owner: one task. Where others may be on the store a server that ends takes its own away;
//! alone it leaves it, and its next start takes it over.
//!
//! Source: kubernetes v1.36.3 `controlplane/apiserver/server.go`, `controlplane/controller/apiserverleasegc`; component-helpers
//! v0.36.3 `apimachinery/lease`; apiserver v0.36.3 `server/config.go`.

use std::sync::Arc;
use std::time::Duration;

use forebay_apimachinery::options::{DeleteOptions, Preconditions};
use forebay_apimachinery::{Reason, Status};
use forebay_catalog::errors;
use forebay_catalog::store::{Current, Decision, Mode};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{COMPONENT, DURATION_SECONDS, Identity, LABEL};
use crate::context::Context;
use crate::delete;
use crate::new_object;
use crate::owners;
use forebay_catalog::Target;

const NAMESPACE: &str = "kube-system";

/// How often it is renewed, and looked for those that are over. kube-apiserver does it each 10 s, 8,640 times
/// a day; this is 360 times, each a commit of 52 KiB and, when what it replaced is given up, another of 40
/// (ADR 47). More often than history is kept for, so that a token is over within less than twice that, for
/// which upstream's conformance test waits.
const RENEW_EVERY: Duration = Duration::from_secs(4 * 60);
/// After one that failed.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// How long a server is taken to be there after it has renewed its Lease, where it says nothing else: several
/// times as long as kube-apiserver takes to do so again.
const PRESENT_FOR: Duration = Duration::from_secs(45);

/// For how long either engine keeps history, unless it is told otherwise.
const HISTORY: Duration = Duration::from_secs(5 * 60);
/// How long upstream's conformance test waits for a token to be over, less its own pace and that of marks.
const TOKEN_WAIT: Duration = Duration::from_secs(10 * 60 - 20 - 10);
const _: () = assert!(RENEW_EVERY.as_secs() + HISTORY.as_secs() < TOKEN_WAIT.as_secs());
const _: () = assert!(DURATION_SECONDS >= 3 * RENEW_EVERY.as_secs());

/// Says that this server is there, and goes on to. It does not wait for a store that takes no writes.
pub(crate) async fn start(context: &Arc<Context>) {
    let Some(identity) = context.config.identity.clone() else { return };
    let holder = format!("{}_{}", identity.name, context.random.uuid());
    let next = look_after_identity(context, &identity, &holder).await;
    context.tasks.spawn("identity lease", keep_identity(context.clone(), identity, holder, next));
}

async fn keep_identity(context: Arc<Context>, identity: Identity, holder: String, mut next: Duration) {
    loop {
        context.clock.sleep(next).await;
        next = look_after_identity(&context, &identity, &holder).await;
    }
}

/// Renews the Lease and ends those that are over. When to do so again.
async fn look_after_identity(context: &Arc<Context>, identity: &Identity, holder: &str) -> Duration {
    let done = match renew_identity(context, identity, holder).await {
        Ok(()) => end_old_identities(context, identity).await,
        failed => failed,
    };
    match done {
        Ok(()) => RENEW_EVERY,
        Err(status) => {
            tracing::warn!(
                why = status.message,
                "the identity lease of this server is not as it should be yet"
            );
            RETRY_AFTER
        }
    }
}

async fn renew_identity(context: &Arc<Context>, identity: &Identity, holder: &str) -> Result<(), Status> {
    let Some(_turn) = context.kubernetes.turn_to_stay().await else { return Ok(()) };
    let target = identity_leases(context)?;
    let (served, store) = (&target.served, target.served.stored()?);
    let key = store.key(NAMESPACE, &identity.name);
    let judge = |current: Option<&Current>| {
        let mut lease = match current {
            Some(current) => served.to_value(&current.object)?,
            None => {
                let mut new = json!({
                    "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
                    "metadata": { "name": identity.name, "namespace": NAMESPACE },
                });
                new_object::fill_in(context, &target, &mut new);
                new
            }
        };
        let live = current.is_some().then(|| lease.clone());
        identity.put_into(&mut lease, holder, context.timestamp());
        owners::by_server(context, served, (owners::SERVER, ""), live.as_ref(), &mut lease)?;
        Ok(Decision::Put { value: served.encode(lease)?, ttl: None })
    };
    store.guarded_update(&key, Mode::Commit, judge).await.map(drop)
}

/// Takes this server's Lease away, which goes.
pub(crate) async fn end(context: &Arc<Context>) -> Result<(), Status> {
    let Some(identity) = &context.config.identity else { return Ok(()) };
    let target = Target { name: Some(identity.name.clone()), ..identity_leases(context)? };
    gone(delete::delete(context, &target, &DeleteOptions::default()).await.map(drop))
}

/// The names of servers whose Leases were renewed not long ago: kube-apiserver does it each 10 s. One of ours
/// has said its word long before it does so again.
///
/// # Errors
/// The Leases are not read yet.
pub(crate) fn present(context: &Arc<Context>) -> Result<Vec<String>, Status> {
    let leases = identity_leases(context)?;
    let store = leases.served.stored()?;
    let oldest = context.timestamp() - PRESENT_FOR;
    let snapshot = store.cacher.snapshot().map_err(|error| errors::cache(&error))?;
    let all = snapshot.range(&store.reach(Some(NAMESPACE), None), None);
    let mut present = Vec::new();
    // Few: Leases of components.
    for lease in all.filter(|lease| lease.label(LABEL) == Some(COMPONENT)) {
        let renewed =
            leases.served.to_value(lease)?["spec"]["renewTime"].as_str().map(str::parse::<Timestamp>);
        if matches!(renewed, Some(Ok(renewed)) if renewed >= oldest) {
            present.push(lease.name().to_owned());
        }
    }
    Ok(present)
}

/// Deletes the Leases of servers that have said nothing for longer than they said they would.
async fn end_old_identities(context: &Arc<Context>, own: &Identity) -> Result<(), Status> {
    let leases = identity_leases(context)?;
    let store = leases.served.stored()?;
    let now = context.timestamp();
    let snapshot = store.cacher.snapshot().map_err(|error| errors::cache(&error))?;
    let all = snapshot.range(&store.reach(Some(NAMESPACE), None), None);
    for lease in all.filter(|lease| lease.label(LABEL) == Some(COMPONENT) && lease.name() != own.name) {
        let value = leases.served.to_value(lease)?;
        if !is_over(&value["spec"], now) {
            continue;
        }
        // One that was renewed meanwhile is another state.
        let preconditions = Preconditions {
            uid: value["metadata"]["uid"].as_str().map(str::to_owned),
            resource_version: value["metadata"]["resourceVersion"].as_str().map(str::to_owned),
        };
        let target = Target { name: Some(lease.name().to_owned()), ..leases.clone() };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        gone(delete::delete(context, &target, &options).await.map(drop))?;
    }
    Ok(())
}

fn identity_leases(context: &Arc<Context>) -> Result<Target, Status> {
    let served = context.catalog().resource("coordination.k8s.io", "v1", "leases").cloned();
    let served = served.ok_or_else(|| Status::internal("leases are not served"))?;
    let namespace = Some(NAMESPACE.to_owned());
    Ok(Target::of_server(served, namespace, None))
}

/// Whether a Lease is over at `now`. One that does not say for how long it is was not made by a server.
fn is_over(spec: &Value, now: Timestamp) -> bool {
    let renewed = spec["renewTime"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    match (renewed, spec["leaseDurationSeconds"].as_i64()) {
        (Some(renewed), Some(seconds)) => renewed.as_second().saturating_add(seconds) < now.as_second(),
        _ => true,
    }
}

/// Another server may have deleted it, or its own have renewed it.
fn gone(done: Result<(), Status>) -> Result<(), Status> {
    match done {
        Err(status) if !matches!(status.reason, Reason::NotFound | Reason::Conflict) => Err(status),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_over_once_its_time_has_passed_or_nobody_says_how_long_that_is() {
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().expect("a time");
        for (spec, over) in [
            (json!({ "renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 3600 }), false),
            (json!({ "renewTime": "2025-12-31T23:59:59.000000Z", "leaseDurationSeconds": 3600 }), true),
            (json!({ "renewTime": "2026-01-01T00:00:00.000000Z" }), true),
            (json!({ "leaseDurationSeconds": 3600 }), true),
            (Value::Null, true),
        ] {
            assert_eq!(is_over(&spec, now), over, "{spec}");
        }
    }
}
