//! What workers do with a queue, on paused time.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_rt::Clock;

use super::super::rate::ItemExponential;
use super::*;

type Calls = Arc<Mutex<BTreeMap<&'static str, u32>>>;

fn queue() -> WorkQueue<&'static str> {
    let limiter = ItemExponential::new(Duration::from_millis(10), Duration::from_secs(1));
    WorkQueue::with_limiter(Clock::manual(0).0, limiter)
}

/// How often it was called for `key`, with this time.
fn call(calls: &Calls, key: &'static str) -> u32 {
    let mut calls = calls.lock().expect("nobody panics in here");
    let count = calls.entry(key).or_default();
    *count += 1;
    *count
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_panics_is_counted_and_tried_again_and_hurts_no_other() {
    let (queue, calls) = (queue(), Calls::default());
    ["good", "bad", "at once"].into_iter().for_each(|key| queue.add(key));
    let (seen, shut) = (calls.clone(), queue.clone());
    run_workers(&queue, 2, move |key| {
        let (count, shut) = (call(&seen, key), shut.clone());
        assert!(key != "at once" || count > 1, "before there is a future");
        async move {
            tokio::task::yield_now().await;
            assert!(key != "bad" || count > 3, "in the middle of it");
            if key == "bad" {
                shut.shut_down();
            }
            Outcome::Done
        }
    })
    .await;
    let calls = calls.lock().expect("nobody panics in here").clone();
    assert_eq!(calls, BTreeMap::from([("at once", 2), ("bad", 4), ("good", 1)]));
    let numbers = queue.metrics();
    assert_eq!((numbers.panics, numbers.retries, numbers.busy), (4, 4, 0));
    assert_eq!((queue.num_requeues(&"bad"), queue.num_requeues(&"at once")), (0, 0));
}

/// Panics when it is dropped.
struct Trap;

impl Drop for Trap {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("dropped");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_panics_when_it_is_dropped_counts_as_well() {
    let said = unless_it_panics(async {
        let _trap = Trap;
        1
    });
    assert_eq!(said.await, None);
    assert_eq!(unless_it_panics(async { 1 }).await, Some(1));
}

#[tokio::test(start_paused = true)]
async fn an_outcome_decides_when_a_key_comes_again() {
    let (queue, clock) = (queue(), Clock::manual(0).0);
    let (began, times) = (clock.now(), Arc::new(Mutex::new(Vec::new())));
    queue.add("a");
    let (seen, shut) = (times.clone(), queue.clone());
    run_workers(&queue, 1, move |_key| {
        let mut times = seen.lock().expect("nobody panics in here");
        times.push((clock.now() - began).as_millis() as u64);
        let outcome = match times.len() {
            1 | 2 => Outcome::Retry("not yet".into()),
            3 => Outcome::After(Duration::from_secs(5)),
            4 => Outcome::Retry("anew".into()),
            _ => {
                shut.shut_down();
                Outcome::Done
            }
        };
        std::future::ready(outcome)
    })
    .await;
    let times = times.lock().expect("nobody panics in here").clone();
    let waits: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // tokio's timers are up to a millisecond late.
    for (wait, whole) in waits.iter().zip([10, 20, 5_000, 10]) {
        assert!((whole..=whole + 2).contains(wait), "{waits:?}");
    }
    assert_eq!(waits.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn as_many_run_at_once_as_there_are_workers_and_never_two_on_a_key() {
    let queue = WorkQueue::new(Clock::manual(0).0);
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    (0..20_u32).for_each(|key| queue.add(key));
    let (now, highest, clock) = (running.clone(), most.clone(), Clock::manual(0).0);
    let shut = queue.clone();
    let work = run_workers(&queue, 3, move |_key| {
        let (now, highest, clock) = (now.clone(), highest.clone(), clock.clone());
        async move {
            highest.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            clock.sleep(Duration::from_millis(10)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Outcome::Done
        }
    });
    tokio::join!(work, shut.shut_down_with_drain());
    assert_eq!((running.load(Ordering::SeqCst), most.load(Ordering::SeqCst)), (0, 3));
    assert_eq!(queue.metrics().work.count, 20);
}

#[tokio::test(start_paused = true)]
async fn dropped_workers_give_their_keys_back() {
    let (queue, calls) = (queue(), Calls::default());
    queue.add("a");
    let seen = calls.clone();
    {
        let mut work = Box::pin(run_workers(&queue, 1, move |key| {
            call(&seen, key);
            std::future::pending()
        }));
        for _ in 0..10 {
            assert!(poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await.is_pending());
            tokio::task::yield_now().await;
        }
        assert_eq!((call(&calls, "a"), queue.metrics().busy), (2, 1));
    }
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(queue.metrics().busy, 0);
}
