//! Tasks that compute for long between their waits, on threads of their own that let the others go first.
//!
//! In: a future. Out: its result, unless whoever asked is gone: then it ends at its next wait. The threads are started with
//! the first one, and stay. In a simulation it is a task of its runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::background::{APART_NICENESS, APART_THREADS, give_way};
use crate::blocking;

/// The result of a task. Who drops it wants it no more.
#[derive(Debug)]
pub struct ApartTask<T>(JoinHandle<T>);

/// The result; `None` when the task has panicked.
impl<T> Future for ApartTask<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        Pin::new(&mut self.0).poll(cx).map(Result::ok)
    }
}

impl<T> Drop for ApartTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs `work`, which computes for long and may wait in between, while what is short goes first.
pub fn apart_task<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> ApartTask<T> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    if blocking::as_tasks() {
        return ApartTask(tokio::spawn(work));
    }
    ApartTask(match RUNTIME.get_or_init(started) {
        Some(runtime) => runtime.spawn(work),
        None => tokio::spawn(work),
    })
}

fn started() -> Option<Runtime> {
    let built = Builder::new_multi_thread()
        .worker_threads(APART_THREADS)
        .thread_name("apart task")
        .on_thread_start(|| give_way(APART_NICENESS))
        .enable_time()
        .build();
    built.inspect_err(|error| tracing::error!(%error, "there are no threads for long tasks")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlockingAsTasks;

    #[tokio::test]
    async fn a_task_runs_on_another_thread_and_a_panic_ends_only_itself() {
        let here = std::thread::current().id();
        assert_eq!(apart_task(async move { std::thread::current().id() == here }).await, Some(false));
        assert_eq!(apart_task(async { panic!("as it should") }).await, None::<()>);
    }

    #[tokio::test]
    async fn a_task_that_nobody_waits_for_ends_where_it_waits() {
        let (held, holds) = tokio::sync::oneshot::channel::<()>();
        let task = apart_task(async move {
            let _held = held;
            std::future::pending::<()>().await
        });
        drop(task);
        assert!(holds.await.is_err(), "what it held is dropped");
    }

    #[tokio::test]
    async fn in_a_simulation_it_is_a_task_of_the_same_thread() {
        let _alone = BlockingAsTasks::on_this_thread();
        let here = std::thread::current().id();
        assert_eq!(apart_task(async move { std::thread::current().id() == here }).await, Some(true));
    }
}
