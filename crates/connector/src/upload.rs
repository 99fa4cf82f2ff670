//! The body of a request on its way over an HTTP/2 stream.
//!
//! In: a body, a stream. Out: whether it is through. What the server will not take any more is no error here:
//! its answer says so. Never: reads ahead of what the stream has room for by more than one piece; starts a
//! task.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http_body::Body as _;
use kube::client::Body;

/// What is left of a request's body.
pub(crate) struct Upload {
    body: Body,
    stream: SendStream<Bytes>,
    /// What was read of the body and the stream has not taken yet.
    piece: Bytes,
}

impl Upload {
    pub fn new(body: Body, stream: SendStream<Bytes>) -> Upload {
        Upload { body, stream, piece: Bytes::new() }
    }

    /// Ready once all is sent, or the server wants no more.
    ///
    /// # Errors
    /// When the body cannot be read; its stream is given up then.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        loop {
            if !self.piece.is_empty() {
                match ready!(self.poll_piece(cx)) {
                    Some(()) => continue,
                    None => return Poll::Ready(Ok(())),
                }
            }
            if let Poll::Ready(_given_up) = self.stream.poll_reset(cx) {
                return Poll::Ready(Ok(()));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.piece = data,
                    Err(frame) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        // Fails when the stream is gone, of which its answer tells.
                        let _ = self.stream.send_trailers(trailers);
                        return Poll::Ready(Ok(()));
                    }
                },
                Some(Err(error)) => {
                    self.stream.send_reset(Reason::CANCEL);
                    return Poll::Ready(Err(error));
                }
                None => {
                    let _ = self.stream.send_data(Bytes::new(), true);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }

    /// Sends as much of the piece as there is room for. `None` when the stream is gone.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        self.stream.reserve_capacity(self.piece.len());
        while self.stream.capacity() == 0 {
            match ready!(self.stream.poll_capacity(cx)) {
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Poll::Ready(None),
            }
        }
        let room = self.stream.capacity().min(self.piece.len());
        let part = self.piece.split_to(room);
        let end = self.piece.is_empty() && self.body.is_end_stream();
        match self.stream.send_data(part, end) {
            Ok(()) if !end => Poll::Ready(Some(())),
            Ok(()) | Err(_) => Poll::Ready(None),
        }
    }
}
