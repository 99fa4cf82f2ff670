//! What many tasks see of one queue. Time is tokio's, paused: it goes on when nobody has anything to do.

use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_rt::Instant;
use tokio::task::JoinHandle;

use super::super::rate::ItemExponential;
use super::*;

fn clock() -> Clock {
    Clock::manual(0).0
}

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::new(clock())
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A task that waits for one key, and says which it was and when.
fn waits(queue: &WorkQueue<&'static str>) -> JoinHandle<Option<(&'static str, Instant)>> {
    let queue = queue.clone();
    tokio::spawn(async move {
        let item = queue.next().await?;
        Some((*item.key(), queue.0.clock.now()))
    })
}

/// Lets every task come to where it waits.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_item_that_is_dropped_is_done_and_until_then_nobody_else_has_its_key() {
    let queue = queue();
    queue.add("a");
    let item = queue.next().await.expect("a key");
    assert_eq!((*item.key(), item.priority(), queue.len()), ("a", 0, 0));
    queue.add("a");
    let other = waits(&queue);
    settle().await;
    assert!(!other.is_finished() && queue.is_empty());
    drop(item);
    assert_eq!(other.await.expect("it ends").map(|(key, _)| key), Some("a"));
    assert_eq!(queue.metrics().depth, 0);
}

#[tokio::test(start_paused = true)]
async fn each_key_wakes_a_worker_however_many_were_added_at_once() {
    let queue = queue();
    let workers: Vec<_> = (0..3).map(|_| waits(&queue)).collect();
    settle().await;
    ["a", "b", "c"].into_iter().for_each(|key| queue.add(key));
    let mut said = Vec::new();
    for worker in workers {
        said.extend(worker.await.expect("it ends").map(|(key, _)| key));
    }
    said.sort_unstable();
    assert_eq!(said, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_was_woken_and_left_wakes_another_one() {
    let queue = queue();
    let first = waits(&queue);
    settle().await;
    let second = waits(&queue);
    settle().await;
    queue.add("a");
    first.abort();
    assert_eq!(second.await.expect("it ends").map(|(key, _)| key), Some("a"));
    assert!(first.await.is_err_and(|error| error.is_cancelled()));
    assert_eq!(queue.metrics().latency.count, 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_due_later_is_given_to_who_waits_not_sooner() {
    let queue = queue();
    let began = queue.0.clock.now();
    let workers: Vec<_> = (0..2).map(|_| waits(&queue)).collect();
    settle().await;
    queue.add_after("b", ms(200));
    settle().await;
    // Sooner than what they wait for.
    queue.add_after("a", ms(100));
    let mut said = Vec::new();
    for worker in workers {
        said.extend(worker.await.expect("it ends").map(|(key, at)| (key, (at - began).as_millis())));
    }
    said.sort_unstable();
    assert_eq!(said.iter().map(|(key, _)| *key).collect::<Vec<_>>(), ["a", "b"]);
    // tokio's timers are up to a millisecond late.
    assert!((100..=102).contains(&said[0].1) && (200..=202).contains(&said[1].1), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn the_time_that_all_wait_for_is_not_lost_with_the_worker_that_heard_of_it() {
    let queue = queue();
    let (first, second) = (waits(&queue), waits(&queue));
    settle().await;
    queue.add_after("a", ms(100));
    settle().await;
    first.abort();
    assert!(matches!(second.await.expect("it ends"), Some(("a", _))));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_fails_comes_later_each_time_until_it_is_forgotten() {
    let queue = WorkQueue::with_limiter(clock(), ItemExponential::new(ms(100), ms(1_000)));
    queue.add_with_priority("a", 7);
    for whole in [100, 200, 400, 800, 1_000, 1_000] {
        let item = queue.next().await.expect("a key");
        assert_eq!(item.priority(), 7);
        let failed = queue.0.clock.now();
        item.retry();
        assert!(queue.is_empty());
        let again = queue.next().await.expect("a key");
        let waited = queue.0.clock.now() - failed;
        assert!(waited >= ms(whole) && waited <= ms(whole + 2), "{waited:?} and not {whole} ms");
        drop(again);
        queue.add_with_priority("a", 7);
    }
    assert_eq!((queue.num_requeues(&"a"), queue.num_requeues(&"b")), (6, 0));
    queue.next().await.expect("a key").forget();
    assert_eq!((queue.num_requeues(&"a"), queue.metrics().retries), (0, 6));
    assert_eq!(queue.metrics().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn a_key_to_be_looked_at_again_comes_then_with_its_priority_and_has_not_failed() {
    let queue = queue();
    queue.add_with_priority("a", -3);
    queue.next().await.expect("a key").retry();
    let item = queue.next().await.expect("a key");
    assert_eq!(queue.num_requeues(&"a"), 1);
    let began = queue.0.clock.now();
    item.again_after(ms(5_000));
    assert_eq!(queue.num_requeues(&"a"), 0);
    let item = queue.next().await.expect("a key");
    assert!(queue.0.clock.now() - began >= ms(5_000));
    assert_eq!(item.priority(), -3);
}

#[tokio::test(start_paused = true)]
async fn a_delay_that_no_clock_reaches_is_a_long_one() {
    let queue = queue();
    queue.add_after("never", Duration::MAX);
    queue.add_after("soon", ms(1));
    assert_eq!(queue.next().await.map(|item| *item.key()), Some("soon"));
    let numbers = queue.metrics();
    assert_eq!((numbers.waiting, numbers.ready), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn shutting_down_ends_those_that_wait_and_gives_out_what_is_ready() {
    let queue = queue();
    queue.add("a");
    queue.add_after("later", ms(10));
    queue.shut_down();
    queue.add("b");
    queue.add_rate_limited("c");
    assert!(queue.is_shutting_down());
    assert_eq!(queue.num_requeues(&"c"), 0);
    assert_eq!(queue.next().await.map(|item| *item.key()), Some("a"));
    assert!(queue.next().await.is_none());

    let queue = self::queue();
    let workers: Vec<_> = (0..3).map(|_| waits(&queue)).collect();
    queue.add_after("later", ms(1_000));
    settle().await;
    queue.shut_down();
    for worker in workers {
        assert!(worker.await.expect("it ends").is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn draining_waits_for_what_is_ready_and_what_is_worked_on() {
    let queue = queue();
    queue.add("a");
    queue.add("b");
    let held = queue.next().await.expect("a key");
    let drained = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shut_down_with_drain().await }
    });
    settle().await;
    assert!(!drained.is_finished() && queue.is_shutting_down());
    drop(held);
    settle().await;
    assert!(!drained.is_finished(), "b is not done");
    drop(queue.next().await.expect("a key"));
    drained.await.expect("it ends");
    assert!(queue.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_nobody_works_on_is_cut_short_by_a_shutdown() {
    let queue = queue();
    queue.add("a");
    let drained = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shut_down_with_drain().await }
    });
    settle().await;
    assert!(!drained.is_finished());
    queue.shut_down();
    drained.await.expect("it ends");
    assert_eq!(queue.len(), 1);
}

/// On several threads: every add of a key is followed by a look at it, and no two look at one key at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_adders_and_workers_lose_nothing_and_never_share_a_key() {
    const KEYS: usize = 8;
    const ROUNDS: usize = 2_000;
    let queue: WorkQueue<usize> = WorkQueue::new(clock());
    let wanted: Arc<[AtomicUsize; KEYS]> = Arc::default();
    let seen: Arc<[AtomicUsize; KEYS]> = Arc::default();
    let with: Arc<[AtomicUsize; KEYS]> = Arc::default();
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let (queue, wanted, seen, with) = (queue.clone(), wanted.clone(), seen.clone(), with.clone());
            tokio::spawn(async move {
                while let Some(item) = queue.next().await {
                    let key = *item.key();
                    assert_eq!(with[key].fetch_add(1, Ordering::SeqCst), 0, "{key} is with two");
                    let now = wanted[key].load(Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    seen[key].fetch_max(now, Ordering::SeqCst);
                    with[key].fetch_sub(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let adders: Vec<_> = (0..2)
        .map(|adder| {
            let (queue, wanted) = (queue.clone(), wanted.clone());
            tokio::spawn(async move {
                for round in 0..ROUNDS {
                    let key = (round * 7 + adder) % KEYS;
                    wanted[key].fetch_add(1, Ordering::SeqCst);
                    queue.add(key);
                    if round % 16 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            })
        })
        .collect();
    for adder in adders {
        adder.await.expect("it ends");
    }
    queue.shut_down_with_drain().await;
    for worker in workers {
        worker.await.expect("it ends");
    }
    for key in 0..KEYS {
        assert_eq!(seen[key].load(Ordering::SeqCst), wanted[key].load(Ordering::SeqCst), "key {key}");
    }
}
