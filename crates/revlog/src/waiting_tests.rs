//! When a cursor finds something, when it waits for its bell, and what it says of its end: on a log, in a
//! lane, and on the way from the one to the other.

use std::task::{Context, Poll, Waker};

use crate::tests::{Sorted, WIDE};
use crate::{Cursor, Lane, Step, Writer};

/// What comes of it when a cursor is to wait.
fn ready(cursor: &mut Cursor<u64>) -> &'static str {
    match cursor.poll_ready(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(false) => "finds something",
        Poll::Ready(true) => "was rung for",
        Poll::Pending => "waits",
    }
}

/// Takes about `max` items, of which there are some.
fn take(cursor: &mut Cursor<u64>, max: usize) -> Vec<u64> {
    let mut items = Vec::new();
    assert_eq!(cursor.take(max, &mut items), None);
    items.into_iter().map(|(_, item)| item).collect()
}

fn step(cursor: &mut Cursor<u64>) -> Option<Step<u64>> {
    let mut items = Vec::new();
    let step = cursor.take(1, &mut items);
    assert_eq!(items, []);
    step
}

/// A log whose even items have a lane, and a cursor on the one or the other.
fn even(in_lane: bool) -> (Sorted, Cursor<u64>) {
    let mut log = Sorted::new(WIDE);
    log.open(0);
    let cursor = if in_lane { log.start(0, 1) } else { log.writer.log().cursor(1) };
    (log, cursor.expect("held"))
}

#[test]
fn who_has_taken_everything_waits_and_who_has_not_goes_on_at_once() {
    for in_lane in [false, true] {
        let (mut log, mut cursor) = even(in_lane);
        assert_eq!(ready(&mut cursor), "waits");
        log.put(&[(2, 2), (3, 4), (4, 6)]);
        assert_eq!(ready(&mut cursor), "was rung for");
        assert_eq!(take(&mut cursor, 2), [2, 4]);
        assert!(!cursor.is_at_end());
        assert_eq!(ready(&mut cursor), "finds something");
        assert_eq!(take(&mut cursor, 2), [6]);
        assert!(cursor.is_at_end());
        assert_eq!(ready(&mut cursor), "waits");
    }
}

#[test]
fn what_comes_after_a_look_that_found_no_more_is_rung_for_once() {
    for in_lane in [false, true] {
        let (mut log, mut cursor) = even(in_lane);
        log.put(&[(2, 2), (3, 4), (4, 6)]);
        assert_eq!(take(&mut cursor, 2), [2, 4]);
        assert_eq!(take(&mut cursor, 2), [6]);
        log.put(&[(5, 8)]);
        assert_eq!(ready(&mut cursor), "was rung for");
        assert_eq!(ready(&mut cursor), "finds something", "nobody has taken it yet");
        assert_eq!(take(&mut cursor, 2), [8]);
        assert_eq!(ready(&mut cursor), "waits");
    }
}

#[test]
fn the_end_is_found_after_the_last_item_also_in_a_lane_that_stays_open() {
    for in_lane in [false, true] {
        let (mut log, mut cursor) = even(in_lane);
        log.put(&[(2, 2), (3, 4)]);
        let Sorted { writer, lanes } = log;
        drop(writer);
        assert_eq!(take(&mut cursor, 1), [2]);
        assert_eq!(take(&mut cursor, 1), [4]);
        assert!(!cursor.is_at_end(), "it is still to be told of the end");
        assert_eq!(ready(&mut cursor), "finds something");
        assert_eq!(step(&mut cursor), Some(Step::Closed));
        assert!(lanes[0].is_some());
    }
}

#[test]
fn who_was_told_by_another_what_came_last_waits() {
    let (mut log, mut cursor) = even(false);
    assert_eq!(step(&mut cursor), None);
    let at = cursor.position().expect("placed");
    log.put(&[(2, 2)]);
    assert_eq!(ready(&mut cursor), "was rung for");
    assert!(cursor.step_over(at, 2));
    assert_eq!(ready(&mut cursor), "waits");
    log.put(&[(3, 4), (4, 6)]);
    assert!(cursor.step_over(at.after(), 3));
    assert_eq!(ready(&mut cursor), "finds something");
    assert_eq!(take(&mut cursor, 9), [6]);
}

#[test]
fn one_that_begins_in_the_future_waits_on_past_what_it_is_not_to_have() {
    for in_lane in [false, true] {
        let mut log = Sorted::new(WIDE);
        log.open(0);
        let later = if in_lane { log.start(0, 3) } else { log.writer.log().cursor(3) };
        let mut later = later.expect("will come");
        log.put(&[(2, 2), (3, 4)]);
        assert_eq!(ready(&mut later), "waits");
        log.put(&[(4, 6)]);
        assert_eq!(ready(&mut later), "was rung for");
        assert_eq!(ready(&mut later), "finds something");
        assert_eq!(take(&mut later, 9), [6]);
    }
}

#[test]
fn one_that_has_missed_something_does_not_wait() {
    for in_lane in [false, true] {
        let (mut log, mut cursor) = even(in_lane);
        assert_eq!(ready(&mut cursor), "waits");
        log.put(&[(2, 2), (3, 4)]);
        assert!(!cursor.is_expired());
        log.writer.release(2);
        log.writer.trim(log.lanes[0].as_ref().expect("open"));
        assert!(cursor.is_expired());
        assert_eq!(ready(&mut cursor), "was rung for");
        assert_eq!(ready(&mut cursor), "finds something");
        assert_eq!(step(&mut cursor), Some(Step::Expired { oldest: 2 }));
    }
}

#[test]
fn one_goes_over_to_its_lane_once_it_has_what_the_log_has_before_that() {
    let mut log = Sorted::new(WIDE);
    log.put(&[(2, 1), (3, 2)]);
    log.open(0);
    let mut cursor = log.start(0, 1).expect("held");
    assert_eq!(take(&mut cursor, 9), [1, 2]);
    assert!(cursor.is_joining() && !cursor.is_at_end(), "there may be more in the lane");
    assert_eq!(cursor.position(), None);
    assert_eq!(step(&mut cursor), None);
    assert!(!cursor.is_joining() && cursor.is_at_end());
    log.put(&[(4, 3)]);
    assert_eq!(ready(&mut cursor), "waits", "that is in the other lane");
    // More was announced than was appended, and the next lane begins there.
    log.writer.announce(6);
    log.open(0);
    let mut cursor = log.start(0, 4).expect("held");
    assert!(cursor.is_joining());
    assert_eq!(step(&mut cursor), None);
    assert!(!cursor.is_joining() && cursor.seen() == 6, "the first look finds that nothing is between");
}

#[test]
fn one_has_everything_of_the_log_until_its_lane_begins_though_that_is_announced_first() {
    let mut writer = Writer::new(1, WIDE);
    let lane = Lane::new(5);
    let mut cursor = writer.log().lane_cursor(lane.reader(), 1).expect("held");
    assert_eq!(step(&mut cursor), None);
    assert!(cursor.is_joining());
    writer.append([(4, 1, 0), (5, 3, 0)], 0);
    assert_eq!(take(&mut cursor, 9), [1, 3], "of other lanes, but before this one");
    writer.append_routed([(6, 5, 0), (7, 8, 0)], vec![(1, lane)], 0);
    assert_eq!(take(&mut cursor, 9), [8]);
}
