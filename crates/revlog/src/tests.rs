//! Text in, text out: `put a@5`, `mark 6`, `take`, `start 4`, `close`.

use expect_test::{Expect, expect};

use crate::{Cursor, Expired, Lane, Limits, Step, Writer};

const LIMITS: Limits = Limits { items_max: 4, bytes_max: 100, age_ms_max: 1_000 };

/// Runs `script` on a log that begins after revision 1 and compares what the cursors said.
fn check(script: &str, expected: Expect) {
    let mut writer = Some(Writer::new(1, LIMITS));
    let log = writer.as_ref().map(Writer::log).expect("just made");
    let mut cursor: Option<Cursor<String>> = None;
    let (mut out, mut now_ms) = (Vec::new(), 0);
    for line in script.split(';').map(str::trim) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "put" => {
                let batch = rest.split(' ').map(|item| {
                    let (name, revision) = item.split_once('@').expect("name@revision");
                    (revision.parse().expect("a number"), name.to_string(), name.len())
                });
                writer.as_mut().expect("open").append(batch.collect::<Vec<_>>(), now_ms);
            }
            "mark" => writer.as_mut().expect("open").announce(rest.parse().expect("a number")),
            "wait" => now_ms += rest.parse::<u64>().expect("a number"),
            "evict" => writer.as_mut().expect("open").evict(now_ms),
            "close" => drop(writer.take()),
            "start" => match log.cursor(rest.parse().expect("a number")) {
                Ok(made) => cursor = Some(made),
                Err(expired) => out.push(format!("EXPIRED oldest={}", expired.oldest)),
            },
            "take" => {
                let cursor = cursor.as_mut().expect("started");
                out.push(match cursor.try_next() {
                    Some(Step::Item(revision, item)) => format!("{item}@{revision} seen={}", cursor.seen()),
                    Some(Step::Progress(revision)) => format!("PROGRESS {revision}"),
                    Some(Step::Expired { oldest }) => format!("EXPIRED oldest={oldest}"),
                    Some(Step::Closed) => "CLOSED".to_string(),
                    None => "-".to_string(),
                });
            }
            "undo" => {
                let (after, upto) = rest.split_once("..").expect("a..b");
                let undo = log.undo(after.parse().expect("a number"), upto.parse().expect("a number"));
                out.push(format!("{undo:?}"));
            }
            other => panic!("unknown verb {other}"),
        }
    }
    expected.assert_eq(&out.join("; "));
}

#[test]
fn items_come_once_and_in_order() {
    check("put a@5 b@6; start 1; take; take; take", expect!["a@5 seen=5; b@6 seen=6; -"]);
    check("put a@5 b@6; start 5; take; put c@9; take; take", expect!["b@6 seen=6; c@9 seen=9; -"]);
}

#[test]
fn a_shared_revision_is_seen_only_as_a_whole() {
    check("start 1; put a@5 b@5; take; take; take", expect!["a@5 seen=4; b@5 seen=5; -"]);
    check("put a@5 b@5; start 4; take; mark 8; take; take", expect!["a@5 seen=4; b@5 seen=5; PROGRESS 8"]);
}

#[test]
fn a_lagging_cursor_is_told_expired() {
    check(
        "start 1; put a@2 b@3 c@4 d@5 e@6; take; take; start 1; start 2; take",
        expect!["EXPIRED oldest=2; EXPIRED oldest=2; EXPIRED oldest=2; b@3 seen=3"],
    );
}

#[test]
fn eviction_takes_whole_revisions_and_keeps_the_newest() {
    check("put a@2 b@2 c@2 d@2 e@2; start 1; take", expect!["a@2 seen=1"]);
    check("put a@2 b@2 c@2 d@3 e@3; start 1; start 2; take", expect!["EXPIRED oldest=2; d@3 seen=2"]);
    check(
        "put a@2; wait 5000; evict; start 1; take; put b@3; start 1; start 2; take",
        expect!["a@2 seen=2; EXPIRED oldest=2; b@3 seen=3"],
    );
}

#[test]
fn progress_comes_after_everything_it_covers() {
    check("put a@5; mark 9; start 1; take; take; take", expect!["a@5 seen=5; PROGRESS 9; -"]);
}

#[test]
fn a_future_start_is_silent_until_the_log_passes_it() {
    check(
        "put a@5; start 7; take; mark 6; take; put b@7; take; put c@8; take; take",
        expect!["-; -; -; c@8 seen=8; -"],
    );
}

#[test]
fn what_is_evicted_before_a_future_start_is_not_missed() {
    check("start 9; put a@2 b@3 c@4 d@5 e@6; take; put f@9 g@10; take; take", expect!["-; g@10 seen=10; -"]);
}

#[test]
fn closing_delivers_what_is_left_first() {
    check("start 1; put a@2; close; take; take; take", expect!["a@2 seen=2; CLOSED; CLOSED"]);
}

#[test]
fn undo_is_newest_first_and_says_when_it_cannot() {
    check(
        "put a@2 b@3 c@4; undo 2..4; undo 1..2; undo 0..4",
        expect![[r#"Ok(["c", "b"]); Ok(["a"]); Err(Expired { oldest: 1 })"#]],
    );
}

#[test]
fn a_log_that_is_quiet_keeps_little_room_for_more_and_all_that_it_holds() {
    let limits = Limits { items_max: 100_000, bytes_max: usize::MAX, age_ms_max: 600_000 };
    let mut writer = Writer::new(1, limits);
    (2..40_000).for_each(|revision| writer.append([(revision, (), 1)], 1_000));
    let busy = writer.log().usage();
    writer.evict(11_000);
    assert_eq!(writer.log().usage(), busy, "more may come");
    writer.evict(11_001);
    let quiet = writer.log().usage();
    assert!(quiet.capacity < 45_000 && busy.capacity > 60_000, "{quiet:?} {busy:?}");
    assert!(quiet.capacity > 42_000, "a little room is left for more: {quiet:?}");
    assert_eq!((quiet.items, quiet.bytes, quiet.shrunk), (busy.items, busy.bytes, 1));
    writer.evict(30_000);
    assert_eq!(writer.log().usage(), quiet, "once");
    writer.append([(40_000, (), 1)], 31_000);
    assert_eq!(writer.log().usage().items, busy.items + 1);
}

#[test]
fn a_log_gives_back_its_room_when_nothing_is_appended_any_more() {
    let limits = Limits { items_max: 5_000, bytes_max: usize::MAX, age_ms_max: 1_000 };
    let mut writer = Writer::new(1, limits);
    for revision in 2..6_000 {
        writer.append([(revision, (), 1)], revision / 10);
    }
    let usage = writer.log().usage();
    assert_eq!((usage.items, usage.pressed_out, usage.shrunk), (5_000, 998, 0));
    assert!(usage.grown > 0 && usage.capacity >= 5_000);
    assert_eq!(writer.log().begins_at_ms(), Some(100));
    for now_ms in [1_400, 1_500, 1_550, 1_599, 60_000] {
        writer.evict(now_ms);
        let usage = writer.log().usage();
        assert!(usage.capacity <= usage.items.max(16) * 4, "{usage:?}");
    }
    let usage = writer.log().usage();
    assert_eq!(
        (usage.items, usage.bytes, usage.pressed_out),
        (1, 1, 998),
        "the rest was old, not pressed out"
    );
    assert!(usage.shrunk > 0);
}

#[test]
#[should_panic(expected = "revision 6 after 9")]
fn an_event_after_its_bookmark_is_a_bug() {
    check("mark 9; put a@6", expect![""]);
}

#[tokio::test]
async fn a_waiting_cursor_is_woken_by_an_append_and_by_the_end() {
    let mut writer = Writer::new(1, LIMITS);
    let mut cursor = writer.log().cursor(1).expect("held");
    let reader = tokio::spawn(async move { (cursor.next().await, cursor.next().await) });
    tokio::task::yield_now().await;
    writer.append([(2, 'a', 1)], 0);
    tokio::task::yield_now().await;
    drop(writer);
    assert_eq!(reader.await.expect("not cancelled"), (Step::Item(2, 'a'), Step::Closed));
}

/// A log with items of odd and even numbers, each with a lane.
pub(crate) struct Sorted {
    pub(crate) writer: Writer<u64>,
    pub(crate) lanes: [Option<Lane>; 2],
}

impl Sorted {
    pub(crate) fn new(limits: Limits) -> Sorted {
        Sorted { writer: Writer::new(1, limits), lanes: [None, None] }
    }

    pub(crate) fn put(&mut self, batch: &[(u64, u64)]) {
        let routes = batch.iter().enumerate();
        let routed = |(index, (_, item)): (usize, &(u64, u64))| {
            self.lanes[(item % 2) as usize].clone().map(|lane| (index, lane))
        };
        let routes = routes.filter_map(routed).collect();
        self.writer.append_routed(batch.iter().map(|(revision, item)| (*revision, *item, 1)), routes, 0);
    }

    pub(crate) fn open(&mut self, lane: usize) {
        self.lanes[lane] = Some(Lane::new(self.writer.progress()));
    }

    pub(crate) fn start(&self, lane: usize, after: u64) -> Result<Cursor<u64>, Expired> {
        let reader = self.lanes[lane].as_ref().expect("open").reader();
        self.writer.log().lane_cursor(reader, after)
    }
}

fn drain(cursor: &mut Cursor<u64>) -> String {
    let mut out = Vec::new();
    while let Some(step) = cursor.try_next() {
        match step {
            Step::Item(revision, item) => out.push(format!("{item}@{revision}")),
            Step::Progress(revision) => out.push(format!("PROGRESS {revision}")),
            Step::Expired { oldest } => return format!("{} EXPIRED {oldest}", out.join(" ")),
            Step::Closed => return format!("{} CLOSED", out.join(" ")),
        }
    }
    out.join(" ")
}

pub(crate) const WIDE: Limits = Limits { items_max: 100, ..LIMITS };

#[test]
fn a_lane_begins_with_the_log_and_goes_on_with_its_own() {
    let mut log = Sorted::new(WIDE);
    log.put(&[(2, 0), (3, 1), (4, 2)]);
    log.open(1);
    let mut cursor = log.start(1, 2).expect("held");
    log.put(&[(5, 3), (6, 4), (6, 5), (7, 6)]);
    assert_eq!(drain(&mut cursor), "1@3 2@4 3@5 5@6 PROGRESS 7", "the log's own up to 4, then the lane's");
    log.put(&[(8, 8)]);
    assert_eq!(drain(&mut cursor), "PROGRESS 8");
    log.put(&[(9, 9)]);
    drop(log.writer);
    assert_eq!(drain(&mut cursor), "9@9 CLOSED");
}

#[test]
fn a_lane_starts_at_its_end_or_in_the_future() {
    let mut log = Sorted::new(WIDE);
    log.put(&[(2, 1)]);
    log.open(1);
    let (mut now, mut later) = (log.start(1, 2).expect("held"), log.start(1, 5).expect("will come"));
    log.put(&[(3, 3), (4, 4), (5, 5)]);
    log.put(&[(6, 7)]);
    assert_eq!(drain(&mut now), "3@3 5@5 7@6");
    assert_eq!(drain(&mut later), "7@6");
}

#[test]
fn a_lane_expires_when_the_log_evicts_what_was_to_be_read_in_it() {
    let mut log = Sorted::new(LIMITS);
    log.open(0);
    log.open(1);
    let mut odd = log.start(1, 1).expect("held");
    let mut even = log.start(0, 1).expect("held");
    log.put(&[(2, 1)]);
    log.put(&[(3, 2), (4, 4), (5, 6)]);
    assert_eq!(drain(&mut odd), "1@2 PROGRESS 5");
    log.put(&[(6, 8), (7, 10)]);
    assert_eq!(drain(&mut odd), "PROGRESS 7", "nothing in its lane was lost");
    assert_eq!(drain(&mut even), " EXPIRED 3");
    assert_eq!(drain(&mut log.start(0, 3).expect("held")), "4@4 6@5 8@6 10@7");
    assert_eq!(log.start(1, 2).expect_err("gone"), Expired { oldest: 3 }, "whatever its lane holds");
    log.writer.trim(log.lanes[1].as_ref().expect("open"));
    assert_eq!(drain(&mut log.start(1, 3).expect("held")), "PROGRESS 7");
}

#[tokio::test]
async fn a_lost_log_expires_every_cursor_also_those_that_wait() {
    let mut log = Sorted::new(WIDE);
    log.open(0);
    log.put(&[(2, 1), (3, 2)]);
    let mut all = log.writer.log().cursor(3).expect("held");
    let mut behind = log.writer.log().cursor(1).expect("held");
    let mut even = log.start(0, 3).expect("held");
    let mut future = log.writer.log().cursor(9).expect("will come");
    let waiting = tokio::spawn(async move {
        all.ready().await;
        even.ready().await;
        future.ready().await;
        [drain(&mut all), drain(&mut even), drain(&mut future)]
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    log.writer.lose();
    drop(log.lanes);
    assert_eq!(waiting.await.expect("no panic"), [" EXPIRED 1"; 3]);
    assert_eq!(drain(&mut behind), " EXPIRED 1", "what it has not read was lost as well");
}

#[test]
fn a_cursor_that_goes_over_to_a_lane_too_late_is_expired() {
    let mut log = Sorted::new(LIMITS);
    log.put(&[(2, 1), (3, 3)]);
    log.open(1);
    let mut cursor = log.start(1, 1).expect("held");
    assert_eq!(cursor.try_next(), Some(Step::Item(2, 1)));
    assert_eq!(cursor.try_next(), Some(Step::Item(3, 3)));
    log.put(&[(4, 5), (5, 0), (6, 0), (7, 0), (8, 0)]);
    assert_eq!(drain(&mut cursor), " EXPIRED 4");
}

#[tokio::test]
async fn a_lane_wakes_nobody_for_what_is_not_in_it() {
    let mut log = Sorted::new(WIDE);
    log.open(0);
    log.open(1);
    let mut odd = log.start(1, 1).expect("held");
    let reader = tokio::spawn(async move {
        let slept = odd.ready().await;
        (slept, drain(&mut odd))
    });
    for revision in 2..20 {
        log.put(&[(revision, 2 * revision)]);
        tokio::task::yield_now().await;
        assert!(!reader.is_finished());
    }
    log.put(&[(20, 1)]);
    assert_eq!(reader.await.expect("no panic"), (true, "1@20".to_string()));
    let lane = log.lanes[1].clone().expect("open");
    assert!(!lane.is_read() && log.lanes[0].as_ref().is_some_and(|even| !even.is_read()));
    let waiting = log.start(1, 20).expect("held");
    assert!(lane.is_read());
    drop(waiting);
}

#[test]
fn what_was_reached_when_is_known_for_what_is_held() {
    let mut writer = Writer::new(3, Limits { items_max: 4, bytes_max: 100, age_ms_max: 1_000 });
    let reached = |writer: &Writer<&str>| [0, 10, 15, 20, 99].map(|ms| writer.reached_at(ms));
    assert_eq!(reached(&writer), [3; 5]);
    writer.append([(4, "a", 1), (5, "b", 1)], 10);
    writer.append([(9, "c", 1)], 20);
    assert_eq!(reached(&writer), [3, 5, 5, 9, 9]);
    writer.append([(10, "d", 1), (11, "e", 1), (12, "f", 1)], 30);
    assert_eq!(reached(&writer), [5, 5, 5, 9, 12], "what is forgotten is old");
}

#[test]
fn cursors_of_one_position_are_given_the_same_next() {
    let mut writer = Writer::new(1, LIMITS);
    let log = writer.log();
    let start = |after| log.cursor(after).expect("held");
    let (mut one, mut same, mut later) = (start(1), start(1), start(5));
    assert_eq!(one.position(), None, "it has not looked yet");
    for cursor in [&mut one, &mut same, &mut later] {
        assert_eq!(cursor.try_next(), None);
        assert!(cursor.is_at_end());
    }
    let at = one.position().expect("placed");
    assert_eq!(same.position(), Some(at));
    writer.append([(5, "a", 1)], 0);
    assert!(!same.is_at_end());
    assert_eq!(one.try_next(), Some(Step::Item(5, "a")));
    assert!(same.step_over(at, 5) && same.is_at_end());
    assert_eq!((same.position(), same.seen()), (Some(at.after()), 5));
    // What comes before its start is not for it, though it is at the same place.
    assert!(!later.step_over(at, 5));
    assert_eq!(later.try_next(), None);
    writer.append([(6, "b", 1)], 0);
    for cursor in [&mut one, &mut same, &mut later] {
        assert_eq!(cursor.try_next(), Some(Step::Item(6, "b")));
    }
    let mut other = Writer::new(1, LIMITS);
    let mut elsewhere = other.log().cursor(1).expect("held");
    assert_eq!(elsewhere.try_next(), None);
    other.append([(5, "a", 1)], 0);
    assert!(!elsewhere.step_over(at, 5), "another log");
    drop(writer);
    assert!(!one.is_at_end());
    assert_eq!(one.try_next(), Some(Step::Closed));
}
