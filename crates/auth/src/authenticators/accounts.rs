//! Tokens of service accounts.

use std::sync::Arc;

use forebay_api::{Authenticated, Authentication, Authenticator, Eventual, Presented};
use forebay_rt::Clock;
use jiff::Timestamp;

use crate::config::SecretTokens;
use crate::tokens::{ExternalSigner, Grounds, Recognized, ServiceAccountTokens, TokenError, still_stands};

/// Knows those that were issued here, and looks whether what they stand on is still there. Who signs them, if
/// that is somebody else, is asked about keys that nobody knows.
pub struct Accounts<G> {
    pub tokens: Arc<ServiceAccountTokens>,
    pub grounds: G,
    pub clock: Clock,
}

impl<G: Grounds> Authenticator for Accounts<G> {
    fn authenticate<'a>(&'a self, presented: &'a Presented<'a>) -> Eventual<'a, Authentication> {
        let text = presented.token.and_then(|token| std::str::from_utf8(token).ok());
        let Some(text) = text else { return Eventual::Now(Authentication::NoOpinion) };
        match self.recognize(text, presented) {
            Ok(None) => Eventual::Now(Authentication::NoOpinion),
            Ok(Some(token)) => Eventual::later(self.looked_up(token, presented)),
            Err(why) => match self.tokens.external_signer() {
                Some(signer) if why == TokenError::UnknownKey => {
                    Eventual::later(self.known_anew(&**signer, text, presented))
                }
                _ => Eventual::Now(refused(&why)),
            },
        }
    }
}

impl<G: Grounds> Accounts<G> {
    fn recognize(&self, text: &str, presented: &Presented<'_>) -> Result<Option<Recognized>, TokenError> {
        let now = self.clock.unix_ms() as f64 / 1000.0;
        self.tokens.recognize(text, presented.audiences, now)
    }

    /// Judges a token whose key was not known once more, after who signs has been asked for its keys.
    async fn known_anew(
        &self,
        signer: &dyn ExternalSigner,
        text: &str,
        presented: &Presented<'_>,
    ) -> Authentication {
        signer.refresh().wait().await;
        match self.recognize(text, presented) {
            Ok(None) => Authentication::NoOpinion,
            Ok(Some(token)) => self.looked_up(token, presented).await,
            Err(why) => refused(&why),
        }
    }

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

fn refused(why: &TokenError) -> Authentication {
    Authentication::Refused(why.to_string().into())
}
