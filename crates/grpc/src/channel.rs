//! gRPC over one HTTP/2 connection: single calls, and streams.
//!
//! In: a connection, messages as bytes. Out: messages as bytes, or a [`CallError`]. A message is held
//! whole, at most [`MESSAGE_BYTES_MAX`](crate::limits::MESSAGE_BYTES_MAX); a stream that is not read stops
//! its sender and nobody else. Never: compression, deadlines (the caller drops the call).

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri, header};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use tokio::sync::mpsc;

use crate::error::CallError;
use crate::limits;

/// What stands before each message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;
/// Most bytes of a frame as gRPC for Go sends it.
const FRAME_BYTES: usize = 16 << 10;

/// One connection. Cheap to clone.
#[derive(Clone)]
pub struct Channel {
    send: SendRequest<Outgoing>,
    // `https://member:2379`.
    base: String,
    // Said with each call.
    also: Option<(HeaderName, HeaderValue)>,
    message_bytes_max: usize,
}

/// What is sent: one message, or those that come.
pub enum Outgoing {
    One(Option<Bytes>),
    Many(mpsc::Receiver<Bytes>),
}

/// The sending side of a stream. Dropped, it ends our side.
pub struct Sender(mpsc::Sender<Bytes>);

/// The receiving side of a stream. Dropped, it ends the stream.
pub struct Receiver {
    body: Incoming,
    held: BytesMut,
    headers: HeaderMap,
    message_bytes_max: usize,
}

impl Channel {
    /// - `base`: what stands before each path, such as `https://member:2379`.
    pub fn new(send: SendRequest<Outgoing>, base: String) -> Channel {
        Channel { send, base, also: None, message_bytes_max: limits::MESSAGE_BYTES_MAX }
    }

    /// The same, which says `value` as `name` with each call.
    #[must_use]
    pub fn saying(self, name: &'static str, value: &'static str) -> Channel {
        let also = Some((HeaderName::from_static(name), HeaderValue::from_static(value)));
        Channel { also, ..self }
    }

    /// The same, which takes no message that is longer.
    #[must_use]
    pub fn taking(self, message_bytes_max: usize) -> Channel {
        Channel { message_bytes_max, ..self }
    }

    pub fn is_closed(&self) -> bool {
        self.send.is_closed()
    }

    /// One message there, one back.
    ///
    /// # Errors
    /// [`CallError`]; [`CallError::Unreachable`] only when it was never sent.
    pub async fn call(&self, path: &str, message: &[u8]) -> Result<Bytes, CallError> {
        let mut receiver = self.download(path, message).await?;
        match receiver.next().await? {
            // Whatever the trailers say of an answer that is here, it is here.
            Some(answer) => Ok(answer),
            None => Err(CallError::Lost { text: "an answer without a message".to_string() }),
        }
    }

    /// One message there, many back.
    ///
    /// # Errors
    /// As for [`Channel::call`].
    pub async fn download(&self, path: &str, message: &[u8]) -> Result<Receiver, CallError> {
        self.receiver(self.send(path, Outgoing::One(Some(framed(message)))).await?)
    }

    /// Messages both ways. `first` is sent at once.
    ///
    /// # Errors
    /// As for [`Channel::call`].
    pub async fn stream(&self, path: &str, first: &[u8]) -> Result<(Sender, Receiver), CallError> {
        let (sender, outgoing) = mpsc::channel(limits::STREAM_SENDS_MAX);
        let lost = |_| CallError::Lost { text: "the stream has ended".to_string() };
        sender.try_send(framed(first)).map_err(lost)?;
        let response = self.send(path, Outgoing::Many(outgoing)).await?;
        Ok((Sender(sender), self.receiver(response)?))
    }

    fn receiver(&self, response: Response<Incoming>) -> Result<Receiver, CallError> {
        if !response.status().is_success() {
            return Err(CallError::Lost { text: format!("it speaks no gRPC: {}", response.status()) });
        }
        let (head, body) = response.into_parts();
        let message_bytes_max = self.message_bytes_max;
        Ok(Receiver { body, held: BytesMut::new(), headers: head.headers, message_bytes_max })
    }

    async fn send(&self, path: &str, body: Outgoing) -> Result<Response<Incoming>, CallError> {
        let uri = format!("{}{path}", self.base).parse::<Uri>();
        let uri = uri.map_err(|error| CallError::Unreachable { text: error.to_string() })?;
        let mut request = Request::new(body);
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        if let Some((name, value)) = &self.also {
            headers.insert(name, value.clone());
        }
        self.send.clone().send_request(request).await.map_err(|error| {
            let text = chain(&error);
            if error.is_canceled() { CallError::Unreachable { text } } else { CallError::Lost { text } }
        })
    }
}

impl Sender {
    /// Sends `message` unless some are waiting already.
    pub fn try_send(&self, message: &[u8]) {
        // Full: what waits there says the same. Closed: the receiving side says so.
        let _ = self.0.try_send(framed(message));
    }
}

impl Receiver {
    /// The next message; `None` when the other side has ended in peace. Cancel-safe.
    ///
    /// # Errors
    /// How it ended otherwise.
    pub async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        loop {
            if let Some(message) = self.cut()? {
                return Ok(Some(message));
            }
            let Some(frame) = self.body.frame().await else { return self.ended(None) };
            let frame = frame.map_err(|error| CallError::Lost { text: chain(&error) })?;
            match frame.into_data() {
                Ok(data) => self.held.extend_from_slice(&data),
                Err(frame) => return self.ended(frame.trailers_ref()),
            }
        }
    }

    /// The next message if all of it is here.
    fn cut(&mut self) -> Result<Option<Bytes>, CallError> {
        let Some(mut prefix) = self.held.get(..PREFIX_BYTES) else { return Ok(None) };
        let compressed = prefix.get_u8();
        let bytes = prefix.get_u32() as usize;
        if compressed != 0 {
            return Err(CallError::Compressed);
        }
        if bytes > self.message_bytes_max {
            return Err(CallError::Long { bytes });
        }
        let missing = (PREFIX_BYTES + bytes).saturating_sub(self.held.len());
        if missing > 0 {
            // At once, or a page is copied each time that it has doubled; and for what comes behind it in its
            // last frame.
            self.held.reserve(missing + FRAME_BYTES);
            return Ok(None);
        }
        self.held.advance(PREFIX_BYTES);
        let message = self.held.split_to(bytes).freeze();
        if self.held.is_empty() {
            // Not the tail of an allocation that the message keeps alive.
            self.held = BytesMut::new();
        }
        Ok(Some(message))
    }

    fn ended(&self, trailers: Option<&HeaderMap>) -> Result<Option<Bytes>, CallError> {
        let text = |name: &str| {
            let found = trailers.and_then(|trailers| trailers.get(name)).or_else(|| self.headers.get(name));
            found.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let code = text("grpc-status").and_then(|code| code.parse().ok());
        match code {
            Some(0) => Ok(None),
            Some(code) => {
                let text = percent_decoded(&text("grpc-message").unwrap_or_default());
                Err(CallError::Status { code, text })
            }
            None => Err(CallError::Lost { text: "the stream broke off".to_string() }),
        }
    }
}

impl http_body::Body for Outgoing {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let next = match &mut *self {
            Outgoing::One(message) => Poll::Ready(message.take()),
            Outgoing::Many(messages) => messages.poll_recv(context),
        };
        next.map(|message| message.map(|message| Ok(Frame::data(message))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Outgoing::One(None))
    }
}

fn framed(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(PREFIX_BYTES + message.len());
    frame.put_u8(0);
    frame.put_u32(message.len() as u32);
    frame.put_slice(message);
    frame.freeze()
}

/// `grpc-message` has everything but printable ASCII as `%XX`.
fn percent_decoded(text: &str) -> String {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let hex = || u8::from_str_radix(std::str::from_utf8(after.get(..2)?).ok()?, 16).ok();
        match (first, (*first == b'%').then(hex).flatten()) {
            (_, Some(byte)) => {
                out.push(byte);
                rest = &after[2..];
            }
            (byte, None) => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// An error and its causes in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        line.push_str(": ");
        line.push_str(&cause.to_string());
        source = cause.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_errors_are_decoded() {
        for (text, plain) in [("a%20b", "a b"), ("100%", "100%"), ("%zz", "%zz"), ("%C3%A4", "ä"), ("", "")]
        {
            assert_eq!(percent_decoded(text), plain);
        }
    }
}
