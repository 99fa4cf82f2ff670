//! Shuffle sharding: which few of a level's queues a flow may use.
//!
//! In: the name of a schema and what sets the flow apart. Out: a hash, and the hand of queues that it deals,
//! the same as kube-apiserver deals. Never: which queue of the hand is taken.
//!
//! Source: apiserver v1.36.3 `util/shufflesharding`.

use sha2::{Digest, Sha256};

/// Largest hand: as many cards as 60 bits can tell apart of a deck of two and more.
pub const HAND_MAX: u64 = 15;

/// Bits of a hash that a hand may use up; with all 64 the last card would be dealt unevenly.
const HASH_BITS: f64 = 60.0;

/// Largest deck.
const DECK_MAX: u64 = 1 << 26;

/// Deals hands of `hand` cards out of a deck of `deck`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dealer {
    deck: u64,
    hand: u64,
}

/// Why no hand can be dealt.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DealerError {
    #[error(
        "a hand of {hand} of {deck} queues: there have to be some, and no more in the hand than there are"
    )]
    Size { deck: u64, hand: u64 },
    #[error("a hand of {hand} of {deck} queues takes more than a hash has")]
    Entropy { deck: u64, hand: u64 },
}

impl Dealer {
    /// A dealer for `deck` queues and hands of `hand` of them.
    ///
    /// # Errors
    /// [`DealerError`] for what kube-apiserver refuses, too.
    pub fn new(deck: u64, hand: u64) -> Result<Dealer, DealerError> {
        if deck == 0 || hand == 0 || hand > deck || hand > HAND_MAX || deck > DECK_MAX {
            return Err(DealerError::Size { deck, hand });
        }
        if ((deck as f64).log2() * hand as f64).ceil() > HASH_BITS {
            return Err(DealerError::Entropy { deck, hand });
        }
        Ok(Dealer { deck, hand })
    }

    /// How many queues there are.
    pub fn deck(&self) -> u64 {
        self.deck
    }

    /// How many of them a flow may use.
    pub fn hand(&self) -> u64 {
        self.hand
    }

    /// The hand of a hash: `hand` different numbers below `deck`.
    pub fn deal(&self, mut hash: u64) -> Vec<usize> {
        let mut cards: Vec<u64> = Vec::with_capacity(self.hand as usize);
        let mut drawn: Vec<u64> = Vec::with_capacity(self.hand as usize);
        for left in (self.deck - self.hand + 1..=self.deck).rev() {
            // The card is a place among those that are left: each that was drawn before from its place or
            // below moves it up.
            let place = hash % left;
            hash /= left;
            cards.push(drawn.iter().rev().fold(place, |card, before| card + u64::from(card >= *before)));
            drawn.push(place);
        }
        cards.into_iter().map(|card| card as usize).collect()
    }
}

/// The hash of a flow.
pub fn flow_hash(schema: &str, distinguisher: &str) -> u64 {
    let mut hash = Sha256::new();
    hash.update(schema.as_bytes());
    hash.update([0]);
    hash.update(distinguisher.as_bytes());
    let sum = hash.finalize();
    u64::from_le_bytes(sum[..8].try_into().expect("a sum has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hand_has_different_queues_of_the_deck() {
        for (deck, hand) in [(64, 6), (128, 6), (16, 4), (6, 6), (1, 1), (512, 6), (10, 2)] {
            let dealer = Dealer::new(deck, hand).unwrap();
            for flow in 0..2_000 {
                let mut cards = dealer.deal(flow_hash("schema", &format!("user-{flow}")));
                cards.sort_unstable();
                cards.dedup();
                assert_eq!(cards.len() as u64, hand, "{deck}/{hand}");
                assert!(*cards.last().unwrap() < deck as usize);
            }
        }
    }

    /// Made by a run of apiserver v0.36.3 `util/shufflesharding` with the hash of its `util/flowcontrol`.
    #[test]
    #[rustfmt::skip]
    fn hash_and_hand_are_those_of_kube_apiserver() {
        type Row = (u64, u64, &'static str, &'static str, u64, &'static [usize]);
        let rows: &[Row] = &[
            (64, 6, "service-accounts", "system:serviceaccount:default:robot", 0xfcddf5baaa47a8fc, &[60, 63, 1, 2, 56, 62]),
            (64, 6, "global-default", "jane", 0x5eae0f0b2aa99b18, &[24, 43, 60, 49, 28, 55]),
            (64, 6, "s", "", 0x9d5e537d5d6a328, &[40, 44, 1, 11, 47, 35]),
            (128, 6, "service-accounts", "system:serviceaccount:default:robot", 0xfcddf5baaa47a8fc, &[124, 15, 111, 102, 44, 59]),
            (128, 6, "global-default", "jane", 0x5eae0f0b2aa99b18, &[24, 0, 86, 104, 74, 31]),
            (128, 6, "s", "", 0x9d5e537d5d6a328, &[40, 98, 19, 93, 75, 70]),
            (16, 4, "service-accounts", "system:serviceaccount:default:robot", 0xfcddf5baaa47a8fc, &[12, 8, 5, 4]),
            (16, 4, "global-default", "jane", 0x5eae0f0b2aa99b18, &[8, 1, 0, 14]),
            (16, 4, "s", "", 0x9d5e537d5d6a328, &[8, 3, 4, 15]),
            (512, 6, "service-accounts", "system:serviceaccount:default:robot", 0xfcddf5baaa47a8fc, &[252, 508, 278, 208, 67, 333]),
            (512, 6, "global-default", "jane", 0x5eae0f0b2aa99b18, &[280, 185, 273, 265, 130, 10]),
            (512, 6, "s", "", 0x9d5e537d5d6a328, &[296, 235, 442, 502, 322, 262]),
            (6, 6, "service-accounts", "system:serviceaccount:default:robot", 0xfcddf5baaa47a8fc, &[2, 4, 0, 3, 1, 5]),
            (6, 6, "global-default", "jane", 0x5eae0f0b2aa99b18, &[0, 5, 1, 4, 2, 3]),
            (6, 6, "s", "", 0x9d5e537d5d6a328, &[2, 5, 1, 0, 3, 4]),
            (1, 1, "global-default", "jane", 0x5eae0f0b2aa99b18, &[0]),
            (1024, 6, "service-accounts", "system:serviceaccount:default:robot", 0xfcddf5baaa47a8fc, &[252, 182, 840, 170, 554, 38]),
            (1024, 6, "global-default", "jane", 0x5eae0f0b2aa99b18, &[792, 765, 349, 604, 68, 5]),
            (1024, 6, "s", "", 0x9d5e537d5d6a328, &[808, 64, 565, 494, 676, 638]),
        ];
        for (deck, hand, schema, distinguisher, hash, cards) in rows {
            assert_eq!(flow_hash(schema, distinguisher), *hash, "{schema} {distinguisher}");
            assert_eq!(Dealer::new(*deck, *hand).unwrap().deal(*hash), *cards, "{deck}/{hand} {schema} {distinguisher}");
        }
    }

    #[test]
    fn every_hand_is_dealt_as_often_as_another() {
        // 6 x 5 x 4 ways to draw three of six: each set of three comes of six of them.
        let dealer = Dealer::new(6, 3).unwrap();
        let mut seen = std::collections::BTreeMap::<Vec<usize>, u32>::new();
        for hash in 0..6 * 5 * 4 {
            let mut cards = dealer.deal(hash);
            cards.sort_unstable();
            *seen.entry(cards).or_default() += 1;
        }
        assert_eq!(seen.len(), 20);
        assert!(seen.values().all(|count| *count == 6), "{seen:?}");
    }

    #[test]
    fn what_cannot_be_dealt_is_refused() {
        for (deck, hand) in [(0, 1), (4, 0), (4, 5), ((1 << 26) + 1, 1), (64, 16)] {
            assert_eq!(Dealer::new(deck, hand), Err(DealerError::Size { deck, hand }));
        }
        assert_eq!(Dealer::new(1024, 7), Err(DealerError::Entropy { deck: 1024, hand: 7 }));
        assert!(Dealer::new(1024, 6).is_ok());
    }
}
