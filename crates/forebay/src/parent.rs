//! The process that started this one, and its end: a server of a test must not outlive the test.
//!
//! The kernel tells who the parent is, and gives a process whose parent is gone another one. That is asked
//! for again and again, which is the same on every system; Linux's signal on a parent's death comes already
//! when the thread that forked ends, and tests are started from threads.

use std::time::Duration;

use forebay_rt::Clock;
use rustix::process::{Pid, getppid};

/// Between two looks. A system call each.
const LOOK_PERIOD: Duration = Duration::from_millis(200);

/// The parent at the time when this was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent(Option<Pid>);

impl Parent {
    /// Who it is now; to be called before anything that takes time.
    pub fn this() -> Self {
        Self(getppid())
    }

    pub fn is_gone(self) -> bool {
        getppid() != self.0
    }

    /// Waits for its end. Cancel-safe.
    pub async fn gone(self, clock: &Clock) {
        while !self.is_gone() {
            clock.sleep(LOOK_PERIOD).await;
        }
    }
}
