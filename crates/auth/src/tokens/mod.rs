//! Tokens of service accounts: issued, and recognized.
//!
//! In: a service account and what its token is bound to; or a token. Out: a token; or who it stands for. Owns
//! which signatures have been found good, for a while. A token is judged each time it is shown: it is over
//! when its time is, or when its service account, or what it is bound to, is gone. Somebody else may sign,
//! and say which keys verify ([`ExternalSigner`]).
//!
//! Source: kubernetes v1.36.3 `pkg/serviceaccount`.

mod account;
mod external;
#[cfg(test)]
mod external_tests;
mod jwt;
mod keys;
pub mod openid;
mod p521;
mod seen;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod uses_tests;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use forebay_api::Eventual;
use forebay_apimachinery::caller::service_account_name as username;
use serde_json::{Value, json};

pub use account::{Found, Grounds, LAST_USED, UsedSecret, still_stands};
pub use external::{ExternalKey, ExternalSigner, ToldToOthers};
pub use jwt::{Claims, Reference};
pub use keys::{KeyError, SigningKey, TokenKeys, public_halves};

use crate::config::{AccountKeys, ServiceAccounts};
use jwt::{Token, Unverified};
use keys::PublicHalf;
use openid::OpenId;
use seen::Seen;

/// Who issued the tokens that are kept in Secrets.
const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// How far clocks may be apart.
pub const LEEWAY: Duration = Duration::from_secs(60);
/// For how long, in seconds, others may go by what is told of this server's own keys, as upstream has it.
const OWN_KEYS_AGE_MAX: u64 = 3600;

/// Issues and recognizes.
pub struct ServiceAccountTokens {
    config: ServiceAccounts,
    // `host:port` of this server.
    address: String,
    ring: ArcSwap<Ring>,
}

/// The keys, and what depends on them: it goes when they do.
struct Ring {
    verifying: Vec<PublicHalf>,
    signs: Signs,
    seen: Seen,
    openid: Option<OpenId>,
}

/// Who signs.
enum Signs {
    Here(Arc<SigningKey>),
    /// Somebody else, of whose keys as they are here the ring is made.
    Elsewhere(Arc<[ExternalKey]>),
}

/// Why a token is no good, in kube-apiserver's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It names a key that is not known.
    #[error("invalid signature, no keys found")]
    UnknownKey,
    #[error("{0}")]
    Refused(String),
}

/// A token that is ours and in its time.
#[derive(Clone, Debug)]
pub struct Recognized {
    pub claims: Claims,
    /// Those of the audiences asked for that it is for.
    pub audiences: Vec<String>,
    /// It is kept in a Secret.
    pub is_legacy: bool,
}

/// What a new token says.
pub struct Grant {
    pub namespace: String,
    pub account: Reference,
    pub pod: Option<Reference>,
    pub secret: Option<Reference>,
    pub node: Option<Reference>,
    pub audiences: Vec<String>,
    pub expires_in_seconds: i64,
    /// Until then it should have been replaced.
    pub warn_after_seconds: Option<i64>,
    pub id: String,
}

impl ServiceAccountTokens {
    /// - `address`: `host:port` at which others reach this server.
    pub fn new(config: ServiceAccounts, address: String) -> ServiceAccountTokens {
        let ring = match &config.keys {
            AccountKeys::Own(keys) => Ring::own(&config, &address, keys.clone()),
            AccountKeys::External(signer) => Ring::external(&config, &address, signer.keys(), None),
        };
        ServiceAccountTokens { config, address, ring: ArcSwap::from_pointee(ring) }
    }

    /// Of its keys those that it began with: what are used are its own.
    pub fn config(&self) -> &ServiceAccounts {
        &self.config
    }

    /// Signs and verifies with `keys` from now on. What others had signed is verified again, and others learn
    /// of these. Not where somebody else signs.
    pub fn replace_keys(&self, keys: TokenKeys) {
        if let AccountKeys::Own(_) = self.config.keys {
            self.ring.store(Arc::new(Ring::own(&self.config, &self.address, keys)));
        }
    }

    /// The documents for others who verify tokens; the configuration, then the keys. `None`: the issuer is
    /// none that can be looked up, or none of its keys was ever to be told.
    pub fn openid(&self) -> Option<OpenId> {
        self.ring().openid.clone()
    }

    /// For how long, in seconds, others may go by these documents.
    pub fn openid_age_max(&self) -> u64 {
        match &self.config.keys {
            AccountKeys::Own(_) => OWN_KEYS_AGE_MAX,
            AccountKeys::External(signer) => signer.keys_age_max(),
        }
    }

    /// The keys as they are now. Those of somebody else are looked at each time: whoever comes first once
    /// they are others makes a new ring of them.
    fn ring(&self) -> Guard<Arc<Ring>> {
        let ring = self.ring.load();
        let (AccountKeys::External(signer), Signs::Elsewhere(of)) = (&self.config.keys, &ring.signs) else {
            return ring;
        };
        let keys = signer.keys();
        if Arc::ptr_eq(of, &keys) {
            return ring;
        }
        let made = Arc::new(Ring::external(&self.config, &self.address, keys, ring.openid.clone()));
        self.ring.store(made.clone());
        Guard::from_inner(made)
    }

    /// Whether a token is ours, for one of `audiences`, and in its time. `Ok(None)`: it is somebody else's.
    ///
    /// # Errors
    /// Why it is no good.
    pub fn recognize(
        &self,
        text: &str,
        audiences: &[String],
        unix_seconds: f64,
    ) -> Result<Option<Recognized>, TokenError> {
        let Some(token) = Token::parse(text) else { return Ok(None) };
        let is_legacy = token.claims.iss == LEGACY_ISSUER;
        if !is_legacy && !self.config.issuers.contains(&token.claims.iss) {
            return Ok(None);
        }
        // One ring: what was verified with its keys is noted with them.
        let ring = self.ring();
        if !ring.seen.contains(text) {
            token.verify(&ring.verifying).map_err(|why| match why {
                Unverified::UnknownKey => TokenError::UnknownKey,
                Unverified::Forged => {
                    TokenError::Refused("go-jose/go-jose: error in cryptographic primitive".to_owned())
                }
            })?;
            ring.seen.insert(text);
        }
        drop(ring);
        let claims = token.claims;
        let of_token = match claims.aud.as_slice() {
            [] => &self.config.api_audiences,
            own => own,
        };
        let known: HashSet<&String> = of_token.iter().collect();
        let common: Vec<String> = audiences.iter().filter(|asked| known.contains(asked)).cloned().collect();
        if common.is_empty() {
            return Err(TokenError::Refused(format!(
                "token audiences {} is invalid for the target audiences {}",
                listed(of_token),
                listed(audiences)
            )));
        }
        if !is_legacy {
            in_time(&claims, unix_seconds).map_err(TokenError::Refused)?;
        }
        Ok(Some(Recognized { claims, audiences: common, is_legacy }))
    }

    /// Who may know a key that is not known here.
    pub fn external_signer(&self) -> Option<&Arc<dyn ExternalSigner>> {
        match &self.config.keys {
            AccountKeys::Own(_) => None,
            AccountKeys::External(signer) => Some(signer),
        }
    }

    /// The token that says what `grant` says; at once, unless somebody else signs it.
    ///
    /// # Errors
    /// The system gives no random numbers. What is wrong with who signs, in kube-apiserver's words.
    pub fn issue(&self, grant: &Grant, unix_seconds: i64) -> Eventual<'_, Result<String, String>> {
        let claims = self.claims(grant, unix_seconds);
        if let AccountKeys::External(signer) = &self.config.keys {
            return Eventual::later(async move {
                let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
                let (header, signature) = signer.sign(&claims).wait().await?;
                Ok(format!("{header}.{claims}.{signature}"))
            });
        }
        Eventual::Now(match &self.ring().signs {
            Signs::Here(key) => jwt::sign(key, &claims).map_err(|why| why.to_string()),
            Signs::Elsewhere(_) => Err("nobody signs here".to_owned()),
        })
    }

    fn claims(&self, grant: &Grant, now: i64) -> Value {
        let reference = |to: &Reference| {
            let mut named = json!({ "name": to.name });
            if !to.uid.is_empty() {
                named["uid"] = json!(to.uid);
            }
            named
        };
        let mut bound = json!({ "namespace": grant.namespace, "serviceaccount": reference(&grant.account) });
        for (member, to) in [("pod", &grant.pod), ("secret", &grant.secret), ("node", &grant.node)] {
            if let Some(to) = to {
                bound[member] = reference(to);
            }
        }
        if let Some(seconds) = grant.warn_after_seconds {
            bound["warnafter"] = json!(now + seconds);
        }
        json!({
            "aud": grant.audiences,
            "exp": now + grant.expires_in_seconds,
            "iat": now,
            "iss": self.config.issuers.first(),
            "jti": grant.id,
            "kubernetes.io": bound,
            "nbf": now,
            "sub": username(&grant.namespace, &grant.account.name),
        })
    }
}

impl Ring {
    fn own(config: &ServiceAccounts, address: &str, keys: TokenKeys) -> Ring {
        let openid = openid(config, address, &keys.verifying);
        Ring { verifying: keys.verifying, signs: Signs::Here(keys.signing), seen: Seen::default(), openid }
    }

    /// - `before`: what was told of the keys before these. It stays while none of them may be told, as
    ///   upstream.
    fn external(
        config: &ServiceAccounts,
        address: &str,
        keys: Arc<[ExternalKey]>,
        before: Option<OpenId>,
    ) -> Ring {
        let is_told = |key: &&ExternalKey| key.told == ToldToOthers::Yes;
        let told: Vec<PublicHalf> = keys.iter().filter(is_told).map(|key| key.half.clone()).collect();
        let openid = if told.is_empty() { before } else { openid(config, address, &told) };
        let verifying = keys.iter().map(|key| key.half.clone()).collect();
        Ring { verifying, signs: Signs::Elsewhere(keys), seen: Seen::default(), openid }
    }
}

fn openid(config: &ServiceAccounts, address: &str, keys: &[PublicHalf]) -> Option<OpenId> {
    let issuer = config.issuers.first().map_or("", String::as_str);
    OpenId::new(issuer, config.keys_uri.as_deref(), address, keys)
}

fn in_time(claims: &Claims, now: f64) -> Result<(), String> {
    let leeway = LEEWAY.as_secs_f64();
    let is_early = |from: Option<f64>| from.is_some_and(|from| now + leeway < from);
    if is_early(claims.nbf) {
        return Err("service account token is not valid yet".into());
    }
    if claims.exp.is_some_and(|until| now - leeway > until) {
        return Err("service account token has expired".into());
    }
    if is_early(claims.iat) {
        return Err("service account token is issued in the future".into());
    }
    Ok(())
}

/// `["a" "b"]`.
fn listed(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| forebay_apimachinery::json::go_quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}
