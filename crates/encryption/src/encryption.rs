//! What is in force: values are sealed and opened by the rule of their key.
//!
//! In: keys, values, and what is kept of them. Out: the other of both. Shared by all that read and write;
//! what is in force is a pointer that is replaced. Never: waits within a call, but where a plugin is asked.
//!
//! Source: apiserver v0.36.3 `server/options/encryptionconfig/config.go`.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use forebay_rt::Clock;
use forebay_schema::builtin::protobuf::ENCRYPTED_PREFIX;

use crate::chain::Opened;
use crate::config::Reload;
use crate::failed::SealError;
use crate::in_force::{InForce, Making, read_configuration};
use crate::kms::{DataKeyRef, KmsProvider};
use crate::metrics::{Counting, EncryptionMetrics};
use crate::rekeyed::Rekeyed;
use crate::rules::Places;

/// What upstream says where nobody may decrypt.
const IS_ENCRYPTED: &str = "identity transformer tried to read encrypted data";

/// More than prefixes, nonces and tags take.
const SEALED_MORE: usize = 256;

/// What is to be in force.
pub struct EncryptionSettings {
    pub file: PathBuf,
    pub reload: Reload,
    /// Of all keys of objects, without a slash behind: `/registry`.
    pub prefix: String,
    pub clock: Clock,
}

/// See the module's doc.
pub struct Encryption {
    pub(crate) settings: EncryptionSettings,
    pub(crate) current: ArcSwap<InForce>,
    pub(crate) places: Places,
    pub(crate) rekeyed: Rekeyed,
    metrics: Arc<EncryptionMetrics>,
}

/// What was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedValue {
    pub value: Bytes,
    /// It is to be written anew, also if nothing changes.
    pub stale: bool,
}

/// What a plugin has to be asked before a value can be opened.
pub struct Lacking {
    provider: Arc<KmsProvider>,
    data_key: DataKeyRef,
    // What it asks with is there for as long as this is.
    _in_force: Arc<InForce>,
}

impl Lacking {
    /// Asks. Ready also when the plugin will not decrypt it, which the value then says. Cancel-safe.
    ///
    /// # Errors
    /// The plugin does not answer; the same may be asked later.
    pub async fn fetch(&self) -> Result<(), SealError> {
        self.provider.fetch(&self.data_key).await
    }
}

impl Encryption {
    /// Puts what the file says in force. Plugins are asked how they are; one that is not there is asked again
    /// later. To be called within a runtime.
    ///
    /// # Errors
    /// What is wrong with the file, in upstream's words.
    pub async fn load(settings: EncryptionSettings) -> Result<Arc<Encryption>, String> {
        let (places, metrics, rekeyed) = (Places::new(&settings.prefix), Arc::default(), Rekeyed::default());
        let (configuration, hash) = read_configuration(&settings.file, settings.reload)?;
        let making = Making { places: &places, clock: &settings.clock, metrics: &metrics, rekeyed: &rekeyed };
        let in_force = InForce::new(&configuration, hash, &making)?;
        in_force.prime().await;
        metrics.in_force(&in_force.hash);
        let current = ArcSwap::from_pointee(in_force);
        Ok(Arc::new(Encryption { settings, current, places, rekeyed, metrics }))
    }

    pub fn metrics(&self) -> &Arc<EncryptionMetrics> {
        &self.metrics
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.settings.clock
    }

    /// Whether there is something to ask about its health.
    pub fn is_checked(&self) -> bool {
        self.settings.reload == Reload::Automatic || self.current.load().has_plugins()
    }

    /// Whether all plugins are well, as far as is known.
    ///
    /// # Errors
    /// What is wrong, in upstream's words.
    pub fn check(&self) -> Result<(), String> {
        self.current.load().check()
    }

    /// Why some of what is kept cannot be read for now, if that is so.
    pub fn hindered(&self) -> Option<String> {
        self.current.load().hindered()
    }

    /// Waits until values may be opened that could not be before: see [`forebay_backend::Backend::rekeyed`].
    pub fn rekeyed(&self, seen: u64) -> impl Future<Output = u64> + Send + use<> {
        let rekeyed = self.rekeyed.clone();
        async move { rekeyed.after(seen).await }
    }

    /// Whether [`Encryption::lacks`] may find something at all.
    pub fn may_lack(&self) -> bool {
        self.current.load().has_plugins()
    }

    /// What a plugin has to be asked before `kept`, found at `key`, can be opened.
    pub fn lacks(&self, key: &str, kept: &[u8]) -> Option<Lacking> {
        if !kept.starts_with(&ENCRYPTED_PREFIX) {
            return None;
        }
        let in_force = self.current.load_full();
        let (provider, data_key) = {
            let (chain, _) = in_force.of(&self.places.of(key), &self.places)?;
            let (provider, data_key) = chain.lacks(kept)?;
            (provider.clone(), data_key)
        };
        Some(Lacking { provider, data_key, _in_force: in_force })
    }

    /// What is kept of `value` at `key`.
    ///
    /// # Errors
    /// Why it cannot be sealed: it is not to be written.
    pub fn seal(&self, key: &str, value: &Bytes) -> Result<Bytes, SealError> {
        let in_force = self.current.load();
        let Some((chain, resource)) = in_force.of(&self.places.of(key), &self.places) else {
            return Ok(value.clone());
        };
        let counting = Counting { metrics: &self.metrics, clock: &self.settings.clock, resource };
        let mut kept = Vec::with_capacity(value.len() + SEALED_MORE);
        Ok(if chain.seal(value, key, &counting, &mut kept)? { kept.into() } else { value.clone() })
    }

    /// What `kept` at `key` stands for.
    ///
    /// # Errors
    /// Why it cannot be opened. One that [passes](SealError::passes) says nothing of what is kept: what is in
    /// force may be other than what was asked by [`Encryption::lacks`]. It is to be asked again.
    pub fn open(&self, key: &str, kept: &Bytes) -> Result<OpenedValue, SealError> {
        let in_force = self.current.load();
        let Some((chain, resource)) = in_force.of(&self.places.of(key), &self.places) else {
            return match kept.starts_with(&ENCRYPTED_PREFIX) {
                true => Err(IS_ENCRYPTED.into()),
                false => Ok(OpenedValue { value: kept.clone(), stale: false }),
            };
        };
        let counting = Counting { metrics: &self.metrics, clock: &self.settings.clock, resource };
        let Opened { value, stale } = chain.open(kept, key, &counting)?;
        let value = match value {
            Cow::Borrowed(_) => kept.clone(),
            Cow::Owned(value) => value.into(),
        };
        Ok(OpenedValue { value, stale })
    }
}
