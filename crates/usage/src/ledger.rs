//! Which clients are known by name: the heaviest, in a table that never grows beyond its limit.
//!
//! In: who makes a request. Out: the [`Account`] that it counts on; a report. A new one takes the place of
//! the lightest, and inherits its weight, as space-saving counters do: of two that are new in turn neither
//! can drive out one that is heavy. Owner of the table: whoever holds the lock, for a look-up.
//!
//! Source: Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and Top-k Elements in Data
//! Streams.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::account::Account;
use crate::limits::{MINUTES, ROWS_MAX, TICK, TICKS};
use crate::report::{self, Flows, Seconds};
use crate::row::{Place, Row};
use crate::who::{Names, Who};

/// See the module's doc.
pub struct Ledger(Mutex<Table>);

struct Table {
    seed: u64,
    // <= ROWS_MAX; a row keeps its place until another takes it
    rows: Vec<(Names, u64, Row)>,
    // hash -> place in `rows`
    places: HashMap<u64, usize>,
    // (weight when it was last looked at, place), lightest first; one for each row
    weights: BinaryHeap<Reverse<(u64, usize)>>,
    others: Row,
    /// Rows that have become a part of the others.
    folded: u64,
    ticks: Ticks,
}

/// When notes were made of all counters.
struct Ticks {
    began: Duration,
    next: Duration,
    at: Place,
    of_ticks: [Duration; TICKS],
    of_minutes: [Duration; MINUTES],
    count: u64,
}

impl Ledger {
    /// - `now`: any clock's time, as with every call.
    /// - `seed`: of the hash that clients are found by; nobody knows it.
    pub fn new(now: Duration, seed: u64) -> Ledger {
        let others = Row::new(Arc::default(), 0);
        let ticks = Ticks {
            began: now,
            next: now + TICK,
            at: Place::default(),
            of_ticks: [now; TICKS],
            of_minutes: [now; MINUTES],
            count: 0,
        };
        let (rows, places, weights) = (Vec::new(), HashMap::new(), BinaryHeap::new());
        Ledger(Mutex::new(Table { seed, rows, places, weights, others, folded: 0, ticks }))
    }

    /// What a request of `who` counts on.
    ///
    /// Cost: O(1) for those who are known by name, O(log n) of so many names otherwise, over time; once
    /// in ten seconds a note of all counters.
    pub fn account(&self, who: &Who<'_>, now: Duration) -> Arc<Account> {
        let mut table = self.table();
        table.advance(now);
        table.account(who)
    }

    /// What is counted, the heaviest first.
    pub fn report(&self, now: Duration) -> Flows {
        let mut table = self.table();
        table.advance(now);
        let ticks = &table.ticks;
        let span = |since: Duration| now.saturating_sub(since).as_secs_f64();
        let spans = Seconds {
            minute: span(ticks.of_ticks[ticks.at.tick]),
            ten_minutes: span(ticks.of_minutes[ticks.at.minute]),
            total: span(ticks.began),
        };
        let sums = |row: &Row| row.sums(ticks.at);
        let mut rows: Vec<_> =
            table.rows.iter().map(|(names, _, row)| (row.weight(ticks.at), names, sums(row))).collect();
        rows.sort_by_key(|(weight, ..)| Reverse(*weight));
        let rows = rows.iter().map(|(_, names, sums)| (*names, sums));
        report::report(spans, rows, (&sums(&table.others), table.folded), now)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn account(&mut self, who: &Who<'_>) -> Arc<Account> {
        let hash = who.hash(self.seed);
        if let Some(place) = self.places.get(&hash) {
            return self.rows[*place].2.account.clone();
        }
        let account = Arc::new(Account::beside(&self.others.account));
        let (place, inherited) = match self.rows.len() < ROWS_MAX {
            true => (self.rows.len(), 0),
            false => self.make_room(),
        };
        let row = (who.names(), hash, Row::new(account.clone(), inherited));
        match self.rows.get_mut(place) {
            Some(old) => *old = row,
            None => self.rows.push(row),
        }
        self.places.insert(hash, place);
        self.weights.push(Reverse((inherited, place)));
        account
    }

    /// Counts the lightest with the others: its place, and its weight.
    fn make_room(&mut self) -> (usize, u64) {
        let (weight, place) = self.lightest();
        let (_, hash, row) = &self.rows[place];
        self.others.take_in(row);
        row.account.leave();
        self.places.remove(hash);
        self.folded += 1;
        (place, weight)
    }

    fn lightest(&mut self) -> (u64, usize) {
        // Once: one that has grown since it was looked at goes back as it is, and comes again after
        // all others.
        for _ in 0..ROWS_MAX {
            let Some(Reverse((seen, place))) = self.weights.pop() else { break };
            let weight = self.rows[place].2.weight(self.ticks.at);
            if weight <= seen {
                return (weight, place);
            }
            self.weights.push(Reverse((weight, place)));
        }
        // All of them grow just now.
        self.weights.pop().map_or((0, 0), |Reverse(lightest)| lightest)
    }

    /// Notes how far all counters are, at each tick that has passed.
    fn advance(&mut self, now: Duration) {
        let Some(late) = now.checked_sub(self.ticks.next) else { return };
        // After a long silence they all are the same.
        let most = (MINUTES * TICKS) as u32;
        let due = u32::try_from(late.as_secs() / TICK.as_secs()).unwrap_or(u32::MAX).saturating_add(1);
        self.ticks.next += TICK * due.saturating_sub(most);
        for _ in 0..due.min(most) {
            self.tick();
        }
    }

    fn each(&mut self, act: impl FnMut(&mut Row)) {
        self.rows.iter_mut().map(|(_, _, row)| row).chain([&mut self.others]).for_each(act);
    }

    fn tick(&mut self) {
        let (now, at) = (self.ticks.next, self.ticks.at);
        self.each(|row| row.note_tick(at));
        self.ticks.of_ticks[at.tick] = now;
        self.ticks.at.tick = (at.tick + 1) % TICKS;
        self.ticks.next += TICK;
        self.ticks.count += 1;
        if self.ticks.count.is_multiple_of(TICKS as u64) {
            self.each(|row| row.note_minute(at));
            self.ticks.of_minutes[at.minute] = now;
            self.ticks.at.minute = (at.minute + 1) % MINUTES;
            // What was heavy ten minutes ago is so no longer.
            let at = self.ticks.at;
            let weighed =
                self.rows.iter().enumerate().map(|(place, (_, _, row))| Reverse((row.weight(at), place)));
            self.weights = weighed.collect();
        }
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
