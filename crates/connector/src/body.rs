//! The body of an answer, which holds the seat of its request until it has ended or is dropped.
//!
//! In: a stream of HTTP/2, or what hyper has of HTTP/1.1. Out: its frames. Never: reads ahead; what is not
//! read here fills the window of its stream, and the server waits.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Response};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;

use crate::Error;
use crate::link::Link;
use crate::pool::Seat;
use crate::upload::Upload;

/// The body of an answer.
pub struct Body {
    // Before the seat: a stream is given up first, and then its seat is free.
    answer: Answer,
    /// Of the request: a server may answer before it has read all.
    upload: Option<Upload>,
    seat: Option<Seat>,
}

enum Answer {
    Http1(Incoming),
    Http2 {
        stream: RecvStream,
        link: Arc<Link>,
        /// All data came.
        data_ended: bool,
        length: Option<u64>,
    },
    Ended,
}

impl Body {
    pub(crate) fn http1(answer: Response<Incoming>, seat: Option<Seat>) -> Response<Body> {
        answer.map(|incoming| Body { answer: Answer::Http1(incoming), upload: None, seat })
    }

    pub(crate) fn http2(
        answer: Response<RecvStream>,
        link: Arc<Link>,
        upload: Option<Upload>,
        seat: Seat,
    ) -> Response<Body> {
        let length = length(answer.headers());
        answer.map(|stream| Body {
            answer: Answer::Http2 { stream, link, data_ended: false, length },
            upload,
            seat: Some(seat),
        })
    }

    /// Nothing more comes: everything is given back.
    fn end(&mut self) {
        self.answer = Answer::Ended;
        self.upload = None;
        self.seat = None;
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(upload) = &mut self.upload
            && let Poll::Ready(sent) = upload.poll(cx)
        {
            self.upload = None;
            if let Err(error) = sent {
                self.end();
                return Poll::Ready(Some(Err(Error::RequestBody(Box::new(error)))));
            }
        }
        let frame = ready!(self.answer.poll_frame(cx));
        match frame {
            Some(Ok(_)) => {}
            Some(Err(_)) => self.end(),
            None => {
                self.seat.iter_mut().for_each(Seat::is_clean);
                self.end();
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.answer {
            Answer::Http1(incoming) => incoming.is_end_stream(),
            Answer::Http2 { stream, .. } => stream.is_end_stream(),
            Answer::Ended => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.answer {
            Answer::Http1(incoming) => incoming.size_hint(),
            Answer::Http2 { length: Some(length), .. } => SizeHint::with_exact(*length),
            Answer::Http2 { length: None, .. } => SizeHint::default(),
            Answer::Ended => SizeHint::with_exact(0),
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        // Who knows how long it is does not ask whether it has ended.
        if matches!(&self.answer, Answer::Http1(incoming) if incoming.is_end_stream()) {
            self.seat.iter_mut().for_each(Seat::is_clean);
        }
    }
}

impl Answer {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match self {
            Answer::Http1(incoming) => Pin::new(incoming).poll_frame(cx).map_err(Error::Body1),
            Answer::Http2 { stream, link, data_ended, length } => {
                if !*data_ended {
                    match ready!(stream.poll_data(cx)) {
                        Some(Ok(data)) => {
                            // Fails for a stream that is over, where nothing is to be given back.
                            let _ = stream.flow_control().release_capacity(data.len());
                            *length = length.map(|left| left.saturating_sub(data.len() as u64));
                            return Poll::Ready(Some(Ok(Frame::data(data))));
                        }
                        // All was read that was asked for, and the server had no use for the rest of the
                        // request.
                        Some(Err(error))
                            if error.reason() == Some(h2::Reason::NO_ERROR) && error.is_reset() =>
                        {
                            return Poll::Ready(None);
                        }
                        Some(Err(error)) => return Poll::Ready(Some(Err(link.why(error, Error::Body2)))),
                        None => *data_ended = true,
                    }
                }
                match ready!(stream.poll_trailers(cx)) {
                    Ok(trailers) => Poll::Ready(trailers.map(|it| Ok(Frame::trailers(it)))),
                    Err(error) => Poll::Ready(Some(Err(link.why(error, Error::Body2)))),
                }
            }
            Answer::Ended => Poll::Ready(None),
        }
    }
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
