//! A tree that whoever uses it consumes, and that is read again from its text if it is needed once more.
//!
//! In: a tree and its text. Out: the tree, each time it is asked for. Most are needed once, and then there is
//! no second one beside it. Never: holds a copy.

use std::sync::{Mutex, PoisonError};

use forebay_apimachinery::{Lease, Status, json};
use serde_json::Value;

/// See the module's doc.
pub(crate) struct Consumed<'t> {
    tree: Mutex<Option<Value>>,
    text: &'t [u8],
}

impl<'t> Consumed<'t> {
    /// - `text`: says what `tree` is.
    pub(crate) fn new(tree: Value, text: &'t [u8]) -> Consumed<'t> {
        Consumed { tree: Mutex::new(Some(tree)), text }
    }

    /// The tree, read again after the first time.
    ///
    /// - `lease`: what is read again is charged to it.
    ///
    /// # Errors
    /// It takes more than the lease has.
    pub(crate) fn take(&self, lease: &Lease) -> Result<Value, Status> {
        let tree = self.tree.lock().unwrap_or_else(PoisonError::into_inner).take();
        let again = || json::parse(self.text, lease).map(|parsed| parsed.value);
        tree.map_or_else(again, Ok).map_err(|error| Status::bad_request(error.to_string()))
    }
}
