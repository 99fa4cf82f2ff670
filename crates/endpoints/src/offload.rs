//! Work that takes long, offloaded from the tasks: functions, and futures that compute between their waits.
//!
//! In: work, and on how many bytes. Out: its result. While a task makes YAML of an object of 1 MB and
//! compresses it, some fifteen milliseconds, no other runs on its thread: with fifty that do so, whoever only
//! wants to shake hands would wait for a second. So what is large is left to [threads for such
//! work](forebay_rt::apart), which take it in the order in which it came, and the kernel lets the tasks run
//! before them.

use forebay_apimachinery::Status;
use forebay_transport::RunOn;

use crate::limits::OFFLOAD_BYTES;
use crate::status::Failure;

/// Where work on so many bytes is done.
pub fn run_on(bytes: usize) -> RunOn {
    if bytes < OFFLOAD_BYTES { RunOn::Task } else { RunOn::Thread }
}

/// The result of `work`.
///
/// # Errors
/// 500 when it panicked on another thread.
pub async fn done<T: Send + 'static>(
    run_on: RunOn,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    match run_on {
        RunOn::Task => Ok(work()),
        RunOn::Thread => forebay_rt::apart(work).await.ok_or_else(broken_off),
    }
}

/// What the future `work` gives, which works on so many bytes: done in the task where they are few, as a
/// [task apart](forebay_rt::apart_task) where they are many. Dropped, it ends at its next wait.
///
/// # Errors
/// 500 when it panicked apart.
pub async fn task<T: Send + 'static>(
    bytes: usize,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Failure> {
    match run_on(bytes) {
        RunOn::Task => Ok(work.await),
        RunOn::Thread => forebay_rt::apart_task(work).await.ok_or_else(broken_off),
    }
}

fn broken_off() -> Failure {
    Failure::panic(Status::internal("the work for the answer was broken off"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_large_is_done_on_another_thread() {
        let thread = |bytes| done(run_on(bytes), || std::thread::current().id());
        let here = std::thread::current().id();
        assert_eq!(thread(OFFLOAD_BYTES - 1).await, Ok(here));
        assert!(thread(OFFLOAD_BYTES).await.is_ok_and(|apart| apart != here));
    }

    #[tokio::test]
    async fn a_panic_ends_the_request_and_nothing_else() {
        let failure = done(RunOn::Thread, || -> u32 { panic!("as it should") }).await.expect_err("no result");
        assert!(failure.is_panic() && u16::from(failure.code()) == 500);
        assert_eq!(done(RunOn::Thread, || 3).await, Ok(3));
    }
}
