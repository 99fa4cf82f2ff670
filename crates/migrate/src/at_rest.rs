//! What is encrypted in a data directory or a snapshot: opened on the way out of it, sealed on the way in.
//!
//! In: keys and values as they are kept, and what they are encrypted with, if that is said. Out: the other
//! of both. Never: leaves something encrypted that cannot be read again, or in the clear what is to be
//! encrypted.

use std::sync::Arc;

use bytes::Bytes;
use forebay_embedded::snapshot::Entry;
use forebay_encryption::Encryption;

use crate::error::{Error, failed};

/// See the module's doc.
#[derive(Clone, Default)]
pub struct AtRest(Option<Arc<Encryption>>);

/// What is said of a value that nobody said how to decrypt.
const UNSAID: &str = "it is encrypted, and --encryption-provider-config does not say with what";

impl AtRest {
    pub fn new(encryption: Option<Arc<Encryption>>) -> AtRest {
        AtRest(encryption)
    }

    /// Asks plugins for what `entries` cannot be opened without.
    ///
    /// # Errors
    /// A plugin does not answer.
    pub(crate) async fn prepare(&self, entries: &[Entry]) -> Result<(), Error> {
        let Some(encryption) = self.0.as_ref().filter(|encryption| encryption.may_lack()) else {
            return Ok(());
        };
        for entry in entries {
            if let Some(lacking) = encryption.lacks(entry.key.as_str(), &entry.value) {
                lacking.fetch().await.map_err(failed)?;
            }
        }
        Ok(())
    }

    /// The value that `kept` stands for.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(crate) fn open(&self, key: &str, kept: &Bytes) -> Result<Bytes, String> {
        match &self.0 {
            Some(encryption) => {
                encryption.open(key, kept).map(|opened| opened.value).map_err(|error| error.to_string())
            }
            None if kept.starts_with(b"k8s:enc:") => Err(UNSAID.to_owned()),
            None => Ok(kept.clone()),
        }
    }

    /// What is kept of `value`.
    ///
    /// # Errors
    /// Why it cannot be encrypted.
    pub(crate) fn seal(&self, key: &str, value: &Bytes) -> Result<Bytes, String> {
        match &self.0 {
            Some(encryption) => encryption.seal(key, value).map_err(|error| error.to_string()),
            None => Ok(value.clone()),
        }
    }
}
