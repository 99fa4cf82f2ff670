//! What is counted of who asks: of requests, of tokens that others vouch for, of their configuration, and of
//! who acts as somebody else.
//!
//! In: what happened, from whoever authenticates. Out: upstream's families. Names of users are summed up into
//! a handful, issuers and servers are hashes: every label has a bounded set of values.
//! Never: who somebody is.
//!
//! Source: apiserver v0.36.3 `pkg/endpoints/filters/metrics.go`, `pkg/authentication/token/cache/stats.go`,
//! `plugin/pkg/authenticator/token/oidc/metrics.go`, `pkg/server/options/authenticationconfig/metrics`,
//! `pkg/endpoints/filters/impersonation/metrics`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forebay_catalog::histogram::{Bounds, Histogram};

use super::{Text, TokenUseCounts};

/// From a millisecond on, each twice the one before.
const SECONDS: Bounds = &[
    ("0.001", 0.001),
    ("0.002", 0.002),
    ("0.004", 0.004),
    ("0.008", 0.008),
    ("0.016", 0.016),
    ("0.032", 0.032),
    ("0.064", 0.064),
    ("0.128", 0.128),
    ("0.256", 0.256),
    ("0.512", 0.512),
    ("1.024", 1.024),
    ("2.048", 2.048),
    ("4.096", 4.096),
    ("8.192", 8.192),
    ("16.384", 16.384),
];

/// As Prometheus has them by default.
const USUAL_SECONDS: Bounds = &[
    ("0.005", 0.005),
    ("0.01", 0.01),
    ("0.025", 0.025),
    ("0.05", 0.05),
    ("0.1", 0.1),
    ("0.25", 0.25),
    ("0.5", 0.5),
    ("1", 1.0),
    ("2.5", 2.5),
    ("5", 5.0),
    ("10", 10.0),
];

const TOKEN_SECONDS: Bounds = &[
    ("0.001", 0.001),
    ("0.005", 0.005),
    ("0.01", 0.01),
    ("0.025", 0.025),
    ("0.05", 0.05),
    ("0.1", 0.1),
    ("0.25", 0.25),
    ("0.5", 0.5),
    ("1", 1.0),
    ("2.5", 2.5),
    ("5", 5.0),
    ("10", 10.0),
];

/// How long a certificate is good for: from half an hour to a year.
#[rustfmt::skip]
const CERTIFICATE_SECONDS: Bounds = &[
    ("0", 0.0), ("1800", 1800.0), ("3600", 3600.0), ("7200", 7200.0), ("21600", 21600.0), ("43200", 43200.0),
    ("86400", 86400.0), ("172800", 172_800.0), ("345600", 345_600.0), ("604800", 604_800.0),
    ("2.592e+06", 2_592_000.0), ("7.776e+06", 7_776_000.0), ("1.5552e+07", 15_552_000.0),
    ("3.1104e+07", 31_104_000.0),
];

/// What users are summed up as.
const USERS: [&str; 7] = [
    "admin",
    "client",
    "email_id",
    "kube_proxy",
    "kubelet",
    "other",
    "system:serviceaccount:kube-system:default",
];

/// What came of a request's credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    Success,
    /// There were none, and nobody in particular may not ask.
    Failure,
    /// They are no good.
    Error,
}

/// Whether something that is counted by it went well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    Well,
    Badly,
}

/// In which way somebody acts as somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImpersonationMode {
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    Legacy,
    /// None.
    Unknown,
}

/// See the module's doc.
#[derive(Debug)]
pub struct AuthenticationMetrics {
    attempts: [Histogram; 3],
    users: [AtomicU64; USERS.len()],
    certificates: Histogram,
    pub token_uses: TokenUseCounts,
    /// Found and not found in the cache.
    cached: [Histogram; 2],
    fetched: [AtomicU64; 2],
    fetching: AtomicI64,
    waiting: AtomicI64,
    reloads: Mutex<Reloads>,
    // By the hash of the issuer, as many as a configuration has.
    issuers: Mutex<BTreeMap<String, OfIssuer>>,
    impersonated: [[Histogram; 2]; ImpersonationMode::ALL.len()],
    impersonation_checks: [[Histogram; 2]; ImpersonationMode::ALL.len()],
}

/// Of the configuration of whose tokens are believed.
#[derive(Debug, Default)]
struct Reloads {
    /// Empty where there is no configuration to reload.
    server: String,
    went: [Dated; 2],
    config: String,
}

/// How often, and when last, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default)]
struct Dated {
    count: u64,
    last_ms: u64,
}

#[derive(Debug)]
struct OfIssuer {
    tokens: [Histogram; 2],
    fetches: [Dated; 2],
    keys: String,
}

impl Default for AuthenticationMetrics {
    fn default() -> AuthenticationMetrics {
        let seconds = |_| Histogram::new(SECONDS);
        let both = |_| std::array::from_fn(|_| Histogram::new(SECONDS));
        AuthenticationMetrics {
            attempts: std::array::from_fn(seconds),
            users: Default::default(),
            certificates: Histogram::new(CERTIFICATE_SECONDS),
            token_uses: TokenUseCounts::default(),
            cached: std::array::from_fn(|_| Histogram::new(USUAL_SECONDS)),
            fetched: Default::default(),
            fetching: AtomicI64::new(0),
            waiting: AtomicI64::new(0),
            reloads: Mutex::default(),
            issuers: Mutex::default(),
            impersonated: std::array::from_fn(both),
            impersonation_checks: std::array::from_fn(both),
        }
    }
}

impl AuthenticationMetrics {
    /// What came of a request's credentials.
    ///
    /// - `user`: who asks, where it is known.
    pub fn attempted(&self, attempt: Attempt, user: Option<&str>, took: Duration) {
        self.attempts[attempt as usize].observe(took.as_secs_f64());
        if let Some(user) = user {
            // Few: a handful of names.
            let at = USERS.iter().position(|known| *known == summed_up(user)).unwrap_or(0);
            self.users[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A certificate was shown that is good for so long.
    pub fn certificate_shown(&self, seconds_left: i64) {
        self.certificates.observe(seconds_left as f64);
    }

    /// A token was looked for among those that are known.
    pub fn looked_up(&self, found: Went, took: Duration) {
        self.cached[found as usize].observe(took.as_secs_f64());
    }

    /// Somebody else is asked about a token; until what it gives is dropped.
    pub fn fetching(&self) -> ActiveFetch<'_> {
        ActiveFetch::new(&self.fetching)
    }

    /// A request waits for what somebody else says about its token; until what it gives is dropped.
    pub fn waiting(&self) -> ActiveFetch<'_> {
        ActiveFetch::new(&self.waiting)
    }

    pub fn fetched(&self, went: Went) {
        self.fetched[went as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// A token of an issuer was judged.
    ///
    /// - `issuer`: its hash, as all below.
    pub fn judged(&self, issuer: &str, went: Went, took: Duration) {
        self.of_issuer(issuer, |of| of.tokens[went as usize].observe(took.as_secs_f64()));
    }

    /// Keys of an issuer were asked for.
    ///
    /// - `keys`: the hash of what came.
    pub fn keys_fetched(&self, issuer: &str, keys: Option<String>, now_ms: u64) {
        let went = if keys.is_some() { Went::Well } else { Went::Badly };
        self.of_issuer(issuer, |of| {
            of.fetches[went as usize].note(now_ms);
            if let Some(keys) = keys {
                of.keys = keys;
            }
        });
    }

    /// These are the issuers from now on; what is known of others is forgotten.
    pub fn keep_issuers(&self, hashes: &BTreeSet<String>) {
        lock(&self.issuers).retain(|hash, _| hashes.contains(hash));
        for hash in hashes {
            self.of_issuer(hash, |_| {});
        }
    }

    /// There is a configuration that is followed.
    ///
    /// - `server`: the hash of this server's name.
    /// - `config`: that of the configuration.
    pub fn configured(&self, server: String, config: String) {
        let mut reloads = lock(&self.reloads);
        (reloads.server, reloads.config) = (server, config);
    }

    /// Its file has changed, and was taken in, or not.
    ///
    /// - `config`: the hash of what was taken in.
    pub fn reloaded(&self, config: Option<String>, now_ms: u64) {
        let went = if config.is_some() { Went::Well } else { Went::Badly };
        let mut reloads = lock(&self.reloads);
        reloads.went[went as usize].note(now_ms);
        if let Some(config) = config {
            reloads.config = config;
        }
    }

    /// Somebody wanted to act as somebody else.
    pub fn impersonated(&self, mode: ImpersonationMode, allowed: Went, took: Duration) {
        self.impersonated[mode as usize][allowed as usize].observe(took.as_secs_f64());
    }

    /// One right that this takes was asked for.
    pub fn impersonation_checked(&self, mode: ImpersonationMode, allowed: Went, took: Duration) {
        self.impersonation_checks[mode as usize][allowed as usize].observe(took.as_secs_f64());
    }

    fn of_issuer(&self, hash: &str, change: impl FnOnce(&mut OfIssuer)) {
        let mut issuers = lock(&self.issuers);
        match issuers.get_mut(hash) {
            Some(of) => change(of),
            None => {
                let tokens = std::array::from_fn(|_| Histogram::new(TOKEN_SECONDS));
                let mut of = OfIssuer { tokens, fetches: Default::default(), keys: String::new() };
                change(&mut of);
                issuers.insert(hash.to_owned(), of);
            }
        }
    }

    /// All of it.
    pub fn write(&self, text: &mut Text) {
        self.write_requests(text);
        self.token_uses.write(text);
        self.write_cache(text);
        self.write_issuers(text);
        self.write_reloads(text);
        let name = "apiserver_impersonation_attempts";
        write_modes(text, name, "Requests to act as somebody else", &self.impersonated);
        let name = "apiserver_impersonation_authorization_attempts";
        write_modes(
            text,
            name,
            "Rights that were asked for to act as somebody else",
            &self.impersonation_checks,
        );
    }

    fn write_requests(&self, text: &mut Text) {
        let name = "authenticated_user_requests";
        text.family(name, "counter", "Requests of users who are known, by what their names are like.");
        for (user, count) in USERS.into_iter().zip(&self.users) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                text.value(name, &[("username", user)], count);
            }
        }
        let results =
            [("success", Attempt::Success), ("failure", Attempt::Failure), ("error", Attempt::Error)];
        let name = "authentication_attempts";
        text.family(name, "counter", "Requests by what came of their credentials.");
        for (result, attempt) in results {
            text.value(name, &[("result", result)], self.attempts[attempt as usize].count());
        }
        let name = "authentication_duration_seconds";
        text.family(name, "histogram", "How long it took to know who asks, in seconds.");
        for (result, attempt) in results {
            text.histogram(name, &[("result", result)], &self.attempts[attempt as usize]);
        }
        let name = "apiserver_client_certificate_expiration_seconds";
        text.family(name, "histogram", "How long certificates are good that requests came with, in seconds.");
        text.histogram(name, &[], &self.certificates);
    }

    fn write_cache(&self, text: &mut Text) {
        let name = "authentication_token_cache_request_total";
        text.family(name, "counter", "Tokens that were looked for among those that are known.");
        for (status, of) in ["hit", "miss"].into_iter().zip(&self.cached) {
            text.value(name, &[("status", status)], of.count());
        }
        let name = "authentication_token_cache_request_duration_seconds";
        text.family(name, "histogram", "How long it took to know whose a token is, in seconds.");
        for (status, of) in ["hit", "miss"].into_iter().zip(&self.cached) {
            text.histogram(name, &[("status", status)], of);
        }
        let name = "authentication_token_cache_fetch_total";
        text.family(name, "counter", "Tokens that others were asked about.");
        for (status, of) in ["ok", "error"].into_iter().zip(&self.fetched) {
            text.value(name, &[("status", status)], of.load(Ordering::Relaxed));
        }
        let name = "authentication_token_cache_active_fetch_count";
        text.family(name, "gauge", "Tokens that others are asked about now, and requests that wait for it.");
        for (status, of) in [("in_flight", &self.fetching), ("blocked", &self.waiting)] {
            text.value(name, &[("status", status)], of.load(Ordering::Relaxed));
        }
    }

    fn write_issuers(&self, text: &mut Text) {
        let server = lock(&self.reloads).server.clone();
        let issuers = lock(&self.issuers);
        if issuers.is_empty() {
            return;
        }
        let name = "apiserver_authentication_jwt_authenticator_latency_seconds";
        text.family(name, "histogram", "How long it took to judge a token of an issuer, in seconds.");
        for (hash, of) in &*issuers {
            for (result, seconds) in ["success", "failure"].into_iter().zip(&of.tokens) {
                if seconds.count() > 0 {
                    text.histogram(name, &[("jwt_issuer_hash", &**hash), ("result", result)], seconds);
                }
            }
        }
        let name = "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds";
        text.family(name, "gauge", "When keys of an issuer were fetched last.");
        for (hash, of) in &*issuers {
            for (result, fetch) in ["success", "failure"].into_iter().zip(&of.fetches) {
                if fetch.count > 0 {
                    let labels =
                        [("apiserver_id_hash", &*server), ("jwt_issuer_hash", &**hash), ("result", result)];
                    text.value(name, &labels, fetch.last_seconds());
                }
            }
        }
        let name = "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info";
        text.family(name, "gauge", "The keys of an issuer that were fetched last, as a hash.");
        for (hash, of) in issuers.iter().filter(|(_, of)| !of.keys.is_empty()) {
            let labels = [("apiserver_id_hash", &*server), ("hash", &*of.keys), ("jwt_issuer_hash", &**hash)];
            text.value(name, &labels, 1);
        }
    }

    fn write_reloads(&self, text: &mut Text) {
        let reloads = lock(&self.reloads);
        if reloads.config.is_empty() {
            return;
        }
        let server = reloads.server.as_str();
        let results = || ["success", "failure"].into_iter().zip(&reloads.went).filter(|(_, of)| of.count > 0);
        let name = "apiserver_authentication_config_controller_automatic_reloads_total";
        text.family(name, "counter", "How often the authentication configuration had changed.");
        for (status, of) in results() {
            text.value(name, &[("apiserver_id_hash", server), ("status", status)], of.count);
        }
        let name = "apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds";
        text.family(name, "gauge", "When the authentication configuration had changed last.");
        for (status, of) in results() {
            text.value(name, &[("apiserver_id_hash", server), ("status", status)], of.last_seconds());
        }
        let name = "apiserver_authentication_config_controller_last_config_info";
        text.family(name, "gauge", "The authentication configuration that counts, as a hash.");
        text.value(name, &[("apiserver_id_hash", server), ("hash", &*reloads.config)], 1);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_modes(text: &mut Text, name: &str, help: &str, all: &[[Histogram; 2]]) {
    let mut series = Vec::new();
    for (mode, both) in ImpersonationMode::ALL.into_iter().zip(all) {
        for (decision, of) in ["allowed", "denied"].into_iter().zip(both) {
            if of.count() > 0 {
                series.push(([("decision", decision), ("mode", mode.name())], of));
            }
        }
    }
    let total = format!("{name}_total");
    text.family(&total, "counter", &format!("{help}."));
    for (labels, of) in &series {
        text.value(&total, labels, of.count());
    }
    let seconds = format!("{name}_duration_seconds");
    text.family(&seconds, "histogram", &format!("{help}: how long it took, in seconds."));
    for (labels, of) in &series {
        text.histogram(&seconds, labels, of);
    }
}

/// What a user's name is like.
fn summed_up(name: &str) -> &str {
    match name {
        "admin" | "client" | "kube_proxy" | "kubelet" | "system:serviceaccount:kube-system:default" => name,
        name if name.contains('@') => "email_id",
        _ => "other",
    }
}

impl ImpersonationMode {
    const ALL: [ImpersonationMode; 6] = [
        ImpersonationMode::AssociatedNode,
        ImpersonationMode::ArbitraryNode,
        ImpersonationMode::ServiceAccount,
        ImpersonationMode::UserInfo,
        ImpersonationMode::Legacy,
        ImpersonationMode::Unknown,
    ];

    /// As verbs and labels have it.
    pub const fn name(self) -> &'static str {
        match self {
            ImpersonationMode::AssociatedNode => "associated-node",
            ImpersonationMode::ArbitraryNode => "arbitrary-node",
            ImpersonationMode::ServiceAccount => "serviceaccount",
            ImpersonationMode::UserInfo => "user-info",
            ImpersonationMode::Legacy => "legacy",
            ImpersonationMode::Unknown => "",
        }
    }
}

impl Dated {
    fn note(&mut self, now_ms: u64) {
        self.count += 1;
        self.last_ms = now_ms;
    }

    fn last_seconds(self) -> f64 {
        self.last_ms as f64 / 1000.0
    }
}

/// Counts one, until it is dropped.
#[must_use = "what is dropped is not counted"]
pub struct ActiveFetch<'c>(&'c AtomicI64);

impl<'c> ActiveFetch<'c> {
    fn new(of: &'c AtomicI64) -> ActiveFetch<'c> {
        of.fetch_add(1, Ordering::Relaxed);
        ActiveFetch(of)
    }
}

impl Drop for ActiveFetch<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(metrics: &AuthenticationMetrics, of: &str) -> Vec<String> {
        let mut text = Text::default();
        metrics.write(&mut text);
        let text = text.finish();
        text.lines()
            .filter(|line| line.starts_with(of) && !line.contains("bucket"))
            .map(String::from)
            .collect()
    }

    #[test]
    fn users_are_summed_up_and_attempts_told_apart() {
        let metrics = AuthenticationMetrics::default();
        for (attempt, user) in [
            (Attempt::Success, Some("ann@example.com")),
            (Attempt::Success, Some("kubelet")),
            (Attempt::Success, Some("ann")),
            (Attempt::Success, Some("ben")),
            (Attempt::Error, None),
        ] {
            metrics.attempted(attempt, user, Duration::from_millis(3));
        }
        assert_eq!(
            lines(&metrics, "authenticated_user_requests"),
            [
                "authenticated_user_requests{username=\"email_id\"} 1",
                "authenticated_user_requests{username=\"kubelet\"} 1",
                "authenticated_user_requests{username=\"other\"} 2",
            ]
        );
        assert_eq!(
            lines(&metrics, "authentication_attempts"),
            [
                "authentication_attempts{result=\"success\"} 4",
                "authentication_attempts{result=\"failure\"} 0",
                "authentication_attempts{result=\"error\"} 1",
            ]
        );
    }

    #[test]
    fn certificates_are_counted_by_how_long_they_are_good() {
        let metrics = AuthenticationMetrics::default();
        for left in [-5, 3_601, 3_000_000] {
            metrics.certificate_shown(left);
        }
        let mut text = Text::default();
        metrics.write(&mut text);
        let text = text.finish();
        let name = "apiserver_client_certificate_expiration_seconds";
        for (bound, count) in [("0", 1), ("3600", 1), ("7200", 2), ("2.592e+06", 2), ("7.776e+06", 3)] {
            assert!(text.contains(&format!("{name}_bucket{{le=\"{bound}\"}} {count}\n")), "{bound}: {text}");
        }
    }

    #[test]
    fn what_is_waited_for_is_counted_until_it_is_there() {
        let metrics = AuthenticationMetrics::default();
        let active = || lines(&metrics, "authentication_token_cache_active_fetch_count");
        let held = (metrics.fetching(), metrics.waiting(), metrics.waiting());
        assert!(active().iter().any(|line| line.ends_with("{status=\"blocked\"} 2")));
        drop(held);
        assert!(active().iter().all(|line| line.ends_with(" 0")));
    }

    #[test]
    fn issuers_that_are_gone_are_forgotten_and_reloads_are_dated() {
        let metrics = AuthenticationMetrics::default();
        assert!(lines(&metrics, "apiserver_authentication").is_empty());
        metrics.configured("sha256:s".into(), "sha256:c".into());
        metrics.keys_fetched("a", Some("sha256:k".into()), 2_500);
        metrics.keys_fetched("b", None, 3_000);
        let fetched = "apiserver_authentication_jwt_authenticator_jwks_fetch_last";
        let labels =
            |issuer: &str| format!("{{apiserver_id_hash=\"sha256:s\",jwt_issuer_hash=\"{issuer}\",result=");
        assert_eq!(
            lines(&metrics, fetched),
            [
                format!("{fetched}_timestamp_seconds{}\"success\"}} 2.5", labels("a")),
                format!("{fetched}_timestamp_seconds{}\"failure\"}} 3", labels("b")),
                format!(
                    "{fetched}_key_set_info{{apiserver_id_hash=\"sha256:s\",hash=\"sha256:k\",jwt_issuer_hash=\"a\"}} 1"
                ),
            ]
        );
        metrics.keep_issuers(&["b".to_owned()].into());
        assert_eq!(lines(&metrics, fetched).len(), 1);
        metrics.reloaded(None, 1_000);
        metrics.reloaded(Some("sha256:d".into()), 2_000);
        let reloads = lines(&metrics, "apiserver_authentication_config_controller");
        assert!(reloads.iter().any(|line| line.ends_with("status=\"success\"} 1")), "{reloads:?}");
        assert!(reloads.iter().any(|line| line.contains("hash=\"sha256:d\"")), "{reloads:?}");
    }
}
