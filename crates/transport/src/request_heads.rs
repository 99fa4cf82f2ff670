//! Heads of HTTP/1.1 requests that hyper accepts, and that a proxy in front might read in another way. They
//! are refused: such a difference is how one request is smuggled inside of another.
//!
//! In: a request's head. Out: what is wrong with it, in the words of Go's server. The connection ends with
//! the answer, so that nothing of the request is taken for a second one. Never: looks at what a request is
//! about.

use http::{HeaderMap, Method, Request, StatusCode, Version, header};

/// What is wrong with a request's head.
pub fn fault<B>(request: &Request<B>) -> Option<(StatusCode, &'static str)> {
    if !is_chunked_or_whole(request.headers()) {
        return Some((StatusCode::NOT_IMPLEMENTED, "Unsupported transfer encoding"));
    }
    let (target, is_connect) = (request.uri(), request.method() == Method::CONNECT);
    let why = if target.scheme().is_none() && target.authority().is_some() && !is_connect {
        "400 Bad Request"
    } else {
        host_fault(request, is_connect)?
    };
    Some((StatusCode::BAD_REQUEST, why))
}

/// Whether there is no transfer coding, or `chunked` alone. Of a list hyper looks at the last one only.
fn is_chunked_or_whole(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    }
}

fn host_fault<B>(request: &Request<B>, is_connect: bool) -> Option<&'static str> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (_, Some(_)) => Some("400 Bad Request: too many Host headers"),
        (None, None) if request.version() >= Version::HTTP_11 && !is_connect => {
            Some("400 Bad Request: missing required Host header")
        }
        (Some(host), None) if !host.as_bytes().iter().all(|byte| may_be_in_host(*byte)) => {
            Some("400 Bad Request: malformed Host header")
        }
        _ => None,
    }
}

/// The bytes of names, addresses and ports (RFC 3986, 3.2.2): all except those that end or divide an
/// authority.
fn may_be_in_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!$%&'()*+,-.:;=[]_~".contains(&byte)
}
