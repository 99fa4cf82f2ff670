//! The queue for many tasks: whoever hears of changes adds, workers wait for keys.
//!
//! In: keys. Out: [`Item`]s, each the right to work on one key until it is dropped. Never: starts a task;
//! waits anywhere but in [`WorkQueue::next`] and [`WorkQueue::shut_down_with_drain`]. The queue and its
//! limiter each have a lock for a few lines, never both at once. A key's `Clone`, `Eq` and `Hash` and the
//! limiter run inside of them and have to be short.

use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_rt::{Clock, Duration};
use tokio::sync::Notify;

use super::limits;
use super::metrics::Metrics;
use super::queue::{Next, Priority, Queue};
use super::rate::{RateLimiter, default_limiter};

/// A work queue. Cheap to clone; all clones are the same queue.
///
/// ```
/// # use forebay_informer::work_queue::WorkQueue;
/// # use forebay_rt::Clock;
/// # async fn works(queue: WorkQueue<String>) {
/// while let Some(item) = queue.next().await {
///     match reconcile(item.key()).await {
///         Ok(()) => item.forget(),
///         Err(_) => item.retry(),
///     }
/// }
/// # }
/// # async fn reconcile(_: &str) -> Result<(), ()> { Ok(()) }
/// # let queue = WorkQueue::new(Clock::system());
/// # queue.add("a".to_owned());
/// # assert_eq!(queue.len(), 1);
/// ```
///
/// Memory: that of [`Queue`], one entry a key, and one number a key that failed and was not forgotten.
///
/// Source: client-go `util/workqueue`, `TypedRateLimitingInterface`; controller-runtime `pkg/controller/priorityqueue`.
pub struct WorkQueue<K>(Arc<Shared<K>>);

/// A key that nobody else works on while this lives. Dropped, the key is done, also when its worker was cut
/// or panicked.
pub struct Item<K: Clone + Eq + Hash> {
    queue: WorkQueue<K>,
    key: K,
    priority: Priority,
}

struct Shared<K> {
    clock: Clock,
    keys: Mutex<Queue<K>>,
    limiter: Mutex<Box<dyn RateLimiter<K>>>,
    // One is told of each key that is ready, and tells the next one while there are more. All are told when
    // the time changes until which they wait, and when it ends.
    news: Notify,
    // Those that wait for the end are not to wait any longer.
    is_cut_short: AtomicBool,
}

impl<K: Clone + Eq + Hash + Send + 'static> WorkQueue<K> {
    /// An empty queue that limits retries as client-go does by default, see [`default_limiter`].
    pub fn new(clock: Clock) -> WorkQueue<K> {
        WorkQueue::with_limiter(clock, default_limiter())
    }
}

impl<K: Clone + Eq + Hash> WorkQueue<K> {
    /// An empty queue.
    ///
    /// - `limiter`: says how long a key waits that is added with [`WorkQueue::add_rate_limited`].
    pub fn with_limiter(clock: Clock, limiter: impl RateLimiter<K> + 'static) -> WorkQueue<K> {
        WorkQueue(Arc::new(Shared {
            clock,
            keys: Mutex::new(Queue::new()),
            limiter: Mutex::new(Box::new(limiter)),
            news: Notify::new(),
            is_cut_short: AtomicBool::new(false),
        }))
    }

    /// There is work for `key`, now, with priority 0.
    pub fn add(&self, key: K) {
        self.add_with_priority(key, 0);
    }

    /// There is work for `key`, now.
    ///
    /// - `priority`: the higher, the sooner; of several adds of one key the highest counts.
    pub fn add_with_priority(&self, key: K, priority: Priority) {
        let now = self.0.clock.now();
        self.change(|keys| keys.add(key, priority, now));
    }

    /// There is work for `key` in `delay`, with priority 0; in [`limits::DELAY_MAX`] at the latest. Of
    /// several times the soonest counts; an add meanwhile comes besides.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_after_with_priority(key, delay, 0);
    }

    /// The same with another priority.
    pub fn add_after_with_priority(&self, key: K, delay: Duration, priority: Priority) {
        let now = self.0.clock.now();
        let at = now + delay.min(limits::DELAY_MAX);
        self.change(|keys| keys.add_at(key, priority, at, now));
    }

    /// There is work for `key` when the limiter says so: `key` failed. With priority 0.
    pub fn add_rate_limited(&self, key: K) {
        self.add_rate_limited_with_priority(key, 0);
    }

    /// The same with another priority.
    pub fn add_rate_limited_with_priority(&self, key: K, priority: Priority) {
        if self.is_shutting_down() {
            return;
        }
        let delay = lock(&self.0.limiter).when(&key, self.0.clock.now());
        self.add_after_with_priority(key, delay, priority);
    }

    /// The failures of `key` no longer count. Does not take it out of the queue.
    pub fn forget(&self, key: &K) {
        lock(&self.0.limiter).forget(key);
    }

    /// How often `key` failed since it was last forgotten.
    pub fn num_requeues(&self, key: &K) -> u32 {
        lock(&self.0.limiter).requeues(key)
    }

    /// Keys that a worker would be given now: neither those worked on nor those due later.
    pub fn len(&self) -> usize {
        let now = self.0.clock.now();
        lock(&self.0.keys).len(now)
    }

    /// Whether there is nothing for a worker now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers as of now.
    pub fn metrics(&self) -> Metrics {
        let now = self.0.clock.now();
        lock(&self.0.keys).metrics(now)
    }

    /// The next key to work on, once there is one; `None` once the queue is shut down and nothing is ready
    /// any more. Cancel-safe.
    pub async fn next(&self) -> Option<Item<K>> {
        loop {
            // Before the look, so that what is told after it is heard.
            let news = self.0.news.notified();
            let now = self.0.clock.now();
            match self.change(|keys| keys.next(now)) {
                Next::Key(key, priority) => return Some(Item { queue: self.clone(), key, priority }),
                Next::Shut => return None,
                Next::Nothing => news.await,
                Next::Later(at) => tokio::select! {
                    () = news => {}
                    () = self.0.clock.sleep_until(at) => {}
                },
            }
        }
    }

    /// Takes nothing in any more and forgets what is due later. What is ready is still given out; after that
    /// [`WorkQueue::next`] says `None`. Ends a [`WorkQueue::shut_down_with_drain`] that still waits.
    pub fn shut_down(&self) {
        self.0.is_cut_short.store(true, Ordering::SeqCst);
        self.change(Queue::shut_down);
        self.0.news.notify_waiters();
    }

    /// The same, and waits until all that was ready is done. Needs workers that take it;
    /// [`WorkQueue::shut_down`] ends the wait. Cancel-safe: dropped, the queue stays shut down.
    pub async fn shut_down_with_drain(&self) {
        self.0.is_cut_short.store(false, Ordering::SeqCst);
        self.change(Queue::shut_down);
        loop {
            let news = self.0.news.notified();
            let is_drained = lock(&self.0.keys).is_drained();
            if is_drained || self.0.is_cut_short.load(Ordering::SeqCst) {
                return;
            }
            news.await;
        }
    }

    /// Whether it was shut down.
    pub fn is_shutting_down(&self) -> bool {
        lock(&self.0.keys).is_shut()
    }

    pub(super) fn note_panic(&self) {
        lock(&self.0.keys).note_panic();
    }

    fn done(&self, key: &K) {
        let now = self.0.clock.now();
        self.change(|keys| keys.done(key, now));
    }

    /// Does something to the keys, and tells who waits what came of it.
    fn change<T>(&self, change: impl FnOnce(&mut Queue<K>) -> T) -> T {
        let (said, concerns_all, has_ready) = {
            let mut keys = lock(&self.0.keys);
            let (due, was_shut) = (keys.next_due(), keys.is_shut());
            let said = change(&mut keys);
            let is_sooner = keys.next_due().is_some_and(|at| due.is_none_or(|due| at < due));
            let has_ended = keys.is_shut() && (!was_shut || !keys.has_ready());
            (said, is_sooner || has_ended, keys.has_ready())
        };
        if concerns_all {
            self.0.news.notify_waiters();
        }
        if has_ready {
            self.0.news.notify_one();
        }
        said
    }
}

impl<K: Clone + Eq + Hash> Item<K> {
    /// The key to work on.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The highest priority it was added with.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// Done without failure: the failures of the key no longer count.
    pub fn forget(self) {
        self.queue.forget(&self.key);
    }

    /// Done with a failure: the key comes again, with its priority, when the limiter says so.
    pub fn retry(self) {
        self.queue.add_rate_limited_with_priority(self.key.clone(), self.priority);
    }

    /// Done without failure, and to be looked at again in `delay`, with its priority.
    pub fn again_after(self, delay: Duration) {
        self.queue.forget(&self.key);
        self.queue.add_after_with_priority(self.key.clone(), delay, self.priority);
    }
}

impl<K: Clone + Eq + Hash> Drop for Item<K> {
    fn drop(&mut self) {
        self.queue.done(&self.key);
    }
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> WorkQueue<K> {
        WorkQueue(self.0.clone())
    }
}

impl<K> fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue").finish_non_exhaustive()
    }
}

impl<K: Clone + Eq + Hash + fmt::Debug> fmt::Debug for Item<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("key", &self.key)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}

/// A panic under the lock comes from a key or a limiter; what the lock guards is whole between any two of
/// their calls, or a key is missing in one place, which later calls bear.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "handle_tests.rs"]
mod tests;
