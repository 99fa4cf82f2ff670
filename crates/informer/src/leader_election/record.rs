//! What a Lease says about leadership, and Leases that say something else about it.
//!
//! In: a Lease. Out: its holder and how long it lasts; the same Lease taken, renewed or released. Never:
//! changes what is not about leadership (labels, owners, a strategy), or trusts a time that somebody else
//! wrote.

use forebay_rt::Duration;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::config::Config;
use super::limits;

/// Who holds it; empty when nobody does.
pub fn holder(lease: &Lease) -> &str {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}

/// How long it lasts since it was seen to change. One that does not say so lasts as long as our own: who
/// wrote it may well think that it leads.
pub fn duration(lease: &Lease, config: &Config) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds).unwrap_or(0);
    match u64::try_from(seconds) {
        Ok(seconds @ 1..) => Duration::from_secs(seconds),
        _ => Duration::from_secs(config.lease_seconds().unsigned_abs().into()),
    }
}

/// A new one, held by us.
pub fn new(config: &Config, unix_ms: u64) -> Lease {
    let mut lease = Lease::default();
    lease.metadata.namespace = Some(config.namespace.clone());
    lease.metadata.name = Some(config.name.clone());
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(config.identity.clone()),
        lease_duration_seconds: Some(config.lease_seconds()),
        acquire_time: Some(time(unix_ms)),
        renew_time: Some(time(unix_ms)),
        lease_transitions: Some(0),
        ..LeaseSpec::default()
    });
    lease
}

/// The same lease held by us: renewed when it was already, taken over otherwise.
pub fn held(lease: &Lease, config: &Config, unix_ms: u64) -> Lease {
    let is_ours = holder(lease) == config.identity;
    let mut next = lease.clone();
    let spec = next.spec.get_or_insert_default();
    let now = time(unix_ms);
    // A renewal that changes nothing is none to those who watch: it goes on also where our clock stands still
    // or back.
    let after = spec.renew_time.as_ref().filter(|_| is_ours).map_or(now.clone(), |before| {
        let next = before.0.checked_add(SignedDuration::from_micros(1)).unwrap_or(before.0);
        MicroTime(next.max(now.0))
    });
    if !is_ours || spec.acquire_time.is_none() {
        spec.acquire_time = Some(now);
    }
    let transitions = spec.lease_transitions.unwrap_or(0);
    spec.lease_transitions = Some(if is_ours { transitions } else { transitions.saturating_add(1) });
    spec.holder_identity = Some(config.identity.clone());
    spec.lease_duration_seconds = Some(config.lease_seconds());
    spec.renew_time = Some(after);
    next
}

/// The same lease held by nobody.
pub fn released(lease: &Lease, unix_ms: u64) -> Lease {
    let mut next = lease.clone();
    let spec = next.spec.get_or_insert_default();
    spec.holder_identity = None;
    spec.lease_duration_seconds = Some(limits::RELEASED_SECONDS);
    spec.acquire_time = Some(time(unix_ms));
    spec.renew_time = Some(time(unix_ms));
    next
}

fn time(unix_ms: u64) -> MicroTime {
    let ms = i64::try_from(unix_ms).unwrap_or(i64::MAX);
    MicroTime(Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX))
}
