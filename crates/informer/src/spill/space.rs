//! Which stretches of a file are free.
//!
//! In: lengths, and stretches that are given back. Out: where there is room. Never: reads or writes.

use std::collections::BTreeMap;

/// Stretches begin and end at multiples of this, so that one that is given back is of use for a text that is
/// nearly as long.
const GRAIN_BYTES: u64 = 512;

/// The stretches of one file: at most one free one more than there are taken ones.
#[derive(Debug, Default)]
pub(super) struct Space {
    end: u64,
    // Where it begins -> how long it is. No two touch.
    free: BTreeMap<u64, u64>,
}

/// What a text takes.
pub(super) fn taken(len: usize) -> u64 {
    (len as u64).next_multiple_of(GRAIN_BYTES)
}

impl Space {
    /// The first free stretch for a text of so many bytes, or one at the file's end. O(free stretches).
    ///
    /// - `may_grow`: whether the file may be longer by so much.
    pub(super) fn take(&mut self, len: usize, may_grow: impl FnOnce(u64) -> bool) -> Option<u64> {
        let taken = taken(len);
        // Few: at most one more than there are blocks in the file.
        let found = self.free.iter().find(|(_, free)| **free >= taken).map(|(at, free)| (*at, *free));
        if let Some((at, free)) = found {
            self.free.remove(&at);
            if free > taken {
                self.free.insert(at + taken, free - taken);
            }
            return Some(at);
        }
        let at = self.end;
        may_grow(taken).then(|| {
            self.end += taken;
            at
        })
    }

    /// Gives back what a text of so many bytes took.
    pub(super) fn give_back(&mut self, at: u64, len: usize) {
        let (mut at, mut free) = (at, taken(len));
        if let Some(next) = self.free.remove(&(at + free)) {
            free += next;
        }
        if let Some((before, its)) = self.free.range(..at).next_back().map(|(before, its)| (*before, *its))
            && before + its == at
        {
            (at, free) = (before, its + free);
        }
        self.free.insert(at, free);
    }

    /// How long the file is.
    pub(super) fn end(&self) -> u64 {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use forebay_rt::Random;

    use super::*;

    #[test]
    fn what_is_given_back_is_taken_again_before_the_file_grows() {
        let mut space = Space::default();
        let places: Vec<_> = [100, 600, 512, 1].map(|len| space.take(len, |_| true)).into();
        assert_eq!(places, [Some(0), Some(512), Some(1_536), Some(2_048)]);
        assert_eq!(space.end(), 2_560);
        space.give_back(512, 600);
        assert_eq!(space.take(500, |_| false), Some(512));
        assert_eq!(space.take(500, |_| false), Some(1_024));
        assert_eq!(space.take(500, |_| false), None);
        // Both sides of it are free: they are one.
        for (at, len) in [(512, 500), (1_536, 512), (1_024, 500)] {
            space.give_back(at, len);
        }
        assert_eq!((space.take(1_536, |_| false), space.end()), (Some(512), 2_560));
    }

    #[test]
    fn stretches_never_overlap_and_all_of_it_is_one_in_the_end() {
        for seed in 0..50 {
            let (random, mut space) = (Random::seeded(seed), Space::default());
            let mut taken_ones: BTreeMap<u64, usize> = BTreeMap::new();
            for _ in 0..500 {
                let is_full = taken_ones.len() > 20;
                if is_full || (random.below(3) == 0 && !taken_ones.is_empty()) {
                    let nth = random.below(taken_ones.len() as u64) as usize;
                    let at = *taken_ones.keys().nth(nth).expect("one of them");
                    let len = taken_ones.remove(&at).expect("it is there");
                    space.give_back(at, len);
                    continue;
                }
                let len = random.below(5_000) as usize + 1;
                let at = space.take(len, |_| true).expect("it may grow");
                let before = taken_ones.range(..at).next_back().map_or(0, |(at, len)| at + taken(*len));
                let after = taken_ones.range(at..).next().map_or(space.end(), |(at, _)| *at);
                assert!(before <= at && at + taken(len) <= after, "{seed}: {at} {len} in {taken_ones:?}");
                taken_ones.insert(at, len);
            }
            assert!(space.end() < 21 * 2 * 5_632, "{seed}: {}", space.end());
            taken_ones.iter().for_each(|(at, len)| space.give_back(*at, *len));
            assert_eq!(space.free, BTreeMap::from([(0, space.end())]));
        }
    }
}
