//! The disk as redb sees it: after the first write or sync that fails, nothing more reaches the real one.
//!
//! redb answers every call with an error once one has failed, reads included. Here reads must go on. So a
//! failed write is kept in memory and reported to the writer thread beside redb ([`Guard::failure`]), which
//! then commits nothing any more; redb goes on reading pages from the disk with the few kept ones over them.
//! On the disk this looks like a crash in the middle of a commit, which the next start recovers from. A read
//! that fails is redb's to report.
//!
//! In: redb's calls. Out: calls to the real disk, and why it failed. Owner of the kept pages: the lock in
//! here.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{BackendError, StorageBackend};

const PAGE: usize = 4096;

/// A disk that keeps serving reads after it failed to write. Cheap to clone: all clones are one disk.
#[derive(Clone, Debug)]
pub(crate) struct Guard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    disk: Box<dyn StorageBackend>,
    // The length redb asked for; what the real disk has may differ after a failure.
    len: AtomicU64,
    // Pages that take space; redb doubles the file when it is full, and what it has not written yet is a
    // hole.
    used: Mutex<Used>,
    // Whether `failed` is set; read first, so that nobody waits for the lock while all is well.
    has_failed: AtomicBool,
    failed: Mutex<Option<Failed>>,
}

#[derive(Debug)]
struct Failed {
    cause: String,
    // page number -> its bytes, for every page written since the failure; at most one commit and the close
    pages: BTreeMap<u64, Box<[u8; PAGE]>>,
}

impl Guard {
    /// `used` is how much of the disk takes space; `None` is all.
    ///
    /// # Errors
    /// When the disk cannot say how long it is.
    pub(crate) fn new(disk: Box<dyn StorageBackend>, used: Option<u64>) -> io::Result<Guard> {
        let bytes = disk.len()?;
        let (len, has_failed) = (AtomicU64::new(bytes), AtomicBool::new(false));
        // Where the holes are is not known; most of them are at the end.
        let used = Mutex::new(Used::up_to(used.unwrap_or(bytes).min(bytes)));
        Ok(Guard(Arc::new(Inner { disk, len, used, has_failed, failed: Mutex::new(None) })))
    }

    /// From now on nothing reaches the disk: it is no longer the store's. Reads go on.
    pub(crate) fn abandon(&self) {
        self.fail("it was replaced".to_string());
    }

    fn fail(&self, cause: String) {
        self.lock().get_or_insert_with(|| Failed { cause, pages: BTreeMap::new() });
        self.0.has_failed.store(true, Ordering::Release);
    }

    /// Why the disk failed, once it has. Nothing that was committed since the last look is durable then.
    pub(crate) fn failure(&self) -> Option<String> {
        if self.has_failed() { self.lock().as_ref().map(|failed| failed.cause.clone()) } else { None }
    }

    fn has_failed(&self) -> bool {
        self.0.has_failed.load(Ordering::Acquire)
    }

    /// The length of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.len.load(Ordering::Acquire)
    }

    /// The space that the file takes on disk.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used().count * PAGE as u64
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Failed>> {
        self.0.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `call` on the real disk unless it has failed before; a failure is kept. Says whether the call was
    /// made and worked.
    fn attempt(&self, what: &str, call: impl FnOnce(&dyn StorageBackend) -> io::Result<()>) -> bool {
        if self.has_failed() {
            return false;
        }
        let Err(error) = call(&*self.0.disk) else { return true };
        self.fail(format!("{what}: {error}"));
        false
    }

    /// Reads from the real disk; what lies beyond its end reads as zero.
    fn read_disk(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let held = self.0.disk.len()?.saturating_sub(offset).min(out.len() as u64) as usize;
        let (held, beyond) = out.split_at_mut(held);
        beyond.fill(0);
        if held.is_empty() { Ok(()) } else { self.0.disk.read(offset, held) }
    }
}

impl StorageBackend for Guard {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if !self.has_failed() {
            return self.0.disk.read(offset, out);
        }
        self.read_disk(offset, out)?;
        let failed = self.lock();
        let Some(failed) = &*failed else { return Ok(()) };
        for (number, from, to) in pages(offset, out.len()) {
            if let Some(page) = failed.pages.get(&number) {
                let at = (number * PAGE as u64 + from as u64 - offset) as usize;
                out[at..at + to - from].copy_from_slice(&page[from..to]);
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.attempt("cannot change the file's size", |disk| disk.set_len(len));
        self.0.len.store(len, Ordering::Release);
        self.used().cut(len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.attempt("cannot sync", |disk| disk.sync_data());
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.attempt("cannot write", |disk| disk.write(offset, data)) {
            self.used().write(offset, data.len());
            return Ok(());
        }
        for (number, from, to) in pages(offset, data.len()) {
            let mut page = Box::new([0; PAGE]);
            self.read(number * PAGE as u64, &mut page[..])?;
            let at = (number * PAGE as u64 + from as u64 - offset) as usize;
            page[from..to].copy_from_slice(&data[at..at + to - from]);
            if let Some(failed) = &mut *self.lock() {
                failed.pages.insert(number, page);
            }
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.0.disk.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.disk.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.disk.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.disk.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.disk.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.disk.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.disk.query_lock_range(start, end)
    }
}

/// Which pages were ever written and not cut off since.
#[derive(Debug, Default)]
struct Used {
    // A bit for each page: 32 KiB for each GiB.
    bits: Vec<u64>,
    // Bits that are set.
    count: u64,
}

impl Used {
    /// Everything before `end`.
    fn up_to(end: u64) -> Used {
        let mut used = Used::default();
        used.write(0, end as usize);
        used
    }

    fn write(&mut self, offset: u64, len: usize) {
        for (number, ..) in pages(offset, len) {
            let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
            if word >= self.bits.len() {
                self.bits.resize(word + 1, 0);
            }
            self.count += u64::from(self.bits[word] & bit == 0);
            self.bits[word] |= bit;
        }
    }

    /// Nothing from `len` on is used any more.
    fn cut(&mut self, len: u64) {
        let whole = len.div_ceil(PAGE as u64);
        self.bits.truncate(whole.div_ceil(64) as usize);
        // Only a word that the end falls into has bits on both sides of it.
        if let Some(last) = self.bits.get_mut((whole / 64) as usize) {
            *last &= (1 << (whole % 64)) - 1;
        }
        self.count = self.bits.iter().map(|word| u64::from(word.count_ones())).sum();
    }
}

/// The pages that `len` bytes at `offset` touch: (page number, first byte in it, last byte in it + 1).
fn pages(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let (page, end) = (PAGE as u64, offset + len as u64);
    (offset / page..end.div_ceil(page)).map(move |number| {
        let start = number * page;
        (number, offset.saturating_sub(start) as usize, (end - start).min(page) as usize)
    })
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;

    use super::*;

    #[derive(Debug)]
    struct Brittle(InMemoryBackend, std::sync::atomic::AtomicBool);

    impl StorageBackend for Brittle {
        fn len(&self) -> io::Result<u64> {
            self.0.len()
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            self.0.read(offset, out)
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.0.set_len(len)
        }

        fn sync_data(&self) -> io::Result<()> {
            self.1.store(true, Ordering::Release);
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            assert!(!self.1.load(Ordering::Acquire), "a write reached the disk after a failed sync");
            self.0.write(offset, data)
        }
    }

    #[test]
    fn after_a_failed_sync_reads_see_what_was_written_and_the_disk_does_not() {
        let guard =
            Guard::new(Box::new(Brittle(InMemoryBackend::new(), false.into())), None).expect("has a length");
        guard.set_len(3 * PAGE as u64).expect("fits");
        guard.write(4000, &[1; 200]).expect("works");
        assert_eq!(guard.failure(), None);
        guard.sync_data().expect("the failure is told beside redb");
        assert!(guard.failure().is_some_and(|cause| cause.starts_with("cannot sync: ")));

        guard.write(4090, &[2; 10]).expect("kept in memory");
        guard.set_len(5 * PAGE as u64).expect("kept in memory");
        guard.write(4 * PAGE as u64, &[3; 10]).expect("kept in memory");
        let mut out = [9; 202];
        guard.read(3999, &mut out).expect("reads go on");
        let mut expected = vec![0];
        expected.extend([1; 90]);
        expected.extend([2; 10]);
        expected.extend([1; 100]);
        expected.push(0);
        assert_eq!(out[..], expected[..]);
        let mut out = [9; 20];
        guard.read(4 * PAGE as u64 - 5, &mut out).expect("reads go on");
        assert_eq!(out, [0, 0, 0, 0, 0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 0, 0, 0, 0, 0]);
        assert_eq!((guard.len().expect("known"), guard.bytes()), (5 * PAGE as u64, 5 * PAGE as u64));
    }

    #[test]
    fn only_pages_that_were_written_take_space() {
        let guard = Guard::new(Box::new(InMemoryBackend::new()), None).expect("has a length");
        let used = |pages: u64| assert_eq!(guard.used_bytes(), pages * PAGE as u64);
        let page = |number: u64| number * PAGE as u64;
        guard.set_len(page(200)).expect("fits");
        used(0);
        guard.write(100, &[1; 50]).expect("works");
        guard.write(0, &[1; 50]).expect("works");
        used(1);
        guard.write(page(199), &[1; PAGE]).expect("works");
        guard.write(page(64) - 1, &[1; 2]).expect("works");
        used(4);
        guard.set_len(page(199) + 1).expect("works");
        used(4);
        guard.set_len(page(65)).expect("works");
        used(3);
        guard.set_len(page(64)).expect("works");
        used(2);
        guard.set_len(page(63)).expect("works");
        used(1);
        guard.set_len(page(200)).expect("fits");
        used(1);
        assert_eq!(guard.bytes(), page(200));
    }
}
