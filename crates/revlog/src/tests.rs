//! Text in, text out: `put a@5`, `mark 6`, `take`, `start 4`, `close`.

use expect_test::{Expect, expect};

use crate::{Cursor, Limits, Step, Writer};

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
