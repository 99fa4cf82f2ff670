//! Named tasks that are told to stop and then joined, and whose turns are [watched](crate::long_turns).

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::time::{Duration, timeout};
use tokio_util::task::TaskTracker;

use crate::bell::{Bell, Ear};
use crate::turns::Turn;

/// Every connection and every watch waits for several flags.
const BELL_ROWS: usize = 8;

/// The tasks of one server. Cheap to clone; all clones share one set.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    shutdown: Shutdown,
    // Raised when nobody waits any more; ends the graceful ones too.
    cut: Shutdown,
}

/// Ends every task of a set, at its next await point, when dropped.
#[derive(Debug)]
pub struct CutOnDrop(Tasks);

/// Tells tasks that it is time to leave. Once raised it stays raised.
#[derive(Clone, Debug, Default)]
pub struct Shutdown(Arc<Flag>);

#[derive(Debug)]
struct Flag {
    up: AtomicBool,
    bell: Bell,
}

pin_project! {
    /// Work, until it ends or a flag is raised. Not a block, which would hold its work twice, for as long as
    /// it lasts.
    struct Until<F> {
        flag: Raised,
        name: &'static str,
        // How work is said to have ended that was ended from outside.
        told: &'static str,
        #[pin]
        work: F,
    }
}

impl<F: Future<Output = ()>> Future for Until<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        let how = match this.flag.poll(cx) {
            Poll::Ready(()) => *this.told,
            Poll::Pending => {
                let turn = Turn::begin();
                let polled = this.work.poll(cx);
                turn.end(this.name);
                ready!(polled);
                "ended"
            }
        };
        tracing::debug!(task = this.name, "{how}");
        Poll::Ready(())
    }
}

/// Waits for a [`Shutdown`].
#[derive(Debug)]
pub struct Raised {
    flag: Shutdown,
    ear: Ear,
}

impl Tasks {
    /// An empty set.
    pub fn new() -> Tasks {
        Tasks::default()
    }

    /// Starts `work` under `name`. It is dropped at its next await point once shutdown is raised.
    pub fn spawn(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(Until { flag: self.shutdown.watch(), name, told: "stopped", work });
    }

    /// Starts `work` under `name`; it watches [`Shutdown`] itself and ends in its own order, or is dropped at
    /// its next await point when the set is cut.
    pub fn spawn_graceful(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(Until { flag: self.cut.watch(), name, told: "cut", work });
    }

    /// What holds this set's tasks alive: dropped, all of them end.
    pub fn cut_on_drop(&self) -> CutOnDrop {
        CutOnDrop(self.clone())
    }

    /// The flag that every task of this set sees.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Raises the flag and waits for every task, at most `limit`. False when some were still running then;
    /// they are cut.
    pub async fn stop(&self, limit: Duration) -> bool {
        self.shutdown.raise();
        self.tracker.close();
        let ended = timeout(limit, self.tracker.wait()).await.is_ok();
        self.cut.raise();
        ended
    }
}

impl Drop for CutOnDrop {
    fn drop(&mut self) {
        self.0.shutdown.raise();
        self.0.cut.raise();
    }
}

impl Shutdown {
    /// One that few wait for, such as the tasks of one connection: it takes little memory.
    pub fn for_few() -> Shutdown {
        Shutdown(Arc::new(Flag { up: AtomicBool::new(false), bell: Bell::new(1) }))
    }

    /// Raises the flag.
    pub fn raise(&self) {
        self.0.up.store(true, Ordering::SeqCst);
        self.0.bell.ring();
    }

    /// Whether the flag is up.
    pub fn is_raised(&self) -> bool {
        self.0.up.load(Ordering::SeqCst)
    }

    /// A future of the flag, for a task that waits for other things as well.
    pub fn watch(&self) -> Raised {
        Raised { flag: self.clone(), ear: self.0.bell.ear() }
    }

    /// Waits for the flag. Cancel-safe.
    pub async fn raised(&self) {
        let mut raised = self.watch();
        poll_fn(|cx| raised.poll(cx)).await;
    }
}

impl Raised {
    /// Ready once the flag is up.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.flag.is_raised() { Poll::Ready(()) } else { self.ear.poll_rung(cx).map(drop) }
    }
}

impl Default for Flag {
    fn default() -> Flag {
        Flag { up: AtomicBool::new(false), bell: Bell::new(BELL_ROWS) }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn stop_joins_every_task() {
        let tasks = Tasks::new();
        tasks.spawn("waits for ever", std::future::pending());
        let flag = tasks.shutdown().clone();
        tasks.spawn_graceful("leaves when told", async move { flag.raised().await });
        assert!(tasks.stop(Duration::from_secs(5)).await);
    }

    #[tokio::test]
    async fn a_flag_is_seen_by_whoever_waits_before_and_after() {
        let flag = Shutdown::default();
        let mut waiting = pin!(flag.raised());
        for _ in 0..3 {
            assert!(look_once(waiting.as_mut()).await.is_pending());
        }
        let other = flag.clone();
        let moved = tokio::spawn(async move { other.raised().await });
        tokio::task::yield_now().await;
        flag.raise();
        assert!(flag.is_raised());
        moved.await.expect("it ends");
        waiting.await;
        flag.raised().await;
    }

    /// What waits for a bell is not held to tokio's budget: told to wait, it is among those who are rung for.
    #[tokio::test]
    async fn a_flag_is_heard_by_a_task_that_has_used_up_its_turn() {
        let flag = Shutdown::default();
        let other = flag.clone();
        let hears = tokio::spawn(async move {
            let mut waiting = pin!(other.raised());
            let late = poll_fn(|cx| {
                while tokio::task::coop::has_budget_remaining() {
                    assert!(pin!(tokio::task::coop::consume_budget()).poll(cx).is_ready());
                }
                waiting.as_mut().poll(cx)
            });
            late.await;
        });
        tokio::task::yield_now().await;
        assert!(!hears.is_finished());
        flag.raise();
        hears.await.expect("it ends");
    }

    async fn look_once(mut future: std::pin::Pin<&mut impl Future<Output = ()>>) -> Poll<()> {
        poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
    }

    #[tokio::test]
    async fn who_does_not_leave_in_time_is_cut() {
        for by_drop in [false, true] {
            let tasks = Tasks::new();
            let (held, mut dropped) = tokio::sync::oneshot::channel::<()>();
            tasks.spawn_graceful("never leaves", async move {
                std::future::pending::<()>().await;
                drop(held);
            });
            tokio::task::yield_now().await;
            assert!(dropped.try_recv().is_err_and(|e| e == tokio::sync::oneshot::error::TryRecvError::Empty));
            if by_drop {
                drop(tasks.cut_on_drop());
            } else {
                assert!(!tasks.stop(Duration::ZERO).await);
            }
            assert!((&mut dropped).await.is_err(), "by drop: {by_drop}");
        }
    }
}
