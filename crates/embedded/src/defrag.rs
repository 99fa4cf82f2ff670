//! Gives space back: copies what is kept into a new file, slice by slice while writers go on, and puts that
//! in the place of the old one.
//!
//! redb uses the pages again that it freed, but they stay in the file, and its own compaction needs the
//! database for itself for as long as it takes. Rows are written once and in revision order, so a copy is
//! simple: what was copied changes only by deletes, which are repeated in the copy, and what is new lies
//! behind.
//!
//! In: the rows, what compaction deletes, how much space is in use. Out: another file with the same rows.
//! Until it is whole and in place the old one counts; a copy that fails is given up and tried again later.
//! Owner: the writer thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_apimachinery::Key;

use crate::compaction::Budget;
use crate::disk::Spare;
use crate::error::StoreError;
use crate::guard::Guard;
use crate::limits::{
    DEFRAG_RETRY_MS, DEFRAG_SYNC_BYTES, FREE_BYTES_MIN, SLICE_BYTES_MAX, SLICE_ROWS_MAX, SLICE_ROWS_MIN,
};
use crate::row;
use crate::store::{FORMAT, Meta, Progress, Rows, Store, Sync, Work};
use crate::writer::Writer;

/// See the module's doc.
pub(crate) struct Defrag {
    spare: Option<Box<dyn Spare>>,
    store_id: [u8; 16],
    slack_bytes: u64,
    copy: Option<Copy>,
    // What was replaced, for those who still read it.
    retired: Option<Store>,
    last: Option<Usage>,
    // No copy is begun before; unix ms.
    retry_ms: u64,
}

/// A copy that is being made.
struct Copy {
    store: Store,
    guard: Guard,
    // Every row below this revision was copied.
    next: u64,
    // (revision, key) below `next`, deleted since the last slice
    dead: Vec<(u64, Key)>,
    // Bytes written since the last sync.
    unsynced: u64,
}

/// How much of a file is in use, and how much of that by rows.
#[derive(Clone, Copy, Debug)]
struct Usage {
    used: u64,
    live: u64,
}

impl Usage {
    /// Whether a copy of this is worth making. `last` is what the last copy came to: a file that is large
    /// although it is as small as it can be is not copied again and again.
    fn is_wasteful(self, slack_bytes: u64, last: Option<Usage>) -> bool {
        let changed =
            |last: Usage| self.used > last.used + last.used / 4 || self.live < last.live - last.live / 4;
        self.used > 2 * self.live + slack_bytes && last.is_none_or(changed)
    }
}

impl Defrag {
    pub(crate) fn new(spare: Option<Box<dyn Spare>>, store_id: [u8; 16], slack_bytes: u64) -> Defrag {
        Defrag { spare, store_id, slack_bytes, copy: None, retired: None, last: None, retry_ms: 0 }
    }

    /// Whether there is a copy to go on with.
    pub(crate) fn is_copying(&self) -> bool {
        self.copy.is_some()
    }

    /// Whether a file that was replaced waits for its last reader.
    pub(crate) fn has_retired(&self) -> bool {
        self.retired.is_some()
    }

    /// These changes were deleted from the rows.
    pub(crate) fn note(&mut self, dead: &[(u64, Key)]) {
        if let Some(copy) = &mut self.copy {
            let next = copy.next;
            copy.dead.extend(dead.iter().filter(|(revision, _)| *revision < next).cloned());
        }
    }

    /// Drops the copy, if there is one; the next is not begun for a while.
    pub(crate) fn give_up(&mut self, now_ms: u64) {
        self.retry_ms = now_ms.saturating_add(DEFRAG_RETRY_MS);
        if let Some(copy) = self.copy.take() {
            copy.guard.abandon();
        }
        if let Some(spare) = &self.spare {
            spare.discard();
        }
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        let Some(spare) = &self.spare else { return Ok(()) };
        let disk = |error: std::io::Error| StoreError::Disk(error.to_string());
        let guard = Guard::new(spare.create().map_err(disk)?, None).map_err(disk)?;
        let store = Store::open(guard.clone())?;
        let progress = Progress { revision: 1, compacted: 1, swept: 1 };
        store.initialize(&Meta { format: FORMAT, store_id: self.store_id, progress })?;
        self.copy = Some(Copy { store, guard, next: 0, dead: Vec::new(), unsynced: 0 });
        Ok(())
    }
}

impl Copy {
    /// Copies the next of `rows`. Says whether that was the last.
    fn go_on(&mut self, rows: &Rows, budget: Budget) -> Result<bool, StoreError> {
        let (mut slice, mut bytes, mut last) = (Vec::new(), 0, true);
        for entry in rows.range_owned(self.next..)? {
            let (revision, row) = entry?;
            if slice.len() == budget.rows || bytes >= budget.bytes {
                last = false;
                break;
            }
            // Damage is not copied: its checksum would be good.
            row::decode(revision.value(), row.value())?;
            bytes += row.value().len();
            slice.push((revision.value(), row.value().to_vec()));
        }
        self.dead.sort_unstable();
        self.unsynced += bytes as u64;
        let sync = if self.unsynced >= DEFRAG_SYNC_BYTES { Sync::Now } else { Sync::Later };
        if sync == Sync::Now {
            self.unsynced = 0;
        }
        self.store.commit(&Work { rows: &slice, dead: &self.dead, sync, ..Work::default() })?;
        self.dead.clear();
        if let Some((revision, _)) = slice.last() {
            self.next = revision + 1;
        }
        self.check_disk()?;
        Ok(last)
    }

    /// Makes it whole and durable.
    fn seal(&self, progress: Progress, marks: &[(u64, u64)]) -> Result<Rows, StoreError> {
        self.store.commit(&Work { progress: Some(progress), marks, ..Work::default() })?;
        self.check_disk()?;
        self.store.rows()
    }

    fn check_disk(&self) -> Result<(), StoreError> {
        self.guard.failure().map_or(Ok(()), |cause| Err(StoreError::Disk(cause)))
    }
}

impl Writer {
    /// One step of giving space back, after a batch of `rows`: begins a copy if one is worth making, or goes
    /// on with it.
    pub(crate) fn defragment(&mut self, rows: usize) {
        self.defrag.retired.take_if(|store| !store.is_read());
        if !self.defrag.is_copying() && !self.is_defrag_due() {
            return;
        }
        match self.copy_slice(rows) {
            Ok(false) => {}
            Ok(true) => self.replace_store(),
            // The store itself is as good as before.
            Err(_) => self.defrag.give_up(self.steady_ms),
        }
    }

    fn usage(&self) -> Usage {
        Usage { used: self.guard.used_bytes(), live: self.shared.live_bytes.load(Ordering::Relaxed) }
    }

    fn is_defrag_due(&self) -> bool {
        let defrag = &self.defrag;
        let may = defrag.spare.is_some() && defrag.retired.is_none() && self.steady_ms >= defrag.retry_ms;
        let usage = self.usage();
        // What compaction is about to delete need not be copied.
        may && usage.is_wasteful(defrag.slack_bytes, defrag.last) && !self.compaction.is_behind()
    }

    fn copy_slice(&mut self, rows: usize) -> Result<bool, StoreError> {
        let rows = if rows == 0 { SLICE_ROWS_MAX } else { (2 * rows).max(SLICE_ROWS_MIN) };
        let budget = Budget { rows, bytes: SLICE_BYTES_MAX };
        let begins = !self.defrag.is_copying();
        let room = if begins { 2 * self.usage().live } else { 2 * SLICE_BYTES_MAX as u64 };
        if self.free_bytes.as_ref().is_some_and(|free| free().unwrap_or(0) < FREE_BYTES_MIN + room) {
            return Err(StoreError::Disk("too little space for a copy".to_string()));
        }
        if begins {
            self.defrag.begin()?;
        }
        let table = self.shared.view().rows.clone();
        match (&mut self.defrag.copy, table) {
            (Some(copy), Some(table)) => copy.go_on(&table, budget),
            _ => Ok(false),
        }
    }

    /// Puts the copy, which has every row, in the store's place.
    fn replace_store(&mut self) {
        let (compacted, swept) = self.compaction.progress();
        let progress = Progress { revision: self.revision, compacted, swept };
        let marks = self.compaction.marks();
        let sealed = self.defrag.copy.as_ref().map(|copy| copy.seal(progress, &marks));
        let Some(Ok(rows)) = sealed else { return self.defrag.give_up(self.steady_ms) };
        let Some(Copy { store, guard, .. }) = self.defrag.copy.take() else { return };
        if let Some(Err(cause)) = self.defrag.spare.as_ref().map(|spare| spare.promote()) {
            // A start may find the old file or the new one. Both have everything, as long as nothing is
            // added.
            return self.shared.fail(format!("cannot put the new file in place: {cause}"));
        }
        let before = self.shared.view_mut().rows.replace(Arc::new(rows));
        drop(before);
        std::mem::replace(&mut self.guard, guard).abandon();
        self.defrag.retired = Some(std::mem::replace(&mut self.store, store));
        self.defrag.retired.take_if(|store| !store.is_read());
        self.defrag.last = Some(self.usage());
        self.shared.set_file_bytes(&self.guard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_made_when_half_of_the_file_is_waste_and_copying_may_help() {
        let usage = |used, live| Usage { used, live };
        let cases = [
            (usage(200, 100), None, false),
            (usage(230, 100), None, true),
            (usage(30, 0), None, true),
            (usage(15, 0), None, false),
            // As small as it can be.
            (usage(230, 100), Some(usage(230, 100)), false),
            (usage(280, 100), Some(usage(230, 100)), false),
            (usage(290, 100), Some(usage(230, 100)), true),
            (usage(230, 76), Some(usage(230, 100)), false),
            (usage(230, 74), Some(usage(230, 100)), true),
            (usage(150, 60), Some(usage(150, 100)), true),
        ];
        for (usage, last, expected) in cases {
            assert_eq!(usage.is_wasteful(20, last), expected, "{usage:?} after {last:?}");
        }
    }
}
