//! Tokens of service accounts.

use std::sync::Arc;

use forebay_api::{Authenticated, Authentication, Authenticator, Eventual, Presented};
use forebay_rt::Clock;
use jiff::Timestamp;

use crate::config::SecretTokens;
use crate::tokens::{Grounds, Recognized, ServiceAccountTokens, still_stands};

/// Knows those that were issued here, and looks whether what they stand on is still there.
pub struct Accounts<G> {
    pub tokens: Arc<ServiceAccountTokens>,
    pub grounds: G,
    pub clock: Clock,
}

impl<G: Grounds> Authenticator for Accounts<G> {
    fn authenticate<'a>(&'a self, presented: &'a Presented<'a>) -> Eventual<'a, Authentication> {
        let text = presented.token.and_then(|token| std::str::from_utf8(token).ok());
        let Some(text) = text else { return Eventual::Now(Authentication::NoOpinion) };
        let now = self.clock.unix_ms();
        match self.tokens.recognize(text, presented.audiences, now as f64 / 1000.0) {
            Ok(None) => Eventual::Now(Authentication::NoOpinion),
            Err(why) => Eventual::Now(Authentication::Refused(why.into())),
            Ok(Some(token)) => Eventual::later(self.looked_up(token, presented)),
        }
    }
}

impl<G: Grounds> Accounts<G> {
    async fn looked_up(&self, token: Recognized, presented: &Presented<'_>) -> Authentication {
        let lookup = self.tokens.config().secret_tokens == SecretTokens::LookedUp;
        let now =
            i64::try_from(self.clock.unix_ms()).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let now = now.unwrap_or(Timestamp::MAX);
        match still_stands(&self.grounds, now, &token, presented, lookup).await {
            Ok(caller) => Authentication::Known(Authenticated {
                caller: Arc::new(caller.authenticated()),
                audiences: token.audiences,
            }),
            Err(why) => Authentication::Refused(why.into()),
        }
    }
}
