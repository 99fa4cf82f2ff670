//! Several futures at once, a limited number of them.
//!
//! They run on the task that asks, so that leaving is drop: nothing goes on behind the back of who started
//! it.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Futures under way. Each wake-up polls all of them, which is why there are few.
pub struct InFlight<T>(Vec<Boxed<T>>);

impl<T> InFlight<T> {
    pub fn new() -> InFlight<T> {
        InFlight(Vec::new())
    }

    pub fn push(&mut self, work: impl Future<Output = T> + Send + 'static) {
        self.0.push(Box::pin(work));
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// What the next one to end says; waits for ever when there is none. Cancel-safe.
    pub async fn next(&mut self) -> T {
        std::future::poll_fn(|context| {
            for index in 0..self.0.len() {
                if let Poll::Ready(output) = self.0[index].as_mut().poll(context) {
                    drop(self.0.swap_remove(index));
                    return Poll::Ready(output);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Runs `work` on each item, at most `limit` at once; what they said, in no order.
pub async fn each<I, T, F>(items: impl IntoIterator<Item = I>, limit: usize, work: impl Fn(I) -> F) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
{
    let (mut under_way, mut said) = (InFlight::new(), Vec::new());
    for item in items {
        if under_way.len() == limit {
            said.push(under_way.next().await);
        }
        under_way.push(work(item));
    }
    while under_way.len() > 0 {
        said.push(under_way.next().await);
    }
    said
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn no_more_than_the_limit_run_at_once_and_all_do() {
        let running = Arc::new(AtomicUsize::new(0));
        let work = |number: usize| {
            let running = running.clone();
            async move {
                let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::SeqCst);
                (number, now)
            }
        };
        let mut said = each(0..20, 3, work).await;
        said.sort();
        assert_eq!(said.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
        assert!(said.iter().all(|(_, running)| *running <= 3), "{said:?}");
    }
}
