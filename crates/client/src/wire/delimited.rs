//! Frames with their length before them, as watches in protobuf have them: 4 bytes, big-endian, then as many
//! as they say.
//!
//! In: the body in pieces. Out: what each frame holds. Never: makes room for a length before the bytes are
//! there.

use bytes::Bytes;

use super::error::WireError;
use super::pending::Pending;
use crate::limits::OBJECT_BYTES_MAX;

/// The frames of a stream.
#[derive(Debug, Default)]
pub struct DelimitedFrames {
    pending: Pending,
}

impl DelimitedFrames {
    pub fn new() -> DelimitedFrames {
        DelimitedFrames::default()
    }

    /// Takes what came in. Frames that were not asked for before stay.
    pub fn push(&mut self, piece: &[u8]) {
        self.pending.push(piece);
    }

    /// The next frame that is whole; `None` when more has to come in first.
    ///
    /// # Errors
    /// [`WireError::TooLong`], now and from now on, as soon as its length is there.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, WireError> {
        let Some((len, rest)) = self.pending.text().split_first_chunk::<4>() else { return Ok(None) };
        let len = u32::from_be_bytes(*len) as usize;
        if len > OBJECT_BYTES_MAX {
            // The bytes are not consumed, so a next call fails in the same way.
            return Err(WireError::TooLong);
        }
        let Some(frame) = rest.get(..len) else { return Ok(None) };
        let frame = Bytes::copy_from_slice(frame);
        self.pending.use_up(4 + len);
        Ok(Some(frame))
    }

    /// Whether the stream stands in the middle of a frame, once all that are whole were taken.
    pub fn is_within_frame(&self) -> bool {
        !self.pending.text().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(frames: &[&[u8]]) -> Vec<u8> {
        frames.iter().flat_map(|frame| [&(frame.len() as u32).to_be_bytes()[..], frame].concat()).collect()
    }

    #[test]
    fn frames_are_the_same_wherever_the_stream_is_cut() {
        let frames: [&[u8]; 4] = [b"k8s\0one", b"", b"two", &[0xff; 300]];
        let stream = framed(&frames);
        for cut in 0..=stream.len() {
            let mut cutter = DelimitedFrames::new();
            let mut got = Vec::new();
            for piece in [&stream[..cut], &stream[cut..]] {
                cutter.push(piece);
                while let Some(frame) = cutter.next_frame().expect("frames") {
                    got.push(frame);
                }
            }
            assert_eq!(got, frames, "cut at {cut}");
            assert!(!cutter.is_within_frame());
        }
    }

    #[test]
    fn half_a_frame_is_within_one() {
        let stream = framed(&[b"abc"]);
        for cut in 1..stream.len() {
            let mut cutter = DelimitedFrames::new();
            cutter.push(&stream[..cut]);
            assert_eq!(cutter.next_frame(), Ok(None));
            assert!(cutter.is_within_frame(), "cut at {cut}");
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_at_its_length() {
        let mut cutter = DelimitedFrames::new();
        cutter.push(&(OBJECT_BYTES_MAX as u32).to_be_bytes());
        assert_eq!(cutter.next_frame(), Ok(None));
        let mut cutter = DelimitedFrames::new();
        cutter.push(&(OBJECT_BYTES_MAX as u32 + 1).to_be_bytes());
        assert_eq!(cutter.next_frame(), Err(WireError::TooLong));
        cutter.push(b"more");
        assert_eq!(cutter.next_frame(), Err(WireError::TooLong));
    }
}
