//! Room for what requests hold while they are answered, in bytes: admission by cost.
//!
//! In: who asks, and what the answer will take. Out: the bytes, given back when dropped, or a refusal. Over
//! the limit requests wait, in turn by user so that nobody starves others, so many and so long at most. Who
//! holds something already and waits for more goes first, for that is what the others wait for: the one that
//! holds the most. When all that is held is held by those who wait, the one with the least is refused, so
//! that the others go on. Its limit may be moved at any time. Never: knows what a request is.
//!
//! Owner of the state: whoever holds the lock, for a few lines.

mod away;
pub mod limits;
mod purse;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_rt::{Clock, Duration};
use tokio::sync::oneshot;

pub use crate::away::{AwayRoom, Gone};
use crate::limits::{
    BODY_ROOM_WAIT, ROOM_GROWTH_SHARE, ROOM_ONE_BYTES, ROOM_WAIT, ROOM_WAITING_MAX, ROOM_WAITING_PER_USER_MAX,
};

pub use crate::purse::{Beyond, Purse};

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

    /// The same for what may be left out: only if half of the room stays for others.
    pub fn try_take_beside(&self, bytes: usize) -> Option<Held> {
        let mut state = self.0.state();
        if state.count > 0 || state.held.saturating_add(bytes) > state.limit.bytes() / 2 {
            return None;
        }
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
    pub fn merge(&mut self, mut other: Held) {
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
mod tests;
