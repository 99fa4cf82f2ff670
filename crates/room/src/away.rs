//! Room for what requests hold while they wait for somebody else, such as a webhook that is asked about them.
//!
//! In: whom a request waits for, and what it holds. Out: whether one more may wait. Whoever is waited for has
//! no more of it than is free beside it: one that hangs has half, whoever is waited for next finds the other
//! half, and two have a third each. Nobody waits for this room: who finds none is refused. Never: knows who
//! they are, or holds what goes on.
//!
//! Owner of the state: whoever holds the lock, for a few lines.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Totals;
use crate::limits::{AWAY_GROWTH_SHARE, AWAY_WIDEST_PART};

/// See the module's doc. Cheap to clone.
#[derive(Clone)]
pub struct AwayRoom(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    limit: usize,
    held: usize,
    // whom -> what those hold that wait for it; only who is waited for
    whoms: HashMap<Arc<str>, Share>,
    waited: u64,
    refused: u64,
}

#[derive(Default)]
struct Share {
    bytes: usize,
    requests: usize,
}

/// What one request has of the room until it is dropped, and whom it waits for: at once several, which are
/// all asked about it.
pub struct Gone {
    room: AwayRoom,
    bytes: usize,
    whoms: Vec<Arc<str>>,
}

impl AwayRoom {
    pub fn new(limit: usize) -> AwayRoom {
        AwayRoom(Arc::new(Mutex::new(State { limit, ..State::default() })))
    }

    /// From now on so much may be held. What is held is not touched.
    pub fn set_limit(&self, limit: usize) {
        self.state().limit = limit;
    }

    /// Those that are in it wait for others, not for room.
    pub fn totals(&self) -> Totals {
        let State { held, limit, waited, refused, .. } = *self.state();
        Totals { held, limit, waiting: 0, waited, refused }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a request that waits for `whom` and holds so many bytes; of much of them only a part is
    /// counted here.
    pub fn go(&self, whom: &Arc<str>, bytes: usize) -> Option<Gone> {
        let mut state = self.state();
        let bytes = bytes.min(state.limit / AWAY_WIDEST_PART);
        if !state.has_room(whom, 2 * bytes, 0) {
            state.refused += 1;
            return None;
        }
        state.held += bytes;
        state.waited += 1;
        state.enter(whom, bytes);
        Some(Gone { room: self.clone(), bytes, whoms: vec![whom.clone()] })
    }
}

impl State {
    /// Whether `whom` would have no more than is free beside it.
    fn has_room(&self, whom: &Arc<str>, more: usize, beyond: usize) -> bool {
        // Once: for a call to somebody else.
        let has = self.whoms.get(whom).map_or(0, |share| share.bytes);
        has.saturating_add(more) <= (self.limit + beyond).saturating_sub(self.held)
    }

    fn enter(&mut self, whom: &Arc<str>, bytes: usize) {
        let share = self.whoms.entry(whom.clone()).or_default();
        share.bytes += bytes;
        share.requests += 1;
    }

    fn leave(&mut self, whom: &Arc<str>, bytes: usize) {
        let Some(share) = self.whoms.get_mut(whom) else { return };
        share.bytes -= bytes;
        share.requests -= 1;
        if share.requests == 0 {
            self.whoms.remove(whom);
        }
    }
}

impl Gone {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// It waits for one more.
    pub(crate) fn waits_for(&mut self, whom: &Arc<str>) -> bool {
        let mut state = self.room.state();
        // What it holds is counted among what is held already.
        if !state.has_room(whom, self.bytes, 0) {
            state.refused += 1;
            return false;
        }
        state.enter(whom, self.bytes);
        self.whoms.push(whom.clone());
        true
    }

    /// It waits for that one no more; whether it waits for nobody now.
    pub(crate) fn waited_for(&mut self, whom: &Arc<str>) -> bool {
        // Once: for a call, among those that are asked about one request.
        if let Some(at) = self.whoms.iter().position(|one| one == whom) {
            let whom = self.whoms.swap_remove(at);
            self.room.state().leave(&whom, self.bytes);
        }
        self.whoms.is_empty()
    }

    /// It holds so many bytes more: what comes back of those it waits for. For that there is some room beyond
    /// what one more would find, as those who are full would have all their answers refused.
    pub(crate) fn try_take_more(&mut self, bytes: usize) -> bool {
        let mut state = self.room.state();
        let beyond = state.limit / AWAY_GROWTH_SHARE;
        if !self.whoms.iter().all(|whom| state.has_room(whom, 2 * bytes, beyond)) {
            return false;
        }
        state.held += bytes;
        for whom in &self.whoms {
            if let Some(share) = state.whoms.get_mut(whom) {
                share.bytes += bytes;
            }
        }
        self.bytes += bytes;
        true
    }

    /// So many of its bytes are not needed any more.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        let mut state = self.room.state();
        state.held -= bytes;
        for whom in &self.whoms {
            if let Some(share) = state.whoms.get_mut(whom) {
                share.bytes -= bytes;
            }
        }
        self.bytes -= bytes;
    }
}

impl Drop for Gone {
    fn drop(&mut self) {
        let mut state = self.room.state();
        state.held -= self.bytes;
        for whom in std::mem::take(&mut self.whoms) {
            state.leave(&whom, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(room: &AwayRoom, whom: &str, bytes: usize) -> Vec<Gone> {
        let whom = Arc::from(whom);
        std::iter::from_fn(|| room.go(&whom, bytes)).collect()
    }

    #[test]
    fn one_that_hangs_has_half_and_whoever_is_waited_for_next_finds_room() {
        let room = AwayRoom::new(1_000);
        let counts: Vec<_> = ["a", "b", "c"].map(|whom| fill(&room, whom, 10)).into();
        assert_eq!(counts.iter().map(Vec::len).collect::<Vec<_>>(), [50, 25, 12]);
        assert_eq!(room.totals(), Totals { held: 870, limit: 1_000, waiting: 0, waited: 87, refused: 3 });
        drop(counts);
        assert_eq!(room.totals().held, 0);
        assert!(room.state().whoms.is_empty());
    }

    #[test]
    fn one_that_holds_much_counts_as_half_and_leaves_half_to_others() {
        let room = AwayRoom::new(1_000);
        let large = fill(&room, "a", 5_000);
        assert_eq!(large.iter().map(Gone::bytes).collect::<Vec<_>>(), [500]);
        assert_eq!(fill(&room, "b", 10).len(), 25);
        drop(large);
        let _small = room.go(&"b".into(), 10).expect("room");
        assert!(room.go(&"a".into(), 5_000).is_none(), "it goes when nobody waits");
    }

    #[test]
    fn who_waits_for_several_holds_its_bytes_once_and_is_counted_with_each() {
        let room = AwayRoom::new(1_000);
        let whoms: [Arc<str>; 3] = ["a", "b", "c"].map(Arc::from);
        let mut gone = room.go(&whoms[0], 100).expect("room");
        assert!(gone.waits_for(&whoms[1]));
        let _full = fill(&room, "c", 10);
        assert!(!gone.waits_for(&whoms[2]), "no more than is free");
        let held = room.totals().held;
        assert!(gone.try_take_more(10));
        assert_eq!(room.totals().held, held + 10);
        assert!(!gone.waited_for(&whoms[0]));
        assert_eq!(room.state().whoms.get("b").map(|share| share.bytes), Some(110));
        assert!(gone.waited_for(&whoms[1]));
    }

    #[test]
    fn answers_find_some_room_beyond_what_one_more_would() {
        let room = AwayRoom::new(1_600);
        let mut full = fill(&room, "a", 10);
        let mut grown = 0;
        while full[0].try_take_more(10) {
            grown += 10;
        }
        assert_eq!(grown, 100);
        assert!(!fill(&room, "b", 10).is_empty(), "nobody else's");
        full[0].give_back(60);
        assert!(full[1].try_take_more(10));
    }
}
