//! A handler as a task of its own: one that is slow, never returns or panics hurts nobody else.
//!
//! In: a subscription, what to do with each notice. Out: [`Handling`], which tells how far it is and ends it. Never: two notices at a
//! time, a notice twice.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use forebay_apimachinery::Revision;
use futures_util::FutureExt as _;
use tokio::sync::oneshot;

use crate::informer::Informer;
use crate::limits;
use crate::subscription::{Notice, Subscription};

/// A handler that is at work. Dropping it ends it after the notice that it has.
pub struct Handling {
    counts: Arc<Counts>,
    _stop: oneshot::Sender<()>,
}

/// How a handler fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerStats {
    /// Notices that it was given.
    pub given: u64,
    /// Notices over which it panicked. Each is gone, and it goes on with the next.
    pub panics: u64,
    /// Changes that it was told as the sum of several, because it was too slow for each.
    pub conflated: u64,
    /// Up to where it was told everything.
    pub revision: Option<Revision>,
}

/// The handlers of an informer, by the names that they were given.
#[derive(Default)]
pub(crate) struct Handlers(Mutex<Vec<(String, Weak<Counts>)>>);

impl Handlers {
    fn add(&self, name: &str, counts: &Arc<Counts>) {
        let mut handlers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        handlers.retain(|(_, counts)| counts.strong_count() > 0);
        handlers.push((name.to_owned(), Arc::downgrade(counts)));
    }

    /// How each fares that is at work.
    pub(crate) fn stats(&self) -> Vec<(String, HandlerStats)> {
        let handlers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |(name, counts): &(String, Weak<Counts>)| Some((name.clone(), counts.upgrade()?.stats()));
        handlers.iter().filter_map(of).collect()
    }
}

#[derive(Default)]
pub(crate) struct Counts {
    given: AtomicU64,
    panics: AtomicU64,
    conflated: AtomicU64,
    // 0 is none.
    revision: AtomicU64,
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
                counted.note(&subscription);
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

impl Counts {
    fn stats(&self) -> HandlerStats {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        HandlerStats {
            given: count(&self.given),
            panics: count(&self.panics),
            conflated: count(&self.conflated),
            revision: Revision::new(count(&self.revision)),
        }
    }

    fn note<K>(&self, subscription: &Subscription<K>) {
        self.conflated.store(subscription.conflated(), Ordering::Relaxed);
        self.revision.store(subscription.revision().map_or(0, Revision::get), Ordering::Relaxed);
    }
}
