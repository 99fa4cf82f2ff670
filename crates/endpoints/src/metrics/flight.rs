//! Pieces of answers that were made and are not with the kernel yet: how many, and their bytes.
//!
//! In: each piece on its way. Out: the same, which counts until the last who has it lets go of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// Pieces of one kind of answer that are on their way. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Flight(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    frames: AtomicUsize,
    bytes: AtomicUsize,
}

/// A piece on its way.
struct Piece {
    bytes: Bytes,
    flight: Flight,
}

impl Flight {
    /// `bytes`, counted until they are dropped.
    pub fn carry(&self, bytes: Bytes) -> Bytes {
        self.0.frames.fetch_add(1, Ordering::Relaxed);
        self.0.bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        Bytes::from_owner(Piece { bytes, flight: self.clone() })
    }

    pub fn frames(&self) -> usize {
        self.0.frames.load(Ordering::Relaxed)
    }

    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.flight.0.frames.fetch_sub(1, Ordering::Relaxed);
        self.flight.0.bytes.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_counts_until_its_last_part_is_gone() {
        let flight = Flight::default();
        let mut first = flight.carry(Bytes::from_static(b"abcdef"));
        let second = flight.carry(Bytes::from_static(b"gh"));
        assert_eq!((&*first, &*second, flight.frames(), flight.bytes()), (&b"abcdef"[..], &b"gh"[..], 2, 8));
        let part = first.split_to(2);
        drop((first, second));
        assert_eq!((&*part, flight.frames(), flight.bytes()), (&b"ab"[..], 1, 6));
        drop(part);
        assert_eq!((flight.frames(), flight.bytes()), (0, 0));
    }
}
