//! The answer to a request, and how it is to be sent.
//!
//! In: a response, and which of the ways to send it suits it. Out: both. Who answers chooses the way; this
//! crate knows how each of them works. Never: sends.

use http::{HeaderValue, Response, header};

use crate::connections::Connection;
use crate::response_channel::ResponseChannel;

/// An answer.
pub enum Reply<B> {
    /// A small answer whose bytes are all there. This crate sees to it that it does not wait for its reader
    /// for too long.
    Whole(Response<B>),
    /// A long answer, or one that is made as it is sent. Whoever made it sees to it that a reader that stalls
    /// loses it.
    Stream(Response<B>, SentBy),
    /// An answer that waits most of the time, and lasts as long as the client likes. It takes a connection of
    /// HTTP/1.1 over.
    Watch(Response<B>),
    /// A watch as messages over WebSocket, or a [tunnel](crate::ReplyBody::take_tunnel). Only a whole
    /// [connection](ResponseChannel::is_connection) can be upgraded.
    Upgrade(Response<B>),
}

/// Which task asks for the pieces of a body, where a connection has several streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentBy {
    /// The connection's: a piece costs little to make.
    Connection,
    /// The stream's own: a piece may cost much, and other streams do not wait for it.
    OwnTask,
}

/// What belongs to a request besides its head and body.
pub struct Exchange<'a, P> {
    /// What is known of the client by the certificates that it has shown.
    pub peer: &'a P,
    pub connection: &'a Connection,
    /// What the answer is written to.
    pub channel: ResponseChannel,
}

impl<B> Reply<B> {
    /// Says that the connection ends with this answer; over HTTP/1.1.
    pub(crate) fn says_close(&mut self) {
        let (Reply::Whole(response) | Reply::Stream(response, _) | Reply::Watch(response)) = self else {
            // An upgraded connection ends anyway.
            return;
        };
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }

    /// Whether it says so.
    pub(crate) fn is_last(&self) -> bool {
        let (Reply::Whole(response)
        | Reply::Stream(response, _)
        | Reply::Watch(response)
        | Reply::Upgrade(response)) = self;
        response.headers().get(header::CONNECTION).is_some_and(|value| value == "close")
    }

    /// The response, without the way to send it.
    pub fn into_response(self) -> Response<B> {
        let (Reply::Whole(response)
        | Reply::Stream(response, _)
        | Reply::Watch(response)
        | Reply::Upgrade(response)) = self;
        response
    }
}
