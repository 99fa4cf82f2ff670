//! What a request is answered, and what the answer wants of its connection.
//!
//! In: a response. Out: the same, and how it is sent. What is sent so is up to who answers; how, to this crate.

use http::Response;

use crate::connections::Connection;
use crate::response_channel::ResponseChannel;

/// An answer.
pub enum Reply<B> {
    /// It is there, and small: it waits for its reader as long as others leave room for that, and nobody else looks after that.
    Whole(Response<B>),
    /// Its body is made as it is sent, or is long; whoever made it looks after its reader.
    Stream(Response<B>, SentBy),
    /// Its body waits most of the time, for as long as a reader likes. It takes a connection of HTTP/1.1 over.
    Watch(Response<B>),
    /// The same, as messages over WebSocket: nothing but a [connection](ResponseChannel::is_connection) can be upgraded.
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

/// What a request came with, besides what it says.
pub struct Exchange<'a, P> {
    /// What is known of the client by what it has shown.
    pub peer: &'a P,
    pub connection: &'a Connection,
    /// What the answer is written to.
    pub channel: ResponseChannel,
}

impl<B> Reply<B> {
    /// What is sent.
    pub fn into_response(self) -> Response<B> {
        let (Reply::Whole(response)
        | Reply::Stream(response, _)
        | Reply::Watch(response)
        | Reply::Upgrade(response)) = self;
        response
    }
}
