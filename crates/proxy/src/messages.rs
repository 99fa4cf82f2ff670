//! An answer of another server as messages over WebSocket, for who reads it in a browser.
//!
//! In: a body as it comes. Out: its pieces, each as a message, after an empty one that says that it begins.
//! Never: more of it than a piece; a word of how it ended: WebSocket closes either way, as upstream has it.
//!
//! Source: streaming v0.36.3 `httpstream/wsstream/stream.go`.

use std::sync::Weak;
use std::task::{Context, Poll, ready};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use forebay_transport::Stalls;
use forebay_transport::websocket::{Opcode, push_message};

use crate::body::ProxiedBody;
use crate::limits::MESSAGE_BYTES_MAX;

/// The subprotocols in which an answer is sent: as it is, which goes without a name as well, and in base64.
pub const MESSAGE_PROTOCOLS: [&str; 2] = ["binary.k8s.io", BASE64];
const BASE64: &str = "base64.binary.k8s.io";

/// See the module's doc.
pub struct ProxiedMessages {
    body: ProxiedBody,
    framing: Framing,
}

/// How bytes become messages.
struct Framing {
    is_base64: bool,
    has_begun: bool,
    // What was read and not sent yet: at most a buffer of the connection.
    rest: Bytes,
}

impl ProxiedMessages {
    /// - `protocol`: that was agreed on; empty for none.
    pub fn new(body: ProxiedBody, protocol: &str) -> ProxiedMessages {
        ProxiedMessages { body, framing: Framing::new(protocol) }
    }

    /// The next message, framed; `None` at the end.
    pub fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(message) = self.framing.next() {
                return Poll::Ready(Some(message));
            }
            match ready!(self.body.poll_next(cx)) {
                Ok(Some(piece)) => self.framing.rest = piece,
                Ok(None) => return Poll::Ready(None),
                Err(why) => {
                    tracing::debug!(why, "an answer broke off that was sent as messages");
                    return Poll::Ready(None);
                }
            }
        }
    }

    /// Who reads it, to be let go of.
    pub fn reader(&self) -> Weak<dyn Stalls> {
        self.body.reader()
    }
}

impl Framing {
    fn new(protocol: &str) -> Framing {
        Framing { is_base64: protocol == BASE64, has_begun: false, rest: Bytes::new() }
    }

    fn next(&mut self) -> Option<Bytes> {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let part = self.rest.split_to(self.rest.len().min(MESSAGE_BYTES_MAX));
        if part.is_empty() && !is_first {
            return None;
        }
        let mut message = Vec::new();
        match self.is_base64 {
            true => push_message(Opcode::Text, STANDARD.encode(&part).as_bytes(), &mut message),
            false => push_message(Opcode::Binary, &part, &mut message),
        }
        Some(message.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(protocol: &str, pieces: &[&'static [u8]]) -> Vec<Vec<u8>> {
        let (mut framing, mut messages) = (Framing::new(protocol), Vec::new());
        for piece in std::iter::once(&&b""[..]).chain(pieces) {
            framing.rest = Bytes::from_static(piece);
            messages.extend(std::iter::from_fn(|| framing.next().map(|message| message.to_vec())));
        }
        messages
    }

    #[test]
    fn an_answer_is_sent_in_messages_behind_an_empty_one() {
        let pieces: [&[u8]; 2] = [b"hello", b"\x00\xff"];
        for protocol in ["", "binary.k8s.io"] {
            assert_eq!(framed(protocol, &pieces), [&b"\x82\x00"[..], b"\x82\x05hello", b"\x82\x02\x00\xff"]);
        }
        let base64 = framed("base64.binary.k8s.io", &pieces);
        assert_eq!(base64, [&b"\x81\x00"[..], b"\x81\x08aGVsbG8=", b"\x81\x04AP8="]);
        assert!(framed("", &[]).len() == 1, "it begins, however little there is");
    }

    #[test]
    fn a_long_piece_is_several_messages() {
        static LONG: [u8; 2 * MESSAGE_BYTES_MAX + 1] = [b'x'; 2 * MESSAGE_BYTES_MAX + 1];
        let lengths: Vec<usize> = framed("", &[&LONG]).iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, MESSAGE_BYTES_MAX + 4, MESSAGE_BYTES_MAX + 4, 3]);
    }
}
