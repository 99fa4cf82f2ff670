//! Breaking off an answer that nobody reads, from any task or thread.
//!
//! In: the word to break off. Out: the work that carries the answer ends. Never: decides that an answer is to
//! be broken off.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use forebay_rt::Told;
use futures_util::task::AtomicWaker;
use pin_project_lite::pin_project;

/// Whether work was broken off, and the task to wake when it is. Once aborted it stays so.
#[derive(Default)]
pub struct Abort {
    is_aborted: AtomicBool,
    // The task that carries the answer; one at a time.
    carrier: AtomicWaker,
}

impl Abort {
    /// Breaks the work off. The client sees a reset, never an end that looks as if the answer was complete.
    pub fn abort(&self) {
        self.is_aborted.store(true, Ordering::Release);
        self.carrier.wake();
    }

    pub fn is_aborted(&self) -> bool {
        self.is_aborted.load(Ordering::Acquire)
    }

    /// Registers the task that polls, which is woken by [`Abort::abort`]. It has to call
    /// [`Abort::is_aborted`] after this, not before, so that it misses nothing.
    pub fn wakes(&self, cx: &Context<'_>) {
        self.carrier.register(cx.waker());
    }
}

pin_project! {
    /// Work that ends with `None` when it is aborted before it is done. At most one task at a time does such
    /// work for one [`Abort`]. It is a type and not an `async` block, because a block would hold the work
    /// twice in memory, for as long as a watch is idle.
    pub struct UntilAborted<A, F> {
        abort: A,
        // The waker that is registered already, so that it is not registered at each poll.
        told: Told,
        #[pin]
        work: F,
    }
}

impl<A: AsRef<Abort>, F: Future> UntilAborted<A, F> {
    pub fn new(abort: A, work: F) -> UntilAborted<A, F> {
        UntilAborted { abort, told: Told::default(), work }
    }
}

impl<A: AsRef<Abort>, F: Future> Future for UntilAborted<A, F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        let this = self.project();
        let abort = (*this.abort).as_ref();
        if this.told.is_news_to(cx) {
            abort.wakes(cx);
        }
        if abort.is_aborted() {
            return Poll::Ready(None);
        }
        this.work.poll(cx).map(Some)
    }
}
