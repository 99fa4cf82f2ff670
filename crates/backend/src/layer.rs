//! A store in front of another one, which does what the one in front does not do itself.
//!
//! In and out: [`Backend`]'s. Never: an answer of its own, by default.

use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};

use crate::{
    Backend, BoxFuture, Feed, FeedError, Range, RangePage, ReadError, Sent, Size, Tell, Txn, TxnError,
    TxnResponse, Versioned,
};

/// A method that is not given goes to the store below. `keys`, and what is not here of [`Backend`], is made
/// of the others, as it is there.
pub trait Layer: Send + Sync + 'static {
    /// The store below, as of now.
    fn below(&self) -> Arc<dyn Backend>;

    /// See [`Backend::commit`].
    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>> {
        let below = self.below();
        Box::pin(async move { below.commit(txn).await })
    }

    /// See [`Backend::get`].
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>> {
        let below = self.below();
        Box::pin(async move { below.get(key).await })
    }

    /// See [`Backend::range`].
    fn range(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        let below = self.below();
        Box::pin(async move { below.range(range).await })
    }

    /// See [`Backend::keys`]; made of [`Layer::range`], so that who changes that has changed this.
    fn keys(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        Layer::range(self, range)
    }

    /// See [`Backend::barrier`].
    fn barrier(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        let below = self.below();
        Box::pin(async move { below.barrier().await })
    }

    /// See [`Backend::oldest`].
    fn oldest(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        let below = self.below();
        Box::pin(async move { below.oldest().await })
    }

    /// See [`Backend::oldest_known`].
    fn oldest_known(&self) -> Revision {
        self.below().oldest_known()
    }

    /// See [`Backend::feed`].
    fn feed<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>> {
        let below = self.below();
        Box::pin(async move { below.feed(prefix, after).await })
    }

    /// See [`Backend::tell`]: no store in front of another tells, unless it says so.
    fn tell(&self, prefix: &str) -> Option<Box<dyn Tell>> {
        let _ = prefix;
        None
    }
}

impl<T: Layer> Backend for T {
    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>> {
        Layer::commit(self, txn)
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>> {
        Layer::get(self, key)
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        Layer::range(self, range)
    }

    fn keys(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        Layer::keys(self, range)
    }

    fn barrier(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        Layer::barrier(self)
    }

    fn oldest(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        Layer::oldest(self)
    }

    fn oldest_known(&self) -> Revision {
        Layer::oldest_known(self)
    }

    fn feed<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>> {
        Layer::feed(self, prefix, after)
    }

    fn tell(&self, prefix: &str) -> Option<Box<dyn Tell>> {
        Layer::tell(self, prefix)
    }

    fn value_bytes_max(&self) -> usize {
        self.below().value_bytes_max()
    }

    fn may_be_stale(&self) -> bool {
        self.below().may_be_stale()
    }

    fn is_stale<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<bool, ReadError>> {
        let below = self.below();
        Box::pin(async move { below.is_stale(key).await })
    }

    fn hindered(&self) -> Option<String> {
        self.below().hindered()
    }

    fn rekeyed(&self, seen: u64) -> BoxFuture<'_, u64> {
        let below = self.below();
        Box::pin(async move { below.rekeyed(seen).await })
    }

    fn size(&self) -> Size {
        self.below().size()
    }

    fn sent(&self) -> Option<Sent> {
        self.below().sent()
    }
}
