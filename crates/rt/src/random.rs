//! Randomness: from the operating system, or from a seed.
//!
//! Not for secrets: keys and certificates draw from the TLS library's own generator.

use std::sync::atomic::{AtomicU64, Ordering};

/// A source of random numbers that can be shared and, seeded, repeated.
#[derive(Debug)]
pub struct Random(Source);

#[derive(Debug)]
enum Source {
    System,
    // SplitMix64's state; each draw moves it by one step.
    Seeded(AtomicU64),
}

impl Random {
    /// The operating system's generator.
    pub fn system() -> Random {
        Random(Source::System)
    }

    /// The same numbers for the same seed.
    pub fn seeded(seed: u64) -> Random {
        Random(Source::Seeded(AtomicU64::new(seed)))
    }

    /// 64 random bits.
    pub fn next_u64(&self) -> u64 {
        match &self.0 {
            Source::System => getrandom::u64().expect("the operating system gives random numbers"),
            Source::Seeded(state) => split_mix(state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP)),
        }
    }

    /// A number in `0..bound`; 0 when `bound` is 0. The bias is below `bound / 2^64`.
    pub fn below(&self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A random (version 4) UUID in its usual form.
    pub fn uuid(&self) -> String {
        let (high, low) = (self.next_u64(), self.next_u64());
        let high = (high & !0xF000) | 0x4000;
        let low = (low & !(0b11 << 62)) | (0b10 << 62);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xFFFF,
            high & 0xFFFF,
            low >> 48,
            low & 0xFFFF_FFFF_FFFF
        )
    }
}

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

fn split_mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_numbers() {
        let draw = |seed| {
            let random = Random::seeded(seed);
            (0..8).map(|_| random.next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn a_uuid_has_version_and_variant() {
        let id = Random::seeded(1).uuid();
        assert_eq!(id.len(), 36);
        assert_eq!(&id[14..15], "4");
        assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"), "{id}");
    }

    #[test]
    fn below_stays_below() {
        let random = Random::seeded(3);
        assert!((0..1_000).all(|_| random.below(10) < 10));
        assert_eq!(random.below(0), 0);
    }
}
