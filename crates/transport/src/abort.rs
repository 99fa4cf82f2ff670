//! Breaking an answer off, from wherever it is found out that nobody reads on.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use forebay_rt::Told;
use futures_util::task::AtomicWaker;
use pin_project_lite::pin_project;

/// Whether it was broken off, and who is told. Once aborted it stays so.
#[derive(Default)]
pub struct Abort {
    is_aborted: AtomicBool,
    // The task that carries the answer; one at a time.
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

pin_project! {
    /// Work that ends with `None` when it is aborted before. Not a block, which would hold its work twice, for as long as a
    /// watch is idle. One task at a time does such work for one [`Abort`].
    pub struct UntilAborted<A, F> {
        abort: A,
        // Which waker is registered for the abort already, so that none is registered twice.
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
