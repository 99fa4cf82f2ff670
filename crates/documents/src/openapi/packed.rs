//! A document as it is kept: compressed, with its hash.
//!
//! In: plain bytes, piece by piece. Out: one gzip member and the hash of what was plain; and the plain bytes,
//! piece by piece, for a client that does not take gzip. Never: holds a whole document in the plain.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::sync::Arc;

use bytes::buf::Reader;
use bytes::{Buf as _, Bytes};
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use super::limits::PIECE_BYTES;

/// A document; cloning it copies pointers.
#[derive(Clone, Debug)]
pub struct Packed {
    /// Of the plain bytes, in capital hex digits.
    pub hash: Arc<str>,
    pub gzip: Bytes,
    pub plain_len: usize,
}

impl Packed {
    /// The plain bytes.
    pub fn plain(&self) -> Plain {
        Plain(GzDecoder::new(self.gzip.clone().reader()))
    }
}

/// A document's plain bytes, inflated as they are read.
pub struct Plain(GzDecoder<Reader<Bytes>>);

impl Plain {
    /// Appends `bytes_max` to `out`, or what is left; false once there is nothing.
    pub fn fill(&mut self, bytes_max: usize, out: &mut Vec<u8>) -> bool {
        let inflated = self.0.by_ref().take(bytes_max as u64).read_to_end(out);
        inflated.expect("what was compressed here") > 0
    }
}

/// Takes a document in pieces.
pub struct Packer {
    /// What is written next; emptied by [`Packer::drain`].
    pub piece: Vec<u8>,
    zip: GzEncoder<Vec<u8>>,
    digest: Sha256,
    plain_len: usize,
}

impl Default for Packer {
    fn default() -> Packer {
        Packer {
            piece: Vec::new(),
            // Made once and sent many times: worth more than the fastest level.
            zip: GzEncoder::new(Vec::new(), Compression::default()),
            digest: Sha256::new(),
            plain_len: 0,
        }
    }
}

impl Packer {
    /// Compresses the piece once it is worth it.
    pub fn drain(&mut self) {
        if self.piece.len() >= PIECE_BYTES {
            self.take();
        }
    }

    fn take(&mut self) {
        self.digest.update(&self.piece);
        self.zip.write_all(&self.piece).expect("a Vec takes every write");
        self.plain_len += self.piece.len();
        self.piece.clear();
    }

    pub fn finish(mut self) -> Packed {
        self.take();
        let gzip = self.zip.finish().expect("a Vec takes every write").into();
        Packed { hash: hex(&self.digest.finalize()).into(), gzip, plain_len: self.plain_len }
    }
}

fn hex(digest: &[u8]) -> String {
    let mut out = String::with_capacity(digest.len() * 2);
    for byte in digest {
        write!(out, "{byte:02X}").expect("a String takes every write");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_in_pieces_comes_out_whole() {
        for len in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, 3 * PIECE_BYTES + 7] {
            let plain: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let mut packer = Packer::default();
            for part in plain.chunks(1000) {
                packer.piece.extend_from_slice(part);
                packer.drain();
                assert!(packer.piece.len() < PIECE_BYTES);
            }
            let packed = packer.finish();
            let (mut source, mut inflated) = (packed.plain(), Vec::new());
            while source.fill(1000, &mut inflated) {}
            assert!(inflated == plain && packed.plain_len == len, "{len}");
            assert_eq!(*packed.hash, *hex(&Sha256::digest(&plain)));
        }
    }
}
