//! The feed of one cache: it is opened after a revision, opened again when it is lost, and read on a thread
//! where reading may block.
//!
//! A feed begins with history, which the store reads from disk; then it goes on from memory. Until it has
//! reached the revision that was current when it was opened, it is read on a thread that may block, and one
//! page ahead: while the caller decodes one page, the next is being read.
//!
//! In: a backend, a prefix, a revision. Out: changes, in order. Never: decodes a value. Owner: the ingest
//! task.

use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{Backend, Change, Feed, FeedError, FeedStep};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;

use crate::limits;

/// Permits to read history, of all caches of this process. A reader uses a thread, and then holds a page
/// until its cache has taken it in.
static READERS: Semaphore = Semaphore::const_new(limits::HISTORY_READERS_MAX);

/// What a thread gives back: the feed, a page, and what the page is.
type Read = (Feed, Vec<Change>, Result<FeedStep, FeedError>, SemaphorePermit<'static>);

/// See the module's doc.
pub(crate) struct Source {
    backend: Arc<dyn Backend>,
    prefix: Key,
    // `None` while a thread has it.
    feed: Option<Feed>,
    // The page after the one that was taken last.
    ahead: Option<JoinHandle<Read>>,
    // The permit of the page that was taken last, which the caller has.
    taken: Option<SemaphorePermit<'static>>,
    // Up to this revision reading may mean to read history, which blocks.
    current: Revision,
    caught_up: bool,
    // The revision after which the feed was last opened.
    opened_after: Revision,
}

impl Source {
    /// Every change below `prefix` after `after`.
    pub(crate) async fn open(
        backend: Arc<dyn Backend>,
        prefix: Key,
        after: Revision,
    ) -> Result<Source, FeedError> {
        let feed = backend.feed(prefix.as_str(), after).await?;
        let current = backend.barrier().await?;
        if current < after {
            return Err(FeedError::WentBack { reached: after, current });
        }
        Ok(Source::of(backend, prefix, feed, after, current))
    }

    /// The same for a caller that has just asked the store for the current revision.
    pub(crate) async fn open_upto(
        backend: Arc<dyn Backend>,
        prefix: Key,
        after: Revision,
        current: Revision,
    ) -> Result<Source, FeedError> {
        let feed = backend.feed(prefix.as_str(), after).await?;
        Ok(Source::of(backend, prefix, feed, after, current))
    }

    fn of(backend: Arc<dyn Backend>, prefix: Key, feed: Feed, after: Revision, current: Revision) -> Source {
        let feed = Some(feed);
        Source {
            backend,
            prefix,
            feed,
            ahead: None,
            taken: None,
            current,
            caught_up: false,
            opened_after: after,
        }
    }

    /// Goes on after `reached` although the feed was lost, from the store's history.
    ///
    /// # Errors
    /// [`FeedError::Compacted`] when the history does not reach back that far, or the feed has not moved
    /// since it was last opened: then the state is read again.
    pub(crate) async fn resume(&mut self, reached: Revision, lost: FeedError) -> Result<(), FeedError> {
        if reached <= self.opened_after {
            return Err(lost);
        }
        self.open_again(reached).await
    }

    /// Every change after `reached`, from a feed of its own.
    pub(crate) async fn open_again(&mut self, reached: Revision) -> Result<(), FeedError> {
        *self = Source::open(self.backend.clone(), self.prefix.clone(), reached).await?;
        Ok(())
    }

    /// The revision that was current when the feed was opened.
    pub(crate) fn current(&self) -> Revision {
        self.current
    }

    /// Moves the changes that there are now into `changes`. Not cancel-safe: a call that is dropped may lose
    /// the feed.
    pub(crate) async fn take(&mut self, changes: &mut Vec<Change>) -> Result<FeedStep, FeedError> {
        if self.caught_up {
            let feed = self.feed.as_mut().ok_or_else(gone)?;
            return feed.take(limits::INGEST_BATCH_MAX, changes);
        }
        self.taken = None;
        let reading = match self.ahead.take() {
            Some(reading) => reading,
            None => {
                let Ok(reader) = READERS.acquire().await else { return Err(gone()) };
                read(self.feed.take().ok_or_else(gone)?, reader)
            }
        };
        let (feed, page, step, reader) = reading.await.map_err(|_| gone())?;
        changes.extend(page);
        let reached = changes.last().is_some_and(|change| change.revision >= self.current);
        self.caught_up = reached || !matches!(step, Ok(FeedStep::Changes));
        self.taken = (!self.caught_up).then_some(reader);
        match READERS.try_acquire() {
            Ok(reader) if !self.caught_up => self.ahead = Some(read(feed, reader)),
            _ => self.feed = Some(feed),
        }
        step
    }

    /// Asks the store to hurry, because somebody waits for `upto`.
    pub(crate) fn hasten(&self, upto: Revision) {
        if let Some(feed) = &self.feed {
            feed.hasten(upto);
        }
    }

    /// Waits until [`Source::take`] has a change, progress or an end. Cancel-safe.
    pub(crate) async fn ready(&mut self) {
        if let Some(feed) = &mut self.feed {
            feed.ready().await;
        }
    }
}

/// Reads the next page where reading may block.
fn read(mut feed: Feed, reader: SemaphorePermit<'static>) -> JoinHandle<Read> {
    forebay_rt::blocking(move || {
        let mut page = Vec::new();
        let step = feed.take(limits::INGEST_BATCH_MAX, &mut page);
        (feed, page, step, reader)
    })
}

fn gone() -> FeedError {
    FeedError::Failed { cause: "the thread that read the history is gone".to_string() }
}
