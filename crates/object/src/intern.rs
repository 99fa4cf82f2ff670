//! One allocation for what many objects share: the labels of one workload's replicas are the same.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Knows the sets of labels that it has seen last. Owned by the one task that makes a resource's objects.
///
/// It holds a set by its hash, one at each place; what another set takes the place of is no longer shared with objects to
/// come, and that is all. So it needs no more than its places, and never has to look for what is not used any more.
#[derive(Debug, Default)]
pub struct Interner {
    // A power of two of them, at most SLOTS_MAX.
    slots: Vec<Option<Arc<[u8]>>>,
    // How many sets that others still use had to make way since there were so many slots.
    displaced: usize,
}

/// 16 B each: 1 MB for a resource with as many sets of labels as this.
const SLOTS_MAX: usize = 1 << 16;
const SLOTS_MIN: usize = 16;

impl Interner {
    /// The shared form of `set`, and whether it was made now.
    pub(crate) fn share(&mut self, set: &[u8]) -> (Arc<[u8]>, bool) {
        if self.slots.is_empty() {
            self.slots = vec![None; SLOTS_MIN];
        }
        let mask = self.slots.len() - 1;
        let slot = &mut self.slots[hash(set) & mask];
        match slot {
            Some(known) if **known == *set => return (known.clone(), false),
            Some(known) if Arc::strong_count(known) > 1 => self.displaced += 1,
            _ => {}
        }
        let shared: Arc<[u8]> = Arc::from(set);
        *slot = Some(shared.clone());
        if self.displaced > self.slots.len() / 8 && self.slots.len() < SLOTS_MAX {
            self.resize(self.slots.len() * 2);
        }
        (shared, true)
    }

    /// Lets go of what no object uses any more: a millisecond at most.
    pub fn sweep(&mut self) {
        let is_used = |set: &Arc<[u8]>| Arc::strong_count(set) > 1;
        self.slots.iter_mut().for_each(|slot| drop(slot.take_if(|set| !is_used(set))));
        let used = self.slots.iter().flatten().count();
        if used == 0 {
            *self = Interner::default();
        } else if used * 8 < self.slots.len() && self.slots.len() > SLOTS_MIN {
            self.resize(self.slots.len() / 2);
        }
    }

    fn resize(&mut self, slots: usize) {
        let old = std::mem::replace(&mut self.slots, vec![None; slots]);
        for set in old.into_iter().flatten() {
            let at = hash(&set) & (slots - 1);
            self.slots[at] = Some(set);
        }
        self.displaced = 0;
    }
}

fn hash(set: &[u8]) -> usize {
    let mut hasher = DefaultHasher::new();
    set.hash(&mut hasher);
    hasher.finish() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_shared_and_what_is_not_takes_no_room() {
        let mut interner = Interner::default();
        let set = |number: usize| format!("app=web-{number}").into_bytes();
        let (kept, made) = interner.share(&set(0));
        assert!(made);
        assert!(Arc::ptr_eq(&kept, &interner.share(&set(0)).0));
        for number in 1..10_000 {
            drop(interner.share(&set(number)));
        }
        assert_eq!(interner.slots.len(), SLOTS_MIN, "none of these is used");
        let used: Vec<_> = (0..10_000).map(|number| interner.share(&set(number)).0).collect();
        let shared =
            used.iter().enumerate().filter(|(at, one)| Arc::ptr_eq(one, &interner.share(&set(*at)).0));
        let shared = shared.count();
        assert!(shared > 5_000, "{shared} of 10,000, asked for in turn");
        assert!(interner.slots.len() < 1 << 17, "{}", interner.slots.len());
        drop(used);
        interner.sweep();
        assert!(interner.slots.iter().flatten().count() <= 1);
        drop(kept);
        interner.sweep();
        assert!(interner.slots.is_empty());
    }

    #[test]
    fn its_slots_are_bounded_and_given_back() {
        let mut interner = Interner::default();
        let sets = |count: usize| (0..count).map(|number| number.to_le_bytes());
        let mut used: Vec<_> = sets(4 * SLOTS_MAX).map(|set| interner.share(&set).0).collect();
        assert_eq!(interner.slots.len(), SLOTS_MAX);
        used.truncate(10);
        (0..20).for_each(|_| interner.sweep());
        assert!(interner.slots.len() <= 128, "{}", interner.slots.len());
    }
}
