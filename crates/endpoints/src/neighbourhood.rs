//! This server among the others of its store: what it tells them, and which of its connections it tells to
//! go, so that all hold their share and who is refused finds room. `neighbours` decides; this is its hand.
//!
//! In: what the others say, the seats, who was refused. Out: this server's word each second, and connections
//! that are told to go. Never: reads or writes a store. Owner: a lock for a few lines; one task, each second.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use forebay_neighbours::limits::STEP;
use forebay_neighbours::{Departure, Heard, Own, Spread, Word};
use forebay_rt::{Clock, Instant};
use forebay_transport::{Connection, Connections, Drain, GoesFor};
use tokio::sync::watch;

use crate::limits::REFUSING_WAIT;

/// What a server hears of the others, and what it says to them.
pub struct Neighbours {
    pub heard: watch::Receiver<Heard>,
    pub own: watch::Sender<Option<Word>>,
}

/// See the module's doc.
pub struct Neighbourhood {
    clock: Clock,
    began: Instant,
    neighbours: Neighbours,
    state: Mutex<State>,
    // Since this server begins to end.
    departure: OnceLock<Departure>,
}

#[derive(Default)]
struct State {
    spread: Spread,
    // What was heard until this second.
    heard: Heard,
    // When a request was refused last, for want of a turn or of memory.
    refused_at: Option<Instant>,
}

impl Neighbourhood {
    pub fn new(clock: Clock, neighbours: Neighbours) -> Neighbourhood {
        let (began, departure) = (clock.now(), OnceLock::new());
        Neighbourhood { clock, began, neighbours, state: Mutex::default(), departure }
    }

    /// Notes that a request was refused on `connection` for want of a turn or of memory. Its client is told
    /// to go where others have room. A stranger stays: the room is for who is known.
    pub fn refused(&self, connection: &Connection) {
        let now = self.clock.now();
        let goes = {
            let mut state = self.state();
            state.refused_at = Some(now);
            let may_go = connection.is_known() && !connection.is_going() && self.departure.get().is_none();
            let State { spread, heard, .. } = &mut *state;
            may_go && spread.refused(now.duration_since(self.began), heard)
        };
        if goes {
            connection.tell_to_go(GoesFor::Refused);
        }
    }

    /// Does what there is to do each second, for ever.
    ///
    /// - `may_take_more`: whether this server is ready, and has memory to spare.
    pub async fn spread(
        self: Arc<Neighbourhood>,
        seats: Connections,
        drain: Drain,
        may_take_more: impl Fn() -> bool,
    ) {
        loop {
            self.step(&seats, &drain, may_take_more());
            self.clock.sleep(STEP).await;
        }
    }

    fn step(&self, seats: &Connections, drain: &Drain, may_take_more: bool) {
        let now = self.clock.now();
        let (known, going) = seats.known();
        let own = Own { connections: known as u64, going: going as u64 };
        let heard = self.heard();
        if drain.is_leaving() {
            self.departure.get_or_init(|| Departure::begin(&heard));
        }
        let (is_refusing, count) = {
            let mut state = self.state();
            state.heard = heard;
            let is_refusing = state.refused_at.is_some_and(|at| now.duration_since(at) < REFUSING_WAIT);
            let State { spread, heard, .. } = &mut *state;
            let is_staying = !drain.is_leaving();
            (
                is_refusing,
                if is_staying { spread.step(now.duration_since(self.began), own, heard) } else { 0 },
            )
        };
        let room = match may_take_more && !is_refusing && !drain.is_leaving() {
            true => seats.max().saturating_sub(known) as u64,
            false => 0,
        };
        self.neighbours.own.send_replace(Some(Word { connections: own.connections, room }));
        if count > 0 {
            let told = seats.let_go(usize::try_from(count).unwrap_or(usize::MAX));
            tracing::debug!(told, known, "connections are told to go to other servers");
        }
    }

    /// What the others say.
    pub fn heard(&self) -> Heard {
        self.neighbours.heard.borrow().clone()
    }

    /// What was so when this server began to end, once it does.
    pub fn departure(&self) -> Option<&Departure> {
        self.departure.get()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use forebay_neighbours::Neighbour;
    use forebay_neighbours::limits::REFUSED_PER_SECOND_MAX;
    use forebay_rt::Duration;

    use super::*;

    struct World {
        own: watch::Receiver<Option<Word>>,
        heard: watch::Sender<Heard>,
        here: Neighbourhood,
        seats: Connections,
        drain: Drain,
    }

    fn world(clock: &Clock) -> World {
        let (heard, hears) = watch::channel(Heard::default());
        let (says, own) = watch::channel(None);
        World {
            own,
            heard,
            here: Neighbourhood::new(clock.clone(), Neighbours { heard: hears, own: says }),
            seats: Connections::new(clock.clone(), 100, Arc::default()),
            drain: Drain::new(clock.clone(), Duration::ZERO),
        }
    }

    impl World {
        fn hears(&self, connections: u64, room: u64) {
            self.heard.send_modify(|heard| heard.note("b", Neighbour::Tells(Word { connections, room })));
        }

        fn says(&self, may_take_more: bool) -> (u64, u64) {
            self.here.step(&self.seats, &self.drain, may_take_more);
            let word = self.own.borrow().expect("it says something");
            (word.connections, word.room)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_tells_of_room_unless_it_is_short_of_memory_refuses_requests_or_ends() {
        let clock = Clock::system();
        let world = world(&clock);
        let seats: Vec<_> = (0..30).map(|_| world.seats.take().expect("a seat")).collect();
        seats[..20].iter().for_each(|seat| seat.connection().authenticated());
        assert_eq!((world.says(true), world.says(false)), ((20, 80), (20, 0)));
        world.here.refused(seats[0].connection());
        assert_eq!(world.says(true), (20, 0));
        assert!(!seats[0].connection().is_going(), "nobody is there");
        clock.sleep(REFUSING_WAIT).await;
        assert_eq!(world.says(true), (20, 80));
        world.drain.leave();
        assert_eq!(world.says(true), (20, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_refused_goes_where_there_is_room_at_a_limited_rate_and_strangers_stay() {
        let clock = Clock::system();
        let world = world(&clock);
        world.hears(80, 1_000);
        world.says(true);
        let seats: Vec<_> = (0..90).map(|_| world.seats.take().expect("a seat")).collect();
        seats[..80].iter().for_each(|seat| seat.connection().authenticated());
        let refuse = || {
            seats.iter().rev().for_each(|seat| world.here.refused(seat.connection()));
            seats.iter().filter(|seat| seat.connection().is_going()).count() as u64
        };
        assert_eq!(refuse(), REFUSED_PER_SECOND_MAX);
        assert!(seats[80..].iter().all(|seat| !seat.connection().is_going()));
        clock.sleep(STEP).await;
        world.hears(80, 0);
        world.says(true);
        assert_eq!(refuse(), REFUSED_PER_SECOND_MAX, "there is no room any more");
        clock.sleep(STEP).await;
        world.hears(80, 1_000);
        world.says(true);
        assert_eq!(refuse(), 2 * REFUSED_PER_SECOND_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_holds_far_more_tells_some_to_go_and_one_that_ends_notes_who_has_what() {
        let clock = Clock::system();
        let world = world(&clock);
        world.hears(2, 1_000);
        let seats: Vec<_> = (0..60).map(|_| world.seats.take().expect("a seat")).collect();
        seats.iter().for_each(|seat| seat.connection().authenticated());
        for _ in 0..10 {
            world.says(true);
            clock.sleep(STEP).await;
        }
        assert_eq!(world.seats.known(), (60, 10), "one a second");
        assert!(world.here.departure().is_none());
        world.drain.leave();
        world.says(true);
        assert_eq!(world.seats.known(), (60, 10));
        world.hears(12, 900);
        let gained =
            world.here.departure().map(|left| left.gained(&world.here.heard()).map(|(_, n)| n).sum());
        assert_eq!(gained, Some(10_u64));
    }
}
