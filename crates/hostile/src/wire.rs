//! A TLS connection that HTTP/1.1 is written to byte by byte, and what comes back.
//!
//! In: bytes. Out: [`Heard`]. Never: a retry, or an opinion on what is sent.

use std::pin::pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use super::request::Request;
use super::{Said, Tally};

/// Of an answer's body so much is kept.
const TEXT_BYTES: usize = 2_000;
/// Longest head of an answer.
const HEAD_BYTES: usize = 1 << 20;

/// A connection, and how its client shows who it is.
#[derive(Debug)]
pub struct Wire {
    pub io: TlsStream<TcpStream>,
    pub host: String,
    pub token: Option<&'static str>,
    /// What came and was not looked at yet.
    ahead: Vec<u8>,
}

/// One answer.
#[derive(Clone, Debug)]
pub struct Heard {
    pub said: Said,
    /// The beginning of its body.
    pub text: String,
}

/// Where a body ends.
enum End {
    After(usize),
    Chunks,
    Close,
}

impl Wire {
    pub fn new(io: TlsStream<TcpStream>, host: String, token: Option<&'static str>) -> Wire {
        Wire { io, host, token, ahead: Vec::new() }
    }

    /// Writes `bytes`; whether the server took them.
    pub async fn write(&mut self, bytes: &[u8]) -> bool {
        self.io.write_all(bytes).await.is_ok() && self.io.flush().await.is_ok()
    }

    /// Writes `bytes` so many times, unless the server takes no more within `patience`.
    pub async fn pour(&mut self, bytes: &[u8], times: usize, patience: Duration) -> bool {
        for _ in 0..times {
            if !timeout(patience, self.write(bytes)).await.unwrap_or(false) {
                return false;
            }
        }
        true
    }

    /// Sends one request and reads its answer, which may come before all is sent.
    pub async fn ask(&mut self, request: &Request) -> Heard {
        let bytes = request.bytes(&self.host, self.token);
        self.exchange(&bytes).await
    }

    /// Writes `bytes` and reads one answer meanwhile.
    pub async fn exchange(&mut self, bytes: &[u8]) -> Heard {
        let (mut reader, mut writer) = tokio::io::split(&mut self.io);
        let mut sending = pin!(async {
            if writer.write_all(bytes).await.is_ok() {
                // Where it is not taken any more the answer says why.
                let _ = writer.flush().await;
            }
        });
        let mut hearing = pin!(answer(&mut reader, &mut self.ahead, true));
        let mut is_sent = false;
        loop {
            tokio::select! {
                heard = &mut hearing => return heard,
                () = &mut sending, if !is_sent => is_sent = true,
            }
        }
    }

    /// The next answer.
    pub async fn hear(&mut self) -> Heard {
        answer(&mut self.io, &mut self.ahead, true).await
    }

    /// The next answer's head; its body is left where it is.
    pub async fn hear_head(&mut self) -> Heard {
        answer(&mut self.io, &mut self.ahead, false).await
    }

    /// The next answer, or that there is none within `patience`.
    pub async fn hear_within(&mut self, patience: Duration) -> Heard {
        timeout(patience, self.hear()).await.unwrap_or_else(|_| Heard::none())
    }

    /// All answers until the connection ends, or nothing comes: for `first` before there is an answer, for
    /// `then` after one.
    pub async fn hear_all(&mut self, first: Duration, then: Duration) -> Tally {
        let mut tally = Tally::default();
        loop {
            let patience = if tally.total() == 0 { first } else { then };
            let heard = self.hear_within(patience).await;
            let is_over = matches!(heard.said, Said::Closed | Said::Open);
            // That it stays open, or is closed, after it has answered says nothing more.
            if !is_over || tally.total() == 0 {
                tally.merge(heard.into());
            }
            if is_over {
                return tally;
            }
        }
    }

    /// Whether the connection is ended within `patience`; what comes before is dropped.
    pub async fn end_within(&mut self, patience: Duration) -> Said {
        let mut dropped = [0; 4_096];
        let ended = async { while self.io.read(&mut dropped).await.is_ok_and(|read| read > 0) {} };
        if timeout(patience, ended).await.is_ok() { Said::Closed } else { Said::Open }
    }
}

impl Heard {
    pub fn none() -> Heard {
        Heard { said: Said::Open, text: String::new() }
    }

    fn closed() -> Heard {
        Heard { said: Said::Closed, text: String::new() }
    }
}

impl From<Heard> for Tally {
    fn from(heard: Heard) -> Tally {
        Tally::of(heard.said, &heard.text)
    }
}

/// Reads one answer from what came already and from `io`.
async fn answer(io: &mut (impl AsyncRead + Unpin), ahead: &mut Vec<u8>, with_body: bool) -> Heard {
    loop {
        let Some(length) = head(io, ahead).await else { return Heard::closed() };
        let text = String::from_utf8_lossy(&ahead[..length]).to_ascii_lowercase();
        ahead.drain(..length);
        let Some(status) = text.split(' ').nth(1).and_then(|code| code.trim().parse::<u16>().ok()) else {
            return Heard { said: Said::Closed, text };
        };
        // 100 Continue is no answer yet; 101 is the last there is in HTTP.
        if status == 100 {
            continue;
        }
        let said = Said::Status(status);
        let body = match with_body && status >= 200 && !matches!(status, 204 | 304) {
            true => body(io, ahead, end_of(&text)).await,
            false => Vec::new(),
        };
        return Heard { said, text: String::from_utf8_lossy(&body).into_owned() };
    }
}

/// The length of the head that `ahead` begins with, once it is there.
async fn head(io: &mut (impl AsyncRead + Unpin), ahead: &mut Vec<u8>) -> Option<usize> {
    loop {
        if let Some(at) = memchr::memmem::find(ahead, b"\r\n\r\n") {
            return Some(at + 4);
        }
        if ahead.len() > HEAD_BYTES || !more(io, ahead).await {
            return None;
        }
    }
}

fn end_of(head: &str) -> End {
    let value = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    if value("transfer-encoding:").is_some_and(|coding| coding.contains("chunked")) {
        return End::Chunks;
    }
    match value("content-length:").and_then(|length| length.parse().ok()) {
        Some(length) => End::After(length),
        None => End::Close,
    }
}

/// Reads a body, and gives back the beginning of it.
async fn body(io: &mut (impl AsyncRead + Unpin), ahead: &mut Vec<u8>, end: End) -> Vec<u8> {
    let mut kept = Vec::new();
    match end {
        End::After(length) => {
            skip(io, ahead, length, &mut kept).await;
        }
        End::Close => while skip(io, ahead, 1, &mut kept).await {},
        End::Chunks => loop {
            let Some(size) = chunk_size(io, ahead).await else { break };
            let mut unkept = Vec::new();
            // The line's end behind each chunk, the last one included: none of ours has trailers.
            if !skip(io, ahead, size, &mut kept).await || !skip(io, ahead, 2, &mut unkept).await || size == 0
            {
                break;
            }
        },
    }
    kept
}

/// Reads the line that a chunk begins with.
async fn chunk_size(io: &mut (impl AsyncRead + Unpin), ahead: &mut Vec<u8>) -> Option<usize> {
    loop {
        if let Some(at) = memchr::memchr(b'\n', ahead) {
            let line = String::from_utf8_lossy(&ahead[..at]).into_owned();
            ahead.drain(..=at);
            return usize::from_str_radix(line.split(';').next()?.trim(), 16).ok();
        }
        if !more(io, ahead).await {
            return None;
        }
    }
}

/// Takes `count` bytes, of which the first are kept; whether there were so many.
async fn skip(
    io: &mut (impl AsyncRead + Unpin),
    ahead: &mut Vec<u8>,
    mut count: usize,
    kept: &mut Vec<u8>,
) -> bool {
    while count > 0 {
        if ahead.is_empty() && !more(io, ahead).await {
            return false;
        }
        let taken = count.min(ahead.len());
        let room = TEXT_BYTES.saturating_sub(kept.len()).min(taken);
        kept.extend_from_slice(&ahead[..room]);
        ahead.drain(..taken);
        count -= taken;
    }
    true
}

/// Reads what there is; whether there was any.
async fn more(io: &mut (impl AsyncRead + Unpin), ahead: &mut Vec<u8>) -> bool {
    ahead.reserve(16 << 10);
    io.read_buf(ahead).await.is_ok_and(|read| read > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn heard(mut bytes: &[u8]) -> Vec<(Said, String)> {
        let (mut ahead, mut all) = (Vec::new(), Vec::new());
        loop {
            let heard = answer(&mut bytes, &mut ahead, true).await;
            if heard.said == Said::Closed {
                return all;
            }
            all.push((heard.said, heard.text));
        }
    }

    #[tokio::test]
    async fn answers_are_told_apart_however_their_ends_are_marked() {
        let sent = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab\
            HTTP/1.1 400 Bad\r\ntransfer-encoding: chunked\r\n\r\n2\r\ncd\r\n1;x=y\r\ne\r\n0\r\n\r\n\
            HTTP/1.1 204 No\r\n\r\nHTTP/1.1 413 Large\r\nConnection: close\r\n\r\nfg";
        let all = heard(sent).await;
        let wanted = [(200, "ab"), (400, "cde"), (204, ""), (413, "fg")];
        let wanted: Vec<_> =
            wanted.iter().map(|(status, text)| (Said::Status(*status), (*text).to_owned())).collect();
        assert_eq!(all, wanted);
    }
}
