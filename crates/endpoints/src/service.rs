//! What transport is told by this crate: who a client is, what answers its requests, and how long an answer
//! waits for it.
//!
//! In: requests and certificates. Out: replies. Never: decides anything; each word is somebody else's.

use std::future::Future;

use forebay_room::limits::ROOM_ONE_BYTES;
use forebay_transport::limits::STALL_WAIT;
use forebay_transport::{Exchange, ReaderWait, Reply, Service};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use rustls::pki_types::CertificateDer;

use crate::answer;
use crate::handler::{Handler, OnConnection};
use crate::limits::{STALL_WAIT_WHEN_FULL, STREAM_BYTES};
use crate::response::ResponseBody;

impl Service for Handler {
    type Peer = OnConnection;
    type Body = ResponseBody;

    fn peer(&self, certificates: &[CertificateDer<'_>]) -> OnConnection {
        OnConnection { peer: self.authenticator.peer(certificates), ..OnConnection::default() }
    }

    fn recheck(&self, known: &OnConnection, certificates: Option<&[CertificateDer<'_>]>) {
        known.peer.look_again(certificates);
    }

    fn answer(
        &self,
        request: Request<Incoming>,
        exchange: Exchange<'_, OnConnection>,
    ) -> impl Future<Output = Reply<ResponseBody>> + Send {
        Handler::answer(self, request, exchange)
    }

    fn refusal(&self, status: StatusCode, why: &'static str) -> Response<ResponseBody> {
        answer::text(status, why)
    }

    /// A while, which is shorter when much lies about.
    fn wait_for_reader(&self) -> Option<ReaderWait> {
        let answers = &self.rooms.answers;
        let totals = answers.totals();
        let limit = totals.limit.max(ROOM_ONE_BYTES);
        let span = match totals.held {
            held if held < limit => STALL_WAIT,
            held if held < 2 * limit => STALL_WAIT_WHEN_FULL,
            _ => return None,
        };
        Some(ReaderWait { span, held: Box::new(answers.charge(STREAM_BYTES)) })
    }
}
