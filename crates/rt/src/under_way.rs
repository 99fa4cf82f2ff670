//! What is under way, for somebody to wait for who did not begin it: all of it that had begun by then.
//!
//! In: its beginning and its end. Out: word that nothing is under way any more that had begun before the
//! asking. Never: holds up what begins meanwhile, or waits for it.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// See the module's doc. What it costs to begin and to end is a short lock each.
#[derive(Debug, Default)]
pub struct UnderWay {
    numbers: Mutex<Numbers>,
    // The first of them has ended.
    moved: Notify,
}

#[derive(Debug, Default)]
struct Numbers {
    next: u64,
    // Of what is under way: as many as there are futures that hold one.
    begun: BTreeSet<u64>,
}

/// Something under way, until it is dropped.
#[derive(Debug)]
pub struct OneUnderWay<'a> {
    of: &'a UnderWay,
    number: u64,
}

impl UnderWay {
    /// Something begins.
    pub fn begin(&self) -> OneUnderWay<'_> {
        let mut numbers = self.lock();
        let number = numbers.next;
        numbers.next += 1;
        numbers.begun.insert(number);
        OneUnderWay { of: self, number }
    }

    /// Waits until all has ended that had begun by now. Cancel-safe.
    pub async fn ended(&self) {
        let next = self.lock().next;
        loop {
            // Hears of what ends from here on, before it is polled.
            let moved = self.moved.notified();
            if self.lock().begun.first().is_none_or(|first| *first >= next) {
                return;
            }
            moved.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OneUnderWay<'_> {
    fn drop(&mut self) {
        let mut numbers = self.of.lock();
        let was_first = numbers.begun.first() == Some(&self.number);
        numbers.begun.remove(&self.number);
        drop(numbers);
        if was_first {
            self.of.moved.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn who_asks_waits_for_what_had_begun_and_for_nothing_that_begins_later() {
        let (work, mut cx) = (UnderWay::default(), Context::from_waker(Waker::noop()));
        let (first, second) = (work.begin(), work.begin());
        let mut ended = pin!(work.ended());
        assert_eq!(ended.as_mut().poll(&mut cx), Poll::Pending);
        let _later = work.begin();
        drop(second);
        assert_eq!(ended.as_mut().poll(&mut cx), Poll::Pending);
        drop(first);
        assert_eq!(ended.as_mut().poll(&mut cx), Poll::Ready(()));
    }

    #[tokio::test]
    async fn each_who_waits_is_told_of_the_end() {
        let work = UnderWay::default();
        let (first, second) = (work.begin(), work.begin());
        let one = async {
            work.ended().await;
            assert!(work.lock().begun.is_empty());
        };
        let end = async {
            drop(second);
            tokio::task::yield_now().await;
            drop(first);
        };
        tokio::join!(one, work.ended(), end);
        work.ended().await;
    }
}
