//! What LISTs of a resource cost: how many there were, what they looked at and what they returned, by the
//! index that they went by.
//!
//! In: lists, as they end. Out: sums. Never: more rows than a resource has fields to select by.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Of one resource; its versions share it.
#[derive(Debug, Default)]
pub struct ListCounts {
    // index -> what was counted; "" is none
    by_index: Mutex<BTreeMap<String, ListCount>>,
}

/// What was counted of lists that went by one index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListCount {
    pub lists: u64,
    /// Objects that were looked at.
    pub fetched: u64,
    pub returned: u64,
}

impl ListCounts {
    /// What was counted up to now, by index.
    pub fn read(&self) -> BTreeMap<String, ListCount> {
        self.by_index.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds what went by `index`; nothing for none.
    pub fn add(&self, index: String, count: ListCount) {
        let mut by_index = self.by_index.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = by_index.entry(index).or_default();
        sum.lists += count.lists;
        sum.fetched += count.fetched;
        sum.returned += count.returned;
    }
}
