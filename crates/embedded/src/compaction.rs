//! Which history is given up, and what that leaves to delete. The writer thread owns it.
//!
//! Marks say when a revision was current. What was superseded, or deleted, at or before the newest mark that
//! is older than the history to keep is given up at once (`compacted`), and deleted from disk slice by slice
//! (`swept`).
//!
//! In: the clock, the rows since the last slice, the index. Out: how far history is given up, and slices: the
//! dead changes and how far they were looked for.

use std::collections::VecDeque;

use forebay_apimachinery::Key;

use crate::error::StoreError;
use crate::index::Index;
use crate::row;
use crate::store::{Progress, Rows};

/// See the module's doc.
#[derive(Debug)]
pub(crate) struct Compaction {
    history_ms: u64,
    mark_every_ms: u64,
    // (revision, unix ms), ascending: at that time, this was the revision
    marks: VecDeque<(u64, u64)>,
    compacted: u64,
    swept: u64,
}

/// What one slice deletes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    /// (revision, key), ascending.
    pub(crate) dead: Vec<(u64, Key)>,
    /// Everything up to here has been looked at.
    pub(crate) swept: u64,
}

/// How much one slice looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

impl Compaction {
    /// `marks` as they were stored; one is added for `revision`, which is current now.
    pub(crate) fn new(
        (history_ms, mark_every_ms): (u64, u64),
        marks: VecDeque<(u64, u64)>,
        progress: Progress,
        now_ms: u64,
    ) -> Compaction {
        let Progress { revision, compacted, swept } = progress;
        let mut compaction = Compaction { history_ms, mark_every_ms, marks, compacted, swept };
        compaction.clamp(now_ms);
        compaction.marks.push_back((revision, now_ms));
        compaction
    }

    /// Notes that `revision` is current at `now_ms`, if the last note is old enough. Returns a new mark.
    pub(crate) fn mark(&mut self, revision: u64, now_ms: u64) -> Option<(u64, u64)> {
        self.clamp(now_ms);
        let (last, at_ms) = self.marks.back().copied().unwrap_or((0, 0));
        if last >= revision || now_ms < at_ms.saturating_add(self.mark_every_ms) {
            return None;
        }
        self.marks.push_back((revision, now_ms));
        Some((revision, now_ms))
    }

    /// Gives up what is older than the history to keep. Returns the revision up to which that is now.
    pub(crate) fn give_up(&mut self, now_ms: u64) -> u64 {
        let old = |at_ms: u64| at_ms.saturating_add(self.history_ms) <= now_ms;
        while self.marks.front().is_some_and(|(_, at_ms)| old(*at_ms)) {
            if let Some((revision, _)) = self.marks.pop_front() {
                self.compacted = self.compacted.max(revision);
            }
        }
        self.compacted
    }

    /// Whether there is something to delete.
    pub(crate) fn is_behind(&self) -> bool {
        self.swept < self.compacted
    }

    /// History up to here is given up.
    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    /// History up to the first is given up, and up to the second deleted.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.compacted, self.swept)
    }

    /// (revision, unix ms), ascending.
    pub(crate) fn marks(&self) -> Vec<(u64, u64)> {
        self.marks.iter().copied().collect()
    }

    /// When there is something to do next, unix ms, given the current revision.
    pub(crate) fn next_ms(&self, revision: u64) -> Option<u64> {
        let give_up = self.marks.iter().find(|(marked, _)| *marked > self.compacted);
        let give_up = give_up.map(|(_, at_ms)| at_ms.saturating_add(self.history_ms));
        let mark = self.marks.back().filter(|(marked, _)| *marked < revision);
        let mark = mark.map(|(_, at_ms)| at_ms.saturating_add(self.mark_every_ms));
        give_up.into_iter().chain(mark).min()
    }

    /// What the next slice deletes: of each change between `swept` and `compacted`, what it superseded, and
    /// the change itself if it is a delete.
    pub(crate) fn slice(&self, rows: &Rows, index: &Index, budget: Budget) -> Result<Slice, StoreError> {
        let (mut dead, mut looked, mut bytes) = (Vec::new(), 0, 0);
        for entry in rows.range_owned(self.swept + 1..=self.compacted)? {
            let (revision, row) = entry?;
            let revision = revision.value();
            if looked == budget.rows || bytes >= budget.bytes {
                return Ok(Slice::new(dead, revision - 1));
            }
            looked += 1;
            bytes += row.value().len();
            for change in row::decode(revision, row.value())? {
                let superseded = index.versions(change.key).map(|version| version.revision());
                let superseded = superseded.take_while(|version| *version < revision);
                let itself = change.put.is_none().then_some(revision);
                dead.extend(superseded.chain(itself).map(|revision| (revision, Key::new(change.key))));
            }
        }
        Ok(Slice::new(dead, self.compacted))
    }

    /// A slice was deleted.
    pub(crate) fn done(&mut self, slice: &Slice) {
        assert!(slice.swept >= self.swept && slice.swept <= self.compacted, "{slice:?} in {self:?}");
        self.swept = slice.swept;
    }

    /// A clock that was set back leaves marks in the future; what they mark is at least as old as now.
    fn clamp(&mut self, now_ms: u64) {
        for (_, at_ms) in self.marks.iter_mut().rev().take_while(|(_, at_ms)| *at_ms > now_ms) {
            *at_ms = now_ms;
        }
    }
}

impl Slice {
    fn new(mut dead: Vec<(u64, Key)>, swept: u64) -> Slice {
        dead.sort_unstable();
        dead.dedup();
        Slice { dead, swept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compaction(marks: &[(u64, u64)], revision: u64, now_ms: u64) -> Compaction {
        let progress = Progress { revision, compacted: 1, swept: 1 };
        Compaction::new((300, 10), marks.iter().copied().collect(), progress, now_ms)
    }

    #[test]
    fn history_is_given_up_when_it_is_old_enough_and_not_before() {
        let mut compaction = compaction(&[], 5, 1000);
        assert_eq!(compaction.mark(8, 1005), None, "too soon after the last");
        assert_eq!(compaction.mark(9, 1010), Some((9, 1010)));
        assert_eq!(compaction.mark(9, 1020), None, "nothing new");
        assert_eq!(compaction.give_up(1299), 1);
        assert_eq!(compaction.give_up(1300), 5);
        assert_eq!(compaction.give_up(1309), 5);
        assert_eq!(compaction.give_up(9000), 9);
    }

    #[test]
    fn the_next_moment_is_a_mark_or_the_end_of_a_marks_time() {
        let mut compaction = compaction(&[], 1, 1000);
        assert_eq!(compaction.next_ms(1), None, "an empty store never wakes up");
        assert_eq!(compaction.next_ms(2), Some(1010));
        compaction.mark(2, 1010);
        assert_eq!(compaction.next_ms(2), Some(1310));
        compaction.give_up(1310);
        assert!(compaction.is_behind());
        assert_eq!(compaction.next_ms(2), None);
    }

    #[test]
    fn marks_survive_a_restart_and_what_came_after_them_counts_from_the_restart() {
        let mut compaction = compaction(&[(3, 500), (5, 600)], 7, 650);
        assert_eq!(compaction.give_up(900), 5);
        assert_eq!(compaction.give_up(949), 5);
        assert_eq!(compaction.give_up(950), 7);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_keep_history_for_ever() {
        let mut compaction = compaction(&[(3, 500), (5, 1_000_000)], 7, 650);
        assert_eq!(compaction.give_up(949), 3);
        assert_eq!(compaction.give_up(950), 7);
        compaction.mark(9, 1_000_000);
        compaction.mark(10, 2000);
        assert_eq!(compaction.give_up(2300), 9);
    }
}
