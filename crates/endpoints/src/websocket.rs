//! A watch over WebSocket: an event a message, as kube-apiserver sends it to browsers.
//!
//! In: a request's head, and frames that were made for a body. Out: the token that a browser sends as a
//! subprotocol, as a header; and messages. Never: frames a message, or speaks; that is transport's.
//!
//! Source: apiserver v1.36.3 `endpoints/handlers/watch.go` (`HandleWS`).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use forebay_reads::{EventFormat, FrameMessage};
use forebay_transport::websocket::{Opcode, is_asked, protocols, push_message};
use http::{HeaderMap, HeaderValue, header};

/// A subprotocol that is a bearer token, for browsers, which cannot send a header of their own.
const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// A token that comes as a subprotocol is made the bearer token that it stands for. One that is malformed, or
/// comes alone, is left where it is and says nothing.
pub fn move_token(headers: &mut HeaderMap) {
    if !is_asked(headers) || headers.contains_key(header::AUTHORIZATION) {
        return;
    }
    let (tokens, others): (Vec<&str>, Vec<&str>) =
        protocols(headers).into_iter().partition(|protocol| protocol.starts_with(TOKEN_PROTOCOL));
    let ([token], false) = (tokens.as_slice(), others.is_empty()) else { return };
    let decoded = URL_SAFE_NO_PAD.decode(&token[TOKEN_PROTOCOL.len()..]).ok();
    let bearer = decoded.and_then(|token| HeaderValue::from_bytes(&[b"Bearer ", &token[..]].concat()).ok());
    let others = HeaderValue::from_str(&others.join(",")).ok();
    if let (Some(bearer), Some(others)) = (bearer, others) {
        headers.insert(header::AUTHORIZATION, bearer);
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, others);
    }
}

/// Appends frames that were made for a body as messages.
pub fn messages(format: &EventFormat, frames: &[u8], out: &mut Vec<u8>) {
    for message in format.messages(frames) {
        match message {
            FrameMessage::Text(line) => push_message(Opcode::Text, line, out),
            FrameMessage::Binary(frame) => push_message(Opcode::Binary, frame, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_reads::{JSON, PROTOBUF};

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (header::HeaderName::from_static(name), value.parse().expect("a value")))
            .collect()
    }

    const ASKED: [(&str, &str); 5] = [
        ("upgrade", "WebSocket"),
        ("connection", "keep-alive, Upgrade"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-version", "13"),
        ("origin", "http://localhost"),
    ];

    fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
        headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    #[test]
    fn a_token_among_the_subprotocols_is_a_bearer_token() {
        let protocol = format!("{TOKEN_PROTOCOL}{}", URL_SAFE_NO_PAD.encode("secret"));
        for (given, bearer, left) in [
            (format!("{protocol}, binary.k8s.io"), "Bearer secret", "binary.k8s.io"),
            (protocol.clone(), "", protocol.as_str()),
            (format!("{TOKEN_PROTOCOL}!, x"), "", &format!("{TOKEN_PROTOCOL}!, x")),
        ] {
            let mut headers = headers(&ASKED);
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, given.parse().expect("a value"));
            move_token(&mut headers);
            let got = (text(&headers, header::AUTHORIZATION), text(&headers, header::SEC_WEBSOCKET_PROTOCOL));
            assert_eq!(got, (bearer, left), "{given}");
        }
    }

    #[test]
    fn a_message_is_an_event() {
        let long = vec![b'x'; 70_000];
        let lines = [b"{}\n".as_slice(), &[b'y'; 130], b"\n", &long, b"\n"].concat();
        let made = |format, frames: &[u8]| {
            let mut out = Vec::new();
            messages(format, frames, &mut out);
            out
        };
        let want = [
            b"\x81\x03{}\n\x81\x7e\x00\x83".as_slice(),
            &[b'y'; 130],
            b"\n\x81\x7f\0\0\0\0\0\x01\x11\x71",
            &long,
            b"\n",
        ];
        assert!(made(&JSON, &lines) == want.concat());
        assert_eq!(made(&PROTOBUF, b"\0\0\0\x02ab\0\0\0\x01c"), b"\x82\x02ab\x82\x01c");
    }
}
