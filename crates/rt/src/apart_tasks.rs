//! Tasks that compute for long between their waits, on threads of their own that let the others go first.
//!
//! In: a future. Out: its result, unless whoever asked is gone: then it ends at its next wait. It computes on
//! these threads, and is at home in the runtime of whoever asked: what it starts runs there, and what it
//! waits for, a time or a connection, is kept there. The threads are started with the first one, and stay. In
//! a simulation it is a task of its runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Handle, Runtime};
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
        Some(runtime) => runtime.spawn(AtHome { home: Handle::current(), work: Box::pin(work) }),
        None => tokio::spawn(work),
    })
}

/// Work that is polled as if by the runtime `home`.
struct AtHome<F> {
    home: Handle,
    work: Pin<Box<F>>,
}

impl<F: Future> Future for AtHome<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let _home = this.home.enter();
        this.work.as_mut().poll(cx)
    }
}

fn started() -> Option<Runtime> {
    let built = Builder::new_multi_thread()
        .worker_threads(APART_THREADS)
        .thread_name("apart task")
        .on_thread_start(|| give_way(APART_NICENESS))
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

    #[tokio::test(start_paused = true)]
    async fn what_a_task_starts_and_waits_for_is_at_home_in_the_runtime_of_who_asked() {
        let here = std::thread::current().id();
        let clock = crate::Clock::system();
        let (hour, began) = (crate::Duration::from_secs(3600), clock.now());
        let task = apart_task(async move {
            let started = tokio::spawn(async { std::thread::current().id() }).await;
            crate::Clock::system().sleep(hour).await;
            (started.is_ok_and(|thread| thread == here), std::thread::current().id() != here)
        });
        assert_eq!(task.await, Some((true, true)));
        assert!(clock.now() - began >= hour, "an hour of the clock that stands still here");
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
