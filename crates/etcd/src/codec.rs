//! Between the values that the server works with and the bytes that etcd keeps.

use bytes::Bytes;
use forebay_backend::BoxFuture;

/// Why a value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// Nobody can. `instead` is handed on, so that whoever reads it says so, and misses nothing else.
    ForGood { instead: Bytes, why: String },
    /// It is not known now what it stands for: [`Codec::lacks`] is to be asked again. It is never handed on.
    ForNow { why: String },
}

impl Unread {
    pub fn why(self) -> String {
        let (Unread::ForGood { why, .. } | Unread::ForNow { why }) = self;
        why
    }
}

/// How values are kept. What a value means is known to whoever makes one of these: the engine only moves
/// bytes.
pub trait Codec: Send + Sync + 'static {
    /// The bytes to keep at `key`.
    ///
    /// # Errors
    /// Why the value cannot be kept; nothing is written then.
    fn to_stored(&self, key: &str, value: &Bytes) -> Result<Bytes, String>;

    /// The value that `stored`, found at `key`, stands for.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn to_value(&self, key: &str, stored: Bytes) -> Result<Bytes, Unread>;

    /// Whether [`Codec::lacks`] may find something at all.
    fn may_lack(&self) -> bool {
        false
    }

    /// What has to be found out before `stored`, found at `key`, can be read, and how: none, most of the
    /// time. If it cannot be found out now, that is a failure of the read; if it never will be,
    /// [`Codec::to_value`] says so.
    fn lacks(&self, key: &str, stored: &Bytes) -> Option<BoxFuture<'static, Result<(), String>>> {
        let _ = (key, stored);
        None
    }

    /// Why some of what is kept cannot be read for now, if that is so.
    fn hindered(&self) -> Option<String> {
        None
    }

    /// Waits until values may be decrypted that could not be before: see
    /// [`forebay_backend::Backend::rekeyed`].
    fn rekeyed(&self, seen: u64) -> BoxFuture<'static, u64> {
        let _ = seen;
        Box::pin(std::future::pending())
    }

    /// Whether [`Codec::is_stale`] may find something at all.
    fn may_be_stale(&self) -> bool {
        false
    }

    /// Whether `stored`, found at `key`, is kept as it would not be now.
    fn is_stale(&self, key: &str, stored: &Bytes) -> bool {
        let _ = (key, stored);
        false
    }
}

/// Values are kept as they are.
#[derive(Debug, Clone, Copy)]
pub struct Verbatim;

impl Codec for Verbatim {
    fn to_stored(&self, _key: &str, value: &Bytes) -> Result<Bytes, String> {
        Ok(value.clone())
    }

    fn to_value(&self, _key: &str, stored: Bytes) -> Result<Bytes, Unread> {
        Ok(stored)
    }
}
