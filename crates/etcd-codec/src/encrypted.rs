//! Values that are encrypted as kube-apiserver encrypts them: around what [`AsKubernetes`] makes of them.
//!
//! In and out: as [`Codec`] has it. What cannot be decrypted is handed on as what says why.

use std::sync::Arc;

use bytes::Bytes;
use forebay_backend::{BoxFuture, undecrypted};
use forebay_encryption::Encryption;
use forebay_etcd::{Codec, Unread};

use crate::AsKubernetes;

/// See the module's doc.
pub struct Encrypted {
    plain: AsKubernetes,
    encryption: Arc<Encryption>,
}

impl Encrypted {
    pub fn new(plain: AsKubernetes, encryption: Arc<Encryption>) -> Encrypted {
        Encrypted { plain, encryption }
    }
}

impl Codec for Encrypted {
    fn to_stored(&self, key: &str, value: &Bytes) -> Result<Bytes, String> {
        let stored = self.plain.to_stored(key, value)?;
        self.encryption.seal(key, &stored).map_err(|error| error.to_string())
    }

    fn to_value(&self, key: &str, stored: Bytes) -> Result<Bytes, Unread> {
        match self.encryption.open(key, &stored) {
            Ok(opened) => self.plain.to_value(key, opened.value),
            Err(error) if error.passes => Err(Unread::ForNow { why: error.why }),
            Err(error) => Err(Unread::ForGood { instead: undecrypted(&error.why), why: error.why }),
        }
    }

    fn may_lack(&self) -> bool {
        self.encryption.may_lack()
    }

    fn lacks(&self, key: &str, stored: &Bytes) -> Option<BoxFuture<'static, Result<(), String>>> {
        let lacking = self.encryption.lacks(key, stored)?;
        Some(Box::pin(async move { lacking.fetch().await.map_err(|error| error.to_string()) }))
    }

    fn hindered(&self) -> Option<String> {
        self.encryption.hindered()
    }

    fn rekeyed(&self, seen: u64) -> BoxFuture<'static, u64> {
        Box::pin(self.encryption.rekeyed(seen))
    }

    fn may_be_stale(&self) -> bool {
        true
    }

    fn is_stale(&self, key: &str, stored: &Bytes) -> bool {
        self.encryption.open(key, stored).is_ok_and(|opened| opened.stale)
    }
}
