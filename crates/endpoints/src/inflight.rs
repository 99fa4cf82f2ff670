//! How many requests may be worked on at once.
//!
//! In: a request's kind. Out: a seat, given back when dropped, or a refusal. Watches and the like take none.
//! As in kube-apiserver, `system:masters` are counted and never refused: somebody must be able to repair an
//! overloaded server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The seats of reads and of writes.
#[derive(Clone, Debug)]
pub struct Inflight {
    reads: Arc<Seats>,
    writes: Arc<Seats>,
}

#[derive(Debug)]
struct Seats {
    max: usize,
    taken: AtomicUsize,
}

/// A request that is being worked on.
#[derive(Debug)]
pub struct Seat(Arc<Seats>);

/// What kind of request a seat is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    ReadOnly,
    Mutating,
}

/// Whether somebody may be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    None,
    Exempt,
}

impl Inflight {
    /// Seats for so many reads and writes; `None` is no limit.
    pub fn new(reads: Option<usize>, writes: Option<usize>) -> Inflight {
        let seats = |max: Option<usize>| {
            Arc::new(Seats { max: max.unwrap_or(usize::MAX), taken: AtomicUsize::new(0) })
        };
        Inflight { reads: seats(reads), writes: seats(writes) }
    }

    /// A seat, or nothing when all are taken.
    pub fn take(&self, kind: RequestKind, privilege: Privilege) -> Option<Seat> {
        let seats = self.seats(kind);
        let before = seats.taken.fetch_add(1, Ordering::Relaxed);
        let seat = Seat(seats.clone());
        (before < seats.max || privilege == Privilege::Exempt).then_some(seat)
    }

    /// Whether there is a seat.
    pub fn has_room(&self, kind: RequestKind, privilege: Privilege) -> bool {
        privilege == Privilege::Exempt || self.taken(kind) < self.seats(kind).max
    }

    /// Seats that are taken.
    pub fn taken(&self, kind: RequestKind) -> usize {
        self.seats(kind).taken.load(Ordering::Relaxed)
    }

    fn seats(&self, kind: RequestKind) -> &Arc<Seats> {
        match kind {
            RequestKind::ReadOnly => &self.reads,
            RequestKind::Mutating => &self.writes,
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_given_back() {
        let inflight = Inflight::new(Some(1), None);
        let first = inflight.take(RequestKind::ReadOnly, Privilege::None).expect("a seat");
        assert!(inflight.take(RequestKind::ReadOnly, Privilege::None).is_none());
        assert!(inflight.take(RequestKind::Mutating, Privilege::None).is_some());
        let exempt = inflight.take(RequestKind::ReadOnly, Privilege::Exempt).expect("a seat");
        assert_eq!(inflight.taken(RequestKind::ReadOnly), 2);
        drop((first, exempt));
        assert_eq!((inflight.taken(RequestKind::ReadOnly), inflight.taken(RequestKind::Mutating)), (0, 0));
        assert!(inflight.take(RequestKind::ReadOnly, Privilege::None).is_some());
    }
}
