//! What an answer is written to: a connection of HTTP/1.1, or a stream of an HTTP/2 connection.
//!
//! In: pieces of the answer, from the task that writes. Out: whether they were sent, and a way to break the
//! answer off from any task. hyper asks a body for more only when there is room, so a body that nobody reads
//! cannot end itself. Never: sends.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use forebay_rt::{Duration, Instant};

use crate::abort::{Abort, UntilAborted};
use crate::limits::{PIECE_BYTES, SEND_BYTES, TLS_GATHER_BYTES, WATCH_SEND_BYTES, stream_give_max};
use crate::reply::{Reply, SentBy};
use crate::socket::Socket;

/// Where an answer goes. Cheap to clone.
#[derive(Clone)]
pub struct ResponseChannel(Carrier);

#[derive(Clone)]
enum Carrier {
    Nothing(Arc<Abort>),
    /// A whole connection of HTTP/1.1, which carries one answer at a time.
    Connection(Arc<Socket>),
    Stream(Arc<Stream>),
}

/// How much the kernel buffers for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendBuffer {
    /// Little, because a watch may wait for its reader for long.
    Watch,
    Usual,
}

/// A stream of HTTP/2, or of a test.
#[derive(Default)]
struct Stream {
    abort: Abort,
    only_sends: AtomicBool,
    is_small: AtomicBool,
    given: Mutex<Given>,
}

/// Bytes that a stream was given and its connection has not written yet.
#[derive(Default)]
struct Given {
    pieces: usize,
    // Woken once there are none.
    waker: Option<Waker>,
}

/// A piece of an answer, counted until it is written or dropped.
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

impl AsRef<Abort> for ResponseChannel {
    fn as_ref(&self) -> &Abort {
        self.0.on_abort()
    }
}

impl Default for ResponseChannel {
    /// A channel that leads nowhere.
    fn default() -> ResponseChannel {
        ResponseChannel(Carrier::Nothing(Arc::default()))
    }
}

impl ResponseChannel {
    /// A connection that carries one answer after another.
    pub fn connection(socket: Arc<Socket>) -> ResponseChannel {
        ResponseChannel(Carrier::Connection(socket))
    }

    /// A channel that is one of several streams of a connection.
    pub fn stream() -> ResponseChannel {
        ResponseChannel(Carrier::Stream(Arc::default()))
    }

    /// Does `work`; ends with `None` when the answer is broken off meanwhile. For one task at a time.
    pub fn carry<F: Future>(self, work: F) -> UntilAborted<ResponseChannel, F> {
        UntilAborted::new(self, work)
    }

    /// Breaks the answer off. The client sees a reset, never an end that looks as if the answer was complete.
    pub fn abort(&self) {
        self.0.on_abort().abort();
    }

    /// Prepares for the way in which `reply` is sent.
    pub(crate) fn act_on<B>(&self, reply: &Reply<B>) {
        let Carrier::Stream(stream) = &self.0 else { return };
        match reply {
            Reply::Whole(_) => stream.is_small.store(true, Ordering::Relaxed),
            Reply::Stream(_, SentBy::Connection) | Reply::Watch(_) | Reply::Upgrade(_) => {
                stream.only_sends.store(true, Ordering::Relaxed);
            }
            Reply::Stream(_, SentBy::OwnTask) => {}
        }
    }

    /// Whether all that is left to do for a stream is to send a body whose pieces cost little to make.
    pub(crate) fn only_sends(&self) -> bool {
        matches!(&self.0, Carrier::Stream(stream) if stream.only_sends.load(Ordering::Relaxed))
    }

    /// Whether all that is left to do for a stream is to send a small answer whose bytes are all there.
    /// Nobody else sees to it that its reader does not stall.
    pub(crate) fn answers_small(&self) -> bool {
        matches!(&self.0, Carrier::Stream(stream) if stream.is_small.load(Ordering::Relaxed))
    }

    /// `bytes` as a piece that is counted until it was sent: hand this on instead.
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

    /// Ready when everything that was given is with the kernel, or written by the connection of HTTP/2.
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

    /// When the kernel last took something for the client; `None` on a stream of HTTP/2, where this is not
    /// known.
    pub fn wrote_at(&self) -> Option<Instant> {
        self.socket().map(Socket::wrote_at)
    }

    /// Whether it is a connection, which carries one answer at a time.
    pub fn is_connection(&self) -> bool {
        self.socket().is_some()
    }

    /// How many bytes of a body are given at once to a reader that asked again after `pause`. A stream gets
    /// less where that is the only way to see how far its reader has come.
    pub fn body_bytes_at_once(&self, pause: impl FnOnce() -> Duration) -> usize {
        match self.0 {
            Carrier::Connection(_) => usize::MAX,
            Carrier::Nothing(_) | Carrier::Stream(_) => stream_give_max(pause()),
        }
    }

    /// How many bytes of a watch are given at once while earlier ones have not been sent yet.
    ///
    /// - `pause`: how long the reader took to ask again; `None` where memory is short, and it gets the least.
    pub fn watch_bytes_at_once(&self, pause: impl FnOnce() -> Option<Duration>) -> usize {
        match self.0 {
            Carrier::Connection(_) => TLS_GATHER_BYTES,
            Carrier::Nothing(_) | Carrier::Stream(_) => pause().map_or(PIECE_BYTES, stream_give_max),
        }
    }

    /// Sets how much the kernel buffers for the client. Does nothing for a stream.
    pub fn set_send_buffer(&self, size: SendBuffer) {
        if let Some(socket) = self.socket() {
            socket.set_send_buffer(match size {
                SendBuffer::Watch => WATCH_SEND_BYTES,
                SendBuffer::Usual => SEND_BYTES,
            });
        }
    }

    fn socket(&self) -> Option<&Socket> {
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
        let found = channel.clone().carry(async { channel.abort() }).await;
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
        let channel = ResponseChannel::default();
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
