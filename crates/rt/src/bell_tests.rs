//! Who waits for a bell, and what it hears. `revlog/tests/interleavings.rs` has it in loom's hands.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::bell::{Bell, Ear};

/// Counts how often it is woken.
#[derive(Default)]
struct Sleeper(AtomicUsize);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Sleeper {
    fn woken(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn poll(ear: &mut Ear, sleeper: &Arc<Sleeper>) -> Poll<bool> {
    ear.poll_rung(&mut Context::from_waker(&Waker::from(sleeper.clone())))
}

#[test]
fn a_ring_is_heard_once_and_wakes_once_who_waits() {
    let (bell, sleepers) = (Bell::new(2), <[Arc<Sleeper>; 3]>::default());
    let mut ears = [bell.ear(), bell.ear(), bell.ear()];
    for round in 1..4 {
        for (ear, sleeper) in ears.iter_mut().zip(&sleepers) {
            assert_eq!((poll(ear, sleeper), poll(ear, sleeper)), (Poll::Pending, Poll::Pending));
        }
        bell.ring();
        bell.ring();
        for (ear, sleeper) in ears.iter_mut().zip(&sleepers) {
            assert_eq!(sleeper.woken(), round);
            assert_eq!((poll(ear, sleeper), sleeper.woken()), (Poll::Ready(true), round));
        }
    }
}

#[test]
fn what_was_taken_as_heard_is_not_heard_and_the_next_ring_is() {
    let (bell, sleeper) = (Bell::new(1), Arc::<Sleeper>::default());
    let mut ear = bell.ear();
    assert!(poll(&mut ear, &sleeper).is_pending());
    // Its seat is empty now.
    bell.ring();
    ear.hear();
    let mut late = ear.clone();
    assert!(poll(&mut ear, &sleeper).is_pending() && poll(&mut late, &sleeper).is_pending());
    bell.ring();
    assert_eq!((poll(&mut ear, &sleeper), poll(&mut late, &sleeper)), (Poll::Ready(true), Poll::Ready(true)));
    assert_eq!(sleeper.woken(), 3);
}

#[test]
fn the_task_that_polled_last_is_woken() {
    let (bell, sleepers) = (Bell::new(1), <[Arc<Sleeper>; 2]>::default());
    let mut ear = bell.ear();
    for sleeper in &sleepers {
        assert!(poll(&mut ear, sleeper).is_pending());
    }
    bell.ring();
    assert_eq!(sleepers.map(|sleeper| sleeper.woken()), [0, 1]);
}

#[test]
fn who_waits_hears_that_the_bell_is_gone() {
    let (bell, sleeper) = (Bell::new(8), Arc::<Sleeper>::default());
    let mut ears = [bell.ear(), bell.ear()];
    assert!(poll(&mut ears[0], &sleeper).is_pending());
    drop(bell.clone());
    assert_eq!(sleeper.woken(), 0, "its clone is another rope");
    drop(bell);
    assert_eq!(sleeper.woken(), 1);
    for ear in &mut ears {
        assert_eq!((poll(ear, &sleeper), poll(ear, &sleeper)), (Poll::Ready(false), Poll::Ready(false)));
    }
}

#[test]
fn a_seat_is_given_back() {
    let (bell, sleeper) = (Bell::new(1), Arc::<Sleeper>::default());
    for _ in 0..3 {
        let mut ears = [bell.ear(), bell.ear()];
        assert!(ears.iter_mut().all(|ear| poll(ear, &sleeper).is_pending()) && bell.is_heard());
        assert_eq!(bell.seats(), 2);
    }
    assert!(bell.seats() == 0 && !bell.is_heard());
    bell.ring();
    assert_eq!(sleeper.woken(), 0);
}

#[test]
fn a_row_is_as_long_as_to_the_last_who_sits() {
    let (bell, sleeper) = (Bell::new(1), Arc::<Sleeper>::default());
    let mut ears: Vec<Option<Ear>> = (0..100).map(|_| Some(bell.ear())).collect();
    let sit =
        |ear: &mut Option<Ear>| assert!(poll(ear.get_or_insert_with(|| bell.ear()), &sleeper).is_pending());
    ears.iter_mut().for_each(sit);
    for (left, seats) in [(98, 100), (1, 100), (0, 100), (99, 98), (50, 98)] {
        ears[left] = None;
        assert_eq!(bell.seats(), seats, "after {left} has left");
    }
    // Those in front are taken first.
    ears.drain(4..);
    assert_eq!(bell.seats(), 4);
    ears.iter_mut().for_each(sit);
    assert_eq!(bell.seats(), 4);
    ears.push(None);
    ears.iter_mut().for_each(sit);
    assert_eq!(bell.seats(), 5);
    bell.ring();
    assert_eq!(sleeper.woken(), 5);
}

#[tokio::test]
async fn who_is_never_out_of_rings_lets_others_work() {
    let bell = Bell::new(1);
    let mut ear = bell.ear();
    let ended = Arc::<AtomicUsize>::default();
    let other = tokio::spawn({
        let ended = ended.clone();
        async move { ended.fetch_add(1, Ordering::Relaxed) }
    });
    for rings in 0.. {
        bell.ring();
        assert!(std::future::poll_fn(|cx| ear.poll_rung(cx)).await);
        if ended.load(Ordering::Relaxed) > 0 {
            break;
        }
        assert!(rings < 10_000, "it has the thread for itself");
    }
    other.await.expect("no panic");
}

#[tokio::test]
async fn who_is_woken_may_leave_at_once() {
    let bell = Bell::new(1);
    let mut ear = bell.ear();
    let left = tokio::spawn(async move { std::future::poll_fn(|cx| ear.poll_rung(cx)).await });
    tokio::task::yield_now().await;
    bell.ring();
    assert!(left.await.expect("no panic") && !bell.is_heard());
}
