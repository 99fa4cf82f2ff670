//! The external signer of service accounts' tokens, before anything is served: whether it is there, and
//! whether what it can do goes with what was decided.
//!
//! In: what was decided. Out: a signer, and how long tokens may live by it; or why not, in upstream's words.
//!
//! Source: kubernetes v1.36.3 `pkg/controlplane/apiserver/options/options.go`
//! (`completeServiceAccountOptions`).

use std::sync::Arc;
use std::time::Duration;

use forebay_apimachinery::go_duration;
use forebay_documents::metrics::SignerMetrics;
use forebay_endpoints::config::{AccountKeys, EXTENDED_EXPIRATION, PodTokens};
use forebay_rt::{Clock, Tasks};
use forebay_token_signer::{SignerWaits, TokenSigner};

use crate::config::ServiceAccounts;
use crate::error::Error;
use crate::prepare::Prepared;

/// What pods ask for by default, and are warned beyond, in seconds.
const POD_EXPIRATION: u64 = 3607;

/// Somebody who signs.
#[derive(Debug, Clone)]
pub struct TokenSigning {
    signer: Arc<TokenSigner>,
    /// Longest life of a token that somebody asks for.
    pub max_expiration: Duration,
    /// How long those live that are extended.
    pub extended_expiration: Duration,
}

impl TokenSigning {
    /// Waits for the signer that was named, if one was. Must be called within a runtime. Cancel-safe.
    ///
    /// # Errors
    /// It is not there in time, or cannot be used; or it signs for a shorter time than flags allow.
    pub async fn start(
        accounts: &ServiceAccounts,
        clock: &Clock,
        tasks: &Tasks,
    ) -> Result<Option<TokenSigning>, Error> {
        let Some(endpoint) = &accounts.signing_endpoint else { return Ok(None) };
        tracing::info!(endpoint, "waiting for the external signer of service account tokens");
        let started = TokenSigner::start(endpoint, SignerWaits::default(), clock.clone(), tasks).await;
        let started =
            started.map_err(|why| Error::Serve(format!("while setting up external-jwt-signer: {why}")))?;
        let max_expiration =
            max_expiration(accounts.max_token_expiration, started.life_max).map_err(Error::Conflict)?;
        if accounts.pod_tokens == PodTokens::Extended {
            warnings(max_expiration).iter().for_each(|why| tracing::warn!("{why}"));
        }
        Ok(Some(TokenSigning {
            signer: started.signer,
            max_expiration,
            extended_expiration: EXTENDED_EXPIRATION.min(started.life_max),
        }))
    }

    /// Whose keys count.
    pub fn keys(&self) -> AccountKeys {
        AccountKeys::External(self.signer.clone())
    }

    /// What is counted of it.
    pub fn metrics(&self) -> Arc<SignerMetrics> {
        self.signer.metrics()
    }
}

impl Prepared {
    /// Waits for the external signer of tokens, if one was named: the last that is needed before a server can
    /// listen. Must be called within a runtime. Cancel-safe.
    ///
    /// # Errors
    /// As [`TokenSigning::start`].
    pub async fn wait_for_signer(&mut self, clock: &Clock, tasks: &Tasks) -> Result<(), Error> {
        let accounts = &self.config.authentication.service_accounts;
        self.token_signing = TokenSigning::start(accounts, clock, tasks).await?;
        Ok(())
    }
}

/// - `asked`: the flag.
/// - `life_max`: how long the signer signs for.
fn max_expiration(asked: Option<Duration>, life_max: Duration) -> Result<Duration, String> {
    match asked {
        None => Ok(life_max),
        Some(asked) if asked > life_max => Err(format!(
            "service-account-max-token-expiration cannot be set longer than the token expiration supported by \
             service-account-signing-endpoint: {} > {}",
            shown(asked),
            shown(life_max)
        )),
        Some(asked) => Ok(asked),
    }
}

/// What is said where tokens of pods cannot live as long as they are meant to.
fn warnings(max_expiration: Duration) -> Vec<String> {
    let head = "service-account-extend-token-expiration is true,";
    let extended = EXTENDED_EXPIRATION.as_secs();
    let mut warnings = Vec::new();
    if max_expiration.as_secs() < POD_EXPIRATION {
        warnings.push(format!(
            "{head} in order to correctly trigger safe transition logic, token lifetime supported by \
             external-jwt-signer must be longer than {POD_EXPIRATION} seconds (currently {})",
            shown(max_expiration)
        ));
    }
    if max_expiration.as_secs() < extended {
        warnings.push(format!(
            "{head} tokens validity will be caped at the smaller of {extended} seconds and maximum token \
             lifetime supported by external-jwt-signer ({})",
            shown(max_expiration)
        ));
    }
    warnings
}

fn shown(span: Duration) -> String {
    go_duration::show(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_lives_no_longer_than_its_signer_allows() {
        let hour = Duration::from_secs(3600);
        assert_eq!(max_expiration(None, hour), Ok(hour));
        assert_eq!(max_expiration(Some(hour), hour), Ok(hour));
        assert_eq!(max_expiration(Some(hour), 24 * hour), Ok(hour));
        let why = "service-account-max-token-expiration cannot be set longer than the token expiration supported by \
                   service-account-signing-endpoint: 1h0m0s > 10m0s";
        assert_eq!(max_expiration(Some(hour), Duration::from_secs(600)), Err(why.to_owned()));
        // Longer than Go can say.
        assert_eq!(max_expiration(None, Duration::from_secs(u64::MAX)), Ok(Duration::from_secs(u64::MAX)));
        assert!(shown(Duration::from_secs(u64::MAX)).ends_with('s'));
    }

    #[test]
    fn who_cannot_extend_tokens_is_told_so() {
        assert_eq!(warnings(EXTENDED_EXPIRATION), Vec::<String>::new());
        let day = warnings(Duration::from_secs(24 * 3600));
        assert_eq!(
            day,
            [
                "service-account-extend-token-expiration is true, tokens validity will be caped at the smaller of \
                 31536000 seconds and maximum token lifetime supported by external-jwt-signer (24h0m0s)"
            ]
        );
        let short = warnings(Duration::from_secs(600));
        assert_eq!(
            short[0],
            "service-account-extend-token-expiration is true, in order to correctly trigger safe transition logic, \
             token lifetime supported by external-jwt-signer must be longer than 3607 seconds (currently 10m0s)"
        );
        assert_eq!(short.len(), 2);
    }
}
