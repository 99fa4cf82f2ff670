//! What one client has taken, and what it has open: counters that its requests add to without a lock.
//!
//! In: what happened. Out: the numbers. Owner: whoever has a request of that client open, and the ledger
//! while it is known by name. Once it no longer is, what it takes is everybody else's.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::counts::{COUNTS, Cause, Count, Counts, ListedAt};
use crate::limits::EXPIRED_MAX;

/// One of the numbers that go up and down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Gauge {
    /// Watches that are open.
    Watches,
    /// Those of them whose client has not taken what there is to send; and since when each of these, in
    /// milliseconds of the ledger's time, added up.
    Behind,
    BehindSinceMs,
    /// What requests of it hold, as they are priced.
    HeldBytes,
}

const GAUGES: usize = Gauge::HeldBytes as usize + 1;

/// All of them, by [`Gauge`].
pub(crate) type Gauges = [i64; GAUGES];

/// See the module's doc.
#[derive(Debug, Default)]
pub struct Account {
    counts: [AtomicU64; COUNTS],
    gauges: [AtomicI64; GAUGES],
    told: Mutex<Told>,
    /// Everybody else's, and whether this one is a part of that.
    others: Option<Arc<Account>>,
    is_out: AtomicBool,
}

/// Who was told that history is gone, and has not listed since.
#[derive(Debug, Default)]
struct Told {
    times: u32,
    last: Duration,
}

impl Account {
    pub(crate) fn beside(others: &Arc<Account>) -> Account {
        let mut account = Account::default();
        account.others = Some(others.clone());
        account
    }

    pub fn add(&self, count: Count, more: u64) {
        self.current().counts[count as usize].fetch_add(more, Relaxed);
    }

    /// - `by`: what it goes up by, or down.
    pub fn shift(&self, gauge: Gauge, by: i64) {
        self.current().gauges[gauge as usize].fetch_add(by, Relaxed);
    }

    /// It was told that the place in history that it goes on from is gone: it will list.
    pub fn expired(&self, now: Duration) {
        self.add(Count::Expired, 1);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        (told.times, told.last) = (told.times.saturating_add(1), now);
    }

    /// It lists, a page behind another or all of it.
    ///
    /// - `is_again`: it has read the same before on its connection.
    pub fn listed(&self, at: ListedAt, is_again: bool, now: Duration) {
        self.add(at.into(), 1);
        if at != ListedAt::Page {
            self.add(self.cause(is_again, now).into(), 1);
        }
    }

    /// A watch of it begins.
    ///
    /// - `state`: whether it is sent the state first, and then whether it has read the same before.
    pub fn watched(&self, state: Option<bool>, now: Duration) {
        self.add(Count::WatchStarts, 1);
        if let Some(is_again) = state {
            self.add(Count::WatchLists, 1);
            self.add(self.cause(is_again, now).into(), 1);
        }
    }

    /// Clients that share a name are told apart by how many of them were told, not by which.
    fn cause(&self, is_again: bool, now: Duration) -> Cause {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.times > 0 && now.saturating_sub(told.last) <= EXPIRED_MAX {
            told.times -= 1;
            return Cause::Expired;
        }
        told.times = 0;
        if is_again { Cause::Again } else { Cause::Start }
    }

    pub(crate) fn counts(&self) -> Counts {
        std::array::from_fn(|at| self.counts[at].load(Relaxed))
    }

    pub(crate) fn gauges(&self) -> Gauges {
        std::array::from_fn(|at| self.gauges[at].load(Relaxed))
    }

    /// From now on it is everybody else's, with all that it had.
    pub(crate) fn leave(&self) {
        self.is_out.store(true, Relaxed);
        self.fold();
    }

    /// What it has goes over to the others. What somebody adds at this very moment goes when it is dropped.
    fn fold(&self) {
        let Some(others) = &self.others else { return };
        for (own, others) in self.counts.iter().zip(&others.counts) {
            others.fetch_add(own.swap(0, Relaxed), Relaxed);
        }
        for (own, others) in self.gauges.iter().zip(&others.gauges) {
            others.fetch_add(own.swap(0, Relaxed), Relaxed);
        }
    }

    fn current(&self) -> &Account {
        match &self.others {
            Some(others) if self.is_out.load(Relaxed) => others,
            _ => self,
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.fold();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn count(account: &Account, count: Count) -> u64 {
        account.counts()[count as usize]
    }

    #[test]
    fn a_list_behind_a_410_is_forced_and_the_next_is_not() {
        let account = Account::default();
        account.listed(ListedAt::Zero, false, SECOND);
        account.expired(2 * SECOND);
        account.listed(ListedAt::Unset, true, 3 * SECOND);
        account.listed(ListedAt::Page, true, 3 * SECOND);
        account.listed(ListedAt::Unset, true, 4 * SECOND);
        account.watched(Some(true), 5 * SECOND);
        account.watched(None, 6 * SECOND);
        let causes = [Count::CauseStart, Count::CauseExpired, Count::CauseAgain];
        assert_eq!(causes.map(|of| count(&account, of)), [1, 1, 2]);
        let lists = [Count::ListUnset, Count::ListZero, Count::ListPage, Count::WatchLists];
        assert_eq!(lists.map(|of| count(&account, of)), [2, 1, 1, 1]);
        assert_eq!(count(&account, Count::WatchStarts), 2);
    }

    #[test]
    fn a_410_of_long_ago_forces_nothing() {
        let account = Account::default();
        account.expired(SECOND);
        account.listed(ListedAt::Unset, true, SECOND + EXPIRED_MAX + SECOND);
        assert_eq!((count(&account, Count::CauseExpired), count(&account, Count::CauseAgain)), (0, 1));
    }

    #[test]
    fn what_is_no_longer_known_by_name_is_everybody_elses() {
        let others = Arc::new(Account::default());
        let account = Arc::new(Account::beside(&others));
        account.add(Count::Requests, 3);
        account.shift(Gauge::Watches, 2);
        assert_eq!(count(&others, Count::Requests), 0);
        account.leave();
        account.add(Count::Requests, 1);
        account.shift(Gauge::Watches, -2);
        assert_eq!((count(&account, Count::Requests), count(&others, Count::Requests)), (0, 4));
        assert_eq!(others.gauges()[Gauge::Watches as usize], 0);
        drop(account);
        assert_eq!(count(&others, Count::Requests), 4);
    }
}
