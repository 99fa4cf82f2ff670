//! Compression of large answers, as they are sent.
//!
//! In: a list's body, or another source. Out: one gzip member of it, a piece at a time. Holds next to nothing
//! between two pieces.

use forebay_reads::{ListBody, SeenObjects};
use forebay_transport::BodySource;
use forebay_transport::limits::CHUNK_BYTES;

use crate::limits::{DEFLATE_BYTES, STORED_BYTES_MAX};
use crate::member::Member;
use crate::source::OfList;

/// What is compressed part by part.
pub trait Parts: Send {
    /// Adds about [`CHUNK_BYTES`] to `member`, or nothing where that took long enough as it is; whether there
    /// may be more.
    fn next(&mut self, member: &mut Member) -> bool;
}

/// A list whose blocks stay as they are.
pub struct InBlocks(pub ListBody);

impl Clone for InBlocks {
    fn clone(&self) -> InBlocks {
        InBlocks(self.0.fork())
    }
}

impl OfList for InBlocks {
    fn seen(&self) -> SeenObjects {
        self.0.seen()
    }

    fn held_bytes(&self) -> usize {
        0
    }
}

impl Parts for InBlocks {
    fn next(&mut self, member: &mut Member) -> bool {
        self.0.next_chunk(CHUNK_BYTES, member)
    }
}

impl<S: BodySource> Parts for S {
    fn next(&mut self, member: &mut Member) -> bool {
        self.fill(&mut member.plain)
    }
}

/// Parts as one gzip member.
#[derive(Clone)]
pub struct Gzip<P> {
    parts: P,
    // `None` once it is complete.
    member: Option<Member>,
}

impl<P: Parts> Gzip<P> {
    /// - `ahead`: what was read before.
    pub fn new(ahead: Vec<u8>, parts: P) -> Gzip<P> {
        Gzip { parts, member: Some(Member::begin(ahead)) }
    }
}

impl<P: Parts> BodySource for Gzip<P> {
    fn fill(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(mut member) = self.member.take() else { return false };
        let full = out.len() + CHUNK_BYTES;
        let begun = std::mem::replace(&mut member.out, std::mem::take(out));
        member.out.extend_from_slice(&begun);
        let mut more = true;
        while more && member.out.len() < full {
            let before = (member.out.len(), member.plain.len());
            more = self.parts.next(&mut member);
            if more && before == (member.out.len(), member.plain.len()) {
                break;
            }
            if member.plain.len() >= DEFLATE_BYTES {
                member.flush();
            }
        }
        if more {
            if member.plain.len() > STORED_BYTES_MAX {
                member.flush();
            }
            // Its reader may be slow.
            member.plain.shrink_to_fit();
        } else {
            member.end();
        }
        *out = std::mem::take(&mut member.out);
        self.member = more.then_some(member);
        true
    }
}

impl<P: OfList> OfList for Gzip<P> {
    fn seen(&self) -> SeenObjects {
        self.parts.seen()
    }

    fn held_bytes(&self) -> usize {
        self.member.as_ref().map_or(0, |member| member.plain.len()) + self.parts.held_bytes()
    }
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
        for compressed in [all(Gzip::new(Vec::new(), Pieces::of(&pieces))), Member::whole(&text)] {
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
        let (mut source, mut first) = (Gzip::new(Vec::new(), Pieces::of(&pieces)), Vec::new());
        assert!(source.fill(&mut first));
        assert!(first.len() >= CHUNK_BYTES && first.len() < text.len() / 2, "{}", first.len());
    }
}
