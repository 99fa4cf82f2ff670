//! Groups that a token says are kept elsewhere: distributed claims of OpenID Connect Core, section 5.6.2.
//!
//! In: claims of a token that is signed and for us; later what its source said. Out: who is to be asked, and
//! with what; then a caller. What a source says is a token like another one: signed, for us, in its time.
//! Never: asks; believes more of what it says than the one claim.
//!
//! Source: apiserver v0.36.3 `plugin/pkg/authenticator/token/oidc/oidc.go` (`claimResolver`).

use std::collections::BTreeMap;
use std::fmt;

use forebay_apimachinery::json::go_quote;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::issuer::{Issuer, Mapped};
use crate::keys::KeySet;
use crate::token::Token;
use crate::verify::{Judged, UNSIGNED, Unverified};

/// A token of which one claim has to be asked for.
#[derive(Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// The claim.
    pub claim: String,
    /// Where it is kept.
    pub endpoint: String,
    /// What is shown there; nothing, if empty.
    pub access_token: String,
    claims: Map<String, Value>,
    until: i64,
}

/// Without what is secret.
impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elsewhere")
            .field("claim", &self.claim)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Source {
    endpoint: Option<String>,
    access_token: Option<String>,
}

impl Elsewhere {
    /// Why there is no caller, as it is told.
    pub fn refused(why: impl fmt::Display) -> Judged {
        Judged::Refused(format!("oidc: could not expand distributed claims: {why}"))
    }

    /// What is said where none of the keys of its issuer signed what the source said, the newest included.
    pub fn unsigned() -> Judged {
        let words = UNSIGNED.strip_prefix("oidc: verify token: ").unwrap_or(UNSIGNED);
        Elsewhere::refused(format!("verify distributed claim token: {words}"))
    }
}

impl Issuer {
    /// Who has to be asked for the groups, if they are not in these claims.
    ///
    /// # Errors
    /// Upstream's words for claims that say it and make no sense.
    pub(crate) fn elsewhere(
        &self,
        claims: &Map<String, Value>,
    ) -> Result<Option<(String, String, String)>, String> {
        let Some(Mapped::Claim { name, .. }) = &self.groups else { return Ok(None) };
        let Some(names) = claims.get("_claim_names").filter(|_| !claims.contains_key(name)) else {
            return Ok(None);
        };
        let names: Option<BTreeMap<String, Option<String>>> =
            Deserialize::deserialize(names).map_err(|why: serde_json::Error| {
                format!("oidc: error parsing distributed claim names: {why}")
            })?;
        let sources = claims.get("_claim_sources").ok_or("oidc: no claim sources")?;
        let sources: Option<BTreeMap<String, Option<Source>>> = Deserialize::deserialize(sources)
            .map_err(|why: serde_json::Error| format!("oidc: could not parse claim sources: {why}"))?;
        let Some(source) = names.unwrap_or_default().remove(name) else { return Ok(None) };
        let source = source.unwrap_or_default();
        let found = sources.unwrap_or_default().remove(&source).ok_or_else(|| {
            format!("id token _claim_names contained a source {source} missing in _claims_sources")
        })?;
        let Source { endpoint, access_token } = found.unwrap_or_default();
        let endpoint = endpoint.filter(|endpoint| !endpoint.is_empty());
        // Without one it may be an aggregated claim, which nobody reads.
        Ok(endpoint.map(|endpoint| (name.clone(), endpoint, access_token.unwrap_or_default())))
    }

    /// What becomes of these claims of a token of this issuer.
    pub(crate) fn judge_claims(&self, claims: Map<String, Value>, until: i64) -> Judged {
        match self.elsewhere(&claims) {
            Err(why) => Elsewhere::refused(why),
            Ok(Some((claim, endpoint, access_token))) => {
                Judged::Elsewhere(Box::new(Elsewhere { claim, endpoint, access_token, claims, until }))
            }
            Ok(None) => self.judged(&claims, until),
        }
    }

    /// What becomes of a token of this issuer, now that its source has spoken.
    ///
    /// - `told`: what it said, of whichever issuer.
    /// - `keys`: that issuer's.
    pub fn judge_told(&self, of: &Elsewhere, told: &Token<'_>, keys: &KeySet, now_ms: i64) -> Judged {
        let (mut said, until) = match self.verified(told, keys, now_ms) {
            Ok(verified) => verified,
            Err(Unverified::Unsigned) => return Judged::Unsigned,
            Err(Unverified::Refused(why)) => {
                return Elsewhere::refused(format!("verify distributed claim token: {why}"));
            }
        };
        let Some(value) = said.remove(&of.claim) else {
            return Elsewhere::refused(format!(
                "jwt returned by distributed claim endpoint {} did not contain claim: {}",
                go_quote(&of.endpoint),
                of.claim
            ));
        };
        let mut claims = of.claims.clone();
        claims.insert(of.claim.clone(), value);
        self.judged(&claims, of.until.min(until))
    }

    fn judged(&self, claims: &Map<String, Value>, until: i64) -> Judged {
        match self.caller(claims) {
            Ok(caller) => Judged::Known(caller, until),
            Err(why) => Judged::Refused(why),
        }
    }
}
