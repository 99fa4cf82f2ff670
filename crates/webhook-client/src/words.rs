//! What goes wrong on the way, in the words of Go's HTTP client.
//!
//! In: an error of a connection. Out: what follows `Post "…": `. Never: more than the innermost cause.

use std::error::Error as StdError;
use std::io;

use forebay_authorities::go_words;
use forebay_connector::Error;

/// See the module's doc.
pub fn of(error: &Error) -> String {
    match error {
        Error::NotConnected(inner) => of(inner),
        Error::Connect { address, source } => format!("dial tcp {address}: {}", of_connect(source)),
        Error::Dns { host, .. } => format!("dial tcp: lookup {host}: no such host"),
        Error::ConnectTimedOut(_) => "dial tcp: i/o timeout".to_owned(),
        Error::Tls { source, .. } => of_handshake(source),
        Error::Gone | Error::PingLost | Error::NoSettings => "EOF".to_owned(),
        Error::Head1(_) | Error::Body1(_) => of_http1(error),
        other => innermost(other),
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

fn of_connect(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::TimedOut => "i/o timeout".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        _ => source.to_string(),
    }
}

fn of_handshake(source: &io::Error) -> String {
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

fn of_http1(error: &Error) -> String {
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
