//! What goes wrong with a connection, or with a request on it.
//!
//! In: errors of the layers below. Out: [`Error`], with the layer's own as its source. Never: what a server
//! answers.

use std::io;
use std::sync::Arc;

use forebay_rt::Duration;

/// What went wrong; [`fault_of`](crate::fault_of) says it in the words of a reflector.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A part of the configuration is malformed: a certificate, a key, a token.
    #[error("the configuration cannot be used")]
    Config(#[source] Box<kube::Error>),
    #[error("{0} is no URL of an API server")]
    Url(String),
    #[error("{0} is no name that a certificate can be for")]
    ServerName(String),
    /// The URL is given without the password that may be in it.
    #[error("the proxy {0} cannot be used: only http:// proxies, which are asked to CONNECT, are known here")]
    Proxy(String),
    #[error("no address for {host}")]
    Dns { host: String, source: io::Error },
    #[error("cannot connect to {address}")]
    Connect { address: String, source: io::Error },
    #[error("the proxy answered {0:?} instead of connecting")]
    ProxyRefused(String),
    #[error("the TLS handshake with {host} failed")]
    Tls { host: String, source: io::Error },
    #[error("no connection within {0:?}")]
    ConnectTimedOut(Duration),
    /// What the server speaks is not HTTP/2, although it agreed to.
    #[error("the HTTP/2 connection was not begun")]
    Begin2(#[source] h2::Error),
    #[error("the server closed the HTTP/2 connection before it took a request")]
    NoSettings,
    #[error("the HTTP/1.1 connection was not begun")]
    Begin1(#[source] hyper::Error),
    /// No connection could be opened; all who waited for it are told so.
    #[error("no connection to the server")]
    NotConnected(#[source] Arc<Error>),
    #[error("the HTTP/2 stream failed before the head of the answer")]
    Head2(#[source] h2::Error),
    #[error("the HTTP/2 stream failed within the answer")]
    Body2(#[source] h2::Error),
    #[error("the HTTP/1.1 connection failed before the head of the answer")]
    Head1(#[source] hyper::Error),
    #[error("the HTTP/1.1 connection failed within the answer")]
    Body1(#[source] hyper::Error),
    #[error("the server did not answer a ping")]
    PingLost,
    #[error("the body of the request could not be read")]
    RequestBody(#[source] Box<kube::Error>),
    #[error("{0} requests wait for a connection already")]
    Full(usize),
    /// The runtime that the connections lived in has ended.
    #[error("the connections are no more")]
    Gone,
}
