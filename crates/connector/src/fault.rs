//! What befell a request, told from its error.
//!
//! In: an error of our client, or of any `kube::Client`. Out: a [`Fault`]. Never: an error that is an answer
//! of the server; that has a status and is no fault.
//!
//! The innermost error that says something counts: what wraps it knows less. Two libraries keep their types
//! to themselves, and are known by their words: no address for a name, and a ping without an answer.

use std::error::Error as StdError;
use std::io;

use forebay_client::reflector::Fault;

use crate::Error;
use crate::limits::CAUSES_READ_MAX;

/// How far the answer had come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Head,
    Body,
}

/// What befell the request.
pub fn fault_of(error: &(dyn StdError + 'static)) -> Fault {
    let chain = chain(error);
    let phase = if chain.iter().any(|it| is_of_a_body(*it)) { Phase::Body } else { Phase::Head };
    let said = chain.iter().rev().find_map(|it| fault(*it, phase));
    said.or_else(|| chain.iter().rev().find_map(|it| vague(*it, phase))).unwrap_or(Fault::Other)
}

/// Every error, outermost first. What an [`io::Error`] wraps is left out by its own `source`.
fn chain<'a>(error: &'a (dyn StdError + 'static)) -> Vec<&'a (dyn StdError + 'static)> {
    let mut chain = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next.filter(|_| chain.len() < CAUSES_READ_MAX) {
        chain.push(error);
        next = match (error.downcast_ref::<io::Error>(), error.downcast_ref::<Error>()) {
            (Some(io), _) => io.get_ref().map(|inner| inner as &(dyn StdError + 'static)),
            (_, Some(Error::NotConnected(inner))) => Some(&**inner),
            _ => error.source(),
        };
    }
    chain
}

fn is_of_a_body(error: &(dyn StdError + 'static)) -> bool {
    match error.downcast_ref::<Error>() {
        Some(error) => matches!(error, Error::Body1(_) | Error::Body2(_)),
        None => {
            error.is::<hyper::Error>()
                && error.to_string().starts_with("error reading a body from connection")
        }
    }
}

/// What one error says by itself.
fn fault(error: &(dyn StdError + 'static), phase: Phase) -> Option<Fault> {
    if let Some(error) = error.downcast_ref::<Error>() {
        return ours(error);
    }
    if let Some(error) = error.downcast_ref::<h2::Error>() {
        return http2(error, phase);
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return io(error, phase);
    }
    if error.is::<rustls::Error>() {
        return Some(Fault::Tls);
    }
    match error.to_string().as_str() {
        "dns error" => Some(Fault::Dns),
        "keep-alive timed out" => Some(Fault::PingLost),
        _ => None,
    }
}

fn ours(error: &Error) -> Option<Fault> {
    Some(match error {
        Error::Dns { .. } => Fault::Dns,
        Error::Connect { .. } | Error::ProxyRefused(_) => Fault::Unreachable,
        Error::Tls { .. } | Error::ServerName(_) => Fault::Tls,
        Error::ConnectTimedOut(_) => Fault::TimedOut,
        Error::NoSettings => Fault::Reset,
        Error::PingLost => Fault::PingLost,
        Error::Config(_)
        | Error::Url(_)
        | Error::Proxy(_)
        | Error::Begin1(_)
        | Error::Begin2(_)
        | Error::NotConnected(_)
        | Error::Head1(_)
        | Error::Head2(_)
        | Error::Body1(_)
        | Error::Body2(_)
        | Error::RequestBody(_)
        | Error::Full(_)
        | Error::Gone => return None,
    })
}

fn http2(error: &h2::Error, phase: Phase) -> Option<Fault> {
    match error.get_io() {
        Some(error) => io(error, phase),
        None if error.is_go_away() && error.is_remote() => Some(Fault::GoAway),
        None if error.is_reset() => Some(Fault::StreamReset),
        // What we could not understand.
        None => None,
    }
}

fn io(error: &io::Error, phase: Phase) -> Option<Fault> {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::ConnectionRefused => Some(Fault::Refused),
        Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::NetworkDown | Kind::AddrNotAvailable => {
            Some(Fault::Unreachable)
        }
        Kind::TimedOut => Some(Fault::TimedOut),
        Kind::ConnectionReset | Kind::ConnectionAborted => Some(Fault::Reset),
        Kind::UnexpectedEof | Kind::BrokenPipe | Kind::NotConnected | Kind::WriteZero => Some(closed(phase)),
        _ if error.to_string().starts_with("failed to lookup address information") => Some(Fault::Dns),
        _ => None,
    }
}

/// The fault of an error that names no cause.
fn vague(error: &(dyn StdError + 'static), phase: Phase) -> Option<Fault> {
    if error.is::<tokio::time::error::Elapsed>() {
        return Some(Fault::TimedOut);
    }
    if let Some(error) = error.downcast_ref::<hyper::Error>() {
        return match () {
            () if error.is_timeout() => Some(Fault::TimedOut),
            () if error.is_incomplete_message() || error.is_closed() || error.is_canceled() => {
                Some(closed(phase))
            }
            () => None,
        };
    }
    let error = error.downcast_ref::<hyper_util::client::legacy::Error>()?;
    error.is_connect().then_some(Fault::Unreachable)
}

fn closed(phase: Phase) -> Fault {
    match phase {
        Phase::Head => Fault::Reset,
        Phase::Body => Fault::CutShort,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: io::ErrorKind) -> Fault {
        fault_of(&io::Error::from(kind))
    }

    #[test]
    fn what_the_system_says_is_a_fault() {
        use io::ErrorKind as Kind;
        for (kind, fault) in [
            (Kind::ConnectionRefused, Fault::Refused),
            (Kind::NetworkUnreachable, Fault::Unreachable),
            (Kind::HostUnreachable, Fault::Unreachable),
            (Kind::TimedOut, Fault::TimedOut),
            (Kind::ConnectionReset, Fault::Reset),
            (Kind::BrokenPipe, Fault::Reset),
            (Kind::PermissionDenied, Fault::Other),
        ] {
            assert_eq!(of(kind), fault, "{kind}");
        }
    }

    #[test]
    fn the_innermost_error_counts_also_within_an_io_error_and_within_what_many_were_told() {
        let inner = io::Error::from(io::ErrorKind::ConnectionRefused);
        let dialled = Error::Connect { address: "127.0.0.1:1".into(), source: inner };
        let told = Error::NotConnected(std::sync::Arc::new(dialled));
        let wrapped = io::Error::new(io::ErrorKind::UnexpectedEof, kube::Error::Service(Box::new(told)));
        assert_eq!(fault_of(&kube::Error::ReadEvents(wrapped)), Fault::Refused);
    }

    #[test]
    fn a_chain_without_an_end_ends() {
        #[derive(Debug, thiserror::Error)]
        #[error("again")]
        struct Again(#[source] Option<Box<Again>>);
        let deep = (0..10_000).fold(Again(None), |inner, _| Again(Some(Box::new(inner))));
        assert_eq!((chain(&deep).len(), fault_of(&deep)), (CAUSES_READ_MAX, Fault::Other));
    }
}
