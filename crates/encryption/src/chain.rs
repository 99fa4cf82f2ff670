//! Providers in order, each with what its values begin with: the first one writes, and whichever fits reads.
//!
//! In: a value or what is kept of it, and its key. Out: the other of both; of what is read, whether it is to
//! be written anew. Never: which resource it is of.
//!
//! Source: apiserver v0.36.3 `storage/value/transformer.go` (`prefixTransformers`), `encrypt/identity`.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use forebay_schema::builtin::protobuf::ENCRYPTED_PREFIX;

use crate::ciphers::{BoxKey, CbcKey, GcmKey};
use crate::failed::SealError;
use crate::kms::{DataKeyRef, KmsProvider};
use crate::metrics::{Counting, Direction};

/// See the module's doc. Never empty.
pub struct Chain {
    links: Vec<Arc<Link>>,
    /// What is said of a value that fits none.
    none: &'static str,
}

/// A provider, or a key of one. Resources of one rule share it.
pub struct Link {
    prefix: Arc<str>,
    with: With,
}

enum With {
    /// As it is, unless it is encrypted.
    Identity,
    /// Keys by name.
    Keys(Chain),
    Gcm(GcmKey),
    Cbc(CbcKey),
    Secretbox(BoxKey),
    Kms(Arc<KmsProvider>),
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened<'a> {
    pub value: Cow<'a, [u8]>,
    /// It is kept as it would not be written now.
    pub stale: bool,
}

/// A key of a cipher.
pub enum CipherKey {
    Gcm(GcmKey),
    Cbc(CbcKey),
    Secretbox(BoxKey),
}

/// What a provider does, for a chain.
pub enum Provider {
    Identity,
    /// - the prefix, and keys by name.
    Keys(&'static str, Vec<(String, CipherKey)>),
    Kms(Arc<KmsProvider>),
}

impl Chain {
    /// Of the providers of a resource, all rules together.
    pub fn new(links: Vec<Arc<Link>>) -> Chain {
        Chain { links, none: "no matching prefix found" }
    }

    /// Appends what is kept of `value` at `key`. Whether it is another than the value, which is not appended.
    ///
    /// # Errors
    /// Why it cannot be sealed. It is not to be written then.
    pub fn seal(
        &self,
        value: &[u8],
        key: &str,
        counting: &Counting<'_>,
        kept: &mut Vec<u8>,
    ) -> Result<bool, SealError> {
        let Some(first) = self.links.first() else { return Err("there is no provider".into()) };
        kept.extend_from_slice(first.prefix.as_bytes());
        counting.timed(Direction::ToStorage, &first.prefix, || first.seal(value, key, counting, kept))
    }

    /// What `kept` at `key` stands for.
    ///
    /// # Errors
    /// What each provider says that it fits.
    pub fn open<'a>(
        &self,
        kept: &'a [u8],
        key: &str,
        counting: &Counting<'_>,
    ) -> Result<Opened<'a>, SealError> {
        let mut failures: Vec<SealError> = Vec::new();
        for (place, link) in self.links.iter().enumerate() {
            let Some(rest) = kept.strip_prefix(link.prefix.as_bytes()) else { continue };
            if link.prefix.is_empty() && rest.starts_with(&ENCRYPTED_PREFIX) {
                // It is for another one.
                continue;
            }
            let label = if link.prefix.is_empty() { &*IDENTITY } else { &link.prefix };
            match counting.timed(Direction::FromStorage, label, || link.open(rest, key, counting)) {
                Ok(opened) => return Ok(Opened { stale: opened.stale || place != 0, ..opened }),
                Err(failure) => failures.push(failure),
            }
        }
        if failures.is_empty() {
            let none = SealError::new(self.none);
            counting.failed(Direction::FromStorage, &UNKNOWN, &none);
            return Err(none);
        }
        Err(all_of(failures))
    }

    /// What has to be asked of a plugin before `kept` can be read.
    pub fn lacks(&self, kept: &[u8]) -> Option<(&Arc<KmsProvider>, DataKeyRef)> {
        self.links.iter().find_map(|link| {
            let With::Kms(provider) = &link.with else { return None };
            let rest = kept.strip_prefix(link.prefix.as_bytes())?;
            provider.lacks(rest).map(|lacking| (provider, lacking))
        })
    }
}

static IDENTITY: LazyLock<Arc<str>> = LazyLock::new(|| "identity".into());
static UNKNOWN: LazyLock<Arc<str>> = LazyLock::new(|| "unknown".into());

impl Link {
    pub fn new(provider: Provider) -> Link {
        match provider {
            Provider::Identity => Link { prefix: "".into(), with: With::Identity },
            Provider::Kms(kms) => Link { prefix: kms.prefix().into(), with: With::Kms(kms) },
            Provider::Keys(prefix, keys) => {
                let none = match keys.first() {
                    Some((_, CipherKey::Secretbox(_))) => {
                        "no matching key was found for the provided Secretbox transformer"
                    }
                    _ => "no matching key was found for the provided AES transformer",
                };
                let links = keys.into_iter().map(|(name, key)| {
                    let with = match key {
                        CipherKey::Gcm(key) => With::Gcm(key),
                        CipherKey::Cbc(key) => With::Cbc(key),
                        CipherKey::Secretbox(key) => With::Secretbox(key),
                    };
                    Arc::new(Link { prefix: format!("{name}:").into(), with })
                });
                Link { prefix: prefix.into(), with: With::Keys(Chain { links: links.collect(), none }) }
            }
        }
    }

    fn seal(
        &self,
        value: &[u8],
        key: &str,
        counting: &Counting<'_>,
        kept: &mut Vec<u8>,
    ) -> Result<bool, SealError> {
        match &self.with {
            With::Identity => return Ok(false),
            With::Keys(keys) => return keys.seal(value, key, counting, kept),
            With::Gcm(gcm) => gcm.seal(value, key.as_bytes(), kept)?,
            With::Cbc(cbc) => cbc.seal(value, kept)?,
            With::Secretbox(secretbox) => secretbox.seal(value, kept)?,
            With::Kms(provider) => provider.seal(value, key, kept)?,
        }
        Ok(true)
    }

    fn open<'a>(&self, kept: &'a [u8], key: &str, counting: &Counting<'_>) -> Result<Opened<'a>, SealError> {
        let fresh = |value| Opened { value: Cow::Owned(value), stale: false };
        Ok(match &self.with {
            With::Identity => Opened { value: Cow::Borrowed(kept), stale: false },
            With::Keys(keys) => keys.open(kept, key, counting)?,
            With::Gcm(gcm) => fresh(gcm.open(kept, key.as_bytes())?),
            With::Cbc(cbc) => fresh(cbc.open(kept)?),
            With::Secretbox(secretbox) => fresh(secretbox.open(kept)?),
            With::Kms(provider) => {
                let (value, stale) = provider.open(kept, key)?;
                Opened { value: Cow::Owned(value), stale }
            }
        })
    }
}

/// Several failures as upstream tells them together.
fn all_of(mut failures: Vec<SealError>) -> SealError {
    let passes = failures.iter().any(|failure| failure.passes);
    let status = failures.iter().map(|failure| failure.status).find(|status| *status != "unknown-non-grpc");
    let mut told: Vec<String> = Vec::new();
    for failure in &failures {
        // Few: keys and providers of one resource by the same prefix.
        if !told.contains(&failure.why) {
            told.push(failure.why.clone());
        }
    }
    match failures.pop() {
        Some(only) if told.len() == 1 => SealError { passes, ..only },
        _ => SealError {
            why: format!("[{}]", told.join(", ")),
            status: status.unwrap_or("unknown-non-grpc"),
            passes,
        },
    }
}
