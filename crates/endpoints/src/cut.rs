//! Breaking an answer off, from wherever it is found out that nobody reads on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Context;

use futures_util::task::AtomicWaker;

/// Whether it was broken off, and who is told. Once cut it stays cut.
#[derive(Default)]
pub struct Cut {
    is_done: AtomicBool,
    // Who carries the answer: one task at a time.
    bearer: AtomicWaker,
}

impl Cut {
    /// Breaks off: the client sees a reset, never an end that looks whole.
    pub fn cut(&self) {
        self.is_done.store(true, Ordering::Release);
        self.bearer.wake();
    }

    pub fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// Tells the task that polls; one that looks after that misses nothing.
    pub fn tell(&self, cx: &Context<'_>) {
        self.bearer.register(cx.waker());
    }
}
