//! What a user of this crate implements: who answers requests, and what an answer's body is.
//!
//! In: requests, and the certificates that clients have shown. Out: [replies](Reply). How these are sent is
//! this crate's own matter.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use forebay_rt::Duration;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::limits::STALL_WAIT;
use crate::reply::{Exchange, Reply};

/// Answers the requests of a server.
pub trait Service: Send + Sync + 'static {
    /// What is known of a client by the certificates that it has shown.
    type Peer: Send + Sync + 'static;
    type Body: ReplyBody;

    /// What is known of a client that has shown these certificates. The handshake has proved that it has
    /// their key. It has proved nothing else, unless the [configuration](crate::ServerTls) has the
    /// certificates judged.
    fn peer(&self, certificates: &[CertificateDer<'_>]) -> Self::Peer;

    /// Looks again at who the client is, before more of its requests is read.
    fn recheck(&self, _peer: &Self::Peer, _certificates: Option<&[CertificateDer<'_>]>) {}

    /// Answers a request.
    fn answer(
        &self,
        request: Request<Incoming>,
        exchange: Exchange<'_, Self::Peer>,
    ) -> impl Future<Output = Reply<Self::Body>> + Send;

    /// The answer to a request over HTTP/1.1 whose head is refused because it is ambiguous. The connection
    /// ends with it.
    fn refusal(&self, status: StatusCode, why: &'static str) -> Response<Self::Body> {
        let mut response = Response::new(Self::Body::whole(Bytes::from_static(why.as_bytes())));
        *response.status_mut() = status;
        let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
        response
    }

    /// How long a [small answer](Reply::Whole) over HTTP/2 waits for a reader whose client is
    /// [authenticated](crate::Connection::is_known); `None` is not at all. The answer to a stranger never
    /// waits.
    fn wait_for_reader(&self) -> Option<ReaderWait> {
        Some(ReaderWait { span: STALL_WAIT, held: Box::new(()) })
    }
}

/// How long a small answer waits for its reader, and what is held meanwhile.
pub struct ReaderWait {
    pub span: Duration,
    pub held: Box<dyn Send>,
}

/// The other end of a connection that speaks a protocol of its own from some point on.
pub trait Tunnel: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Tunnel for T {}

/// An answer's body. The methods besides [`Body`]'s matter to a [watch](Reply::Watch) alone.
pub trait ReplyBody:
    Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static
{
    /// A body whose bytes are all there.
    fn whole(bytes: Bytes) -> Self;

    /// The next piece of a watch. It is not counted as in flight; a piece that cannot be sent at once is
    /// counted by [`ReplyBody::carry`].
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        loop {
            match ready!(Pin::new(&mut *self).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        return Poll::Ready(Some(Ok(piece)));
                    }
                }
            }
        }
    }

    /// `piece`, counted as in flight until it is dropped.
    fn carry(&self, piece: Bytes) -> Bytes {
        piece
    }

    /// Whether the next piece comes as soon as the earlier ones were
    /// [sent](crate::ResponseChannel::poll_passed).
    fn waits_to_pass(&self) -> bool {
        false
    }

    /// Has the CPU fetch the memory that is about to be needed.
    fn prefetch(&self) {}

    /// The next bytes of an [upgrade](Reply::Upgrade): [messages](crate::websocket::push_message), or a part
    /// of one.
    fn poll_message(&mut self, _cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Poll::Ready(None)
    }

    /// What an [upgrade](Reply::Upgrade) leads to, where that is not messages but whatever both sides say.
    /// Once.
    fn take_tunnel(&mut self) -> Option<Box<dyn Tunnel>> {
        None
    }

    /// Whether the last piece was part of a message that goes on: no other message may come in between.
    fn is_in_message(&self) -> bool {
        false
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>> + 'static> ReplyBody for UnsyncBoxBody<Bytes, E> {
    fn whole(bytes: Bytes) -> Self {
        Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
    }
}
