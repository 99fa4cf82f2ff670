//! certificatesigningrequest-cleaner-controller: requests go an hour after they were decided, a day after
//! nobody did, and with the certificates that were made for them.
//!
//! In: requests. Out: deletes, of exactly the state that was judged. Never: waits for its turn in a round of
//! all requests: each is looked at when its time has come.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/certificates/cleaner`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_apimachinery::options::{DeleteOptions, Preconditions};
use forebay_apimachinery::{Reason, Status};
use forebay_registry::{Informer, Notice};
use forebay_rt::{Duration, Instant};
use jiff::{SignedDuration, Timestamp};

use super::request::{self, Request, read};
use crate::acting::ActingRegistry;
use crate::limits;
use crate::objects::delete;
use crate::queue::{Queue, Verdict};
use crate::run::Named;

/// What is decided is kept so long.
const DECIDED: SignedDuration = SignedDuration::from_hours(1);
/// What is not decided, or not signed.
const PENDING: SignedDuration = SignedDuration::from_hours(24);

/// The controller.
pub struct CertificateCleaner(pub ActingRegistry);

impl Named for CertificateCleaner {
    const NAME: &'static str = crate::Controller::CertificateCleaner.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        request::informers(&self.0)
    }

    fn observe(&self, _: usize, notice: &Notice, now: Instant, queue: &mut Queue<String>) {
        request::observe(notice, now, queue);
    }

    fn sync(&self, name: String) -> impl Future<Output = Verdict> + Send + 'static {
        let registry = self.0.clone();
        async move {
            match sync(&registry, &name).await {
                Ok(None) => Verdict::Done,
                Ok(Some(wait)) => Verdict::Until(registry.clock().now() + wait.min(limits::EXPIRY_WAIT_MAX)),
                // Somebody else was faster, who is told of.
                Err(status) if status.reason == Reason::Conflict => Verdict::Done,
                Err(status) => Verdict::Retry(status.message),
            }
        }
    }
}

/// How long it has still, if it is there.
async fn sync(registry: &ActingRegistry, name: &str) -> Result<Option<Duration>, Status> {
    let Some((target, value)) = read(registry, name).await? else { return Ok(None) };
    let request = Request::of(&value)?;
    let Some(ends) = ends(&request) else { return Ok(None) };
    let left = ends.duration_since(registry.timestamp());
    if !left.is_negative() {
        // A moment later it is over.
        let left = Duration::try_from(left).unwrap_or(limits::EXPIRY_WAIT_MAX);
        return Ok(Some(left + Duration::from_secs(1)));
    }
    tracing::info!(name, "a request for a certificate is over");
    let preconditions = Preconditions {
        uid: Some(request.metadata.uid),
        resource_version: Some(request.metadata.resource_version),
    };
    let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
    delete(registry, &target, &options).await.map(|()| None)
}

/// When its time is over; never, if nothing of it says so.
fn ends(request: &Request) -> Option<Timestamp> {
    let after = |time: &Option<String>, so_long: SignedDuration| {
        let time: Timestamp = time.as_deref()?.parse().ok()?;
        time.checked_add(so_long).ok()
    };
    if request.conditions().next().is_none() {
        return after(&request.metadata.creation_timestamp, PENDING);
    }
    let decided = request.conditions().filter_map(|condition| {
        let so_long = match &*condition.r#type {
            "Approved" if !request.is_issued() => PENDING,
            "Approved" | "Denied" | "Failed" => DECIDED,
            _ => return None,
        };
        after(&condition.last_update_time, so_long)
    });
    let certificate = request.status.certificate.as_deref().filter(|_| request.has("Approved"));
    let expires = certificate
        .and_then(|certificate| STANDARD.decode(certificate).ok())
        .and_then(|pem| forebay_pki::signing::expires(&pem));
    decided.chain(expires).min()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_decided_ends_after_an_hour_and_what_is_not_after_a_day() {
        let ends = |conditions: serde_json::Value, certificate: &str| {
            let request = json!({
                "metadata": { "creationTimestamp": "2026-01-01T00:00:00Z" },
                "status": { "conditions": conditions, "certificate": certificate },
            });
            ends(&Request::of(&request).expect("a request")).map(|at| at.to_string())
        };
        let condition =
            |kind: &str, time: &str| json!([{ "type": kind, "status": "True", "lastUpdateTime": time }]);
        let at = |time: &str| Some(time.to_owned());
        assert_eq!(ends(json!(null), ""), at("2026-01-02T00:00:00Z"));
        let (hour, day) = (at("2026-01-01T02:00:00Z"), at("2026-01-02T01:00:00Z"));
        assert_eq!(ends(condition("Approved", "2026-01-01T01:00:00Z"), ""), day);
        assert_eq!(ends(condition("Approved", "2026-01-01T01:00:00Z"), "eA=="), hour);
        assert_eq!(ends(condition("Denied", "2026-01-01T01:00:00Z"), ""), hour);
        assert_eq!(ends(condition("Failed", "2026-01-01T01:00:00Z"), ""), hour);
        assert_eq!(ends(condition("Other", "2026-01-01T01:00:00Z"), ""), None);
    }
}
