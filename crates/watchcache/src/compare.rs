//! Compares a state with the store, a page at a time.
//!
//! In: a state, and a page of the store's keys. Out: the keys at which they differ, judged by the revisions
//! that put the objects. Never: looks at values.

use std::sync::Arc;

use forebay_apimachinery::Key;
use forebay_backend::{RangePage, Versioned};
use forebay_object::Object;

use crate::interest::Reach;
use crate::snapshot::Snapshot;

/// A key at which state and store differ.
pub(crate) enum Differs<'a> {
    /// The state alone has it.
    Gone(&'a Arc<Object>),
    /// The store has it, and the state none or another one.
    Found { held: Option<&'a Arc<Object>>, key: Key, found: Versioned },
}

/// Where `state` and the store differ from behind `after` up to the end of `page`, in key order.
pub(crate) fn differences<'a>(
    state: &'a Snapshot,
    reach: &Reach,
    after: Option<&Key>,
    page: RangePage,
) -> Vec<Differs<'a>> {
    let upto = page.items.last().filter(|_| page.more).map(|(key, _)| key.clone());
    let in_page = |object: &&Arc<Object>| upto.as_ref().is_none_or(|upto| object.key() <= upto);
    let mut held = state.range(reach, after).take_while(in_page).peekable();
    let mut differences = Vec::new();
    for (key, found) in page.items {
        while let Some(object) = held.next_if(|object| object.key() < &key) {
            differences.push(Differs::Gone(object));
        }
        let held = held.next_if(|object| *object.key() == key);
        if held.is_none_or(|object| object.revision() != found.revision) {
            differences.push(Differs::Found { held, key, found });
        }
    }
    differences.extend(held.map(Differs::Gone));
    differences
}
