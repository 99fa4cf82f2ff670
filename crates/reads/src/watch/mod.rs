//! WATCH: a session, which decides what is sent, and a body, which waits for it.
//!
//! In: a [`Planned`] watch and its lease. Out: a [`WatchBody`]. `session.rs` is the machine, without IO;
//! `body.rs` waits for what the machine says that it waits for.

mod body;
mod session;

use std::time::Duration;

use forebay_apimachinery::{Reason, Status};
use forebay_catalog::errors;
use forebay_watchcache::ReadError;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::frames::{EventForm, EventFrames, WriteStatus};
use crate::plan::{Begun, Planned, WatchPlan, WatchStart};
use crate::shown_store::ShownStore;
use body::Parting;
pub use body::WatchBody;
pub use session::{Now, Step, Wait, WatchSession};

impl Planned<WatchPlan, EventForm> {
    /// Starts what is asked for.
    ///
    /// - `write_status`: for the ERROR event of a stream that fails.
    ///
    /// # Errors
    /// What is answered before the stream begins: 429 while the cache is not ready, or when a consistent
    /// start cannot be proved (client-go retries an in-stream 504 without a pause). What kube-apiserver says
    /// inside the stream, a 410, this says there too.
    pub async fn run<L>(self, lease: L, write_status: WriteStatus) -> Result<Begun<WatchBody, L>, Status> {
        let Planned { plan, interest, served, store, shown, shared, clock, .. } = self;
        let after = match plan.start {
            WatchStart::After(revision) => Some(revision),
            _ => None,
        };
        let of = ShownStore::after(&served, store, after).await?;
        let wait = clock.now() + forebay_watchcache::limits::FRESH_WAIT;
        let cacher = &of.store().cacher;
        let fields = served.selected_fields(&interest);
        let started = of.guard(async {
            match plan.start {
                WatchStart::After(revision) => match cacher.reach_back(revision).await {
                    Ok(()) => cacher.watch(interest, revision),
                    Err(error) => Err(error),
                },
                WatchStart::Now => match cacher.fresh(wait).await {
                    Ok(snapshot) => cacher.watch(interest, snapshot.revision()),
                    Err(error) => Err(error),
                },
                WatchStart::AnyNow => {
                    cacher.snapshot().and_then(|now| cacher.watch(interest, now.revision()))
                }
                WatchStart::StateAny => cacher.snapshot().and_then(|now| cacher.watch_list(interest, now)),
                WatchStart::StateLatest => match cacher.fresh(wait).await {
                    Ok(snapshot) => cacher.watch_list(interest, snapshot),
                    Err(error) => Err(error),
                },
                WatchStart::StateAtLeast(revision) => match cacher.at_least(revision, wait).await {
                    Ok(snapshot) => cacher.watch_list(interest, snapshot),
                    Err(error) => Err(error),
                },
            }
        });
        let started = started.await?;
        let began = match started {
            Ok(watcher) => Ok(watcher),
            Err(error @ ReadError::Expired { .. }) => Err(errors::cache(&error)),
            Err(error @ ReadError::TooLarge { .. }) => {
                let status = errors::cache(&error);
                return Err(Status { reason: Reason::TooManyRequests, ..status }.retry_after(1));
            }
            Err(error) => return Err(errors::cache(&error)),
        };
        let events = EventFrames::new(served, shown, write_status);
        let parting = parting(events.retired(&fields), of.failed());
        let session = WatchSession::new(plan, began, events, shared.frames.clone(), clock.now());
        Ok(Begun { body: WatchBody::new(session, parting, clock), lease })
    }
}

/// What a watch ends for, whichever comes first; `None` where neither can.
fn parting(
    retired: Option<BoxFuture<'static, Duration>>,
    failed: Option<impl Future<Output = Status> + Send + 'static>,
) -> Option<BoxFuture<'static, Parting>> {
    let Some(retired) = retired else {
        return failed.map(|failed| failed.map(|status| Parting::Failed(Box::new(status))).boxed());
    };
    let Some(failed) = failed else { return Some(retired.map(Parting::Retired).boxed()) };
    let first = async move {
        tokio::select! {
            biased;
            status = failed => Parting::Failed(Box::new(status)),
            later = retired => Parting::Retired(later),
        }
    };
    Some(first.boxed())
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::options::{ListOptions, Query};
    use serde_json::json;

    use super::*;
    use crate::frames::Batch;
    use crate::present::As;
    use crate::tests::config_maps;

    /// Of watchers at one place the first makes the frame, and those who are shown the same on the same
    /// thread are given it again.
    #[tokio::test]
    async fn watchers_at_one_place_are_sent_the_same_bytes() {
        let world = config_maps(None).await;
        let make = async |name: &str, bytes: usize| {
            world.put(name, json!({}), json!({ "text": "x".repeat(bytes) })).await;
        };
        let watch = async |shown, query: &str| {
            let options = ListOptions::from_query(&Query::parse(query)).expect("options");
            world.watch(&options, shown).await.expect("watches")
        };
        let now = "watch=1&timeoutSeconds=600&sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
        make("before", 4_000).await;
        let mut same =
            [watch(As::Object, now).await, watch(As::Object, now).await, watch(As::Object, now).await];
        let mut metadata = watch(As::PartialMetadata, now).await;
        let mut selected = watch(As::Object, &format!("{now}&labelSelector=!absent")).await;
        let mut none = watch(As::Object, &format!("{now}&labelSelector=absent")).await;
        let mut late = watch(As::Object, now).await;
        let (mut texts, mut late_text) = (Vec::new(), Vec::new());
        for body in &mut same {
            // They look for their place.
            assert!(matches!(body.now(1 << 20, &mut Batch::default()).await, Step::Wait(_)));
        }
        for (number, bytes) in [4_000, 100, 100_000, 5_000].into_iter().enumerate() {
            make(&format!("made-{number}"), bytes).await;
            let mut sent = Vec::new();
            for body in &mut same {
                let mut batch = Batch::default();
                assert!(matches!(body.next(1 << 20, &mut batch).await, Step::Frames));
                sent.push(batch.whole());
                let step = body.now(1 << 20, &mut Batch::default()).await;
                assert!(matches!(step, Step::Wait(_)), "it is sent once");
            }
            assert!(sent.iter().all(|one| *one == sent[0]));
            assert_eq!(sent[1].as_ptr() == sent[0].as_ptr(), bytes >= 1_024, "shared from 1 KiB on");
            let mut others = [Vec::new(), Vec::new()];
            assert!(matches!(metadata.next(1, &mut others[0]).await, Step::Frames));
            assert!(matches!(selected.next(1, &mut others[1]).await, Step::Frames));
            assert!(others[0].len() < 1_000 && others[1] == sent[0]);
            assert!(matches!(none.now(1, &mut Vec::new()).await, Step::Wait(_)));
            texts.extend_from_slice(&sent[0]);
        }
        while late_text.len() < texts.len() {
            assert!(matches!(late.next(1, &mut late_text).await, Step::Frames));
        }
        assert!(late_text == texts, "one that comes later is sent the same, in order");
    }
}
