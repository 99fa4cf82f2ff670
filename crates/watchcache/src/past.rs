//! Past states that the window no longer reaches back to, read from the store: the exception, and bounded as one.
//!
//! In: a revision, an interest, a place, a limit. Out: the part of that state that a LIST shows. What has not changed
//! since then is the current snapshot's own object; only the rest is decoded, and only what matches is kept: at rest, where it may be
//! more than a page, as its reader may be slow. So many read at once in this process, so many wait, the others are asked to come
//! again.

use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{self as backend, Range, Versioned};
use forebay_object::{Interner, Object};
use forebay_rt::Instant;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::cacher::Cacher;
use crate::counters::Counters;
use crate::error::ReadError;
use crate::interest::{Interest, Reach};
use crate::limits;
use crate::seal::Resting;
use crate::snapshot::Snapshot;

/// Who may read from the store now, and who may wait for that, of all caches of this process.
static READERS: Semaphore = Semaphore::const_new(limits::PAST_READERS_MAX);
static PLACES: Semaphore = Semaphore::const_new(limits::PAST_READERS_MAX + limits::PAST_WAITING_MAX);

/// What a LIST of an exact revision shows.
#[derive(Clone, Debug)]
pub enum ExactPage {
    /// The whole state.
    Whole(Arc<Snapshot>),
    /// What matches after the place that was asked for, as much as the limit allows, whether there are keys in reach
    /// after that, and how many, which is known unless something is filtered.
    Part { snapshot: Arc<Snapshot>, more: bool, remaining: Option<u64> },
}

impl ExactPage {
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        let (ExactPage::Whole(snapshot) | ExactPage::Part { snapshot, .. }) = self;
        snapshot
    }
}

impl Cacher {
    /// The state exactly at `revision`, or the part of it that `interest`, `after` and `limit` ask for where only the store
    /// still has it.
    ///
    /// - `after`: only keys after this one are shown.
    /// - `limit`: so many objects; `None` is all.
    /// - `deadline`: of every wait but the store's own.
    ///
    /// # Errors
    /// [`ReadError::Expired`] when the store has compacted it; [`ReadError::TooLarge`]; [`ReadError::Busy`] when too many
    /// read past states already.
    pub async fn exact_page(
        &self,
        revision: Revision,
        interest: &Interest,
        after: Option<&Key>,
        limit: Option<usize>,
        deadline: Instant,
    ) -> Result<ExactPage, ReadError> {
        // What the window could still show has no more time than what is in the store: a token is over for everybody at once, also where
        // nothing has changed since.
        let oldest = self.backend().oldest_known();
        if revision < oldest {
            return Err(ReadError::Expired { asked: revision, oldest });
        }
        match self.exact(revision, deadline).await {
            Ok(snapshot) => return Ok(ExactPage::Whole(snapshot)),
            // One of a future that never was is not to be had from the store either.
            Err(ReadError::Expired { .. }) if self.snapshot()?.revision() >= revision => {}
            Err(error) => return Err(error),
        }
        let _reading = self.place_to_read(deadline).await?;
        Counters::add(&self.counters().store_reads, 1);
        let mut page = Page::new(self, revision, interest, limit)?;
        let mut resting = Resting::new(Arc::default());
        let mut start_after = begin(&interest.reach, after);
        // A filtered list goes on until it has enough.
        let wanted =
            limit.filter(|_| interest.is_unfiltered()).map_or(usize::MAX, |limit| limit.saturating_add(1));
        loop {
            let range = Range {
                prefix: prefix(&interest.reach),
                start_after: start_after.take(),
                limit: limits::PAST_PAGE.min(wanted),
                at: Some(revision),
            };
            let found = self.backend().range(range).await.map_err(from_store)?;
            start_after = found.items.last().map(|(key, _)| key.clone());
            for (key, versioned) in found.items {
                page.take(key, &versioned);
            }
            let is_last = page.more || !found.more || !may_follow(&interest.reach, start_after.as_ref());
            if page.is_much() || is_last && limit.is_none() {
                let kept = resting.put(page.take_new(), None).await;
                page.keep(kept);
            }
            if is_last {
                // A page that somebody has limited to a few is not worth it.
                let few = page.take_new();
                page.keep(few);
                while let Some(kept) = resting.next().await {
                    page.keep(kept);
                }
                let remaining = self.remaining(&page, revision).await?;
                let Page { snapshot, more, .. } = page;
                return Ok(ExactPage::Part { snapshot: Arc::new(snapshot), more, remaining });
            }
        }
    }

    /// How many keys come after the page, where nothing is filtered.
    async fn remaining(&self, page: &Page<'_>, revision: Revision) -> Result<Option<u64>, ReadError> {
        if !page.more || !page.interest.is_unfiltered() {
            return Ok(None);
        }
        let rest = Range {
            prefix: prefix(&page.interest.reach),
            start_after: page.last.clone(),
            limit: 1,
            at: Some(revision),
        };
        self.backend().count(rest).await.map(Some).map_err(from_store)
    }

    /// A place among those that read from the store.
    async fn place_to_read(&self, deadline: Instant) -> Result<[SemaphorePermit<'static>; 2], ReadError> {
        let busy = || ReadError::Busy { retry_after_seconds: 1 };
        let place = PLACES.try_acquire().map_err(|_| busy())?;
        tokio::select! {
            biased;
            reader = READERS.acquire() => Ok([place, reader.map_err(|_| busy())?]),
            () = self.clock().sleep_until(deadline) => Err(busy()),
        }
    }
}

/// The matching objects of a page, as they are found.
struct Page<'a> {
    cacher: &'a Cacher,
    interest: &'a Interest,
    limit: usize,
    // Whether a key in reach came after the limit was reached.
    more: bool,
    // The last key in reach before that.
    last: Option<Key>,
    current: Arc<Snapshot>,
    interner: Interner,
    // What is not in the current snapshot, of the pages that were read since it was kept, and its bytes.
    new: Vec<Arc<Object>>,
    new_bytes: usize,
    // How many objects the state has so far, from the current snapshot and from pages.
    shown: usize,
    snapshot: Snapshot,
}

impl<'a> Page<'a> {
    fn new(
        cacher: &'a Cacher,
        revision: Revision,
        interest: &'a Interest,
        limit: Option<usize>,
    ) -> Result<Page<'a>, ReadError> {
        let current = cacher.snapshot()?;
        Ok(Page {
            cacher,
            interest,
            limit: limit.unwrap_or(usize::MAX),
            more: false,
            last: None,
            interner: Interner::default(),
            new: Vec::new(),
            new_bytes: 0,
            shown: 0,
            snapshot: Snapshot::new(revision, u64::MAX, Arc::from([])),
            current,
        })
    }

    fn take(&mut self, key: Key, found: &Versioned) {
        if self.more || !self.interest.reach.contains(&key) {
            return;
        }
        if self.shown >= self.limit {
            self.more = true;
            return;
        }
        self.last = Some(key.clone());
        let same = self.current.get(&key).filter(|object| object.revision() == found.revision).cloned();
        let is_new = same.is_none();
        let object = same.or_else(|| self.decode(key, found));
        let Some(object) = object.filter(|object| self.interest.selects(object)) else { return };
        self.shown += 1;
        if is_new {
            self.new_bytes += object.cost_bytes();
            self.new.push(object);
        } else {
            self.snapshot.put(object);
        }
    }

    /// Whether what is new is too much to be left as it is.
    fn is_much(&self) -> bool {
        self.new.len() > limits::PAST_PAGE || self.new_bytes > limits::PAST_BYTES
    }

    fn take_new(&mut self) -> Vec<Arc<Object>> {
        self.new_bytes = 0;
        std::mem::take(&mut self.new)
    }

    fn keep(&mut self, objects: Vec<Arc<Object>>) {
        for object in objects {
            self.snapshot.put(object);
        }
    }

    /// `None` for what cannot be read, which the cache does not show either.
    fn decode(&mut self, key: Key, found: &Versioned) -> Option<Arc<Object>> {
        let layout = &self.cacher.resource().layout;
        Object::decode(layout, key, found.revision, &found.value, &mut self.interner).ok().map(Arc::new)
    }
}

/// What the keys in `reach` begin with, up to a slash.
fn prefix(reach: &Reach) -> Key {
    match reach {
        Reach::Below(prefix) => prefix.clone(),
        Reach::One(key) => Key::from(&key.as_str()[..key.as_str().rfind('/').map_or(0, |slash| slash + 1)]),
    }
}

/// The key after which to begin: shortly before the one that is wanted.
fn begin(reach: &Reach, after: Option<&Key>) -> Option<Key> {
    let before = match reach {
        Reach::Below(_) => None,
        Reach::One(key) => {
            let mut text = key.as_str().to_string();
            text.pop();
            Some(Key::from(text)).filter(|before| !before.as_str().ends_with('/'))
        }
    };
    before.max(after.cloned())
}

/// Whether a key in `reach` may come after `last`.
fn may_follow(reach: &Reach, last: Option<&Key>) -> bool {
    match (reach, last) {
        (_, None) => false,
        (Reach::Below(_), Some(_)) => true,
        (Reach::One(key), Some(last)) => last < key,
    }
}

fn from_store(error: backend::ReadError) -> ReadError {
    match error {
        backend::ReadError::Compacted { asked, oldest } => ReadError::Expired { asked, oldest },
        other => ReadError::Store(other),
    }
}
