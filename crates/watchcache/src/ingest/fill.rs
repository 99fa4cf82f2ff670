//! The first filling of a cache, from the store's state at one revision.
//!
//! In: pages of values, in key order, each of which room was taken for before it is read. Out: a state at
//! rest. Never: holds more in plain form than there is room for; what a store reads ahead is the store's.

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{FeedError, Pages, Range, RangePage, Versioned};

use super::{Ingest, Made, State};
use crate::limits;
use crate::room::Share;
use crate::seal::Resting;
use crate::unreadable::Undecrypted;

impl Ingest {
    /// Reads the state at `start`, page by page, and puts it at rest as it comes.
    pub(super) async fn fill(&self, state: &mut State, start: Revision) -> Result<(), FeedError> {
        let (prefix, limit) = (self.resource.prefix.clone(), limits::FILL_FIRST);
        let mut pages = self.backend.pages(Range { prefix, start_after: None, limit, at: Some(start) });
        let mut resting = Resting::new(self.inflated.clone());
        let (mut page, mut share) = self.next_page(&mut *pages, limit).await?;
        loop {
            let (more, limit) = (page.more, page_limit(&page));
            let decode = async {
                let mut decoded = Vec::with_capacity(page.items.len());
                for (key, Versioned { revision, value }) in page.items {
                    match self.read(state, &key, revision, &value) {
                        Made::Object(object) => decoded.push(object),
                        Made::Malformed => {}
                        Made::Undecrypted(what) => state.keep_undecrypted(key, what),
                    }
                }
                let (known, new) = decoded.into_iter().partition(|object| state.is_known(object));
                let rested = resting.put(new, share).await;
                for object in Vec::into_iter(known).chain(rested) {
                    state.snapshot.place(object);
                }
            };
            if !more {
                decode.await;
                break;
            }
            // The next page is asked for first, so that it is read while this one is decoded. Waiting for
            // room does not hold up this one, which gives its own back once it is sealed.
            let (next, ()) = tokio::join!(self.next_page(&mut *pages, limit), decode);
            (page, share) = next?;
        }
        while let Some(page) = resting.next().await {
            for object in page {
                state.snapshot.place(object);
            }
        }
        if !self.resource.indexed.is_empty() {
            let placed = state.snapshot.clone();
            let indexed = forebay_rt::blocking(move || placed.with_indexes()).await;
            state.snapshot = indexed.map_err(|error| FeedError::Failed { cause: error.to_string() })?;
        }
        Ok(())
    }

    /// A page, and the room that it takes.
    async fn next_page(
        &self,
        pages: &mut dyn Pages,
        limit: usize,
    ) -> Result<(RangePage, Option<Share>), FeedError> {
        let mut share = self.room_for(limits::FILL_BYTES).await;
        let page = pages.next(limit).await?;
        share.iter_mut().for_each(|share| share.shrink_to(page_bytes(&page)));
        Ok((page, share))
    }
}

impl State {
    /// Shows in the place of what cannot be decrypted what was there before, where that is known.
    fn keep_undecrypted(&mut self, key: Key, what: Undecrypted) {
        let earlier = self.known.as_ref().and_then(|known| known.get(&key));
        if let Some(earlier) = earlier.filter(|earlier| earlier.revision() < what.revision).cloned() {
            self.snapshot.place(earlier);
        }
        self.snapshot.note_undecrypted(key, what);
    }
}

/// How many objects make the next page, by the size of those in this one.
pub(super) fn page_limit(page: &RangePage) -> usize {
    let each = page_bytes(page) / page.items.len().max(1);
    (limits::FILL_BYTES / each.max(1)).clamp(limits::FILL_FIRST, limits::FILL_PAGE)
}

fn page_bytes(page: &RangePage) -> usize {
    page.items.iter().map(|(_, versioned)| versioned.value.len()).sum()
}
