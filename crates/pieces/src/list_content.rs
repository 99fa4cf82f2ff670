//! What a list's answer is made up of, whoever makes it, and for whomever.
//!
//! In: nothing. Out: the types between who begins an answer, who shares it and who sends it. Never: makes
//! anything.

use bytes::Bytes;
use forebay_reads::SeenObjects;
use forebay_transport::{RunOn, SentBy};

use crate::source::ListSource;

/// An answer with a list in it, whose pieces come from an `S`.
#[derive(Clone)]
pub struct ListAnswer<S> {
    pub content_type: &'static str,
    pub is_zipped: bool,
    pub content: ListContent<S>,
}

#[derive(Clone)]
pub enum ListContent<S> {
    /// All of it, and how many objects that are.
    Whole(Bytes, SeenObjects),
    Pieces {
        source: S,
        run_on: RunOn,
        sent_by: SentBy,
    },
}

/// For whom an answer was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeFor {
    /// For this one, who may be alone.
    This,
    /// For this one and those who come after it: all of it is kept for a while.
    Several,
    /// Whose pieces it is sent, too, if it keeps up.
    Another,
}

/// One that was begun by itself.
pub type SourceAnswer = ListAnswer<Box<dyn ListSource>>;

impl<S> ListAnswer<S> {
    /// The same from another source.
    pub fn map<T>(self, to: impl FnOnce(S) -> T) -> ListAnswer<T> {
        let content = match self.content {
            ListContent::Whole(bytes, seen) => ListContent::Whole(bytes, seen),
            ListContent::Pieces { source, run_on, sent_by } => {
                ListContent::Pieces { source: to(source), run_on, sent_by }
            }
        };
        ListAnswer { content_type: self.content_type, is_zipped: self.is_zipped, content }
    }
}
