//! What an answer is written to: a connection of HTTP/1.1, or a stream of an HTTP/2 one.
//!
//! In: nothing but the task that writes. Out: whether what was written is gone, and a way to break off, from wherever
//! it is found out that nobody reads on. hyper asks a body for more only when there is room, so a body that nobody
//! reads cannot end itself.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use forebay_rt::{Instant, Told};
use pin_project_lite::pin_project;
use tokio::task::futures::TaskLocalFuture;

use crate::cut::Cut;
use crate::wire::Socket;

tokio::task_local! {
    static LINE: Line;
}

/// Where an answer goes. Cheap to clone.
#[derive(Clone)]
pub struct Line(Carrier);

#[derive(Clone)]
enum Carrier {
    Nothing(Arc<Cut>),
    /// Of HTTP/1.1, where it carries one answer at a time.
    Connection(Arc<Socket>),
    Stream(Arc<Stream>),
}

/// A stream of HTTP/2, or of a test.
#[derive(Default)]
struct Stream {
    cut: Cut,
    only_sends: AtomicBool,
    is_small: AtomicBool,
    given: Mutex<Given>,
}

pin_project! {
    /// What [`Line::carry`] makes. Not a block, which would hold its work twice, for as long as a watch is idle.
    pub struct Carried<F> {
        #[pin]
        work: TaskLocalFuture<Line, F>,
        line: Line,
        // Who the line wakes when it is cut: once is enough.
        told: Told,
    }
}

impl<F: Future> Future for Carried<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        let this = self.project();
        let cut = this.line.0.cut();
        if this.told.is_news_to(cx) {
            cut.tell(cx);
        }
        if cut.is_done() {
            return Poll::Ready(None);
        }
        this.work.poll(cx).map(Some)
    }
}

/// What a stream was given and its connection has not written yet.
#[derive(Default)]
struct Given {
    pieces: usize,
    // Waits for the end of that.
    waker: Option<Waker>,
}

/// A piece of an answer that says when it is written, or thrown away.
struct Piece {
    bytes: Bytes,
    stream: Arc<Stream>,
}

impl Carrier {
    fn cut(&self) -> &Cut {
        match self {
            Carrier::Nothing(cut) => cut,
            Carrier::Connection(socket) => socket.cut(),
            Carrier::Stream(stream) => &stream.cut,
        }
    }
}

impl Default for Line {
    /// One that leads nowhere.
    fn default() -> Line {
        Line(Carrier::Nothing(Arc::default()))
    }
}

impl Line {
    /// A connection that carries one answer after another.
    pub fn connection(socket: Arc<Socket>) -> Line {
        Line(Carrier::Connection(socket))
    }

    /// One of several streams of a connection.
    pub fn stream() -> Line {
        Line(Carrier::Stream(Arc::default()))
    }

    /// The one that this task writes to; where there is none, one that leads nowhere.
    pub fn current() -> Line {
        LINE.try_with(Line::clone).unwrap_or_default()
    }

    /// Does `work`, which finds this as [`Line::current`]; `None` when it was cut meanwhile. One task at a time does.
    pub fn carry<F: Future>(self, work: F) -> Carried<F> {
        Carried { work: LINE.scope(self.clone(), work), line: self, told: Told::default() }
    }

    /// Breaks off: the client sees a reset, never an end that looks whole.
    pub fn cut(&self) {
        self.0.cut().cut();
    }

    /// From now on all there is to do for a stream is to make pieces of a body, at little cost, as they are sent.
    pub fn send_only(&self) {
        if let Carrier::Stream(stream) = &self.0 {
            stream.only_sends.store(true, Ordering::Relaxed);
        }
    }

    /// Whether that is all.
    pub fn only_sends(&self) -> bool {
        matches!(&self.0, Carrier::Stream(stream) if stream.only_sends.load(Ordering::Relaxed))
    }

    /// What is left of a stream is an answer that is there whole, and small: nobody else looks after its reader.
    pub fn answer_small(&self) {
        if let Carrier::Stream(stream) = &self.0 {
            stream.is_small.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it is.
    pub fn answers_small(&self) -> bool {
        matches!(&self.0, Carrier::Stream(stream) if stream.is_small.load(Ordering::Relaxed))
    }

    /// The piece of an answer to hand on instead of `bytes`: from now on it is known whether it has passed.
    pub fn give(&self, bytes: Bytes) -> Bytes {
        match &self.0 {
            Carrier::Nothing(_) => bytes,
            Carrier::Connection(socket) => {
                socket.expect();
                bytes
            }
            Carrier::Stream(stream) => {
                stream.given().pieces += 1;
                Bytes::from_owner(Piece { bytes, stream: stream.clone() })
            }
        }
    }

    /// Ready when the kernel has what was given, or the connection of HTTP/2 has written it.
    pub fn poll_passed(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.0 {
            Carrier::Nothing(_) => Poll::Ready(()),
            Carrier::Connection(socket) => socket.poll_flushed(cx),
            Carrier::Stream(stream) => {
                let mut given = stream.given();
                if given.pieces == 0 {
                    return Poll::Ready(());
                }
                given.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// When the client's side last took something, where that can be told.
    pub fn wrote_at(&self) -> Option<Instant> {
        self.socket().map(Socket::wrote_at)
    }

    /// The socket, where it carries one answer at a time.
    pub fn socket(&self) -> Option<&Socket> {
        match &self.0 {
            Carrier::Connection(socket) => Some(socket),
            Carrier::Nothing(_) | Carrier::Stream(_) => None,
        }
    }
}

impl Stream {
    fn given(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let waker = {
            let mut given = self.stream.given();
            given.pieces -= 1;
            if given.pieces == 0 { given.waker.take() } else { None }
        };
        waker.inspect(Waker::wake_by_ref);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn passed(line: &Line) {
        std::future::poll_fn(|cx| line.poll_passed(cx)).await;
    }

    #[tokio::test]
    async fn work_that_is_cut_ends_with_nothing() {
        let line = Line::stream();
        assert_eq!(line.clone().carry(async { 1 }).await, Some(1));
        let found = line.clone().carry(async { Line::current().cut() }).await;
        assert!(found.is_some());
        assert_eq!(line.carry(std::future::pending::<()>()).await, None);
    }

    #[tokio::test]
    async fn whoever_waits_with_its_work_is_told_of_the_cut() {
        let line = Line::stream();
        let carried = tokio::spawn(line.clone().carry(std::future::pending::<()>()));
        tokio::task::yield_now().await;
        line.cut();
        assert_eq!(carried.await.expect("no panic"), None);
    }

    #[tokio::test]
    async fn outside_of_a_connection_there_is_a_line_that_leads_nowhere() {
        let line = Line::current();
        let _kept = line.give(Bytes::from_static(b"event"));
        passed(&line).await;
        assert!(line.wrote_at().is_none());
    }

    #[tokio::test]
    async fn a_stream_knows_when_its_connection_has_written_what_it_was_given() {
        let line = Line::stream();
        let has_passed = || std::future::poll_fn(|cx| Poll::Ready(line.poll_passed(cx).is_ready()));
        let mut piece = line.give(Bytes::from_static(b"event"));
        let written = piece.split_to(3);
        drop(written);
        assert!(!has_passed().await);
        let waiting = tokio::spawn({
            let line = line.clone();
            async move { passed(&line).await }
        });
        tokio::task::yield_now().await;
        assert_eq!(piece, b"nt".as_slice());
        drop(piece);
        waiting.await.expect("it is woken");
        assert!(has_passed().await);
    }
}
