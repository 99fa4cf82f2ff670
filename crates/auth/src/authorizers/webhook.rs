//! A webhook that authorizes.
//!
//! In: a question. Out: what the webhook says of it, or said a while ago; what its failure policy says where
//! it cannot be asked. It is asked again a few times where that may help, and for no longer than whoever asks
//! waits. Never: keeps an error; opens a connection, which a [`CarriesReviews`] does.
//!
//! Source: apiserver v0.36.3 `plugin/pkg/authorizer/webhook/webhook.go`, `pkg/util/webhook/webhook.go`.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use forebay_api::{Authorizer, Because, BoxFuture, Decision, Eventual, Rules, Undecided};
use forebay_apimachinery::{Attributes, Caller};
use forebay_authorization::{
    AuthorizationMetrics, KeptAnswers, MatchConditions, OnWebhookError, ReviewStatus, SubjectReview,
    WebhookAuthorizerConfig, WebhookCall, status_of_answer,
};
use forebay_rt::{Clock, Instant, Random};

use crate::limits::{WEBHOOK_CALLS_MAX, WEBHOOK_PAUSE};

/// Carries a review to its webhook. Whoever waits no longer drops the future, and the call is given up.
pub trait CarriesReviews: Send + Sync {
    fn carry(&self, review: Bytes) -> BoxFuture<'_, Result<CarriedReview, NotCarried>>;
}

/// What came back.
#[derive(Clone, Debug)]
pub struct CarriedReview {
    pub number: u16,
    pub body: Bytes,
}

/// Why nothing did.
#[derive(Clone, Debug)]
pub struct NotCarried {
    pub why: String,
    /// Whether the connection was lost, so that another may do.
    pub is_lost: bool,
}

/// See the module's doc.
pub struct AuthorizationWebhook {
    name: Arc<str>,
    config: WebhookAuthorizerConfig,
    conditions: MatchConditions,
    carrier: Arc<dyn CarriesReviews>,
    metrics: Arc<AuthorizationMetrics>,
    clock: Clock,
    random: Random,
    began: Instant,
    // Locked for a few lines.
    kept: Mutex<KeptAnswers>,
}

/// Why a webhook did not answer, and as what that counts.
struct Failed {
    why: String,
    call: WebhookCall,
    is_for_a_moment: bool,
}

impl AuthorizationWebhook {
    /// - `conditions`: of `config`, compiled.
    pub fn new(
        name: &str,
        config: WebhookAuthorizerConfig,
        conditions: MatchConditions,
        carrier: Arc<dyn CarriesReviews>,
        metrics: Arc<AuthorizationMetrics>,
        (clock, random): (Clock, Random),
    ) -> AuthorizationWebhook {
        let (began, kept) = (clock.now(), Mutex::default());
        let name = name.into();
        AuthorizationWebhook { name, config, conditions, carrier, metrics, clock, random, began, kept }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn kept(&self) -> MutexGuard<'_, KeptAnswers> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A moment as answers are kept by.
    fn moment(&self) -> Duration {
        self.clock.now().duration_since(self.began)
    }

    /// Whether it is to be asked at all.
    fn is_asked(&self, review: &SubjectReview) -> Result<bool, String> {
        if self.conditions.is_empty() {
            return Ok(true);
        }
        let started = self.clock.now();
        let result = self.conditions.hold(&review.seen());
        self.metrics.conditions(&self.name, self.clock.now().duration_since(started), &result);
        result
    }

    /// What comes of it that it cannot be asked.
    fn undecided(&self, error: String) -> Decision {
        let is_final = self.config.on_error == OnWebhookError::Deny;
        Decision::Undecided(Box::new(Undecided { is_final, because: Because::Unsaid, error }))
    }

    async fn ask(&self, review: &SubjectReview, key: &str) -> Decision {
        // Nothing is begun for who looks only whether the answer is there.
        tokio::task::yield_now().await;
        match self.answer(review).await {
            Ok(status) => {
                self.keep(review, key, &status);
                decided(status)
            }
            Err(Failed { why, call, .. }) => {
                tracing::warn!(webhook = &*self.name, why, "a webhook that authorizes cannot be asked");
                if self.config.on_error == OnWebhookError::NoOpinion {
                    self.metrics.failed_open(&self.name, call);
                }
                self.undecided(why)
            }
        }
    }

    fn keep(&self, review: &SubjectReview, key: &str, status: &ReviewStatus) {
        let WebhookAuthorizerConfig { authorized_ttl, unauthorized_ttl, .. } = &self.config;
        let ttl = if status.allowed { authorized_ttl } else { unauthorized_ttl };
        if let Some(ttl) = ttl.filter(|_| review.is_kept()) {
            let until = self.moment().saturating_add(ttl);
            self.kept().keep(key, status.clone(), until);
        }
    }

    /// Asks, and again where that may help.
    async fn answer(&self, review: &SubjectReview) -> Result<ReviewStatus, Failed> {
        let body = Bytes::from(review.body(self.config.version));
        let mut pause = WEBHOOK_PAUSE;
        for call in 1.. {
            match self.call(body.clone()).await {
                Ok(status) => return Ok(status),
                Err(failed) if failed.is_for_a_moment && call < WEBHOOK_CALLS_MAX => {}
                Err(failed) => return Err(failed),
            }
            // A fifth more or less, so that servers do not come all at once.
            let micros = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
            self.clock.sleep(pause + Duration::from_micros(self.random.below(micros / 5 + 1))).await;
            pause = pause * 3 / 2;
        }
        unreachable!("it ends with the last call")
    }

    async fn call(&self, body: Bytes) -> Result<ReviewStatus, Failed> {
        let mut counting = Counting { of: self, started: self.clock.now(), call: WebhookCall::Canceled };
        let carried = tokio::select! {
            biased;
            carried = self.carrier.carry(body) => carried,
            () = self.clock.sleep(self.config.timeout) => {
                counting.call = WebhookCall::Timeout;
                let why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)".to_owned();
                return Err(Failed { why, call: WebhookCall::Timeout, is_for_a_moment: false });
            }
        };
        let answer = match carried {
            Ok(CarriedReview { number, body }) => status_of_answer(number, &body, self.config.version)
                .map_err(|(why, is_for_a_moment)| {
                    let call = if number == TIMED_OUT { WebhookCall::Timeout } else { WebhookCall::Error };
                    Failed { why, call, is_for_a_moment }
                }),
            Err(NotCarried { why, is_lost }) => {
                Err(Failed { why, call: WebhookCall::Error, is_for_a_moment: is_lost })
            }
        };
        counting.call = answer.as_ref().map_or_else(|failed| failed.call, |_| WebhookCall::Success);
        answer
    }
}

/// The code by which a server says that its time was over.
const TIMED_OUT: u16 = 504;

/// A call that is counted however it ends.
struct Counting<'w> {
    of: &'w AuthorizationWebhook,
    started: Instant,
    call: WebhookCall,
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        let took = self.of.clock.now().duration_since(self.started);
        self.of.metrics.called(&self.of.name, self.call, took);
    }
}

fn decided(status: ReviewStatus) -> Decision {
    let because = match &*status.reason {
        "" => Because::Unsaid,
        _ => Because::Shared(Arc::new(status.reason)),
    };
    match (status.denied, status.allowed) {
        (true, true) => {
            let error = "webhook subject access review returned both allow and deny response".to_owned();
            Decision::Undecided(Box::new(Undecided { is_final: true, because, error }))
        }
        (true, false) => Decision::Deny(because),
        (false, true) => Decision::Allow(because),
        (false, false) => Decision::NoOpinion(because),
    }
}

impl fmt::Debug for AuthorizationWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizationWebhook").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Authorizer for AuthorizationWebhook {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        let review = SubjectReview::of(asked);
        match self.is_asked(&review) {
            Ok(true) => {}
            Ok(false) => return Eventual::Now(Decision::NoOpinion(Because::Unsaid)),
            Err(why) => return Eventual::Now(self.undecided(why)),
        }
        let key = review.key();
        if let Some(status) = self.kept().get(&key, self.moment()) {
            return Eventual::Now(decided(status));
        }
        Eventual::later(async move { self.ask(&review, &key).await })
    }

    fn rules(&self, _: &Caller, _: &str, rules: &mut Rules) {
        rules.incomplete = true;
        rules.errors.push("webhook authorizer does not support user rule resolution".to_owned());
    }
}

#[cfg(test)]
#[path = "webhook_tests.rs"]
mod tests;
