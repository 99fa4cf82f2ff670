//! Lookups that are under way: whoever asks the same waits for the same answer.
//!
//! In: a key, the work that answers it. Out: what it came to. The work is a task of its own: whoever leaves
//! leaves it to the others. Never: more than so many at once. Owner: the one lock in here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use forebay_rt::Tasks;
use tokio::sync::watch;

use crate::cache::CacheKey;
use crate::limits::LOOKUPS_MAX;

/// key -> where the answer will be, <= LOOKUPS_MAX
type Waiting<T> = Arc<Mutex<HashMap<CacheKey, watch::Receiver<Option<T>>>>>;

/// See the module's doc. Cheap to clone.
pub struct Flights<T> {
    waiting: Waiting<T>,
}

/// There are too many under way.
#[derive(Debug, PartialEq, Eq)]
pub struct TooMany;

impl<T> Default for Flights<T> {
    fn default() -> Flights<T> {
        Flights { waiting: Arc::default() }
    }
}

/// Leaves no place behind, however its work ends.
struct Landing<T> {
    key: CacheKey,
    waiting: Waiting<T>,
}

impl<T> Drop for Landing<T> {
    fn drop(&mut self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

impl<T: Clone + Send + Sync + 'static> Flights<T> {
    /// What `work` comes to, or the work that is under way for `key`; `None`, if that was cut. Cancel-safe.
    ///
    /// # Errors
    /// [`TooMany`].
    pub async fn join<W>(
        &self,
        key: CacheKey,
        tasks: &Tasks,
        work: impl FnOnce() -> W,
    ) -> Result<Option<T>, TooMany>
    where
        W: Future<Output = T> + Send + 'static,
    {
        let (mut answer, says) = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            match waiting.get(&key) {
                Some(answer) => (answer.clone(), None),
                None if waiting.len() >= LOOKUPS_MAX => return Err(TooMany),
                None => {
                    let (says, answer) = watch::channel(None);
                    waiting.insert(key, answer.clone());
                    (answer, Some(says))
                }
            }
        };
        // Not under the lock: a task that cannot be started any more is dropped at once, and lands.
        if let Some(says) = says {
            let (landing, work) = (Landing { key, waiting: self.waiting.clone() }, work());
            tasks.spawn("token lookup", async move {
                let said = work.await;
                // Who comes from now on asks anew, or finds it in the cache.
                drop(landing);
                says.send_replace(Some(said));
            });
        }
        let said = answer.wait_for(Option::is_some).await;
        Ok(said.ok().and_then(|said| said.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn who_asks_the_same_waits_for_one_answer_and_who_leaves_leaves_it_to_others() {
        let (flights, tasks) = (Flights::<usize>::default(), Tasks::new());
        let (asked, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let work = || {
            let (asked, go) = (asked.clone(), go.clone());
            async move {
                let number = asked.fetch_add(1, Ordering::SeqCst) + 1;
                go.notified().await;
                number
            }
        };
        let key = [1; 32];
        {
            let mut first = Box::pin(flights.join(key, &tasks, work));
            assert!(futures_poll(&mut first).await, "nobody has answered");
        }
        let (one, other) = tokio::join!(flights.join(key, &tasks, work), async {
            go.notify_waiters();
            tokio::task::yield_now().await;
            go.notify_one();
            flights.join(key, &tasks, work).await
        });
        assert_eq!(one, Ok(Some(1)));
        assert!(matches!(other, Ok(Some(1 | 2))), "{other:?}");
    }

    /// Whether it is not ready at once.
    async fn futures_poll<F: Future + Unpin>(future: &mut F) -> bool {
        std::future::poll_fn(|cx| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx).is_pending())
        })
        .await
    }

    #[tokio::test]
    async fn one_more_than_there_may_be_is_refused_and_a_place_is_free_again_afterwards() {
        let (flights, tasks) = (Arc::new(Flights::<()>::default()), Tasks::new());
        let key = |at: usize| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&at.to_be_bytes());
            key
        };
        for at in 0..LOOKUPS_MAX {
            let mut asks = Box::pin(flights.join(key(at), &tasks, std::future::pending));
            assert!(futures_poll(&mut asks).await);
        }
        assert_eq!(flights.join(key(LOOKUPS_MAX), &tasks, || async {}).await, Err(TooMany));
        drop(tasks.cut_on_drop());
        while !flights.waiting.lock().expect("no panic").is_empty() {
            tokio::task::yield_now().await;
        }
        let tasks = Tasks::new();
        assert_eq!(flights.join(key(0), &tasks, || async {}).await, Ok(Some(())));
    }
}
