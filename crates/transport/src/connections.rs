//! The open connections: how many there may be, and which of them are closed for others.
//!
//! In: connections as they are accepted; for each that a request begins or ends, and that its client was
//! authenticated. Out: a [`ConnectionSlot`] for each, or none; some are told to end. Never: knows what a
//! request is.
//!
//! Strangers: a connection on which nobody was authenticated yet is a stranger's. When all seats are taken
//! and another client comes, one stranger has to give way: the one on whose connection no request has begun
//! or ended for the longest time. So strangers may hold all seats, and still keep nobody out.
//!
//! Going: a connection that is told to go takes no more requests, so that its client opens another one, and
//! ends once those that it has are answered. Over HTTP/2 that is a GOAWAY, and watches end where that costs
//! their clients nothing; over HTTP/1.1 the next answer says that it is the last.
//!
//! Idle: an HTTP/2 connection without a request is told to go after a while, whoever its client is.
//! HTTP/1.1 does this by itself. Unread: a connection whose client takes nothing of what was written to it is
//! cut. A watch over HTTP/1.1 is not: its client may have parked it.
//!
//! Owner of the state: whoever holds the lock, for a few lines. Connections of clients that are authenticated
//! take it at their beginning and their end alone.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use forebay_rt::{Clock, Duration, Instant, Shutdown, Stagger};

use crate::abort::{Abort, UntilAborted};
use crate::counts::{ConnectionCounts, GoesFor};
use crate::limits::{
    CONNECTIONS_PERIOD, IDLE_WAIT, LEAVING_MAX, PING_WAIT, STALL_WAIT, STRANGER_BYTES,
    STRANGERS_WITH_MUCH_MAX,
};
use crate::socket::Socket;

/// The seats of one server. Cheap to clone.
#[derive(Clone)]
pub struct Connections(Arc<Inner>);

struct Inner {
    clock: Clock,
    began: Instant,
    max: usize,
    counts: Arc<ConnectionCounts>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    // number -> who has that seat, the oldest first; <= max.
    seated: BTreeMap<u64, Seated>,
    // Seats of authenticated clients that were told to go.
    going: usize,
    // The seats of strangers, in the order in which they give way.
    strangers: BTreeSet<Turn>,
    // The strangers that hold much (Connection::holds_much); <= STRANGERS_WITH_MUCH_MAX.
    with_much: BTreeSet<Turn>,
    // Connections that were told to give way and have not ended yet. No more seats are given away to new
    // clients while there are LEAVING_MAX.
    leaving: usize,
}

struct Seated {
    connection: Arc<Connection>,
    turn: Turn,
    // Counted among those who go.
    is_going: bool,
}

/// When a request last began or ended on a connection, in milliseconds since the server began, and the number
/// of its seat.
type Turn = (u64, u64);

/// A connection's seat, given back when dropped.
pub struct ConnectionSlot(Arc<Connection>);

/// What is known of an open connection. The default one has no seat, and belongs to no server.
#[derive(Default)]
pub struct Connection {
    number: u64,
    connections: Option<Connections>,
    is_known: AtomicBool,
    /// Requests that have begun and not ended.
    open: AtomicUsize,
    /// When a request last began or ended on it, in milliseconds since the server began.
    since_ms: AtomicU64,
    /// Bytes that were received from a stranger since then.
    unanswered: AtomicUsize,
    abort: Abort,
    is_going: AtomicBool,
    going: Going,
    told_ms: AtomicU64,
    socket: OnceLock<Arc<Socket>>,
    /// Whether the connection is closed when it has done nothing for a while.
    is_limited: AtomicBool,
    /// Where the client does not take what was written: when that was first seen, and when it had last taken
    /// something then.
    stuck: Mutex<Option<(Instant, Instant)>>,
}

/// Raised once a connection is told to go.
struct Going(Shutdown);

impl Default for Going {
    fn default() -> Going {
        Going(Shutdown::for_few())
    }
}

/// A request that has begun, until it is dropped.
pub struct OpenRequest(Arc<Connection>);

impl AsRef<Abort> for Connection {
    fn as_ref(&self) -> &Abort {
        &self.abort
    }
}

impl Connections {
    pub fn new(clock: Clock, max: usize, counts: Arc<ConnectionCounts>) -> Connections {
        let began = clock.now();
        Connections(Arc::new(Inner { clock, began, max, counts, state: Mutex::default() }))
    }

    /// The counters that clients of this crate may show.
    pub fn counts(&self) -> &ConnectionCounts {
        &self.0.counts
    }

    /// A seat for a new connection. Where all are taken, a stranger has to give way for it; `None` when there
    /// is none, or when too many are about to end already.
    pub fn take(&self) -> Option<ConnectionSlot> {
        let now = self.ms();
        let mut state = self.state();
        // A connection that gives way takes a turn of its task to end. While many are about to, new ones have
        // to wait.
        let gives_way = match state.seated.len() < self.0.max {
            true => None,
            false if state.leaving >= LEAVING_MAX => return None,
            false => Some(state.give_way()?),
        };
        state.next += 1;
        let turn = (now, state.next);
        let connection = Arc::new(Connection {
            number: state.next,
            connections: Some(self.clone()),
            since_ms: AtomicU64::new(now),
            ..Connection::default()
        });
        state
            .seated
            .insert(connection.number, Seated { connection: connection.clone(), turn, is_going: false });
        state.strangers.insert(turn);
        self.counted(&state);
        drop(state);
        if let Some(stranger) = gives_way {
            self.0.counts.gave_way.add(1);
            stranger.abort.abort();
        }
        Some(ConnectionSlot(connection))
    }

    /// Cuts half of the strangers' connections, and one at least, because memory is short.
    pub fn let_strangers_go(&self) -> usize {
        let mut state = self.state();
        let half = state.strangers.len().div_ceil(2);
        let gone: Vec<_> = std::iter::from_fn(|| state.give_way()).take(half).collect();
        self.counted(&state);
        drop(state);
        self.0.counts.gave_way.add(gone.len() as u64);
        gone.iter().for_each(|stranger| stranger.abort.abort());
        gone.len()
    }

    /// Connections of authenticated clients, and how many of them were told to go.
    pub fn known(&self) -> (usize, usize) {
        let state = self.state();
        (state.seated.len() - state.strangers.len(), state.going)
    }

    /// How many connections there may be.
    pub fn max(&self) -> usize {
        self.0.max
    }

    /// Tells so many of the authenticated clients to go, those that came first. How many there were to tell.
    pub fn let_go(&self, count: usize) -> usize {
        let told: Vec<_> = {
            let state = self.state();
            // Once a second, where a server holds more than its share: over the seats.
            let staying = state.seated.values().filter(|seated| !seated.connection.is_going());
            let known = staying.filter(|seated| !state.strangers.contains(&seated.turn));
            known.take(count).map(|seated| seated.connection.clone()).collect()
        };
        told.iter().for_each(|connection| connection.tell_to_go(GoesFor::Share));
        told.len()
    }

    /// Tells all to go, one after the other within `span`. Cancel-safe.
    pub async fn let_all_go(self, span: Duration) {
        let began = self.0.clock.now();
        let (all, mut last) = (self.state().seated.len() as u64, 0);
        for ticket in 0.. {
            self.0.clock.sleep_until(began + Stagger::wait_within(ticket, all, span)).await;
            let next = {
                let state = self.state();
                state.seated.range(last + 1..).next().map(|(_, seated)| seated.connection.clone())
            };
            let Some(next) = next else { return };
            last = next.number;
            next.tell_to_go(GoesFor::Shutdown);
        }
    }

    /// Ends idle connections, and those whose clients take nothing of what was written; for ever.
    pub async fn end_idle_and_stuck(self) {
        loop {
            self.0.clock.sleep(CONNECTIONS_PERIOD).await;
            let connections: Vec<_> =
                self.state().seated.values().map(|seated| seated.connection.clone()).collect();
            for some in connections.chunks(CONNECTIONS_AT_ONCE) {
                some.iter().for_each(|connection| self.judge(connection));
                tokio::task::yield_now().await;
            }
        }
    }

    fn judge(&self, connection: &Connection) {
        let counts = &self.0.counts;
        if connection.is_stuck(self.0.clock.now()) {
            counts.unread.add(1);
            // By a reset: without the part that the client did not take, the answer is not complete.
            connection.socket.get().inspect(|socket| socket.on_abort().abort());
            connection.abort.abort();
        }
        if !connection.is_limited.load(Ordering::Relaxed) || connection.open.load(Ordering::Acquire) > 0 {
            return;
        }
        let (now, since) = (self.ms(), connection.since_ms.load(Ordering::Relaxed));
        let is_over = |since: u64, wait: Duration| now.saturating_sub(since) >= wait.as_millis() as u64;
        if !connection.is_going() {
            if is_over(since, IDLE_WAIT) {
                connection.tell_to_go(GoesFor::Idle);
            }
        } else if is_over(since.max(connection.told_ms.load(Ordering::Relaxed)), PING_WAIT) {
            connection.abort.abort();
        }
    }

    fn ms(&self) -> u64 {
        self.0.clock.now().duration_since(self.0.began).as_millis() as u64
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counted(&self, state: &State) {
        self.0.counts.set(state.seated.len(), state.strangers.len());
    }
}

/// How many connections are looked at before other tasks get their turn.
const CONNECTIONS_AT_ONCE: usize = 512;

impl State {
    /// Takes the seat of the stranger that is first in turn.
    fn give_way(&mut self) -> Option<Arc<Connection>> {
        let first = *self.strangers.first()?;
        self.leave(first)
    }

    /// Takes the seat of the stranger whose turn this is.
    fn leave(&mut self, turn: Turn) -> Option<Arc<Connection>> {
        self.forget(turn);
        self.leaving += 1;
        self.stand_up(turn.1).map(|seated| seated.connection)
    }

    fn stand_up(&mut self, number: u64) -> Option<Seated> {
        let seated = self.seated.remove(&number)?;
        self.going -= usize::from(seated.is_going);
        Some(seated)
    }

    /// Counts who was told to go, if that is no stranger.
    fn goes(&mut self, number: u64) {
        if let Some(seated) = self.seated.get_mut(&number)
            && !self.strangers.contains(&seated.turn)
        {
            seated.is_going = true;
            self.going += 1;
        }
    }

    /// Takes a connection off the list of strangers, if it is there.
    fn forget(&mut self, turn: Turn) -> bool {
        self.with_much.remove(&turn);
        self.strangers.remove(&turn)
    }
}

impl ConnectionSlot {
    pub fn connection(&self) -> &Arc<Connection> {
        &self.0
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let Some(seats) = &self.0.connections else { return };
        let mut state = seats.state();
        match state.stand_up(self.0.number) {
            Some(seated) => drop(state.forget(seated.turn)),
            None => state.leaving -= 1,
        }
        seats.counted(&state);
    }
}

impl Connection {
    /// `work`, until this connection is cut: then it ends with `None`.
    pub fn carry<F: Future>(&self, work: F) -> UntilAborted<&Connection, F> {
        UntilAborted::new(self, work)
    }

    /// Raised once this connection is told to go.
    pub fn going(&self) -> &Shutdown {
        &self.going.0
    }

    pub fn is_going(&self) -> bool {
        self.is_going.load(Ordering::Acquire)
    }

    /// Tells the client to go to another connection, unless it was told already.
    pub fn tell_to_go(&self, why: GoesFor) {
        if self.is_going() {
            return;
        }
        // Before it is seen to go.
        self.told_ms.store(self.connections.as_ref().map_or(0, Connections::ms), Ordering::Relaxed);
        if self.is_going.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(seats) = &self.connections {
            seats.state().goes(self.number);
            seats.0.counts.told_to_go(why).add(1);
        }
        self.going.0.raise();
    }

    /// To be called once TLS is set up: what is written to this connection goes through `socket`.
    pub fn writes_to(&self, socket: &Arc<Socket>) {
        let _first = self.socket.set(socket.clone());
    }

    /// Who is at its other end, once TLS is set up.
    pub fn remote(&self) -> Option<SocketAddr> {
        self.socket.get().map(|socket| socket.peer())
    }

    /// From now on this connection is told to go when it has been idle for too long.
    pub fn limit_idleness(&self) {
        self.is_limited.store(true, Ordering::Relaxed);
    }

    /// Counts a request that begins; it ends when the [`OpenRequest`] is dropped.
    pub fn begin_request(self: &Arc<Connection>) -> OpenRequest {
        self.open.fetch_add(1, Ordering::AcqRel);
        self.moved();
        OpenRequest(self.clone())
    }

    pub fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// To be called when a client was authenticated on this connection: it is no stranger's any more.
    pub fn authenticated(&self) {
        if self.is_known() || self.is_known.swap(true, Ordering::Relaxed) {
            return;
        }
        let Some(seats) = &self.connections else { return };
        let mut state = seats.state();
        if let Some(seated) = state.seated.get(&self.number) {
            let turn = seated.turn;
            state.forget(turn);
        }
        seats.counted(&state);
    }

    /// Counts bytes that were received and belong to no request yet.
    pub fn received(&self, bytes: usize) {
        if !self.is_known() && self.unanswered.fetch_add(bytes, Ordering::Relaxed) + bytes > STRANGER_BYTES {
            self.holds_much();
        }
    }

    /// To be called when much memory is held for this connection, or when its client has not taken an answer
    /// at once. Only a few strangers may be in this state: with one too many, the first of them in turn is
    /// cut.
    pub fn holds_much(&self) {
        let Some(seats) = self.connections.as_ref().filter(|_| !self.is_known()) else { return };
        let mut state = seats.state();
        let Some(turn) = state.seated.get(&self.number).map(|seated| seated.turn) else { return };
        // Its client may have been authenticated meanwhile.
        if !state.strangers.contains(&turn) || !state.with_much.insert(turn) {
            return;
        }
        let is_one_too_many = state.with_much.len() > STRANGERS_WITH_MUCH_MAX;
        let first = state.with_much.first().copied().filter(|_| is_one_too_many);
        let gone = first.and_then(|first| state.leave(first));
        seats.counted(&state);
        drop(state);
        if let Some(stranger) = gone {
            seats.0.counts.gave_way.add(1);
            stranger.abort.abort();
        }
    }

    /// Notes that a request began or ended: of the strangers, this one is now the last to give way.
    fn moved(&self) {
        let Some(seats) = &self.connections else { return };
        let now = seats.ms();
        self.since_ms.store(now, Ordering::Relaxed);
        if self.is_known() {
            return;
        }
        self.unanswered.store(0, Ordering::Relaxed);
        let mut state = seats.state();
        let Some(turn) = state.seated.get(&self.number).map(|seated| seated.turn) else { return };
        if state.forget(turn) {
            state.strangers.insert((now, self.number));
            state.seated.get_mut(&self.number).expect("it has one").turn.0 = now;
        }
    }

    /// Whether the client has taken nothing of what was written to it for too long.
    fn is_stuck(&self, now: Instant) -> bool {
        let mut stuck = self.stuck.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(socket) = self.socket.get().filter(|socket| !socket.is_sent() && !socket.is_patient())
        else {
            *stuck = None;
            return false;
        };
        let wrote_at = socket.wrote_at();
        match *stuck {
            Some((since, then)) if then == wrote_at => now.duration_since(since) >= STALL_WAIT,
            _ => {
                *stuck = Some((now, wrote_at));
                false
            }
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.moved();
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats(max: usize) -> Connections {
        Connections::new(Clock::system(), max, Arc::default())
    }

    fn cut(seats: &[Option<ConnectionSlot>]) -> Vec<bool> {
        seats.iter().flatten().map(|seat| seat.connection().abort.is_aborted()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_stranger_on_whose_connection_the_longest_nothing_happened_gives_way() {
        let (seats, clock) = (seats(4), Clock::system());
        let mut taken = Vec::new();
        for _ in 0..4 {
            taken.push(seats.take());
            clock.sleep(Duration::from_secs(1)).await;
        }
        let connection = |at: usize| taken[at].as_ref().expect("a seat").connection().clone();
        connection(0).authenticated();
        // The second has just said something, and the third is saying something.
        drop(connection(1).begin_request());
        clock.sleep(Duration::from_secs(1)).await;
        let open = connection(2).begin_request();
        let mut later = Vec::new();
        for want in [[false, false, false, true], [false, true, false, true], [false, true, true, true]] {
            later.push(seats.take());
            assert_eq!(cut(&taken), want);
        }
        drop(open);
        assert_eq!(cut(&later), [false; 3]);
        later.push(seats.take());
        assert_eq!(cut(&later), [true, false, false, false], "none but the one that is known stays");
        assert_eq!(seats.0.counts.read(), (4, 3));
        drop((taken, later));
        assert_eq!((seats.0.counts.read(), seats.state().leaving), ((0, 0), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_known_gives_way_to_nobody_and_few_are_on_their_way_out() {
        let seats = seats(2);
        let taken = [seats.take(), seats.take()];
        taken.iter().flatten().for_each(|seat| seat.connection().authenticated());
        assert!(seats.take().is_none());
        drop(taken);
        let mut all: Vec<_> = std::iter::from_fn(|| seats.take()).take(LEAVING_MAX + 100).collect();
        assert_eq!(all.len(), LEAVING_MAX + 2, "those who were told are not gone yet");
        all.remove(0);
        assert!(seats.take().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn for_few_strangers_much_is_held_and_for_them_until_something_begins() {
        let (seats, clock) = (seats(10_000), Clock::system());
        let mut taken = Vec::new();
        for _ in 0..STRANGERS_WITH_MUCH_MAX + 4 {
            taken.push(seats.take());
            clock.sleep(Duration::from_millis(1)).await;
        }
        let connection = |at: usize| taken[at].as_ref().expect("a seat").connection().clone();
        connection(0).received(STRANGER_BYTES);
        connection(1).authenticated();
        for at in 0..taken.len() {
            connection(at).received(STRANGER_BYTES + 1);
            // The third is a request then.
            if at == 2 {
                drop(connection(at).begin_request());
            }
        }
        let gone: Vec<_> =
            cut(&taken).iter().enumerate().filter(|(_, cut)| **cut).map(|(at, _)| at).collect();
        assert_eq!(gone, [0, 3], "one is known, and one was answered");
        assert_eq!(seats.state().with_much.len(), STRANGERS_WITH_MUCH_MAX);
        drop(taken);
        assert!(seats.state().with_much.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_came_first_is_let_go_first_and_strangers_are_none_of_them() {
        let seats = seats(100);
        let taken: Vec<_> = (0..6).map(|_| seats.take().expect("a seat")).collect();
        let going = || taken.iter().map(|seat| seat.connection().is_going()).collect::<Vec<_>>();
        taken[1..5].iter().for_each(|seat| seat.connection().authenticated());
        assert_eq!((seats.known(), seats.let_go(2)), ((4, 0), 2));
        assert_eq!((seats.known(), going()), ((4, 2), vec![false, true, true, false, false, false]));
        taken[3].connection().tell_to_go(GoesFor::Refused);
        taken[3].connection().tell_to_go(GoesFor::Refused);
        assert_eq!((seats.let_go(9), seats.let_go(9), seats.known()), (1, 0, (4, 4)));
        let counts = &seats.0.counts;
        let told = |why| counts.told_to_go(why).get();
        assert_eq!((told(GoesFor::Share), told(GoesFor::Refused), told(GoesFor::Shutdown)), (3, 1, 0));
        let (clock, all) = (Clock::system(), seats.clone().let_all_go(Duration::from_secs(2)));
        let began = clock.now();
        all.await;
        // Those who went already take their turns as well.
        assert_eq!((told(GoesFor::Shutdown), going()), (2, vec![true; 6]));
        assert!(clock.now() >= began + Duration::from_millis(25), "one after the other");
        drop(taken);
        assert_eq!(seats.known(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn while_memory_is_short_half_of_the_strangers_go_and_nobody_who_is_known() {
        let seats = seats(100);
        let taken: Vec<_> = (0..9).map(|_| seats.take()).collect();
        taken.iter().take(4).flatten().for_each(|seat| seat.connection().authenticated());
        for (want, left) in [(3, 2), (1, 1), (1, 0), (0, 0)] {
            assert_eq!((seats.let_strangers_go(), seats.0.counts.read()), (want, (4 + left, left)));
        }
        assert_eq!(cut(&taken), [[false; 4].to_vec(), vec![true; 5]].concat());
        drop(taken);
        assert_eq!(seats.state().leaving, 0);
    }
}
