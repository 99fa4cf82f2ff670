//! A handler as a task of its own: one that is slow, never returns or panics hurts nobody else.
//!
//! In: a subscription, what to do with each notice. Out: [`Handling`], which tells how far it is and ends it.
//! Never: two notices at a time, a notice twice.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt as _;
use tokio::sync::oneshot;

use crate::handler_stats::{Counts, HandlerStats};
use crate::informer::Informer;
use crate::limits;
use crate::subscription::Notice;

/// A handler that is at work. Dropping it ends it after the notice that it has.
pub struct Handling {
    counts: Arc<Counts>,
    _stop: oneshot::Sender<()>,
}

impl Handling {
    pub fn stats(&self) -> HandlerStats {
        self.counts.stats()
    }
}

impl<K: Send + Sync + 'static> Informer<K> {
    /// Gives `handle` every notice, one after the other, until the handling is dropped or the informer ends.
    ///
    /// - `name`: what metrics and logs call it.
    pub fn handle<F>(&self, name: &str, mut handle: impl FnMut(Notice<K>) -> F + Send + 'static) -> Handling
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let counts = Arc::<Counts>::default();
        let (stop, stopped) = oneshot::channel();
        let (mut subscription, counted) = (self.subscribe(), counts.clone());
        self.shared.handlers.add(name, &counts);
        let name = name.to_owned();
        self.shared.tasks.spawn("informer handler", async move {
            let mut stopped = stopped.fuse();
            for turn in 1.. {
                let notice = tokio::select! {
                    biased;
                    _ = &mut stopped => return,
                    notice = subscription.next() => notice,
                };
                let is_last = matches!(notice, Notice::Ended);
                counted.given.fetch_add(1, Ordering::Relaxed);
                // Making the future may panic as well as what it does.
                let handled = AssertUnwindSafe(async { handle(notice).await }).catch_unwind().await;
                if handled.is_err() {
                    counted.panics.fetch_add(1, Ordering::Relaxed);
                    tracing::error!(handler = name, "a handler panicked; it goes on with the next notice");
                }
                counted.note(subscription.conflated(), subscription.revision());
                if is_last {
                    return;
                }
                if turn % limits::HANDLED_AT_ONCE == 0 {
                    tokio::task::yield_now().await;
                }
            }
        });
        Handling { counts, _stop: stop }
    }
}
