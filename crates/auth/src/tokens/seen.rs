//! Tokens whose signature has been found good, so that it is computed once and not with every request.
//!
//! In: a token. Out: whether it has been verified lately. It belongs to the keys that did it and goes with
//! them, so what was good stays good. Owner: the one lock in here.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::limits::TOKENS_SEEN_MAX;

type Digests = HashSet<[u8; 32]>;

/// Two generations: when the younger is full it becomes the elder, and the elder is forgotten.
#[derive(Default)]
pub struct Seen(Mutex<[Digests; 2]>);

impl Seen {
    pub fn contains(&self, token: &str) -> bool {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if generations[0].contains(&digest) {
            return true;
        }
        let is_elder = generations[1].contains(&digest);
        if is_elder {
            insert(&mut generations, digest);
        }
        is_elder
    }

    pub fn insert(&self, token: &str) {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        insert(&mut generations, Sha256::digest(token).into());
    }
}

fn insert(generations: &mut [Digests; 2], digest: [u8; 32]) {
    if generations[0].len() >= TOKENS_SEEN_MAX {
        generations.swap(0, 1);
        generations[0].clear();
    }
    generations[0].insert(digest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_stays_and_the_rest_is_forgotten() {
        let seen = Seen::default();
        assert!(!seen.contains("kept"));
        seen.insert("kept");
        seen.insert("left");
        for token in 0..2 * TOKENS_SEEN_MAX {
            seen.insert(&token.to_string());
            assert!(seen.contains("kept"), "{token}");
        }
        assert!(!seen.contains("left"));
        let held = seen.0.lock().expect("no panic");
        assert!(held.iter().all(|one| one.len() <= TOKENS_SEEN_MAX));
    }
}
