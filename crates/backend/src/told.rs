//! A store elsewhere that tells one collection: its state and what changes afterwards on one way, and its state anew whenever what
//! came in between is not to be had.
//!
//! In: nothing. Out: [`Told`]s, in order. Owner: the cache that was promised them. Never: waits within a call, tells a change
//! between two states out of order.

use std::task::{Context, Poll};

use forebay_apimachinery::Revision;
use forebay_apimachinery::object::Packed;

use crate::{Change, FeedError};

/// Something that a store tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A whole state follows. Until [`Told::StateEnds`], changes are objects of it, in any order, or changes on top of it, those of a
    /// key in their order. A state that had begun and not ended is given up.
    StateBegins {
        /// The store was put back: an object may take the place of one with a higher revision.
        may_go_back: bool,
    },
    /// A key has this value now, or none. Outside a state its revision is above all before it.
    Change(Change),
    /// Within a state: neighbours of it, put, with the deflated text that they came in.
    Packed(Packed),
    /// The state is whole, of this revision: what was there before and was not told of is gone.
    StateEnds(Revision),
    /// Nothing up to here was missed.
    Progress(Revision),
}

/// What tells. It is dropped to end it.
pub trait Tell: Send {
    /// Appends what there is now to `told`, about a quarter of a MiB of values and at least one, or is pending and wakes.
    ///
    /// # Errors
    /// [`FeedError`] when it cannot go on; the same again from then on.
    fn poll_told(&mut self, context: &mut Context<'_>, told: &mut Vec<Told>) -> Poll<Result<(), FeedError>>;

    /// Somebody waits for `upto`.
    fn hasten(&mut self, upto: Revision);
}
