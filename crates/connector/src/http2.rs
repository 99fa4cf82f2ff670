//! One HTTP/2 connection: its task, and the requests that go over it.
//!
//! In: what was dialled, requests. Out: answers; of the connection, how many streams the server allows, that
//! it sends its clients away, that it is over. The task owns the connection: it reads and writes, asks with a
//! ping whether a silent server is still there, and ends with the connection. Never: counts streams (the pool
//! does), opens more than the server allows.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use forebay_rt::{Alarm, Clock, Instant, Raised};
use h2::client::{Builder, Connection, SendRequest};
use h2::{Ping, PingPong};
use http::header::{self, CONTENT_LENGTH, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, Version};
use http_body::Body as _;
use kube::client::Body as RequestBody;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::body::Body;
use crate::book::Flags;
use crate::dial::Stream;
use crate::link::Link;
use crate::options::Pings;
use crate::pool::Seat;
use crate::unserved::Unserved;
use crate::upload::Upload;
use crate::{Error, limits};

/// What stands for the server's limit until its SETTINGS came: no limit that can be told, and not the absence
/// of one.
const NOT_TOLD: usize = usize::MAX - 1;
const _: () = assert!(NOT_TOLD > u32::MAX as usize);

/// The sending side of the connection.
#[derive(Clone, Debug)]
pub(crate) struct Http2 {
    sender: SendRequest<Bytes>,
    link: Arc<Link>,
}

/// The connection.
pub(crate) struct Driver {
    connection: Connection<Counted, Bytes>,
    /// None: it takes no more requests, and closes with its last stream.
    sender: Option<SendRequest<Bytes>>,
    link: Arc<Link>,
    pings: Pings,
    ping: Option<PingPong>,
    clock: Clock,
    alarm: Alarm,
    pulse: Pulse,
    reads: Arc<AtomicU64>,
    reads_seen: u64,
    allowed: usize,
}

/// What a connection tells the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// The server allows so many streams.
    Allows(usize),
    /// It takes no more requests.
    Leaves,
    /// Nothing was to be read for a while.
    Silent,
}

#[derive(Clone, Copy, Debug)]
enum Pulse {
    /// Since when nothing was read.
    Quiet(Instant),
    /// Until when something has to come.
    Asked(Instant),
}

/// Begins a connection, and waits until the server has told its SETTINGS.
///
/// # Errors
/// When what is at the other end speaks something else, or closes.
pub(crate) async fn open(
    io: Box<dyn Stream>,
    pings: Pings,
    clock: &Clock,
) -> Result<(Http2, Driver, usize), Error> {
    let reads = Arc::new(AtomicU64::new(0));
    let io = Counted { io, reads: reads.clone() };
    let (sender, mut connection) = builder().handshake(io).await.map_err(Error::Begin2)?;
    let allowed = poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
        Poll::Ready(Err(error)) => Poll::Ready(Err(Error::Begin2(error))),
        Poll::Ready(Ok(())) => Poll::Ready(Err(Error::NoSettings)),
        Poll::Pending => match connection.max_concurrent_send_streams() {
            NOT_TOLD => Poll::Pending,
            allowed => Poll::Ready(Ok(allowed)),
        },
    })
    .await?;
    let link = Arc::new(Link::default());
    let ping = connection.ping_pong();
    let driver = Driver {
        connection,
        sender: Some(sender.clone()),
        link: link.clone(),
        pings,
        ping,
        clock: clock.clone(),
        alarm: Alarm::default(),
        pulse: Pulse::Quiet(clock.now()),
        reads,
        reads_seen: 0,
        allowed,
    };
    Ok((Http2 { sender, link }, driver, allowed))
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_max_send_streams(NOT_TOLD)
        .initial_window_size(limits::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(limits::CONNECTION_WINDOW_BYTES)
        .max_frame_size(limits::FRAME_BYTES_MAX)
        .max_header_list_size(limits::HEAD_BYTES_MAX)
        .max_send_buffer_size(limits::SEND_BUFFER_BYTES_MAX)
        .data_frame_budget(limits::SMALL_FRAMES_BYTES_MAX)
        .max_concurrent_reset_streams(limits::RESETS_KEPT)
        .reset_stream_duration(limits::RESETS_KEPT_FOR)
        // A frame that comes for a stream long given up is answered with a reset. There is one for each watch
        // that somebody dropped while it was busy, over days; a count that never goes down would end the
        // connection for it.
        .max_local_error_reset_streams(None);
    builder
}

impl Driver {
    /// Runs the connection to its end. Cancel-safe, in that its streams fail.
    pub async fn run(mut self, flags: Flags, mut tell: impl FnMut(News)) {
        let (mut retire, mut cut) = (flags.retire.watch(), flags.cut.watch());
        poll_fn(|cx| {
            if cut.poll(cx).is_ready() {
                return Poll::Ready(());
            }
            self.poll(cx, &mut retire, &mut tell)
        })
        .await;
    }

    fn poll(&mut self, cx: &mut Context<'_>, retire: &mut Raised, tell: &mut impl FnMut(News)) -> Poll<()> {
        loop {
            if Pin::new(&mut self.connection).poll(cx).is_ready() {
                return Poll::Ready(());
            }
            self.look_at_limit(tell);
            // What was given up here makes the connection look whether it has streams left.
            if self.gives_up_sender(cx, retire, tell) {
                continue;
            }
            match self.poll_pulse(cx, tell) {
                Poll::Ready(Beat::Again) => {}
                Poll::Ready(Beat::Lost) => {
                    self.link.lose_ping();
                    return Poll::Ready(());
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn look_at_limit(&mut self, tell: &mut impl FnMut(News)) {
        let allowed = self.connection.max_concurrent_send_streams();
        if allowed != self.allowed {
            self.allowed = allowed;
            tell(News::Allows(allowed));
        }
    }

    /// Whether it takes no more requests from now on: because the server says so, or the pool.
    fn gives_up_sender(
        &mut self,
        cx: &mut Context<'_>,
        retire: &mut Raised,
        tell: &mut impl FnMut(News),
    ) -> bool {
        let Some(sender) = &mut self.sender else { return false };
        let sent_away = matches!(sender.poll_ready(cx), Poll::Ready(Err(_)));
        let leaves = sent_away || retire.poll(cx).is_ready();
        if leaves {
            self.sender = None;
            tell(News::Leaves);
        }
        leaves
    }

    fn poll_pulse(&mut self, cx: &mut Context<'_>, tell: &mut impl FnMut(News)) -> Poll<Beat> {
        if let Some(ping) = &mut self.ping {
            // What comes is counted with all that is read; an error is the connection's, which tells of it.
            let _ = ping.poll_pong(cx);
        }
        let reads = self.reads.load(Ordering::Relaxed);
        if reads != self.reads_seen {
            self.reads_seen = reads;
            self.pulse = Pulse::Quiet(self.clock.now());
        }
        let due = match self.pulse {
            Pulse::Quiet(since) => since + self.pings.interval,
            Pulse::Asked(until) => until,
        };
        if self.alarm.poll_rings(due, cx).is_pending() {
            return Poll::Pending;
        }
        if let Pulse::Asked(_) = self.pulse {
            return Poll::Ready(Beat::Lost);
        }
        if let Some(ping) = &mut self.ping {
            // Fails when the last one was not answered, but something else was read: then that answer is
            // still waited for.
            let _ = ping.send_ping(Ping::opaque());
        }
        self.pulse = Pulse::Asked(self.clock.now() + self.pings.timeout);
        tell(News::Silent);
        Poll::Ready(Beat::Again)
    }
}

enum Beat {
    Again,
    Lost,
}

impl Http2 {
    /// Sends a request and waits for the head of its answer. Cancel-safe: the stream is reset.
    pub async fn send(
        mut self,
        request: Request<RequestBody>,
        seat: Seat,
    ) -> Result<Response<Body>, Unserved> {
        let (head, stream_less) = (head(&request), request.body().is_end_stream());
        let (mut answer, stream) = match self.sender.send_request(head, stream_less) {
            Ok(streams) => streams,
            Err(error) => {
                // It was not sent. Another connection may do better, unless it is the request that is wrong.
                let again = (error.is_go_away() || error.is_io()).then_some(request);
                return Err(Unserved { error: self.link.why(error, Error::Head2), again });
            }
        };
        let again = copy(&request);
        let mut upload = (!stream_less).then(|| Upload::new(request.into_body(), stream));
        let polled = poll_fn(|cx| {
            if let Some(sending) = &mut upload
                && let Poll::Ready(sent) = sending.poll(cx)
            {
                if let Err(error) = sent {
                    return Poll::Ready(Err((Error::RequestBody(Box::new(error)), false)));
                }
                upload = None;
            }
            let failed = |error: h2::Error| {
                let unserved = was_not_served(&error);
                (self.link.why(error, Error::Head2), unserved)
            };
            Pin::new(&mut answer).poll(cx).map_err(failed)
        });
        match polled.await {
            Ok(answer) => Ok(Body::http2(answer, self.link, upload, seat)),
            Err((error, unserved)) => Err(Unserved { error, again: again.filter(|_| unserved) }),
        }
    }
}

/// Whether the server says that it did nothing with the request: RFC 9113, 8.7.
fn was_not_served(error: &h2::Error) -> bool {
    error.is_remote()
        && (error.is_go_away() || error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM))
}

/// A second copy of the request, if its body can be read twice.
fn copy(request: &Request<RequestBody>) -> Option<Request<RequestBody>> {
    let mut again = Request::new(request.body().try_clone()?);
    *again.method_mut() = request.method().clone();
    *again.uri_mut() = request.uri().clone();
    *again.headers_mut() = request.headers().clone();
    *again.extensions_mut() = request.extensions().clone();
    Some(again)
}

/// The head as HTTP/2 has it: the authority is in the URL, and nothing is said of the connection.
fn head(request: &Request<RequestBody>) -> Request<()> {
    let mut head = Request::new(());
    *head.method_mut() = request.method().clone();
    *head.uri_mut() = request.uri().clone();
    *head.version_mut() = Version::HTTP_2;
    *head.headers_mut() = request.headers().clone();
    let headers = head.headers_mut();
    strip(headers);
    let counts = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH);
    if let Some(bytes) = request.body().size_hint().exact().filter(|bytes| counts || *bytes > 0) {
        headers.entry(CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(bytes));
    }
    head
}

/// Removes the headers that HTTP/2 forbids: RFC 9113, 8.2.2.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let always = [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE, header::HOST]
        .map(|it| it.to_string());
    for name in always.iter().map(String::as_str).chain(["keep-alive", "proxy-connection"]) {
        headers.remove(name);
    }
    named.into_iter().for_each(|name| drop(headers.remove(name)));
    if headers.get(header::TE).is_some_and(|te| te != "trailers") {
        headers.remove(header::TE);
    }
}

/// What is read and written, with a count of the reads that brought something.
struct Counted {
    io: Box<dyn Stream>,
    reads: Arc<AtomicU64>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.reads.fetch_add(1, Ordering::Relaxed);
        }
        polled
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
