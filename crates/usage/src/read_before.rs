//! What has been read on a connection: whether a client that reads a state does so again.
//!
//! In: who asks, and for which collection. Out: whether it has before. Owner: the connection. Never: keeps a
//! name.

use std::sync::{Mutex, PoisonError};

use crate::limits::READ_BEFORE_MAX;

/// Hashes of the last so many collections.
#[derive(Debug, Default)]
pub struct ReadBefore(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    // <= READ_BEFORE_MAX
    hashes: Vec<u32>,
    oldest: usize,
}

impl ReadBefore {
    /// Notes that a collection is read. Says whether it was before.
    pub fn note(&self, collection: u32) -> bool {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Few: no more than the limit.
        if ring.hashes.contains(&collection) {
            return true;
        }
        if ring.hashes.len() < READ_BEFORE_MAX {
            ring.hashes.push(collection);
            return false;
        }
        let oldest = ring.oldest;
        ring.hashes[oldest] = collection;
        ring.oldest = (oldest + 1) % READ_BEFORE_MAX;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_is_known_until_many_others_were_read() {
        let read = ReadBefore::default();
        assert!(!read.note(1));
        assert!(read.note(1));
        for collection in 2..=READ_BEFORE_MAX as u32 {
            assert!(!read.note(collection));
        }
        assert!(read.note(1));
        assert!(!read.note(1_000));
        assert!(!read.note(1), "it was the oldest");
        assert!(read.note(1_000) && read.note(3));
    }
}
