//! Breaking an answer off, from wherever it is found out that nobody reads on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Context;

use futures_util::task::AtomicWaker;

/// Whether it was broken off, and who is told. Once aborted it stays so.
#[derive(Default)]
pub struct Abort {
    is_aborted: AtomicBool,
    // Who carries the answer: one task at a time.
    carrier: AtomicWaker,
}

impl Abort {
    /// Breaks off: the client sees a reset, never an end that looks whole.
    pub fn abort(&self) {
        self.is_aborted.store(true, Ordering::Release);
        self.carrier.wake();
    }

    pub fn is_aborted(&self) -> bool {
        self.is_aborted.load(Ordering::Acquire)
    }

    /// Tells the task that polls; one that looks after that misses nothing.
    pub fn wakes(&self, cx: &Context<'_>) {
        self.carrier.register(cx.waker());
    }
}
