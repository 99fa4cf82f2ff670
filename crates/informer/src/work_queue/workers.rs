//! Workers that take keys out of a queue and reconcile them.
//!
//! In: a queue, how many workers, and what to do with a key. Out: each key's outcome put back into the queue.
//! Owns its workers' tasks, which end with it. Never: has two workers on one key, lets a panic through to
//! another key.

use std::future::poll_fn;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use forebay_rt::{Duration, Tasks};

use super::handle::WorkQueue;
use super::limits;

/// What became of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is nothing more to do until it is added again.
    Done,
    /// It went well, and is to be looked at again in this time.
    After(Duration),
    /// It failed, for this reason, and is to be tried again when the limiter says so.
    Retry(String),
}

/// Runs `reconcile` on the keys of `queue`, until the queue is shut down and nothing is ready any more. A
/// reconcile that panics is counted ([`super::Metrics::panics`]) and its key tried again as if it had failed.
///
/// - `workers`: reconciles at once, each a task of its own; at least 1, at most [`limits::WORKERS_MAX`].
///
/// Dropped, it ends its workers at their next await point; their keys are done then, and come again only if
/// they are added.
///
/// Source: controller-runtime `pkg/internal/controller/controller.go`, what becomes of a result.
pub async fn run_workers<K, R>(
    queue: &WorkQueue<K>,
    workers: usize,
    reconcile: impl Fn(K) -> R + Send + Sync + 'static,
) where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    R: Future<Output = Outcome> + Send + 'static,
{
    let (tasks, reconcile) = (Tasks::new(), Arc::new(reconcile));
    let _cut = tasks.cut_on_drop();
    for _ in 0..workers.clamp(1, limits::WORKERS_MAX) {
        tasks.spawn_graceful("reconciles", works(queue.clone(), reconcile.clone()));
    }
    // They watch the queue and not the flag: this waits for them to end by themselves, however long that
    // takes.
    tasks.stop(Duration::MAX).await;
}

async fn works<K, R>(queue: WorkQueue<K>, reconcile: Arc<impl Fn(K) -> R>)
where
    K: Clone + Eq + Hash,
    R: Future<Output = Outcome> + Send,
{
    while let Some(item) = queue.next().await {
        let (reconcile, key) = (reconcile.clone(), item.key().clone());
        match unless_it_panics(async move { reconcile(key).await }).await {
            Some(Outcome::Done) => item.forget(),
            Some(Outcome::After(delay)) => item.again_after(delay),
            Some(Outcome::Retry(why)) => {
                tracing::debug!(why, "to be tried again");
                item.retry();
            }
            None => {
                tracing::error!("a reconcile panicked; to be tried again");
                queue.note_panic();
                item.retry();
            }
        }
    }
}

/// What `work` says; nothing when it panics. Whatever it holds is dropped before this ends.
async fn unless_it_panics<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = Some(Box::pin(work));
    let said = poll_fn(|cx| {
        let Some(work) = work.as_mut() else { return Poll::Ready(None) };
        match catch_unwind(AssertUnwindSafe(|| Pin::new(work).poll(cx))) {
            Ok(polled) => polled.map(Some),
            Err(_) => Poll::Ready(None),
        }
    })
    .await;
    // What it holds may panic as well when it is dropped.
    catch_unwind(AssertUnwindSafe(|| drop(work.take()))).ok().and(said)
}

#[cfg(test)]
#[path = "workers_tests.rs"]
mod tests;
