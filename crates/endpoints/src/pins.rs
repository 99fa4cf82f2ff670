//! The answers that are being read, and what becomes of those that nobody reads on.
//!
//! A LIST pins a snapshot for as long as its client reads. One that takes nothing for [`STALL_WAIT`] loses it, and is
//! reset, never ended as if it were whole. A WATCH holds its place for as long as it likes: it is reset after the same
//! time only when there is nothing left to come back for.
//!
//! Owner: each source belongs to its body, and to the thread that makes a piece for it; the reaper takes it away under the
//! same lock.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use forebay_rt::{Background, Clock, Duration, Instant};
use forebay_transport::ResponseChannel;
use forebay_transport::limits::{MADE_BYTES, PIECE_BYTES, STALL_PERIOD, STALL_WAIT};

use crate::apart::Place;
use crate::source::Source;

/// All answers that are being read. Cheap to clone.
#[derive(Clone)]
pub struct Pins {
    clock: Clock,
    // One entry an answer, oldest first; those of finished ones go when the reaper passes.
    all: Arc<Mutex<Vec<Begun>>>,
    // Those that were let go of.
    let_go: Arc<LetGo>,
}

/// How many answers were let go of since the start, and why.
#[derive(Debug, Default)]
struct LetGo {
    stalled: AtomicU64,
    short_of_memory: AtomicU64,
}

/// What is to be told of the answers that are being read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pinning {
    pub open: usize,
    /// Since the oldest of them was begun.
    pub oldest: Duration,
    pub stalled: u64,
    pub short_of_memory: u64,
}

/// An answer, and since when it is being read.
type Begun = (Instant, Weak<dyn Stalls>);

/// An answer that may stall.
pub trait Stalls: Send + Sync {
    /// Lets go of what it holds and breaks off, if its client has taken nothing since `since` and it is not to wait on.
    fn let_go(&self, since: Instant, why: Why) -> bool;
}

/// Why an answer is to be let go of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    Stalled,
    ShortOfMemory,
}

/// One LIST that is being read.
pub struct Pinned {
    state: Arc<List>,
    place: Place,
    making: Option<Making>,
    clock: Clock,
    // How long the piece was that was made last: what is handed out are slices of it.
    made_bytes: usize,
}

/// A piece; `None` behind the last.
type Made = Result<Option<Bytes>, Stalled>;

/// A piece that is made apart.
struct Making {
    piece: Background<Made>,
    // How much its reader is given at once.
    give_max: usize,
}

struct List {
    channel: ResponseChannel,
    reading: Mutex<Reading>,
}

struct Reading {
    // `None` once it is complete or taken away.
    source: Option<Box<dyn Source>>,
    // Of the last piece that was made, what was not handed out yet.
    made: Bytes,
    touched: Instant,
    // Its reader waits for a piece, which is made in its turn.
    is_waiting: bool,
}

/// The reader took too long.
#[derive(Debug, thiserror::Error)]
#[error("the reader took nothing for too long")]
pub struct Stalled;

impl Pins {
    pub fn new(clock: Clock) -> Pins {
        Pins { clock, all: Arc::default(), let_go: Arc::default() }
    }

    /// Watches over the reading of `source`, whose pieces are made at `place` and written to `channel`.
    pub fn pin(&self, source: Box<dyn Source>, place: Place, channel: &ResponseChannel) -> Pinned {
        let reading = Reading {
            source: Some(source),
            made: Bytes::new(),
            touched: self.clock.now(),
            is_waiting: false,
        };
        let state = Arc::new(List { channel: channel.clone(), reading: Mutex::new(reading) });
        self.watch_over(&state);
        Pinned { state, place, making: None, clock: self.clock.clone(), made_bytes: 0 }
    }

    /// Watches over `answer` until it is dropped.
    pub fn watch_over<S: Stalls + 'static>(&self, answer: &Arc<S>) {
        let answer: Weak<S> = Arc::downgrade(answer);
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push((self.clock.now(), answer));
    }

    /// Ends what has stalled, for ever.
    pub async fn reap(self) {
        loop {
            self.clock.sleep(STALL_PERIOD).await;
            self.reap_once();
        }
    }

    /// Ends answers whose readers have taken nothing for `wait`, at most `max` of them, those that were begun first. How
    /// many there were.
    pub fn let_go_of(&self, wait: Duration, max: usize) -> usize {
        let Some(since) = self.clock.now().checked_sub(wait) else { return 0 };
        let stalled = |(_, answer): &&(Instant, Arc<dyn Stalls>)| answer.let_go(since, Why::Stalled);
        let count = self.open().iter().filter(stalled).take(max).count();
        self.let_go.stalled.fetch_add(count as u64, Ordering::Relaxed);
        count
    }

    /// Ends some of the answers, at least one in eight of those that were begun `age` ago or before, however their readers
    /// get on: those that were begun first.
    pub fn let_go_of_oldest(&self, age: Duration) -> usize {
        let now = self.clock.now();
        let mut open = self.open();
        open.retain(|(begun, _)| now.duration_since(*begun) >= age);
        let some = open.len().div_ceil(8);
        let count =
            open.iter().filter(|(_, answer)| answer.let_go(now, Why::ShortOfMemory)).take(some).count();
        self.let_go.short_of_memory.fetch_add(count as u64, Ordering::Relaxed);
        count
    }

    /// What there is, and what became of others.
    pub fn told(&self) -> Pinning {
        let (open, now) = (self.open(), self.clock.now());
        Pinning {
            open: open.len(),
            oldest: open.first().map_or(Duration::ZERO, |(begun, _)| now.duration_since(*begun)),
            stalled: self.let_go.stalled.load(Ordering::Relaxed),
            short_of_memory: self.let_go.short_of_memory.load(Ordering::Relaxed),
        }
    }

    /// The answers that are being read, oldest first.
    fn open(&self) -> Vec<(Instant, Arc<dyn Stalls>)> {
        let mut open = Vec::new();
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(begun, answer)| {
            let answer = answer.upgrade();
            let is_open = answer.is_some();
            open.extend(answer.map(|answer| (*begun, answer)));
            is_open
        });
        // Of thousands of writes a second the answers of some seconds were here.
        if all.len() * 4 < all.capacity() {
            let room = all.len() * 2;
            all.shrink_to(room);
        }
        open
    }

    fn reap_once(&self) {
        let stalled = self.let_go_of(STALL_WAIT, usize::MAX);
        if stalled > 0 {
            tracing::info!(answers = stalled, "let go of answers that nobody reads on");
        }
    }
}

impl Stalls for List {
    fn let_go(&self, since: Instant, why: Why) -> bool {
        // One that is locked is being read, or made, just now.
        let Ok(mut reading) = self.reading.try_lock() else { return false };
        if reading.is_waiting && why == Why::Stalled {
            return false;
        }
        let touched = self.channel.wrote_at().map_or(reading.touched, |at| at.max(reading.touched));
        let taken = if touched <= since { reading.source.take() } else { None };
        if taken.is_some() {
            reading.made = Bytes::new();
        }
        drop(reading);
        if taken.is_some() {
            self.channel.abort();
        }
        taken.is_some()
    }
}

impl Pinned {
    /// The next piece; `None` when it is complete, an empty one when others are to have their turn first. A stream that is not
    /// quick is given a long one in parts: how far its reader is shows only in what it asks for, where a connection's socket says it.
    ///
    /// # Errors
    /// [`Stalled`], once.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Made> {
        if self.making.is_none() && self.place == Place::Apart {
            self.making = self.begin();
        }
        let Some(Making { piece, give_max }) = &mut self.making else {
            return Poll::Ready(self.next(None));
        };
        let (made, give_max) = (ready!(Pin::new(piece).poll(cx)), *give_max);
        self.making = None;
        Poll::Ready(self.next(made.map(|made| (made, give_max))))
    }

    /// Has a piece made, unless there is one.
    fn begin(&self) -> Option<Making> {
        let mut reading = self.state.reading();
        if !reading.made.is_empty() {
            return None;
        }
        reading.is_waiting = true;
        let give_max = self.give_max(&reading);
        drop(reading);
        let (state, clock) = (self.state.clone(), self.clock.clone());
        let piece = forebay_rt::apart(move || {
            let mut reading = state.reading();
            let made = reading.make();
            // How long this took says nothing of the reader.
            reading.touched = clock.now();
            reading.is_waiting = false;
            made
        });
        Some(Making { piece, give_max })
    }

    /// How much is given at once to who comes now.
    fn give_max(&self, reading: &Reading) -> usize {
        self.state.channel.body_bytes_at_once(|| self.clock.now().duration_since(reading.touched))
    }

    /// - `made`: apart, and how much is given at once to who came for it.
    fn next(&mut self, made: Option<(Made, usize)>) -> Made {
        let mut reading = self.state.reading();
        if reading.source.is_none() {
            return Err(Stalled);
        }
        let (made, give_max) =
            made.map_or_else(|| (None, self.give_max(&reading)), |(made, give_max)| (Some(made), give_max));
        if reading.made.is_empty() {
            let Some(made) = made.unwrap_or_else(|| reading.make())? else { return Ok(None) };
            self.made_bytes = made.len();
            reading.made = made;
        }
        let bytes = reading.made.len().min(give_max);
        let piece = reading.made.split_to(bytes);
        reading.touched = self.clock.now();
        Ok(Some(piece))
    }

    /// Bytes of the piece that was made last, whose parts are handed out.
    pub fn made_bytes(&self) -> usize {
        self.made_bytes
    }
}

impl List {
    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reading {
    /// The next piece, of which there may be nothing yet.
    fn make(&mut self) -> Made {
        // A panic takes it along: nothing is read behind a gap.
        let mut source = self.source.take().ok_or(Stalled)?;
        let mut out = Vec::with_capacity(MADE_BYTES);
        let more = source.fill(&mut out);
        self.source = Some(source);
        if !more && out.is_empty() {
            return Ok(None);
        }
        if out.len() <= PIECE_BYTES {
            // HTTP/2 may have it for as long as its client likes.
            out.shrink_to_fit();
        }
        Ok(Some(Bytes::from(out)))
    }
}

#[cfg(test)]
mod tests {
    use std::thread::ThreadId;

    use forebay_transport::limits::QUICK;
    use futures_util::FutureExt as _;

    use super::*;
    use crate::source::testing::Pieces;

    impl Pinned {
        async fn piece(&mut self) -> Made {
            std::future::poll_fn(|cx| self.poll_next(cx)).await
        }

        /// What takes little effort is there at once.
        fn now(&mut self) -> Made {
            self.piece().now_or_never().expect("at once")
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stalls_loses_its_source_and_is_cut() {
        let clock = Clock::system();
        clock.sleep(STALL_WAIT).await;
        let pins = Pins::new(clock.clone());
        let source = || Box::new(Pieces::of(&[b"a", b"", b"b"]));
        let channel = ResponseChannel::stream();
        let mut slow = pins.pin(source(), Place::Here, &channel);
        let mut fast = pins.pin(source(), Place::Here, &ResponseChannel::default());
        assert_eq!(slow.now().ok().flatten().as_deref(), Some(b"a".as_slice()));
        clock.sleep(STALL_WAIT - Duration::from_secs(1)).await;
        pins.reap_once();
        assert_eq!(fast.now().ok().flatten().as_deref(), Some(b"a".as_slice()));
        clock.sleep(Duration::from_secs(1)).await;
        pins.reap_once();
        assert!(slow.now().is_err());
        assert_eq!(channel.clone().carry(std::future::pending::<()>()).await, None);
        assert_eq!(fast.now().ok().flatten().as_deref(), Some(b"".as_slice()), "others first");
        assert_eq!(fast.now().ok().flatten().as_deref(), Some(b"b".as_slice()));
        assert_eq!(fast.now().ok().flatten(), None);
        drop((slow, fast));
        pins.reap_once();
        assert_eq!(pins.all.lock().expect("not poisoned").capacity(), 0);
    }

    #[tokio::test]
    async fn who_waits_for_a_piece_has_not_stalled_and_who_leaves_takes_it_along() {
        let (clock, pins) = (Clock::system(), Pins::new(Clock::system()));
        // Both threads have something to do until that is dropped.
        let (begin, begun): (Vec<_>, Vec<_>) = (0..2).map(|_| std::sync::mpsc::sync_channel::<()>(0)).unzip();
        let busy: Vec<_> = begun.into_iter().map(|end| forebay_rt::apart(move || end.recv())).collect();
        let pinned =
            || pins.pin(Box::new(Pieces::of(&[b"a", b"b"])), Place::Apart, &ResponseChannel::default());
        let (mut waits, mut leaves, mut short) = (pinned(), pinned(), pinned());
        for reader in [&mut waits, &mut leaves, &mut short] {
            assert!(reader.piece().now_or_never().is_none());
        }
        let now = clock.now();
        assert!(!waits.state.let_go(now, Why::Stalled) && short.state.let_go(now, Why::ShortOfMemory));
        let left = Arc::downgrade(&leaves.state);
        drop(leaves);
        assert!(left.upgrade().is_none());
        drop(begin);
        assert_eq!(waits.piece().await.ok().flatten().as_deref(), Some(b"a".as_slice()));
        assert!(short.piece().await.is_err());
        // It was made, and nobody comes for it.
        assert!(waits.state.let_go(clock.now(), Why::Stalled));
        drop(busy);
    }

    #[tokio::test(start_paused = true)]
    async fn the_reader_of_a_stream_that_takes_a_part_of_a_long_piece_goes_on() {
        let clock = Clock::system();
        clock.sleep(STALL_WAIT).await;
        let pins = Pins::new(clock.clone());
        let long: Vec<u8> = (0..4 * PIECE_BYTES).map(|at| (at / PIECE_BYTES) as u8).collect();
        let channel = ResponseChannel::stream();
        let mut reader = pins.pin(Box::new(Pieces::of(&[&long[..], b"end"])), Place::Here, &channel);
        let mut taken = Vec::new();
        clock.sleep(QUICK).await;
        for _ in 0..4 {
            let part = reader.now().expect("it goes on").expect("there is more");
            assert_eq!((part.len(), reader.made_bytes()), (PIECE_BYTES, 4 * PIECE_BYTES));
            taken.extend_from_slice(&part);
            clock.sleep(STALL_WAIT - Duration::from_secs(1)).await;
            pins.reap_once();
        }
        assert!(taken == long);
        assert_eq!(reader.now().ok().flatten().as_deref(), Some(b"end".as_slice()));
        // Who comes back at once is given more.
        let long = vec![b'a'; 2 * MADE_BYTES];
        let mut quick = pins.pin(Box::new(Pieces::of(&[&long[..]])), Place::Here, &ResponseChannel::stream());
        assert_eq!(quick.now().ok().flatten().map(|part| part.len()), Some(MADE_BYTES));
        clock.sleep(QUICK).await;
        assert_eq!(quick.now().ok().flatten().map(|part| part.len()), Some(PIECE_BYTES));
        assert_eq!(reader.now().ok().flatten(), None);
    }

    /// Pieces, and on which thread each was made.
    struct Told(Pieces, Arc<Mutex<Vec<ThreadId>>>);

    impl Source for Told {
        fn fill(&mut self, out: &mut Vec<u8>) -> bool {
            self.1.lock().expect("not poisoned").push(std::thread::current().id());
            assert!(self.0.0.front().is_none_or(|piece| piece != b"panic"), "as it should");
            self.0.fill(out)
        }
    }

    #[tokio::test]
    async fn a_piece_that_takes_long_is_made_on_another_thread_and_a_panic_is_no_end() {
        for (place, is_here) in [(Place::Here, true), (Place::Apart, false)] {
            let (pins, threads) = (Pins::new(Clock::system()), Arc::default());
            let pieces: &[&[u8]] = if is_here { &[b"a", b"", b"b"] } else { &[b"a", b"", b"b", b"panic"] };
            let mut reader = pins.pin(
                Box::new(Told(Pieces::of(pieces), Arc::clone(&threads))),
                place,
                &ResponseChannel::default(),
            );
            for want in ["a", "", "b"] {
                assert_eq!(reader.piece().await.ok().flatten().as_deref(), Some(want.as_bytes()));
            }
            assert_eq!(reader.piece().await.is_ok_and(|end| end.is_none()), is_here);
            assert_eq!(reader.piece().await.is_ok(), is_here, "nothing comes behind a gap");
            let here = std::thread::current().id();
            let threads = threads.lock().expect("not poisoned");
            assert!(threads.len() >= 4 && threads.iter().all(|thread| (*thread == here) == is_here));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_made_goes_with_its_source() {
        let clock = Clock::system();
        let pins = Pins::new(clock.clone());
        let mut reader = pins.pin(
            Box::new(Pieces::of(&[&[b'a'; 2 * PIECE_BYTES][..]])),
            Place::Here,
            &ResponseChannel::default(),
        );
        assert!(reader.now().is_ok_and(|part| part.is_some()));
        clock.sleep(STALL_WAIT).await;
        assert_eq!(pins.let_go_of(STALL_WAIT, usize::MAX), 1);
        assert!(reader.state.reading.lock().expect("not poisoned").made.is_empty());
        assert!(reader.now().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn when_memory_is_short_the_oldest_readers_go_first_and_the_young_stay() {
        let clock = Clock::system();
        clock.sleep(STALL_WAIT).await;
        let pins = Pins::new(clock.clone());
        let mut old: Vec<Pinned> = (0..9)
            .map(|_| pins.pin(Box::new(Pieces::of(&[b"a", b"b"])), Place::Here, &ResponseChannel::default()))
            .collect();
        clock.sleep(Duration::from_secs(10)).await;
        let mut young =
            pins.pin(Box::new(Pieces::of(&[b"a", b"b"])), Place::Here, &ResponseChannel::default());
        for reader in old.iter_mut().chain([&mut young]) {
            assert!(reader.now().is_ok());
        }
        let age = Duration::from_secs(10);
        assert_eq!(pins.let_go_of_oldest(age), 2, "one in eight");
        assert_eq!(old.iter_mut().map(|reader| reader.now().is_ok()).position(|is_ok| is_ok), Some(2));
        for _ in 0..9 {
            pins.let_go_of_oldest(age);
        }
        assert!(old.iter_mut().all(|reader| reader.now().is_err()));
        assert!(young.now().is_ok());
        assert_eq!(pins.let_go_of(Duration::from_secs(1), usize::MAX), 0);
        clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(pins.let_go_of(Duration::from_secs(1), usize::MAX), 1);
        let told = pins.told();
        assert_eq!(
            (told.open, told.oldest),
            (10, Duration::from_secs(11)),
            "who has them has not asked again"
        );
        assert_eq!((told.stalled, told.short_of_memory), (1, 9));
    }
}
