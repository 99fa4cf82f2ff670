//! Tokens of service accounts: issued, and recognized.
//!
//! In: a service account and what its token is bound to; or a token. Out: a token; or who it stands for. Owns
//! which signatures have been found good, for a while. A token is judged each time it is shown: it is over
//! when its time is, or when its service account, or what it is bound to, is gone.
//!
//! Source: kubernetes v1.36.3 `pkg/serviceaccount`.

mod account;
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

use arc_swap::ArcSwap;
use forebay_apimachinery::caller::service_account_name as username;
use serde_json::{Value, json};

pub use account::{Found, Grounds, LAST_USED, UsedSecret, still_stands};
pub use jwt::{Claims, Reference};
pub use keys::{KeyError, SigningKey, TokenKeys, public_halves};

use crate::config::ServiceAccounts;
use jwt::Token;
use openid::OpenId;
use seen::Seen;

/// Who issued the tokens that are kept in Secrets.
const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// How far clocks may be apart.
pub const LEEWAY: Duration = Duration::from_secs(60);

/// Issues and recognizes.
pub struct ServiceAccountTokens {
    config: ServiceAccounts,
    // `host:port` of this server.
    address: String,
    ring: ArcSwap<Ring>,
}

/// The keys, and what depends on them: it goes when they do.
struct Ring {
    keys: TokenKeys,
    seen: Seen,
    openid: Option<OpenId>,
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
        let ring = ArcSwap::from_pointee(Ring::new(&config, &address, config.keys.clone()));
        ServiceAccountTokens { config, address, ring }
    }

    /// Of its keys those that it began with: what are used are its own.
    pub fn config(&self) -> &ServiceAccounts {
        &self.config
    }

    /// Signs and verifies with `keys` from now on. What others had signed is verified again, and others learn
    /// of these.
    pub fn replace_keys(&self, keys: TokenKeys) {
        self.ring.store(Arc::new(Ring::new(&self.config, &self.address, keys)));
    }

    /// The documents for others who verify tokens; the configuration, then the keys. `None`: the issuer is
    /// none that can be looked up.
    pub fn openid(&self) -> Option<OpenId> {
        self.ring.load().openid.clone()
    }

    /// Whether a token is ours, for one of `audiences`, and in its time. `Ok(None)`: it is somebody else's.
    ///
    /// # Errors
    /// Why it is no good, in kube-apiserver's words.
    pub fn recognize(
        &self,
        text: &str,
        audiences: &[String],
        unix_seconds: f64,
    ) -> Result<Option<Recognized>, String> {
        let Some(token) = Token::parse(text) else { return Ok(None) };
        let is_legacy = token.claims.iss == LEGACY_ISSUER;
        if !is_legacy && !self.config.issuers.contains(&token.claims.iss) {
            return Ok(None);
        }
        // One ring: what was verified with its keys is noted with them.
        let ring = self.ring.load();
        if !ring.seen.contains(text) {
            token.verify(&ring.keys.verifying)?;
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
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                listed(of_token),
                listed(audiences)
            ));
        }
        if !is_legacy {
            in_time(&claims, unix_seconds)?;
        }
        Ok(Some(Recognized { claims, audiences: common, is_legacy }))
    }

    /// The token that says what `grant` says.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn issue(&self, grant: &Grant, unix_seconds: i64) -> Result<String, KeyError> {
        jwt::sign(&self.ring.load().keys.signing, &self.claims(grant, unix_seconds))
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
    fn new(config: &ServiceAccounts, address: &str, keys: TokenKeys) -> Ring {
        let issuer = config.issuers.first().map_or("", String::as_str);
        let openid = OpenId::new(issuer, config.keys_uri.as_deref(), address, &keys.verifying);
        Ring { keys, seen: Seen::default(), openid }
    }
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
