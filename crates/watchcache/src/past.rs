//! Past states from before the window, read from the store. They are rare, and few may be read at once.
//!
//! In: a revision, an interest, a key to begin after, a limit. Out: the part of that state that a LIST shows.
//! Never: more readers at once than [`limits::PAST_READERS_MAX`]; some wait, the others are asked to come
//! again.
//!
//! Objects that have not changed since then are those of the current snapshot. Only the others are decoded,
//! and only those that match are kept. Where they may be more than a page they are put at rest, because their
//! reader may be slow.

use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{self as backend, Range, Versioned, why_undecrypted};
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
use crate::unreadable::Undecrypted;

/// Permits to read from the store, of all caches of this process.
static READERS: Semaphore = Semaphore::const_new(limits::PAST_READERS_MAX);
static PLACES: Semaphore = Semaphore::const_new(limits::PAST_READERS_MAX + limits::PAST_WAITING_MAX);

/// What a LIST of an exact revision shows.
#[derive(Clone, Debug)]
pub enum ExactPage {
    /// The whole state.
    Whole(Arc<Snapshot>),
    /// The objects that match after the key that was asked for, as many as the limit allows; whether there
    /// are keys in reach after them; and how many, which is known only without a filter.
    Part { snapshot: Arc<Snapshot>, more: bool, remaining: Option<u64> },
}

impl ExactPage {
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        let (ExactPage::Whole(snapshot) | ExactPage::Part { snapshot, .. }) = self;
        snapshot
    }
}

impl Cacher {
    /// The state exactly at `revision`, or the part of it that `interest`, `after` and `limit` ask for where
    /// only the store still has it.
    ///
    /// - `after`: only keys after this one are shown.
    /// - `limit`: the most objects; `None` is all.
    /// - `deadline`: for every wait, except for the store's answers.
    ///
    /// # Errors
    /// [`ReadError::Expired`] when the store has compacted it; [`ReadError::TooLarge`]; [`ReadError::Busy`]
    /// when too many read past states already.
    pub async fn exact_page(
        &self,
        revision: Revision,
        interest: &Interest,
        after: Option<&Key>,
        limit: Option<usize>,
        deadline: Instant,
    ) -> Result<ExactPage, ReadError> {
        // A state that the window could still show expires with the store's history as well. So a continue
        // token expires for everybody at the same time, also where nothing has changed since.
        let oldest = self.backend().oldest_known();
        if revision < oldest {
            return Err(ReadError::Expired { asked: revision, oldest });
        }
        match self.exact(revision, deadline).await {
            Ok(snapshot) => return Ok(ExactPage::Whole(snapshot)),
            // A revision above the current one was lost when the store went back: the store does not have it
            // either.
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

    /// Waits for the permits to read from the store.
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
    // Objects that are not in the current snapshot and were not put at rest yet, and their bytes.
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

    /// Whether the new objects are so many that they have to be put at rest.
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

    /// `None` for a value that cannot be read, which the cache does not show either. One that cannot be
    /// decrypted is noted.
    fn decode(&mut self, key: Key, found: &Versioned) -> Option<Arc<Object>> {
        if let Some(why) = why_undecrypted(&found.value) {
            self.snapshot.note_undecrypted(key, Undecrypted::new(found.revision, &why));
            return None;
        }
        let layout = &self.cacher.resource().layout;
        Object::decode(layout, key, found.revision, &found.value, &mut self.interner).ok().map(Arc::new)
    }
}

/// The prefix of all keys in `reach`, up to a slash.
fn prefix(reach: &Reach) -> Key {
    match reach {
        Reach::Below(prefix) => prefix.clone(),
        Reach::One(key) => Key::from(&key.as_str()[..key.as_str().rfind('/').map_or(0, |slash| slash + 1)]),
    }
}

/// The key after which to begin to read: just before the first one that is wanted.
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
