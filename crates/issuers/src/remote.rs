//! Everybody who vouches for tokens elsewhere, as one authenticator.
//!
//! In: a token that nobody before it knew. Out: whom it stands for. What is remembered is said at once; a
//! provider's token is judged by the keys that are known; and for the rest somebody is asked, once for all
//! who wait for the same. Never: remembers what others did not say because they could not.
//!
//! Source: kubernetes v1.36.3 `pkg/kubeapiserver/authenticator/config.go`; apiserver v0.36.3
//! `pkg/authentication/token/cache`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use forebay_api::{Authenticated, Authentication, Authenticator, Eventual, Presented};
use forebay_documents::metrics::{AuthenticationMetrics, Went};
use forebay_oidc::{Issuer, Judged};
use forebay_rt::{Clock, CutOnDrop, Duration, Instant, Random, Tasks};

use crate::cache::{CacheKey, TokenCache, TokenWord};
use crate::flights::{Flights, TooMany};
use crate::generation::Generation;
use crate::limits::{AUDIENCES_MAX, JWT_TTL, LOOKUP_MAX, RELOAD_MAX, TOKEN_BYTES_MAX};
use crate::review::authenticated;
use crate::webhook::{TokenReviewer, Webhook};

/// What they are told.
pub struct RemoteTokensConfig {
    pub issuers: Vec<Issuer>,
    pub webhook: Option<TokenReviewer>,
    /// How long a webhook's word counts, be it yes or no; zero: not at all.
    pub webhook_ttl: Duration,
    /// Whom tokens are for that do not say it.
    pub api_audiences: Vec<String>,
}

/// See the module's doc. Cheap to clone.
#[derive(Clone)]
pub struct RemoteTokens(Arc<Shared>);

struct Shared {
    issuers: ArcSwap<Generation>,
    webhook: Option<Webhook>,
    webhook_ttl: Duration,
    api_audiences: Vec<String>,
    cache: TokenCache,
    // How often the issuers were replaced: what the old ones said is not found.
    epoch: AtomicU64,
    flights: Flights<Outcome>,
    clock: Clock,
    metrics: Arc<AuthenticationMetrics>,
    tasks: Tasks,
    _cut: CutOnDrop,
}

/// What came of a token, and how long that counts.
#[derive(Clone)]
struct Outcome {
    answer: Authentication,
    ttl: Option<Duration>,
}

/// Whose tokens are believed, to be replaced while the server runs.
#[derive(Clone)]
pub struct IssuersInForce(Arc<Shared>);

impl RemoteTokens {
    /// Must be called within a runtime, in which others are asked.
    ///
    /// # Errors
    /// What of the configuration cannot be used.
    pub fn new(
        config: RemoteTokensConfig,
        clock: Clock,
        random: Random,
        metrics: Arc<AuthenticationMetrics>,
    ) -> Result<RemoteTokens, String> {
        let tasks = Tasks::new();
        let issuers = Generation::new(config.issuers, &clock, &metrics)?;
        metrics.keep_issuers(&issuers.hashes());
        let webhook = config.webhook.map(|to| Webhook::new(to, clock.clone(), random));
        Ok(RemoteTokens(Arc::new(Shared {
            issuers: ArcSwap::from_pointee(issuers),
            webhook,
            webhook_ttl: config.webhook_ttl,
            api_audiences: config.api_audiences,
            cache: TokenCache::new()?,
            epoch: AtomicU64::new(0),
            flights: Flights::default(),
            clock,
            metrics,
            _cut: tasks.cut_on_drop(),
            tasks,
        })))
    }

    /// What replaces whose tokens are believed.
    pub fn issuers(&self) -> IssuersInForce {
        IssuersInForce(self.0.clone())
    }
}

impl Authenticator for RemoteTokens {
    fn authenticate<'a>(&'a self, presented: &'a Presented<'a>) -> Eventual<'a, Authentication> {
        let text = presented.token.and_then(|token| std::str::from_utf8(token).ok());
        let Some(text) = text.filter(|text| text.len() <= TOKEN_BYTES_MAX) else {
            return Eventual::Now(Authentication::NoOpinion);
        };
        if presented.audiences.len() > AUDIENCES_MAX {
            return Eventual::Now(Authentication::Refused(
                "more audiences than are asked for at once".into(),
            ));
        }
        let shared = &self.0;
        let began = shared.clock.now();
        let key = shared.cache.key(text, presented.audiences, shared.epoch.load(Ordering::Acquire));
        if let Some(word) = shared.cache.get(&key, began) {
            shared.metrics.looked_up(Went::Well, shared.clock.now() - began);
            return Eventual::Now(word.map_or(Authentication::NoOpinion, Authentication::Known));
        }
        if let Some(outcome) = shared.judged_now(text, presented.audiences, began) {
            return Eventual::Now(shared.settled(key, outcome, began));
        }
        Eventual::later(shared.clone().asked(key, text.to_owned(), presented.audiences.to_vec(), began))
    }
}

impl Shared {
    /// What comes of it without asking anybody.
    fn judged_now(&self, text: &str, audiences: &[String], began: Instant) -> Option<Outcome> {
        let judged = self.issuers.load().judge_now(text, began)?;
        match (judged, &self.webhook) {
            (Some(Judged::Known(caller, until)), _) => Some(self.known(caller, until, audiences)),
            (Some(Judged::Elsewhere(_)), _) | (_, Some(_)) => None,
            (judged, None) => Some(Outcome::of(refusal(judged), None)),
        }
    }

    /// Of a provider's token: it says not for which of our audiences it is good, and is for all of them.
    fn known(&self, caller: forebay_apimachinery::Caller, until: i64, audiences: &[String]) -> Outcome {
        // Few: whoever asks says a handful.
        let own = |asked: &&String| self.api_audiences.contains(asked);
        let audiences: Vec<String> = audiences.iter().filter(own).cloned().collect();
        if audiences.is_empty() {
            return Outcome::of(Authentication::NoOpinion, None);
        }
        let left = until.saturating_mul(1000).saturating_sub_unsigned(self.clock.unix_ms());
        let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
        let caller = Arc::new(authenticated(caller));
        Outcome::of(Authentication::Known(Authenticated { caller, audiences }), Some(left.min(JWT_TTL)))
    }

    async fn asked(
        self: Arc<Self>,
        key: CacheKey,
        text: String,
        audiences: Vec<String>,
        began: Instant,
    ) -> Authentication {
        let _waits = self.metrics.waiting();
        let own = self.clone();
        let work = move || async move { own.ask(&text, &audiences, began).await };
        match self.flights.join(key, &self.tasks, work).await {
            Ok(Some(outcome)) => self.settled(key, outcome, began),
            Ok(None) => Authentication::Refused("authentication failed unexpectedly".into()),
            Err(TooMany) => Authentication::Refused("too many tokens are being looked into".into()),
        }
    }

    async fn ask(&self, text: &str, audiences: &[String], began: Instant) -> Outcome {
        let _fetches = self.metrics.fetching();
        let outcome = tokio::select! {
            outcome = self.ask_all(text, audiences, began) => outcome,
            () = self.clock.sleep(LOOKUP_MAX) => {
                Outcome::of(Authentication::Refused("context deadline exceeded".into()), None)
            }
        };
        let went =
            if matches!(outcome.answer, Authentication::Refused(_)) { Went::Badly } else { Went::Well };
        self.metrics.fetched(went);
        outcome
    }

    /// The providers first, the webhook then.
    async fn ask_all(&self, text: &str, audiences: &[String], began: Instant) -> Outcome {
        let issuers = self.issuers.load_full();
        let judged = match issuers.judge_now(text, began) {
            Some(judged) => judged,
            None => issuers.judge(text, began).await,
        };
        let judged = match judged {
            Some(Judged::Elsewhere(of)) => issuers.judge_told(text, &of, began).await,
            judged => judged,
        };
        if let Some(Judged::Known(caller, until)) = judged {
            return self.known(caller, until, audiences);
        }
        let refused = refusal(judged);
        let Some(webhook) = &self.webhook else { return Outcome::of(refused, None) };
        match (webhook.ask(text, audiences, &self.api_audiences).await, refused) {
            (Ok(Some(known)), _) => Outcome::of(Authentication::Known(known), Some(self.webhook_ttl)),
            (Ok(None), Authentication::Refused(why)) => Outcome::of(Authentication::Refused(why), None),
            (Ok(None), _) => Outcome::of(Authentication::NoOpinion, Some(self.webhook_ttl)),
            (Err(why), Authentication::Refused(first)) => {
                Outcome::of(Authentication::Refused(format!("{first}, {why}").into()), None)
            }
            (Err(why), _) => Outcome::of(Authentication::Refused(why.into()), None),
        }
    }

    /// Remembers what may be.
    fn settled(&self, key: CacheKey, outcome: Outcome, began: Instant) -> Authentication {
        let now = self.clock.now();
        self.metrics.looked_up(Went::Badly, now - began);
        let word: Option<TokenWord> = match &outcome.answer {
            Authentication::Known(known) => Some(Some(known.clone())),
            Authentication::NoOpinion => Some(None),
            Authentication::Refused(_) => None,
        };
        if let (Some(word), Some(ttl)) = (word, outcome.ttl) {
            self.cache.put(key, word, now, ttl);
        }
        outcome.answer
    }
}

impl Outcome {
    fn of(answer: Authentication, ttl: Option<Duration>) -> Outcome {
        Outcome { answer, ttl }
    }
}

/// What is said of a token that is no provider's, or no good.
fn refusal(judged: Option<Judged>) -> Authentication {
    match judged {
        Some(Judged::Refused(why)) => Authentication::Refused(why.into()),
        Some(Judged::Unsigned) => Authentication::Refused(forebay_oidc::UNSIGNED.into()),
        // Whoever is elsewhere was asked before.
        Some(Judged::Known(..) | Judged::Elsewhere(_)) | None => Authentication::NoOpinion,
    }
}

impl IssuersInForce {
    /// Believes these issuers and no others, once it is known where the keys of all of them are: until then
    /// the old ones are believed. Must be called within a runtime. Cancel-safe: then nothing has changed.
    ///
    /// # Errors
    /// Why they are not believed; who was still is.
    pub async fn replace(&self, issuers: Vec<Issuer>) -> Result<(), String> {
        let Shared { clock, metrics, .. } = &*self.0;
        let next = Generation::new(issuers, clock, metrics)?;
        tokio::select! {
            () = next.known() => {}
            () = clock.sleep(RELOAD_MAX) => {
                return Err(next.unhealthy().unwrap_or_else(|| "context deadline exceeded".to_owned()));
            }
        }
        metrics.keep_issuers(&next.hashes());
        self.0.issuers.store(Arc::new(next));
        // Whoever was believed by the old ones is looked at again.
        self.0.epoch.fetch_add(1, Ordering::AcqRel);
        self.0.cache.clear();
        Ok(())
    }
}
