//! Whether a token is good, and whom it makes of who shows it.
//!
//! In: an issuer, a token, keys, the time. Out: what became of it. What a token says of itself is believed
//! once it is known who says it: how it is signed is looked at first, the signature then, the claims last.
//! Never: fetches a key.
//!
//! Source: go-oidc v2.5.0 `verify.go`; apiserver v0.36.3 `plugin/pkg/authenticator/token/oidc/oidc.go`.

use forebay_apimachinery::Caller;
use forebay_apimachinery::json::go_quote;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::claims;
use crate::elsewhere::Elsewhere;
use crate::issuer::Issuer;
use crate::keys::{Algorithm, KeySet};
use crate::token::Token;

/// How far ahead a provider's clock may be where a token says from when on it is good.
const LEEWAY_SECONDS: i64 = 60;

/// What is said of a token that none of the keys has signed, the newest included.
pub const UNSIGNED: &str =
    "oidc: verify token: failed to verify signature: failed to verify id token signature";

/// What became of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Whom it stands for, and when it is over, in seconds since 1970.
    Known(Caller, i64),
    /// None of the keys signed it: there may be newer ones.
    Unsigned,
    /// Who keeps its groups has to be asked.
    Elsewhere(Box<Elsewhere>),
    Refused(String),
}

/// Why a token is not believed.
pub(crate) enum Unverified {
    Unsigned,
    Refused(String),
}

impl Issuer {
    /// Whether `token` says that it is this issuer's.
    pub fn has_issued(&self, token: &Token<'_>) -> bool {
        token.issuer() == self.url
    }

    /// What becomes of a token that says it is this issuer's.
    ///
    /// - `now_ms`: since 1970.
    pub fn judge(&self, token: &Token<'_>, keys: &KeySet, now_ms: i64) -> Judged {
        match self.verified(token, keys, now_ms) {
            Ok((claims, until)) => self.judge_claims(claims, until),
            Err(Unverified::Unsigned) => Judged::Unsigned,
            Err(Unverified::Refused(why)) => Judged::Refused(format!("oidc: verify token: {why}")),
        }
    }

    /// What a token claims that one of `keys` has signed as this issuer's are, and that is for us, and when
    /// it is over. Whose it says it is has been looked at.
    pub(crate) fn verified(
        &self,
        token: &Token<'_>,
        keys: &KeySet,
        now_ms: i64,
    ) -> Result<(Map<String, Value>, i64), Unverified> {
        let is_allowed = |algorithm| self.algorithms.contains(&algorithm);
        if !Algorithm::named(token.algorithm()).is_some_and(is_allowed) {
            let names = self.algorithms.iter().map(|one| one.name().to_owned());
            return Err(Unverified::Refused(format!(
                "oidc: id token signed with unsupported algorithm, expected {} got {}",
                listed(&names.collect::<Vec<_>>()),
                go_quote(token.algorithm())
            )));
        }
        if !keys.has_signed(token) {
            return Err(Unverified::Unsigned);
        }
        let unread = |why| Unverified::Refused(format!("oidc: failed to unmarshal claims: {why}"));
        let claims = token.claims().map_err(unread)?;
        let until = self.verify(&claims, now_ms).map_err(Unverified::Refused)?;
        Ok((claims, until))
    }

    /// When the token is over.
    fn verify(&self, claims: &Map<String, Value>, now_ms: i64) -> Result<i64, String> {
        let failed = |why: String| format!("oidc: failed to unmarshal claims: {why}");
        for name in ["sub", "nonce", "at_hash"] {
            if claims.contains_key(name) {
                claims::text(claims, name).map_err(failed)?;
            }
        }
        check_sources(claims)?;
        let audiences = claims.get("aud").map_or_else(|| Ok(Vec::new()), claims::texts).map_err(failed)?;
        let until = claims::time(claims, "exp").map_err(failed)?;
        claims::time(claims, "iat").map_err(failed)?;
        let from = claims::time(claims, "nbf").map_err(failed)?;
        // Few: a configuration's, and those of one token.
        let is_for_us = audiences.iter().any(|audience| self.audiences.contains(audience));
        if !is_for_us {
            return Err(match self.audiences.as_slice() {
                [only] => {
                    format!("oidc: expected audience {} got {}", go_quote(only), listed(&audiences))
                }
                several => {
                    let mut sorted = several.to_vec();
                    sorted.sort();
                    format!("oidc: expected audience in {} got {}", listed(&sorted), listed(&audiences))
                }
            });
        }
        let until_seconds = until.unwrap_or(i64::MIN);
        if until_seconds.saturating_mul(1000) < now_ms {
            let shown = until.map_or_else(|| "0001-01-01 00:00:00 +0000 UTC".to_owned(), shown);
            return Err(format!("oidc: token is expired (Token Expiry: {shown})"));
        }
        let now_seconds = now_ms.div_euclid(1000);
        match from {
            Some(from) if now_seconds.saturating_add(LEEWAY_SECONDS) < from => Err(format!(
                "oidc: current time {} before the nbf (not before) time: {}",
                shown(now_seconds),
                shown(from)
            )),
            _ => Ok(until_seconds),
        }
    }
}

/// # Errors
/// A claim is said to be kept elsewhere, and not where.
fn check_sources(claims: &Map<String, Value>) -> Result<(), String> {
    let Some(names) = claims.get("_claim_names").and_then(Value::as_object) else { return Ok(()) };
    let sources = claims.get("_claim_sources").and_then(Value::as_object);
    for source in names.values() {
        match source.as_str().unwrap_or_default() {
            "" => return Err("oidc: failed to obtain source from claim name".to_owned()),
            source if !sources.is_some_and(|all| all.contains_key(source)) => {
                return Err("oidc: source does not exist".to_owned());
            }
            _ => {}
        }
    }
    Ok(())
}

/// As Go prints a time.
fn shown(seconds: i64) -> String {
    match Timestamp::from_second(seconds) {
        Ok(at) => format!("{} +0000 UTC", at.strftime("%Y-%m-%d %H:%M:%S")),
        Err(_) => format!("{seconds} seconds since 1970"),
    }
}

/// `["a" "b"]`.
fn listed(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| go_quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}
