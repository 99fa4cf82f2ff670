//! Who keeps claims of a provider's tokens: asked over HTTPS, where a token that the provider has signed
//! says.
//!
//! In: a token without its groups. Out: what its source answers, unread. Each source has turns of its own:
//! one that hangs holds up those who ask it, and nobody else. Never: remembers an answer; asks a source that
//! is not known by the provider's authority; asks again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use forebay_oidc::Elsewhere;
use forebay_rt::Clock;
use http::Uri;
use tokio::sync::Semaphore;

use crate::fetch::{Fetcher, late};
use crate::limits::{ORIGINS_MAX, SOURCE_CALLS_MAX, SOURCE_MAX, SOURCE_WAITING_MAX};

/// Those of one provider.
pub struct Sources {
    fetcher: Fetcher,
    clock: Clock,
    // By host and port, <= ORIGINS_MAX.
    turns: Mutex<BTreeMap<String, Arc<Turns>>>,
}

struct Turns {
    /// Calls, and those who wait for one.
    all: Semaphore,
    calls: Semaphore,
}

impl Sources {
    /// - `authority`: who vouches for them, as for the provider.
    ///
    /// # Errors
    /// It vouches for nobody.
    pub fn new(clock: Clock, authority: &str) -> Result<Sources, String> {
        let fetcher = Fetcher::new(clock.clone(), authority)?;
        Ok(Sources { fetcher, clock, turns: Mutex::default() })
    }

    /// What the source of `of` answers. Cancel-safe.
    ///
    /// # Errors
    /// Why it does not.
    pub async fn ask(&self, of: &Elsewhere) -> Result<String, String> {
        let turns = self.turns(&of.endpoint)?;
        let Ok(_place) = turns.all.try_acquire() else {
            return Err("too many are asking its source".to_owned());
        };
        let asked = async {
            // It is never closed.
            let _turn = turns.calls.acquire().await;
            self.fetcher.claim(&of.endpoint, &of.access_token).await
        };
        tokio::select! {
            answer = asked => answer,
            () = self.clock.sleep(SOURCE_MAX) => Err(late(&of.endpoint)),
        }
    }

    fn turns(&self, endpoint: &str) -> Result<Arc<Turns>, String> {
        let uri: Uri = endpoint.parse().map_err(|why| format!("while calling {endpoint:?}: {why}"))?;
        let origin = match (uri.scheme_str(), uri.authority()) {
            (Some("https"), Some(authority)) => authority.to_string(),
            _ => return Err(format!("while calling {endpoint:?}: only https is spoken with sources")),
        };
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = turns.get(&origin) {
            return Ok(known.clone());
        }
        if turns.len() >= ORIGINS_MAX {
            return Err(format!("the provider's claims are kept on more than {ORIGINS_MAX} servers"));
        }
        let all = Semaphore::new(SOURCE_CALLS_MAX + SOURCE_WAITING_MAX);
        let made = Arc::new(Turns { all, calls: Semaphore::new(SOURCE_CALLS_MAX) });
        turns.insert(origin, made.clone());
        Ok(made)
    }
}
