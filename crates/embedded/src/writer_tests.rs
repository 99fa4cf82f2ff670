//! The writer without its thread, batch by batch: what it puts off, what it refuses, and what it leaves
//! behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::{Expect, TxnError, TxnResponse};
use forebay_rt::{Clock, ManualClock};
use tokio::sync::oneshot;

use crate::disk::Disk;
use crate::limits::{FREE_BYTES_MIN, RETIRED_LOOK_MS, SLICE_ROWS_MAX, SLICE_ROWS_MIN, TICK_MS_MAX};
use crate::open;
use crate::options::Options;
use crate::queue::{Taken, Waiting, WaitingPut};
use crate::row::Stored;
use crate::writer::Writer;

const HISTORY_MS: u64 = 60_000;
const MARK_EVERY_MS: u64 = 1_000;
/// Slack that no file of these tests has: none is made anew.
const NEVER: u64 = 1 << 40;

type Replies = Vec<oneshot::Receiver<Result<TxnResponse, TxnError>>>;

struct World {
    writer: Writer,
    hand: ManualClock,
    // Keys that were made up so far.
    keys: usize,
}

impl World {
    /// - `slack_bytes`: as in [`Options`].
    fn new(disk: Disk, slack_bytes: u64) -> World {
        let (clock, hand) = Clock::manual(1_000_000);
        let options = Options {
            clock,
            history_ms: HISTORY_MS,
            mark_every_ms: MARK_EVERY_MS,
            slack_bytes,
            ..Options::default()
        };
        let opened = open::open_disk(disk, &options).expect("opens");
        World { writer: opened.writer, hand, keys: 0 }
    }

    fn in_memory() -> World {
        World::new(Disk::in_memory(), NEVER)
    }

    /// One batch of these values, each at a key of its own; `None` deletes what is not there.
    async fn batch(&mut self, values: impl IntoIterator<Item = Option<Bytes>>) -> Replies {
        let mut replies = Vec::new();
        let mut txns = Vec::new();
        for value in values {
            self.keys += 1;
            let put = value.map(|value| WaitingPut { stored: Stored::new(value.clone()), value, ttl: None });
            let (txn, reply) = self.txn(&format!("/a/{}", self.keys), Expect::Absent, put).await;
            txns.push(txn);
            replies.push(reply);
        }
        assert!(!self.writer.turn(Taken { txns, ..Taken::default() }), "nobody has closed it");
        replies
    }

    async fn txn(
        &self,
        key: &str,
        expect: Expect,
        put: Option<WaitingPut>,
    ) -> (Waiting, oneshot::Receiver<Result<TxnResponse, TxnError>>) {
        let _room = self.writer.shared.queue.room(0).await.expect("room");
        let (reply, outcome) = oneshot::channel();
        (Waiting { key: Key::new(key), expect, put, reply, _room }, outcome)
    }

    /// Puts `key` over and over, so that all but the last is history; returns the last revision.
    async fn churn(&mut self, key: &str, times: usize, value: &Bytes) -> u64 {
        let mut expect = Expect::Absent;
        for _ in 0..times {
            let put = WaitingPut { stored: Stored::new(value.clone()), value: value.clone(), ttl: None };
            let (txn, reply) = self.txn(key, expect, Some(put)).await;
            self.writer.turn(Taken { txns: vec![txn], ..Taken::default() });
            let Ok(Ok(TxnResponse::Committed(revision))) = reply.await else {
                panic!("it is the only writer")
            };
            expect = Expect::At(revision);
        }
        self.writer.revision
    }

    /// All that was written so far is given up by the next batch.
    async fn grow_old(&mut self) {
        self.hand.advance_ms(MARK_EVERY_MS);
        self.batch([]).await;
        self.hand.advance_ms(HISTORY_MS);
    }

    fn swept(&self) -> u64 {
        self.writer.compaction.progress().1
    }
}

fn value(bytes: usize) -> Option<Bytes> {
    Some(Bytes::from(vec![b'x'; bytes]))
}

#[tokio::test]
async fn beside_a_batch_history_is_deleted_by_twice_as_many_rows_and_otherwise_by_many_more() {
    let mut world = World::in_memory();
    world.churn("/b", 2_000, &Bytes::from_static(b"x")).await;
    world.grow_old().await;
    world.batch([value(1)]).await;
    let after_one = world.swept();
    assert_eq!(after_one, 1 + SLICE_ROWS_MIN as u64, "so many at least");
    world.batch((0..50).map(|_| value(1))).await;
    let after_fifty = world.swept();
    assert_eq!(after_fifty - after_one, 100);
    world.batch([]).await;
    assert_eq!(world.swept() - after_fifty, SLICE_ROWS_MAX as u64, "nobody waits");
}

#[tokio::test]
async fn the_marks_of_history_that_is_gone_are_gone() {
    let mut world = World::in_memory();
    for _ in 0..3 {
        world.batch([value(1)]).await;
        world.hand.advance_ms(MARK_EVERY_MS);
        world.batch([]).await;
    }
    let marks = |world: &World| world.writer.store.marks().expect("readable").len();
    let before = marks(&world);
    assert!(before >= 3, "{before} marks");
    world.hand.advance_ms(HISTORY_MS);
    world.batch([]).await;
    assert_eq!((world.swept(), marks(&world)), (4, 0));
}

#[tokio::test]
async fn puts_are_refused_from_the_one_that_does_not_fit_and_deletes_are_not() {
    // A value takes up to twice its size.
    let free = Arc::new(AtomicU64::new(u64::MAX));
    let says = free.clone();
    let disk =
        Disk { free_bytes: Some(Box::new(move || Ok(says.load(Ordering::Relaxed)))), ..Disk::in_memory() };
    let mut world = World::new(disk, NEVER);
    let mut outcomes = async |free_bytes, values: Vec<Option<Bytes>>| {
        free.store(free_bytes, Ordering::Relaxed);
        let mut outcomes = Vec::new();
        for reply in world.batch(values).await {
            outcomes.push(match reply.await.expect("answered") {
                Ok(_) => "done",
                Err(TxnError::Failed { cause }) if cause.contains("no space left") => "no space",
                Err(_) => "failed",
            });
        }
        outcomes
    };
    let two = || vec![value(1_000), value(1_000), None];
    assert_eq!(outcomes(FREE_BYTES_MIN + 4_000, two()).await, ["done", "done", "done"]);
    assert_eq!(outcomes(FREE_BYTES_MIN + 3_999, two()).await, ["done", "no space", "done"]);
    assert_eq!(outcomes(FREE_BYTES_MIN + 1_999, two()).await, ["no space", "no space", "done"]);
    assert_eq!(outcomes(0, two()).await, ["no space", "no space", "done"]);
}

#[tokio::test]
async fn a_replaced_file_is_looked_after_until_its_last_reader_has_left() {
    let mut world = World::new(Disk::in_memory(), 1);
    world.churn("/b", 300, &Bytes::from(vec![b'x'; 4_000])).await;
    let reader = world.writer.shared.view().rows.clone().expect("open");
    world.grow_old().await;
    for _ in 0..100 {
        if world.writer.defrag.has_retired() {
            break;
        }
        world.batch([]).await;
    }
    assert!(world.writer.defrag.has_retired(), "the file was copied while somebody reads the old one");
    assert_eq!(world.writer.wait(), Some(Duration::from_millis(RETIRED_LOOK_MS)));
    drop(reader);
    world.batch([]).await;
    assert!(!world.writer.defrag.has_retired());
    assert!(world.writer.wait().is_none_or(|wait| wait > Duration::from_millis(RETIRED_LOOK_MS)));
}

#[tokio::test]
async fn the_writer_sleeps_until_something_is_due_but_looks_at_the_clock_now_and_then() {
    let mut world = World::in_memory();
    assert_eq!(world.writer.wait(), None, "an empty store has nothing to do");
    world.batch([value(1)]).await;
    assert_eq!(world.writer.wait(), Some(Duration::from_millis(MARK_EVERY_MS)));
    world.hand.advance_ms(MARK_EVERY_MS - 1);
    assert_eq!(world.writer.wait(), Some(Duration::from_millis(1)));
    world.hand.advance_ms(1);
    assert_eq!(world.writer.wait(), Some(Duration::ZERO));
    world.batch([]).await;
    assert_eq!(
        world.writer.wait(),
        Some(Duration::from_millis(TICK_MS_MAX)),
        "that is long before it is old"
    );
    world.writer.shared.fail("the disk".into());
    assert_eq!(world.writer.wait(), None, "nothing is written any more");
}

#[tokio::test]
async fn whoever_writes_after_a_failure_is_told_why_nothing_is_written() {
    let mut world = World::in_memory();
    world.writer.shared.fail("the disk is gone".into());
    for reply in world.batch([value(1), None]).await {
        let refused = reply.await.expect("answered").expect_err("not written");
        assert!(matches!(refused, TxnError::ReadOnly { cause } if cause == "the disk is gone"));
    }
    assert_eq!(world.writer.revision, Revision::FIRST.get());
}
