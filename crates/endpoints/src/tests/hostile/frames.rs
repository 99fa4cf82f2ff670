//! A client of HTTP/2 that sends what it is told, frame by frame, and shows what comes back.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::tests::server::{Server, TOKEN, WAIT};

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

/// Of DATA and HEADERS; of SETTINGS and PING it is an acknowledgement.
pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;
pub const PRIORITIZED: u8 = 0x20;

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A block of fields, each a literal without Huffman's code that is not indexed (RFC 7541, 6.2.2).
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            length(text.len(), &mut block);
            block.extend(text.as_bytes());
        }
    }
    block
}

/// An integer with a prefix of seven bits (RFC 7541, 5.1).
fn length(len: usize, block: &mut Vec<u8>) {
    if len < 0x7f {
        return block.push(len as u8);
    }
    block.push(0x7f);
    let mut rest = len - 0x7f;
    while rest >= 0x80 {
        block.push((rest % 0x80) as u8 | 0x80);
        rest /= 0x80;
    }
    block.push(rest as u8);
}

/// One setting.
pub fn setting(id: u16, value: u32) -> Vec<u8> {
    [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

/// The pseudo-fields of a request, and who asks.
pub fn fields<'a>(method: &'a str, path: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        (":method", method),
        (":scheme", "https"),
        (":path", path),
        (":authority", "127.0.0.1"),
        ("authorization", TOKEN),
    ]
}

/// A whole request without a body.
pub fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &block(&fields("GET", path)))
}

/// A connection of HTTP/2.
pub struct Frames {
    pub stream: TlsStream<TcpStream>,
    read: Vec<u8>,
}

impl Frames {
    /// A connection on which nothing was said.
    pub async fn open(server: &Server) -> Frames {
        Frames { stream: server.open(b"h2").await, read: Vec::new() }
    }

    /// One that has begun: the preface, and settings that have answers stand for themselves, without a table
    /// of fields.
    pub async fn begin(server: &Server) -> Frames {
        Frames::begin_with(server, &setting(1, 0)).await
    }

    /// The same with other settings.
    pub async fn begin_with(server: &Server, settings: &[u8]) -> Frames {
        let mut frames = Frames::open(server).await;
        let begin = [PREFACE, &frame(SETTINGS, 0, 0, settings)].concat();
        frames.send(&begin).await.expect("open");
        frames
    }

    /// # Errors
    /// The server reads no more.
    pub async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        timeout(WAIT, self.stream.write_all(bytes)).await.expect("in time")?;
        timeout(WAIT, self.stream.flush()).await.expect("in time")
    }

    /// The next frame; `None` when the connection is over.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(head) = self.read.first_chunk::<9>().copied() {
                let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                if self.read.len() >= 9 + len {
                    let payload = self.read.drain(..9 + len).skip(9).collect();
                    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
                    return Some(Frame { kind: head[3], flags: head[4], stream, payload });
                }
            }
            let mut piece = [0; 4096];
            // An end without a goodbye is one all the same.
            let read = timeout(WAIT, self.stream.read(&mut piece)).await.expect("nothing comes").unwrap_or(0);
            if read == 0 {
                assert!(self.read.is_empty(), "half a frame");
                return None;
            }
            self.read.extend(&piece[..read]);
        }
    }

    /// What is said until the connection is over, or a stream has ended that is at least `last`: answers,
    /// resets and GOAWAY.
    pub async fn said_until(&mut self, last: u32) -> Vec<String> {
        let mut said = Vec::new();
        while let Some(frame) = self.next().await {
            let ends = frame.flags & END_STREAM != 0;
            match frame.kind {
                HEADERS => said.push(format!("{}:{}", frame.stream, code(&frame.payload))),
                RST_STREAM => said.push(format!("{}:{}", frame.stream, reason(&frame.payload))),
                GOAWAY => said.push(format!("GOAWAY {}", reason(&frame.payload[4..]))),
                _ => {}
            }
            let is_over = matches!(frame.kind, HEADERS | DATA) && ends || frame.kind == RST_STREAM;
            if is_over && frame.stream >= last {
                return said;
            }
        }
        if !said.last().is_some_and(|last| last.starts_with("GOAWAY")) {
            said.push("end".into());
        }
        said
    }
}

/// The status of a block of fields: hyper's encoder puts it first, indexed or as a literal with the static
/// table's name.
fn code(block: &[u8]) -> String {
    const STATIC: [&str; 7] = ["200", "204", "206", "304", "400", "404", "500"];
    match block {
        [indexed @ 0x88..=0x8e, ..] => STATIC[usize::from(*indexed - 0x88)].into(),
        // Three digits, in Huffman's code or as they are.
        [0x08 | 0x48, 0x82 | 0x83, coded @ ..] => digits(&coded[..3]),
        [0x08 | 0x48, 3, plain @ ..] => String::from_utf8_lossy(&plain[..3]).into_owned(),
        // The size of the table was changed first.
        [0x20..=0x3f, rest @ ..] => code(rest),
        _ => panic!("no status: {block:?}"),
    }
}

/// Digits in Huffman's code (RFC 7541, appendix B): five bits for 0, 1 and 2, six for the others.
fn digits(coded: &[u8]) -> String {
    let bits: Vec<u8> = coded.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let (mut at, mut text) = (0, String::new());
    let number = |from: usize, len: usize| bits[from..from + len].iter().fold(0u8, |all, bit| all << 1 | bit);
    while text.len() < 3 {
        match number(at, 5) {
            short @ 0..=2 => {
                text.push(char::from(b'0' + short));
                at += 5;
            }
            _ => {
                text.push(char::from(b'3' + number(at, 6) - 0x19));
                at += 6;
            }
        }
    }
    text
}

pub fn reason(payload: &[u8]) -> String {
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    let code = payload.first_chunk().map_or(u32::MAX, |four| u32::from_be_bytes(*four));
    NAMES.get(code as usize).map_or_else(|| code.to_string(), |name| (*name).to_string())
}
