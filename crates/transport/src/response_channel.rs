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

use crate::abort::Abort;
use crate::socket::Socket;

tokio::task_local! {
    static CHANNEL: ResponseChannel;
}

/// Where an answer goes. Cheap to clone.
#[derive(Clone)]
pub struct ResponseChannel(Carrier);

#[derive(Clone)]
enum Carrier {
    Nothing(Arc<Abort>),
    /// Of HTTP/1.1, where it carries one answer at a time.
    Connection(Arc<Socket>),
    Stream(Arc<Stream>),
}

/// A stream of HTTP/2, or of a test.
#[derive(Default)]
struct Stream {
    abort: Abort,
    only_sends: AtomicBool,
    is_small: AtomicBool,
    given: Mutex<Given>,
}

pin_project! {
    /// What [`ResponseChannel::carry`] makes. Not a block, which would hold its work twice, for as long as a watch is idle.
    pub struct UntilAborted<F> {
        #[pin]
        work: TaskLocalFuture<ResponseChannel, F>,
        channel: ResponseChannel,
        // Who the channel wakes when it is aborted: once is enough.
        told: Told,
    }
}

impl<F: Future> Future for UntilAborted<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        let this = self.project();
        let abort = this.channel.0.on_abort();
        if this.told.is_news_to(cx) {
            abort.wakes(cx);
        }
        if abort.is_aborted() {
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
    fn on_abort(&self) -> &Abort {
        match self {
            Carrier::Nothing(abort) => abort,
            Carrier::Connection(socket) => socket.on_abort(),
            Carrier::Stream(stream) => &stream.abort,
        }
    }
}

impl Default for ResponseChannel {
    /// One that leads nowhere.
    fn default() -> ResponseChannel {
        ResponseChannel(Carrier::Nothing(Arc::default()))
    }
}

impl ResponseChannel {
    /// A connection that carries one answer after another.
    pub fn connection(socket: Arc<Socket>) -> ResponseChannel {
        ResponseChannel(Carrier::Connection(socket))
    }

    /// One of several streams of a connection.
    pub fn stream() -> ResponseChannel {
        ResponseChannel(Carrier::Stream(Arc::default()))
    }

    /// The one that this task writes to; where there is none, one that leads nowhere.
    pub fn current() -> ResponseChannel {
        CHANNEL.try_with(ResponseChannel::clone).unwrap_or_default()
    }

    /// Does `work`, which finds this as [`ResponseChannel::current`]; `None` when it was aborted meanwhile. One task at a time does.
    pub fn carry<F: Future>(self, work: F) -> UntilAborted<F> {
        UntilAborted { work: CHANNEL.scope(self.clone(), work), channel: self, told: Told::default() }
    }

    /// Breaks off: the client sees a reset, never an end that looks whole.
    pub fn abort(&self) {
        self.0.on_abort().abort();
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

    async fn passed(channel: &ResponseChannel) {
        std::future::poll_fn(|cx| channel.poll_passed(cx)).await;
    }

    #[tokio::test]
    async fn work_that_is_aborted_ends_with_nothing() {
        let channel = ResponseChannel::stream();
        assert_eq!(channel.clone().carry(async { 1 }).await, Some(1));
        let found = channel.clone().carry(async { ResponseChannel::current().abort() }).await;
        assert!(found.is_some());
        assert_eq!(channel.carry(std::future::pending::<()>()).await, None);
    }

    #[tokio::test]
    async fn whoever_waits_with_its_work_is_told_of_the_cut() {
        let channel = ResponseChannel::stream();
        let carried = tokio::spawn(channel.clone().carry(std::future::pending::<()>()));
        tokio::task::yield_now().await;
        channel.abort();
        assert_eq!(carried.await.expect("no panic"), None);
    }

    #[tokio::test]
    async fn outside_of_a_connection_there_is_a_line_that_leads_nowhere() {
        let channel = ResponseChannel::current();
        let _kept = channel.give(Bytes::from_static(b"event"));
        passed(&channel).await;
        assert!(channel.wrote_at().is_none());
    }

    #[tokio::test]
    async fn a_stream_knows_when_its_connection_has_written_what_it_was_given() {
        let channel = ResponseChannel::stream();
        let has_passed = || std::future::poll_fn(|cx| Poll::Ready(channel.poll_passed(cx).is_ready()));
        let mut piece = channel.give(Bytes::from_static(b"event"));
        let written = piece.split_to(3);
        drop(written);
        assert!(!has_passed().await);
        let waiting = tokio::spawn({
            let channel = channel.clone();
            async move { passed(&channel).await }
        });
        tokio::task::yield_now().await;
        assert_eq!(piece, b"nt".as_slice());
        drop(piece);
        waiting.await.expect("it is woken");
        assert!(has_passed().await);
    }
}
