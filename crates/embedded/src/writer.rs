//! The writer thread: drains the queue and commits it, batch by batch; expires and compacts between and
//! beside them.
//!
//! It owns the write side of everything: the database, the index, the logs, the expiry heap. The order of
//! each batch is **durable → visible → acknowledged**, held by types: [`Durable`] is what a commit returns,
//! [`Visible`] is made only of that, and replies are sent only for that.
//!
//! When a commit fails it is not known what of it is on disk, so nothing is written until the next start;
//! whoever waits is told so, and reads and feeds go on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use forebay_backend::{TxnError, TxnResponse};
use forebay_rt::Clock;
use tokio::sync::oneshot;

use crate::batch::{Batch, Refusal, Reply, versioned};
use crate::compaction::{Budget, Compaction, Slice};
use crate::defrag::Defrag;
use crate::disk::FreeBytes;
use crate::error::StoreError;
use crate::expiry::Expiry;
use crate::feeds::Feeds;
use crate::guard::Guard;
use crate::index::Version;
use crate::limits::{
    EXPIRE_KEYS_MAX, FREE_BYTES_MIN, RETIRED_LOOK_MS, SLICE_BYTES_MAX, SLICE_ROWS_MAX, SLICE_ROWS_MIN,
    TICK_MS_MAX,
};
use crate::queue::{LogWish, Taken, Waiting};
use crate::row::NewChange;
use crate::shared::{self, Shared};
use crate::store::{Progress, Rows, Store, Sync, Work};
use crate::witness::Witness;

/// See the module's doc.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) store: Store,
    pub(crate) guard: Guard,
    pub(crate) defrag: Defrag,
    pub(crate) witness: Option<Witness>,
    pub(crate) free_bytes: Option<FreeBytes>,
    pub(crate) clock: Clock,
    pub(crate) revision: u64,
    pub(crate) expiry: Expiry,
    pub(crate) compaction: Compaction,
    pub(crate) feeds: Feeds,
    /// Time for ages: the clock's, but it never goes back.
    pub(crate) steady_ms: u64,
}

/// A batch that survives a crash.
struct Durable {
    revision: u64,
    changes: Vec<(u64, NewChange)>,
    // A table that has the rows of `changes`.
    rows: Rows,
    added_bytes: u64,
    deleted_bytes: u64,
}

/// A batch that is durable, and that every reader and every feed has.
struct Visible;

/// What is done beside the transactions of a batch.
struct Upkeep {
    mark: Option<(u64, u64)>,
    slice: Option<Slice>,
}

impl Writer {
    /// Runs until the queue is closed and drained.
    pub(crate) fn run(mut self) {
        let ending = Ending(self.shared.clone());
        // What an earlier life left.
        self.work(Vec::new());
        loop {
            let taken = ending.0.queue.take(self.wait());
            if self.turn(taken) {
                return self.end();
            }
        }
    }

    /// Does what was taken from the queue, and what is due. Says whether that was the last.
    pub(crate) fn turn(&mut self, taken: Taken) -> bool {
        self.grant(taken.wishes);
        self.work(taken.txns);
        if !taken.settles.is_empty() {
            self.settle(taken.settles);
        }
        taken.closed
    }

    /// How long nothing is due; `None` is for ever.
    pub(crate) fn wait(&self) -> Option<Duration> {
        if self.shared.failure().is_some() {
            return None;
        }
        if self.compaction.is_behind() || self.defrag.is_copying() {
            return Some(Duration::ZERO);
        }
        let retired = self.defrag.has_retired().then(|| self.clock.unix_ms() + RETIRED_LOOK_MS);
        let due =
            [self.expiry.next_ms(), self.compaction.next_ms(self.revision), self.feeds.stale_ms(), retired];
        let next_ms = due.into_iter().flatten().min()?;
        let wait_ms = next_ms.saturating_sub(self.clock.unix_ms()).min(TICK_MS_MAX);
        Some(Duration::from_millis(wait_ms))
    }

    fn grant(&mut self, wishes: Vec<LogWish>) {
        for LogWish { prefix, reply } in wishes {
            let granted =
                self.feeds.log(prefix, self.revision).map(|(log, taken)| (log, taken, self.revision));
            // A caller that no longer waits does not need the answer.
            let _ = reply.send(granted);
        }
    }

    /// Does everything that is due by now, then answers.
    fn settle(&mut self, settles: Vec<oneshot::Sender<()>>) {
        while self.wait() == Some(Duration::ZERO) {
            self.work(Vec::new());
        }
        for settle in settles {
            let _ = settle.send(());
        }
    }

    /// One batch: what has expired, `txns`, a slice of compaction.
    fn work(&mut self, txns: Vec<Waiting>) {
        if let Some(cause) = self.shared.failure() {
            return read_only(txns.into_iter().map(|txn| txn.reply), &cause);
        }
        let now_ms = self.clock.unix_ms();
        self.steady_ms = self.steady_ms.max(now_ms);
        self.feeds.evict(self.steady_ms);
        let txns = self.refuse_without_space(txns);
        let mut batch = self.decide(txns, now_ms);
        self.refuse(std::mem::take(&mut batch.refusals));
        let replies = std::mem::take(&mut batch.replies);
        let rows = batch.rows.len();
        let upkeep = self.upkeep(rows, now_ms);
        match upkeep.and_then(|upkeep| self.commit(batch, upkeep)) {
            Ok(durable) => {
                let visible = self.publish(durable);
                acknowledge(replies, &visible);
                self.defragment(rows);
            }
            Err(error) => {
                let cause = error.to_string();
                self.shared.fail(cause.clone());
                read_only(replies.into_iter().map(|(reply, _)| reply), &cause);
            }
        }
    }

    /// Refuses puts for which there is too little space, so that a disk that fills up is met here and not in
    /// the middle of a commit. Deletes, expiry and compaction go on: they need little, and lead out.
    fn refuse_without_space(&self, txns: Vec<Waiting>) -> Vec<Waiting> {
        let Some(free_bytes) = self.free_bytes.as_ref().filter(|_| !txns.is_empty()) else { return txns };
        // When it cannot be told, the write itself will.
        let free = free_bytes().unwrap_or(u64::MAX);
        let mut wanted = FREE_BYTES_MIN;
        let fits = |txn: &Waiting| {
            // A value takes up to twice its size: redb's pages are powers of two.
            wanted += txn.put.as_ref().map_or(0, |put| 2 * put.value.len() as u64);
            txn.put.is_none() || wanted <= free
        };
        let (fit, refused): (Vec<_>, Vec<_>) = txns.into_iter().partition(fits);
        for txn in refused {
            let cause = format!(
                "no space left on device: {free} bytes are free, {FREE_BYTES_MIN} are kept for deletes"
            );
            let _ = txn.reply.send(Err(TxnError::Failed { cause }));
        }
        fit
    }

    /// Compares and numbers.
    fn decide(&mut self, txns: Vec<Waiting>, now_ms: u64) -> Batch {
        let view = self.shared.view();
        self.expiry.sift(&view.index);
        let mut batch = Batch::new(self.revision);
        batch.expire(self.expiry.take_due(now_ms, EXPIRE_KEYS_MAX, &view.index));
        for txn in txns {
            batch.decide(txn, &view.index, now_ms);
        }
        batch
    }

    /// Answers what depends on nothing of this batch.
    fn refuse(&self, refusals: Vec<Refusal>) {
        if refusals.is_empty() {
            return;
        }
        let Some(rows) = self.shared.view().rows.clone() else { return };
        for Refusal { key, revision, reply } in refusals {
            let there = revision
                .map(|revision| shared::value(&rows, revision, &key).map(|value| versioned(revision, value)));
            let answer = there.transpose().map(TxnResponse::Conflict);
            let _ = reply.send(answer.map_err(|error| TxnError::Failed { cause: error.to_string() }));
        }
    }

    /// Says how far history is given up, and plans what to delete of it.
    fn upkeep(&mut self, rows: usize, now_ms: u64) -> Result<Upkeep, StoreError> {
        let mark = self.compaction.mark(self.revision, now_ms);
        self.shared.set_compacted(self.compaction.give_up(now_ms));
        if !self.compaction.is_behind() {
            return Ok(Upkeep { mark, slice: None });
        }
        let rows = if rows == 0 { SLICE_ROWS_MAX } else { (2 * rows).max(SLICE_ROWS_MIN) };
        let budget = Budget { rows, bytes: SLICE_BYTES_MAX };
        let view = self.shared.view();
        let table = view.rows.as_ref().expect("the view has rows while the writer runs");
        let slice = self.compaction.slice(table, &view.index, budget)?;
        Ok(Upkeep { mark, slice: Some(slice) })
    }

    /// Makes `batch` and `upkeep` durable: one transaction, one sync.
    fn commit(&mut self, batch: Batch, upkeep: Upkeep) -> Result<Option<Durable>, StoreError> {
        let Upkeep { mark, slice } = upkeep;
        if batch.rows.is_empty() && mark.is_none() && slice.is_none() {
            return Ok(None);
        }
        let dead = slice.as_ref().map_or(&[][..], |slice| &slice.dead);
        self.forget(dead);
        let compacted = self.compaction.compacted();
        let swept = slice.as_ref().map(|slice| slice.swept);
        let progress = swept.map(|swept| Progress { revision: batch.revision, compacted, swept });
        let marks_below = swept.map(|_| compacted + 1);
        let marks = mark.as_slice();
        let work = Work { rows: &batch.rows, dead, progress, marks, marks_below, sync: Sync::Now };
        let (added_bytes, deleted_bytes) = self.store.commit(&work)?;
        if let Some(cause) = self.guard.failure() {
            return Err(StoreError::Disk(cause));
        }
        self.defrag.note(dead);
        if let Some(slice) = &slice {
            self.compaction.done(slice);
        }
        let Batch { revision, changes, .. } = batch;
        Ok(Some(Durable { revision, changes, rows: self.store.rows()?, added_bytes, deleted_bytes }))
    }

    /// Takes what will be deleted out of the index first, so that nobody looks for it in a table without it.
    fn forget(&self, dead: &[(u64, forebay_apimachinery::Key)]) {
        if dead.is_empty() {
            return;
        }
        let mut view = self.shared.view_mut();
        for (revision, key) in dead {
            view.index.forget(key.as_str(), *revision);
        }
    }

    /// Shows a durable batch to every reader and every feed.
    fn publish(&mut self, durable: Option<Durable>) -> Visible {
        let Some(Durable { revision, mut changes, rows, added_bytes, deleted_bytes }) = durable else {
            return Visible;
        };
        let before = {
            let mut view = self.shared.view_mut();
            for (revision, change) in &mut changes {
                let version = Version::new(*revision, change.put.is_some());
                change.key = view.index.learn(change.key.clone(), version);
            }
            view.rows.replace(Arc::new(rows))
        };
        drop(before);
        let live_bytes = &self.shared.live_bytes;
        live_bytes.store(live_bytes.load(Ordering::Relaxed) + added_bytes - deleted_bytes, Ordering::Relaxed);
        for (revision, change) in &changes {
            if let Some(at_ms) = change.put.as_ref().and_then(|put| put.expires_ms) {
                self.expiry.add(at_ms, *revision, change.key.clone());
            }
        }
        self.shared.set_file_bytes(&self.guard);
        self.shared.set_told(revision);
        self.feeds.publish(&changes, revision, self.steady_ms);
        self.shared.set_visible(revision);
        self.revision = revision;
        if let Some(Err(error)) = self.witness.as_ref().map(|witness| witness.write(revision)) {
            self.shared.fail(format!("cannot write the witness: {error}"));
        }
        Visible
    }

    /// Closes everything in order; feeds and reads end here.
    pub(crate) fn end(self) {
        let Writer { shared, store, guard, mut defrag, witness, feeds, revision, steady_ms, .. } = self;
        drop(feeds);
        defrag.give_up(steady_ms);
        drop(shared.view_mut().rows.take());
        drop(store);
        let whole = shared.failure().is_none() && guard.failure().is_none();
        if let Some(witness) = witness.filter(|_| whole) {
            // A witness that is older than the store is harmless.
            let _ = witness.write(revision).and_then(|()| witness.sync());
        }
    }
}

/// Sends the replies of a batch, for which it takes proof that it is visible.
fn acknowledge(replies: Vec<(Reply, TxnResponse)>, _: &Visible) {
    for (reply, outcome) in replies {
        // A caller that no longer waits has chosen not to know.
        let _ = reply.send(Ok(outcome));
    }
}

fn read_only(replies: impl Iterator<Item = Reply>, cause: &str) {
    for reply in replies {
        let _ = reply.send(Err(TxnError::ReadOnly { cause: cause.to_string() }));
    }
}

/// However the thread ends, nobody waits for it any more.
pub(crate) struct Ending(pub(crate) Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("the writer thread found a broken invariant and stopped".to_string());
        }
        self.0.queue.abandon();
    }
}
