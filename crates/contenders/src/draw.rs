//! Randomness that anybody can draw again: everything that the scenarios write comes from [`SEED`].
//!
//! In: words that say what is drawn. Out: the same numbers and texts on every run and machine. Never: a
//! clock, or an order that matters: each thing has a [`Draw`] of its own.

use std::fmt::Write as _;

/// The published seed. Another one makes other objects of the same kind and size.
pub const SEED: u64 = 0x0042_dead_10cc_2026;

/// The letters and digits that Kubernetes makes random names of.
const NAME_LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// A stream of numbers; splitmix64.
#[derive(Clone, Debug)]
pub struct Draw(u64);

impl Draw {
    /// The stream for the thing at `index` of what is called `name`.
    pub fn of(name: &str, index: u64) -> Draw {
        let mut state = SEED ^ index.wrapping_mul(0xd6e8_feb8_6659_fd93);
        for byte in name.bytes() {
            state = mixed(state ^ u64::from(byte));
        }
        Draw(state)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number in `0..end`; 0 when there is none.
    pub fn below(&mut self, end: usize) -> usize {
        (self.number() % end.max(1) as u64) as usize
    }

    /// True `percent` times of a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of `all`, which is not empty.
    pub fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    /// `digits` hexadecimal digits.
    pub fn hex(&mut self, digits: usize) -> String {
        let mut text = String::with_capacity(digits + 16);
        while text.len() < digits {
            let _ = write!(text, "{:016x}", self.number());
        }
        text.truncate(digits);
        text
    }

    /// `letters` letters as Kubernetes names things.
    pub fn letters(&mut self, letters: usize) -> String {
        (0..letters).map(|_| char::from(NAME_LETTERS[self.below(NAME_LETTERS.len())])).collect()
    }

    /// `bytes` random bytes.
    pub fn bytes(&mut self, bytes: usize) -> Vec<u8> {
        let mut all = Vec::with_capacity(bytes + 8);
        while all.len() < bytes {
            all.extend_from_slice(&self.number().to_le_bytes());
        }
        all.truncate(bytes);
        all
    }
}

/// The end of a generated name, five letters, another one for each `ordinal` below 27^5 of the same `owner`.
pub fn suffix(owner: u64, ordinal: usize) -> String {
    const ALL: u64 = 27u64.pow(5);
    // A step without a common factor with 27^5 meets every number once.
    let mut left = (mixed(owner) % ALL + (ordinal as u64 % ALL) * 5_778_191) % ALL;
    let mut text = String::with_capacity(5);
    for _ in 0..5 {
        text.push(char::from(NAME_LETTERS[(left % 27) as usize]));
        left /= 27;
    }
    text
}

fn mixed(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_same_words_draw_the_same_and_others_draw_otherwise() {
        assert_eq!(Draw::of("pod", 7).hex(40), Draw::of("pod", 7).hex(40));
        let all: BTreeSet<String> = [("pod", 7), ("pod", 8), ("dop", 7), ("po", 7)]
            .map(|(name, at)| Draw::of(name, at).hex(40))
            .into();
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn what_is_drawn_has_the_length_asked_for() {
        let mut draw = Draw::of("length", 0);
        for length in [0, 1, 15, 16, 17, 600] {
            assert_eq!((draw.hex(length).len(), draw.letters(length).len()), (length, length));
            assert_eq!(draw.bytes(length).len(), length);
        }
        assert!((0..1_000).all(|_| draw.below(3) < 3) && draw.below(0) == 0);
    }

    #[test]
    fn suffixes_of_one_owner_differ() {
        let all: BTreeSet<String> = (0..5_000).map(|ordinal| suffix(3, ordinal)).collect();
        assert_eq!(all.len(), 5_000);
        assert!(all.iter().all(|text| text.len() == 5));
    }
}
