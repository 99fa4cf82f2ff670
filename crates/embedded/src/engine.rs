//! The engine as the contract sees it. What happens is in `writer.rs` (commits) and `shared.rs` (reads).

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{
    Backend, Backlog, BoxFuture, Feed, FeedError, Op, Range, RangePage, ReadError, Size, Txn, TxnError,
    TxnResponse, Versioned,
};
use forebay_rt::Clock;
use tokio::sync::oneshot;

use crate::backlog::History;
use crate::batch::versioned;
use crate::disk::Disk;
use crate::error::OpenError;
use crate::limits::{KEY_BYTES_MAX, RANGE_BYTES_MAX, VALUE_BYTES_MAX};
use crate::open::{self, Opened};
use crate::options::Options;
use crate::queue::{LogWish, Waiting, WaitingPut};
use crate::row::Stored;
use crate::shared::{self, Shared};
use crate::snapshot::State;
use crate::writer::{Ending, Writer};

/// The embedded store. Dropping it closes it.
pub struct Engine {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    // Holds the directory for this process.
    lock: Mutex<Option<File>>,
    clock: Clock,
}

impl Engine {
    /// Opens the store in `dir`, which is made if it is not there. Reads the whole file once.
    ///
    /// # Errors
    /// [`OpenError`]; nothing was changed then, but for what a crash had left unfinished.
    pub fn open(dir: &Path, options: Options) -> Result<Arc<Engine>, OpenError> {
        open::open_dir(dir, &options).and_then(Engine::start)
    }

    /// Opens the store on `disk`, new if that is empty.
    ///
    /// # Errors
    /// As for [`Engine::open`].
    pub fn open_disk(disk: Disk, options: Options) -> Result<Arc<Engine>, OpenError> {
        open::open_disk(disk, &options).and_then(Engine::start)
    }

    /// A new store that is gone when it is dropped.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn open_in_memory(options: Options) -> Result<Arc<Engine>, OpenError> {
        Engine::open_disk(Disk::in_memory(), options)
    }

    /// Opens the store on `disk` without a thread: what a thread would do, [`Stepper::step`] does. For
    /// simulations, which decide when that is.
    ///
    /// # Errors
    /// As for [`Engine::open`].
    pub fn open_stepped(disk: Disk, options: Options) -> Result<(Arc<Engine>, Stepper), OpenError> {
        let Opened { writer, .. } = open::open_disk(disk, &options)?;
        let (shared, clock) = (writer.shared.clone(), writer.clock.clone());
        let stepper = Stepper { writer: Some(writer), ending: Ending(shared.clone()) };
        Ok((Arc::new(Engine { shared, thread: Mutex::new(None), lock: Mutex::new(None), clock }), stepper))
    }

    fn start(opened: Opened) -> Result<Arc<Engine>, OpenError> {
        let Opened { writer, lock, file } = opened;
        let (shared, clock) = (writer.shared.clone(), writer.clock.clone());
        let thread =
            std::thread::Builder::new().name("forebay-store".to_string()).spawn(move || writer.run());
        let thread =
            thread.map_err(|cause| OpenError::Failed { file, cause: format!("no thread: {cause}") })?;
        Ok(Arc::new(Engine { shared, thread: Mutex::new(Some(thread)), lock: Mutex::new(lock), clock }))
    }

    /// Commits what is waiting, ends every feed, closes the file, and lets another process have the
    /// directory. Blocks for as long as a sync or two take; may be called again.
    pub fn close(&self) {
        self.shared.queue.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A panic of the thread was reported when it happened, and the store is read-only since.
        let _ = thread.map(JoinHandle::join);
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Waits until everything that is due by the clock is done: keys expired, history compacted.
    pub async fn settle(&self) {
        let (reply, settled) = oneshot::channel();
        if self.shared.queue.push_settle(reply).is_ok() {
            let _ = settled.await;
        }
    }

    /// The state as of now, to be read while writes go on.
    pub fn state(&self) -> State {
        State::of(self.shared.clone(), &self.clock)
    }

    /// Why the store takes no more writes, if it does not.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure()
    }

    async fn commit(&self, txn: Txn) -> Result<TxnResponse, TxnError> {
        let Txn { key, expect, op } = txn;
        if key.as_str().len() > KEY_BYTES_MAX {
            return Err(TxnError::Failed { cause: format!("the key is longer than {KEY_BYTES_MAX} bytes") });
        }
        if let Some(cause) = self.shared.failure() {
            return Err(TxnError::ReadOnly { cause });
        }
        let bytes = if let Op::Put { value, .. } = &op { value.len() } else { 0 };
        if bytes > VALUE_BYTES_MAX {
            return Err(TxnError::TooLarge { bytes, bytes_max: VALUE_BYTES_MAX });
        }
        let _room = self.shared.queue.room(bytes).await?;
        let put = match op {
            Op::Put { value, ttl } => Some(WaitingPut { stored: Stored::new(value.clone()), value, ttl }),
            Op::Delete => None,
        };
        let (reply, outcome) = oneshot::channel();
        let waiting = Waiting { key, expect, put, reply, _room };
        self.shared.queue.push_txn(waiting).map_err(|_| TxnError::Closed)?;
        match outcome.await {
            Ok(outcome) => outcome,
            Err(_) => {
                Err(self.shared.failure().map_or(TxnError::Closed, |cause| TxnError::ReadOnly { cause }))
            }
        }
    }

    async fn get(&self, key: Key) -> Result<Option<Versioned>, ReadError> {
        let read = self.read(move |shared| shared.get(&key)).await?;
        read.map(|found| found.map(|(revision, value)| versioned(revision, value)))
    }

    async fn range(&self, range: Range) -> Result<RangePage, ReadError> {
        self.read(move |shared| read_range(shared, &range)).await?
    }

    async fn count(&self, range: Range) -> Result<u64, ReadError> {
        let Range { prefix, start_after, at, .. } = range;
        self.read(move |shared| shared.count(prefix.as_str(), start_after, at)).await?
    }

    /// Runs `read` on a thread that may wait for the disk, once there is one for it.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Arc<Shared>) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        let shared = self.shared.clone();
        let reader = shared.readers.clone().acquire_owned().await.map_err(|_| ReadError::Closed)?;
        let read = forebay_rt::blocking(move || {
            let found = read(&shared);
            drop(reader);
            found
        });
        read.await.map_err(|error| ReadError::Failed { cause: error.to_string() })
    }

    /// What is visible, and no less than any feed has told: they are told of a batch a moment before it is
    /// visible. Whoever was, and asks then, would take the store for one that has gone back.
    async fn visible(&self) -> u64 {
        loop {
            let (told, visible) = (self.shared.told(), self.shared.visible());
            // A writer that broke off in between tells nothing any more.
            if visible >= told || self.shared.failure().is_some() {
                return visible;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn feed(&self, prefix: &str, after: Revision) -> Result<Feed, FeedError> {
        let after = after.get();
        let (reply, granted) = oneshot::channel();
        let wish = LogWish { prefix: prefix.into(), reply };
        self.shared.queue.push_wish(wish).map_err(|_| FeedError::Closed)?;
        let granted = granted.await.map_err(|_| FeedError::Closed)?;
        let too_many = || FeedError::Failed { cause: "too many prefixes are fed".to_string() };
        let (log, taken, current) = granted.ok_or_else(too_many)?;
        if let Ok(live) = log.cursor(after) {
            return Ok(Feed::new(None, live).telling(taken));
        }
        let compacted = |oldest: u64| FeedError::Compacted { oldest: Revision::from_log(oldest) };
        // Taken before the history is read, so that nothing falls between the two.
        let live = log.cursor(current).map_err(|expired| compacted(expired.oldest))?;
        let oldest = self.shared.compacted();
        if after < oldest {
            return Err(compacted(oldest));
        }
        let prefix = Box::from(prefix);
        let history = self.read(move |shared| History::new(shared, prefix, (after, current))).await??;
        let history = history.map(|history| Box::new(history) as Box<dyn Backlog>);
        Ok(Feed::new(history, live).opened_after(Revision::from_log(after)).telling(taken))
    }
}

/// The writer of an engine without a thread. Dropping it closes the store.
pub struct Stepper {
    // `None` once it has ended.
    writer: Option<Writer>,
    ending: Ending,
}

impl Stepper {
    /// Does what is waiting, as one batch, and what is due.
    pub fn step(&mut self) {
        let taken = self.ending.0.queue.take(Some(Duration::ZERO));
        if self.writer.as_mut().is_some_and(|writer| writer.turn(taken)) {
            self.end();
        }
    }

    fn end(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.end();
        }
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        self.end();
    }
}

fn read_range(shared: &Shared, range: &Range) -> Result<RangePage, ReadError> {
    let walked =
        shared.walk(range.prefix.as_str(), range.start_after.as_ref(), range.limit.max(1), range.at)?;
    let rows = walked.rows.ok_or(ReadError::Closed)?;
    let (mut items, mut bytes) = (Vec::with_capacity(walked.items.len()), 0);
    let mut keys = walked.items.into_iter();
    while bytes < RANGE_BYTES_MAX
        && let Some((key, revision)) = keys.next()
    {
        let value = shared::value(&rows, revision, &key)?;
        bytes += value.len();
        items.push((key, versioned(revision, value)));
    }
    let more = walked.more || keys.next().is_some();
    Ok(RangePage { revision: Revision::from_log(walked.revision), items, more })
}

impl Backend for Engine {
    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>> {
        Box::pin(self.commit(txn))
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>> {
        Box::pin(self.get(key.clone()))
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        Box::pin(self.range(range))
    }

    fn count(&self, range: Range) -> BoxFuture<'_, Result<u64, ReadError>> {
        Box::pin(self.count(range))
    }

    fn barrier(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        Box::pin(async { Ok(Revision::from_log(self.visible().await)) })
    }

    fn oldest(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        Box::pin(std::future::ready(Ok(self.oldest_known())))
    }

    fn oldest_known(&self) -> Revision {
        Revision::from_log(self.shared.compacted())
    }

    fn feed<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>> {
        Box::pin(self.feed(prefix, after))
    }

    fn value_bytes_max(&self) -> usize {
        VALUE_BYTES_MAX
    }

    fn size(&self) -> Size {
        Size {
            file_bytes: self.shared.file_bytes(),
            live_bytes: self.shared.live_bytes.load(Ordering::Relaxed),
            keys: self.shared.view().index.live(),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("visible", &self.shared.visible()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_barrier_is_never_behind_what_a_feed_has_told() {
        let (engine, _stepper) = Engine::open_stepped(Disk::in_memory(), Options::default()).expect("opens");
        let first = engine.barrier().await.expect("open").get();
        engine.shared.set_told(first + 1);
        let barrier = engine.barrier();
        let visible = async {
            // Somebody asks in between.
            tokio::task::yield_now().await;
            engine.shared.set_visible(first + 1);
        };
        let (current, ()) = tokio::join!(barrier, visible);
        assert_eq!(current.expect("open").get(), first + 1);
        engine.shared.set_told(first + 2);
        engine.shared.fail("its disk is gone".to_string());
        assert_eq!(engine.barrier().await.expect("open").get(), first + 1);
    }
}
