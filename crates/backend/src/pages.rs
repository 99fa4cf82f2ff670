//! A state that is read from its first key to its last, page by page.

use forebay_apimachinery::{Key, Revision};

use crate::{Backend, BoxFuture, Range, RangePage, ReadError};

/// Pages of one state, in key order. Dropped, it asks for no more.
pub trait Pages: Send {
    /// The next page: about `limit` keys, or as many as the store finds right. The first one whose `more` is false is the last.
    ///
    /// # Errors
    /// [`ReadError`]; the same page may be asked for again.
    fn next(&mut self, limit: usize) -> BoxFuture<'_, Result<RangePage, ReadError>>;
}

/// One [`Backend::range`] a page.
pub(crate) struct Ranges<'a, B: ?Sized> {
    backend: &'a B,
    rest: Range,
}

impl<'a, B: ?Sized> Ranges<'a, B> {
    pub(crate) fn new(backend: &'a B, range: Range) -> Ranges<'a, B> {
        Ranges { backend, rest: range }
    }
}

impl<B: Backend + ?Sized> Pages for Ranges<'_, B> {
    fn next(&mut self, limit: usize) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        Box::pin(async move {
            self.rest.limit = limit;
            let page = self.backend.range(self.rest.clone()).await?;
            self.rest.pass(&page);
            Ok(page)
        })
    }
}

impl Range {
    /// Leaves what comes after `page`, of the same state.
    pub fn pass(&mut self, page: &RangePage) {
        self.pass_to(page.revision, page.items.last().map(|(last, _)| last.clone()));
    }

    /// Leaves what comes after `last` in the state at `revision`; all of what it had, when nothing was found. A page that has more has
    /// a key, though the store may have others that are none of ours.
    pub fn pass_to(&mut self, revision: Revision, last: Option<Key>) {
        self.at = Some(revision);
        if last.is_some() {
            self.start_after = last;
        }
    }
}
