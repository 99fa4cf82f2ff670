//! One provider: where its keys are, and which they are now.
//!
//! In: its issuer; tokens. Out: what becomes of a token, with the newest keys that are needed for it. Where
//! the keys are is found out once, again and again until it is known; the keys are fetched when a token was
//! signed with none of those that are known, once for all who wait, and not more often than a limit says.
//! Never: forgets keys because there are no newer ones.
//!
//! Owner: the task that finds out, and the task that fetches; what they found is published.
//!
//! Source: apiserver v0.36.3 `plugin/pkg/authenticator/token/oidc/oidc.go`; go-oidc v2.5.0 `jwks.go`.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use forebay_documents::metrics::{AuthenticationMetrics, Went};
use forebay_oidc::{Discovered, Elsewhere, Issuer, Judged, KeySet, Token, UNSIGNED};
use forebay_rt::{Clock, Instant, Tasks};
use tokio::sync::watch;

use crate::fetch::Fetcher;
use crate::hash::hash_of;
use crate::limits::{DISCOVERY_EVERY, DOCUMENT_BYTES_MAX, KEYS_EVERY_MIN};
use crate::sources::Sources;

/// See the module's doc.
pub struct Provider {
    pub issuer: Issuer,
    pub hash: String,
    /// Who keeps claims of its tokens.
    pub sources: Sources,
    fetcher: Fetcher,
    clock: Clock,
    tasks: Tasks,
    metrics: Arc<AuthenticationMetrics>,
    discovered: ArcSwapOption<Discovered>,
    keys: ArcSwap<KeySet>,
    // Why it is not known where its keys are; `None` once it is.
    health: watch::Sender<Option<String>>,
    fetching: Mutex<Fetching>,
}

#[derive(Default)]
struct Fetching {
    began: Option<Instant>,
    // Until it is over.
    running: Option<watch::Receiver<Option<Result<(), String>>>>,
}

impl Provider {
    /// - `tasks`: what it does beside answering.
    ///
    /// # Errors
    /// Nobody can vouch for its server.
    pub fn new(
        issuer: Issuer,
        clock: Clock,
        tasks: Tasks,
        metrics: Arc<AuthenticationMetrics>,
    ) -> Result<Arc<Provider>, String> {
        let fetcher = Fetcher::new(clock.clone(), &issuer.certificate_authority)?;
        let sources = Sources::new(clock.clone(), &issuer.certificate_authority)?;
        let waits = format!("oidc: authenticator for issuer {:?} is not initialized", issuer.url);
        Ok(Arc::new(Provider {
            hash: hash_of(&issuer.url),
            issuer,
            sources,
            fetcher,
            clock,
            tasks,
            metrics,
            discovered: ArcSwapOption::empty(),
            keys: ArcSwap::default(),
            health: watch::Sender::new(Some(waits)),
            fetching: Mutex::default(),
        }))
    }

    /// Begins to find out where its keys are.
    pub fn start(self: &Arc<Self>) {
        let own = self.clone();
        self.tasks.spawn("discovery of an issuer", async move { own.discover().await });
    }

    async fn discover(&self) {
        loop {
            match self.find().await {
                Ok(discovered) => {
                    self.discovered.store(Some(Arc::new(discovered)));
                    self.health.send_replace(None);
                    tracing::info!(issuer = self.issuer.url, "an issuer of tokens is known");
                    return;
                }
                Err(why) => {
                    tracing::warn!(issuer = self.issuer.url, why, "an issuer of tokens is not known yet");
                    self.health.send_replace(Some(why));
                }
            }
            self.clock.sleep(DISCOVERY_EVERY).await;
        }
    }

    async fn find(&self) -> Result<Discovered, String> {
        let document = self.fetcher.get(&self.issuer.discovery(), DOCUMENT_BYTES_MAX).await?;
        Discovered::of(&document, &self.issuer.url)
    }

    /// Waits until it is known where its keys are. Cancel-safe.
    pub async fn known(&self) {
        // It is never closed: `self` has the sender.
        let _ = self.health.subscribe().wait_for(Option::is_none).await;
    }

    /// Why it is not known where its keys are.
    pub fn unhealthy(&self) -> Option<String> {
        let why = self.health.borrow().clone()?;
        Some(format!("oidc: authenticator for issuer {:?} is not healthy: {why}", self.issuer.url))
    }

    /// What becomes of a token that says it is this issuer's, by the keys that are known; `None`, if newer
    /// ones may know better.
    pub fn judge_now(&self, token: &Token<'_>, began: Instant) -> Option<Judged> {
        if self.discovered.load().is_none() {
            return Some(
                self.counted(Judged::Refused("oidc: authenticator not initialized".to_owned()), began),
            );
        }
        match self.issuer.judge(token, &self.keys.load(), self.now_ms()) {
            Judged::Unsigned => None,
            // It is counted once its source has spoken.
            Judged::Elsewhere(of) => Some(Judged::Elsewhere(of)),
            judged => Some(self.counted(judged, began)),
        }
    }

    /// The same by the newest keys that there are.
    pub async fn judge(self: &Arc<Self>, text: &str, began: Instant) -> Judged {
        let refreshed = self.refreshed().await;
        let token = Token::parse(text);
        let judged = token.as_ref().and_then(|token| self.judge_now(token, began));
        judged.unwrap_or_else(|| {
            let why = match refreshed {
                Err(why) => {
                    format!("oidc: verify token: failed to verify signature: fetching keys {why}")
                }
                Ok(()) => UNSIGNED.to_owned(),
            };
            self.counted(Judged::Refused(why), began)
        })
    }

    /// What becomes of a token of `by`, whose source said what one of the keys of this issuer signed, or
    /// none.
    ///
    /// - `said`: a token that says that it is this issuer's.
    pub async fn judge_told(self: &Arc<Self>, by: &Issuer, of: &Elsewhere, said: &str) -> Judged {
        if self.discovered.load().is_none() {
            return Elsewhere::refused(format!("verifier not initialized for issuer: {:?}", self.issuer.url));
        }
        let judge = || {
            let told = Token::of_source(said)?;
            Some(by.judge_told(of, &told, &self.keys.load(), self.now_ms()))
        };
        match judge() {
            Some(Judged::Unsigned) | None => {}
            Some(judged) => return judged,
        }
        let refreshed = self.refreshed().await;
        match (judge(), refreshed) {
            (Some(Judged::Unsigned) | None, Err(why)) => Elsewhere::refused(format!(
                "verify distributed claim token: failed to verify signature: fetching keys {why}"
            )),
            (Some(Judged::Unsigned) | None, Ok(())) => Elsewhere::unsigned(),
            (Some(judged), _) => judged,
        }
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.clock.unix_ms()).unwrap_or(i64::MAX)
    }

    pub fn counted(&self, judged: Judged, began: Instant) -> Judged {
        let went = if matches!(judged, Judged::Known(..)) { Went::Well } else { Went::Badly };
        self.metrics.judged(&self.hash, went, self.clock.now() - began);
        judged
    }

    /// Has the keys fetched, or waits for those who fetch them, unless that was just done. Cancel-safe.
    async fn refreshed(self: &Arc<Self>) -> Result<(), String> {
        let mut running = {
            let mut fetching = self.fetching.lock().unwrap_or_else(PoisonError::into_inner);
            match &fetching.running {
                Some(running) => running.clone(),
                None => {
                    let now = self.clock.now();
                    if fetching.began.is_some_and(|began| now < began + KEYS_EVERY_MIN) {
                        return Ok(());
                    }
                    let (says, running) = watch::channel(None);
                    (fetching.began, fetching.running) = (Some(now), Some(running.clone()));
                    let own = self.clone();
                    self.tasks.spawn("keys of an issuer", async move {
                        let fetched = own.fetch().await;
                        own.fetching.lock().unwrap_or_else(PoisonError::into_inner).running = None;
                        says.send_replace(Some(fetched));
                    });
                    running
                }
            }
        };
        let fetched = running.wait_for(Option::is_some).await;
        match fetched {
            Ok(fetched) => fetched.clone().unwrap_or(Ok(())),
            Err(_) => Err("the issuer is no longer believed".to_owned()),
        }
    }

    async fn fetch(&self) -> Result<(), String> {
        let discovered = self.discovered.load_full();
        let url = discovered.map(|found| found.keys_url.clone()).unwrap_or_default();
        let document = self.fetcher.get(&url, DOCUMENT_BYTES_MAX).await;
        let read = document.map_err(|why| format!("oidc: get keys failed {why}")).and_then(|document| {
            let keys = KeySet::of(&document).map_err(|why| format!("oidc: failed to decode keys: {why}"))?;
            Ok((keys, hash_of(&String::from_utf8_lossy(&document))))
        });
        let now_ms = self.clock.unix_ms();
        match read {
            Ok((keys, hash)) => {
                self.keys.store(Arc::new(keys));
                self.metrics.keys_fetched(&self.hash, Some(hash), now_ms);
                Ok(())
            }
            Err(why) => {
                tracing::warn!(issuer = self.issuer.url, why, "the keys of an issuer were not fetched");
                self.metrics.keys_fetched(&self.hash, None, now_ms);
                Err(why)
            }
        }
    }
}
