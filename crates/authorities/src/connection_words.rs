//! What goes wrong with a connection to a server, in the words of Go's `net`, `crypto/tls` and `net/http`.
//!
//! In: errors of the layers below. Out: what Go's client says of them. Never: more than the innermost cause.
//!
//! Source: Go 1.26 `net/http/transport.go` (`readLoop`, `mapRoundTripError`), `crypto/tls/conn.go`
//! (`readRecordOrCCS`): an end without `close_notify` is an end like any other.

use std::error::Error as StdError;
use std::io;

use crate::words::go_words;

/// How far an answer had come when its connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutIn {
    /// Of one by HTTP/1.1 there was no whole head.
    Head,
    /// It had begun; or the connection carries many, as by HTTP/2.
    Body,
}

/// Why `address` was not connected to.
pub fn go_dial_words(address: &str, source: &io::Error) -> String {
    let why = match source.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::TimedOut => "i/o timeout".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        _ => source.to_string(),
    };
    format!("dial tcp {address}: {why}")
}

/// Why a handshake did not come to its end.
pub fn go_handshake_words(source: &io::Error) -> String {
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

/// Why there is no answer, or no more of it.
pub fn go_answer_words(error: &(dyn StdError + 'static), cut_in: CutIn) -> String {
    let mut innermost = error;
    let mut is_cut = false;
    loop {
        is_cut |= innermost.downcast_ref::<io::Error>().is_some_and(is_end);
        let Some(source) = innermost.source() else { break };
        innermost = source;
    }
    let said = innermost.to_string();
    // What hyper says of a connection that ended between two messages; its type is its own.
    match (is_cut || said.starts_with("connection closed"), cut_in) {
        (true, CutIn::Head) => "EOF".to_owned(),
        (true, CutIn::Body) => "unexpected EOF".to_owned(),
        (false, _) => said,
    }
}

/// The end of what was to be read, be it said by TLS or not.
fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the layer above")]
    struct Above(#[source] io::Error);

    #[test]
    fn an_end_is_told_by_how_far_the_answer_had_come_and_the_rest_as_it_is() {
        let rude = || io::Error::new(io::ErrorKind::UnexpectedEof, "peer closed connection without a word");
        assert_eq!(go_answer_words(&Above(rude()), CutIn::Head), "EOF");
        assert_eq!(go_answer_words(&Above(rude()), CutIn::Body), "unexpected EOF");
        let other = Above(io::Error::other("something else"));
        assert_eq!(go_answer_words(&other, CutIn::Head), "something else");
    }

    #[test]
    fn an_address_that_cannot_be_connected_to_is_told_with_it() {
        for (kind, why) in [
            (io::ErrorKind::ConnectionRefused, "connect: connection refused"),
            (io::ErrorKind::HostUnreachable, "connect: no route to host"),
            (io::ErrorKind::TimedOut, "i/o timeout"),
        ] {
            assert_eq!(go_dial_words("h:1", &kind.into()), format!("dial tcp h:1: {why}"));
        }
    }

    #[test]
    fn a_handshake_that_is_cut_off_is_an_end() {
        assert_eq!(go_handshake_words(&io::ErrorKind::UnexpectedEof.into()), "EOF");
    }
}
