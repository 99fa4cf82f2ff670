//! What goes wrong on the way, in the words of Go's HTTP client.
//!
//! In: errors of the layers below. Out: what a client is told. Never: more than the innermost cause.

use std::error::Error as StdError;
use std::io;

use forebay_authorities::go_words;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// It is known not to be there.
    #[error("service unavailable")]
    Unavailable,
    /// What is said of where it is, or of who vouches for it, cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// No connection was made: nobody has seen the request.
    #[error("{0}")]
    Unreached(String),
    /// It went wrong once the server had the request, or a part of it.
    #[error("{0}")]
    Broken(String),
    /// It wants its client to ask elsewhere, which nobody who believes this server is to be told.
    #[error("the backend attempted to redirect this request, which is not permitted")]
    Redirected,
    /// As many requests are under way as may be.
    #[error("too many requests are under way")]
    Full,
}

/// Why `address` was not connected to.
pub fn of_connect(address: &str, source: &io::Error) -> String {
    let why = match source.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::TimedOut => "i/o timeout".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        _ => source.to_string(),
    };
    format!("dial tcp {address}: {why}")
}

pub fn of_handshake(source: &io::Error) -> String {
    let inner = source.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(why)) => {
            format!("tls: failed to verify certificate: x509: {}", go_words(why))
        }
        Some(other) => format!("tls: {other}"),
        None if source.kind() == io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None => source.to_string(),
    }
}

pub fn of_http(error: &hyper::Error) -> String {
    if error.is_incomplete_message() {
        return "EOF".to_owned();
    }
    let said = innermost(error);
    if said.starts_with("connection closed") {
        return "EOF".to_owned();
    }
    if said.starts_with("end of file before message length reached") {
        return "unexpected EOF".to_owned();
    }
    said
}

fn innermost(error: &dyn StdError) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
