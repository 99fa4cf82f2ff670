//! The ways to webhooks: the connections of each.
//!
//! In: where a webhook is and who vouches for it. Out: its connections, the same for each call, and turns to
//! use them. Never: a call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use forebay_connector::{Pool, PoolOptions, connect};
use forebay_rt::{Clock, Instant};
use forebay_webhooks::{ClientConfig, WebhookSort};
use http::Uri;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::credentials::Credential;
use crate::limits::{
    CALL_COUNTS_MAX, CALL_HELD_BYTES, CALLS_MAX, CALLS_WAITING_BYTES, CALLS_WAITING_MAX, CONNECT_MAX,
    PASSED_OVER, ROUTES_MAX,
};

/// What a way is known by.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RouteKey {
    pub client: ClientConfig,
    /// Where a service is found; the URL says it otherwise.
    pub address: Option<Box<str>>,
    /// Whether it has not long to connect.
    pub has_others: bool,
    /// Each sort has its credentials; `None` for a conversion.
    pub sort: Option<WebhookSort>,
}

/// The way to one webhook.
pub struct Route {
    pub pool: Pool,
    calls: Semaphore,
    // Locked for a few lines.
    waiting: Mutex<Waiting>,
    // Locked for one line.
    failed: Mutex<Option<Instant>>,
}

/// Calls that wait for a turn.
#[derive(Default)]
struct Waiting {
    // <= CALLS_WAITING_MAX
    calls: usize,
    /// What their writes hold.
    bytes: usize,
}

/// One of them, until it is dropped.
struct Waits<'r> {
    route: &'r Route,
    bytes: usize,
}

impl Route {
    /// A turn for a call whose write holds so many bytes, at once or once others are over. Cancel-safe.
    ///
    /// # Errors
    /// Too many wait already.
    pub async fn turn(&self, holds: usize) -> Result<SemaphorePermit<'_>, String> {
        let counts = (holds / CALL_HELD_BYTES).clamp(1, CALL_COUNTS_MAX) as u32;
        if let Ok(turn) = self.calls.try_acquire_many(counts) {
            return Ok(turn);
        }
        let _waits = Waits::of(self, holds)?;
        // It is never closed.
        self.calls.acquire_many(counts).await.map_err(|closed| closed.to_string())
    }
}

impl<'r> Waits<'r> {
    fn of(route: &'r Route, bytes: usize) -> Result<Waits<'r>, String> {
        let mut waiting = route.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = waiting.calls >= CALLS_WAITING_MAX
            || (waiting.calls > 0 && waiting.bytes.saturating_add(bytes) > CALLS_WAITING_BYTES);
        if is_full {
            return Err(format!("too many calls to it: {} wait for others to be answered", waiting.calls));
        }
        waiting.calls += 1;
        waiting.bytes += bytes;
        Ok(Waits { route, bytes })
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut waiting = self.route.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.calls -= 1;
        waiting.bytes -= self.bytes;
    }
}

/// See the module's doc.
pub struct Routes {
    clock: Clock,
    // Locked for a few lines, never across a wait.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// With when each was asked for last, counted. <= ROUTES_MAX.
    routes: HashMap<RouteKey, (u64, Arc<Route>)>,
    asked: u64,
}

impl Routes {
    pub fn new(clock: Clock) -> Routes {
        Routes { clock, known: Mutex::default() }
    }

    /// The way to a webhook. Must be called within a runtime, in which its connections live.
    ///
    /// - `base`: scheme and authority of its URL.
    ///
    /// # Errors
    /// What of its configuration cannot be used.
    pub fn route(
        &self,
        key: &RouteKey,
        base: &Uri,
        credential: Option<&Credential>,
    ) -> Result<Arc<Route>, String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.asked += 1;
        let asked = known.asked;
        if let Some((last, route)) = known.routes.get_mut(key) {
            *last = asked;
            return Ok(route.clone());
        }
        let route = Arc::new(Route {
            pool: self.pool(key, base, credential)?,
            calls: Semaphore::new(CALLS_MAX),
            waiting: Mutex::default(),
            failed: Mutex::default(),
        });
        if known.routes.len() >= ROUTES_MAX {
            // Once: for a webhook that is not known, among few.
            let oldest = known.routes.iter().min_by_key(|(_, (last, _))| *last).map(|(key, _)| key.clone());
            known.routes.remove(&oldest.unwrap_or_else(|| key.clone()));
        }
        known.routes.insert(key.clone(), (asked, route.clone()));
        Ok(route)
    }

    /// Whether it did not connect a moment ago.
    pub fn is_passed_over(&self, route: &Route) -> bool {
        let failed = *route.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_some_and(|at| self.clock.now() < at + PASSED_OVER)
    }

    pub fn failed(&self, route: &Route) {
        *route.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.clock.now());
    }

    fn pool(&self, key: &RouteKey, base: &Uri, credential: Option<&Credential>) -> Result<Pool, String> {
        let at = match &key.address {
            None => base.clone(),
            Some(address) => {
                format!("https://{address}").parse().map_err(|why: http::uri::InvalidUri| why.to_string())?
            }
        };
        let mut config = kube::Config::new(at);
        config.root_cert = authorities(&key.client.ca_bundle)?;
        if key.address.is_some() {
            config.connect_timeout = key.has_others.then_some(CONNECT_MAX).or(config.connect_timeout);
            config.tls_server_name = base.host().map(String::from);
        }
        if let Some((chain, secret)) = credential.and_then(|known| known.identity.clone()) {
            config.auth_info.client_certificate_data = Some(chain);
            config.auth_info.client_key_data = Some(secret.into());
        }
        let options = PoolOptions { clock: self.clock.clone(), ..PoolOptions::default() };
        Ok(connect(config, options).map_err(|why| crate::words::of(&why))?.pool)
    }
}

/// Who may vouch for a webhook; `None` for whom the system believes.
pub fn authorities(bundle: &[u8]) -> Result<Option<Vec<Vec<u8>>>, String> {
    if bundle.is_empty() {
        return Ok(None);
    }
    let all = CertificateDer::pem_slice_iter(bundle).map(|one| one.map(|one| one.to_vec()));
    let all: Vec<Vec<u8>> = all.filter_map(Result::ok).collect();
    match all.is_empty() {
        true => {
            const BEGIN: &[u8] = b"-----BEGIN ";
            let is_pem = bundle.windows(BEGIN.len()).any(|window| window == BEGIN);
            let why = match is_pem {
                true => "no valid certificate authority data seen",
                false => "unable to parse bytes as PEM block",
            };
            Err(format!("unable to load root certificates: {why}"))
        }
        false => Ok(Some(all)),
    }
}
