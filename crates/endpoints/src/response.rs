//! The body of an answer: whole, or made as it is sent.
//!
//! In: bytes, a pinned list or a watch. Out: an `http_body::Body`, pulled by hyper as the socket takes it. Carries what
//! must live as long as the answer: its seat and its record for the metrics.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::inflight::Seat;
use crate::metrics::Record;
use crate::pins::{Pinned, Stalled};
use crate::watch_body::WatchStream;

/// Why a body broke off. Whatever it is, the stream is reset.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error(transparent)]
    Stalled(#[from] Stalled),
}

/// An answer's body.
pub struct ResponseBody {
    content: Content,
    seat: Option<Seat>,
    record: Option<Record>,
}

pub enum Content {
    Whole(Bytes),
    List(Pinned),
    Watch(Box<WatchStream>),
    End,
}

impl ResponseBody {
    pub fn new(content: Content) -> ResponseBody {
        ResponseBody { content, seat: None, record: None }
    }

    /// Bytes that are there.
    pub fn whole(bytes: impl Into<Bytes>) -> ResponseBody {
        ResponseBody::new(Content::Whole(bytes.into()))
    }

    /// Keeps the request's seat until the body is gone.
    pub fn hold(&mut self, seat: Option<Seat>, record: Record) {
        self.seat = seat;
        self.record = Some(record);
    }

    /// How long it is, if that is known.
    pub fn exact_len(&self) -> Option<usize> {
        match &self.content {
            Content::Whole(bytes) => Some(bytes.len()),
            Content::End => Some(0),
            Content::List(_) | Content::Watch(_) => None,
        }
    }

    fn sent(&mut self, bytes: usize) {
        if let Some(record) = &mut self.record {
            record.sent(bytes);
        }
    }

    fn end(&mut self) {
        self.content = Content::End;
        if let Some(record) = &mut self.record {
            record.complete();
        }
        self.seat = None;
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let next = match &mut self.content {
            Content::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                self.sent(bytes.len());
                self.end();
                return Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))));
            }
            Content::List(list) => list.next().map(|piece| piece.map(Bytes::from)).map_err(BodyError::from),
            Content::Watch(watch) => match watch.poll_next(cx) {
                Poll::Ready(frames) => Ok(frames),
                Poll::Pending => return Poll::Pending,
            },
            Content::End => Ok(None),
        };
        match next {
            Ok(Some(bytes)) => {
                self.sent(bytes.len());
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Ok(None) => {
                self.end();
                Poll::Ready(None)
            }
            Err(error) => {
                self.content = Content::End;
                if let Some(record) = &mut self.record {
                    record.abort();
                }
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(bytes) => bytes.is_empty(),
            Content::End => true,
            Content::List(_) | Content::Watch(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.exact_len().map_or_else(SizeHint::default, |len| SizeHint::with_exact(len as u64))
    }
}
