//! Every interleaving of a writer and a reader, as far as loom finds them with so many preemptions: no item
//! is lost, repeated or out of order, nobody sleeps through one, and progress says no more than was
//! delivered.
//!
//! The log's own sources and those of its bell, on loom's locks and atomics.

// The sources are another crate's, of which this uses a part.
#![allow(dead_code, unreachable_pub, clippy::duplicate_mod, clippy::unit_arg)]

mod sync {
    use std::sync::LockResult;

    pub use loom::sync::atomic::{AtomicU64, Ordering};
    pub use loom::sync::{MutexGuard as RwLockReadGuard, MutexGuard as RwLockWriteGuard};

    /// Readers one at a time: what two of them see does not depend on which is first.
    #[derive(Debug)]
    pub struct RwLock<T>(loom::sync::Mutex<T>);

    impl<T> RwLock<T> {
        pub fn new(value: T) -> RwLock<T> {
            RwLock(loom::sync::Mutex::new(value))
        }

        pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
            self.0.lock()
        }

        pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
            self.0.lock()
        }
    }

    pub use loom::sync::{Mutex, MutexGuard};

    pub use crate::bell::{Bell, Ear};

    /// One row is like another.
    pub const BELL_ROWS: usize = 1;
}

#[path = "../../rt/src/bell.rs"]
mod bell;
#[path = "../../rt/src/told.rs"]
mod told;

#[path = "../src/cursor.rs"]
mod cursor;
#[path = "../src/lane.rs"]
mod lane;
#[path = "../src/log.rs"]
mod log;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use bell::Bell;
use cursor::{Cursor, Step};
use lane::Lane;
use log::{Limits, Writer};
use loom::sync::{Mutex, Notify};
use loom::thread;

const WIDE: Limits = Limits { items_max: 100, bytes_max: 100, age_ms_max: 100 };
const NARROW: Limits = Limits { items_max: 1, ..WIDE };

fn check(scenario: impl Fn() + Send + Sync + 'static) {
    check_within(3, scenario);
}

fn check_within(preemptions: usize, scenario: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(scenario);
}

/// Runs `future` on a loom thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Notify);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.notify();
        }
    }
    let unpark = Arc::new(Unpark(Notify::new()));
    let waker = Waker::from(unpark.clone());
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => unpark.0.wait(),
        }
    }
}

/// What a cursor yields until it ends, progress left out; panics where progress says too much.
fn drain(mut cursor: Cursor<u64>) -> Vec<u64> {
    let mut items = Vec::new();
    loop {
        match cursor.try_next() {
            Some(Step::Item(revision, item)) => {
                assert!(revision > cursor.seen() - 1, "an item after progress covered it");
                items.push(item);
            }
            Some(Step::Progress(_)) => {}
            Some(Step::Expired { .. }) => return items,
            Some(Step::Closed) => return items,
            None => {
                block_on(cursor.ready());
            }
        }
    }
}

#[test]
fn whoever_waits_for_a_bell_sleeps_through_neither_ring_nor_end() {
    check(|| {
        let bell = Bell::new(1);
        let mut ear = bell.ear();
        let waiting = thread::spawn(move || {
            let mut rings = 0;
            while block_on(poll_fn(|cx| ear.poll_rung(cx))) {
                rings += 1;
            }
            rings
        });
        bell.ring();
        bell.ring();
        drop(bell);
        // Those that come before it looks are heard as one, or as the end.
        assert!(waiting.join().expect("no panic") <= 2);
    });
}

#[test]
fn a_bell_wakes_who_stays_while_another_leaves() {
    check(|| {
        let bell = Bell::new(1);
        let [mut stays, mut leaves] = [bell.ear(), bell.ear()];
        let mut cx = Context::from_waker(Waker::noop());
        assert!(leaves.poll_rung(&mut cx).is_pending());
        let leaving = thread::spawn(move || drop(leaves));
        let staying = thread::spawn(move || block_on(poll_fn(|cx| stays.poll_rung(cx))));
        bell.ring();
        assert!(staying.join().expect("no panic"), "woken by the ring, not by the end");
        leaving.join().expect("no panic");
    });
}

#[test]
fn a_waiting_cursor_gets_every_item_and_the_end() {
    // With one more it takes half a minute.
    check_within(2, || {
        let mut writer = Writer::new(1, WIDE);
        let cursor = writer.log().cursor(1).expect("held");
        let reader = thread::spawn(move || drain(cursor));
        writer.append([(2, 2, 0), (2, 3, 0)], 0);
        writer.append([(3, 4, 0)], 0);
        drop(writer);
        assert_eq!(reader.join().expect("no panic"), [2, 3, 4]);
    });
}

#[test]
fn nobody_sleeps_through_an_append() {
    for in_lane in [false, true] {
        check(move || {
            let mut writer = Writer::new(1, WIDE);
            let lane = Lane::new(1);
            let cursor = match in_lane {
                true => writer.log().lane_cursor(lane.reader(), 1),
                false => writer.log().cursor(1),
            };
            let mut cursor = cursor.expect("held");
            let reader = thread::spawn(move || block_on(cursor.next()));
            writer.append_routed([(2, 2, 0)], vec![(0, lane.clone())], 0);
            // Neither the log's end nor the lane's rings before that.
            assert_eq!(reader.join().expect("no panic"), Step::Item(2, 2));
        });
    }
}

/// It is told by another what comes first, and looks for a place to wait without a lock.
#[test]
fn who_follows_another_sleeps_through_nothing() {
    check(|| {
        let mut writer = Writer::new(1, WIDE);
        let log = writer.log();
        let cursors = [log.cursor(1), log.cursor(1)];
        let [mut first, mut second] = cursors.map(|cursor| cursor.expect("held"));
        assert_eq!((first.try_next(), second.try_next()), (None, None));
        let at = first.position().expect("placed");
        writer.append([(2, 2, 0)], 0);
        assert_eq!(first.try_next(), Some(Step::Item(2, 2)));
        let reader = thread::spawn(move || {
            assert!(second.step_over(at, 2));
            assert!(!second.step_over(at, 2), "once");
            let mut items = Vec::new();
            loop {
                if second.is_at_end() {
                    block_on(second.ready());
                }
                match second.try_next() {
                    Some(Step::Item(_, item)) => items.push(item),
                    Some(Step::Closed) => return items,
                    _ => {}
                }
            }
        });
        writer.append([(3, 3, 0)], 0);
        drop(writer);
        assert_eq!(reader.join().expect("no panic"), [3]);
    });
}

#[test]
fn progress_covers_only_what_was_delivered() {
    check(|| {
        let mut writer = Writer::new(1, WIDE);
        let lane = Lane::new(1);
        let mut cursors = [
            writer.log().cursor(1).expect("held"),
            writer.log().lane_cursor(lane.reader(), 1).expect("held"),
        ];
        let reader = thread::spawn(move || {
            for cursor in &mut cursors {
                let mut items = 0;
                for _ in 0..3 {
                    match cursor.try_next() {
                        Some(Step::Progress(revision)) => assert!(revision < 2 || items == 1, "{revision}"),
                        Some(Step::Item(..)) => items += 1,
                        other => assert!(other.is_none(), "{other:?}"),
                    }
                }
            }
        });
        writer.append_routed([(2, 2, 0)], vec![(0, lane)], 0);
        writer.announce(4);
        reader.join().expect("no panic");
    });
}

/// The router's protocol: it notes what was routed where it finds the lanes, and a new lane begins there.
struct Router {
    routed: u64,
    odd: Option<Lane>,
}

#[test]
fn a_lane_that_is_opened_meanwhile_has_everything_once() {
    for limits in [WIDE, NARROW] {
        check(move || {
            let mut writer = Writer::new(1, limits);
            let log = writer.log();
            let router = Arc::new(Mutex::new(Router { routed: 1, odd: None }));
            let opened = router.clone();
            let reader = thread::spawn(move || {
                let (lane, floor) = {
                    let mut router = opened.lock().expect("not poisoned");
                    let routed = router.routed;
                    (router.odd.get_or_insert_with(|| Lane::new(routed)).reader(), routed)
                };
                (log.lane_cursor(lane, 1).map(drain), floor)
            });
            for batch in [[(2, 2, 0), (3, 3, 0)], [(4, 4, 0), (5, 5, 0)]] {
                let lane = {
                    let mut router = router.lock().expect("not poisoned");
                    router.routed = batch[1].0;
                    router.odd.clone()
                };
                writer.append_routed(batch, lane.map(|lane| (1, lane)).into_iter().collect(), 0);
            }
            drop(writer);
            router.lock().expect("not poisoned").odd = None;
            let (items, floor) = reader.join().expect("no panic");
            let all: Vec<u64> = (2..6).filter(|item| *item <= floor || item % 2 == 1).collect();
            match items {
                Ok(items) if limits.items_max == WIDE.items_max => assert_eq!(items, all),
                Ok(items) => assert!(all.starts_with(&items), "{items:?} of {all:?}"),
                Err(_) => assert_eq!(limits.items_max, 1),
            }
        });
    }
}

#[test]
fn a_lost_log_wakes_everybody() {
    // Three threads: with one more it takes minutes.
    check_within(2, || {
        let mut writer = Writer::new(1, WIDE);
        let lane = Lane::new(1);
        let cursors = [
            writer.log().cursor(1).expect("held"),
            writer.log().lane_cursor(lane.reader(), 1).expect("held"),
        ];
        let readers = cursors.map(|cursor| thread::spawn(move || drain(cursor)));
        writer.append([(2, 2, 0)], 0);
        writer.lose();
        drop(lane);
        for reader in readers {
            assert!(reader.join().expect("no panic").len() <= 1);
        }
    });
}
