//! Bytes that are made as they are asked for: what streams between a LIST and the socket.
//!
//! In: a list's JSON or protobuf in pieces. Out: the same, indented or compressed, in pieces. Each stage
//! holds at most about one piece. Never: waits.

use bytes::Bytes;
use forebay_reads::{ListBody, SeenObjects};
use forebay_transport::BodySource;
use forebay_transport::limits::{CHUNK_BYTES, PIECE_BYTES};

use crate::pretty::Indenter;

/// A stage of what is made of a list.
pub trait OfList {
    /// The list's objects, as far as it was read.
    fn seen(&self) -> SeenObjects;
    /// What it holds between two pieces and a fork of it would hold as well, in bytes.
    fn held_bytes(&self) -> usize;
}

/// What is made of a list, which more than one may go on with from where it is.
pub trait ListSource: BodySource + OfList {
    /// Another that makes the same from here on.
    fn fork(&self) -> Box<dyn ListSource>;
}

impl<S: BodySource + OfList + Clone + 'static> ListSource for S {
    fn fork(&self) -> Box<dyn ListSource> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn ListSource> {
    fn clone(&self) -> Box<dyn ListSource> {
        (**self).fork()
    }
}

impl BodySource for Box<dyn ListSource> {
    fn fill(&mut self, out: &mut Vec<u8>) -> bool {
        (**self).fill(out)
    }
}

impl OfList for Box<dyn ListSource> {
    fn seen(&self) -> SeenObjects {
        (**self).seen()
    }

    fn held_bytes(&self) -> usize {
        (**self).held_bytes()
    }
}

/// A list as the registry writes it.
pub struct Written(pub ListBody);

impl Clone for Written {
    fn clone(&self) -> Written {
        Written(self.0.fork())
    }
}

impl OfList for Written {
    fn seen(&self) -> SeenObjects {
        self.0.seen()
    }

    fn held_bytes(&self) -> usize {
        0
    }
}

impl BodySource for Written {
    fn fill(&mut self, out: &mut Vec<u8>) -> bool {
        self.0.next_chunk(CHUNK_BYTES, out)
    }
}

/// Another source's JSON, indented.
#[derive(Clone)]
pub struct Pretty<S> {
    inner: S,
    indenter: Indenter,
    piece: Vec<u8>,
    // Of the piece, indented already.
    taken: usize,
    // There may be another piece.
    more: bool,
}

impl<S: BodySource> Pretty<S> {
    pub fn new(inner: S) -> Pretty<S> {
        Pretty { inner, indenter: Indenter::default(), piece: Vec::new(), taken: 0, more: true }
    }
}

impl<S: BodySource> BodySource for Pretty<S> {
    fn fill(&mut self, out: &mut Vec<u8>) -> bool {
        if self.taken == self.piece.len() {
            self.piece.clear();
            self.taken = 0;
            self.more = self.inner.fill(&mut self.piece);
        }
        let full = out.len() + CHUNK_BYTES;
        self.taken += self.indenter.push_until(&self.piece[self.taken..], full, out);
        self.more || self.taken < self.piece.len()
    }
}

impl<S: OfList> OfList for Pretty<S> {
    fn seen(&self) -> SeenObjects {
        self.inner.seen()
    }

    fn held_bytes(&self) -> usize {
        self.piece.len() + self.inner.held_bytes()
    }
}

/// What is left of bytes that are there.
pub struct Rest(pub Bytes);

impl BodySource for Rest {
    fn fill(&mut self, out: &mut Vec<u8>) -> bool {
        let piece = self.0.split_to(self.0.len().min(PIECE_BYTES));
        out.extend_from_slice(&piece);
        !piece.is_empty()
    }
}

/// What was read ahead, then the rest.
#[derive(Clone)]
pub struct Resumed<S> {
    pub ahead: Vec<u8>,
    pub rest: S,
}

impl<S: BodySource> BodySource for Resumed<S> {
    fn fill(&mut self, out: &mut Vec<u8>) -> bool {
        if self.ahead.is_empty() {
            return self.rest.fill(out);
        }
        out.append(&mut std::mem::take(&mut self.ahead));
        true
    }
}

impl<S: OfList> OfList for Resumed<S> {
    fn seen(&self) -> SeenObjects {
        self.rest.seen()
    }

    fn held_bytes(&self) -> usize {
        self.ahead.len() + self.rest.held_bytes()
    }
}

/// Reads up to `bytes` ahead, less where it takes long; whether there may be more.
pub fn read_ahead(source: &mut impl BodySource, bytes: usize) -> (Vec<u8>, bool) {
    let mut ahead = Vec::new();
    loop {
        let before = ahead.len();
        if !source.fill(&mut ahead) {
            return (ahead, false);
        }
        if ahead.len() >= bytes || ahead.len() == before {
            return (ahead, true);
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// `pieces`, one at a time.
    pub struct Pieces(pub std::collections::VecDeque<Vec<u8>>);

    impl Pieces {
        pub fn of(pieces: &[&[u8]]) -> Pieces {
            Pieces(pieces.iter().map(|piece| piece.to_vec()).collect())
        }
    }

    impl BodySource for Pieces {
        fn fill(&mut self, out: &mut Vec<u8>) -> bool {
            let piece = self.0.pop_front();
            out.extend_from_slice(piece.as_deref().unwrap_or_default());
            piece.is_some()
        }
    }

    pub fn all(mut source: impl BodySource) -> Vec<u8> {
        let mut out = Vec::new();
        while source.fill(&mut out) {}
        out
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{Pieces, all};
    use super::*;

    #[test]
    fn reading_ahead_loses_nothing() {
        let source = || Pieces::of(&[b"abc", b"def", b"ghi"]);
        assert_eq!(read_ahead(&mut source(), 100), (b"abcdefghi".to_vec(), false));
        let mut rest = source();
        let (ahead, more) = read_ahead(&mut rest, 4);
        assert_eq!((ahead.as_slice(), more), (b"abcdef".as_slice(), true));
        assert_eq!(all(Resumed { ahead, rest }), b"abcdefghi");
        let mut slow = Pieces::of(&[b"abc", b"", b"def"]);
        let (ahead, more) = read_ahead(&mut slow, 100);
        assert_eq!((ahead.as_slice(), more), (b"abc".as_slice(), true), "others first");
        assert_eq!(all(Resumed { ahead, rest: slow }), b"abcdef");
    }

    #[test]
    fn a_piece_that_is_indented_far_comes_in_pieces() {
        let deep = [b"[".repeat(500), b"0,".repeat(2_000), b"0".to_vec(), b"]".repeat(500)].concat();
        let mut source = Pretty::new(Pieces::of(&[b"[", &deep, b",1]"]));
        let (mut all, mut more) = (Vec::new(), true);
        while more {
            let mut piece = Vec::new();
            more = source.fill(&mut piece);
            assert!(piece.len() < CHUNK_BYTES + 2_000, "{}", piece.len());
            all.append(&mut piece);
        }
        assert!(all == crate::pretty::indent(&[b"[".as_slice(), &deep, b",1]"].concat()));
        assert!(all.len() > 20 * CHUNK_BYTES);
    }

    #[test]
    fn a_list_is_indented_across_pieces() {
        let pieces = Pieces::of(&[b"{\"items\":[", b"{\"a\":1}", b",{}", b"]}\n"]);
        let want = "{\n  \"items\": [\n    {\n      \"a\": 1\n    },\n    {}\n  ]\n}";
        assert_eq!(String::from_utf8_lossy(&all(Pretty::new(pieces))), want);
    }
}
