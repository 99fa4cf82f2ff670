//! HTTP/2 by hand: frames as they are asked for, and what the server says to them.
//!
//! In: frames, wrong ones too. Out: a [`Tally`] of statuses, resets and ends. Header blocks are literals
//! without a table, and the server is asked to keep none either, so that a status can be read without a
//! decoder. Never: flow control by itself: what the server may send is what the row says.

use std::sync::Arc;
use std::time::Duration;

use forebay_contenders::Error;
use forebay_contenders::client::RestConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::bodies::varint;
use super::{Said, Tally, tls};

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;

/// Codes that a server ends things with (RFC 9113, 7).
pub const PROTOCOL_ERROR: u32 = 1;
pub const FLOW_CONTROL_ERROR: u32 = 3;
pub const STREAM_CLOSED: u32 = 5;
pub const FRAME_SIZE_ERROR: u32 = 6;
pub const REFUSED_STREAM: u32 = 7;
pub const CANCEL: u32 = 8;
pub const COMPRESSION_ERROR: u32 = 9;
pub const ENHANCE_YOUR_CALM: u32 = 11;

/// Settings that may be changed: identifier and value.
pub const TABLE_SIZE: u16 = 1;
pub const WINDOW: u16 = 4;
pub const FRAME_SIZE: u16 = 5;

/// The most that a window may be.
pub const WINDOW_MAX: u32 = (1 << 31) - 1;
const WINDOW_AT_FIRST: u32 = (64 << 10) - 1;
const TEXT_BYTES: usize = 2_000;

#[derive(Debug)]
pub struct Http2Wire {
    pub io: TlsStream<TcpStream>,
    pub host: String,
    pub token: Option<&'static str>,
    ahead: Vec<u8>,
}

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    content: Vec<u8>,
}

/// A frame. Its length is what `content` has.
pub fn frame(kind: u8, flags: u8, stream: u32, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(content);
    bytes
}

pub fn settings(changes: &[(u16, u32)]) -> Vec<u8> {
    let one = |(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &changes.iter().flat_map(one).collect::<Vec<u8>>())
}

pub fn window_update(stream: u32, more: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

pub fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

/// A header's field, literal and in no table.
pub fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    [&[0][..], &text(name), &text(value)].concat()
}

/// Likewise, and put into the table.
pub fn indexed_literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    [&[0x40][..], &text(name), &text(value)].concat()
}

/// A text without Huffman's code, behind its length.
fn text(bytes: &[u8]) -> Vec<u8> {
    let length = match bytes.len() {
        short @ 0..127 => vec![short as u8],
        long => [vec![127], varint(long as u64 - 127)].concat(),
    };
    [length, bytes.to_vec()].concat()
}

/// The n-th stream of a client.
pub fn stream(index: usize) -> u32 {
    index as u32 * 2 + 1
}

impl Http2Wire {
    /// A connection that has begun well, by whoever `token` says.
    pub async fn connect(target: &RestConfig, token: &'static str) -> Result<Http2Wire, Error> {
        let lost = |why: std::io::Error| Error::Connection(why.to_string());
        let tcp = TcpStream::connect(target.address).await.map_err(lost)?;
        tcp.set_nodelay(true).map_err(lost)?;
        let config = Arc::new(tls::speaking(&target.tls, tls::HTTP2));
        let name = ServerName::IpAddress(target.address.ip().into());
        let io = TlsConnector::from(config).connect(name, tcp).await.map_err(lost)?;
        let mut wire = Http2Wire::silent(io, target.address.to_string(), Some(token));
        wire.begin().await;
        Ok(wire)
    }

    /// A connection on which nothing was said yet.
    pub fn silent(io: TlsStream<TcpStream>, host: String, token: Option<&'static str>) -> Http2Wire {
        Http2Wire { io, host, token, ahead: Vec::new() }
    }

    /// Begins as a client has to, with windows that are never in the way.
    pub async fn begin(&mut self) {
        self.begin_with(&[(WINDOW, WINDOW_MAX)]).await;
        self.write(&window_update(0, WINDOW_MAX - WINDOW_AT_FIRST)).await;
    }

    /// Likewise with just these settings.
    pub async fn begin_with(&mut self, changes: &[(u16, u32)]) {
        let changes = [&[(TABLE_SIZE, 0)], changes].concat();
        self.write(&[PREFACE, &settings(&changes)].concat()).await;
    }

    /// Writes `bytes`; whether the server took them.
    pub async fn write(&mut self, bytes: &[u8]) -> bool {
        self.io.write_all(bytes).await.is_ok() && self.io.flush().await.is_ok()
    }

    /// Writes what `bytes` says, so many times, unless the server takes no more within `patience`. Nothing is
    /// read meanwhile: what the server answers is its own to hold.
    pub async fn pour(
        &mut self,
        times: usize,
        patience: Duration,
        mut bytes: impl FnMut(usize) -> Vec<u8>,
    ) -> bool {
        for index in 0..times {
            if !timeout(patience, self.write(&bytes(index))).await.unwrap_or(false) {
                return false;
            }
        }
        true
    }

    /// The header block of a request, with `extra` behind what every request has.
    pub fn block(&self, method: &str, path: &str, extra: &[(&str, &str)]) -> Vec<u8> {
        let mut block =
            [(":method", method), (":scheme", "https"), (":authority", &self.host), (":path", path)]
                .map(|(name, value)| literal(name.as_bytes(), value.as_bytes()))
                .concat();
        if let Some(token) = self.token {
            block.extend(literal(b"authorization", format!("Bearer {token}").as_bytes()));
        }
        for (name, value) in extra {
            block.extend(literal(name.as_bytes(), value.as_bytes()));
        }
        block
    }

    /// A GET of `path` on `stream`, whole.
    pub fn get(&self, stream: u32, path: &str) -> Vec<u8> {
        frame(HEADERS, END_HEADERS | END_STREAM, stream, &self.block("GET", path, &[]))
    }

    /// The head of a POST, whose body is to follow.
    pub fn post(&self, stream: u32, path: &str, extra: &[(&str, &str)]) -> Vec<u8> {
        let json = [&[("content-type", "application/json")], extra].concat();
        frame(HEADERS, END_HEADERS, stream, &self.block("POST", path, &json))
    }

    /// Reads until so much was said, the connection is over, or nothing comes for `patience`.
    pub async fn hear(&mut self, wanted: usize, patience: Duration) -> Tally {
        let mut tally = Tally::default();
        while tally.total() < wanted {
            let frame = match timeout(patience, self.frame()).await {
                Err(_) => {
                    tally.add(Said::Open);
                    break;
                }
                Ok(None) => {
                    tally.add(Said::Closed);
                    break;
                }
                Ok(Some(frame)) => frame,
            };
            match (frame.kind, frame.code()) {
                (HEADERS, _) => tally_status(&mut tally, &frame),
                // A server that has answered early asks for no more of the body so.
                (RST_STREAM, Some(code)) if code != 0 => tally.add(Said::StreamReset(code)),
                (GOAWAY, Some(code)) if code != 0 => {
                    tally.add(Said::Away(code));
                    break;
                }
                (DATA, _) if tally.text.is_empty() => {
                    let kept = &frame.content[..frame.content.len().min(TEXT_BYTES)];
                    tally.text = String::from_utf8_lossy(kept).into_owned();
                }
                (SETTINGS | PING, _) if frame.flags & ACK == 0 => self.acknowledge(&frame).await,
                _ => {}
            }
        }
        tally
    }

    /// Answers pings, and nothing else, until the connection is over.
    pub async fn answer_pings(&mut self) {
        while let Some(frame) = self.frame().await {
            if matches!(frame.kind, SETTINGS | PING) && frame.flags & ACK == 0 {
                self.acknowledge(&frame).await;
            }
        }
    }

    async fn acknowledge(&mut self, asked: &Frame) {
        let content = if asked.kind == PING { &asked.content[..] } else { &[] };
        // A server that is gone is noticed by the next read.
        let _ = timeout(Duration::from_secs(1), self.write(&frame(asked.kind, ACK, 0, content))).await;
    }

    async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some(head) = self.ahead.first_chunk::<9>() {
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                let (kind, flags) = (head[3], head[4]);
                let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
                if self.ahead.len() >= 9 + length {
                    let content = self.ahead[9..9 + length].to_vec();
                    self.ahead.drain(..9 + length);
                    return Some(Frame { kind, flags, stream, content });
                }
            }
            self.ahead.reserve(16 << 10);
            if !self.io.read_buf(&mut self.ahead).await.is_ok_and(|read| read > 0) {
                return None;
            }
        }
    }
}

impl Frame {
    /// The code of a frame that ends something.
    fn code(&self) -> Option<u32> {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        self.content.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
    }
}

fn tally_status(tally: &mut Tally, frame: &Frame) {
    if frame.stream == 0 {
        return;
    }
    if let Some(status) = status(&frame.content).filter(|status| *status >= 200) {
        tally.add(Said::Status(status));
    }
}

/// The status that a block without a table begins with; trailers begin with something else.
fn status(block: &[u8]) -> Option<u16> {
    match block {
        // A change of the table's size stands first.
        [size, rest @ ..] if size & 0xe0 == 0x20 => status(rest),
        [0x88, ..] => Some(200),
        [0x89, ..] => Some(204),
        [0x8a, ..] => Some(206),
        [0x8b, ..] => Some(304),
        [0x8c, ..] => Some(400),
        [0x8d, ..] => Some(404),
        [0x8e, ..] => Some(500),
        // Literal, by the name of a static entry: with the table, without it, or never in it.
        [0x48..=0x4e | 0x08..=0x0e | 0x18..=0x1e, length, rest @ ..] => {
            let value = rest.get(..usize::from(length & 0x7f))?;
            let digits = if length & 0x80 == 0 { value.to_vec() } else { digits(value)? };
            std::str::from_utf8(&digits).ok()?.parse().ok()
        }
        _ => None,
    }
}

/// Three digits in Huffman's code (RFC 7541, appendix B): 0 to 2 have five bits, the others six.
fn digits(coded: &[u8]) -> Option<Vec<u8>> {
    let bits: Vec<u8> = coded.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1)).collect();
    let take = |from: usize, count: usize| {
        bits.get(from..from + count).map(|bits| bits.iter().fold(0, |all, bit| all << 1 | bit))
    };
    let (mut at, mut digits) = (0, Vec::new());
    while digits.len() < 3 {
        let (digit, length) = match (take(at, 5)?, take(at, 6)) {
            (short @ 0..=2, _) => (short, 5),
            (_, Some(long @ 0x19..=0x1f)) => (long - 0x19 + 3, 6),
            _ => return None,
        };
        digits.push(b'0' + digit);
        at += length;
    }
    Some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_its_length_in_front() {
        assert_eq!(frame(PING, ACK, 0, &[7; 8]), [[0, 0, 8, 6, 1, 0, 0, 0, 0], [7; 9]].concat()[..17]);
        assert_eq!(window_update(3, 1), [0, 0, 4, 8, 0, 0, 0, 0, 3, 0, 0, 0, 1]);
    }

    #[test]
    fn a_status_is_read_from_the_static_table_and_from_literals() {
        assert_eq!(status(&[0x88, 0x55]), Some(200));
        assert_eq!(status(&[0x20, 0x8c]), Some(400));
        assert_eq!(status(b"\x48\x03404"), Some(404));
        // RFC 7541, C.6.1 and C.6.2: "302" and "307" in Huffman's code.
        assert_eq!(status(&[0x48, 0x82, 0x64, 0x02]), Some(302));
        assert_eq!(status(&[0x48, 0x83, 0x64, 0x0e, 0xff]), Some(307));
        assert_eq!(status(b"\x00\x01a\x01b"), None);
    }

    #[test]
    fn long_texts_have_long_lengths() {
        assert_eq!(text(&[b'a'; 126])[0], 126);
        assert_eq!(text(&[b'a'; 127])[..2], [127, 0]);
        assert_eq!(text(&[b'a'; 300])[..3], [127, 173, 1]);
    }
}
