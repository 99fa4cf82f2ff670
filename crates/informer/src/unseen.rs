//! Writes that may not be in sight yet, and what has to be for each to be.
//!
//! In: answers to writes. Out: what is waited for. Never: waits.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay_apimachinery::{Key, Revision};

/// What is to be in sight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// This revision of the object, or a later one.
    At(Revision),
    /// That the object with this uid is gone, or is being deleted.
    Deleted { uid: String },
}

/// Writes that may not be in sight yet.
#[derive(Debug, Default)]
pub(crate) struct Writes(Mutex<HashMap<Key, Seen>>);

impl Writes {
    pub(crate) fn pending(&self) -> MutexGuard<'_, HashMap<Key, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
