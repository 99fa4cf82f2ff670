//! Informers that ask for the initial state as a watch, and how much of it came until they were told that it
//! is whole.
//!
//! In: where, and whether compressed. Out: [`Initial`]: bytes on the wire and plain. Never: a stream that
//! ended before the bookmark that says so taken for one that was whole.

use bytes::Bytes;
use flate2::{Decompress, FlushDecompress, Status};
use http_body_util::BodyExt;
use hyper::{Method, header};
use memchr::memrchr;

use crate::Error;
use crate::client::{Client, Protocol, RestConfig};

/// What the bookmark that ends the initial events says.
const END: &[u8] = b"\"k8s.io/initial-events-end\":\"true\"";
/// How every bookmark begins.
const BOOKMARK: &[u8] = b"{\"type\":\"BOOKMARK\"";
/// Bytes that the end has at most.
const END_BYTES_MAX: usize = 1_024;
/// Bytes of the head of a gzip member without a name or other extras, as Go and we write it.
const GZIP_HEAD: usize = 10;

/// What one informer was sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Initial {
    pub wire: u64,
    pub plain: u64,
}

/// Reads the initial state of `path` and hangs up.
pub async fn initial(
    target: &RestConfig,
    protocol: Protocol,
    path: &str,
    gzip: bool,
) -> Result<Initial, Error> {
    let mut client = Client::connect(target, protocol).await?;
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut headers = vec![(header::ACCEPT, "application/json")];
    if gzip {
        headers.push((header::ACCEPT_ENCODING, "gzip"));
    }
    let response = client.start_with(Method::GET, &format!("{path}?{query}"), &headers, Bytes::new()).await?;
    if response.status() != 200 {
        return Err(Error::Answer { what: "watch list".into(), answer: response.status().to_string() });
    }
    let is_gzip = response.headers().get(header::CONTENT_ENCODING).is_some_and(|value| value == "gzip");
    let mut read = Reader { inflate: is_gzip.then(|| Decompress::new(false)), ..Reader::default() };
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| Error::Connection(e.to_string()))?;
        if let Some(data) = frame.data_ref()
            && read.take(data)?
        {
            return Ok(read.seen);
        }
    }
    Err(Error::Answer { what: "watch list".into(), answer: format!("ended after {:?}", read.seen) })
}

#[derive(Default)]
struct Reader {
    seen: Initial,
    inflate: Option<Decompress>,
    /// The last bytes, in which the end may have begun.
    tail: Vec<u8>,
    plain: Vec<u8>,
}

impl Reader {
    /// Takes what came; whether the end is in it.
    fn take(&mut self, data: &[u8]) -> Result<bool, Error> {
        let skipped = (GZIP_HEAD as u64).saturating_sub(self.seen.wire) as usize;
        self.seen.wire += data.len() as u64;
        let Some(mut inflate) = self.inflate.take() else { return Ok(self.look(data)) };
        let mut left = &data[skipped.min(data.len())..];
        let mut plain = std::mem::take(&mut self.plain);
        let mut is_end = false;
        loop {
            plain.clear();
            plain.reserve(64 << 10);
            let before = inflate.total_in();
            let status = inflate
                .decompress_vec(left, &mut plain, FlushDecompress::Sync)
                .map_err(|e| Error::Answer { what: "inflate".into(), answer: e.to_string() })?;
            left = &left[(inflate.total_in() - before) as usize..];
            is_end |= self.look(&plain);
            if plain.is_empty() || status == Status::StreamEnd {
                break;
            }
        }
        (self.inflate, self.plain) = (Some(inflate), plain);
        Ok(is_end)
    }

    /// Counts plain bytes; whether the end is in them. Only at the end of what came can it be: nothing
    /// follows it.
    fn look(&mut self, plain: &[u8]) -> bool {
        self.seen.plain += plain.len() as u64;
        self.tail.extend_from_slice(&plain[plain.len().saturating_sub(END_BYTES_MAX)..]);
        let excess = self.tail.len().saturating_sub(END_BYTES_MAX);
        self.tail.drain(..excess);
        // Looked for in a last line that is whole and short: to search every piece would take more than
        // reading it does.
        let Some((b'\n', lines)) = self.tail.split_last() else { return false };
        let from = memrchr(b'\n', lines).map_or(0, |end| end + 1);
        lines[from..].starts_with(BOOKMARK) && lines[from..].windows(END.len()).any(|window| window == END)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn stream() -> Vec<u8> {
        let mut text = b"{\"type\":\"ADDED\",\"object\":{}}\n".repeat(9_000);
        text.extend_from_slice(br#"{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}"#);
        text.push(b'\n');
        text
    }

    /// What was seen when the end was, however the bytes were cut.
    fn read(bytes: &[u8], gzip: bool, piece: usize) -> Option<Initial> {
        let mut read = Reader { inflate: gzip.then(|| Decompress::new(false)), ..Reader::default() };
        bytes.chunks(piece).find_map(|piece| read.take(piece).unwrap().then_some(read.seen))
    }

    #[test]
    fn the_end_is_found_plain_and_deflated_wherever_the_bytes_are_cut() {
        let plain = stream();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&plain).unwrap();
        // As a live stream is: flushed, without an end.
        encoder.flush().unwrap();
        let deflated = encoder.get_ref().clone();
        for piece in [1 << 20, 4_096, 97, 7] {
            let seen = read(&plain, false, piece).unwrap();
            assert!(plain.len() as u64 - seen.plain < 10, "{seen:?}");
            let seen = read(&deflated, true, piece).unwrap();
            assert!(plain.len() as u64 - seen.plain < 10 && seen.wire < seen.plain / 10, "{seen:?}");
        }
    }

    #[test]
    fn a_stream_without_its_bookmark_has_no_end() {
        let plain = stream();
        assert!(read(&plain[..plain.len() - 40], false, 4_096).is_none());
    }
}
