//! Another API server's collection as a store of this house: what a watch cache is a cache of.
//!
//! In: a collection. Out: a [`Driver`], which tells it. Never: writes, reads but by telling.

use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{
    Backend, BoxFuture, Feed, FeedError, Range, RangePage, ReadError, Size, Tell, Txn, TxnError, TxnResponse,
    Versioned,
};
use forebay_client::Collection;
use forebay_rt::Random;

use crate::ceiling::Ceiling;
use crate::change::Stored;
use crate::driver::Driver;
use crate::progress::Progress;
use crate::saved::Place;
use crate::way::Way;

pub(crate) struct Upstream {
    pub(crate) way: Way,
    pub(crate) collection: Collection,
    pub(crate) progress: Arc<Progress>,
    pub(crate) random: Random,
    pub(crate) saved: Option<Arc<Place>>,
    pub(crate) stored: Stored,
    pub(crate) ceiling: Option<Arc<Ceiling>>,
}

const TOLD_ONLY: &str = "a collection of another server is told, and neither read nor written here";

fn refused<T>() -> Result<T, ReadError> {
    Err(ReadError::Failed { cause: TOLD_ONLY.into() })
}

impl Backend for Upstream {
    fn commit(&self, _txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>> {
        Box::pin(std::future::ready(Err(TxnError::Failed { cause: TOLD_ONLY.into() })))
    }

    fn get<'a>(&'a self, _key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>> {
        Box::pin(std::future::ready(refused()))
    }

    fn range(&self, _range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        Box::pin(std::future::ready(refused()))
    }

    fn barrier(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        Box::pin(std::future::ready(refused()))
    }

    fn oldest(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        Box::pin(std::future::ready(refused()))
    }

    fn oldest_known(&self) -> Revision {
        Revision::FIRST
    }

    fn feed<'a>(&'a self, _prefix: &'a str, _after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>> {
        Box::pin(std::future::ready(Err(FeedError::Failed { cause: TOLD_ONLY.into() })))
    }

    fn tell(&self, _prefix: &str) -> Option<Box<dyn Tell>> {
        let random = Random::seeded(self.random.next_u64());
        let (way, collection, saved) = (self.way.clone(), self.collection.clone(), self.saved.clone());
        let (progress, stored) = (self.progress.clone(), self.stored.clone());
        let share = self.ceiling.as_ref().map(Ceiling::share);
        Some(Box::new(Driver::new(way, collection, progress, random, saved, stored, share)))
    }

    fn size(&self) -> Size {
        Size::default()
    }
}
