//! A body with `Content-Encoding: gzip` that its server puts together from runs: texts that were deflated
//! each by itself, to a byte boundary, such as the blocks of a server of ours. Who keeps a run as it came
//! need not deflate what it says.
//!
//! A run ends as a flush does, with an empty stored block, so its end is known by four bytes; that they are
//! its end, and that it repeats nothing that was before, is known by inflating it alone. It is inflated with
//! a mark behind it that its server does not know: where that does not come out, a member ends in it, and
//! what is behind that end was not read.
//!
//! In: the body in pieces. Out: a [`Run`] each time that a whole one is there; where the body is no longer
//! made of runs, or whoever reads it has no use for them any more, an [`Inflate`] that goes on. Never: waits
//! for the end of a run that is longer than [`RUN_DEFLATED_BYTES_MAX`], holds more of what one says than
//! [`RUN_BYTES_MAX`].

use bytes::Bytes;
use flate2::Crc;
use libdeflater::{DecompressionError, Decompressor};
use memchr::memmem;

use super::Inflate;
use super::pending::Pending;
use crate::limits::{RUN_BYTES, RUN_BYTES_MAX, RUN_DEFLATED_BYTES_MAX};

/// A member's head without a name or anything else: deflate, no flags; then a time and what made it.
const HEAD_BYTES: usize = 10;
const HEAD: [u8; 4] = [0x1f, 0x8b, 8, 0];

/// The lengths of an empty stored block.
const FLUSHED: [u8; 4] = [0, 0, 0xff, 0xff];

/// A stored block that is empty, from a byte boundary on: it says nothing.
const PAUSE: [u8; 5] = [0, 0, 0, 0xff, 0xff];

/// A final stored block, before the mark that it holds.
const MARK_HEAD: [u8; 5] = [0x01, MARK_BYTES as u8, 0, !(MARK_BYTES as u8), 0xff];
const MARK_BYTES: usize = 8;

/// How far back deflate may refer.
const WINDOW_BYTES: usize = 32 << 10;

/// A text that was deflated by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub plain: Bytes,
    /// What inflates to it: raw deflate, not final, to a byte boundary.
    pub deflated: Bytes,
}

/// What comes next of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextRun {
    Run(Run),
    /// More bytes have to come in first.
    More,
    /// What comes is no run: [`Runs::go_on`].
    Otherwise,
}

/// A body in runs.
pub struct Runs {
    pending: Pending,
    // How much of that was looked through for the end of a run.
    looked: usize,
    has_begun: bool,
    coder: Decompressor,
    // What no server knows: it comes out behind a run, and by no other means.
    mark: [u8; MARK_BYTES],
    // A run with the mark behind it, and what it says.
    ended: Vec<u8>,
    plain: Vec<u8>,
    // The last bytes of the plain text, at most WINDOW_BYTES, and the sum of it all.
    history: Vec<u8>,
    sum: Crc,
}

impl Runs {
    /// - `mark`: a random number.
    pub fn new(mark: u64) -> Runs {
        Runs {
            pending: Pending::default(),
            looked: 0,
            has_begun: false,
            coder: Decompressor::new(),
            mark: mark.to_le_bytes(),
            ended: Vec::new(),
            plain: vec![0; RUN_BYTES + MARK_BYTES],
            history: Vec::with_capacity(WINDOW_BYTES),
            sum: Crc::new(),
        }
    }

    /// Takes what came in.
    pub fn push(&mut self, piece: &[u8]) {
        self.pending.push(piece);
    }

    /// What comes next.
    pub fn next_run(&mut self) -> NextRun {
        if !self.has_begun {
            let text = self.pending.text();
            if text.len() < HEAD_BYTES {
                return if HEAD.starts_with(&text[..text.len().min(HEAD.len())]) {
                    NextRun::More
                } else {
                    NextRun::Otherwise
                };
            }
            if !text.starts_with(&HEAD) {
                return NextRun::Otherwise;
            }
            self.pending.use_up(HEAD_BYTES);
            self.has_begun = true;
        }
        loop {
            let text = self.pending.text();
            let Some(at) = memmem::find(&text[self.looked..], &FLUSHED) else {
                self.looked = text.len().saturating_sub(FLUSHED.len() - 1);
                return if text.len() > RUN_DEFLATED_BYTES_MAX { NextRun::Otherwise } else { NextRun::More };
            };
            let end = self.looked + at + FLUSHED.len();
            let run = match text[..end] == PAUSE {
                true => None,
                false => match self.inflate(end) {
                    Some(run) => Some(run),
                    None => return NextRun::Otherwise,
                },
            };
            self.pending.use_up(end);
            self.looked = 0;
            if let Some(run) = run {
                return NextRun::Run(run);
            }
        }
    }

    /// Whether something came of a run, or of the head before the first, of which more has to come in.
    pub fn is_within_run(&self) -> bool {
        !self.pending.text().is_empty()
    }

    /// The run that ends there, if it is one.
    fn inflate(&mut self, end: usize) -> Option<Run> {
        let deflated = &self.pending.text()[..end];
        self.ended.clear();
        self.ended.extend_from_slice(deflated);
        self.ended.extend_from_slice(&MARK_HEAD);
        self.ended.extend_from_slice(&self.mark);
        let mut inflated = self.coder.deflate_decompress(&self.ended, &mut self.plain);
        let mut long = Vec::new();
        if inflated == Err(DecompressionError::InsufficientSpace) {
            long = vec![0; RUN_BYTES_MAX + MARK_BYTES];
            inflated = self.coder.deflate_decompress(&self.ended, &mut long);
        }
        let plain = if long.is_empty() { &self.plain } else { &long };
        let plain = plain[..inflated.ok()?].strip_suffix(&self.mark)?;
        // A stored block that goes on beyond its run says the mark, too, as text, and what is before it; with
        // another end behind it, as it is kept, it would not inflate.
        if plain.ends_with(&MARK_HEAD) {
            return None;
        }
        self.sum.update(plain);
        remember(&mut self.history, plain);
        Some(Run { plain: Bytes::copy_from_slice(plain), deflated: Bytes::copy_from_slice(deflated) })
    }

    /// What came and was given in no run, and what is still to come, as it is inflated.
    pub fn go_on(self) -> Inflate {
        match self.has_begun {
            true => Inflate::within(self.pending, &self.history, self.sum),
            false => Inflate::of(self.pending),
        }
    }
}

/// Puts `plain` behind `history`, of which the last bytes stay.
fn remember(history: &mut Vec<u8>, plain: &[u8]) {
    let plain = &plain[plain.len().saturating_sub(WINDOW_BYTES)..];
    let too_many = (history.len() + plain.len()).saturating_sub(WINDOW_BYTES);
    history.drain(..too_many);
    history.extend_from_slice(plain);
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::GzEncoder;
    use flate2::{Compress, Compression, FlushCompress};

    use super::*;
    use crate::wire::inflate::trailer;

    const MARK: u64 = 0x0123_4567_89ab_cdef;

    /// A final block with nothing in it.
    const END: [u8; 2] = [0x03, 0x00];

    /// A member of `texts`, each flushed so; `alone` without a window of those before.
    fn member(texts: &[&[u8]], flush: FlushCompress) -> Vec<u8> {
        let (mut out, mut sum) = ([&HEAD[..], &[0, 0, 0, 0, 4, 255]].concat(), Crc::new());
        let mut coder = Compress::new(Compression::fast(), false);
        for text in texts {
            let mut room = Vec::with_capacity(text.len() + 1_000);
            coder.compress_vec(text, &mut room, flush).expect("it fits");
            out.extend(room);
            sum.update(text);
        }
        out.extend(END);
        out.extend(trailer(&sum));
        out
    }

    /// Runs, then the rest.
    fn read(pieces: &[&[u8]]) -> (Vec<Run>, Vec<u8>, bool) {
        let (mut runs, mut found) = (Runs::new(MARK), Vec::new());
        let mut pieces = pieces.iter();
        let mut rest = loop {
            match runs.next_run() {
                NextRun::Run(run) => found.push(run),
                NextRun::More => match pieces.next() {
                    Some(piece) => runs.push(piece),
                    None => break runs.go_on(),
                },
                NextRun::Otherwise => break runs.go_on(),
            }
        };
        let mut plain = Vec::new();
        loop {
            while let Some(more) = rest.next_piece().expect("gzip") {
                plain.extend_from_slice(more);
            }
            let Some(piece) = pieces.next() else { break };
            rest.push(piece);
        }
        (found, plain, rest.is_whole())
    }

    fn text(number: usize) -> Vec<u8> {
        format!("{{\"type\":\"ADDED\",\"object\":{{\"number\":{number}}}}}\n")
            .repeat(20 + number)
            .into_bytes()
    }

    #[test]
    fn runs_are_given_as_they_came_wherever_the_body_is_cut() {
        let texts: Vec<_> = (0..6).map(text).collect();
        let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
        let body = [member(&texts, FlushCompress::Full), member(&[b"tail"], FlushCompress::Full)].concat();
        for cut in 0..=body.len() {
            let (runs, rest, is_whole) = read(&[&body[..cut], &body[cut..]]);
            assert!(is_whole, "cut at {cut}");
            assert_eq!(rest, b"tail", "cut at {cut}");
            assert_eq!(runs.iter().map(|run| &run.plain[..]).collect::<Vec<_>>(), texts);
            for run in runs {
                let mut plain = vec![0; run.plain.len()];
                let ended = [&run.deflated[..], &END].concat();
                assert_eq!(Decompressor::new().deflate_decompress(&ended, &mut plain), Ok(plain.len()));
                assert_eq!(run.plain, plain);
            }
        }
    }

    #[test]
    fn what_repeats_what_was_before_is_no_run_and_is_read_all_the_same() {
        let texts: Vec<_> = (0..6).map(|number| text(number % 2)).collect();
        let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
        let body = member(&texts, FlushCompress::Sync);
        for cut in 0..=body.len() {
            let (runs, rest, is_whole) = read(&[&body[..cut], &body[cut..]]);
            let before: Vec<u8> = runs.iter().flat_map(|run| run.plain.to_vec()).collect();
            assert_eq!(([before, rest].concat(), is_whole), (texts.concat(), true), "cut at {cut}");
            assert!(runs.len() < texts.len());
        }
    }

    #[test]
    fn a_body_of_another_making_is_inflated_as_it_comes() {
        let mut coder = GzEncoder::new(Vec::new(), Compression::fast());
        coder.write_all(&text(40)).expect("into memory");
        let plain = coder.finish().expect("into memory");
        let named = flate2::GzBuilder::new().filename("pods").write(Vec::new(), Compression::fast());
        let mut named = named;
        named.write_all(&text(40)).expect("into memory");
        for body in [plain, named.finish().expect("into memory")] {
            for cut in 0..=body.len() {
                let (runs, rest, is_whole) = read(&[&body[..cut], &body[cut..]]);
                assert_eq!((runs.len(), rest, is_whole), (0, text(40), true), "cut at {cut}");
            }
        }
    }

    #[test]
    fn a_checksum_that_does_not_fit_is_seen_behind_runs() {
        let mut body = member(&[&text(1), &text(2)], FlushCompress::Full);
        let at = body.len() - 5;
        body[at] ^= 1;
        let mut runs = Runs::new(MARK);
        runs.push(&body);
        assert!(matches!(runs.next_run(), NextRun::Run(_)) && matches!(runs.next_run(), NextRun::Run(_)));
        assert_eq!(runs.next_run(), NextRun::More);
        let mut rest = runs.go_on();
        assert!(rest.next_piece().is_err());
        assert!(!rest.is_whole());
    }

    #[test]
    fn a_checksum_that_does_not_fit_is_seen_before_the_member_behind_it() {
        let mut body = member(&[&text(1)], FlushCompress::Full);
        let at = body.len() - 5;
        body[at] ^= 1;
        body.extend(member(&[&text(2)], FlushCompress::Full));
        let mut runs = Runs::new(MARK);
        runs.push(&body);
        assert!(matches!(runs.next_run(), NextRun::Run(_)));
        assert_eq!(runs.next_run(), NextRun::Otherwise);
        let mut rest = runs.go_on();
        assert!(rest.next_piece().is_err());
    }

    #[test]
    fn a_stored_block_that_takes_the_mark_in_is_no_run() {
        let text = [&text(1)[..], &FLUSHED].concat();
        let len = (text.len() + MARK_HEAD.len() + MARK_BYTES) as u16;
        for is_final in [0, 1] {
            let head = [&[is_final][..], &len.to_le_bytes(), &(!len).to_le_bytes()].concat();
            let mut runs = Runs::new(MARK);
            runs.push(&[&HEAD[..], &[0, 0, 0, 0, 4, 255], &head, &text].concat());
            assert_eq!(runs.next_run(), NextRun::Otherwise, "{is_final}");
        }
    }

    #[test]
    fn a_bomb_is_no_run() {
        let zeros = vec![b' '; RUN_BYTES_MAX + 1];
        let body = member(&[&text(1), &zeros], FlushCompress::Full);
        let mut runs = Runs::new(MARK);
        runs.push(&body);
        assert!(matches!(runs.next_run(), NextRun::Run(_)));
        assert_eq!(runs.next_run(), NextRun::Otherwise);
        let (mut rest, mut len) = (runs.go_on(), 0);
        while let Some(piece) = rest.next_piece().expect("gzip") {
            len += piece.len();
        }
        assert_eq!(len, zeros.len());
        assert!(rest.is_whole());
        // Nor is one looked for without end.
        let mut runs = Runs::new(MARK);
        runs.push(&body[..HEAD_BYTES]);
        runs.push(&vec![1; RUN_DEFLATED_BYTES_MAX]);
        assert_eq!(runs.next_run(), NextRun::More);
        runs.push(&[1]);
        assert_eq!(runs.next_run(), NextRun::Otherwise);
    }

    #[test]
    fn a_long_object_is_a_run_of_its_own() {
        let long = vec![b'x'; RUN_BYTES_MAX];
        let body = member(&[&long, &text(1)], FlushCompress::Full);
        let (runs, _, is_whole) = read(&[&body]);
        assert_eq!(runs.iter().map(|run| run.plain.len()).collect::<Vec<_>>(), [long.len(), text(1).len()]);
        assert!(is_whole);
    }
}
