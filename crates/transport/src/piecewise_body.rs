//! Bodies that are made piece by piece, as they are read: by the task that sends them, or on a thread for
//! what takes long.
//!
//! In: a [`BodySource`], and the channel that its pieces go to. Out: its pieces; or an error, when its reader
//! has [stalled](crate::StalledReaders). Never: makes a piece before it is asked for.
//!
//! Owner of a source: its body, and the thread that makes a piece for it. Whoever takes it away does so under
//! the same lock.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use forebay_rt::{Background, Clock, Instant};

use crate::limits::{MADE_BYTES, PIECE_BYTES};
use crate::response_channel::ResponseChannel;
use crate::stalled_readers::{LetGoFor, StalledReaders, Stalls};

/// Something that is read piece by piece.
pub trait BodySource: Send {
    /// Appends about [`CHUNK_BYTES`](crate::limits::CHUNK_BYTES) to `out`, and returns whether there may be
    /// more. It may append nothing, so that others have their turn, where it has worked for long without a
    /// result.
    fn fill(&mut self, out: &mut Vec<u8>) -> bool;

    /// The next piece by itself, of which there may be nothing yet; `None` at the end.
    fn piece(&mut self) -> Option<Bytes> {
        let mut out = Vec::with_capacity(MADE_BYTES);
        let more = self.fill(&mut out);
        if !more && out.is_empty() {
            return None;
        }
        if out.len() <= PIECE_BYTES {
            // HTTP/2 may hold the piece for as long as its client likes.
            out.shrink_to_fit();
        }
        Some(Bytes::from(out))
    }

    /// The same, if it was made before and there is something in it.
    fn made(&mut self) -> Option<Bytes> {
        None
    }
}

/// Where the pieces of a body are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOn {
    /// In the task itself: a piece takes less than a millisecond, or is not known to take more.
    Task,
    /// On a [thread for such work](forebay_rt::apart).
    Thread,
}

/// A body that is made piece by piece, as it is read.
pub struct PiecewiseBody {
    state: Arc<State>,
    run_on: RunOn,
    making: Option<Making>,
    clock: Clock,
    // The length of the piece that was made last. What is handed out are slices of it.
    made_bytes: usize,
}

/// A piece; `None` after the last.
type Made = Result<Option<Bytes>, Stalled>;

/// A piece that is made on a thread.
struct Making {
    piece: Background<Made>,
    // How many bytes the reader is given at once.
    give_max: usize,
}

struct State {
    channel: ResponseChannel,
    reading: Mutex<Reading>,
}

struct Reading {
    // `None` once it is complete or taken away.
    source: Option<Box<dyn BodySource>>,
    // The part of the last piece that was not handed out yet.
    made: Bytes,
    touched: Instant,
    // The reader waits for a piece, which has not been made yet.
    is_waiting: bool,
}

/// The reader took too long.
#[derive(Debug, thiserror::Error)]
#[error("the reader took nothing for too long")]
pub struct Stalled;

impl PiecewiseBody {
    /// The body that `source` makes, for an answer that goes to `channel`.
    pub fn new(
        source: Box<dyn BodySource>,
        run_on: RunOn,
        (readers, channel): (&StalledReaders, &ResponseChannel),
    ) -> PiecewiseBody {
        let reading = Reading {
            source: Some(source),
            made: Bytes::new(),
            touched: readers.clock.now(),
            is_waiting: false,
        };
        let state = Arc::new(State { channel: channel.clone(), reading: Mutex::new(reading) });
        readers.watch_over(&state);
        PiecewiseBody { state, run_on, making: None, clock: readers.clock.clone(), made_bytes: 0 }
    }
}

impl Stalls for State {
    fn let_go(&self, since: Instant, why: LetGoFor) -> bool {
        // While it is locked, a piece is being read or made: its reader has not stalled.
        let Ok(mut reading) = self.reading.try_lock() else { return false };
        if reading.is_waiting && why == LetGoFor::Stalled {
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

impl PiecewiseBody {
    /// The next piece. `None` when the body is complete; an empty piece when others are to have their turn
    /// first. A slow stream of HTTP/2 is given a long piece in parts: how far its reader has come shows only
    /// in what it asks for. A connection of HTTP/1.1 is told that by its socket.
    ///
    /// # Errors
    /// [`Stalled`], once.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Made> {
        if self.making.is_none() && self.run_on == RunOn::Thread {
            self.making = self.begin();
        }
        let Some(Making { piece, give_max }) = &mut self.making else {
            return Poll::Ready(self.next(None));
        };
        let (made, give_max) = (ready!(Pin::new(piece).poll(cx)), *give_max);
        self.making = None;
        Poll::Ready(self.next(made.map(|made| (made, give_max))))
    }

    /// Begins to make a piece, unless there is one, or it was made for another.
    fn begin(&mut self) -> Option<Making> {
        let mut reading = self.state.reading();
        if !reading.made.is_empty() {
            return None;
        }
        if let Some(made) = reading.source.as_mut().and_then(|source| source.made()) {
            self.made_bytes = made.len();
            reading.made = made;
            return None;
        }
        reading.is_waiting = true;
        let give_max = self.give_max(&reading);
        drop(reading);
        let (state, clock) = (self.state.clone(), self.clock.clone());
        let piece = forebay_rt::apart(move || {
            let mut reading = state.reading();
            let made = reading.make();
            // The time that making a piece takes is not the reader's.
            reading.touched = clock.now();
            reading.is_waiting = false;
            made
        });
        Some(Making { piece, give_max })
    }

    /// How much is given at once to a reader that asks now.
    fn give_max(&self, reading: &Reading) -> usize {
        self.state.channel.body_bytes_at_once(|| self.clock.now().duration_since(reading.touched))
    }

    /// - `made`: a piece that was made on a thread, and how much of it is given at once to the reader that
    ///   asked for it.
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

    /// Who reads it, to be let go of.
    pub fn reader(&self) -> Weak<dyn Stalls> {
        let state: Weak<State> = Arc::downgrade(&self.state);
        state
    }

    /// Bytes of the piece that was made last, whose parts are handed out.
    pub fn made_bytes(&self) -> usize {
        self.made_bytes
    }
}

impl State {
    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reading {
    /// The next piece, of which there may be nothing yet.
    fn make(&mut self) -> Made {
        // Taken out while it works, so that after a panic nothing is read behind a gap.
        let mut source = self.source.take().ok_or(Stalled)?;
        let piece = source.piece();
        self.source = Some(source);
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use std::thread::ThreadId;

    use std::collections::VecDeque;

    use forebay_rt::Duration;
    use futures_util::FutureExt as _;

    use super::*;
    use crate::limits::{QUICK, STALL_WAIT};

    /// `pieces`, one at a time.
    struct Pieces(VecDeque<Vec<u8>>);

    impl Pieces {
        fn of(pieces: &[&[u8]]) -> Pieces {
            Pieces(pieces.iter().map(|piece| piece.to_vec()).collect())
        }
    }

    impl BodySource for Pieces {
        fn fill(&mut self, out: &mut Vec<u8>) -> bool {
            let piece = self.0.pop_front();
            out.extend_from_slice(piece.as_deref().unwrap_or_default());
            piece.is_some()
        }
    }

    impl PiecewiseBody {
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
        let readers = StalledReaders::new(clock.clone());
        let source = || Box::new(Pieces::of(&[b"a", b"", b"b"]));
        let channel = ResponseChannel::stream();
        let mut slow = PiecewiseBody::new(source(), RunOn::Task, (&readers, &channel));
        let mut fast = PiecewiseBody::new(source(), RunOn::Task, (&readers, &ResponseChannel::default()));
        assert_eq!(slow.now().ok().flatten().as_deref(), Some(b"a".as_slice()));
        clock.sleep(STALL_WAIT - Duration::from_secs(1)).await;
        readers.end_once();
        assert_eq!(fast.now().ok().flatten().as_deref(), Some(b"a".as_slice()));
        clock.sleep(Duration::from_secs(1)).await;
        readers.end_once();
        assert!(slow.now().is_err());
        assert_eq!(channel.clone().carry(std::future::pending::<()>()).await, None);
        assert_eq!(fast.now().ok().flatten().as_deref(), Some(b"".as_slice()), "others first");
        assert_eq!(fast.now().ok().flatten().as_deref(), Some(b"b".as_slice()));
        assert_eq!(fast.now().ok().flatten(), None);
        drop((slow, fast));
        readers.end_once();
        assert_eq!(readers.all.lock().expect("not poisoned").capacity(), 0);
    }

    #[tokio::test]
    async fn who_waits_for_a_piece_has_not_stalled_and_who_leaves_takes_it_along() {
        let (clock, readers) = (Clock::system(), StalledReaders::new(Clock::system()));
        // Both threads have something to do until that is dropped.
        let (begin, begun): (Vec<_>, Vec<_>) = (0..2).map(|_| std::sync::mpsc::sync_channel::<()>(0)).unzip();
        let busy: Vec<_> = begun.into_iter().map(|end| forebay_rt::apart(move || end.recv())).collect();
        let pinned = || {
            PiecewiseBody::new(
                Box::new(Pieces::of(&[b"a", b"b"])),
                RunOn::Thread,
                (&readers, &ResponseChannel::default()),
            )
        };
        let (mut waits, mut leaves, mut short) = (pinned(), pinned(), pinned());
        for reader in [&mut waits, &mut leaves, &mut short] {
            assert!(reader.piece().now_or_never().is_none());
        }
        let now = clock.now();
        assert!(
            !waits.state.let_go(now, LetGoFor::Stalled) && short.state.let_go(now, LetGoFor::ShortOfMemory)
        );
        let left = Arc::downgrade(&leaves.state);
        drop(leaves);
        assert!(left.upgrade().is_none());
        drop(begin);
        assert_eq!(waits.piece().await.ok().flatten().as_deref(), Some(b"a".as_slice()));
        assert!(short.piece().await.is_err());
        // It was made, and nobody comes for it.
        assert!(waits.state.let_go(clock.now(), LetGoFor::Stalled));
        drop(busy);
    }

    #[tokio::test(start_paused = true)]
    async fn the_reader_of_a_stream_that_takes_a_part_of_a_long_piece_goes_on() {
        let clock = Clock::system();
        clock.sleep(STALL_WAIT).await;
        let readers = StalledReaders::new(clock.clone());
        let long: Vec<u8> = (0..4 * PIECE_BYTES).map(|at| (at / PIECE_BYTES) as u8).collect();
        let channel = ResponseChannel::stream();
        let mut reader =
            PiecewiseBody::new(Box::new(Pieces::of(&[&long[..], b"end"])), RunOn::Task, (&readers, &channel));
        let mut taken = Vec::new();
        clock.sleep(QUICK).await;
        for _ in 0..4 {
            let part = reader.now().expect("it goes on").expect("there is more");
            assert_eq!((part.len(), reader.made_bytes()), (PIECE_BYTES, 4 * PIECE_BYTES));
            taken.extend_from_slice(&part);
            clock.sleep(STALL_WAIT - Duration::from_secs(1)).await;
            readers.end_once();
        }
        assert!(taken == long);
        assert_eq!(reader.now().ok().flatten().as_deref(), Some(b"end".as_slice()));
        // Who comes back at once is given more.
        let long = vec![b'a'; 2 * MADE_BYTES];
        let mut quick = PiecewiseBody::new(
            Box::new(Pieces::of(&[&long[..]])),
            RunOn::Task,
            (&readers, &ResponseChannel::stream()),
        );
        assert_eq!(quick.now().ok().flatten().map(|part| part.len()), Some(MADE_BYTES));
        clock.sleep(QUICK).await;
        assert_eq!(quick.now().ok().flatten().map(|part| part.len()), Some(PIECE_BYTES));
        assert_eq!(reader.now().ok().flatten(), None);
    }

    /// Pieces, and on which thread each was made.
    struct Told(Pieces, Arc<Mutex<Vec<ThreadId>>>);

    impl BodySource for Told {
        fn fill(&mut self, out: &mut Vec<u8>) -> bool {
            self.1.lock().expect("not poisoned").push(std::thread::current().id());
            assert!(self.0.0.front().is_none_or(|piece| piece != b"panic"), "as it should");
            self.0.fill(out)
        }
    }

    #[tokio::test]
    async fn a_piece_that_takes_long_is_made_on_another_thread_and_a_panic_is_no_end() {
        for (run_on, is_here) in [(RunOn::Task, true), (RunOn::Thread, false)] {
            let (readers, threads) = (StalledReaders::new(Clock::system()), Arc::default());
            let pieces: &[&[u8]] = if is_here { &[b"a", b"", b"b"] } else { &[b"a", b"", b"b", b"panic"] };
            let mut reader = PiecewiseBody::new(
                Box::new(Told(Pieces::of(pieces), Arc::clone(&threads))),
                run_on,
                (&readers, &ResponseChannel::default()),
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
        let readers = StalledReaders::new(clock.clone());
        let mut reader = PiecewiseBody::new(
            Box::new(Pieces::of(&[&[b'a'; 2 * PIECE_BYTES][..]])),
            RunOn::Task,
            (&readers, &ResponseChannel::default()),
        );
        assert!(reader.now().is_ok_and(|part| part.is_some()));
        clock.sleep(STALL_WAIT).await;
        assert_eq!(readers.let_go_of(STALL_WAIT, usize::MAX), 1);
        assert!(reader.state.reading.lock().expect("not poisoned").made.is_empty());
        assert!(reader.now().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn when_memory_is_short_the_oldest_readers_go_first_and_the_young_stay() {
        let clock = Clock::system();
        clock.sleep(STALL_WAIT).await;
        let readers = StalledReaders::new(clock.clone());
        let mut old: Vec<PiecewiseBody> = (0..9)
            .map(|_| {
                PiecewiseBody::new(
                    Box::new(Pieces::of(&[b"a", b"b"])),
                    RunOn::Task,
                    (&readers, &ResponseChannel::default()),
                )
            })
            .collect();
        clock.sleep(Duration::from_secs(10)).await;
        let mut young = PiecewiseBody::new(
            Box::new(Pieces::of(&[b"a", b"b"])),
            RunOn::Task,
            (&readers, &ResponseChannel::default()),
        );
        for reader in old.iter_mut().chain([&mut young]) {
            assert!(reader.now().is_ok());
        }
        let age = Duration::from_secs(10);
        assert_eq!(readers.let_go_of_oldest(age), 2, "one in eight");
        assert_eq!(old.iter_mut().map(|reader| reader.now().is_ok()).position(|is_ok| is_ok), Some(2));
        for _ in 0..9 {
            readers.let_go_of_oldest(age);
        }
        assert!(old.iter_mut().all(|reader| reader.now().is_err()));
        assert!(young.now().is_ok());
        assert_eq!(readers.let_go_of(Duration::from_secs(1), usize::MAX), 0);
        clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(readers.let_go_of(Duration::from_secs(1), usize::MAX), 1);
        let totals = readers.totals();
        assert_eq!(
            (totals.open, totals.oldest),
            (10, Duration::from_secs(11)),
            "who has them has not asked again"
        );
        assert_eq!((totals.stalled, totals.short_of_memory), (1, 9));
    }
}
