//! A webhook is asked whether somebody may, and says so, or never does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use forebay_api::BoxFuture;
use forebay_auth::config::AuthorizationMode;
use forebay_auth::{AuthorizationWebhook, CarriedReview, CarriesReviews, NotCarried};
use forebay_authorization::{
    AuthorizationMetrics, MatchConditions, OnWebhookError, ReviewVersion, WebhookAuthorizerConfig,
};
use forebay_rt::{Clock, Duration, Random};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::server::{KNOWN, Server, Setup, WAIT};
use crate::config::Authorization;

/// Never says, but tells that it was asked.
#[derive(Default)]
struct Silent(Notify);

/// Allows everything but to create.
struct NothingNew;

impl CarriesReviews for NothingNew {
    fn carry(&self, review: Bytes) -> BoxFuture<'_, Result<CarriedReview, NotCarried>> {
        let review: Value = serde_json::from_slice(&review).expect("JSON");
        let allowed = review["spec"]["resourceAttributes"]["verb"] != "create";
        let body = json!({ "status": { "allowed": allowed, "reason": "nothing new" } });
        Box::pin(async move { Ok(CarriedReview { number: 200, body: body.to_string().into() }) })
    }
}

impl CarriesReviews for Silent {
    fn carry(&self, _: Bytes) -> BoxFuture<'_, Result<CarriedReview, NotCarried>> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

/// Has no opinion, and counts how often it was asked.
#[derive(Default)]
struct Counts(AtomicUsize);

impl CarriesReviews for Counts {
    fn carry(&self, _: Bytes) -> BoxFuture<'_, Result<CarriedReview, NotCarried>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let body = json!({ "status": { "allowed": false } }).to_string().into();
        Box::pin(async move { Ok(CarriedReview { number: 200, body }) })
    }
}

/// It is given up after half a minute.
const CALL: Duration = Duration::from_secs(30);

fn asking(webhook: Arc<dyn CarriesReviews>) -> Authorization {
    let config = WebhookAuthorizerConfig {
        authorized_ttl: None,
        unauthorized_ttl: None,
        timeout: CALL,
        version: ReviewVersion::V1,
        on_error: OnWebhookError::NoOpinion,
        kubeconfig: "/k".into(),
        conditions: Vec::new(),
    };
    let conditions = MatchConditions::of(&[], "").expect("none");
    let metrics = Arc::<AuthorizationMetrics>::default();
    let with = (Clock::system(), Random::seeded(1));
    let webhook = AuthorizationWebhook::new("w", config, conditions, webhook, metrics.clone(), with);
    Authorization { modes: vec![AuthorizationMode::Webhook(Arc::new(webhook))], metrics }
}

#[tokio::test]
async fn the_time_of_a_request_counts_while_it_is_not_known_whether_it_may() {
    let silent = Arc::<Silent>::default();
    let server = Server::start(Setup { authorization: asking(silent.clone()), ..Setup::default() }).await;
    let (clock, five) = (Clock::system(), Duration::from_secs(5));
    for (target, header, code, takes) in [
        ("namespaces?timeout=5s", "", 504, five),
        ("namespaces?timeout=5s", "Impersonate-User: another\r\n", 504, five),
        // One that may take as long as it likes has no such time.
        ("namespaces?watch=1&timeout=5s", "", 500, CALL),
    ] {
        let before = clock.now();
        let mut stream = server.open(b"http/1.1").await;
        let ask = format!("GET /api/v1/{target} HTTP/1.1\r\nHost: x\r\n{KNOWN}{header}\r\n");
        stream.write_all(ask.as_bytes()).await.expect("open");
        stream.flush().await.expect("open");
        silent.0.notified().await;
        tokio::time::pause();
        let paused = clock.now();
        let mut answer = [0; 12];
        let read = timeout(WAIT, stream.read_exact(&mut answer)).await;
        read.expect("in time").expect("an answer");
        assert_eq!(answer, *format!("HTTP/1.1 {code}").as_bytes(), "{target} {header}");
        let over = clock.now();
        assert!(before + takes <= over, "{target} {header}: not sooner");
        assert!(takes == CALL || over < paused + CALL, "{target} {header}: not by the webhook's time");
        tokio::time::resume();
    }
}

#[tokio::test]
async fn who_connects_to_a_pod_by_a_get_may_create_and_is_told_so_behind_what_is_wrong_with_the_request() {
    let server =
        Server::start(Setup { authorization: asking(Arc::new(NothingNew)), ..Setup::default() }).await;
    for (path, code, said) in [
        ("exec?command=ls&dryRun=All", 400, "dryRun is not supported"),
        ("portforward?ports=x", 400, "strconv.ParseUint"),
        ("exec?command=ls", 403, r#"pods \"p\" is forbidden: nothing new"#),
        ("attach", 403, r#"pods \"p\" is forbidden: nothing new"#),
        ("portforward", 403, r#"pods \"p\" is forbidden: nothing new"#),
        // Whoever reads a log reads.
        ("log", 405, "answered by the kubelet of a node"),
    ] {
        let answer = server.ask("GET", &format!("/api/v1/namespaces/default/pods/p/{path}"), "", "").await;
        assert!(answer.0 == code && answer.1.contains(said), "{path}: {answer:?}");
    }
}

#[tokio::test]
async fn a_health_check_that_is_well_asks_once_who_decides() {
    let counts = Arc::<Counts>::default();
    let server = Server::start(Setup { authorization: asking(counts.clone()), ..Setup::default() }).await;
    for (path, code) in [("/livez", 200), ("/livez/ping", 200), ("/readyz/ping", 200), ("/metrics/", 403)] {
        let before = counts.0.load(Ordering::SeqCst);
        assert_eq!(server.ask("GET", path, "", "").await.0, code, "{path}");
        assert_eq!(counts.0.load(Ordering::SeqCst), before + 1, "{path}");
    }
}
