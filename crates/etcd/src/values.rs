//! Keys and values on their way from etcd: decoded, and what cannot be decoded is reported by key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::{BoxFuture, Versioned};

use crate::codec::Codec;
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

    /// The value at `key`; one that cannot be decoded as it is.
    pub(crate) fn to_value(&self, key: &Key, stored: Bytes) -> Bytes {
        self.codec.to_value(key.as_str(), stored).unwrap_or_else(|(stored, cause)| {
            self.unreadable.fetch_add(1, Ordering::Relaxed);
            tracing::error!(%key, cause, "a value in etcd cannot be read");
            stored
        })
    }

    /// The value at `key`, or why it cannot be decoded.
    pub(crate) fn read(&self, key: &Key, stored: Bytes) -> Result<Bytes, String> {
        self.codec.to_value(key.as_str(), stored).map_err(|(_, cause)| cause)
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

    pub(crate) fn versioned(&self, kv: KeyValue) -> Option<(Key, Versioned)> {
        let key = self.key(&kv.key)?;
        let revision = Revision::new(kv.mod_revision)?;
        let value = self.to_value(&key, kv.value);
        Some((key, Versioned { revision, value }))
    }

    /// Values that could not be decoded so far.
    pub(crate) fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }
}
