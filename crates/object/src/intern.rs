//! One allocation for labels that many objects share: the replicas of one workload have the same.
//!
//! In: a set of labels. Out: the same set, shared with earlier objects where it is remembered. Never:
//! searches for sets that are out of use.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A table of the sets of labels that were seen last. Owned by the one task that makes a resource's objects.
///
/// A set's hash says in which slot it is. A new set takes the slot of an older one, which objects to come no
/// longer share then. So the table does not grow beyond its slots.
#[derive(Debug, Default)]
pub struct Interner {
    // A power of two of them, at most SLOTS_MAX.
    slots: Vec<Option<Arc<[u8]>>>,
    // How many sets that are still in use lost their slot since the table has this size.
    displaced: usize,
}

/// 16 B each: 1 MB for a resource with as many sets of labels as this.
const SLOTS_MAX: usize = 1 << 16;
const SLOTS_MIN: usize = 16;

impl Interner {
    /// The shared form of `set`, and whether it was allocated now.
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

    /// Drops the sets that no object uses any more. Takes a millisecond at most.
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
