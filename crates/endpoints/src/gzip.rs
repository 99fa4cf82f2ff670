//! Compression of large answers, as they are sent.
//!
//! In: another source. Out: one gzip member of it. Holds the compressor's window and one piece, whatever the size.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, header};

use crate::limits::CHUNK_BYTES;
use crate::source::Source;

/// Another source, compressed.
pub struct Gzip<S> {
    inner: S,
    // `None` once it is complete.
    encoder: Option<GzEncoder<Vec<u8>>>,
    piece: Vec<u8>,
}

impl<S: Source> Gzip<S> {
    pub fn new(inner: S) -> Gzip<S> {
        // Level 1, as kube-apiserver has it (KEP-2338): more costs more than it saves.
        let encoder = Some(GzEncoder::new(Vec::new(), Compression::fast()));
        Gzip { inner, encoder, piece: Vec::new() }
    }
}

impl<S: Source> Source for Gzip<S> {
    fn fill(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(mut encoder) = self.encoder.take() else { return false };
        let full = out.len() + CHUNK_BYTES;
        loop {
            self.piece.clear();
            if !self.inner.fill(&mut self.piece) {
                out.append(&mut encoder.finish().expect("a Vec takes every write"));
                return true;
            }
            encoder.write_all(&self.piece).expect("a Vec takes every write");
            out.append(encoder.get_mut());
            if out.len() >= full {
                self.encoder = Some(encoder);
                return true;
            }
        }
    }
}

/// `bytes`, compressed.
pub fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes).expect("a Vec takes every write");
    encoder.finish().expect("a Vec takes every write")
}

/// Whether the client takes gzip.
pub fn is_taken(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|clause| {
        let (name, params) = clause.split_once(';').unwrap_or((clause, ""));
        let refused = params.trim().strip_prefix("q=").is_some_and(|q| q.trim().parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;
    use crate::source::testing::{Pieces, all};

    #[test]
    fn what_goes_in_comes_out() {
        let text: Vec<u8> =
            (0..200_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_string().into_bytes()).collect();
        let pieces: Vec<&[u8]> = text.chunks(10_000).collect();
        for compressed in [all(Gzip::new(Pieces::of(&pieces))), compress(&text)] {
            let mut back = Vec::new();
            GzDecoder::new(compressed.as_slice()).read_to_end(&mut back).expect("gzip");
            assert!(back == text && compressed.len() < text.len());
        }
    }

    #[test]
    fn pieces_come_out_before_all_is_in() {
        let text: Vec<u8> =
            (0..100_000u32).flat_map(|n| (n.wrapping_mul(2_654_435_761)).to_le_bytes()).collect();
        let pieces: Vec<&[u8]> = text.chunks(10_000).collect();
        let (mut source, mut first) = (Gzip::new(Pieces::of(&pieces)), Vec::new());
        assert!(source.fill(&mut first));
        assert!(first.len() >= CHUNK_BYTES && first.len() < text.len() / 2, "{}", first.len());
    }

    #[test]
    fn clients_say_whether_they_take_it() {
        for (value, want) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("identity", false),
            ("x-gzip", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, value.parse().expect("a value"));
            assert_eq!(is_taken(&headers), want, "{value}");
        }
        assert!(!is_taken(&HeaderMap::new()));
    }
}
