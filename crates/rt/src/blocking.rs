//! Where work runs that may wait for a disk.
//!
//! On threads of the runtime for such work; in a simulation as a task of its own runtime, so that one thread
//! does everything and a seed repeats it. Owner of the choice: the thread that drives the runtime.

use std::cell::Cell;

use tokio::task::JoinHandle;

thread_local! {
    static AS_TASKS: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` where it holds up no task.
pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    match as_tasks() {
        true => tokio::task::spawn(async move { work() }),
        false => tokio::task::spawn_blocking(work),
    }
}

/// Whether work runs as tasks here.
pub(crate) fn as_tasks() -> bool {
    AS_TASKS.get()
}

/// While it lives, what this thread asks [`blocking`] for runs as tasks. For simulations on a runtime of one
/// thread.
#[derive(Debug)]
pub struct BlockingAsTasks(());

impl BlockingAsTasks {
    pub fn on_this_thread() -> BlockingAsTasks {
        AS_TASKS.set(true);
        BlockingAsTasks(())
    }
}

impl Drop for BlockingAsTasks {
    fn drop(&mut self) {
        AS_TASKS.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn work_runs_on_another_thread_unless_this_one_does_everything() {
        let here = thread::current().id();
        let elsewhere = blocking(|| thread::current().id()).await.expect("runs");
        assert_ne!(elsewhere, here);
        let alone = BlockingAsTasks::on_this_thread();
        assert_eq!(blocking(|| thread::current().id()).await.expect("runs"), here);
        drop(alone);
        assert_ne!(blocking(|| thread::current().id()).await.expect("runs"), here);
    }
}
