//! The token that a request's head presents.
//!
//! In: headers. Out: a bearer token. Never: judges it.

use http::{HeaderMap, header};

/// The token of `Authorization: Bearer <token>`. Any other scheme counts as no credentials.
pub fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let header = headers.get(header::AUTHORIZATION)?.as_bytes().trim_ascii();
    let mut words = header.splitn(3, |byte| *byte == b' ');
    let scheme = words.next()?;
    let token = words.next()?;
    (scheme.eq_ignore_ascii_case(b"bearer") && !token.is_empty()).then_some(token)
}
