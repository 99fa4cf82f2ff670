//! A store elsewhere that tells one collection: its state and what changes afterwards on one way, and its state anew whenever what
//! came in between is not to be had.
//!
//! In: nothing. Out: [`Told`]s, in order. Owner: the cache that was promised them. Never: waits within a call, tells a change
//! between two states out of order.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use forebay_apimachinery::Revision;

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
    /// The state is whole, of this revision: what was there before and was not told of is gone.
    StateEnds(Revision),
    /// Nothing up to here was missed.
    Progress(Revision),
    /// All that is held goes, also a state that has begun: what there is is not known from now on, and a state follows some time.
    LetGo,
    /// Every value that is held becomes what this makes of it. Nothing happened to it, and its revision stays.
    Rewrite(Rewrite),
}

/// What makes another value of an object's bytes, which have their `resourceVersion` written into them.
#[derive(Clone)]
pub struct Rewrite(Arc<dyn Fn(&[u8]) -> Option<Bytes> + Send + Sync>);

impl Rewrite {
    /// - `make`: a value; none leaves the object as it is.
    pub fn new(make: impl Fn(&[u8]) -> Option<Bytes> + Send + Sync + 'static) -> Rewrite {
        Rewrite(Arc::new(make))
    }

    pub fn apply(&self, body: &[u8]) -> Option<Bytes> {
        (self.0)(body)
    }
}

impl fmt::Debug for Rewrite {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Rewrite")
    }
}

/// The very same.
impl PartialEq for Rewrite {
    fn eq(&self, other: &Rewrite) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Rewrite {}

/// What tells. It is dropped to end it.
pub trait Tell: Send {
    /// Appends what there is now to `told`, about a quarter of a MiB of values and at least one, or is pending and wakes.
    ///
    /// # Errors
    /// [`FeedError`] when it cannot go on; the same again from then on.
    fn poll_told(&mut self, context: &mut Context<'_>, told: &mut Vec<Told>) -> Poll<Result<(), FeedError>>;

    /// So many bytes are held of what was told: at rest, with their keys, places and what the window has of them.
    fn held(&mut self, _bytes: usize) {}
}
