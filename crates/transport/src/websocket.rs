//! WebSocket, as far as a server needs it that only sends.
//!
//! In: a request that asks for the upgrade, and messages. Out: the answer that grants or refuses it, and the
//! session that follows on the connection. Never: keeps what a client sends; only pings and the close frame
//! are answered.
//!
//! Framing is that of RFC 6455 without extensions. Answers are those of Go's server.
//!
//! Source: golang.org/x/net v0.49 `websocket`.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use forebay_rt::Clock;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use ring::digest;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;

use crate::limits::{TURN_BATCHES_MAX, WEBSOCKET_CLOSE_WAIT, WEBSOCKET_CONTROL_BYTES_MAX};
use crate::service::ReplyBody;

/// What every WebSocket server appends to the client's key (RFC 6455, 1.3).
const KEY_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const NORMAL: u16 = 1000;
const PROTOCOL_ERROR: u16 = 1002;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    Text = 1,
    Binary = 2,
    Close = 8,
    Pong = 10,
}

/// Whether a request asks for WebSocket.
pub fn is_asked(headers: &HeaderMap) -> bool {
    let asks =
        |value: &HeaderValue| value.as_bytes().to_ascii_lowercase().windows(7).any(|part| part == b"upgrade");
    text(headers, header::UPGRADE).eq_ignore_ascii_case("websocket")
        && headers.get_all(header::CONNECTION).iter().any(asks)
}

/// The answer to a request that [asks](is_asked): 101 if it is granted. One that offers several subprotocols
/// is not, as none is chosen.
pub fn answer<B: ReplyBody>(headers: &HeaderMap) -> Response<B> {
    if let Some(refused) = unfit(headers) {
        return refused;
    }
    if !is_origin(text(headers, header::ORIGIN)) {
        return refusal(StatusCode::FORBIDDEN, "");
    }
    match protocols(headers)[..] {
        [] => granted(headers, None),
        [protocol] => granted(headers, Some(protocol)),
        _ => refusal(StatusCode::BAD_REQUEST, ""),
    }
}

/// The same where subprotocols are chosen from: the first that is offered of those that are `spoken`, and
/// none where none is offered. Wherever its script is from.
pub fn answer_speaking<B: ReplyBody>(headers: &HeaderMap, spoken: &[&str]) -> Response<B> {
    if let Some(refused) = unfit(headers) {
        return refused;
    }
    let offered = protocols(headers);
    // Few: that a head has, and that are spoken.
    match offered.iter().find(|protocol| spoken.contains(protocol)) {
        None if !offered.is_empty() => refusal(StatusCode::FORBIDDEN, ""),
        chosen => granted(headers, chosen.copied()),
    }
}

/// What is answered to a request that no server could grant.
fn unfit<B: ReplyBody>(headers: &HeaderMap) -> Option<Response<B>> {
    if text(headers, header::SEC_WEBSOCKET_KEY).is_empty() {
        return Some(refusal(StatusCode::BAD_REQUEST, "mismatch challenge/response"));
    }
    if text(headers, header::SEC_WEBSOCKET_VERSION) != "13" {
        let mut refused = refusal(StatusCode::BAD_REQUEST, "missing or bad WebSocket Version");
        refused.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return Some(refused);
    }
    None
}

fn granted<B: ReplyBody>(headers: &HeaderMap, protocol: Option<&str>) -> Response<B> {
    let key = text(headers, header::SEC_WEBSOCKET_KEY);
    let mut granted = Response::new(B::whole(Bytes::new()));
    *granted.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let accept = HeaderValue::from_str(&accept_of(key)).unwrap_or_else(|_| HeaderValue::from_static(""));
    let all = granted.headers_mut();
    all.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    all.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    all.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(protocol) = protocol.and_then(|protocol| HeaderValue::from_str(protocol).ok()) {
        all.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    granted
}

fn refusal<B: ReplyBody>(code: StatusCode, why: &'static str) -> Response<B> {
    let mut response = Response::new(B::whole(Bytes::from_static(why.as_bytes())));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Whether the `Origin` header names an origin. Go's server refuses a request that has none, or an unreadable
/// one.
fn is_origin(origin: &str) -> bool {
    origin.starts_with('/') || origin.parse::<http::Uri>().is_ok_and(|uri| uri.scheme().is_some())
}

/// The subprotocols that a request offers.
pub fn protocols(headers: &HeaderMap) -> Vec<&str> {
    let all = text(headers, header::SEC_WEBSOCKET_PROTOCOL).trim();
    if all.is_empty() { Vec::new() } else { all.split(',').map(str::trim).collect() }
}

fn accept_of(key: &str) -> String {
    let mut hash = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(key.as_bytes());
    hash.update(KEY_SUFFIX);
    STANDARD.encode(hash.finish())
}

/// Appends a message.
pub fn push_message(opcode: Opcode, payload: &[u8], out: &mut Vec<u8>) {
    out.push(0x80 | opcode as u8);
    match payload.len() {
        len @ 0..=125 => out.push(len as u8),
        len @ 126..=0xffff => {
            out.push(126);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        len => {
            out.push(127);
            out.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
}

/// The answer to a request that asks for WebSocket on a connection that cannot be upgraded.
pub(crate) fn refused<B: ReplyBody>() -> Response<B> {
    refusal(StatusCode::BAD_REQUEST, "")
}

/// Sends messages until there are no more, or the client closes.
pub(crate) async fn serve(
    io: impl AsyncRead + AsyncWrite + Unpin,
    messages: &mut impl ReplyBody,
    clock: &Clock,
) {
    let (mut from, mut to) = tokio::io::split(io);
    let pings = Pings::default();
    let code = {
        let listening = pin!(listen(&mut from, &pings));
        let sending = pin!(send(&mut to, messages, &pings));
        tokio::select! {
            biased;
            code = listening => code,
            sent = sending => sent.map_or(None, |()| Some(NORMAL)),
        }
    };
    let Some(code) = code.filter(|_| !pings.in_message.load(Ordering::Relaxed)) else { return };
    let goodbye = async {
        let mut close = Vec::new();
        if let Some(payload) = pings.take() {
            push_message(Opcode::Pong, &payload, &mut close);
        }
        push_message(Opcode::Close, &code.to_be_bytes(), &mut close);
        to.write_all(&close).await?;
        to.shutdown().await
    };
    tokio::select! {
        said = goodbye => if let Err(error) = said { tracing::debug!(%error, "no goodbye to a WebSocket") },
        () = clock.sleep(WEBSOCKET_CLOSE_WAIT) => {}
    }
}

/// What the two halves of a session share: the last ping that was not answered. Earlier ones need no answer.
#[derive(Default)]
struct Pings {
    last: Mutex<Option<Vec<u8>>>,
    bell: Notify,
    // A message is being sent: no other frame may come before its end.
    in_message: AtomicBool,
}

impl Pings {
    fn put(&self, payload: Vec<u8>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(payload);
        self.bell.notify_one();
    }

    fn take(&self) -> Option<Vec<u8>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

async fn send(
    to: &mut (impl AsyncWrite + Unpin),
    messages: &mut impl ReplyBody,
    pings: &Pings,
) -> std::io::Result<()> {
    let mut batches = 0_usize;
    loop {
        batches += 1;
        if batches.is_multiple_of(TURN_BATCHES_MAX) {
            tokio::task::yield_now().await;
        }
        let piece: Option<Bytes> = tokio::select! {
            () = pings.bell.notified(), if !messages.is_in_message() => {
                let mut pong = Vec::new();
                if let Some(payload) = pings.take() {
                    push_message(Opcode::Pong, &payload, &mut pong);
                }
                Some(pong.into())
            }
            piece = std::future::poll_fn(|cx| messages.poll_message(cx)) => piece,
        };
        let Some(piece) = piece else { return Ok(()) };
        pings.in_message.store(true, Ordering::Relaxed);
        to.write_all(&piece).await?;
        to.flush().await?;
        pings.in_message.store(messages.is_in_message(), Ordering::Relaxed);
    }
}

/// Reads the client's frames until it closes. Returns the code for our close frame, or `None` when the client
/// is gone.
async fn listen(from: &mut (impl AsyncRead + Unpin), pings: &Pings) -> Option<u16> {
    loop {
        let [first, second] = from.read_u16().await.ok()?.to_be_bytes();
        let len = match second & 0x7f {
            126 => u64::from(from.read_u16().await.ok()?),
            127 => from.read_u64().await.ok()? & (u64::MAX >> 1),
            len => u64::from(len),
        };
        if second & 0x80 == 0 {
            return Some(PROTOCOL_ERROR);
        }
        let mask = from.read_u32().await.ok()?.to_be_bytes();
        match first & 0x0f {
            8 => return Some(NORMAL),
            9 => {
                let mut payload = vec![0; len.min(WEBSOCKET_CONTROL_BYTES_MAX as u64) as usize];
                from.read_exact(&mut payload).await.ok()?;
                for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
                    *byte ^= mask;
                }
                skip(from, len - payload.len() as u64).await?;
                pings.put(payload);
            }
            _ => skip(from, len).await?,
        }
    }
}

async fn skip(from: &mut (impl AsyncRead + Unpin), len: u64) -> Option<()> {
    let skipped = tokio::io::copy(&mut from.take(len), &mut tokio::io::sink()).await.ok()?;
    (skipped == len).then_some(())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::combinators::UnsyncBoxBody;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (header::HeaderName::from_static(name), value.parse().expect("a value")))
            .collect()
    }

    fn answered(headers: &HeaderMap) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        answer(headers)
    }

    const ASKED: [(&str, &str); 5] = [
        ("upgrade", "WebSocket"),
        ("connection", "keep-alive, Upgrade"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-version", "13"),
        ("origin", "http://localhost"),
    ];

    #[test]
    fn an_upgrade_is_granted_or_refused_as_gos_server_does_it() {
        let granted = answered(&headers(&ASKED));
        assert_eq!(granted.status(), 101);
        // The example of RFC 6455.
        assert_eq!(granted.headers()[header::SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(!granted.headers().contains_key(header::SEC_WEBSOCKET_PROTOCOL));
        for (name, value, code, protocol) in [
            ("sec-websocket-key", "", 400, ""),
            ("sec-websocket-version", "8", 400, ""),
            ("origin", "", 403, ""),
            ("origin", "localhost", 403, ""),
            ("sec-websocket-protocol", "binary.k8s.io", 101, "binary.k8s.io"),
            ("sec-websocket-protocol", "a, b", 400, ""),
        ] {
            let mut headers = headers(&ASKED);
            headers.insert(name, value.parse().expect("a value"));
            let answer = answered(&headers);
            assert_eq!(answer.status(), code, "{name}: {value}");
            assert_eq!(text(answer.headers(), header::SEC_WEBSOCKET_PROTOCOL), protocol);
        }
        assert!(is_asked(&headers(&ASKED)));
        assert!(!is_asked(&headers(&[("upgrade", "websocket"), ("connection", "close")])));
        assert!(!is_asked(&headers(&[("upgrade", "h2c"), ("connection", "upgrade")])));
    }

    #[test]
    fn of_several_subprotocols_the_first_that_is_spoken_is_chosen() {
        let spoken = ["binary.k8s.io", "base64.binary.k8s.io"];
        for (offered, code, chosen) in [
            ("", 101, ""),
            ("binary.k8s.io", 101, "binary.k8s.io"),
            ("v4.channel.k8s.io, base64.binary.k8s.io, binary.k8s.io", 101, "base64.binary.k8s.io"),
            ("v4.channel.k8s.io", 403, ""),
        ] {
            let mut headers = headers(&ASKED);
            // A script without a site may read as well.
            headers.remove(header::ORIGIN);
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, offered.parse().expect("a value"));
            let answer: Response<UnsyncBoxBody<Bytes, Infallible>> = answer_speaking(&headers, &spoken);
            assert_eq!(answer.status(), code, "{offered}");
            assert_eq!(text(answer.headers(), header::SEC_WEBSOCKET_PROTOCOL), chosen);
        }
        let unfit: Response<UnsyncBoxBody<Bytes, Infallible>> = answer_speaking(&HeaderMap::new(), &spoken);
        assert_eq!(unfit.status(), 400);
    }

    #[tokio::test]
    async fn what_a_client_says_is_read_to_its_goodbye() {
        let mask = b"\x01\x02\x03\x04";
        let masked = |head: &[u8], payload: &[u8]| {
            let payload: Vec<u8> =
                payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
            [head, mask, &payload].concat()
        };
        let said = masked(b"\x81\xfe\x00\xc8", &[b'a'; 200]);
        for (end, code) in [
            (masked(b"\x88\x82", &1000u16.to_be_bytes()), Some(NORMAL)),
            (b"\x81\x01a".to_vec(), Some(PROTOCOL_ERROR)),
            (b"".to_vec(), None),
            (b"\x81\xff\xff".to_vec(), None),
        ] {
            let pings = Pings::default();
            let all = [said.clone(), masked(b"\x89\x82", b"hi"), end].concat();
            assert_eq!(listen(&mut all.as_slice(), &pings).await, code);
            assert_eq!(pings.take().as_deref(), Some(b"hi".as_slice()));
        }
    }
}
