//! A store elsewhere that tells one collection: its state and what changes afterwards on one way, and its
//! state anew whenever what came in between is not to be had.
//!
//! In: nothing. Out: [`Told`]s, in order. Owner: the cache that was promised them. Never: waits within a
//! call, tells a change between two states out of order.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use forebay_apimachinery::Revision;
use forebay_object::{Packed, Spill};

use crate::error::FeedError;
use crate::txn::Change;

/// Something that a store tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A whole state follows. Until [`Told::StateEnds`], changes are objects of it, in any order, or changes
    /// on top of it, those of a key in their order. A state that had begun and not ended is given up.
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

/// What is to become of all that is held, because it is too much.
#[derive(Clone, Debug)]
pub enum GiveWay {
    /// All of it goes, also a state that has begun and what was told already behind it: what there is is not
    /// known from now on, and a state follows some time.
    LetGo,
    /// Every value becomes what this makes of it. Nothing happened to it, and its revision stays.
    Rewrite(Rewrite),
    /// Blocks of what is at rest go there until no more than so many bytes are held, or there are none.
    Spill { to: Arc<dyn Spill>, goal_bytes: usize },
}

/// What makes another value of an object's bytes, which have their `resourceVersion` written into them.
#[derive(Clone)]
pub struct Rewrite(Arc<Make>);

type Make = dyn Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync;

impl Rewrite {
    /// - `make`: a value; none leaves the object as it is.
    pub fn new(make: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync + 'static) -> Rewrite {
        Rewrite(Arc::new(make))
    }

    pub fn apply(&self, body: &[u8]) -> Option<Vec<u8>> {
        (self.0)(body)
    }
}

impl fmt::Debug for Rewrite {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Rewrite")
    }
}

/// What tells. It is dropped to end it.
pub trait Tell: Send {
    /// Appends what there is now to `told`, about a quarter of a MiB of values, or is pending and wakes.
    /// None, where it is to be asked what becomes of what is held.
    ///
    /// # Errors
    /// [`FeedError`] when it cannot go on; the same again from then on.
    fn poll_told(&mut self, context: &mut Context<'_>, told: &mut Vec<Told>) -> Poll<Result<(), FeedError>>;

    /// So many bytes are held of what was told: at rest, with their keys, places and what the window has of
    /// them. What is to become of it at once, if it is too much; it is asked again afterwards.
    fn held(&mut self, _bytes: usize) -> Option<GiveWay> {
        None
    }
}
