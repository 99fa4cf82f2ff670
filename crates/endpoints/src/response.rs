//! The body of an answer: whole, or made as it is sent.
//!
//! In: bytes, a pinned list or a watch. Out: an `http_body::Body`, pulled by hyper as the socket takes it.
//! Carries what must live as long as the answer: its seat and its record for the metrics.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use forebay_audit::Trail;
use forebay_pieces::Rest;
use forebay_proxy::{ProxiedBody, ProxiedMessages};
use forebay_room::Held;
use forebay_transport::{PiecewiseBody, Reply, ReplyBody, RunOn, SentBy, Stalled, Tunnel};
use forebay_usage::Usage;
use http_body::{Body, Frame, SizeHint};

use crate::answer::{HttpResponse, Readers};
use crate::flow_control::Ticket;
use crate::inflight::Seat;
use crate::limits::{ANSWER_SMALL_BYTES, LIST_BYTES};
use crate::metrics::Record;
use crate::status;
use crate::watch_body::WatchStream;

/// What `response` wants of its connection.
pub fn reply(response: HttpResponse) -> Reply<ResponseBody> {
    match (&response.body().content, response.status()) {
        (Content::Watch(_) | Content::Tunnel(_) | Content::Messages(_), status::UPGRADED) => {
            Reply::Upgrade(response)
        }
        (Content::Watch(_), _) => Reply::Watch(response),
        (Content::List { sent_by, .. }, _) => {
            let sent_by = *sent_by;
            Reply::Stream(response, sent_by)
        }
        (Content::Long { len, .. }, _) if *len > ANSWER_SMALL_BYTES => {
            Reply::Stream(response, SentBy::OwnTask)
        }
        (Content::Proxied(_), _) => Reply::Stream(response, SentBy::OwnTask),
        (
            Content::Long { .. }
            | Content::Whole(_)
            | Content::Messages(_)
            | Content::Tunnel(_)
            | Content::End,
            _,
        ) => Reply::Whole(response),
    }
}

/// Why a body broke off. Whatever it is, the stream is reset.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error(transparent)]
    Stalled(#[from] Stalled),
    /// The server that it comes from has broken off, or takes too long.
    #[error("the answer of another server broke off: {0}")]
    Proxied(String),
}

/// A piece of a list that is no longer is within what was asked for.
const PIECE_EXPECTED_BYTES: usize = LIST_BYTES / 2;

/// An answer's body.
pub struct ResponseBody {
    content: Content,
    seat: Option<Seat>,
    lease: Option<Held>,
    // What was leased at first.
    leased_bytes: usize,
    // For the request's head.
    head: Option<Held>,
    record: Option<Record>,
    // Its turn, which is over with it.
    ticket: Option<Arc<Ticket>>,
    usage: Option<Arc<Usage>>,
    // It is noted that the request is over when this goes.
    trail: Option<Arc<Trail>>,
}

pub enum Content {
    Whole(Bytes),
    /// The rest of one that is there, or whose length is known, and how long that is.
    Long {
        rest: PiecewiseBody,
        len: usize,
    },
    List {
        pieces: PiecewiseBody,
        sent_by: SentBy,
    },
    Watch(WatchStream),
    /// Another server's, as it comes.
    Proxied(ProxiedBody),
    /// The same as messages of an upgraded connection. Boxed, because few are.
    Messages(Box<ProxiedMessages>),
    /// What an upgraded connection leads to, until it is taken.
    Tunnel(Option<Box<dyn Tunnel>>),
    End,
}

impl ResponseBody {
    pub fn new(content: Content) -> ResponseBody {
        ResponseBody {
            content,
            seat: None,
            lease: None,
            leased_bytes: 0,
            head: None,
            record: None,
            ticket: None,
            usage: None,
            trail: None,
        }
    }

    /// Bytes that are there.
    pub fn whole(bytes: impl Into<Bytes>) -> ResponseBody {
        ResponseBody::new(Content::Whole(bytes.into()))
    }

    /// Keeps the request's seat until the body is gone. A list on a lease needs none: its reader may be slow.
    pub fn hold(&mut self, seat: Option<Seat>, record: Record) {
        let has_lease = matches!(self.content, Content::List { .. }) && self.lease.is_some();
        self.seat = seat.filter(|_| !has_lease);
        self.record = Some(record);
    }

    /// Keeps the request's turn until the body is gone, if there is more to it than what is there.
    pub fn hold_turn(&mut self, ticket: Option<Arc<Ticket>>) {
        let Some(ticket) = ticket else { return };
        let reader = match &self.content {
            Content::Whole(_) | Content::End => return ticket.answered(),
            Content::Tunnel(_) => {
                ticket.answered();
                self.ticket = Some(ticket);
                return;
            }
            Content::Proxied(proxied) => {
                ticket.answered();
                if proxied.is_watch() {
                    ticket.begun();
                }
                proxied.reader()
            }
            Content::Messages(messages) => {
                ticket.answered();
                ticket.begun();
                messages.reader()
            }
            Content::Long { rest: pieces, .. } | Content::List { pieces, .. } => {
                ticket.answered();
                pieces.reader()
            }
            // It is answered when its initial state is.
            Content::Watch(watch) => {
                ticket.begun();
                watch.reader()
            }
        };
        ticket.read_by(reader);
        self.ticket = Some(ticket);
    }

    /// Keeps what is put down to whoever asked until the body is gone.
    pub fn hold_usage(&mut self, usage: Option<Arc<Usage>>) {
        usage.iter().for_each(|usage| usage.answered());
        self.usage = usage;
    }

    /// Keeps what is noted of the request until the body is gone.
    pub fn hold_trail(&mut self, trail: Arc<Trail>) {
        self.trail = Some(trail);
    }

    /// Its reader has taken a piece. What a list holds is given back at its end, for it holds as much until
    /// then.
    fn taken(&self, bytes: usize) {
        match (&self.content, &self.ticket) {
            (Content::Long { .. }, Some(ticket)) => ticket.given_back(bytes),
            (Content::List { .. } | Content::Proxied(_) | Content::Messages(_), Some(ticket)) => {
                ticket.touch();
            }
            _ => {}
        }
    }

    /// Keeps the lease for what it holds until it is gone.
    pub fn set_lease(&mut self, lease: Option<Held>) {
        self.leased_bytes = lease.as_ref().map_or(0, Held::bytes);
        self.lease = lease;
    }

    /// Keeps that for the request's head as well: what is made as it is sent has its selectors until then.
    pub fn set_head_lease(&mut self, lease: Option<Held>) {
        if matches!(self.content, Content::List { .. } | Content::Watch(_)) {
            self.head = lease;
        }
    }

    /// Hands a whole body out in pieces, so that it is seen how far its reader is, and lets it be taken away.
    ///
    /// - `lease`: for what it holds, unless it has one already.
    pub fn watch_over(&mut self, (stalled_readers, channel): Readers<'_>, lease: impl FnOnce() -> Held) {
        let Content::Whole(bytes) = &mut self.content else { return };
        let (len, bytes) = (bytes.len(), std::mem::take(bytes));
        self.content = Content::Long {
            rest: PiecewiseBody::new(Box::new(Rest(bytes)), RunOn::Task, (stalled_readers, channel)),
            len,
        };
        self.lease.get_or_insert_with(lease);
    }

    /// How long it is, if that is known.
    pub fn exact_len(&self) -> Option<usize> {
        match &self.content {
            Content::Whole(bytes) => Some(bytes.len()),
            Content::Long { len, .. } => Some(*len),
            Content::End | Content::Tunnel(_) | Content::Messages(_) => Some(0),
            Content::List { .. } | Content::Watch(_) | Content::Proxied(_) => None,
        }
    }

    fn sent(&mut self, bytes: usize) {
        if let Some(record) = &mut self.record {
            record.sent(bytes);
        }
        // A watch says so itself: not all that it sends passes here.
        if let Some(usage) = self.usage.as_ref().filter(|_| !matches!(self.content, Content::Watch(_))) {
            usage.sent(bytes);
        }
    }

    /// Where a piece is longer than was foreseen, it counts as it is for as long as it is the last, or a part
    /// of it is.
    fn charge_piece(&mut self) {
        if let (Content::List { pieces, .. }, Some(lease)) = (&self.content, &mut self.lease) {
            let piece = pieces.made_bytes();
            let longer = if piece > PIECE_EXPECTED_BYTES { 2 * piece } else { 0 };
            lease.set(self.leased_bytes.max(longer));
        }
    }

    fn end(&mut self) {
        self.content = Content::End;
        if let Some(record) = &mut self.record {
            record.complete();
        }
        self.seat = None;
        self.ticket = None;
        self.usage = None;
        self.trail = None;
        self.lease = None;
        self.head = None;
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let is_whole = matches!(self.content, Content::Whole(_));
        let piece = ready!(self.poll_piece(cx));
        let carried = piece.map(|piece| piece.map(|bytes| if is_whole { bytes } else { self.carry(bytes) }));
        Poll::Ready(carried.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(bytes) => bytes.is_empty(),
            Content::Long { len, .. } => *len == 0,
            Content::End | Content::Tunnel(_) | Content::Messages(_) => true,
            Content::List { .. } | Content::Watch(_) | Content::Proxied(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.exact_len().map_or_else(SizeHint::default, |len| SizeHint::with_exact(len as u64))
    }
}

impl ReplyBody for ResponseBody {
    fn whole(bytes: Bytes) -> ResponseBody {
        ResponseBody::new(Content::Whole(bytes))
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let next = match &mut self.content {
            Content::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                self.sent(bytes.len());
                self.end();
                return Poll::Ready((!bytes.is_empty()).then_some(Ok(bytes)));
            }
            Content::Long { rest, len } => {
                ready!(rest.poll_next(cx)).map_err(BodyError::from).inspect(|piece| {
                    *len -= piece.as_ref().map_or(0, Bytes::len);
                })
            }
            Content::List { pieces, .. } => ready!(pieces.poll_next(cx)).map_err(BodyError::from),
            Content::Watch(watch) => match watch.poll_next(cx) {
                Poll::Ready(frames) => Ok(frames),
                Poll::Pending => return Poll::Pending,
            },
            Content::Proxied(proxied) => ready!(proxied.poll_next(cx)).map_err(BodyError::Proxied),
            Content::End | Content::Tunnel(_) | Content::Messages(_) => Ok(None),
        };
        match next {
            // It has looked long enough for what matches.
            Ok(Some(bytes)) if bytes.is_empty() => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(Some(bytes)) => {
                self.sent(bytes.len());
                self.taken(bytes.len());
                self.charge_piece();
                Poll::Ready(Some(Ok(bytes)))
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

    fn carry(&self, piece: Bytes) -> Bytes {
        match &self.record {
            Some(record) => record.carry(piece),
            None => piece,
        }
    }

    fn waits_to_pass(&self) -> bool {
        matches!(&self.content, Content::Watch(watch) if watch.waits_to_pass())
    }

    fn prefetch(&self) {
        if let Content::Watch(watch) = &self.content {
            watch.prefetch();
        }
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let message = match &mut self.content {
            Content::Watch(watch) => return watch.poll_next(cx),
            Content::Messages(messages) => ready!(messages.poll_message(cx)),
            _ => return Poll::Ready(None),
        };
        match &message {
            Some(message) => {
                self.sent(message.len());
                self.taken(message.len());
            }
            None => self.end(),
        }
        Poll::Ready(message)
    }

    fn take_tunnel(&mut self) -> Option<Box<dyn Tunnel>> {
        match &mut self.content {
            Content::Tunnel(far) => far.take(),
            _ => None,
        }
    }

    fn is_in_message(&self) -> bool {
        matches!(&self.content, Content::Watch(watch) if watch.has_more())
    }
}
