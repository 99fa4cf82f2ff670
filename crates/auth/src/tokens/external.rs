//! Somebody else who signs tokens and says by which keys they are verified.
//!
//! In: claims. Out: what stands around them in a token; the keys, as that one says them now. Never: knows how
//! that one is spoken to; who implements it bounds what is waited for.
//!
//! Source: KEP-740; kubernetes v1.36.3 `pkg/serviceaccount/jwt.go` (`PublicKeysGetter`, `TokenGenerator`).

use std::fmt;
use std::sync::Arc;

use forebay_api::Eventual;

use super::keys::{KeyError, PublicHalf};

/// Who signs.
pub trait ExternalSigner: fmt::Debug + Send + Sync {
    /// The header and the signature of a token, each as it stands there.
    ///
    /// - `claims`: what stands between them, in base64url.
    ///
    /// # Errors
    /// In kube-apiserver's words. Cancel-safe.
    fn sign<'a>(&'a self, claims: &'a str) -> Eventual<'a, Result<(String, String), String>>;

    /// The keys that are known to be its, which are the same `Arc` as long as they are the same keys.
    fn keys(&self) -> Arc<[ExternalKey]>;

    /// For how long, in seconds, others may go by what is told of its keys.
    fn keys_age_max(&self) -> u64;

    /// Asks it for its keys once more: ready when there is an answer to a question that was put after this
    /// call, or when it is not waited for any longer. Cancel-safe.
    fn refresh(&self) -> Eventual<'_, ()>;
}

/// A key of somebody else's.
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalKey {
    pub half: PublicHalf,
    pub told: ToldToOthers,
}

/// Whether others who verify tokens learn of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToldToOthers {
    Yes,
    /// It is believed here alone, of tokens that were signed before.
    No,
}

impl ExternalKey {
    /// - `id`: what tokens call it.
    /// - `spki`: a `SubjectPublicKeyInfo`, DER.
    ///
    /// # Errors
    /// [`KeyError::Unsupported`].
    pub fn new(id: String, spki: &[u8], told: ToldToOthers) -> Result<ExternalKey, KeyError> {
        let half = PublicHalf::of_spki(spki)?.called(id);
        if half.is_sound() { Ok(ExternalKey { half, told }) } else { Err(KeyError::Unsupported) }
    }

    pub fn id(&self) -> &str {
        &self.half.id
    }
}

impl fmt::Debug for ExternalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalKey")
            .field("id", &self.half.id)
            .field("told", &self.told)
            .finish_non_exhaustive()
    }
}
