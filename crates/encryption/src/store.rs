//! A store in front of another one, below which everything is as it is kept.
//!
//! In and out: [`Backend`]'s. Values that cannot be opened are handed on as what says why, so that whoever
//! reads them misses nothing else. While a plugin does not answer, a read fails as one of a store that does
//! not answer, and a feed stands still; so where what is in force was replaced between a plugin's answer and
//! the use of it. Never: a value of below in the clear; one that could be opened later as one that cannot.

use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{
    Backend, BoxFuture, Change, Feed, FeedError, FeedStep, Follow, Op, Range, RangePage, ReadError, Sent,
    Size, Txn, TxnError, TxnResponse, Versioned, undecrypted,
};
use forebay_rt::Clock;

use crate::encryption::{Encryption, Lacking};
use crate::failed::SealError;
use crate::limits;

/// See the module's doc.
pub struct EncryptedStore {
    below: Arc<dyn Backend>,
    encryption: Arc<Encryption>,
}

impl EncryptedStore {
    pub fn new(below: Arc<dyn Backend>, encryption: Arc<Encryption>) -> EncryptedStore {
        EncryptedStore { below, encryption }
    }

    async fn commit_sealed(&self, mut txn: Txn) -> Result<TxnResponse, TxnError> {
        let failed = |error: SealError| TxnError::Failed { cause: error.to_string() };
        let key = txn.key.clone();
        if let Op::Put { value, .. } = &mut txn.op {
            *value = self.encryption.seal(key.as_str(), value).map_err(failed)?;
        }
        match self.below.commit(txn).await? {
            TxnResponse::Conflict(Some(found)) => {
                let found = self.ask_and_open(&key, found).await.map_err(failed)?;
                Ok(TxnResponse::Conflict(Some(found)))
            }
            response => Ok(response),
        }
    }

    async fn get_opened(&self, key: &Key) -> Result<Option<Versioned>, ReadError> {
        let Some(found) = self.below.get(key).await? else { return Ok(None) };
        self.ask_and_open(key, found).await.map(Some).map_err(unanswered)
    }

    async fn range_opened(&self, range: Range) -> Result<RangePage, ReadError> {
        let mut page = self.below.range(range).await?;
        if self.encryption.may_lack() {
            for (key, found) in &page.items {
                self.asked(key, found).await.map_err(unanswered)?;
            }
        }
        let mut parts = Vec::new();
        let mut items = page.items.into_iter().peekable();
        while items.peek().is_some() {
            let part: Vec<_> = items.by_ref().take(limits::PART_VALUES).collect();
            let encryption = self.encryption.clone();
            parts.push(forebay_rt::blocking(move || {
                let open = |(key, found)| {
                    let found = opened(&encryption, &key, found)?;
                    Ok((key, found))
                };
                part.into_iter().map(open).collect::<Result<Vec<_>, SealError>>()
            }));
        }
        page.items = Vec::new();
        for part in parts {
            let part = part.await.map_err(|error| ReadError::Failed { cause: error.to_string() })?;
            page.items.extend(part.map_err(unanswered)?);
        }
        Ok(page)
    }

    /// Opens `found`, and asks a plugin before for what it cannot be opened without. What is in force may be
    /// replaced in between, by what has to ask anew.
    ///
    /// # Errors
    /// It cannot be known now what it stands for.
    async fn ask_and_open(&self, key: &Key, found: Versioned) -> Result<Versioned, SealError> {
        self.asked(key, &found).await?;
        match opened(&self.encryption, key, found.clone()) {
            Err(_replaced) => {
                self.asked(key, &found).await?;
                opened(&self.encryption, key, found)
            }
            opened => opened,
        }
    }

    /// Asks a plugin for what `found` cannot be opened without.
    async fn asked(&self, key: &Key, found: &Versioned) -> Result<(), SealError> {
        match self.encryption.lacks(key.as_str(), &found.value) {
            Some(lacking) => lacking.fetch().await,
            None => Ok(()),
        }
    }

    async fn feed_opened<'a>(&'a self, prefix: &'a str, after: Revision) -> Result<Feed, FeedError> {
        let below = self.below.feed(prefix, after).await?;
        let (encryption, clock) = (self.encryption.clone(), self.encryption.clock().clone());
        let opening = OpeningFeed { below, encryption, clock, held: Vec::new(), waits: Waits::No };
        Ok(Feed::following(Box::new(opening)))
    }
}

/// The value of `found`, or what says why it cannot be opened.
///
/// # Errors
/// It may be opened later: a plugin is to be asked first.
fn opened(encryption: &Encryption, key: &Key, found: Versioned) -> Result<Versioned, SealError> {
    let value = match encryption.open(key.as_str(), &found.value) {
        Ok(opened) => opened.value,
        Err(why) if why.passes => return Err(why),
        Err(why) => {
            tracing::error!(%key, why = why.why, "a value in the store cannot be decrypted");
            undecrypted(&why.why)
        }
    };
    Ok(Versioned { value, ..found })
}

fn unanswered(error: SealError) -> ReadError {
    ReadError::Unanswered { cause: error.to_string() }
}

impl Backend for EncryptedStore {
    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>> {
        Box::pin(self.commit_sealed(txn))
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>> {
        Box::pin(self.get_opened(key))
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        Box::pin(self.range_opened(range))
    }

    fn keys(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        self.below.keys(range)
    }

    fn count(&self, range: Range) -> BoxFuture<'_, Result<u64, ReadError>> {
        self.below.count(range)
    }

    fn barrier(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        self.below.barrier()
    }

    fn oldest(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        self.below.oldest()
    }

    fn oldest_known(&self) -> Revision {
        self.below.oldest_known()
    }

    fn feed<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>> {
        Box::pin(self.feed_opened(prefix, after))
    }

    fn may_be_stale(&self) -> bool {
        true
    }

    fn is_stale<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<bool, ReadError>> {
        Box::pin(async move {
            let Some(found) = self.below.get(key).await? else { return Ok(false) };
            self.asked(key, &found).await.map_err(unanswered)?;
            Ok(self.encryption.open(key.as_str(), &found.value).is_ok_and(|opened| opened.stale))
        })
    }

    fn hindered(&self) -> Option<String> {
        self.encryption.hindered()
    }

    fn rekeyed(&self, seen: u64) -> BoxFuture<'_, u64> {
        Box::pin(self.encryption.rekeyed(seen))
    }

    fn size(&self) -> Size {
        self.below.size()
    }

    fn sent(&self) -> Option<Sent> {
        self.below.sent()
    }
}

/// A feed whose values are opened as they are taken.
struct OpeningFeed {
    below: Feed,
    encryption: Arc<Encryption>,
    clock: Clock,
    // Whole revisions that were taken from below, and not handed on yet.
    held: Vec<Change>,
    waits: Waits,
}

/// What is waited for before the held changes can be handed on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    No,
    /// A plugin is to be asked.
    ToAsk,
    /// The same, and nothing was found that it is to be asked: after a pause.
    ToLookAgain,
}

impl OpeningFeed {
    /// What has to be asked first, of what is in force now.
    fn lacking(&self) -> Option<Lacking> {
        if !self.encryption.may_lack() {
            return None;
        }
        self.held.iter().find_map(|change| {
            let value = change.value.as_ref()?;
            self.encryption.lacks(change.key.as_str(), value)
        })
    }

    fn open(encryption: &Encryption, change: &Change) -> Result<Change, SealError> {
        let Change { key, revision, value } = change.clone();
        let value = match value {
            Some(value) => Some(opened(encryption, &key, Versioned { revision, value })?.value),
            None => None,
        };
        Ok(Change { key, revision, value })
    }
}

impl Follow for OpeningFeed {
    fn take(&mut self, changes: &mut Vec<Change>) -> Result<FeedStep, FeedError> {
        if self.held.is_empty() {
            match self.below.take(limits::FEED_CHANGES, &mut self.held)? {
                FeedStep::Changes => {}
                other => return Ok(other),
            }
        }
        if self.lacking().is_some() {
            self.waits = Waits::ToAsk;
            return Ok(FeedStep::Idle);
        }
        let opened = self.held.iter().map(|change| OpeningFeed::open(&self.encryption, change));
        match opened.collect::<Result<Vec<_>, SealError>>() {
            Ok(opened) => {
                self.held.clear();
                self.waits = Waits::No;
                changes.extend(opened);
                Ok(FeedStep::Changes)
            }
            // What is in force was replaced since it was looked what is lacking.
            Err(why) => {
                tracing::warn!(why = why.why, "a feed looks again what it is to ask a kms plugin");
                self.waits = Waits::ToLookAgain;
                Ok(FeedStep::Idle)
            }
        }
    }

    fn ready(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if self.waits == Waits::ToLookAgain {
                self.clock.sleep(limits::FEED_PAUSE).await;
                self.waits = Waits::ToAsk;
            }
            // Found anew each time: after another configuration the plugin may be elsewhere.
            while self.waits == Waits::ToAsk {
                let Some(lacking) = self.lacking() else {
                    self.waits = Waits::No;
                    break;
                };
                if let Err(why) = lacking.fetch().await {
                    tracing::warn!(why = why.why, "a feed waits for a kms plugin");
                    self.clock.sleep(limits::FEED_PAUSE).await;
                }
            }
            if self.held.is_empty() {
                self.below.ready().await;
            }
        })
    }

    fn hasten(&self, upto: Revision) {
        self.below.hasten(upto);
    }
}
