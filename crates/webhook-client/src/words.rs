//! What goes wrong on the way, in the words of Go's HTTP client.
//!
//! In: an error of a connection. Out: what follows `Post "…": `. Never: more than the innermost cause.

use std::error::Error as StdError;

use forebay_authorities::{CutIn, go_answer_words, go_dial_words, go_handshake_words};
use forebay_connector::Error;

/// See the module's doc.
pub fn of(error: &Error) -> String {
    match error {
        Error::NotConnected(inner) => of(inner),
        Error::Connect { address, source } => go_dial_words(address, source),
        Error::Dns { host, .. } => format!("dial tcp: lookup {host}: no such host"),
        Error::ConnectTimedOut(_) => "dial tcp: i/o timeout".to_owned(),
        Error::Tls { source, .. } => go_handshake_words(source),
        Error::Gone | Error::NoSettings => "EOF".to_owned(),
        Error::PingLost => "http2: client connection lost".to_owned(),
        // Many answers share a connection by HTTP/2: that it ends is unexpected for each.
        Error::Head2(source) | Error::Body2(source) => {
            let end = source.get_io().map(|end| end as &(dyn StdError + 'static));
            go_answer_words(end.unwrap_or(source), CutIn::Body)
        }
        Error::Body1(source) => go_answer_words(source, CutIn::Body),
        other => go_answer_words(other, CutIn::Head),
    }
}

/// Whether the other end was never reached.
pub fn is_unreached(error: &Error) -> bool {
    match error {
        Error::NotConnected(inner) => is_unreached(inner),
        Error::Connect { .. } | Error::ConnectTimedOut(_) | Error::Dns { .. } => true,
        _ => false,
    }
}
