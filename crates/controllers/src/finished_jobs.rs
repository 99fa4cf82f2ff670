//! ttl-after-finished-controller: a finished Job goes once its `ttlSecondsAfterFinished` are over.
//!
//! In: notices of jobs. Out: deletes, in the foreground: its pods go first. Never: keeps a job, but for the
//! name of one that waits for its time.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/ttlafterfinished`.

use forebay_apimachinery::options::{DeleteOptions, ListOptions, Preconditions, PropagationPolicy};
use forebay_apimachinery::{Reason, Status};
use forebay_object::Object;
use forebay_registry::{Informer, Notice};
use forebay_rt::{Duration, Instant};
use memchr::memmem;
use serde_json::Value;

use crate::acting::ActingRegistry;
use crate::limits;
use crate::objects::{built_in, collection, delete, find, named};
use crate::queue::{Queue, Verdict};
use crate::run::Named;

/// The controller. Its names are `namespace/name`.
pub struct FinishedJobs(pub ActingRegistry);

impl Named for FinishedJobs {
    const NAME: &'static str = crate::Controller::FinishedJobs.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        let jobs = built_in(&self.0, "batch", "v1", "jobs")?;
        Ok(vec![self.0.informer(&collection(&jobs, None), &ListOptions::default())?])
    }

    fn observe(&self, _: usize, notice: &Notice, _: Instant, queue: &mut Queue<String>) {
        if let Notice::Put(job) = notice
            && memmem::find(&job.body(), b"\"ttlSecondsAfterFinished\"").is_some()
            && expires_at(job).is_some()
        {
            queue.add(format!("{}/{}", job.namespace(), job.name()));
        }
    }

    fn sync(&self, name: String) -> impl Future<Output = Verdict> + Send + 'static {
        let registry = self.0.clone();
        async move {
            let (namespace, name) = name.split_once('/').unwrap_or_default();
            match sync(&registry, namespace, name).await {
                Ok(None) => Verdict::Done,
                Ok(Some(wait)) => Verdict::Until(registry.clock().now() + wait.min(limits::EXPIRY_WAIT_MAX)),
                // It is another one by now, which is told of.
                Err(status) if status.reason == Reason::Conflict => Verdict::Done,
                Err(status) => Verdict::Retry(status.message),
            }
        }
    }
}

/// Deletes a job whose time is over; for how long it is not yet.
async fn sync(registry: &ActingRegistry, namespace: &str, name: &str) -> Result<Option<Duration>, Status> {
    let target = named(&built_in(registry, "batch", "v1", "jobs")?, namespace, name);
    let Some(job) = find(registry, &target).await? else { return Ok(None) };
    let Some(expires_at) = expires_at(&job) else { return Ok(None) };
    let left = expires_at.saturating_mul(1_000).saturating_sub(registry.timestamp().as_millisecond());
    if let Ok(left @ 1..) = u64::try_from(left) {
        return Ok(Some(Duration::from_millis(left)));
    }
    let options = DeleteOptions {
        propagation_policy: Some(PropagationPolicy::Foreground),
        preconditions: Preconditions {
            uid: Some(crate::meta::Meta::of(&job).uid),
            ..Preconditions::default()
        },
        ..DeleteOptions::default()
    };
    delete(registry, &target, &options).await.map(|()| None)
}

/// When a job is to go, in seconds since 1970; none while it is not finished, is to stay, or goes already.
fn expires_at(job: &Object) -> Option<i64> {
    let job: Value = serde_json::from_slice(&job.untyped_json()).ok()?;
    let seconds = job["spec"]["ttlSecondsAfterFinished"].as_i64()?;
    let mut conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    // Once: for the whole job.
    let finished = conditions.find(|condition| {
        (condition["type"] == "Complete" || condition["type"] == "Failed") && condition["status"] == "True"
    })?;
    let time: jiff::Timestamp = finished["lastTransitionTime"].as_str()?.parse().ok()?;
    job["metadata"]["deletionTimestamp"].is_null().then(|| time.as_second().saturating_add(seconds))
}
