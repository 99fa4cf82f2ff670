//! Named tasks that are told to stop and then joined.

use std::future::Future;

use tokio::time::{Duration, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The tasks of one server. Cheap to clone; all clones share one set.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    shutdown: Shutdown,
}

/// Tells tasks that it is time to leave. Once raised it stays raised.
#[derive(Clone, Debug, Default)]
pub struct Shutdown(CancellationToken);

impl Tasks {
    /// An empty set.
    pub fn new() -> Tasks {
        Tasks::default()
    }

    /// Starts `work` under `name`. It is dropped at its next await point once shutdown is raised.
    pub fn spawn(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let shutdown = self.shutdown.clone();
        self.tracker.spawn(async move {
            tokio::select! {
                biased;
                () = shutdown.raised() => tracing::debug!(task = name, "stopped"),
                () = work => tracing::debug!(task = name, "ended"),
            }
        });
    }

    /// Starts `work` under `name`; it watches [`Shutdown`] itself and ends in its own order.
    pub fn spawn_graceful(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(async move {
            work.await;
            tracing::debug!(task = name, "ended");
        });
    }

    /// The flag that every task of this set sees.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Raises the flag and waits for every task, at most `limit`. False when some were still running then.
    pub async fn stop(&self, limit: Duration) -> bool {
        self.shutdown.raise();
        self.tracker.close();
        timeout(limit, self.tracker.wait()).await.is_ok()
    }
}

impl Shutdown {
    /// Raises the flag.
    pub fn raise(&self) {
        self.0.cancel();
    }

    /// Whether the flag is up.
    pub fn is_raised(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits for the flag. Cancel-safe.
    pub async fn raised(&self) {
        self.0.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stop_joins_every_task() {
        let tasks = Tasks::new();
        tasks.spawn("waits for ever", std::future::pending());
        let flag = tasks.shutdown().clone();
        tasks.spawn_graceful("leaves when told", async move { flag.raised().await });
        assert!(tasks.stop(Duration::from_secs(5)).await);
    }
}
