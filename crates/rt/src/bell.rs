//! A bell that thousands wait for.
//!
//! Who waits has a seat in one of its rows, which stand close together in memory: to ring is to walk along
//! them, and touches nothing of those who are woken but their tasks. A seat is taken once, and once for each
//! ring; who polls again before that takes no lock. Who is never out of rings lets others work in between, as
//! with everything that tokio makes wait.
//!
//! Order: whoever rings counts the ring first and walks along the rows then; whoever sits down looks at the
//! count with the row locked. So either sees the other.

use std::collections::BTreeSet;
// Not loom's: nobody waits for what these say.
use std::sync::atomic::AtomicU64 as Count;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::task::coop;

use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};
use crate::told::Told;

/// Instead of the number of rings: nobody is left who could ring.
const GONE: u64 = u64::MAX;

/// Rings. Its clones are the same bell; with the last one its ears hear that it is gone.
#[derive(Clone, Debug)]
pub struct Bell(Arc<Rope>);

/// Hears a bell: whoever has it waits for the next ring.
#[derive(Debug)]
pub struct Ear {
    tower: Arc<Tower>,
    // How often the bell had rung when this listener last looked.
    heard: u64,
    seat: Option<Seat>,
    // Sits there since, as long as no other ring was heard.
    told: Told,
    is_seated: bool,
}

#[derive(Debug)]
struct Rope(Arc<Tower>);

#[derive(Debug)]
struct Tower {
    rings: AtomicU64,
    ears: Count,
    // Seats that were given out, so that rows fill evenly.
    given: Count,
    rows: Box<[Mutex<Row>]>,
}

/// Ends with the last seat that is taken.
#[derive(Debug, Default)]
struct Row {
    seats: Vec<Option<Waiting>>,
    // Places in the row that were given back.
    free: BTreeSet<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Seat {
    row: usize,
    place: usize,
}

#[derive(Debug)]
struct Waiting {
    waker: Waker,
    // Woken by a later ring.
    heard: u64,
}

impl Bell {
    /// - `rows`: so many may sit down at the same time without waiting for each other.
    pub fn new(rows: usize) -> Bell {
        let rows = (0..rows.max(1)).map(|_| Mutex::new(Row::default())).collect();
        let tower = Tower { rings: AtomicU64::new(0), ears: Count::new(0), given: Count::new(0), rows };
        Bell(Arc::new(Rope(Arc::new(tower))))
    }

    /// A listener that hears what is rung from now on.
    pub fn ear(&self) -> Ear {
        Ear::new(self.tower().clone(), self.tower().rings.load(Ordering::Acquire))
    }

    /// Wakes all who wait.
    pub fn ring(&self) {
        let rings = self.tower().rings.fetch_add(1, Ordering::AcqRel) + 1;
        self.tower().wake(rings);
    }

    /// Whether anybody hears it.
    pub fn is_heard(&self) -> bool {
        self.tower().ears.load(Ordering::Relaxed) > 0
    }

    /// How many there are, taken or not.
    #[cfg(test)]
    pub(crate) fn seats(&self) -> usize {
        self.tower().rows.iter().map(|row| lock(row).seats.len()).sum()
    }

    fn tower(&self) -> &Arc<Tower> {
        &self.0.0
    }
}

impl Drop for Rope {
    fn drop(&mut self) {
        self.0.rings.store(GONE, Ordering::Release);
        self.0.wake(GONE);
    }
}

impl Tower {
    /// Wakes who has not heard of this ring.
    fn wake(&self, rings: u64) {
        for row in &self.rows {
            let woken: Vec<Waiting> = {
                let mut row = lock(row);
                row.seats.iter_mut().filter_map(|seat| seat.take_if(|one| one.heard < rings)).collect()
            };
            // The row is not locked here, as a task that is woken may leave it at once.
            woken.into_iter().for_each(|one| one.waker.wake());
        }
    }

    fn seat(&self) -> Seat {
        let row = (self.given.fetch_add(1, Ordering::Relaxed) % self.rows.len() as u64) as usize;
        let place = lock(&self.rows[row]).take();
        Seat { row, place }
    }
}

impl Row {
    /// A seat that nobody has: the first there is, so that the row stays short.
    fn take(&mut self) -> usize {
        self.free.pop_first().unwrap_or_else(|| {
            self.seats.push(None);
            self.seats.len() - 1
        })
    }

    /// What waited there.
    fn give_back(&mut self, place: usize) -> Option<Waiting> {
        let waiting = self.seats[place].take();
        self.free.insert(place);
        while self.seats.len().checked_sub(1).is_some_and(|last| self.free.remove(&last)) {
            self.seats.pop();
        }
        if self.seats.len() < self.seats.capacity() / 4 {
            self.seats.shrink_to(2 * self.seats.len());
        }
        waiting
    }
}

impl Ear {
    fn new(tower: Arc<Tower>, heard: u64) -> Ear {
        tower.ears.fetch_add(1, Ordering::AcqRel);
        Ear { tower, heard, seat: None, told: Told::default(), is_seated: false }
    }

    /// Takes every ring until now as heard.
    pub fn hear(&mut self) {
        self.has_rung();
    }

    /// Ready after a ring that was not heard yet, which then was; false when the bell is gone.
    pub fn poll_rung(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        while !self.has_news() {
            if self.sits(cx) {
                return Poll::Pending;
            }
        }
        ready!(coop::poll_proceed(cx)).made_progress();
        Poll::Ready(self.has_rung())
    }

    /// Whether there was a ring that was not heard, or the bell is gone.
    fn has_news(&self) -> bool {
        self.tower.rings.load(Ordering::Acquire) != self.heard
    }

    /// Takes what there was as heard; false when the bell is gone.
    fn has_rung(&mut self) -> bool {
        let rings = self.tower.rings.load(Ordering::Acquire);
        if rings == GONE {
            return false;
        }
        if rings != self.heard {
            self.heard = rings;
            self.is_seated = false;
        }
        true
    }

    /// Whether it has sat down, to be woken by the next ring; not when there was one meanwhile.
    fn sits(&mut self, cx: &mut Context<'_>) -> bool {
        let is_news = self.told.is_news_to(cx);
        if self.is_seated && !is_news {
            return true;
        }
        let seat = *self.seat.get_or_insert_with(|| self.tower.seat());
        let waiting = Waiting { waker: cx.waker().clone(), heard: self.heard };
        let before = {
            let mut row = lock(&self.tower.rows[seat.row]);
            // After a ring nobody looks here any more.
            (!self.has_news()).then(|| row.seats[seat.place].replace(waiting))
        };
        self.is_seated = before.is_some();
        self.is_seated
    }
}

impl Clone for Ear {
    /// Another one that has heard as much.
    fn clone(&self) -> Ear {
        Ear::new(self.tower.clone(), self.heard)
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.tower.ears.fetch_sub(1, Ordering::AcqRel);
        let Some(seat) = self.seat else { return };
        // Dropped with the row unlocked.
        let _waiting = lock(&self.tower.rows[seat.row]).give_back(seat.place);
    }
}

fn lock(row: &Mutex<Row>) -> MutexGuard<'_, Row> {
    row.lock().unwrap_or_else(PoisonError::into_inner)
}
