//! What a request makes the server hold, in bytes: asked for before it is held.
//!
//! In: a [`Ledger`], which says whether there is memory for more, and what was taken from it before the work
//! began. Out: leave to hold so many bytes more, or [`Exhausted`]. Whatever is made of what a client sent is
//! made on the lease of its request: a tree of values cannot be read without one. What was leased goes back
//! to the ledger when the request is over. Never: waits; whoever can wait does so before the work begins.
//!
//! The state has no owner: each part of it is an atomic, and all that work on one request count together.

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The most that one tree of values may take: of what a client sends, of what a patch or a default makes of
/// it, of the copy that is changed. An object of one small member takes 704 B, so that a body of 3 MiB which
/// has more than one of them for each 48 bytes is refused; of kube-apiserver's 1.5 MiB, for each 24. Real
/// ones have 60 or more.
pub const TREE_BYTES_MAX: usize = 44 << 20;

/// The most that one request may hold: the tree that is written, the one that is replaced, a copy of each,
/// and texts.
pub const LEASE_BYTES_MAX: usize = 4 * TREE_BYTES_MAX + (32 << 20);

/// The ledger is asked for so much at a time, so that it is asked rarely.
pub const STEP_BYTES: usize = 64 << 10;

/// The same where little more is wanted: of a request that waits for somebody else, and of a part.
pub const SMALL_STEP_BYTES: usize = 1 << 10;

/// Says whether there is memory for more. What it gave is given back when it is dropped.
pub trait Ledger: Send {
    /// Takes so many bytes, at once or not at all.
    fn try_take(&mut self, bytes: usize) -> bool;

    /// How many bytes it wants to be asked for at a time.
    fn step_bytes(&self) -> usize {
        STEP_BYTES
    }

    /// Takes back so many of the bytes that it gave, which are not needed now; or does not.
    fn try_give_back(&mut self, _bytes: usize) -> bool {
        false
    }

    /// From now on the request waits for `whom`, beside others that it may wait for: whether one more may.
    fn wait_for(&mut self, _whom: &Arc<str>) -> bool {
        true
    }

    /// It waits for `whom` no more.
    fn waited_for(&mut self, _whom: &Arc<str>) {}
}

/// What one request may hold. Cheap to clone: clones count together.
#[derive(Clone)]
pub struct Lease(Arc<Inner>);

struct Inner {
    used: AtomicUsize,
    peak: AtomicUsize,
    granted: AtomicUsize,
    bytes_max: usize,
    tree_bytes_max: usize,
    exhausted: AtomicU8,
    ledger: Mutex<Box<dyn Ledger>>,
}

/// A request would take more than it may. It is over: nothing that is made of what it sent is of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exhausted {
    /// More than any request may have; the same one will never fit.
    #[error("the object has too many values for its length: it takes more than the {} MiB of memory that one may take", TREE_BYTES_MAX >> 20)]
    TooLarge,
    /// More than there is now; it may fit later.
    #[error("there is no memory for it now")]
    NoRoom,
}

/// Counts what one tree takes while it is made.
pub struct Meter {
    lease: Lease,
    used: usize,
    granted: usize,
}

/// Gives back to the lease what was charged to it since.
pub struct Scope<'l> {
    lease: &'l Lease,
    used: usize,
}

/// For as long as a request waits for somebody else, who may be slow, or hang.
pub struct Waits {
    lease: Lease,
    whom: Arc<str>,
}

/// What a part takes is another lease's.
struct PartLedger {
    of: Lease,
    bytes: usize,
}

impl Ledger for PartLedger {
    fn try_take(&mut self, bytes: usize) -> bool {
        let is_taken = self.of.take(bytes).is_ok();
        self.bytes += if is_taken { bytes } else { 0 };
        is_taken
    }

    fn step_bytes(&self) -> usize {
        SMALL_STEP_BYTES
    }
}

impl Drop for PartLedger {
    fn drop(&mut self) {
        self.of.give_back(self.bytes);
    }
}

struct Unbounded;

impl Ledger for Unbounded {
    fn try_take(&mut self, _bytes: usize) -> bool {
        true
    }
}

impl Lease {
    /// The lease of a request that has taken `granted` bytes from `ledger` already.
    pub fn new(ledger: impl Ledger + 'static, granted: usize) -> Lease {
        Lease::bounded(Box::new(ledger), granted, LEASE_BYTES_MAX, TREE_BYTES_MAX)
    }

    /// For what the server does by itself with what it made itself: nothing is counted.
    pub fn of_server() -> Lease {
        static SERVER: OnceLock<Lease> = OnceLock::new();
        SERVER.get_or_init(|| Lease::bounded(Box::new(Unbounded), usize::MAX, usize::MAX, usize::MAX)).clone()
    }

    /// As much as one tree may take, from no ledger: for what stands in a request's head, which is short, and
    /// for what is read from the store and grows by what was written elsewhere, such as the defaults of a
    /// schema.
    pub fn of_one_tree() -> Lease {
        Lease::bounded(Box::new(Unbounded), 0, TREE_BYTES_MAX, TREE_BYTES_MAX)
    }

    fn bounded(ledger: Box<dyn Ledger>, granted: usize, bytes_max: usize, tree_bytes_max: usize) -> Lease {
        Lease(Arc::new(Inner {
            used: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            granted: AtomicUsize::new(granted),
            bytes_max,
            tree_bytes_max,
            exhausted: AtomicU8::new(0),
            ledger: Mutex::new(ledger),
        }))
    }

    /// Leave to hold so many bytes more.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub fn charge(&self, bytes: usize) -> Result<(), Exhausted> {
        self.take(bytes).map_err(|why| self.exhaust(why))
    }

    /// The same without a word of it later, if it is refused.
    fn take(&self, bytes: usize) -> Result<(), Exhausted> {
        let inner = &*self.0;
        let used = inner.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if used <= inner.granted.load(Ordering::Relaxed) {
            inner.peak.fetch_max(used, Ordering::Relaxed);
            return Ok(());
        }
        let more = if used > inner.bytes_max { Err(Exhausted::TooLarge) } else { self.grow(used) };
        more.inspect_err(|_| {
            inner.used.fetch_sub(bytes, Ordering::Relaxed);
        })?;
        inner.peak.fetch_max(used, Ordering::Relaxed);
        Ok(())
    }

    /// Takes from the ledger what is missing to `used`, and some.
    fn grow(&self, used: usize) -> Result<(), Exhausted> {
        let inner = &*self.0;
        let mut ledger = inner.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = used.saturating_sub(inner.granted.load(Ordering::Relaxed));
        let step = missing.next_multiple_of(ledger.step_bytes());
        if missing > 0 {
            let taken = [step, missing].into_iter().find(|bytes| ledger.try_take(*bytes));
            inner.granted.fetch_add(taken.ok_or(Exhausted::NoRoom)?, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Begins to wait for `whom`: what was taken from the ledger ahead goes back, and what is held is counted
    /// among what waits for them. Nothing if there is no room for one more who does.
    pub fn waits_for(&self, whom: &Arc<str>) -> Option<Waits> {
        let mut ledger = self.0.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        self.shrink(&mut **ledger);
        let waits = ledger.wait_for(whom);
        waits.then(|| Waits { lease: self.clone(), whom: whom.clone() })
    }

    /// What is charged by another thread at this moment may be covered by nothing until the lease grows next.
    fn shrink(&self, ledger: &mut dyn Ledger) {
        let inner = &*self.0;
        let spare = inner.granted.load(Ordering::Relaxed).saturating_sub(self.used());
        if spare > 0 && ledger.try_give_back(spare) {
            inner.granted.fetch_sub(spare, Ordering::Relaxed);
        }
    }

    fn exhaust(&self, why: Exhausted) -> Exhausted {
        let number = if why == Exhausted::TooLarge { 2 } else { 1 };
        self.0.exhausted.fetch_max(number, Ordering::Relaxed);
        why
    }

    /// Why something was refused, if it was: whatever was said of the request meanwhile, this is what is
    /// wrong with it.
    pub fn exhausted(&self) -> Option<Exhausted> {
        match self.0.exhausted.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Exhausted::NoRoom),
            _ => Some(Exhausted::TooLarge),
        }
    }

    /// A lease for what somebody else sends, such as a webhook that is asked about the request: what it takes
    /// is charged to this one, and given back when it is dropped. That it is exhausted is not held against
    /// the request.
    ///
    /// - `bytes_max`: the most that it takes.
    pub fn part(&self, bytes_max: usize) -> Lease {
        let ledger = PartLedger { of: self.clone(), bytes: 0 };
        Lease::bounded(Box::new(ledger), 0, bytes_max, bytes_max)
    }

    /// So many bytes are held no more.
    pub fn give_back(&self, bytes: usize) {
        self.0.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What is charged until the end of it is given back then.
    pub fn scope(&self) -> Scope<'_> {
        Scope { lease: self, used: self.used() }
    }

    /// A meter for one tree.
    pub fn meter(&self) -> Meter {
        Meter { lease: self.clone(), used: 0, granted: 0 }
    }

    /// The most that was held at a time.
    pub fn peak(&self) -> usize {
        self.0.peak.load(Ordering::Relaxed)
    }

    /// Bytes that are held.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }
}

impl Meter {
    /// Counts so many bytes more. Cost: an addition and a comparison, except once in 64 KiB.
    ///
    /// # Errors
    /// [`Exhausted`].
    #[inline]
    pub fn charge(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.used = self.used.saturating_add(bytes);
        if self.used <= self.granted { Ok(()) } else { self.grow() }
    }

    #[cold]
    fn grow(&mut self) -> Result<(), Exhausted> {
        if self.used > self.lease.0.tree_bytes_max {
            return Err(self.lease.exhaust(Exhausted::TooLarge));
        }
        let step = (self.used - self.granted).next_multiple_of(STEP_BYTES);
        self.lease.charge(step)?;
        self.granted += step;
        Ok(())
    }

    /// The lease that it counts on.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }
}

/// What was charged ahead is given back; what the tree takes stays charged to the lease.
impl Drop for Meter {
    fn drop(&mut self) {
        self.lease.give_back(self.granted - self.used.min(self.granted));
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        self.lease.give_back(self.lease.used().saturating_sub(self.used));
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        let mut ledger = self.lease.0.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.waited_for(&self.whom);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("used", &self.used()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Purse(usize);

    impl Ledger for Purse {
        fn try_take(&mut self, bytes: usize) -> bool {
            let left = self.0.checked_sub(bytes);
            self.0 = left.unwrap_or(self.0);
            left.is_some()
        }
    }

    #[test]
    fn what_was_granted_goes_first_and_then_what_the_ledger_has() {
        let lease = Lease::new(Purse(100 << 10), 1000);
        assert_eq!(lease.charge(1000), Ok(()));
        assert_eq!(lease.charge(1), Ok(()), "a step of the ledger's");
        assert_eq!(lease.charge(90 << 10), Ok(()), "what is left but for a step");
        assert_eq!(lease.charge(20 << 10), Err(Exhausted::NoRoom));
        assert_eq!(lease.used(), 1001 + (90 << 10), "what was refused is not counted");
        assert_eq!(lease.exhausted(), Some(Exhausted::NoRoom), "it is not forgotten");
    }

    #[test]
    fn no_request_and_no_tree_takes_more_than_it_may() {
        let lease = Lease::new(Purse(usize::MAX), 0);
        let mut tree = lease.meter();
        assert_eq!(tree.charge(TREE_BYTES_MAX), Ok(()));
        assert_eq!(tree.charge(1), Err(Exhausted::TooLarge));
        let lease = Lease::new(Purse(usize::MAX), 0);
        assert_eq!(lease.charge(LEASE_BYTES_MAX), Ok(()));
        assert_eq!(lease.charge(1), Err(Exhausted::TooLarge));
        assert_eq!(lease.exhausted(), Some(Exhausted::TooLarge));
        assert_eq!(Lease::of_server().charge(usize::MAX), Ok(()));
    }

    #[test]
    fn a_part_is_charged_to_the_whole_and_what_is_wrong_with_it_is_not() {
        let lease = Lease::new(Purse(1 << 20), 0);
        let part = lease.part(300 << 10);
        assert_eq!(part.charge(200 << 10), Ok(()));
        assert!(lease.used() >= 200 << 10);
        assert_eq!(part.charge(200 << 10), Err(Exhausted::TooLarge));
        let other = lease.part(usize::MAX);
        assert_eq!(other.charge(2 << 20), Err(Exhausted::NoRoom));
        assert_eq!((lease.exhausted(), other.exhausted()), (None, Some(Exhausted::NoRoom)));
        drop((part, other));
        assert_eq!(lease.used(), 0);
    }

    /// What is taken, and who is waited for.
    #[derive(Clone, Default)]
    struct Noting(Arc<Mutex<(usize, Vec<Arc<str>>)>>);

    impl Ledger for Noting {
        fn try_take(&mut self, bytes: usize) -> bool {
            self.0.lock().expect("sound").0 += bytes;
            true
        }

        fn step_bytes(&self) -> usize {
            if self.0.lock().expect("sound").1.is_empty() { STEP_BYTES } else { SMALL_STEP_BYTES }
        }

        fn try_give_back(&mut self, bytes: usize) -> bool {
            self.0.lock().expect("sound").0 -= bytes;
            true
        }

        fn wait_for(&mut self, whom: &Arc<str>) -> bool {
            let waited = &mut self.0.lock().expect("sound").1;
            let has_room = waited.len() < 2;
            waited.extend(has_room.then(|| whom.clone()));
            has_room
        }

        fn waited_for(&mut self, whom: &Arc<str>) {
            self.0.lock().expect("sound").1.retain(|one| one != whom);
        }
    }

    #[test]
    fn who_waits_holds_what_it_needs_and_no_step_more() {
        let noting = Noting::default();
        let taken = || noting.0.lock().expect("sound").0;
        let lease = Lease::new(noting.clone(), 0);
        assert_eq!(lease.charge(100), Ok(()));
        assert_eq!(taken(), STEP_BYTES);
        let whoms: [Arc<str>; 3] = ["a", "b", "c"].map(Arc::from);
        let waits = lease.waits_for(&whoms[0]).expect("room");
        assert_eq!(taken(), 100);
        let part = lease.part(1 << 20);
        assert_eq!(part.charge(10), Ok(()));
        assert_eq!(taken(), 100 + SMALL_STEP_BYTES, "an answer comes in small steps");
        drop(part);
        let other = lease.waits_for(&whoms[1]).expect("room");
        assert_eq!(taken(), 100);
        assert!(lease.waits_for(&whoms[2]).is_none(), "no room");
        drop((waits, other));
        assert_eq!(lease.charge(1), Ok(()));
        assert_eq!(taken(), 100 + STEP_BYTES, "it goes on");
        let server = Lease::of_server();
        assert!(server.waits_for(&whoms[0]).is_some() && server.charge(1).is_ok());
    }

    #[test]
    fn what_is_over_is_given_back() {
        let lease = Lease::new(Purse(1 << 20), 0);
        let scope = lease.scope();
        let mut tree = lease.meter();
        tree.charge(10).expect("room");
        assert_eq!(lease.used(), STEP_BYTES);
        drop(tree);
        assert_eq!(lease.used(), 10, "the tree is there");
        drop(scope);
        assert_eq!(lease.used(), 0, "it is gone");
        assert_eq!(lease.peak(), STEP_BYTES);
    }
}
