//! A bell that thousands wait for.
//!
//! Who waits has a seat in one of its rows, which stand close together in memory: to ring is to walk along them, and touches
//! nothing of those who are woken but their tasks. A seat is taken once, and once for each ring; who polls again before that
//! takes no lock.
//!
//! Order: whoever rings counts the ring first and walks along the rows then; whoever sits down looks at the count with the
//! row locked. So either sees the other.

// Not loom's: nobody waits for what these say.
use std::sync::atomic::AtomicU64 as Count;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

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
    // How often it had rung when that was last heard.
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

#[derive(Debug, Default)]
struct Row {
    seats: Vec<Option<Waiting>>,
    free: Vec<usize>,
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

    /// One that hears what is rung from now on.
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
            // Not with the row locked: what is woken may leave.
            woken.into_iter().for_each(|one| one.waker.wake());
        }
    }

    fn seat(&self) -> Seat {
        let row = (self.given.fetch_add(1, Ordering::Relaxed) % self.rows.len() as u64) as usize;
        let mut seats = lock(&self.rows[row]);
        let place = seats.free.pop().unwrap_or_else(|| {
            seats.seats.push(None);
            seats.seats.len() - 1
        });
        Seat { row, place }
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
        if let Some(rung) = self.has_rung() {
            return Poll::Ready(rung);
        }
        let is_news = self.told.is_news_to(cx);
        if self.is_seated && !is_news {
            return Poll::Pending;
        }
        let seat = *self.seat.get_or_insert_with(|| self.tower.seat());
        let waiting = Waiting { waker: cx.waker().clone(), heard: self.heard };
        let before = {
            let mut row = lock(&self.tower.rows[seat.row]);
            // It may have rung meanwhile, and then nobody looks here any more.
            (self.tower.rings.load(Ordering::Acquire) == self.heard)
                .then(|| row.seats[seat.place].replace(waiting))
        };
        self.is_seated = before.is_some();
        if self.is_seated { Poll::Pending } else { Poll::Ready(self.has_rung().unwrap_or_default()) }
    }

    /// Whether there was a ring that was not heard, which then was, or the bell is gone (`Some(false)`).
    fn has_rung(&mut self) -> Option<bool> {
        let rings = self.tower.rings.load(Ordering::Acquire);
        if rings == GONE {
            return Some(false);
        }
        let is_news = rings != self.heard;
        if is_news {
            self.heard = rings;
            self.is_seated = false;
        }
        is_news.then_some(true)
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
        let _waiting = {
            let mut row = lock(&self.tower.rows[seat.row]);
            let waiting = row.seats[seat.place].take();
            row.free.push(seat.place);
            if row.free.len() == row.seats.len() {
                *row = Row::default();
            }
            waiting
        };
    }
}

fn lock(row: &Mutex<Row>) -> MutexGuard<'_, Row> {
    row.lock().unwrap_or_else(PoisonError::into_inner)
}
