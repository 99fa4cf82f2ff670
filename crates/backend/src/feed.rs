//! The changes of one prefix: what the store still has of the past, then what is committed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_apimachinery::Revision;
use forebay_revlog::{Cursor, Step};

use crate::error::FeedError;
use crate::txn::{BoxFuture, Change};

/// History that is read from the store before the live log begins.
pub trait Backlog: Send {
    /// The next changes in order, whole revisions at a time; empty when there are no more.
    fn page(&mut self) -> Result<Vec<Change>, FeedError>;
}

/// A feed as an engine makes it whose history and whose news come on one way, from elsewhere.
pub trait Follow: Send {
    /// Moves what there is now into `changes`, whole revisions; never waits.
    ///
    /// # Errors
    /// [`FeedError`] when it cannot go on without a gap; the same again from then on.
    fn take(&mut self, changes: &mut Vec<Change>) -> Result<FeedStep, FeedError>;

    /// Waits until there is a change, progress or an end. Cancel-safe.
    fn ready(&mut self) -> BoxFuture<'_, ()>;

    /// Asks to be told that everything up to `upto` was delivered, as soon as that is so.
    fn hasten(&self, upto: Revision);
}

/// Every change of a prefix after a revision, in order.
pub struct Feed(Source);

enum Source {
    Log(Box<LogFeed>),
    Follow(Box<dyn Follow>),
}

/// History, and then a log in this process.
struct LogFeed {
    backlog: Option<Box<dyn Backlog>>,
    live: Cursor<Change>,
    // Items pulled from the cursor; kept to reuse the allocation.
    pulled: Vec<(u64, Change)>,
    // Where the live part begins, until it is told.
    opening: Option<Revision>,
    // Where the store sees how far the live part was taken.
    taken: Option<Arc<AtomicU64>>,
}

/// What a feed had.
#[derive(Debug)]
pub enum FeedStep {
    /// Changes were added to the caller's vector.
    Changes,
    /// No change, but everything up to here was delivered.
    Progress(Revision),
    /// Nothing new.
    Idle,
}

impl Feed {
    /// A feed that drains `backlog`, if there is one, and goes on with `live`.
    pub fn new(backlog: Option<Box<dyn Backlog>>, live: Cursor<Change>) -> Feed {
        let log = LogFeed { backlog, live, pulled: Vec::new(), opening: None, taken: None };
        Feed(Source::Log(Box::new(log)))
    }

    /// A feed whose engine has its own way.
    pub fn following(follow: Box<dyn Follow>) -> Feed {
        Feed(Source::Follow(follow))
    }

    /// The same, for one who asked for what is after `after`: once the backlog is through, it is told how far
    /// the live part has been when it began. It need not wait for the next write to know that it has
    /// everything.
    #[must_use]
    pub fn opened_after(mut self, after: Revision) -> Feed {
        if let Source::Log(log) = &mut self.0 {
            let begins = Revision::from_log(log.live.seen());
            log.opening = (begins > after).then_some(begins);
        }
        self
    }

    /// The same, which keeps in `taken` up to which revision everything was taken: the store need not hold
    /// that for this feed any more. Dropping the feed drops it.
    #[must_use]
    pub fn telling(mut self, taken: Arc<AtomicU64>) -> Feed {
        if let Source::Log(log) = &mut self.0 {
            log.taken = Some(taken);
        }
        self
    }

    /// Moves what there is now into `changes`, about `max` of them and whole revisions; never waits.
    ///
    /// # Errors
    /// [`FeedError`] when the feed cannot go on without a gap.
    pub fn take(&mut self, max: usize, changes: &mut Vec<Change>) -> Result<FeedStep, FeedError> {
        match &mut self.0 {
            Source::Log(log) => log.take(max, changes),
            Source::Follow(follow) => follow.take(changes),
        }
    }

    /// Waits until [`Feed::take`] may have a change or an end. Cancel-safe.
    pub async fn ready(&mut self) {
        match &mut self.0 {
            Source::Log(log) if log.backlog.is_some() => {}
            Source::Log(log) => {
                log.live.ready().await;
            }
            Source::Follow(follow) => follow.ready().await,
        }
    }

    /// Somebody waits for `upto`: a feed that hears of its store from elsewhere asks there, for a while. One
    /// in this process knows at once.
    pub fn hasten(&self, upto: Revision) {
        if let Source::Follow(follow) = &self.0 {
            follow.hasten(upto);
        }
    }
}

impl LogFeed {
    fn take(&mut self, max: usize, changes: &mut Vec<Change>) -> Result<FeedStep, FeedError> {
        if let Some(backlog) = &mut self.backlog {
            let page = backlog.page()?;
            if !page.is_empty() {
                changes.extend(page);
                return Ok(FeedStep::Changes);
            }
            self.backlog = None;
        }
        // Whatever came before the log is told by now: whoever fills a cache need not wait for the next
        // write.
        if let Some(revision) = self.opening.take() {
            return Ok(FeedStep::Progress(revision));
        }
        let step = self.live.take(max, &mut self.pulled);
        if let Some(taken) = &self.taken {
            taken.store(self.live.seen(), Ordering::Release);
        }
        if !self.pulled.is_empty() {
            changes.extend(self.pulled.drain(..).map(|(_, change)| change));
            return Ok(FeedStep::Changes);
        }
        match step {
            Some(Step::Progress(revision)) => Ok(FeedStep::Progress(Revision::from_log(revision))),
            Some(Step::Expired { oldest }) => {
                Err(FeedError::Compacted { oldest: Revision::from_log(oldest) })
            }
            Some(Step::Closed) => Err(FeedError::Closed),
            Some(Step::Item(..)) | None => Ok(FeedStep::Idle),
        }
    }
}
