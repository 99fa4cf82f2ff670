//! A state that is read from its first key to its last, page by page.

use crate::contract::Backend;
use crate::error::ReadError;
use crate::txn::{BoxFuture, Range, RangePage};

/// Pages of one state, in key order. Dropped, it asks for no more.
pub trait Pages: Send {
    /// The next page: about `limit` keys, or as many as the store finds right. The first one whose `more` is
    /// false is the last.
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
