//! Keys and values on their way from etcd: decoded, and what cannot be decoded is reported by key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::{BoxFuture, Versioned};

use crate::codec::{Codec, Unread};
use crate::messages::KeyValue;

/// See the module's doc. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Values {
    codec: Arc<dyn Codec>,
    unreadable: Arc<AtomicU64>,
}

/// What has to be found out, one after the other. Most of the time nothing.
pub(crate) struct Lacking(Vec<BoxFuture<'static, Result<(), String>>>);

impl Lacking {
    /// Waits until that is known, or will never be.
    ///
    /// # Errors
    /// What cannot be found out now.
    pub(crate) async fn known(self) -> Result<(), String> {
        for lacking in self.0 {
            lacking.await?;
        }
        Ok(())
    }
}

impl Values {
    pub(crate) fn new(codec: Arc<dyn Codec>) -> Values {
        Values { codec, unreadable: Arc::default() }
    }

    pub(crate) fn to_stored(&self, key: &Key, value: &Bytes) -> Result<Bytes, String> {
        self.codec.to_stored(key.as_str(), value)
    }

    /// The value at `key`; in the place of one that nobody can decode what the codec says.
    ///
    /// # Errors
    /// Why it is not known now: another configuration has to ask for what the one before knew.
    pub(crate) fn to_value(&self, key: &Key, stored: Bytes) -> Result<Bytes, String> {
        self.codec.to_value(key.as_str(), stored).or_else(|unread| match unread {
            Unread::ForNow { why } => Err(why),
            Unread::ForGood { instead, why } => {
                self.unreadable.fetch_add(1, Ordering::Relaxed);
                tracing::error!(%key, cause = why, "a value in etcd cannot be read");
                Ok(instead)
            }
        })
    }

    /// The value at `key`, or why it cannot be decoded.
    pub(crate) fn read(&self, key: &Key, stored: Bytes) -> Result<Bytes, String> {
        self.codec.to_value(key.as_str(), stored).map_err(Unread::why)
    }

    /// Finds out what is lacking for it, and decodes `kv`. None of ours is none.
    ///
    /// # Errors
    /// What cannot be found out now.
    pub(crate) async fn found(&self, kv: Option<KeyValue>) -> Result<Option<(Key, Versioned)>, String> {
        let Some(kv) = kv else { return Ok(None) };
        self.lacking([(&kv.key[..], &kv.value)].into_iter()).known().await?;
        match self.versioned(kv.clone()) {
            Err(_replaced) => {
                self.lacking([(&kv.key[..], &kv.value)].into_iter()).known().await?;
                self.versioned(kv)
            }
            versioned => versioned,
        }
    }

    /// What has to be found out before all of `stored` can be read.
    pub(crate) fn lacking<'a>(&self, stored: impl Iterator<Item = (&'a [u8], &'a Bytes)>) -> Lacking {
        if !self.codec.may_lack() {
            return Lacking(Vec::new());
        }
        let lacks = |(key, stored): (&[u8], &Bytes)| self.codec.lacks(std::str::from_utf8(key).ok()?, stored);
        Lacking(stored.filter_map(lacks).collect())
    }

    pub(crate) fn hindered(&self) -> Option<String> {
        self.codec.hindered()
    }

    pub(crate) fn rekeyed(&self, seen: u64) -> BoxFuture<'static, u64> {
        self.codec.rekeyed(seen)
    }

    pub(crate) fn may_be_stale(&self) -> bool {
        self.codec.may_be_stale()
    }

    pub(crate) fn is_stale(&self, key: &Key, stored: &Bytes) -> bool {
        self.codec.is_stale(key.as_str(), stored)
    }

    /// Keys of ours are text; what is not is none of ours.
    pub(crate) fn key(&self, key: &[u8]) -> Option<Key> {
        let text = std::str::from_utf8(key);
        text.inspect_err(|_| tracing::error!(?key, "a key in etcd is no text")).ok().map(Key::new)
    }

    /// # Errors
    /// As [`Values::to_value`].
    pub(crate) fn versioned(&self, kv: KeyValue) -> Result<Option<(Key, Versioned)>, String> {
        let place = self.key(&kv.key).zip(Revision::new(kv.mod_revision));
        let Some((key, revision)) = place else { return Ok(None) };
        let value = self.to_value(&key, kv.value)?;
        Ok(Some((key, Versioned { revision, value })))
    }

    /// Values that could not be decoded so far.
    pub(crate) fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }
}
