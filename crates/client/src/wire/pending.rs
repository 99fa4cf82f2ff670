//! What came in and was not used up yet.
//!
//! In: pieces. Out: all of it that is unused, in one row. Each byte moves a constant number of times, however
//! much or little is used up between two pieces. Never: looks at a byte.

use crate::limits::ROOM_BYTES_KEPT;

/// Bytes in a row: put in at the end, used up from the front.
#[derive(Debug, Default)]
pub(super) struct Pending {
    bytes: Vec<u8>,
    // What lies before it is used up.
    from: usize,
}

impl Pending {
    pub(super) fn push(&mut self, piece: &[u8]) {
        let unused = self.bytes.len() - self.from;
        // At least as many bytes were used up as are moved, which pays for it.
        if self.from >= unused {
            self.bytes.copy_within(self.from.., 0);
            self.bytes.truncate(unused);
            self.from = 0;
            if self.bytes.capacity() > ROOM_BYTES_KEPT && unused + piece.len() <= ROOM_BYTES_KEPT / 2 {
                self.bytes.shrink_to(ROOM_BYTES_KEPT);
            }
        }
        self.bytes.extend_from_slice(piece);
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.bytes[self.from..]
    }

    pub(super) fn use_up(&mut self, len: usize) {
        self.from += len;
        assert!(self.from <= self.bytes.len(), "only what came in is used up");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unused_stays_in_its_order() {
        let mut pending = Pending::default();
        let mut want = Vec::new();
        for round in 0..200_u8 {
            let piece = vec![round; usize::from(round % 7)];
            pending.push(&piece);
            want.extend_from_slice(&piece);
            let used = want.len().min(usize::from(round % 5));
            pending.use_up(used);
            want.drain(..used);
            assert_eq!(pending.text(), want);
        }
    }

    #[test]
    fn the_room_of_a_long_object_goes_back() {
        let mut pending = Pending::default();
        pending.push(&vec![b'x'; 8 * ROOM_BYTES_KEPT]);
        pending.use_up(8 * ROOM_BYTES_KEPT);
        pending.push(b"y");
        assert_eq!(pending.text(), b"y");
        assert!(pending.bytes.capacity() <= ROOM_BYTES_KEPT, "{}", pending.bytes.capacity());
    }
}
