//! What LISTs of a resource cost: how many there were, what they looked at and what they returned, by the index that they
//! went by.
//!
//! In: lists, as they end. Out: sums. Never: more rows than a resource has fields to select by.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

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

/// One list that is being read; it counts when it is dropped, as far as it came.
#[derive(Debug)]
pub struct Counting {
    counts: Arc<ListCounts>,
    index: String,
    pub fetched: u64,
    pub returned: u64,
}

impl ListCounts {
    /// What was counted up to now, by index.
    pub fn read(&self) -> BTreeMap<String, ListCount> {
        self.by_index.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Counting {
    pub fn new(counts: Arc<ListCounts>, index: String) -> Counting {
        Counting { counts, index, fetched: 0, returned: 0 }
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let mut by_index = self.counts.by_index.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_index.entry(std::mem::take(&mut self.index)).or_default();
        count.lists += 1;
        count.fetched += self.fetched;
        count.returned += self.returned;
    }
}
