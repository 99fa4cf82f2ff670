//! What a log's writer does and asks between appends: which items it holds under which number, what it may
//! give up or put in another form, and how much room it keeps.

use crate::tests::{Sorted, WIDE};
use crate::{Limits, Step, Writer};

/// Five items of three revisions, appended at three times.
fn five() -> Writer<&'static str> {
    let mut writer = Writer::new(1, WIDE);
    writer.append([(2, "a", 1), (2, "b", 2)], 10);
    writer.append([(3, "c", 3)], 20);
    writer.append([(5, "d", 4), (5, "e", 5)], 30);
    writer
}

/// The same without the first revision.
fn three() -> Writer<&'static str> {
    let mut writer = five();
    writer.release(2);
    writer
}

#[test]
fn items_keep_the_numbers_that_they_were_given() {
    let mut writer = Writer::new(1, WIDE);
    let first = writer.first_seq();
    assert_eq!(writer.next_seq(), first, "nothing is held");
    writer.append([(2, "a", 1), (2, "b", 1)], 0);
    writer.append([(3, "c", 1), (5, "d", 1)], 0);
    let held = |writer: &Writer<_>| [0, 1, 2, 3, 4].map(|number| writer.get(first + number));
    assert_eq!((writer.first_seq(), writer.next_seq()), (first, first + 4));
    assert_eq!(held(&writer), [Some("a"), Some("b"), Some("c"), Some("d"), None]);
    writer.release(2);
    assert_eq!((writer.first_seq(), writer.next_seq()), (first + 2, first + 4));
    assert_eq!(held(&writer), [None, None, Some("c"), Some("d"), None]);
}

#[test]
fn the_items_of_a_revision_are_found_by_it() {
    let (writer, first) = (five(), five().first_seq());
    let at = |writer: &Writer<_>, revision| {
        let seqs = writer.seqs_at(revision);
        (seqs.start - first, seqs.end - first)
    };
    let of_five = [1, 2, 3, 4, 5, 6].map(|revision| at(&writer, revision));
    assert_eq!(of_five, [(0, 0), (0, 2), (2, 3), (3, 3), (3, 5), (5, 5)]);
    let of_three = [2, 3, 4, 5].map(|revision| at(&three(), revision));
    assert_eq!(of_three, [(2, 2), (2, 3), (3, 3), (3, 5)]);
}

#[test]
fn a_log_is_read_page_by_page() {
    let (writer, first) = (three(), five().first_seq());
    let page = |seq, max| {
        let (items, next) = writer.log().page(seq, max);
        (items.concat(), next - first)
    };
    assert_eq!(page(first + 2, 2), ("cd".into(), 4));
    assert_eq!(page(first + 4, 2), ("e".into(), 5));
    assert_eq!(page(first + 5, 2), (String::new(), 5));
    assert_eq!(page(first, 1), ("c".into(), 3), "what is gone is left out");
    assert_eq!(page(first + 9, 1), (String::new(), 5));
}

#[test]
fn what_was_appended_a_while_ago_is_settled() {
    let (writer, first) = (three(), five().first_seq());
    let settled = |seq, until_ms, max| {
        let settled = writer.settled(seq, until_ms, max);
        settled.iter().map(|(seq, item)| format!("{item}{}", seq - first)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(settled(first, 19, 9), "");
    assert_eq!(settled(first, 20, 9), "c2");
    assert_eq!(settled(first, 30, 9), "c2 d3 e4");
    assert_eq!(settled(first, 30, 2), "c2 d3");
    assert_eq!(settled(first + 4, 30, 9), "e4");
    assert_eq!(settled(first + 9, 30, 9), "");
}

#[test]
fn an_item_is_put_in_another_form_and_counted_as_that() {
    let mut writer = three();
    let (first, next) = (writer.first_seq(), writer.next_seq());
    assert_eq!(writer.usage().bytes, 3 + 4 + 5);
    let mut asked = Vec::new();
    writer.replace(&[first - 1, first, first + 2, next], |item| {
        asked.push(*item);
        (*item == "e").then_some(("E", 7))
    });
    assert_eq!(asked, ["c", "e"], "what is not held is left alone");
    assert_eq!(writer.log().page(0, 9).0, ["c", "d", "E"]);
    assert_eq!(writer.usage().bytes, 3 + 4 + 7);
    writer.replace(&[first + 2], |_| Some(("e", 1)));
    assert_eq!(writer.usage().bytes, 3 + 4 + 1);
}

#[test]
fn what_nobody_will_ask_for_is_released_by_whole_revisions_but_for_the_newest() {
    let mut writer = five();
    let held = |writer: &Writer<_>| {
        let usage = writer.usage();
        assert_eq!((usage, usage.pressed_out), (writer.log().usage(), 0));
        (usage.items, usage.bytes, writer.log().oldest())
    };
    writer.release(1);
    assert_eq!(held(&writer), (5, 15, 1));
    writer.release(2);
    assert_eq!(held(&writer), (3, 12, 2));
    writer.release(9);
    assert_eq!(held(&writer), (2, 9, 3));
    let mut empty = Writer::<()>::new(1, WIDE);
    empty.release(9);
    assert_eq!((empty.usage().items, empty.log().oldest()), (0, 1));
}

#[test]
fn new_limits_hold_at_once() {
    let mut writer = five();
    writer.set_limits(Limits { items_max: 3, ..WIDE }, 30);
    assert_eq!((writer.usage().items, writer.usage().pressed_out), (3, 2));
    writer.set_limits(Limits { bytes_max: 11, ..WIDE }, 30);
    assert_eq!((writer.usage().items, writer.usage().pressed_out), (2, 3));
}

#[test]
fn both_sides_say_up_to_where_everything_was_appended() {
    let mut writer = five();
    assert_eq!((writer.progress(), writer.log().progress()), (5, 5));
    writer.announce(8);
    writer.announce(7);
    assert_eq!((writer.progress(), writer.log().progress()), (8, 8));
}

#[test]
fn a_log_holds_as_much_as_its_limits_say_and_no_more() {
    let limits = Limits { items_max: 3, bytes_max: 30, age_ms_max: 100 };
    let held = |items: [(u64, (), usize); 4], count: usize, now_ms| {
        let mut writer = Writer::new(1, limits);
        writer.append(items.into_iter().take(count), 0);
        writer.evict(now_ms);
        writer.usage().items
    };
    let small = [(2, (), 1), (3, (), 1), (4, (), 1), (5, (), 1)];
    assert_eq!((held(small, 3, 0), held(small, 4, 0)), (3, 3));
    assert_eq!((held(small, 3, 100), held(small, 3, 101)), (3, 1));
    let large = |bytes| [(2, (), bytes), (3, (), 10), (4, (), 10), (5, (), 10)];
    assert_eq!((held(large(10), 3, 0), held(large(11), 3, 0)), (3, 2));
}

#[test]
fn room_is_made_for_many_at_a_time() {
    let mut writer = Writer::new(1, Limits { items_max: 1_000, ..WIDE });
    writer.append([(2, (), 0)], 0);
    writer.append([(3, (), 0)], 0);
    assert_eq!(writer.usage().grown, 1, "there was room for another");
    (4..1_000).for_each(|revision| writer.append([(revision, (), 0)], 0));
    assert!((2..20).contains(&writer.usage().grown), "{:?}", writer.usage());
}

#[test]
fn what_a_burst_took_is_given_back_in_one_go_and_some_of_it_kept_for_the_next() {
    let limits = Limits { items_max: 10_000, bytes_max: 100_000, age_ms_max: 60_000 };
    let mut writer = Writer::new(1, limits);
    (2..5_000).for_each(|revision| writer.append([(revision, (), 1)], 0));
    (5_000..5_400).for_each(|revision| writer.append([(revision, (), 1)], 30_000));
    writer.evict(70_000);
    let usage = writer.usage();
    assert_eq!((usage.items, usage.shrunk), (400, 1));
    assert!((800..1_600).contains(&usage.capacity), "{usage:?}");
    writer.evict(70_001);
    let usage = writer.usage();
    assert_eq!((usage.items, usage.shrunk), (400, 2), "nothing has come for long");
    assert!((440..500).contains(&usage.capacity), "{usage:?}");
    writer.evict(200_000);
    let usage = writer.usage();
    assert_eq!((usage.items, usage.shrunk), (1, 3));
    assert!((60..100).contains(&usage.capacity), "{usage:?}");
    writer.evict(400_000);
    assert_eq!(writer.usage(), usage, "so little is kept for ever");
}

#[test]
fn releasing_gives_room_back() {
    let mut writer = Writer::new(1, Limits { items_max: 1_000, bytes_max: 1_000, age_ms_max: 1 });
    (2..1_002).for_each(|revision| writer.append([(revision, (), 1)], 0));
    let busy = writer.usage().capacity;
    writer.release(1_001 - busy as u64 / 4);
    let usage = writer.usage();
    assert_eq!((usage.items, usage.capacity, usage.shrunk), (busy / 4, busy, 0), "a quarter of it is needed");
    writer.release(902);
    let usage = writer.usage();
    assert!(usage.items == 99 && usage.shrunk == 1, "{usage:?}");
    assert!((190..400).contains(&usage.capacity), "{usage:?}");
}

#[test]
fn a_lane_gives_back_the_room_of_what_the_log_has_evicted() {
    let mut log = Sorted::new(Limits { items_max: 1_000, bytes_max: 1_000, age_ms_max: 1 });
    log.open(0);
    let lane = log.lanes[0].clone().expect("open");
    let room = || lane.reader().shared.read().held.capacity();
    (2..1_002).for_each(|revision| log.put(&[(revision, 2 * revision)]));
    let (busy, release) = (room(), |log: &mut Sorted, upto| {
        log.writer.release(upto);
        log.writer.trim(&lane);
    });
    assert!(busy >= 1_000);
    release(&mut log, 1_001 - busy as u64 / 4);
    assert_eq!(room(), busy, "a quarter of it is needed");
    release(&mut log, 902);
    assert!((190..400).contains(&room()), "{}", room());
    release(&mut log, 2_000);
    assert!(room() <= 64, "{}", room());
    log.put(&[(1_002, 8)]);
    let mut cursor = log.start(0, 1_001).expect("held");
    assert_eq!(cursor.try_next(), Some(Step::Item(1_002, 8)));
}

#[test]
fn what_little_room_there_is_is_kept() {
    let mut log = Sorted::new(Limits { items_max: 1_000, bytes_max: 1_000, age_ms_max: 1 });
    log.open(0);
    let lane = log.lanes[0].clone().expect("open");
    let room = |log: &Sorted| (log.writer.usage().capacity, lane.reader().shared.read().held.capacity());
    (2..42).for_each(|revision| log.put(&[(revision, 2 * revision)]));
    let busy = room(&log);
    assert!(busy.0 <= 64 && busy.1 <= 64, "{busy:?}");
    log.writer.release(100);
    log.writer.trim(&lane);
    assert_eq!((room(&log), log.writer.usage().items), (busy, 1));
}

#[test]
fn trimming_a_lane_forgets_what_the_log_has_evicted_and_nothing_else() {
    let mut log = Sorted::new(WIDE);
    log.open(0);
    let lane = log.lanes[0].clone().expect("open");
    log.put(&[(2, 2), (3, 4), (4, 6)]);
    let mut behind = log.start(0, 1).expect("held");
    let mut there = log.start(0, 2).expect("held");
    log.writer.release(2);
    let held = || lane.reader().shared.read().held.len();
    assert_eq!(held(), 3, "it has not been told yet");
    assert!(behind.is_expired() && !there.is_expired());
    log.writer.trim(&lane);
    assert_eq!(held(), 2);
    assert!(behind.is_expired() && !there.is_expired());
    assert_eq!(behind.try_next(), Some(Step::Expired { oldest: 2 }));
    let mut late = log.start(0, 2).expect("held");
    assert_eq!(there.try_next(), Some(Step::Item(3, 4)));
    log.writer.release(3);
    assert!(late.is_expired() && !there.is_expired(), "the lane still has the place of what the log has not");
    assert_eq!(late.try_next(), Some(Step::Expired { oldest: 3 }));
    assert_eq!(there.try_next(), Some(Step::Item(4, 6)));
}
