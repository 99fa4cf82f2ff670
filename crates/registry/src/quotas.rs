//! Where writes are counted in the quotas of their namespace: those of one namespace that come at once are
//! counted by one write of each quota, and by nobody else of this server meanwhile.
//!
//! A task works on each namespace that anybody waits for, and ends with the last.
//! In: what writes are to quotas. Out: quotas written on exactly the state that they were counted by, so that
//! servers of one store count together; then word to each. What is refused by the cache is judged again by
//! what is acknowledged. Never: gives anything back, which `resourcequota-controller` does.
//!
//! Source: apiserver v0.36.3 `admission/plugin/resourcequota/controller.go` (`checkQuotas`).

use std::sync::Arc;

use forebay_apimachinery::Status;
use forebay_catalog::{Served, Target, errors};
use forebay_object::Object;
use forebay_quota::{Charge, Charged, DeviceClasses, QuotaRefusal, ResourceQuota, ToCover};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::context::Context;
use crate::limits::{CHARGE_RETRIES, CHARGE_WAIT};
use crate::quota_queue::{Refused, Waiting};

/// Counts a write, beyond what was counted for it before; of a dry run it says only whether it would.
///
/// - `charged`: what was counted for it, of which that becomes a part even where the write is refused.
///
/// # Errors
/// It does not fit, or nobody could count it in time.
pub(crate) async fn charge(
    context: &Arc<Context>,
    target: &Target,
    request: Charge,
    is_dry_run: bool,
    charged: &mut Charged,
) -> Result<(), Refused> {
    let (namespace, lease) = (target.namespace(), target.lease.clone());
    let served = served(context).map_err(Refused::With)?;
    let known = cached(&served, namespace).map_err(Refused::With)?;
    let is_limited = |quota: &Arc<Object>| counted(quota).is_some_and(|quota| request.is_limited_by(&quota));
    // Once: each quota of the namespace, for the whole write.
    if request.to_cover.is_empty() && !known.iter().any(is_limited) {
        return Ok(());
    }
    lease.charge(request.bytes()).map_err(|why| Refused::With(why.into()))?;
    let (answer, answered) = oneshot::channel();
    let waiting = Waiting { request, is_dry_run, answer, _lease: lease };
    // Whoever goes away takes the place along.
    let (_place, is_first) = context.quotas.join(namespace, waiting);
    if is_first {
        let (context, namespace) = (context.clone(), namespace.to_string());
        let work = Work { context: context.clone(), namespace, is_over: false };
        context.tasks.spawn("quotas of a namespace", work.run());
    }
    tokio::select! {
        answered = answered => match answered {
            Ok((counted, said)) => {
                *charged = counted;
                said
            }
            Err(_ended) => Err(Refused::With(errors::shutting_down())),
        },
        () = context.clock.sleep(CHARGE_WAIT) => {
            Err(Refused::With(Status::internal("resource quota evaluation timed out")))
        }
    }
}

/// The device classes there are; none where none are served.
pub(crate) fn device_classes(context: &Context) -> Result<DeviceClasses, Status> {
    let Ok(store) = context.built_in("resource.k8s.io", "v1", "deviceclasses") else {
        return Ok(DeviceClasses::default());
    };
    let snapshot = store.cacher.snapshot().map_err(|error| errors::cache(&error))?;
    Ok(DeviceClasses::of(snapshot.range(&store.reach(None, None), None).filter_map(|class| members(class))))
}

/// The work on one namespace. Dropped before its end, it lets go of who waits.
struct Work {
    context: Arc<Context>,
    namespace: String,
    /// Nobody waits any more: who comes now begins anew.
    is_over: bool,
}

impl Drop for Work {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.context.quotas.leave(&self.namespace);
    }
}

/// By what quotas are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// As the cache has them.
    Cached,
    /// With all that was acknowledged.
    Fresh,
}

impl Work {
    async fn run(mut self) {
        loop {
            let together = self.context.quotas.next(&self.namespace);
            if together.is_empty() {
                self.is_over = true;
                return;
            }
            self.count(together).await;
        }
    }

    /// Counts writes together, and answers each.
    async fn count(&self, mut open: Vec<Waiting>) {
        let (mut seen, mut retries) = (Seen::Cached, CHARGE_RETRIES);
        let mut left: Option<Vec<String>> = None;
        loop {
            open.retain(|one| !one.answer.is_closed());
            if open.is_empty() {
                return;
            }
            let stored = match self.read(seen).await {
                Ok(stored) => stored,
                Err(status) => return answer_all(open, &Refused::With(status)),
            };
            let is_left = |quota: &Stored| {
                // Few: the quotas of one namespace that somebody else wrote meanwhile.
                left.as_ref().is_none_or(|left| left.contains(&quota.counted.name))
            };
            let stored: Vec<Stored> = stored.into_iter().filter(is_left).collect();
            let mut counted: Vec<ResourceQuota> = stored.iter().map(|quota| quota.counted.clone()).collect();
            let (charged, refused) = charge_each(&mut counted, &open);
            if seen == Seen::Cached && refused {
                seen = Seen::Fresh;
                continue;
            }
            let judged = answer_judged(open, charged);
            if judged.is_empty() {
                return;
            }
            let written = self.write(stored, counted).await;
            let failed = written.as_ref().err().map_or(&[][..], |(failed, _)| failed);
            let put_down = |(mut one, more): (Waiting, Charged)| {
                one.request.charged.add(more, failed);
                one
            };
            open = judged.into_iter().map(put_down).collect();
            let Err((failed, why)) = written else {
                return open.into_iter().for_each(|one| one.answer(Ok(())));
            };
            if retries == 0 {
                return answer_all(open, &Refused::With(why));
            }
            (seen, retries, left) = (Seen::Fresh, retries - 1, Some(failed));
        }
    }

    /// Writes those that are counted otherwise now.
    ///
    /// # Errors
    /// Those that could not be written, and why the last one could not.
    async fn write(
        &self,
        stored: Vec<Stored>,
        counted: Vec<ResourceQuota>,
    ) -> Result<(), (Vec<String>, Status)> {
        let (mut failed, mut why) = (Vec::new(), None);
        for (stored, counted) in stored.into_iter().zip(counted) {
            if stored.counted.used == counted.used {
                continue;
            }
            if let Err(status) = self.write_one(&stored.object, &counted).await {
                failed.push(counted.name);
                why = Some(status);
            }
        }
        why.map_or(Ok(()), |why| Err((failed, why)))
    }

    async fn write_one(&self, object: &Object, counted: &ResourceQuota) -> Result<(), Status> {
        let served = served(&self.context)?;
        let mut quota = served.to_value(object)?;
        quota["status"]["used"] = counted.used.to_value();
        let (namespace, name) = (Some(self.namespace.clone()), Some(counted.name.clone()));
        let target =
            Target { subresource: Some("status".to_owned()), ..Target::of_server(served, namespace, name) };
        self.context.own_writes.verbs()?.replace(target, quota).await
    }

    async fn read(&self, seen: Seen) -> Result<Vec<Stored>, Status> {
        let served = served(&self.context)?;
        if seen == Seen::Fresh {
            let store = served.stored()?;
            let deadline = self.context.clock.now() + forebay_watchcache::limits::FRESH_WAIT;
            store.cacher.fresh(deadline).await.map_err(|error| errors::cache(&error))?;
        }
        let stored = |object: Arc<Object>| Some(Stored { counted: counted(&object)?, object });
        Ok(cached(&served, &self.namespace)?.into_iter().filter_map(stored).collect())
    }
}

/// A quota as it is stored, and as it is counted with.
struct Stored {
    object: Arc<Object>,
    counted: ResourceQuota,
}

impl Waiting {
    fn answer(self, said: Result<(), Refused>) {
        // Whoever asked may be gone.
        let _gone = self.answer.send((self.request.charged, said));
    }
}

/// Counts one after the other, each beside those before. What each is told, and whether any was refused.
fn charge_each(
    counted: &mut [ResourceQuota],
    open: &[Waiting],
) -> (Vec<Result<Charged, QuotaRefusal>>, bool) {
    let charged: Vec<Result<Charged, QuotaRefusal>> = open
        .iter()
        .map(|one| match one.is_dry_run {
            true => {
                let judged = forebay_quota::charge(&mut counted.to_vec(), &one.request);
                judged.map(|_nothing| Charged::default())
            }
            false => forebay_quota::charge(counted, &one.request),
        })
        .collect();
    let refused = charged.iter().any(Result::is_err);
    (charged, refused)
}

/// Answers those that nothing has to be written for; returns the others, with what is to be put down.
fn answer_judged(open: Vec<Waiting>, charged: Vec<Result<Charged, QuotaRefusal>>) -> Vec<(Waiting, Charged)> {
    let mut left = Vec::new();
    for (mut one, charged) in open.into_iter().zip(charged) {
        match charged {
            Ok(charged) if charged.is_empty() => one.answer(Ok(())),
            Ok(charged) => {
                // Only those that could not be written are looked at again.
                one.request.to_cover = ToCover::default();
                left.push((one, charged));
            }
            Err(refusal) => one.answer(Err(Refused::ByQuota(refusal))),
        }
    }
    left
}

fn answer_all(open: Vec<Waiting>, refused: &Refused) {
    open.into_iter().for_each(|one| one.answer(Err(refused.clone())));
}

fn served(context: &Context) -> Result<Arc<Served>, Status> {
    let served = context.catalog().resource("", "v1", "resourcequotas").cloned();
    served.ok_or_else(|| Status::internal("resourcequotas are not served"))
}

fn cached(served: &Served, namespace: &str) -> Result<Vec<Arc<Object>>, Status> {
    let store = served.stored()?;
    let snapshot = store.cacher.snapshot().map_err(|error| errors::cache(&error))?;
    Ok(snapshot.range(&store.reach(Some(namespace), None), None).cloned().collect())
}

/// Whether a namespace has quotas, as far as is known: who cannot know is told so by [`charge`].
pub(crate) fn may_limit(context: &Context, namespace: &str) -> bool {
    let known = served(context).and_then(|served| cached(&served, namespace));
    known.map_or(true, |quotas| !quotas.is_empty())
}

fn counted(quota: &Object) -> Option<ResourceQuota> {
    members(quota).as_ref().map(ResourceQuota::of)
}

fn members(object: &Object) -> Option<serde_json::Map<String, Value>> {
    serde_json::from_slice(&object.untyped_json()).ok()
}
