//! Who is connected, and who gives way.
//!
//! In: connections as they are accepted, and what is heard on each: that a request begins or ends, and that it is of
//! somebody. Out: a [`ConnectionSlot`] for each, or none; and to some the word to leave. A connection on which nobody was
//! ever authenticated is a stranger's: when all seats are taken and somebody comes, the stranger gives way on whose
//! connection the longest nothing began or ended. So strangers may hold all seats and keep nobody out. A connection of
//! HTTP/2 without a request is asked to end after a while, whoever it is, as HTTP/1.1 ends it by itself. One whose client
//! takes nothing of what was written is cut; but not a watch over HTTP/1.1, which may be parked. Never: knows what a request
//! is.
//!
//! Owner of the state: whoever holds the lock, for a few lines; of those who are known only their begin and end.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;

use forebay_rt::{Clock, Duration, Instant};

use crate::abort::{Abort, UntilAborted};
use crate::counts::ConnectionCounts;
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
    // number -> who has that seat; <= max.
    seated: HashMap<u64, Seated>,
    // Strangers among them, in the order in which they give way.
    strangers: BTreeSet<Turn>,
    // Those of them for whom much is held; <= STRANGERS_WITH_MUCH_MAX.
    with_much: BTreeSet<Turn>,
    // Those who were told to give way and are not gone yet: those whose seats others got are <= LEAVING_MAX.
    leaving: usize,
}

struct Seated {
    connection: Arc<Connection>,
    turn: Turn,
}

/// Milliseconds until something last began or ended, and the seat's number.
type Turn = (u64, u64);

/// A connection's seat, given back when dropped.
pub struct ConnectionSlot(Arc<Connection>);

/// A connection as others see it. The default one is nobody's.
#[derive(Default)]
pub struct Connection {
    number: u64,
    connections: Option<Connections>,
    is_known: AtomicBool,
    /// Requests that have begun and not ended.
    open: AtomicUsize,
    /// Milliseconds until something last began or ended.
    since_ms: AtomicU64,
    /// Bytes that a stranger has said since.
    unanswered: AtomicUsize,
    abort: Abort,
    asked: Abort,
    asked_ms: AtomicU64,
    socket: OnceLock<Arc<Socket>>,
    /// Whether the connection is closed when it has done nothing for a while.
    is_limited: AtomicBool,
    /// Since when it was seen that something was not taken, and when the last that was, was.
    stuck: Mutex<Option<(Instant, Instant)>>,
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

    /// What is counted of them.
    pub fn counts(&self) -> &ConnectionCounts {
        &self.0.counts
    }

    /// A seat for a stranger, if need be another one's. `None` when all are taken by who is known.
    pub fn take(&self) -> Option<ConnectionSlot> {
        let now = self.ms();
        let mut state = self.state();
        // Those who were told go in a turn of their task each; where there are many of them, it is better to wait.
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
        state.seated.insert(connection.number, Seated { connection: connection.clone(), turn });
        state.strangers.insert(turn);
        self.counted(&state);
        drop(state);
        if let Some(stranger) = gives_way {
            self.0.counts.gave_way.add(1);
            stranger.abort.abort();
        }
        Some(ConnectionSlot(connection))
    }

    /// Has half of the strangers give way, and one at least: memory is short, and whatever they have begun, nobody stands in
    /// for it.
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

    /// Looks after who does nothing and who takes nothing, for ever.
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
            // What it did not take is of no use to it.
            connection.socket.get().inspect(|socket| socket.on_abort().abort());
            connection.abort.abort();
        }
        if !connection.is_limited.load(Ordering::Relaxed) || connection.open.load(Ordering::Acquire) > 0 {
            return;
        }
        let (now, since) = (self.ms(), connection.since_ms.load(Ordering::Relaxed));
        let is_over = |since: u64, wait: Duration| now.saturating_sub(since) >= wait.as_millis() as u64;
        if !connection.asked.is_aborted() {
            if is_over(since, IDLE_WAIT) {
                counts.idle.add(1);
                connection.asked_ms.store(now, Ordering::Relaxed);
                connection.asked.abort();
            }
        } else if is_over(since.max(connection.asked_ms.load(Ordering::Relaxed)), PING_WAIT) {
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

/// Connections that are looked at before other tasks get their turn.
const CONNECTIONS_AT_ONCE: usize = 512;

impl State {
    /// Takes a stranger's seat.
    fn give_way(&mut self) -> Option<Arc<Connection>> {
        let first = *self.strangers.first()?;
        self.leave(first)
    }

    /// Takes the seat of the stranger whose turn this is.
    fn leave(&mut self, turn: Turn) -> Option<Arc<Connection>> {
        self.forget(turn);
        self.leaving += 1;
        self.seated.remove(&turn.1).map(|seated| seated.connection)
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
        match state.seated.remove(&self.0.number) {
            Some(seated) => drop(state.forget(seated.turn)),
            None => state.leaving -= 1,
        }
        seats.counted(&state);
    }
}

impl Connection {
    /// Does `work`, until it is to end.
    pub fn carry<F: Future>(&self, work: F) -> UntilAborted<&Connection, F> {
        UntilAborted::new(self, work)
    }

    /// Ready when it is asked to end in good order.
    pub fn asked_to_end(&self) -> impl Future<Output = ()> + Send {
        std::future::poll_fn(|cx| {
            self.asked.wakes(cx);
            if self.asked.is_aborted() { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    /// It is secure now, and what is written to it goes through `socket`.
    pub fn writes_to(&self, socket: &Arc<Socket>) {
        let _first = self.socket.set(socket.clone());
    }

    /// It is asked to end when it does nothing for too long.
    pub fn limit_idleness(&self) {
        self.is_limited.store(true, Ordering::Relaxed);
    }

    /// A request begins.
    pub fn begin_request(self: &Arc<Connection>) -> OpenRequest {
        self.open.fetch_add(1, Ordering::AcqRel);
        self.moved();
        OpenRequest(self.clone())
    }

    pub fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// Somebody was authenticated on it.
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

    /// So many bytes were heard that nobody has made anything of yet.
    pub fn received(&self, bytes: usize) {
        if !self.is_known() && self.unanswered.fetch_add(bytes, Ordering::Relaxed) + bytes > STRANGER_BYTES {
            self.holds_much();
        }
    }

    /// Much is held for it, or what its client has not taken at once. A few strangers may have that.
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

    /// Something began or ended: among strangers it is the last to give way now.
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

    /// Whether its client has taken nothing of what it was written for too long.
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
