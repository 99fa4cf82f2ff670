//! Authenticators, and the chain of them.
//!
//! In: what a request presents, or a token that is asked about. Out: who asks, or that the credentials are no
//! good. As in kube-apiserver the certificate is tried first, and a good token makes up for a bad
//! certificate. A new one is a file here and a line in [`Authenticators::new`].
//!
//! Source: apiserver v1.36.3 `authentication/request/union/union.go`.

pub(crate) mod accounts;
mod bootstrap;
mod further;
mod shown;
mod token_file;

use std::borrow::Cow;
use std::sync::Arc;

use forebay_api::{Authenticated, Authentication, Authenticator, Presented, TokenUse, TokenUses};
use forebay_rt::Clock;
use rustls::pki_types::CertificateDer;

use crate::asker::Asker;
use crate::certificates::{Credentials, Peer};
use crate::tokens::{Grounds, ServiceAccountTokens};
use accounts::Accounts;
use bootstrap::BootstrapTokens;
pub use further::{BootstrapTokenUse, FurtherAuthentication};
use shown::ShownCertificate;
use token_file::TokenFile;

/// The chain.
pub struct Authenticators {
    chain: Vec<Arc<dyn Authenticator>>,
    credentials: Arc<Credentials>,
    clock: Clock,
    // Whom a token is for that does not say it, and who asks for nobody in particular.
    api_audiences: Vec<String>,
}

/// There were credentials, and none of them is good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unauthorized(pub String);

impl Authenticators {
    /// Of tokens those that are known here come first, because others are asked about the rest, which costs
    /// more.
    ///
    /// - `grounds`: what tokens stand on that are kept here.
    pub fn new<G: Grounds + Clone + 'static>(
        clock: Clock,
        credentials: Arc<Credentials>,
        accounts: Arc<ServiceAccountTokens>,
        grounds: G,
        further: &FurtherAuthentication,
    ) -> Authenticators {
        let api_audiences = accounts.config().api_audiences.clone();
        let mut chain: Vec<Arc<dyn Authenticator>> = vec![
            Arc::new(ShownCertificate),
            Arc::new(TokenFile { credentials: credentials.clone(), api_audiences: api_audiences.clone() }),
            Arc::new(Accounts { tokens: accounts, grounds: grounds.clone(), clock: clock.clone() }),
        ];
        if further.bootstrap_tokens == BootstrapTokenUse::Believed {
            let (clock, api_audiences) = (clock.clone(), api_audiences.clone());
            chain.push(Arc::new(BootstrapTokens { grounds, clock, api_audiences }));
        }
        chain.extend(further.remote.clone());
        Authenticators { chain, credentials, clock, api_audiences }
    }

    /// A client that showed `chain`.
    pub fn peer(&self, chain: &[CertificateDer<'_>]) -> Peer {
        Peer::new(&self.credentials, &self.clock, chain)
    }

    /// Who asks, or [`Unauthorized`]; and how the token is used, if that is one of a service account.
    ///
    /// - `token`: a bearer token.
    pub async fn authenticate(
        &self,
        peer: &Peer,
        token: Option<&[u8]>,
    ) -> (Result<Asker, Unauthorized>, Vec<TokenUse>) {
        let (uses, audiences) = (TokenUses::default(), &*self.api_audiences);
        let presented = Presented { certificate: Some(peer), token, audiences, uses: Some(&uses) };
        let known = self.ask(&presented).await;
        let known = known.inspect_err(|why| tracing::debug!(%why, "credentials refused"));
        let asker = known.map(|known| known.map_or(Asker::Anonymous, |known| Asker::Known(known.caller)));
        (asker, uses.heard())
    }

    /// Whom a token stands for at any of `audiences`, or here when there are none.
    ///
    /// # Errors
    /// Why it stands for nobody.
    pub async fn review(&self, token: &str, audiences: &[String]) -> Result<Authenticated, Unauthorized> {
        // As in a header, a token ends at the first space.
        let token = token.trim().split(' ').next().unwrap_or("").as_bytes();
        let audiences = if audiences.is_empty() { &self.api_audiences } else { audiences };
        let presented = Presented { certificate: None, token: Some(token), audiences, uses: None };
        let known = self.ask(&presented).await?;
        known.ok_or_else(|| unknown(true, Vec::new()))
    }

    /// `None`: there are no credentials.
    async fn ask(&self, presented: &Presented<'_>) -> Result<Option<Authenticated>, Unauthorized> {
        let mut refusals = Vec::new();
        for member in &self.chain {
            match member.authenticate(presented).wait().await {
                Authentication::Known(known) => return Ok(Some(known)),
                Authentication::NoOpinion => {}
                Authentication::Refused(why) => refusals.push(why),
            }
        }
        let has_token = presented.token.is_some();
        if has_token || !refusals.is_empty() { Err(unknown(has_token, refusals)) } else { Ok(None) }
    }
}

/// - `has_token`: there was a token, of which whoever looked at it and did not know it says so.
fn unknown(has_token: bool, mut refusals: Vec<Cow<'static, str>>) -> Unauthorized {
    if has_token {
        refusals.insert(0, "invalid bearer token".into());
    }
    Unauthorized(match refusals.as_slice() {
        [only] => only.to_string(),
        several => format!("[{}]", several.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use forebay_api::Eventual;
    use forebay_apimachinery::Caller;

    use super::*;

    /// Says what it is told to.
    struct Says(fn() -> Authentication);

    impl Authenticator for Says {
        fn authenticate<'a>(&'a self, _: &'a Presented<'a>) -> Eventual<'a, Authentication> {
            Eventual::later(async { (self.0)() })
        }
    }

    #[tokio::test]
    async fn the_first_that_knows_somebody_is_believed_whatever_others_refuse() {
        let known: fn() -> Authentication = || {
            let caller = Arc::new(Caller { name: "bob".into(), ..Caller::default() });
            Authentication::Known(Authenticated { caller, audiences: Vec::new() })
        };
        let refuse: fn() -> Authentication = || Authentication::Refused("no good".into());
        let pass: fn() -> Authentication = || Authentication::NoOpinion;
        for (members, token, want) in [
            (vec![pass], None, Ok(None)),
            (vec![pass], Some("t"), Err("invalid bearer token")),
            (vec![refuse, pass], None, Err("no good")),
            (vec![pass, refuse], Some("t"), Err("[invalid bearer token, no good]")),
            (vec![refuse, known, refuse], Some("t"), Ok(Some("bob"))),
        ] {
            let chain = Authenticators {
                chain: members.iter().map(|says| Arc::new(Says(*says)) as Arc<dyn Authenticator>).collect(),
                credentials: Arc::default(),
                clock: Clock::manual(0).0,
                api_audiences: Vec::new(),
            };
            let presented = Presented { token: token.map(str::as_bytes), ..Presented::default() };
            let found = chain.ask(&presented).await;
            let found = found.map(|known| known.map(|known| known.caller.name.clone()));
            assert_eq!(
                found.as_ref().map(|name| name.as_deref()).map_err(|why| why.0.as_str()),
                want,
                "{members:?} {token:?}"
            );
        }
    }
}
