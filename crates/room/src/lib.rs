//! Room for what requests hold while they are answered, in bytes: admission by cost.
//!
//! In: who asks, and what the answer will take. Out: the bytes, given back when dropped, or a refusal. Over
//! the limit requests wait, in turn by user so that nobody starves others, so many and so long at most. Who
//! holds something already and waits for more goes first, for that is what the others wait for: the one that
//! holds the most. When all that is held is held by those who wait, the one with the least is refused, so
//! that the others go on. Its limit may be moved at any time. Never: knows what a request is.
//!
//! Owner of the state: whoever holds the lock, for a few lines.

pub mod limits;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_rt::{Clock, Duration};
use tokio::sync::oneshot;

use crate::limits::{
    BODY_ROOM_WAIT, ROOM_GROWTH_SHARE, ROOM_ONE_BYTES, ROOM_WAIT, ROOM_WAITING_MAX, ROOM_WAITING_PER_USER_MAX,
};

/// So many bytes, for whoever asks in time. Cheap to clone.
#[derive(Clone)]
pub struct Room(Arc<Inner>);

struct Inner {
    clock: Clock,
    state: Mutex<State>,
}

struct State {
    limit: Limit,
    held: usize,
    /// Users with requests that wait, in turn; <= ROOM_WAITING_MAX, as each has one.
    turns: VecDeque<Arc<str>>,
    /// user -> its requests, oldest first.
    waiting: HashMap<Arc<str>, VecDeque<Waiter>>,
    /// Requests that hold something and wait for more, the one to go on first at the end; and what they hold
    /// together.
    going: BTreeMap<Rank, Waiter>,
    going_holds: usize,
    count: usize,
    next: u64,
    totals: Totals,
}

/// How much may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many bytes; a request for more takes all of it, alone.
    Loose(usize),
    /// So many bytes; a request for more has no room.
    Strict(usize),
    /// Nothing new.
    Closed,
}

/// What is asked for.
#[derive(Clone, Copy)]
struct Wish {
    bytes: usize,
    /// What whoever asks holds already.
    holds: usize,
}

/// Among those who hold something: the bytes, then whoever came first. One that would fill half of the room
/// holds nothing in this order: the others would be refused for its sake.
type Rank = (usize, Reverse<u64>);

struct Waiter {
    number: u64,
    wish: Wish,
    granted: oneshot::Sender<Held>,
}

/// Bytes that are held until dropped.
pub struct Held {
    room: Arc<Inner>,
    bytes: usize,
}

/// There was no room, for as long as a request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// What a room says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub held: usize,
    pub limit: usize,
    pub waiting: usize,
    /// Requests that had to wait, since the start.
    pub waited: u64,
    /// Requests that were refused, since the start.
    pub refused: u64,
}

impl Room {
    pub fn new(clock: Clock, limit: Limit) -> Room {
        let state = State {
            limit,
            held: 0,
            turns: VecDeque::new(),
            waiting: HashMap::new(),
            going: BTreeMap::new(),
            going_holds: 0,
            count: 0,
            next: 0,
            totals: Totals::default(),
        };
        Room(Arc::new(Inner { clock, state: Mutex::new(state) }))
    }

    /// So many bytes for `user`, at once or after a wait. Cancel-safe.
    ///
    /// # Errors
    /// [`Full`]: too many wait already, or it waited [`ROOM_WAIT`].
    pub async fn take(&self, user: &str, bytes: usize) -> Result<Held, Full> {
        self.ask(user, Wish { bytes, holds: 0 }, ROOM_WAIT).await
    }

    /// So many bytes on top of what `held` of this room has. Cancel-safe.
    ///
    /// # Errors
    /// [`Full`]: too many wait already, it waited [`BODY_ROOM_WAIT`], or it had to give way so that others go
    /// on.
    pub async fn take_more(&self, user: &str, bytes: usize, held: &mut Held) -> Result<(), Full> {
        let more = self.ask(user, Wish { bytes, holds: held.bytes }, BODY_ROOM_WAIT);
        held.merge(more.await?);
        Ok(())
    }

    async fn ask(&self, user: &str, wish: Wish, wait: Duration) -> Result<Held, Full> {
        let (at, mut granted) = {
            let mut state = self.0.state();
            if state.count == 0
                && let Some(bytes) = state.fitting(wish)
            {
                state.held += bytes;
                return Ok(Held { room: self.0.clone(), bytes });
            }
            let place = state.enqueue(user, wish).ok_or(Full)?;
            self.0.grant(&mut state);
            place
        };
        // Whoever leaves while it waits gives its place up.
        let _place = Place { room: &self.0, user, at };
        tokio::select! {
            biased;
            held = &mut granted => held.map_err(|_gone| Full),
            () = self.0.clock.sleep(wait) => {
                self.0.state().totals.refused += 1;
                Err(Full)
            }
        }
    }

    /// The same, only if there is room at once and nobody waits for it.
    pub fn try_take(&self, bytes: usize) -> Option<Held> {
        let mut state = self.0.state();
        if state.count > 0 {
            return None;
        }
        let bytes = state.fitting(Wish { bytes, holds: 0 })?;
        state.held += bytes;
        Some(Held { room: self.0.clone(), bytes })
    }

    /// So many bytes on top of what `held` of this room has, at once or not at all. Whoever waits is passed:
    /// what is asked for is on its way to an end, which is what they wait for. So it may go beyond the limit
    /// by one in [`ROOM_GROWTH_SHARE`] of it: a full room would refuse all who are in it.
    pub fn try_take_more(&self, bytes: usize, held: &mut Held) -> bool {
        let mut state = self.0.state();
        let wish = Wish { bytes, holds: held.bytes };
        let Some(bytes) = state.limit.for_growth().fitting(state.held, wish) else { return false };
        state.held += bytes;
        held.bytes += bytes;
        true
    }

    /// Counts what is there already, whatever the limit says: others wait for it.
    pub fn charge(&self, bytes: usize) -> Held {
        self.0.state().held += bytes;
        Held { room: self.0.clone(), bytes }
    }

    /// From now on so much may be held. What is held is not touched.
    pub fn set_limit(&self, limit: Limit) {
        let mut state = self.0.state();
        state.limit = limit;
        self.0.grant(&mut state);
    }

    pub fn totals(&self) -> Totals {
        let state = self.0.state();
        let limit = state.limit.bytes();
        Totals { held: state.held, limit, waiting: state.count, ..state.totals }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives to those whose turn it is, for as long as there is room.
    fn grant(self: &Arc<Self>, state: &mut State) {
        while let Some((waiter, bytes)) = state.next_that_fits() {
            state.held += bytes;
            let held = Held { room: self.clone(), bytes };
            if let Err(mut unused) = waiter.granted.send(held) {
                // It has left meanwhile. Not by dropping it: the lock is held.
                state.held -= std::mem::take(&mut unused.bytes);
            }
        }
        // What it holds comes back once it knows, and then there is more to give.
        drop(state.in_the_way());
    }
}

impl Limit {
    fn bytes(self) -> usize {
        match self {
            Limit::Loose(bytes) | Limit::Strict(bytes) => bytes,
            Limit::Closed => 0,
        }
    }

    /// As far as those who are in may grow.
    fn for_growth(self) -> Limit {
        match self {
            Limit::Loose(limit) => Limit::Loose(limit + limit / ROOM_GROWTH_SHARE),
            Limit::Strict(_) | Limit::Closed => self,
        }
    }

    /// The bytes to hold for `wish`, if there is room for it when `held` are held, its own among them.
    fn fitting(self, held: usize, wish: Wish) -> Option<usize> {
        let alone = held == wish.holds;
        let (limit, bytes) = match self {
            Limit::Loose(limit) => (limit, wish.bytes.min(limit.saturating_sub(wish.holds))),
            Limit::Strict(limit) => (limit, wish.bytes),
            Limit::Closed => return None,
        };
        let fits = held + bytes <= limit || alone && held + bytes <= ROOM_ONE_BYTES.max(limit);
        fits.then_some(bytes)
    }
}

impl State {
    /// The bytes to hold for `wish`, if there is room for it now.
    fn fitting(&self, wish: Wish) -> Option<usize> {
        self.limit.fitting(self.held, wish)
    }

    /// How those who hold something follow on each other.
    fn rank(&self, number: u64, wish: Wish) -> Rank {
        let is_giant = wish.holds.saturating_add(wish.bytes) > self.limit.bytes() / 2;
        (if is_giant { 0 } else { wish.holds }, Reverse(number))
    }

    fn enqueue(&mut self, user: &str, wish: Wish) -> Option<(At, oneshot::Receiver<Held>)> {
        let of_user = match wish.holds {
            0 => self.waiting.get(user).map_or(0, VecDeque::len),
            // Theirs is no queue of their user's.
            _ => self.going.len(),
        };
        // What can never go would hold up whoever comes after it.
        let never_fits = self.limit.fitting(wish.holds, wish).is_none();
        if never_fits || self.count >= ROOM_WAITING_MAX || of_user >= ROOM_WAITING_PER_USER_MAX {
            self.totals.refused += 1;
            return None;
        }
        let (granted, receiver) = oneshot::channel();
        let number = self.next;
        self.next += 1;
        self.count += 1;
        self.totals.waited += 1;
        let waiter = Waiter { number, wish, granted };
        if wish.holds > 0 {
            let rank = self.rank(number, wish);
            self.going.insert(rank, waiter);
            self.going_holds += wish.holds;
            return Some((At::Going(rank), receiver));
        }
        if of_user == 0 {
            let user: Arc<str> = Arc::from(user);
            self.turns.push_back(user.clone());
            self.waiting.insert(user, VecDeque::new());
        }
        let queue = self.waiting.get_mut(user)?;
        queue.push_back(waiter);
        Some((At::Turn(number), receiver))
    }

    fn off_going(&mut self, rank: Rank) -> Option<Waiter> {
        let waiter = self.going.remove(&rank)?;
        self.going_holds -= waiter.wish.holds;
        self.count -= 1;
        Some(waiter)
    }

    /// Takes off the one that gives way, if all that is held is held by those who wait for more of it.
    fn in_the_way(&mut self) -> Option<Waiter> {
        if self.going.len() < 2 || self.going_holds < self.held {
            return None;
        }
        self.totals.refused += 1;
        let (rank, _) = self.going.first_key_value()?;
        self.off_going(*rank)
    }

    /// Takes the one whose turn it is off the queue, if there is room for it. A large one is waited for:
    /// others would pass it for ever.
    fn next_that_fits(&mut self) -> Option<(Waiter, usize)> {
        if let Some((rank, waiter)) = self.going.last_key_value() {
            let (rank, bytes) = (*rank, self.fitting(waiter.wish)?);
            return Some((self.off_going(rank)?, bytes));
        }
        let user = self.turns.front()?.clone();
        let bytes = self.fitting(self.waiting.get(&user)?.front()?.wish)?;
        let waiter = self.waiting.get_mut(&user)?.pop_front()?;
        self.count -= 1;
        self.turns.pop_front();
        self.end_of_turn(user);
        Some((waiter, bytes))
    }

    /// Puts `user` behind the others if it still has something that waits.
    fn end_of_turn(&mut self, user: Arc<str>) {
        if self.waiting.get(&user).is_some_and(|queue| !queue.is_empty()) {
            self.turns.push_back(user);
        } else {
            self.waiting.remove(&user);
        }
    }

    fn leave(&mut self, user: &str, at: At) {
        let number = match at {
            At::Turn(number) => number,
            At::Going(rank) => {
                self.off_going(rank);
                return;
            }
        };
        let Some(queue) = self.waiting.get_mut(user) else { return };
        let before = queue.len();
        queue.retain(|waiter| waiter.number != number);
        self.count -= before - queue.len();
        if queue.is_empty() {
            self.waiting.remove(user);
            self.turns.retain(|turn| &**turn != user);
        } else if self.turns.front().is_some_and(|turn| &**turn == user) {
            // It had its turn, and did not get on.
            self.turns.rotate_left(1);
        }
    }
}

/// Where a request waits.
#[derive(Clone, Copy)]
enum At {
    /// Among its user's, by number.
    Turn(u64),
    Going(Rank),
}

/// A place in the queue.
struct Place<'a> {
    room: &'a Arc<Inner>,
    user: &'a str,
    at: At,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.room.state();
        state.leave(self.user, self.at);
        self.room.grant(&mut state);
    }
}

impl Held {
    /// Takes over what `other` of the same room holds.
    fn merge(&mut self, mut other: Held) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Holds so many bytes from now on, whatever the limit says: others wait for it.
    pub fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes > before {
            self.room.state().held += bytes - before;
        } else if bytes < before {
            give_back(&self.room, before - bytes);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.bytes > 0 {
            give_back(&self.room, self.bytes);
        }
    }
}

fn give_back(room: &Arc<Inner>, bytes: usize) {
    let mut state = room.state();
    state.held -= bytes;
    room.grant(&mut state);
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinHandle;

    use super::*;

    fn room(bytes: usize) -> Room {
        Room::new(Clock::system(), Limit::Strict(bytes))
    }

    /// Asks in a task of its own, and lets it come to its wait.
    async fn ask(room: &Room, user: &'static str, bytes: usize) -> JoinHandle<Result<Held, Full>> {
        let room = room.clone();
        let task = tokio::spawn(async move { room.take(user, bytes).await });
        tokio::task::yield_now().await;
        task
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_held_is_bounded_and_the_others_wait_in_turn_by_user() {
        let room = room(100);
        let first = room.take("a", 100).await.expect("room");
        // One user came with three, another with one: the second user's goes second.
        let tasks = [ask(&room, "a", 60).await, ask(&room, "a", 60).await, ask(&room, "a", 60).await];
        let other = ask(&room, "b", 60).await;
        assert_eq!(room.totals(), Totals { held: 100, limit: 100, waiting: 4, waited: 4, refused: 0 });
        drop(first);
        let [one, two, three] = tasks;
        let one = one.await.expect("no panic").expect("its turn");
        assert!(!other.is_finished() && !two.is_finished());
        drop(one);
        let other = other.await.expect("no panic").expect("its turn");
        assert!(!two.is_finished());
        drop(other);
        let two = two.await.expect("no panic").expect("its turn");
        assert!(!three.is_finished());
        drop((two, three.await.expect("no panic")));
        assert_eq!(room.totals().held, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_too_long_is_refused_and_holds_nobody_up() {
        let room = room(100);
        let held = room.take("a", 50).await.expect("room");
        let large = ask(&room, "a", 80).await;
        let small = ask(&room, "b", 40).await;
        assert!(!small.is_finished(), "nobody passes a large one");
        tokio::time::advance(ROOM_WAIT).await;
        assert_eq!(large.await.expect("no panic").err(), Some(Full));
        assert!(small.await.expect("no panic").is_ok(), "and then it is its turn");
        assert_eq!((room.totals().waiting, room.totals().refused), (0, 1));
        drop(held);
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_the_queue_gives_up_its_place() {
        let room = room(10);
        let held = room.take("a", 10).await.expect("room");
        let leaves = ask(&room, "a", 10).await;
        let stays = ask(&room, "b", 5).await;
        leaves.abort();
        assert!(leaves.await.is_err());
        assert_eq!(room.totals().waiting, 1);
        drop(held);
        assert!(stays.await.expect("no panic").is_ok());
        assert_eq!(room.totals().held, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_is_bounded_for_a_user_and_for_all() {
        let room = room(1);
        let _held = room.take("a", 1).await.expect("room");
        let mut tasks = Vec::new();
        for user in ["a", "b"] {
            for _ in 0..ROOM_WAITING_PER_USER_MAX {
                tasks.push(ask(&room, user, 1).await);
            }
            assert_eq!(room.take(user, 1).await.err(), Some(Full), "{user}");
        }
        assert_eq!(room.totals().waiting, ROOM_WAITING_MAX.min(2 * ROOM_WAITING_PER_USER_MAX));
        assert_eq!(room.take("c", 1).await.err(), Some(Full));
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_moves_and_one_always_fits_unless_it_is_closed() {
        let room = room(100);
        let held = room.take("a", 100).await.expect("room");
        let waits = ask(&room, "a", 50).await;
        room.set_limit(Limit::Strict(150));
        assert!(waits.await.expect("no panic").is_ok());
        room.set_limit(Limit::Strict(0));
        drop(held);
        let one = room.take("a", ROOM_ONE_BYTES).await.expect("nothing else is held");
        assert!(room.try_take(1).is_none());
        drop(one);
        let too_large = ask(&room, "a", ROOM_ONE_BYTES + 1).await;
        tokio::time::advance(ROOM_WAIT + Duration::from_millis(1)).await;
        assert_eq!(too_large.await.expect("no panic").err(), Some(Full));
        room.set_limit(Limit::Closed);
        assert_eq!(room.take("a", 1).await.err(), Some(Full), "at once");
    }

    #[tokio::test(start_paused = true)]
    async fn where_memory_is_not_short_the_largest_goes_alone() {
        let room = room(0);
        room.set_limit(Limit::Loose(100));
        let mut body = room.take("a", 30).await.expect("room");
        room.take_more("a", 1000, &mut body).await.expect("nothing else is held");
        assert_eq!((body.bytes(), room.totals().held), (100, 100));
        let waits = ask(&room, "b", 10).await;
        assert!(!waits.is_finished());
        drop(body);
        let mut other = waits.await.expect("no panic").expect("its turn");
        let held = room.charge(50);
        assert_eq!(room.take_more("b", 90, &mut other).await.err(), Some(Full), "not alone");
        drop(held);
        assert!(room.take_more("b", 90, &mut other).await.is_ok());
    }

    /// Asks for more in a task of its own, and lets it come to its wait. It ends with what it has.
    async fn ask_more(room: &Room, mut held: Held, bytes: usize) -> JoinHandle<Result<Held, Full>> {
        let room = room.clone();
        let task = tokio::spawn(async move { room.take_more("a", bytes, &mut held).await.map(|()| held) });
        tokio::task::yield_now().await;
        task
    }

    #[tokio::test(start_paused = true)]
    async fn who_holds_the_most_goes_first_and_before_who_holds_nothing() {
        let room = room(100);
        let works = room.take("a", 40).await.expect("room");
        let (less, more) = (room.take("a", 20).await.expect("room"), room.take("a", 30).await.expect("room"));
        let new = ask(&room, "b", 10).await;
        assert!(new.await.expect("no panic").is_ok());
        let (new, less) = (ask(&room, "b", 60).await, ask_more(&room, less, 20).await);
        let more = ask_more(&room, more, 20).await;
        drop(works);
        let (more, less) = (more.await.expect("no panic"), less.await.expect("no panic"));
        assert!(more.is_ok() && less.is_ok() && !new.is_finished());
        drop((more, less));
        assert!(new.await.expect("no panic").is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_who_hold_something_wait_the_one_with_the_least_gives_way_at_once() {
        let room = room(100);
        let clock = Clock::system();
        let began = clock.now();
        let mut held = Vec::new();
        for bytes in [33, 34, 33] {
            held.push(room.take("a", bytes).await.expect("room"));
        }
        let mut tasks = Vec::new();
        for held in held {
            tasks.push(ask_more(&room, held, 10).await);
        }
        let done = async |task: JoinHandle<Result<Held, Full>>| {
            task.await.expect("no panic").map(|held| held.bytes())
        };
        let newest = tasks.pop().expect("three");
        assert_eq!(done(newest).await, Err(Full), "of those with the least");
        for (task, bytes) in tasks.into_iter().zip([43, 44]) {
            assert_eq!(done(task).await, Ok(bytes));
        }
        assert_eq!((clock.now() - began, room.totals().held, room.totals().refused), (Duration::ZERO, 0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_gives_way_to_one_that_would_fill_half_of_the_room() {
        let room = room(100);
        let (large, small) =
            (room.take("a", 60).await.expect("room"), room.take("b", 40).await.expect("room"));
        let large = ask_more(&room, large, 30).await;
        let small = ask_more(&room, small, 5).await;
        assert_eq!(large.await.expect("no panic").err(), Some(Full));
        assert!(small.await.expect("no panic").is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_are_in_a_full_room_may_grow_a_little_where_memory_is_not_short() {
        let room = Room::new(Clock::system(), Limit::Loose(80));
        let mut held = room.take("a", 40).await.expect("room");
        let other = room.take("b", 40).await.expect("room");
        let waits = ask(&room, "c", 10).await;
        assert!(room.try_take_more(10, &mut held), "an eighth of it");
        assert!(!room.try_take_more(1, &mut held));
        drop(other);
        assert!(waits.await.expect("no panic").is_ok());
        room.set_limit(Limit::Strict(55));
        assert!(!room.try_take_more(1, &mut held), "there is no more memory than that");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_needed_any_more_is_given_back_early() {
        let room = room(100);
        let mut held = room.take("a", 90).await.expect("room");
        let waits = ask(&room, "a", 80).await;
        held.set(20);
        assert!(waits.await.expect("no panic").is_ok());
        held.set(50);
        assert_eq!((held.bytes(), room.totals().held), (50, 50), "more may be needed than was foreseen");
        let charged = room.charge(1000);
        assert_eq!(room.totals().held, 1050);
        drop((held, charged));
        assert_eq!(room.totals().held, 0);
    }
}
