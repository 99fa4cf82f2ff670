//! Bytes that are held of other servers' objects: one sum for all kinds that are followed.
//!
//! In: what each of them holds. Out: whether there is room for that. Never: waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::FOLLOWED_BYTES_MAX;

/// The sum. Its clones are the same.
#[derive(Clone, Default)]
pub struct HeldBytes(Arc<AtomicUsize>);

/// What one of them holds of it.
pub struct HeldShare {
    all: HeldBytes,
    bytes: usize,
}

impl HeldBytes {
    /// A share of it, which holds nothing yet.
    pub fn share(&self) -> HeldShare {
        HeldShare { all: self.clone(), bytes: 0 }
    }
}

impl HeldShare {
    /// Whether there is room for it to hold `bytes`, which it then does; otherwise it holds what it held.
    pub fn takes(&mut self, bytes: usize) -> bool {
        let all = &self.all.0;
        if bytes > self.bytes {
            let more = bytes - self.bytes;
            if all.fetch_add(more, Ordering::Relaxed) + more > FOLLOWED_BYTES_MAX {
                all.fetch_sub(more, Ordering::Relaxed);
                return false;
            }
        } else {
            all.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for HeldShare {
    fn drop(&mut self) {
        self.takes(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_all_of_them_together_and_again_for_what_one_held() {
        let all = HeldBytes::default();
        let (mut one, mut other) = (all.share(), all.share());
        assert!(one.takes(FOLLOWED_BYTES_MAX - 10) && other.takes(10));
        assert!(!other.takes(11) && !one.takes(FOLLOWED_BYTES_MAX));
        assert!(one.takes(0) && other.takes(FOLLOWED_BYTES_MAX));
        drop(other);
        assert!(one.takes(FOLLOWED_BYTES_MAX));
    }
}
