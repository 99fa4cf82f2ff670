//! A body with `Content-Encoding: gzip`, inflated while it comes in.
//!
//! In: the body in pieces. Out: what it says, at most [`INFLATED_BYTES_MAX`] at a time and only when somebody
//! asks, so a bomb costs what is taken of it. Several members behind one another are one body. Never: lets a
//! checksum that does not fit go by.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::error::{WireError, garbled};
use super::pending::Pending;
use crate::limits::INFLATED_BYTES_MAX;

/// 2^15 bytes is the longest window there is.
const WINDOW_BITS: u8 = 15;

/// A body that is inflated.
#[derive(Debug)]
pub struct Inflate {
    pending: Pending,
    coder: Decompress,
    out: Vec<u8>, // INFLATED_BYTES_MAX of them
    place: Place,
    // Of a member that was begun elsewhere: what its end is to say. The coder knows of no checksum then.
    sum: Option<Crc>,
    // Whether the coder may have more without another byte.
    owes_more: bool,
    failed: Option<WireError>,
}

/// Where the body stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the first member: not even an empty body is none.
    Begin,
    Within,
    /// Before the checksum of a member that was begun elsewhere.
    Trailer,
    Between,
}

/// CRC-32 and length: what a member ends with.
pub(super) const TRAILER_BYTES: usize = 8;

/// What a member ends with.
pub(super) fn trailer(sum: &Crc) -> [u8; TRAILER_BYTES] {
    let (crc, len) = (sum.sum().to_le_bytes(), sum.amount().to_le_bytes());
    std::array::from_fn(|at| if at < 4 { crc[at] } else { len[at - 4] })
}

impl Default for Inflate {
    fn default() -> Inflate {
        Inflate::new()
    }
}

impl Inflate {
    pub fn new() -> Inflate {
        Inflate {
            pending: Pending::default(),
            coder: Decompress::new_gzip(WINDOW_BITS),
            out: vec![0; INFLATED_BYTES_MAX],
            place: Place::Begin,
            sum: None,
            owes_more: false,
            failed: None,
        }
    }

    /// An inflater of a body that has begun to come.
    pub(super) fn of(pending: Pending) -> Inflate {
        Inflate { pending, ..Inflate::new() }
    }

    /// Goes on in a member.
    ///
    /// - `pending`: what came of it and is not inflated, from a byte boundary on.
    /// - `history`: what may be repeated of what was, 2^15 bytes at most.
    /// - `sum`: of all that was.
    pub(super) fn within(pending: Pending, history: &[u8], sum: Crc) -> Inflate {
        let mut coder = Decompress::new_with_window_bits(false, WINDOW_BITS);
        let is_set = coder.set_dictionary(history);
        let failed = is_set.is_err().then_some(WireError::Garbled { what: "a member without its beginning" });
        Inflate { pending, coder, place: Place::Within, sum: Some(sum), failed, ..Inflate::new() }
    }

    /// Takes what came in.
    pub fn push(&mut self, piece: &[u8]) {
        self.pending.push(piece);
    }

    /// What comes next of the inflated body, never empty; `None` when more has to come in first.
    ///
    /// # Errors
    /// [`WireError::Garbled`], now and from now on.
    pub fn next_piece(&mut self) -> Result<Option<&[u8]>, WireError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        match self.advance() {
            Ok(0) => Ok(None),
            Ok(len) => Ok(Some(&self.out[..len])),
            Err(error) => {
                self.failed = Some(error);
                Err(error)
            }
        }
    }

    /// Whether the body would be whole if it ended here.
    pub fn is_whole(&self) -> bool {
        self.place == Place::Between && self.pending.text().is_empty()
    }

    /// Bytes that were put into `out`: 0 when more has to come in.
    fn advance(&mut self) -> Result<usize, WireError> {
        loop {
            let text = self.pending.text();
            if text.is_empty() && !self.owes_more {
                return Ok(0);
            }
            match self.place {
                Place::Trailer => {
                    let Some(end) = text.first_chunk() else { return Ok(0) };
                    if self.sum.take().is_some_and(|sum| trailer(&sum) != *end) {
                        return garbled("a gzip member whose checksum is another");
                    }
                    self.pending.use_up(TRAILER_BYTES);
                    self.coder = Decompress::new_gzip(WINDOW_BITS);
                    self.place = Place::Between;
                    continue;
                }
                Place::Between => self.coder.reset(true),
                Place::Begin | Place::Within => {}
            }
            self.place = Place::Within;
            let (read, made) = (self.coder.total_in(), self.coder.total_out());
            let Ok(status) = self.coder.decompress(text, &mut self.out, FlushDecompress::None) else {
                return garbled("a gzip member that is none");
            };
            let read = (self.coder.total_in() - read) as usize;
            let made = (self.coder.total_out() - made) as usize;
            let was_asked = !text.is_empty();
            self.pending.use_up(read);
            self.owes_more = made == self.out.len() && status != Status::StreamEnd;
            if let Some(sum) = &mut self.sum {
                sum.update(&self.out[..made]);
            }
            if status == Status::StreamEnd {
                self.place = if self.sum.is_some() { Place::Trailer } else { Place::Between };
            } else if was_asked && read == 0 && made == 0 {
                return garbled("a gzip member that does not go on");
            }
            if made > 0 {
                return Ok(made);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut coder = GzEncoder::new(Vec::new(), Compression::fast());
        coder.write_all(plain).expect("into memory");
        coder.finish().expect("into memory")
    }

    fn inflate(pieces: &[&[u8]]) -> Result<(Vec<u8>, bool), WireError> {
        let mut body = Inflate::new();
        let mut plain = Vec::new();
        for piece in pieces {
            body.push(piece);
            while let Some(more) = body.next_piece()? {
                plain.extend_from_slice(more);
            }
        }
        Ok((plain, body.is_whole()))
    }

    #[test]
    fn a_body_is_the_same_wherever_it_is_cut() {
        let plain = br#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#.repeat(20);
        // Two members, one of them with nothing in it.
        let body = [gzip(&plain), gzip(b""), gzip(b"tail")].concat();
        let want = [&plain[..], b"tail"].concat();
        for cut in 0..=body.len() {
            assert_eq!(inflate(&[&body[..cut], &body[cut..]]), Ok((want.clone(), true)), "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(inflate(&bytes), Ok((want, true)));
    }

    #[test]
    fn half_a_body_is_not_whole() {
        let body = gzip(b"hello");
        for cut in 0..body.len() {
            let (plain, is_whole) = inflate(&[&body[..cut]]).expect("it may go on");
            assert!(b"hello".starts_with(&plain) && !is_whole, "cut at {cut}");
        }
    }

    #[test]
    fn a_bomb_costs_what_is_taken() {
        let plain = vec![0; 40 * INFLATED_BYTES_MAX + 1];
        let mut body = Inflate::new();
        body.push(&gzip(&plain));
        let mut len = 0;
        while let Some(piece) = body.next_piece().expect("gzip") {
            assert!(!piece.is_empty() && piece.len() <= INFLATED_BYTES_MAX);
            len += piece.len();
        }
        assert_eq!(len, plain.len());
        assert!(body.is_whole());
    }

    #[test]
    fn what_is_no_gzip_is_garbled_and_stays_so() {
        let mut wrong_sum = gzip(b"hello");
        let at = wrong_sum.len() - 5;
        wrong_sum[at] ^= 1;
        for body in [b"{\"kind\":\"PodList\"}".to_vec(), wrong_sum, [gzip(b"a"), b"tail".to_vec()].concat()] {
            let mut inflate = Inflate::new();
            inflate.push(&body);
            let error = loop {
                match inflate.next_piece() {
                    Ok(piece) => assert!(piece.is_some(), "an error was expected"),
                    Err(error) => break error,
                }
            };
            inflate.push(&gzip(b"b"));
            assert_eq!(inflate.next_piece(), Err(error));
        }
    }
}
