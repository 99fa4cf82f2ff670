//! Who sits where: the connections that are there, oldest first, how many streams each carries, and whether
//! one more is to be opened.
//!
//! In: what happened to a connection, and who wants a seat. Out: a seat, or that there is none. One owner,
//! the pool, behind its lock. Never: does IO, waits, knows what a connection is: it hands out clones of what
//! it was given.

use forebay_rt::{Duration, Instant, Shutdown};

use crate::limits::{
    CONNECTIONS_MAX, HTTP1_CONNECTIONS_KEPT, HTTP1_CONNECTIONS_MAX, HTTP1_OPENING_MAX, LEAVING_MAX,
    SEATS_KEPT_ONE_IN, STREAMS_MAX,
};

/// What a seat is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// A request that is over soon.
    Ordinary,
    /// A request that lasts: a watch, or a log that is followed.
    Watch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// What the pool has, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Connections that are open now, including those that take no more requests.
    pub connections: usize,
    /// Requests under way, and answers that are being read.
    pub streams: usize,
    /// Connections opened since the pool was made.
    pub opened: u64,
    /// Connections closed since the pool was made.
    pub closed: u64,
}

/// All connections.
#[derive(Debug)]
pub(crate) struct Book<C> {
    // Oldest first; as many as limits.rs says.
    entries: Vec<Entry<C>>,
    /// How many are being opened.
    opening: usize,
    /// The protocol of the connection that was opened last.
    protocol: Protocol,
    opened: u64,
    closed: u64,
}

#[derive(Debug)]
struct Entry<C> {
    id: u64,
    /// `None` once the connection takes no more requests.
    carrier: Option<C>,
    protocol: Protocol,
    streams_max: usize,
    taken: usize,
    /// How many of the streams are watches.
    watches: usize,
    opened: Instant,
    /// Since when the connection has had no stream.
    idle_since: Instant,
    flags: Flags,
}

/// How a connection's task is told what becomes of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    /// It takes no more requests, and ends with the last of its streams.
    pub retire: Shutdown,
    /// It ends now.
    pub cut: Shutdown,
}

impl<C: Clone> Book<C> {
    pub fn new() -> Book<C> {
        Book { entries: Vec::new(), opening: 0, protocol: Protocol::Http2, opened: 0, closed: 0 }
    }

    /// A seat on the oldest connection that has one.
    pub fn take(&mut self, want: Want) -> Option<(u64, C)> {
        if want == Want::Watch && self.http1_watches() >= HTTP1_CONNECTIONS_MAX - HTTP1_CONNECTIONS_KEPT {
            return None;
        }
        let entry = self.entries.iter_mut().find(|it| it.carrier.is_some() && it.taken < it.seats(want))?;
        entry.taken += 1;
        entry.watches += usize::from(want == Want::Watch);
        entry.carrier.clone().map(|carrier| (entry.id, carrier))
    }

    /// A seat is free again.
    pub fn release(&mut self, id: u64, want: Want, now: Instant) {
        if let Some(entry) = self.entry(id) {
            entry.taken -= 1;
            entry.watches -= usize::from(want == Want::Watch);
            entry.idle_since = now;
        }
    }

    /// How many connections to open for so many who wait and found no seat; they count as being opened.
    pub fn begin_opening(&mut self, want: Want, waiting: usize) -> usize {
        // A server that wants no requests now wants no more connections either; it says when that is over.
        if self.entries.iter().any(|it| it.carrier.is_some() && it.streams_max == 0) {
            return 0;
        }
        let live = self.entries.iter().filter(|it| it.carrier.is_some()).count() + self.opening;
        let more = match self.protocol {
            Protocol::Http2 => CONNECTIONS_MAX.saturating_sub(live).min(1_usize.saturating_sub(self.opening)),
            Protocol::Http1 => {
                let kept = if want == Want::Watch { HTTP1_CONNECTIONS_KEPT } else { 0 };
                let room = (HTTP1_CONNECTIONS_MAX - kept).saturating_sub(live);
                let at_once = HTTP1_OPENING_MAX.min(waiting).saturating_sub(self.opening);
                room.min(at_once)
            }
        };
        self.opening += more;
        more
    }

    /// A connection that was being opened is there, or could not be opened.
    pub fn end_opening(&mut self) {
        self.opening -= 1;
    }

    /// Adds a connection that was opened.
    pub fn add(&mut self, carrier: C, protocol: Protocol, flags: Flags, now: Instant) -> u64 {
        let id = self.opened;
        self.opened += 1;
        self.protocol = protocol;
        self.entries.push(Entry {
            id,
            carrier: Some(carrier),
            protocol,
            streams_max: 1,
            taken: 0,
            watches: 0,
            opened: now,
            idle_since: now,
            flags,
        });
        id
    }

    /// The server allows so many streams.
    pub fn allow(&mut self, id: u64, streams: usize) {
        if let Some(entry) = self.entry(id) {
            entry.streams_max = streams.min(STREAMS_MAX);
        }
    }

    /// The connection takes no more requests.
    pub fn leave(&mut self, id: u64) {
        if let Some(entry) = self.entry(id).filter(|it| it.carrier.is_some()) {
            entry.carrier = None;
            entry.flags.retire.raise();
            self.cut_oldest_leaving();
        }
    }

    /// Every connection that is older than `age` takes no more requests.
    pub fn leave_older(&mut self, age: Duration, now: Instant) {
        let old = |it: &&Entry<C>| now.saturating_duration_since(it.opened) >= age;
        let old: Vec<u64> = self.entries.iter().filter(old).map(|it| it.id).collect();
        old.into_iter().for_each(|id| self.leave(id));
    }

    /// The connection takes no more requests if it had none for so long, and is not the oldest.
    pub fn leave_if_idle(&mut self, id: u64, span: Duration, now: Instant) {
        let oldest = self.entries.iter().find(|it| it.carrier.is_some()).map(|it| it.id);
        let idle = |it: &&mut Entry<C>| it.taken == 0 && now.saturating_duration_since(it.idle_since) >= span;
        if oldest != Some(id) && self.entry(id).filter(idle).is_some() {
            self.leave(id);
        }
    }

    /// The connection is closed.
    pub fn remove(&mut self, id: u64) {
        let before = self.entries.len();
        self.entries.retain(|it| it.id != id);
        self.closed += (before - self.entries.len()) as u64;
    }

    pub fn stats(&self) -> PoolStats {
        PoolStats {
            connections: self.entries.len(),
            streams: self.entries.iter().map(|it| it.taken).sum(),
            opened: self.opened,
            closed: self.closed,
        }
    }

    fn entry(&mut self, id: u64) -> Option<&mut Entry<C>> {
        self.entries.iter_mut().find(|it| it.id == id)
    }

    fn http1_watches(&self) -> usize {
        self.entries.iter().filter(|it| it.protocol == Protocol::Http1).map(|it| it.watches).sum()
    }

    /// Cuts connections that take no more requests and still have streams, the oldest first.
    fn cut_oldest_leaving(&mut self) {
        let leaving = self.entries.iter().filter(|it| it.carrier.is_none());
        let over = leaving.clone().count().saturating_sub(LEAVING_MAX);
        leaving.take(over).for_each(|it| it.flags.cut.raise());
    }
}

impl<C> Entry<C> {
    /// How many streams the connection may have when one more for `want` is added.
    fn seats(&self, want: Want) -> usize {
        let kept = match (want, self.streams_max) {
            (Want::Ordinary, _) | (_, 0 | 1) => 0,
            (Want::Watch, streams) => (streams / SEATS_KEPT_ONE_IN).max(1),
        };
        self.streams_max - kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Instant {
        forebay_rt::Clock::manual(0).0.now()
    }

    fn book(streams: &[usize]) -> Book<()> {
        let mut book = Book::new();
        for streams in streams {
            let id = book.add((), Protocol::Http2, Flags::default(), now());
            book.allow(id, *streams);
        }
        book
    }

    /// Takes seats until there is none: on which connections, each with how many.
    fn fill(book: &mut Book<()>, want: Want) -> Vec<(u64, usize)> {
        let mut taken: Vec<(u64, usize)> = Vec::new();
        while let Some((id, ())) = book.take(want) {
            match taken.last_mut() {
                Some((last, count)) if *last == id => *count += 1,
                _ => taken.push((id, 1)),
            }
        }
        taken
    }

    #[test]
    fn the_oldest_connection_is_filled_first_and_watches_leave_seats_to_ordinary_requests() {
        let mut book = book(&[100, 250]);
        assert_eq!(fill(&mut book, Want::Watch), [(0, 96), (1, 240)]);
        assert_eq!(fill(&mut book, Want::Ordinary), [(0, 4), (1, 10)]);
        book.release(0, Want::Ordinary, now());
        assert_eq!(book.take(Want::Watch), None);
        book.release(1, Want::Watch, now());
        assert_eq!(book.take(Want::Ordinary), Some((0, ())));
    }

    #[test]
    fn a_thousand_watches_are_five_connections_at_forebay_and_eleven_at_kube_apiserver() {
        for (streams, connections) in [(250, 5), (100, 11)] {
            let mut book = book(&[]);
            for _ in 0..1_000 {
                if book.take(Want::Watch).is_none() {
                    let id = book.add((), Protocol::Http2, Flags::default(), now());
                    book.allow(id, streams);
                    assert!(book.take(Want::Watch).is_some());
                }
            }
            assert_eq!(book.stats().connections, connections);
        }
    }

    #[test]
    fn a_limit_of_one_or_none_is_kept_to_and_one_that_changes_counts() {
        let mut book = book(&[0, 1, 2]);
        assert_eq!(fill(&mut book, Want::Watch), [(1, 1), (2, 1)]);
        book.allow(0, usize::MAX);
        assert_eq!(fill(&mut book, Want::Ordinary), [(0, STREAMS_MAX), (2, 1)]);
        book.allow(0, 10);
        book.release(0, Want::Ordinary, now());
        assert_eq!(book.take(Want::Ordinary), None);
    }

    #[test]
    fn one_http2_connection_is_opened_at_a_time_and_no_more_than_the_limit() {
        let mut book = book(&[]);
        assert_eq!((book.begin_opening(Want::Watch, 500), book.begin_opening(Want::Ordinary, 1)), (1, 0));
        book.end_opening();
        for _ in 0..CONNECTIONS_MAX {
            assert_eq!(book.begin_opening(Want::Ordinary, 9), 1);
            book.end_opening();
            book.add((), Protocol::Http2, Flags::default(), now());
        }
        assert_eq!(book.begin_opening(Want::Ordinary, 9), 0);
        book.allow(2, 0);
        book.leave(3);
        assert_eq!(book.begin_opening(Want::Ordinary, 9), 0);
        book.leave(2);
        assert_eq!(book.begin_opening(Want::Ordinary, 9), 1);
    }

    #[test]
    fn http1_connections_are_opened_several_at_a_time_and_watches_leave_some_to_ordinary_requests() {
        let mut book: Book<()> = Book::new();
        let add = |book: &mut Book<()>| {
            book.end_opening();
            book.add((), Protocol::Http1, Flags::default(), now());
        };
        assert_eq!(book.begin_opening(Want::Watch, 3), 1);
        add(&mut book);
        assert_eq!((book.begin_opening(Want::Watch, 3), book.begin_opening(Want::Watch, 5)), (3, 2));
        (0..5).for_each(|_| add(&mut book));
        assert_eq!(book.begin_opening(Want::Watch, 900), HTTP1_OPENING_MAX);
        (0..HTTP1_OPENING_MAX).for_each(|_| add(&mut book));
        while book.begin_opening(Want::Watch, 1) == 1 {
            add(&mut book);
        }
        let for_watches = HTTP1_CONNECTIONS_MAX - HTTP1_CONNECTIONS_KEPT;
        assert_eq!(book.stats().connections, for_watches);
        assert_eq!(fill(&mut book, Want::Watch).len(), for_watches);
        assert_eq!(book.begin_opening(Want::Ordinary, 1), 1);
        add(&mut book);
        assert_eq!((book.take(Want::Watch), book.take(Want::Ordinary).is_some()), (None, true));
    }

    #[test]
    fn one_that_leaves_takes_nobody_and_the_oldest_of_too_many_is_cut() {
        let mut book = book(&[10; LEAVING_MAX + 1]);
        let flags: Vec<Flags> = book.entries.iter().map(|it| it.flags.clone()).collect();
        assert_eq!(book.take(Want::Watch), Some((0, ())));
        for id in 0..LEAVING_MAX as u64 {
            book.leave(id);
        }
        assert_eq!(book.take(Want::Watch), Some((LEAVING_MAX as u64, ())));
        assert!(flags[0].retire.is_raised() && !flags[0].cut.is_raised());
        book.leave(LEAVING_MAX as u64);
        assert!(flags[0].cut.is_raised() && !flags[1].cut.is_raised());
        book.release(0, Want::Watch, now());
        book.remove(0);
        book.remove(0);
        let stats =
            PoolStats { connections: LEAVING_MAX, streams: 1, opened: LEAVING_MAX as u64 + 1, closed: 1 };
        assert_eq!(book.stats(), stats);
    }

    #[test]
    fn idle_ones_leave_but_the_oldest_and_so_do_old_ones_when_asked() {
        let (mut book, began, second) = (book(&[10, 10, 10]), now(), Duration::from_secs(1));
        assert_eq!(fill(&mut book, Want::Ordinary), [(0, 10), (1, 10), (2, 10)]);
        (0..10).for_each(|_| book.release(1, Want::Ordinary, began));
        (0..10).for_each(|_| book.release(0, Want::Ordinary, began));
        for (id, at) in [(0, 9), (1, 4), (2, 9)] {
            book.leave_if_idle(id, 5 * second, began + at * second);
            assert!(book.entries[id as usize].carrier.is_some(), "{id} after {at}");
        }
        book.leave_if_idle(1, 5 * second, began + 5 * second);
        assert!(book.entries[1].carrier.is_none());
        book.leave_older(3600 * second, began + 9 * second);
        assert!(book.entries[0].carrier.is_some());
        book.leave_older(5 * second, began + 3600 * second);
        assert!(book.entries.iter().all(|it| it.carrier.is_none()));
    }
}
