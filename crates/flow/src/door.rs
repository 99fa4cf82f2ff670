//! The door of a server that has just started: those who come back are let in by what they cost.
//!
//! In: who comes back, with what, and how it goes inside. Out: who is let in. Never: turns by level, which
//! come behind it.
//!
//! Resumed watches go first, then small lists, then watch-lists, and of each the cheapest. So many as the
//! window has may be inside: it doubles as they are done while latency allows, and halves when it does not.
//! When nobody came for a while, the door is gone.

use std::collections::{BTreeMap, HashMap};

use crate::limits::{DOOR_QUIET, DOOR_WAITING_MAX, DOOR_WINDOW_MIN};
use crate::price::{Moment, SeatTime};

/// What somebody comes back with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Comeback {
    /// A watch from where it was.
    Resume,
    /// A list of little.
    SmallList,
    /// A state from the start, as a list or a watch-list.
    WatchList,
}

/// In which order they are let in: class, work, arrival.
type Turn = (Comeback, SeatTime, u64);

/// How latency is, as the window needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Latency {
    Fine,
    TooLong,
}

/// The door, as long as it is there.
#[derive(Debug)]
pub(crate) struct Door {
    waiting: BTreeMap<Turn, u64>,
    // request -> its turn
    turns: HashMap<u64, Turn>,
    inside: u64,
    window: u64,
    arrivals: u64,
    last: Moment,
}

impl Door {
    pub(crate) fn new(now: Moment) -> Door {
        let (waiting, turns) = (BTreeMap::new(), HashMap::new());
        Door { waiting, turns, inside: 0, window: DOOR_WINDOW_MIN, arrivals: 0, last: now }
    }

    /// Somebody comes; whether there was a place to wait.
    pub(crate) fn wait(&mut self, id: u64, comeback: Comeback, work: SeatTime, now: Moment) -> bool {
        self.last = now;
        if self.waiting.len() >= DOOR_WAITING_MAX {
            return false;
        }
        self.arrivals += 1;
        let turn = (comeback, work, self.arrivals);
        self.waiting.insert(turn, id);
        self.turns.insert(id, turn);
        true
    }

    /// The next one who is let in.
    pub(crate) fn admit(&mut self) -> Option<u64> {
        if self.inside >= self.window {
            return None;
        }
        let (_, id) = self.waiting.pop_first()?;
        self.turns.remove(&id);
        self.inside += 1;
        Some(id)
    }

    /// One who waited is gone.
    pub(crate) fn leave(&mut self, id: u64) {
        if let Some(turn) = self.turns.remove(&id) {
            self.waiting.remove(&turn);
        }
    }

    /// One who was let in is done.
    pub(crate) fn done(&mut self, latency: Latency) {
        self.inside -= 1;
        self.window = match latency {
            Latency::Fine => self.window + 1,
            Latency::TooLong => DOOR_WINDOW_MIN.max(self.window - self.window.div_ceil(8)),
        };
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody came for so long that it is not needed any more.
    pub(crate) fn is_over(&self, now: Moment) -> bool {
        self.waiting.is_empty() && self.inside == 0 && now.saturating_sub(self.last) >= DOOR_QUIET
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_cheapest_go_first_and_the_window_grows_as_they_are_done() {
        let mut door = Door::new(Duration::ZERO);
        for id in 0..600 {
            let comeback = [Comeback::WatchList, Comeback::SmallList, Comeback::Resume][id as usize % 3];
            assert!(door.wait(id, comeback, 1_000 - id, Duration::ZERO));
        }
        let (mut order, mut inside, mut rounds) = (Vec::new(), 0, 0);
        while door.waiting() > 0 {
            rounds += 1;
            while let Some(id) = door.admit() {
                order.push(id);
                inside += 1;
            }
            (0..std::mem::take(&mut inside)).for_each(|_| door.done(Latency::Fine));
        }
        // 8, 16, 32 and so on: doubled in each round.
        assert_eq!(rounds, 7);
        let classes: Vec<u64> = order.iter().map(|id| 2 - id % 3).collect();
        assert!(classes.is_sorted());
        assert_eq!(order[..3], [599, 596, 593]);
        assert!(!door.is_over(DOOR_QUIET - Duration::from_millis(1)) && door.is_over(DOOR_QUIET));
    }

    #[test]
    fn latency_that_grows_makes_the_window_small_and_who_leaves_takes_no_place() {
        let mut door = Door::new(Duration::ZERO);
        (0..100).for_each(|id| assert!(door.wait(id, Comeback::Resume, 1, Duration::ZERO)));
        (0..50).for_each(|id| door.leave(id));
        let admitted = std::iter::from_fn(|| door.admit()).count();
        assert_eq!((admitted, door.waiting()), (8, 42));
        door.done(Latency::Fine);
        assert_eq!((door.admit(), door.admit(), door.admit()), (Some(58), Some(59), None));
        door.done(Latency::TooLong);
        assert_eq!(door.admit(), None);
    }
}
