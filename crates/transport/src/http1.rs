//! An HTTP/1.1 connection as one task. hyper reads and answers requests; a watch takes the connection over.
//!
//! In: a stream after its TLS handshake, and what answers requests. Out: the connection's end. Never: knows
//! what an answer says.
//!
//! A watch lives for minutes and waits most of that time, and there are thousands of them. While one lasts
//! nothing of hyper is kept, neither its two buffers nor its work at each wake; the watch's pieces go to TLS
//! directly. Afterwards hyper goes on with the next request.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use forebay_rt::Clock;
use http::{HeaderValue, Request, Response, StatusCode, Version, header};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use tokio::io::AsyncWriteExt as _;

use crate::drain::Drain;
use crate::limits;
use crate::reply::Reply;
use crate::request_heads;
use crate::service::{ReplyBody, Service};
use crate::tls_stream::TlsConnection;
use crate::tunnel;
use crate::websocket;

/// How a connection broke.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error(transparent)]
    SocketStream(#[from] io::Error),
}

/// An answer on its way. Boxed, because it is large.
pub type Answering<B> = Pin<Box<dyn Future<Output = Reply<B>> + Send>>;

/// hyper's settings: how much memory a connection may take, and how long its client may be silent.
pub fn builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEADER_WAIT)
        .max_header_size(limits::HEAD_BYTES_MAX)
        .max_headers(limits::HEAD_FIELDS_MAX)
        .max_buf_size(limits::HEAD_BYTES_MAX.max(limits::WRITE_BUFFER_BYTES));
    builder
}

/// Serves a connection until its client is done, or the server shuts down: then the request in flight may
/// finish. The caller cuts it by dropping this when it takes too long.
///
/// # Errors
/// The connection broke.
pub async fn serve<S: Service>(
    mut secure: TlsConnection,
    answer: impl Fn(Request<Incoming>) -> Answering<S::Body> + Clone,
    service: &S,
    drain: &Drain,
    clock: &Clock,
) -> Result<(), ConnectionError> {
    // Boxed, so that what requests take is given back while a watch lasts, and what a watch takes lies close
    // together.
    while let Some((mut free, reply)) =
        Box::pin(requests(secure, answer.clone(), service, drain, clock)).await?
    {
        // On shutdown the watch ends by itself. A client that reads too slowly for that is cut with its
        // connection.
        free.socket().set_patient(true);
        let is_last = reply.is_last();
        if !watch(&mut free, reply, drain, clock).await? {
            break;
        }
        free.socket().set_patient(false);
        if is_last || drain.is_draining() {
            free.shutdown().await?;
            break;
        }
        secure = free;
    }
    Ok(())
}

/// Lets hyper answer requests, until the connection's end, or until one is answered by a watch.
async fn requests<S: Service>(
    secure: TlsConnection,
    answer: impl Fn(Request<Incoming>) -> Answering<S::Body>,
    service: &S,
    drain: &Drain,
    clock: &Clock,
) -> Result<Option<(TlsConnection, Reply<S::Body>)>, ConnectionError> {
    let (taken, socket) = (Taken(Arc::default()), secure.socket().clone());
    let slot = taken.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (may_take, slot) = (may_take(&request), slot.clone());
        let answering = match refused(service, &request) {
            Some(refusal) => Box::pin(std::future::ready(Reply::Whole(refusal))),
            None => answer(request),
        };
        Box::pin(async move {
            let response = slot.keep(answering.await, may_take).await;
            Ok::<_, std::convert::Infallible>(response)
        })
    });
    let mut connection = Box::pin(builder().serve_connection(TokioIo::new(secure), service));
    // hyper sends earlier answers first.
    let look = |ended: Poll<hyper::Result<()>>| match ended {
        Poll::Pending if socket.is_sent() => {
            taken.take().map_or(Poll::Pending, |watch| Poll::Ready(Ok(Some(watch))))
        }
        ended => ended.map_ok(|()| None),
    };
    let ended = tokio::select! {
        ended = std::future::poll_fn(|cx| look(connection.as_mut().poll(cx))) => Some(ended?),
        () = drain.draining() => None,
    };
    let taken = match ended {
        Some(taken) => taken,
        None => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = std::future::poll_fn(|cx| look(connection.as_mut().poll(cx))) => ended?,
                () = clock.sleep(drain.wait()) => None,
            }
        }
    };
    Ok(taken.map(|reply| {
        let parts = Pin::into_inner(connection).into_parts();
        let mut secure = parts.io.into_inner();
        secure.unread(&parts.read_buf);
        (secure, reply)
    }))
}

/// The answer to a request whose head is refused. The connection ends with it.
fn refused<S: Service>(service: &S, request: &Request<Incoming>) -> Option<Response<S::Body>> {
    let (status, why) = request_heads::fault(request)?;
    let mut response = service.refusal(status, why);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    Some(response)
}

/// A watch that takes its connection over, on its way from where it was made.
struct Taken<B>(Arc<Mutex<Option<Reply<B>>>>);

impl<B> Clone for Taken<B> {
    fn clone(&self) -> Taken<B> {
        Taken(self.0.clone())
    }
}

impl<B: ReplyBody> Taken<B> {
    /// The response that hyper is to send. A watch is kept here instead, and hyper never learns of it.
    async fn keep(&self, reply: Reply<B>, may_take: bool) -> Response<B> {
        match reply {
            Reply::Watch(_) | Reply::Upgrade(_) if may_take => {
                *self.slot() = Some(reply);
                std::future::pending().await
            }
            Reply::Upgrade(_) => websocket::refused(),
            reply => reply.into_response(),
        }
    }

    fn take(&self) -> Option<Reply<B>> {
        self.slot().take()
    }

    fn slot(&self) -> MutexGuard<'_, Option<Reply<B>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a watch may take the connection over: the request has no body, and the connection goes on after
/// the answer. hyper sends the others.
fn may_take(request: &Request<Incoming>) -> bool {
    let closes =
        |value: &HeaderValue| value.as_bytes().to_ascii_lowercase().windows(5).any(|part| part == b"close");
    request.version() == Version::HTTP_11
        && request.body().is_end_stream()
        && !request.headers().get_all(header::CONNECTION).iter().any(closes)
}

/// Sends a watch until it ends. Returns whether the connection can go on.
async fn watch<B: ReplyBody>(
    secure: &mut TlsConnection,
    reply: Reply<B>,
    drain: &Drain,
    clock: &Clock,
) -> io::Result<bool> {
    let is_upgrade = matches!(reply, Reply::Upgrade(_));
    let response = reply.into_response();
    let head = head(&response, clock);
    let mut body = response.into_body();
    if is_upgrade {
        secure.write_all(&head).await?;
        secure.flush().await?;
        // Boxed, because they are large, and most watches are neither.
        match body.take_tunnel() {
            Some(far) => Box::pin(tunnel::carry(secure, far, drain, clock)).await,
            None => Box::pin(websocket::serve(secure, &mut body, clock)).await,
        }
        return Ok(false);
    }
    let mut sending = Sending { body, out: Out::head(head), is_sent: false, is_last: false };
    std::future::poll_fn(|cx| sending.poll(secure, cx)).await
}

/// A response's head as it is sent.
fn head<B>(response: &Response<B>, clock: &Clock) -> Vec<u8> {
    let status = response.status();
    let mut head = format!("HTTP/1.1 {}\r\n", status).into_bytes();
    for (name, value) in response.headers() {
        head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    if status != StatusCode::SWITCHING_PROTOCOLS {
        head.extend_from_slice(b"transfer-encoding: chunked\r\n");
    }
    let now = i64::try_from(clock.unix_ms()).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let date = now.and_then(|now| DateTimePrinter::new().timestamp_to_rfc9110_string(&now).ok());
    if let Some(date) = date {
        head.extend_from_slice(format!("date: {date}\r\n").as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// A watch on its way: a piece at a time, each a chunk.
struct Sending<B> {
    body: B,
    // What is to be written before the next piece is asked for.
    out: Out,
    // The kernel has what was written.
    is_sent: bool,
    is_last: bool,
}

impl<B: ReplyBody> Sending<B> {
    /// Ready when the watch is over. Returns whether it ended by itself.
    fn poll(&mut self, secure: &mut TlsConnection, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        self.body.prefetch();
        secure.prefetch();
        if self.poll_send(secure, cx)?.is_ready() {
            return Poll::Ready(Ok(true));
        }
        secure.poll_gone(cx).map_ok(|()| false)
    }

    fn poll_send(&mut self, secure: &mut TlsConnection, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut batches = 0;
        loop {
            ready!(self.poll_out(secure, cx))?;
            if self.is_last {
                return self.poll_sent(secure, cx);
            }
            let piece = match self.body.poll_piece(cx) {
                Poll::Ready(Some(Ok(piece))) => piece,
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(io::Error::other(error))),
                Poll::Ready(None) => {
                    self.is_last = true;
                    Bytes::new()
                }
                // Several events that wait are one write.
                Poll::Pending => {
                    let goes_on = !self.is_sent && self.body.waits_to_pass();
                    ready!(self.poll_sent(secure, cx))?;
                    batches += 1;
                    // Otherwise the task is woken once this has passed, and others have had their turn by
                    // then.
                    if goes_on && batches < limits::TURN_BATCHES_MAX {
                        continue;
                    }
                    return Poll::Pending;
                }
            };
            if self.is_last || !piece.is_empty() {
                self.out = Out::chunk(piece);
                self.is_sent = false;
            }
        }
    }

    fn poll_sent(&mut self, secure: &mut TlsConnection, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_sent {
            ready!(secure.poll_flush(cx))?;
            self.is_sent = true;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_out(&mut self, secure: &mut TlsConnection, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_written() {
            let written = match secure.poll_write(cx, &self.out.rest()) {
                Poll::Ready(written) => written?,
                Poll::Pending => {
                    if !std::mem::replace(&mut self.out.is_carried, true) {
                        self.out.piece = self.body.carry(std::mem::take(&mut self.out.piece));
                    }
                    return Poll::Pending;
                }
            };
            self.out.written += written;
        }
        // Not kept while there is nothing to send, which is most of the time.
        self.out.piece = Bytes::new();
        Poll::Ready(Ok(()))
    }
}

/// A head, or a chunk: its length, a piece, and the end of its line.
struct Out {
    len: [u8; LEN_BYTES_MAX],
    len_bytes: u8,
    // The piece is counted as on its way; a head is not, nor is the end.
    is_carried: bool,
    end: &'static [u8],
    piece: Bytes,
    // The bytes of all three that are written.
    written: usize,
}

/// A length in hexadecimal digits, and the end of its line.
const LEN_BYTES_MAX: usize = 2 * size_of::<usize>() + 2;

/// The line that begins a chunk, and its length. Written by hand, because every event of every watch has one.
fn chunk_line(bytes: usize) -> ([u8; LEN_BYTES_MAX], u8) {
    let mut line = [0; LEN_BYTES_MAX];
    let digits = bytes.checked_ilog2().unwrap_or(0) as usize / 4 + 1;
    for (at, digit) in line[..digits].iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[bytes >> (4 * (digits - 1 - at)) & 0xf];
    }
    line[digits..digits + 2].copy_from_slice(b"\r\n");
    (line, digits as u8 + 2)
}

impl Out {
    fn head(head: Vec<u8>) -> Out {
        let len = [0; LEN_BYTES_MAX];
        Out { len, len_bytes: 0, is_carried: true, end: b"", piece: head.into(), written: 0 }
    }

    fn chunk(piece: Bytes) -> Out {
        let (len, len_bytes) = chunk_line(piece.len());
        Out { len, len_bytes, is_carried: piece.is_empty(), end: b"\r\n", piece, written: 0 }
    }

    fn parts(&self) -> [&[u8]; 3] {
        [&self.len[..usize::from(self.len_bytes)], &self.piece, self.end]
    }

    fn is_written(&self) -> bool {
        self.written >= usize::from(self.len_bytes) + self.piece.len() + self.end.len()
    }

    fn rest(&self) -> [IoSlice<'_>; 3] {
        let mut passed = self.written;
        self.parts().map(|part| {
            let own = passed.min(part.len());
            passed -= own;
            IoSlice::new(&part[own..])
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;

    use futures_util::FutureExt as _;
    use http_body::{Body, Frame};
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpStream;
    use tokio_rustls::client;

    use super::*;
    use crate::response_channel::ResponseChannel;
    use crate::tls_stream::testing;

    /// Gives each part when those before have passed.
    struct Parts {
        left: VecDeque<Bytes>,
        is_given: bool,
        channel: ResponseChannel,
    }

    impl Body for Parts {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.left.is_empty() {
                return Poll::Ready(None);
            }
            if self.is_given {
                ready!(self.channel.poll_passed(cx));
            }
            self.is_given = true;
            let part = self.left.pop_front();
            Poll::Ready(part.map(|part| Ok(Frame::data(self.channel.give(part)))))
        }
    }

    impl ReplyBody for Parts {
        fn whole(bytes: Bytes) -> Parts {
            Parts { left: [bytes].into(), is_given: false, channel: ResponseChannel::default() }
        }

        fn waits_to_pass(&self) -> bool {
            !self.left.is_empty()
        }
    }

    async fn connection() -> (TlsConnection, client::TlsStream<TcpStream>) {
        let (tls, client) = testing::pair(&[]).await;
        (TlsConnection::new(tls), client)
    }

    /// A watch that has parts of so many bytes to send.
    fn sending(secure: &TlsConnection, bytes: &[usize]) -> Sending<Parts> {
        let left = bytes.iter().map(|bytes| vec![b'x'; *bytes].into()).collect();
        let channel = ResponseChannel::connection(secure.socket().clone());
        let body = Parts { left, is_given: false, channel };
        Sending { body, out: Out::head(Vec::new()), is_sent: false, is_last: false }
    }

    /// However fast its client is, others have their turn: so many turns at least, and more whenever the
    /// client is slower.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_watch_whose_client_takes_everything_at_once_gives_way_after_some_batches() {
        let (mut secure, mut client) = connection().await;
        let client = tokio::spawn(async move {
            let mut read = Vec::new();
            client.read_to_end(&mut read).await.map(|_| read)
        });
        // Two are too much for one batch.
        let (parts, bytes) = (10 * limits::TURN_BATCHES_MAX, limits::TLS_GATHER_BYTES / 2 + 1);
        let mut sending = sending(&secure, &vec![bytes; parts]);
        let mut turns = 0;
        let ended = std::future::poll_fn(|cx| {
            turns += 1;
            sending.poll(&mut secure, cx)
        });
        assert!(ended.await.expect("open"));
        assert!(turns >= 10, "{turns} turns");
        secure.shutdown().await.expect("open");
        let read = client.await.expect("no panic").expect("whole");
        assert!(read.len() > parts * bytes && read.ends_with(b"x\r\n0\r\n\r\n"));
    }

    /// Of what a watch has more is given when what was given before has passed: with a client that takes it,
    /// at once.
    #[tokio::test]
    async fn a_watch_goes_on_in_the_same_turn_when_its_client_has_taken_what_it_was_given() {
        let (mut secure, mut client) = connection().await;
        // The second not together with the first.
        let mut sending = sending(&secure, &[5, limits::TLS_GATHER_BYTES]);
        let mut turn = std::future::poll_fn(|cx| sending.poll(&mut secure, cx));
        let first = (&mut turn).now_or_never();
        assert!(!sending.body.waits_to_pass(), "all of it is given");
        let mut read = Vec::new();
        let ended = async {
            if first.is_none() {
                assert!(std::future::poll_fn(|cx| sending.poll(&mut secure, cx)).await.expect("open"));
            }
            secure.shutdown().await.expect("open");
        };
        let (_, bytes) = tokio::join!(ended, client.read_to_end(&mut read));
        assert!(bytes.expect("whole") > limits::TLS_GATHER_BYTES && read.ends_with(b"x\r\n0\r\n\r\n"));
    }
}
