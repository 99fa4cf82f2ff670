//! Tokens that others vouch for, put together: what the edge is told of them, and the file of the
//! configuration, followed while the server runs.
//!
//! In: what was [`Prepared`]; the file, looked at every [`LOOK_EVERY`]. Out: an authenticator. A file that
//! makes no sense is told of once, and what was counts on; one whose providers are not there yet is tried
//! again and again. Never: changes who is anonymous, which takes a start.
//!
//! Owner: one task.
//!
//! Source: kubernetes v1.36.3 `pkg/kubeapiserver/options/authentication.go` (`ApplyTo`).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forebay_api::Authenticator;
use forebay_auth::FurtherAuthentication;
use forebay_documents::metrics::AuthenticationMetrics;
use forebay_issuers::{IssuersInForce, RemoteTokens, RemoteTokensConfig, hash_of};
use forebay_oidc::config::AnonymousConfig;
use forebay_rt::{Clock, Random, Tasks};

use crate::authentication_files;
use crate::config::Host;
use crate::error::Error;
use crate::prepare::Prepared;

/// How often the file is looked at, and when what was written is taken for whole: as the files of identity.
const LOOK_EVERY: Duration = Duration::from_secs(10);
const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// See the module's doc.
pub struct Remote {
    further: FurtherAuthentication,
    followed: Option<Followed>,
}

/// The file, and what counts of it.
struct Followed {
    path: PathBuf,
    issuers: IssuersInForce,
    disallowed: Vec<String>,
    anonymous: Option<AnonymousConfig>,
    metrics: Arc<AuthenticationMetrics>,
    // What was taken in, or told of, last.
    text: String,
}

impl Remote {
    /// Must be called within a runtime.
    ///
    /// # Errors
    /// What of the configuration cannot be used.
    pub fn new(prepared: &Prepared, clock: &Clock) -> Result<Remote, Error> {
        let (decided, files) = (&prepared.config.authentication, &prepared.authentication);
        let metrics = Arc::<AuthenticationMetrics>::default();
        let mut further = FurtherAuthentication {
            remote: None,
            bootstrap_tokens: decided.bootstrap_tokens,
            ways: decided.ways,
            metrics: metrics.clone(),
        };
        if !files.asks_others() {
            return Ok(Remote { further, followed: None });
        }
        let accounts = &decided.service_accounts;
        let config = RemoteTokensConfig {
            issuers: files.issuers(&accounts.issuers).map_err(Error::Conflict)?,
            webhook: files.reviewer(clock)?,
            webhook_ttl: decided.webhook.as_ref().map_or(Duration::ZERO, |webhook| webhook.ttl),
            api_audiences: accounts.api_audiences.clone(),
        };
        let remote = RemoteTokens::new(config, clock.clone(), Random::system(), metrics.clone());
        let remote = remote.map_err(Error::Serve)?;
        let followed = files.file.as_ref().map(|(path, text)| {
            let server = Host::this().name.unwrap_or_else(|| "localhost".to_owned());
            metrics.configured(hash_of(&server), hash_of(text));
            Followed {
                path: path.clone(),
                issuers: remote.issuers(),
                disallowed: accounts.issuers.clone(),
                anonymous: files.configuration.anonymous.clone(),
                metrics: metrics.clone(),
                text: text.clone(),
            }
        });
        further.remote = Some(Arc::new(remote) as Arc<dyn Authenticator>);
        Ok(Remote { further, followed })
    }

    /// Follows the file, if there is one, until `tasks` end; and what the edge is told.
    pub fn start(self, clock: &Clock, tasks: &Tasks) -> FurtherAuthentication {
        if let Some(followed) = self.followed {
            tasks.spawn("authentication configuration", followed.follow(clock.clone()));
        }
        self.further
    }
}

impl Followed {
    async fn follow(mut self, clock: Clock) {
        let mut before = None;
        loop {
            clock.sleep(if before.is_some() { SETTLED_AFTER } else { LOOK_EVERY }).await;
            let path = self.path.clone();
            // A disk may be elsewhere.
            let read = forebay_rt::blocking(move || authentication_files::read_text(&path)).await;
            let text = match read {
                Ok(Ok(text)) => text,
                Ok(Err(error)) => {
                    self.refused(&error.line(), &clock);
                    continue;
                }
                Err(_) => return tracing::error!("the authentication configuration is no longer followed"),
            };
            if text == self.text {
                before = None;
                continue;
            }
            // Whoever writes it in pieces is through once it was the same twice.
            if before.as_ref() != Some(&text) {
                before = Some(text);
                continue;
            }
            before = None;
            self.take_in(text, &clock).await;
        }
    }

    async fn take_in(&mut self, text: String, clock: &Clock) {
        let parsed = authentication_files::parse(&text, &self.disallowed).and_then(|(read, issuers)| {
            match read.anonymous == self.anonymous {
                true => Ok(issuers),
                false => Err("anonymous: Forbidden: changed from initial configuration file".to_owned()),
            }
        });
        match parsed {
            // It never will be any better: what it is next is looked at.
            Err(why) => {
                self.text = text;
                self.refused(&why, clock);
            }
            Ok(issuers) => match self.issuers.replace(issuers).await {
                Err(why) => self.refused(&why, clock),
                Ok(()) => {
                    self.metrics.reloaded(Some(hash_of(&text)), clock.unix_ms());
                    self.text = text;
                    tracing::info!("the authentication configuration has changed and was taken in");
                }
            },
        }
    }

    fn refused(&self, why: &str, clock: &Clock) {
        tracing::warn!(why, "the authentication configuration has changed and cannot be used");
        self.metrics.reloaded(None, clock.unix_ms());
    }
}
