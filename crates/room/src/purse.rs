//! What one request holds of its room: the ledger of its lease.
//!
//! In: what it takes more on its way, whom it waits for. Out: leave, or none. While it waits for somebody
//! else what it holds is counted in the room of those who wait, so that others find their own as if it were
//! not there; when it goes on it is counted where it was, whoever waits there. Never: waits.

use std::sync::Arc;

use forebay_apimachinery::lease::{Ledger, SMALL_STEP_BYTES, STEP_BYTES};

use crate::away::{AwayRoom, Gone};
use crate::limits::AWAY_REQUEST_BYTES;
use crate::{Held, Room};

/// See the module's doc.
pub struct Purse {
    room: Room,
    held: Held,
    beyond: Option<Beyond>,
    away: AwayRoom,
    gone: Option<Gone>,
}

/// Where a request belongs once it is not small any more.
pub struct Beyond {
    pub room: Room,
    /// The most that a small one holds.
    pub small_bytes: usize,
}

impl Purse {
    /// - `held`: what it has of `room` already.
    /// - `away`: where it is counted while it waits for somebody else.
    pub fn new(room: Room, held: Held, beyond: Option<Beyond>, away: AwayRoom) -> Purse {
        Purse { room, held, beyond, away, gone: None }
    }

    /// The room that it belongs in with so many bytes, if it is not its own any more.
    fn leave_small_ones(&mut self, bytes: usize) -> bool {
        let Some(beyond) = self.beyond.take_if(|beyond| bytes > beyond.small_bytes) else { return false };
        // What a short body becomes may be large: small writes do not wait for it.
        self.room = beyond.room;
        self.held = self.room.charge(0);
        true
    }

    /// It goes on: what it holds is counted where it was.
    fn come_back(&mut self, gone: Gone) {
        let all = self.held.bytes() + gone.bytes().saturating_sub(AWAY_REQUEST_BYTES);
        drop(gone);
        self.leave_small_ones(all);
        self.held.set(all);
    }
}

impl Ledger for Purse {
    fn try_take(&mut self, bytes: usize) -> bool {
        if let Some(gone) = &mut self.gone {
            return gone.try_take_more(bytes);
        }
        let all = self.held.bytes() + bytes;
        if self.leave_small_ones(all) {
            return self.room.try_take_more(all, &mut self.held);
        }
        self.room.try_take_more(bytes, &mut self.held)
    }

    fn step_bytes(&self) -> usize {
        if self.gone.is_some() { SMALL_STEP_BYTES } else { STEP_BYTES }
    }

    fn try_give_back(&mut self, bytes: usize) -> bool {
        match &mut self.gone {
            Some(gone) => {
                let of_gone = bytes.min(gone.bytes().saturating_sub(AWAY_REQUEST_BYTES));
                gone.give_back(of_gone);
                self.held.set(self.held.bytes().saturating_sub(bytes - of_gone));
            }
            None => self.held.set(self.held.bytes().saturating_sub(bytes)),
        }
        true
    }

    fn wait_for(&mut self, whom: &Arc<str>) -> bool {
        if let Some(gone) = &mut self.gone {
            return gone.waits_for(whom);
        }
        let all = self.held.bytes();
        let Some(gone) = self.away.go(whom, all + AWAY_REQUEST_BYTES) else { return false };
        // Of much the room of those who wait has a part, and its own the rest.
        self.held.set(all - gone.bytes().saturating_sub(AWAY_REQUEST_BYTES));
        self.gone = Some(gone);
        true
    }

    fn waited_for(&mut self, whom: &Arc<str>) {
        if let Some(mut gone) = self.gone.take() {
            match gone.waited_for(whom) {
                true => self.come_back(gone),
                false => self.gone = Some(gone),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::Lease;
    use forebay_rt::Clock;

    use super::*;
    use crate::Limit;

    const SMALL_BYTES: usize = 256 << 10;

    struct World {
        small: Room,
        large: Room,
        away: AwayRoom,
    }

    impl World {
        fn new() -> World {
            let room = |bytes| Room::new(Clock::system(), Limit::Loose(bytes));
            World { small: room(32 << 20), large: room(128 << 20), away: AwayRoom::new(64 << 20) }
        }

        /// A lease of a small request that has taken so much.
        fn lease(&self, bytes: usize) -> Lease {
            let beyond = Beyond { room: self.large.clone(), small_bytes: SMALL_BYTES };
            let held = self.small.charge(bytes);
            Lease::new(Purse::new(self.small.clone(), held, Some(beyond), self.away.clone()), bytes)
        }

        fn held(&self) -> [usize; 3] {
            [self.small.totals().held, self.large.totals().held, self.away.totals().held]
        }
    }

    #[test]
    fn who_waits_for_somebody_else_is_counted_elsewhere_until_it_goes_on() {
        let world = World::new();
        let lease = world.lease(100);
        lease.charge(1_000).expect("room");
        assert!(world.held()[0] >= 64 << 10);
        let whoms: [Arc<str>; 2] = ["a", "b"].map(Arc::from);
        let waits = [&whoms[0], &whoms[1]].map(|whom| lease.waits_for(whom).expect("room"));
        assert_eq!(world.held(), [0, 0, AWAY_REQUEST_BYTES + 1_000]);
        let [first, second] = waits;
        drop(first);
        assert_eq!(world.held()[0], 0, "it waits for the other");
        drop(second);
        assert_eq!(world.held(), [1_000, 0, 0]);
        drop(lease);
        assert_eq!(world.held(), [0; 3]);
    }

    #[test]
    fn what_comes_back_large_leaves_the_room_of_small_ones() {
        let world = World::new();
        let lease = world.lease(100);
        let waits = lease.waits_for(&"a".into()).expect("room");
        lease.charge(SMALL_BYTES + 1).expect("room");
        assert_eq!(world.held()[..2], [0, 0]);
        drop(waits);
        assert_eq!((world.held()[0], world.held()[2]), (0, 0));
        assert!(world.held()[1] >= SMALL_BYTES);
        drop(lease);
        assert_eq!(world.held(), [0; 3]);
    }

    #[test]
    fn of_one_that_holds_much_its_own_room_keeps_the_rest() {
        let world = World::new();
        let lease = world.lease(100);
        lease.charge(60 << 20).expect("room");
        let waits = lease.waits_for(&"a".into()).expect("nobody waits");
        let [small, large, away] = world.held();
        assert_eq!((small, large + away), (0, (60 << 20) + AWAY_REQUEST_BYTES));
        assert_eq!(away, 32 << 20);
        assert!(world.lease(100).waits_for(&"b".into()).is_some());
        drop((waits, lease));
        assert_eq!(world.held(), [0; 3]);
    }

    #[test]
    fn thousands_behind_one_that_hangs_take_no_room_of_others_and_one_more_is_refused() {
        let world = World::new();
        let hanging: Arc<str> = "a".into();
        let waiting = || {
            let lease = world.lease(10 << 10);
            lease.charge(9 << 10).expect("room");
            let waits = lease.waits_for(&hanging)?;
            Some((lease, waits))
        };
        let all: Vec<_> = std::iter::from_fn(waiting).collect();
        assert!((1_500..3_000).contains(&all.len()), "{}", all.len());
        assert_eq!(world.held()[..2], [0, 0]);
        assert!(world.held()[2] <= 32 << 20);
        // Others go on, and those that wait for another.
        let other = world.lease(10 << 10);
        other.charge(100 << 10).expect("room");
        assert!(other.waits_for(&"b".into()).is_some());
    }
}
