//! What a read may come to, before anything is read.
//!
//! In: a store, an interest, a page. Out: a [`Weight`]. Never: reads a body, or looks at more than a sample.

use forebay_apimachinery::Key;
use forebay_catalog::{Store, Target};
use forebay_object::Object;
use forebay_watchcache::{Estimate, Interest};

/// What a read may come to, from above. Nothing while the state is being read, or where none is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// What it looks at and shows: a page's part, where it is cut.
    pub of: Estimate,
    pub found: FoundBy,
    /// Of those that are shown as protobuf, the objects whose messages have yet to be made.
    pub unmade: usize,
}

/// How what is shown is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FoundBy {
    /// All in reach is shown at once: then blocks may go as they are.
    Whole,
    /// A part of it, from one key to another.
    #[default]
    Page,
    /// By an index: where it is, is known, and something else stands between.
    ByIndex,
    /// By looking at every object in reach.
    ByLooking,
}

impl Weight {
    /// - `after`, `limit`: the page.
    pub(crate) fn of(
        store: &Store,
        interest: &Interest,
        after: Option<&Key>,
        limit: Option<usize>,
    ) -> Weight {
        let Ok(state) = store.cacher.snapshot() else { return Weight::default() };
        let of = state.estimate(interest, after, limit);
        let is_cut = after.is_some() || limit.is_some_and(|limit| limit <= of.selected);
        let found = match (interest.is_unfiltered(), state.indexed_term(interest)) {
            (true, _) if is_cut => FoundBy::Page,
            (true, _) => FoundBy::Whole,
            (false, Some(_)) => FoundBy::ByIndex,
            (false, None) => FoundBy::ByLooking,
        };
        Weight { of, found, unmade: 0 }
    }
}

/// How many messages a read in protobuf has to make: all of them where nobody asked for any for a while.
pub(crate) fn unmade(
    target: &Target,
    store: &Store,
    interest: &Interest,
    Weight { of, .. }: Weight,
) -> usize {
    let cacher = &store.cacher;
    let Some(ty) = target.served.ty() else { return 0 };
    if cacher.message_bytes().get() == 0 {
        return of.selected;
    }
    let is_unmade = |object: &Object| object.message_made(ty.index()).is_none();
    cacher.snapshot().map_or(0, |state| state.part_of(interest, of.selected, is_unmade))
}
