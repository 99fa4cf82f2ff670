//! The providers of one configuration, as long as it counts.
//!
//! In: issuers. Out: what becomes of a token. Dropped, everything that it does beside answering ends. Never:
//! two issuers that a token could be of.

use std::sync::Arc;

use forebay_apimachinery::json::go_quote;
use forebay_documents::metrics::AuthenticationMetrics;
use forebay_oidc::{Elsewhere, Issuer, Judged, Token};
use forebay_rt::{Clock, CutOnDrop, Instant, Tasks};

use crate::provider::Provider;

/// See the module's doc.
#[derive(Default)]
pub struct Generation {
    // One issuer each, <= ISSUERS_MAX of `oidc`.
    providers: Vec<Arc<Provider>>,
    _cut: Option<CutOnDrop>,
}

impl Generation {
    /// Must be called within a runtime.
    ///
    /// # Errors
    /// Nobody can vouch for one of them.
    pub fn new(
        issuers: Vec<Issuer>,
        clock: &Clock,
        metrics: &Arc<AuthenticationMetrics>,
    ) -> Result<Generation, String> {
        if issuers.is_empty() {
            return Ok(Generation::default());
        }
        let tasks = Tasks::new();
        let cut = Some(tasks.cut_on_drop());
        let made = issuers
            .into_iter()
            .map(|issuer| Provider::new(issuer, clock.clone(), tasks.clone(), metrics.clone()));
        let providers = made.collect::<Result<Vec<_>, _>>()?;
        providers.iter().for_each(Provider::start);
        Ok(Generation { providers, _cut: cut })
    }

    /// Whose a token says it is.
    pub fn issuer_of(&self, token: &Token<'_>) -> Option<&Arc<Provider>> {
        // Few: a configuration has 64 at most.
        self.providers.iter().find(|provider| provider.issuer.has_issued(token))
    }

    /// The hashes of all issuers.
    pub fn hashes(&self) -> std::collections::BTreeSet<String> {
        self.providers.iter().map(|provider| provider.hash.clone()).collect()
    }

    /// Waits until it is known where the keys of all of them are. Cancel-safe.
    pub async fn known(&self) {
        for provider in &self.providers {
            provider.known().await;
        }
    }

    /// Why that is not known of some.
    pub fn unhealthy(&self) -> Option<String> {
        let all: Vec<String> = self.providers.iter().filter_map(|provider| provider.unhealthy()).collect();
        match all.as_slice() {
            [] => None,
            [only] => Some(only.clone()),
            several => Some(format!("[{}]", several.join(", "))),
        }
    }

    /// What becomes of a token without asking anybody; `None`: somebody has to be asked.
    pub fn judge_now(&self, text: &str, began: Instant) -> Option<Option<Judged>> {
        let Some(token) = Token::parse(text) else { return Some(None) };
        let Some(provider) = self.issuer_of(&token) else { return Some(None) };
        provider.judge_now(&token, began).map(Some)
    }

    /// What becomes of a token of which somebody has to be asked.
    pub async fn judge(&self, text: &str, began: Instant) -> Option<Judged> {
        let token = Token::parse(text)?;
        let provider = self.issuer_of(&token)?.clone();
        Some(provider.judge(text, began).await)
    }

    /// What becomes of a token whose groups are kept elsewhere, once who keeps them was asked.
    pub async fn judge_told(&self, text: &str, of: &Elsewhere, began: Instant) -> Option<Judged> {
        let provider = self.issuer_of(&Token::parse(text)?)?.clone();
        let judged = self.told(&provider, of).await;
        Some(provider.counted(judged, began))
    }

    /// What a source says is signed by an issuer that is believed here, whichever: upstream takes what
    /// anybody signs whom the source names, and fetches their keys.
    async fn told(&self, provider: &Arc<Provider>, of: &Elsewhere) -> Judged {
        let said = match provider.sources.ask(of).await {
            Ok(said) => said,
            Err(why) => {
                let claim = go_quote(&of.claim);
                return Elsewhere::refused(format!("while getting distributed claim {claim}: {why}"));
            }
        };
        let by = match Token::of_source(&said) {
            Some(told) => self.issuer_of(&told).cloned().ok_or_else(|| {
                let issuer = go_quote(told.issuer());
                format!("verifying untrusted issuer {issuer} failed: it is none whose tokens are believed")
            }),
            None => {
                let (endpoint, claim) = (go_quote(&of.endpoint), go_quote(&of.claim));
                Err(format!(
                    "getting untrusted issuer from endpoint {endpoint} failed for claim {claim}: malformed token"
                ))
            }
        };
        match by {
            Ok(by) => by.judge_told(&provider.issuer, of, &said).await,
            Err(why) => Elsewhere::refused(why),
        }
    }
}
