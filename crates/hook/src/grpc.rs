//! What plugins of tests speak: gRPC over a Unix socket, and protobuf.
//!
//! In: what is answered to whom. Out: answers as gRPC has them, and what goes wrong on purpose. Never: code
//! of what is tested: grpc-go speaks to it as well.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

/// What a call comes to.
pub(crate) enum Answered {
    Message(Vec<u8>),
    /// A status and its text.
    Failed(u32, String),
    /// Nothing, until the other side goes.
    Never,
    /// One message of so many bytes.
    Flood(u32),
}

/// A plugin that listens. Dropped, it is gone with its socket.
#[derive(Debug)]
pub(crate) struct Listening {
    pub socket: PathBuf,
    task: JoinHandle<()>,
}

type Answers = Arc<dyn Fn(&str, &[u8]) -> Answered + Send + Sync>;

impl Listening {
    /// Listens at `socket`, and says what `answers` says to a method's path and a message. To be called
    /// within a runtime.
    ///
    /// # Panics
    /// It cannot listen there.
    pub fn at(socket: &Path, answers: impl Fn(&str, &[u8]) -> Answered + Send + Sync + 'static) -> Listening {
        // Of one that was before.
        let _absent = std::fs::remove_file(socket);
        let listener = UnixListener::bind(socket).expect("a socket");
        let answers: Answers = Arc::new(answers);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, answers.clone()));
            }
        });
        Listening { socket: socket.to_owned(), task }
    }

    /// It is gone, with its connections and its socket, as one that crashed and was cleaned up after.
    pub fn die(&self) {
        self.task.abort();
        let _absent = std::fs::remove_file(&self.socket);
    }

    /// It goes without its socket, where another one listens by now.
    pub fn leave(mut self) {
        self.socket = PathBuf::new();
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.die();
    }
}

async fn serve(stream: UnixStream, answers: Answers) {
    let answer = service_fn(move |request| answer(request, answers.clone()));
    let connection = http2::Builder::new(TokioExecutor::new());
    // Whoever goes away is gone.
    let _ended = connection.serve_connection(TokioIo::new(stream), answer).await;
}

async fn answer(
    request: Request<Incoming>,
    answers: Answers,
) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = match request.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let (data, code, text) = match answers(&path, body.get(5..).unwrap_or_default()) {
        Answered::Never => std::future::pending().await,
        Answered::Flood(bytes) => {
            let head = [&[0][..], &bytes.to_be_bytes()].concat();
            let flood = Flood { head: Some(head.into()), left: bytes as usize };
            return Ok(grpc(Response::new(flood.boxed())));
        }
        Answered::Message(message) => {
            let mut data = vec![0];
            data.extend_from_slice(&(message.len() as u32).to_be_bytes());
            data.extend_from_slice(&message);
            (Bytes::from(data), 0, String::new())
        }
        Answered::Failed(code, text) => (Bytes::new(), code, text),
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(code));
    if let Ok(text) = HeaderValue::from_str(&text) {
        trailers.insert("grpc-message", text);
    }
    let body = Full::new(data).with_trailers(std::future::ready(Some(Ok(trailers))));
    Ok(grpc(Response::new(body.boxed())))
}

fn grpc(mut response: Response<BoxBody<Bytes, Infallible>>) -> Response<BoxBody<Bytes, Infallible>> {
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}

/// A message that is long.
struct Flood {
    head: Option<Bytes>,
    left: usize,
}

impl Body for Flood {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        static PIECE: [u8; 64 << 10] = [0; 64 << 10];
        if let Some(head) = self.head.take() {
            return Poll::Ready(Some(Ok(Frame::data(head))));
        }
        let piece = self.left.min(PIECE.len());
        self.left -= piece;
        Poll::Ready((piece > 0).then(|| Ok(Frame::data(Bytes::from_static(&PIECE[..piece])))))
    }
}

/// The fields of `message` that are bytes; there are no others.
pub(crate) fn fields(message: &[u8]) -> Vec<(u64, &[u8])> {
    let (mut all, mut rest) = (Vec::new(), message);
    while let Some(tag) = number(&mut rest) {
        let Some(length) = number(&mut rest) else { break };
        let Some((bytes, after)) = rest.split_at_checked(length as usize) else { break };
        all.push((tag >> 3, bytes));
        rest = after;
    }
    all
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 || shift > 56 {
            return Some(value);
        }
    }
}

/// Appends a field of bytes.
pub(crate) fn put(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a field that is a number; a negative one is as proto3 has an int64.
pub(crate) fn put_number(out: &mut Vec<u8>, field: u8, number: i64) {
    out.push(field << 3);
    put_varint(out, number.cast_unsigned());
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
