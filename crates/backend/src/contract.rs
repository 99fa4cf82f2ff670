//! The trait that every engine implements.

use forebay_apimachinery::{Key, Revision};

use crate::error::{FeedError, ReadError, TxnError};
use crate::feed::Feed;
use crate::pages::{self, Pages};
use crate::told::Tell;
use crate::txn::{BoxFuture, Range, RangePage, Txn, TxnResponse, Versioned};

/// How large the store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes on disk.
    pub file_bytes: u64,
    /// Bytes on disk that hold live keys or kept history.
    pub live_bytes: u64,
    /// Keys with a value; 0 where nobody counts them.
    pub keys: u64,
}

/// What a store that is elsewhere was sent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Requests, other than those of open feeds.
    pub requests: u64,
    /// Quorum reads that were tried, each for all who waited for it: for [`Backend::barrier`], and the
    /// store's own.
    pub barriers: u64,
    /// Feeds that were opened again.
    pub reopened: u64,
}

/// Keys read at a time by an engine that has no other way to count them.
const COUNT_PAGE: usize = 500;

/// A store. Shared by reference; every method may be called from any task.
pub trait Backend: Send + Sync + 'static {
    /// Commits or refuses `txn`. Not cancel-safe in one sense: a dropped call may still commit.
    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>>;

    /// Reads one key as of now, at quorum.
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>>;

    /// Reads a page.
    fn range(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>>;

    /// Reads all that `range` has, whatever its limit, as one state. Engines that have a shorter way than
    /// page by page take it.
    fn pages<'a>(&'a self, range: Range) -> Box<dyn Pages + 'a> {
        Box::new(pages::Ranges::new(self, range))
    }

    /// As [`Backend::range`], but values may be left out. Engines that can do without reading them do.
    fn keys(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        self.range(range)
    }

    /// How many keys `range` has, whatever its limit. Engines that can count without reading values do.
    fn count(&self, range: Range) -> BoxFuture<'_, Result<u64, ReadError>> {
        Box::pin(async move {
            let mut next = Range { limit: COUNT_PAGE, ..range };
            let mut count = 0;
            loop {
                let page = self.range(next.clone()).await?;
                count += page.items.len() as u64;
                if !page.more {
                    return Ok(count);
                }
                next.pass(&page);
            }
        })
    }

    /// A revision no older than any commit acknowledged before the call, nor than what any feed had told by
    /// then: a lower one means that the store was put back. Every feed reaches it without further writes, at
    /// the latest when it is hastened: it announces progress up to it.
    fn barrier(&self) -> BoxFuture<'_, Result<Revision, ReadError>>;

    /// The oldest revision that [`Backend::feed`] may start after and [`Backend::range`] may read at.
    fn oldest(&self) -> BoxFuture<'_, Result<Revision, ReadError>>;

    /// No history before this is kept, as far as is known without asking: [`Backend::oldest`], or what that
    /// was a while ago.
    fn oldest_known(&self) -> Revision;

    /// Every change below `prefix` (it ends with `/`) after `after`, then what is committed from now on.
    fn feed<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>>;

    /// The collection below `prefix`, for a store that tells states and changes on one way; then neither a
    /// feed nor a page of it is asked for. A new one begins with a state.
    fn tell(&self, prefix: &str) -> Option<Box<dyn Tell>> {
        let _ = prefix;
        None
    }

    /// Bytes that a value may have; no limit where only the store itself knows.
    fn value_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// Whether [`Backend::is_stale`] may find something at all.
    fn may_be_stale(&self) -> bool {
        false
    }

    /// Whether the value of a key is kept as it would not be written now, such as under a key that was
    /// replaced: whoever writes it, and changes nothing, writes it all the same.
    fn is_stale<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<bool, ReadError>> {
        let _ = key;
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Why some of what is kept cannot be read for now, if that is so: who waits for all of it may wait for
    /// long.
    fn hindered(&self) -> Option<String> {
        None
    }

    /// Waits until values that could not be decrypted before may be: there are other keys, or somebody
    /// answers who has them. How often that was so by then; other than `seen`, which is 0 for who asks
    /// first. For ever where nothing is encrypted. Cancel-safe.
    fn rekeyed(&self, seen: u64) -> BoxFuture<'_, u64> {
        let _ = seen;
        Box::pin(std::future::pending())
    }

    /// How large the store is now.
    fn size(&self) -> Size;

    /// What it was sent, if it is elsewhere.
    fn sent(&self) -> Option<Sent> {
        None
    }
}
