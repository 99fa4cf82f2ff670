//! An HTTP/2 connection as one task: it handles the frames, and the streams that only send.
//!
//! In: hyper's connection, and the streams that it begins. Out: the connection's end. Never: knows what a
//! body is.
//!
//! A request is worked on by a task of its own, so that other requests of the connection do not wait for it.
//! Once its answer is a watch, or a long body that costs little to make, the stream moves into the
//! connection's task. Between two tasks every piece of the body would cost two task switches, often across
//! threads, which is more than the piece itself costs. And an event for all watches of a connection wakes one
//! task.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use forebay_rt::{Alarm, Clock, Instant, Tasks};
use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, Stream as _};
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper_util::rt::TokioTimer;
use tokio::task::coop::has_budget_remaining;

use crate::connections::Connection;
use crate::limits;
use crate::response_channel::ResponseChannel;
use crate::service::ReaderWait;
use crate::tls_stream::{BytesRead, Flusher};

type Stream = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How long a small answer may wait for an authenticated client; asked anew for each answer.
pub type ReaderWaits = Arc<dyn Fn() -> Option<ReaderWait> + Send + Sync>;

/// What starts the streams of one connection. Cheap to clone.
#[derive(Clone)]
pub struct Streams {
    tasks: Tasks,
    connection: Arc<Connection>,
    clock: Clock,
    readers: ReaderWaits,
    // The channel of the request that was answered last, until hyper starts its stream.
    begun: Arc<Mutex<Option<ResponseChannel>>>,
    bell: Arc<Bell>,
}

/// The connection's task, and the streams that it takes over.
pub struct Http2Connection<C> {
    hyper: Pin<Box<C>>,
    flusher: Flusher,
    // The streams that moved here. Only those that were woken are polled.
    aboard: FuturesUnordered<Stream>,
    bell: Arc<Bell>,
}

/// Wakes a connection's task. Where it is rung while the task runs, the task runs once more instead of being
/// woken.
#[derive(Default)]
struct Bell {
    rung: AtomicBool,
    inbox: Mutex<Inbox>,
}

#[derive(Default)]
struct Inbox {
    // Streams that left their own tasks, and that the connection's task has not taken yet.
    moving: Vec<Stream>,
    // `None` while the task is at work.
    sleeper: Option<Waker>,
    is_gone: bool,
}

/// hyper's settings: how much memory a connection may take, and how long its client may be silent.
pub fn builder(streams: Streams, streams_max: u32) -> http2::Builder<Streams> {
    let mut builder = http2::Builder::new(streams);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(streams_max)
        .max_pending_accept_reset_streams(limits::RESETS_PENDING_MAX)
        .max_local_error_reset_streams(limits::RESETS_MAX)
        .max_header_list_size(limits::HEAD_BYTES_MAX as u32)
        .initial_stream_window_size(limits::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(limits::CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(limits::STREAM_SEND_BYTES)
        .keep_alive_interval(limits::PING_PERIOD)
        .keep_alive_timeout(limits::PING_WAIT);
    builder
}

/// Ready when the client has not begun to speak in time; never if it has. hyper's own pings begin only after
/// the preface.
pub async fn unspoken(heard: BytesRead, clock: &Clock) {
    clock.sleep(limits::HEADER_WAIT).await;
    if heard.bytes() >= limits::PREFACE_BYTES {
        std::future::pending().await
    }
}

impl Streams {
    /// - `connection`: the one that the streams belong to.
    /// - `readers`: how long a small answer may wait for its reader.
    pub fn new(tasks: Tasks, connection: Arc<Connection>, clock: Clock, readers: ReaderWaits) -> Streams {
        Streams { tasks, connection, clock, readers, begun: Arc::default(), bell: Arc::default() }
    }

    /// The channel for the answer to a request that begins now. hyper starts the stream right after this.
    pub fn begin(&self) -> ResponseChannel {
        let channel = ResponseChannel::stream();
        *self.begun() = Some(channel.clone());
        channel
    }

    fn begun(&self) -> MutexGuard<'_, Option<ResponseChannel>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The future of `connection`, which is written to what `flusher` flushes.
    pub fn carried_by<C>(&self, connection: C, flusher: Flusher) -> Http2Connection<C> {
        Http2Connection {
            hyper: Box::pin(connection),
            flusher,
            aboard: FuturesUnordered::new(),
            bell: self.bell.clone(),
        }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        // Only a tunnel's stream starts without a request.
        let channel = self.begun().take().unwrap_or_else(ResponseChannel::stream);
        let (bell, streams, open) = (self.bell.clone(), self.clone(), self.connection.begin_request());
        self.tasks.spawn_graceful("stream", async move {
            let sends = channel.clone();
            // When it is aborted the stream is dropped, and the client gets a RST_STREAM.
            let mut stream: Stream = Box::pin(channel.carry(stream).map(move |_| drop(open)));
            let mut waits = None;
            let ended = std::future::poll_fn(|cx| match stream.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending if sends.only_sends() => Poll::Ready(false),
                // Dropped as well.
                Poll::Pending if sends.answers_small() => streams.poll_waited(&mut waits, cx).map(|()| true),
                Poll::Pending => Poll::Pending,
            });
            if !ended.await {
                bell.take_over(stream);
            }
        });
    }
}

/// A small answer waits for its reader: until when, and what is held meanwhile.
struct Waits {
    until: Instant,
    alarm: Alarm,
    _held: Box<dyn Send>,
}

impl Streams {
    /// Ready when a small answer is not to wait for its reader any longer. A stranger's does not wait at all;
    /// an authenticated client's waits as long as the service says.
    fn poll_waited(&self, waits: &mut Option<Waits>, cx: &mut Context<'_>) -> Poll<()> {
        if waits.is_none() && self.connection.is_known() {
            *waits = self.wait_for_reader();
        }
        match waits {
            Some(waits) => waits.alarm.poll_rings(waits.until, cx),
            None => Poll::Ready(()),
        }
    }

    fn wait_for_reader(&self) -> Option<Waits> {
        let ReaderWait { span, held } = (self.readers)()?;
        Some(Waits { until: self.clock.now() + span, alarm: Alarm::default(), _held: held })
    }
}

impl<C: Future<Output = hyper::Result<()>>> Http2Connection<C> {
    /// hyper's connection.
    pub fn hyper(&mut self) -> Pin<&mut C> {
        self.hyper.as_mut()
    }
}

impl<C: Future<Output = hyper::Result<()>>> Future for Http2Connection<C> {
    type Output = hyper::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        let this = &mut *self;
        let waker = Waker::from(this.bell.clone());
        let mut inner = Context::from_waker(&waker);
        this.bell.awake();
        for _ in 0..limits::CONNECTION_TURNS {
            this.bell.rung.swap(false, Ordering::AcqRel);
            this.aboard.extend(std::mem::take(&mut this.bell.inbox().moving));
            while let Poll::Ready(Some(())) = Pin::new(&mut this.aboard).poll_next(&mut inner) {}
            let ended = this.hyper.as_mut().poll(&mut inner);
            // What was written last is sent as far as the socket takes it. An error shows itself at the next
            // write.
            let _flushed = this.flusher.poll_flush(&mut inner);
            if ended.is_ready() {
                return ended;
            }
            if this.bell.sleep(cx.waker()) {
                return Poll::Pending;
            }
            // Without budget every source of tokio says that it is not ready, and wakes the task at once.
            if !has_budget_remaining() {
                break;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<C> Drop for Http2Connection<C> {
    fn drop(&mut self) {
        let mut inbox = self.bell.inbox();
        inbox.is_gone = true;
        let moving = std::mem::take(&mut inbox.moving);
        drop(inbox);
        drop(moving);
    }
}

impl Bell {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a stream to the connection's task. Where the connection is gone, the stream is dropped.
    fn take_over(&self, stream: Stream) {
        let mut inbox = self.inbox();
        if !inbox.is_gone {
            inbox.moving.push(stream);
        }
        drop(inbox);
        self.ring();
    }

    fn awake(&self) {
        self.inbox().sleeper = None;
    }

    /// Returns true when there is nothing to do; `waker` is woken then once there is.
    fn sleep(&self, waker: &Waker) -> bool {
        let mut inbox = self.inbox();
        if self.rung.load(Ordering::Acquire) {
            return false;
        }
        inbox.sleeper = Some(waker.clone());
        true
    }

    fn ring(&self) {
        if self.rung.swap(true, Ordering::AcqRel) {
            return;
        }
        let sleeper = self.inbox().sleeper.take();
        sleeper.inspect(Waker::wake_by_ref);
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::AtomicUsize;

    use bytes::Bytes;
    use http::{Request, Response};
    use http_body::{Body, Frame};
    use http_body_util::{BodyExt as _, Empty};
    use hyper::body::Incoming;
    use hyper::service::service_fn;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::task;

    use super::*;
    use crate::reply::{Reply, SentBy};
    use crate::tls_stream::{BufferedTls, testing};

    /// So many pieces, and by which task each was asked for; it is told when it is dropped.
    struct Counted {
        pieces: usize,
        tasks: Arc<Mutex<Vec<task::Id>>>,
        dropped: Arc<AtomicUsize>,
    }

    impl Body for Counted {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.pieces == 0 {
                return Poll::Ready(None);
            }
            self.tasks.lock().expect("not poisoned").extend(task::try_id());
            self.pieces -= 1;
            Poll::Ready(Some(Ok(Frame::data(vec![b'x'; limits::CHUNK_BYTES].into()))))
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    struct Served {
        tasks: Arc<Mutex<Vec<task::Id>>>,
        dropped: Arc<AtomicUsize>,
        channel: Arc<Mutex<Option<ResponseChannel>>>,
        connection: task::JoinHandle<hyper::Result<()>>,
        answer: Response<Incoming>,
        _client: hyper::client::conn::http2::SendRequest<Empty<Bytes>>,
    }

    /// An answer of `pieces` on its way over a connection that carries such streams itself.
    async fn serve(pieces: usize) -> Served {
        let (tls, client) = testing::pair(&[]).await;
        let (asked, dropped) = (Arc::<Mutex<Vec<task::Id>>>::default(), Arc::<AtomicUsize>::default());
        let channel = Arc::<Mutex<Option<ResponseChannel>>>::default();
        let (tasks, drops, found) = (asked.clone(), dropped.clone(), channel.clone());
        let streams = Streams::new(Tasks::new(), Arc::default(), Clock::system(), Arc::new(|| None));
        let begins = streams.clone();
        let service = service_fn(move |_: Request<Incoming>| {
            let body = Counted { pieces, tasks: tasks.clone(), dropped: drops.clone() };
            let (found, channel) = (found.clone(), begins.begin());
            async move {
                let reply = Reply::Stream(Response::new(body), SentBy::Connection);
                channel.act_on(&reply);
                *found.lock().expect("not poisoned") = Some(channel);
                Ok::<_, Infallible>(reply.into_response())
            }
        });
        let secure = BufferedTls::new(tls);
        let flusher = secure.flusher();
        let served = builder(streams.clone(), 10).serve_connection(TokioIo::new(secure), service);
        let connection = tokio::spawn(streams.carried_by(served, flusher));
        let handshake =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(client)).await;
        let (mut client, driver) = handshake.expect("HTTP/2");
        tokio::spawn(driver);
        let request = Request::get("https://127.0.0.1/").body(Empty::<Bytes>::new()).expect("a request");
        let answer = client.send_request(request).await.expect("an answer");
        Served { tasks: asked, dropped, channel, connection, answer, _client: client }
    }

    #[tokio::test]
    async fn a_long_body_is_sent_by_the_connections_task() {
        let served = serve(64).await;
        let whole = served.answer.into_body().collect().await.expect("whole").to_bytes();
        assert!(whole.len() == 64 * limits::CHUNK_BYTES && whole.iter().all(|byte| *byte == b'x'));
        let asked = served.tasks.lock().expect("not poisoned").clone();
        assert_eq!(asked.last(), Some(&served.connection.id()));
        assert_ne!(asked.first(), Some(&served.connection.id()), "it begins as a task of its own");
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_begin_to_speak_is_given_up_and_who_does_is_not() {
        let (tls, mut client) = testing::pair(&[]).await;
        let mut secure = BufferedTls::new(tls);
        let clock = Clock::system();
        for begun in [0, 1, limits::PREFACE_BYTES - 2] {
            client.write_all(&vec![b'x'; begun]).await.expect("open");
            client.flush().await.expect("open");
            secure.read_exact(&mut vec![0; begun]).await.expect("open");
            // All but one byte of it is no beginning.
            unspoken(secure.bytes_read(), &clock).await;
        }
        client.write_all(b"x").await.expect("open");
        client.flush().await.expect("open");
        secure.read_exact(&mut [0]).await.expect("open");
        tokio::select! {
            () = unspoken(secure.bytes_read(), &clock) => panic!("it has begun"),
            () = clock.sleep(2 * limits::HEADER_WAIT) => {}
        }
    }

    #[tokio::test]
    async fn a_stream_that_is_cut_is_reset_and_one_whose_connection_goes_is_dropped() {
        for cut in [true, false] {
            let served = serve(usize::MAX).await;
            let mut body = served.answer.into_body();
            let moved = served.connection.id();
            // It has moved once the connection's task has asked for a piece.
            while served.tasks.lock().expect("not poisoned").last() != Some(&moved) {
                body.frame().await.expect("more").expect("data");
            }
            if cut {
                served.channel.lock().expect("not poisoned").as_ref().expect("a channel").abort();
            } else {
                served.connection.abort();
            }
            let end = loop {
                match body.frame().await {
                    Some(Ok(_)) => {}
                    end => break end,
                }
            };
            assert!(end.is_some_and(|end| end.is_err()), "it does not look whole");
            if !cut {
                assert!(served.connection.await.is_err_and(|why| why.is_cancelled()));
            }
            while served.dropped.load(Ordering::Relaxed) == 0 {
                task::yield_now().await;
            }
        }
    }
}
