//! Work that takes long, done apart from the tasks: functions, and futures that compute between their waits.
//!
//! In: work, and on how many bytes. Out: its result. While a task makes YAML of an object of 1 MB and compresses it, some
//! fifteen milliseconds, no other runs on its thread: with fifty that do so, whoever only wants to shake hands would wait
//! for a second. So what is large is left to [threads for such work](forebay_rt::apart), which take it in the order in
//! which it came, and the kernel lets the tasks run before them.

use forebay_apimachinery::Status;

use crate::limits::APART_BYTES;
use crate::status::Failure;

/// Where work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// By the task itself: it takes less than a millisecond, or is not known to take more.
    Here,
    Apart,
}

impl Place {
    /// For work on so many bytes.
    pub fn of(bytes: usize) -> Place {
        if bytes < APART_BYTES { Place::Here } else { Place::Apart }
    }

    /// The result of `work`.
    ///
    /// # Errors
    /// 500 when it panicked apart.
    pub async fn done<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        match self {
            Place::Here => Ok(work()),
            Place::Apart => forebay_rt::apart(work).await.ok_or_else(broken_off),
        }
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
    match Place::of(bytes) {
        Place::Here => Ok(work.await),
        Place::Apart => forebay_rt::apart_task(work).await.ok_or_else(broken_off),
    }
}

fn broken_off() -> Failure {
    Status::internal("the work for the answer was broken off").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_large_is_done_on_another_thread() {
        let thread = |bytes| Place::of(bytes).done(|| std::thread::current().id());
        let here = std::thread::current().id();
        assert_eq!(thread(APART_BYTES - 1).await, Ok(here));
        assert!(thread(APART_BYTES).await.is_ok_and(|apart| apart != here));
    }

    #[tokio::test]
    async fn a_panic_ends_the_request_and_nothing_else() {
        let failure = Place::Apart.done(|| -> u32 { panic!("as it should") }).await.expect_err("no result");
        assert_eq!(u16::from(failure.code()), 500);
        assert_eq!(Place::Apart.done(|| 3).await, Ok(3));
    }
}
