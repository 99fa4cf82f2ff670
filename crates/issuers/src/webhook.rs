//! A webhook that is asked about tokens.
//!
//! In: a token. Out: what the webhook says. It is asked again where upstream does: the connection was lost,
//! or it says that it cannot now. Never: more calls at once than [`Remote`] has turns for.
//!
//! Source: apiserver v0.36.3 `plugin/pkg/authenticator/token/webhook/webhook.go`,
//! `pkg/util/webhook/webhook.go`.

use bytes::Bytes;
use forebay_api::Authenticated;
use forebay_apimachinery::json::go_quote;
use forebay_rt::{Clock, Random};
use forebay_webhook_client::{Remote, RemoteAnswer};
use serde_json::Value;

use crate::fetch::beginning;
use crate::limits::{ANSWER_MAX, REVIEW_ATTEMPTS_MAX, REVIEW_PAUSE};
use crate::review::ReviewVersion;

/// Where the webhook is, and how it is spoken to.
#[derive(Debug)]
pub struct TokenReviewer {
    pub remote: Remote,
    pub version: ReviewVersion,
}

/// See the module's doc.
pub struct Webhook {
    to: TokenReviewer,
    clock: Clock,
    random: Random,
}

/// Why there is no answer.
struct Failed {
    why: String,
    /// Whether it may be asked again.
    again: bool,
}

impl Webhook {
    pub fn new(to: TokenReviewer, clock: Clock, random: Random) -> Webhook {
        Webhook { to, clock, random }
    }

    /// What it says of `token`.
    ///
    /// - `wanted`: for whom it has to be good.
    /// - `own`: whom it is good for where that is not said.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn ask(
        &self,
        token: &str,
        wanted: &[String],
        own: &[String],
    ) -> Result<Option<Authenticated>, String> {
        let question = Bytes::from(self.to.version.question(token, wanted));
        let mut pause = REVIEW_PAUSE;
        for attempt in 1.. {
            match self.call(question.clone()).await {
                Ok(answer) => return self.to.version.answer(&answer, wanted, own),
                Err(failed) if failed.again && attempt < REVIEW_ATTEMPTS_MAX => {}
                Err(Failed { why, .. }) => {
                    tracing::warn!(why, "the token webhook did not answer");
                    return Err(why);
                }
            }
            // A fifth at most on top: those who wait do not come back at once.
            let part = self.random.below(1_000) as f64 / 5_000.0;
            self.clock.sleep(pause.mul_f64(1.0 + part)).await;
            pause = pause.mul_f64(1.5);
        }
        unreachable!("it ends with the last attempt")
    }

    async fn call(&self, question: Bytes) -> Result<Bytes, Failed> {
        let posted = tokio::select! {
            posted = self.to.remote.post(question) => posted,
            () = self.clock.sleep(ANSWER_MAX) => {
                let why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
                return Err(Failed { why: why.to_owned(), again: false });
            }
        };
        match posted {
            Ok(RemoteAnswer { number: 200..=299, body, .. }) => Ok(body),
            Ok(RemoteAnswer { number, body, has_retry_after }) => {
                let again = matches!(number, 429 | 500 | 504) || has_retry_after;
                Err(Failed { why: said(number, &body), again })
            }
            Err(fault) => Err(Failed { why: fault.why, again: fault.is_lost }),
        }
    }
}

/// What a webhook says that gives no review.
fn said(code: u16, body: &[u8]) -> String {
    let status: Value = serde_json::from_slice(body).unwrap_or_default();
    match status["message"].as_str().filter(|_| status["kind"] == "Status") {
        Some(message) => message.to_owned(),
        None => format!(
            "an error on the server ({}) has prevented the request from succeeding: {code}",
            go_quote(&beginning(body))
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_as_the_webhook_says_it_or_as_it_begins() {
        let status = br#"{"kind":"Status","message":"not now"}"#;
        assert_eq!(said(500, status), "not now");
        let long = format!("<html>{}", "x".repeat(10_000));
        let told = said(502, long.as_bytes());
        assert!(told.starts_with("an error on the server (\"<html>xx") && told.len() < 400, "{told}");
        assert!(told.ends_with("has prevented the request from succeeding: 502"), "{told}");
    }
}
