//! The Lease by which a server says that it is there: `apiserver-<hash>` in kube-system, as kube-apiserver keeps one.
//!
//! In: what the host is called, and where the server is reached. Out: the Lease, made at the start and renewed from then on at a pace
//! that leaves an idle disk alone (ADR 47), and the end of those whose servers are gone. It also moves the store's revision: a
//! continue token names one, and is over once history has moved past it. Owner: one task. Where others may be on the store a server
//! that ends takes its own away; alone it leaves it, and its next start takes it over.
//!
//! Source: kubernetes v1.36.3 `controlplane/apiserver/server.go`, `controlplane/controller/apiserverleasegc`; component-helpers
//! v0.36.3 `apimachinery/lease`; apiserver v0.36.3 `server/config.go`.

use std::time::Duration;

use forebay_apimachinery::options::{DeleteOptions, Preconditions};
use forebay_apimachinery::selector::label_value_faults;
use forebay_apimachinery::{Lease, Reason, Status};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::registry::Registry;
use crate::request::Target;
use crate::store::{Current, Decision, Mode};

const NAMESPACE: &str = "kube-system";
/// Whose Lease it is: those of other components are for leader election.
const LABEL: &str = "apiserver.kubernetes.io/identity";
const COMPONENT: &str = "kube-apiserver";
const HOSTNAME: &str = "kubernetes.io/hostname";

/// How often it is renewed, and looked for those that are over. kube-apiserver does it each 10 s, 8,640 times a day; this is 360 times,
/// each a commit of 52 KiB and, when what it replaced is given up, another of 40 (ADR 47). More often than history is kept for, so that a
/// token is over within less than twice that, for which upstream's conformance test waits.
const RENEW_EVERY: Duration = Duration::from_secs(4 * 60);
/// After one that failed.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// How long a server that says nothing is taken to be there, as upstream has it.
const DURATION_SECONDS: u64 = 3_600;

/// For how long either engine keeps history, unless it is told otherwise.
const HISTORY: Duration = Duration::from_secs(5 * 60);
/// How long upstream's conformance test waits for a token to be over, less its own pace and that of marks.
const TOKEN_WAIT: Duration = Duration::from_secs(10 * 60 - 20 - 10);
const _: () = assert!(RENEW_EVERY.as_secs() + HISTORY.as_secs() < TOKEN_WAIT.as_secs());
const _: () = assert!(DURATION_SECONDS >= 3 * RENEW_EVERY.as_secs());

/// What a server is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    name: String,
    hostname: String,
}

impl Identity {
    /// The server on the host `hostname`, of the same name after each start.
    ///
    /// - `place`: where it is reached, which tells servers of one host apart; none for one that is alone on its store, which has the
    ///   name that kube-apiserver would have there.
    pub fn new(hostname: &str, place: Option<&str>) -> Identity {
        let mut hash = Sha256::new();
        for part in [Some(hostname), Some(COMPONENT), place].into_iter().flatten() {
            // Two bytes say how long it is: a longer one has no second meaning here.
            hash.update((part.len() as u16).to_be_bytes());
            hash.update(part);
        }
        let name = format!("apiserver-{}", base32(&hash.finalize()[..16]));
        Identity { name, hostname: hostname.to_owned() }
    }

    /// Makes `lease` say that `holder` is there `now`.
    fn put_into(&self, lease: &mut Value, holder: &str, now: Timestamp) {
        lease["metadata"]["labels"][LABEL] = COMPONENT.into();
        // A host may have a name that is no label.
        if label_value_faults(&self.hostname).is_empty() {
            lease["metadata"]["labels"][HOSTNAME] = self.hostname.as_str().into();
        }
        lease["spec"]["holderIdentity"] = holder.into();
        lease["spec"]["leaseDurationSeconds"] = DURATION_SECONDS.into();
        lease["spec"]["renewTime"] = now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string().into();
    }
}

impl Registry {
    /// Says that this server is there, and goes on to. It does not wait for a store that takes no writes.
    pub(crate) async fn start_identity(&self) {
        let Some(identity) = self.config.identity.clone() else { return };
        let holder = format!("{}_{}", identity.name, self.random.uuid());
        let next = self.look_after_identity(&identity, &holder).await;
        self.tasks.spawn("identity lease", self.clone().keep_identity(identity, holder, next));
    }

    async fn keep_identity(self, identity: Identity, holder: String, mut next: Duration) {
        loop {
            self.clock.sleep(next).await;
            next = self.look_after_identity(&identity, &holder).await;
        }
    }

    /// Renews the Lease and ends those that are over. When to do so again.
    async fn look_after_identity(&self, identity: &Identity, holder: &str) -> Duration {
        let done = match self.renew_identity(identity, holder).await {
            Ok(()) => self.end_old_identities(identity).await,
            failed => failed,
        };
        match done {
            Ok(()) => RENEW_EVERY,
            Err(status) => {
                tracing::warn!(
                    why = status.message,
                    "the identity lease of this server is not as it should be yet"
                );
                RETRY_AFTER
            }
        }
    }

    async fn renew_identity(&self, identity: &Identity, holder: &str) -> Result<(), Status> {
        let Some(_turn) = self.services.turn_to_stay().await else { return Ok(()) };
        let target = self.identity_leases()?;
        let (served, store) = (&target.served, self.store_of(&target.served)?);
        let key = store.key(NAMESPACE, &identity.name);
        let judge = |current: Option<&Current>| {
            let mut lease = match current {
                Some(current) => served.to_value(&current.object)?,
                None => {
                    let mut new = json!({
                        "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
                        "metadata": { "name": identity.name, "namespace": NAMESPACE },
                    });
                    self.prepare(&target, &mut new)?;
                    new
                }
            };
            identity.put_into(&mut lease, holder, self.timestamp());
            Ok(Decision::Put { value: served.encode(lease)?, ttl: None, carry: () })
        };
        store.guarded_update(&key, Mode::Commit, judge).await.map(drop)
    }

    /// Takes this server's Lease away, which goes.
    pub(crate) async fn end_identity(&self) -> Result<(), Status> {
        let Some(identity) = &self.config.identity else { return Ok(()) };
        let target = Target { name: Some(identity.name.clone()), ..self.identity_leases()? };
        gone(self.delete(&target, &DeleteOptions::default()).await.map(drop))
    }

    /// Deletes the Leases of servers that have said nothing for longer than they said they would.
    async fn end_old_identities(&self, own: &Identity) -> Result<(), Status> {
        let leases = self.identity_leases()?;
        let store = self.store_of(&leases.served)?;
        let now = self.timestamp();
        let snapshot = store.cacher.snapshot().map_err(|error| crate::errors::cache(&error))?;
        let all = snapshot.range(&store.reach(Some(NAMESPACE), None), None);
        for lease in all.filter(|lease| lease.label(LABEL) == Some(COMPONENT) && lease.name() != own.name) {
            let value = leases.served.to_value(lease)?;
            if !is_over(&value["spec"], now) {
                continue;
            }
            // One that was renewed meanwhile is another state.
            let preconditions = Preconditions {
                uid: value["metadata"]["uid"].as_str().map(str::to_owned),
                resource_version: value["metadata"]["resourceVersion"].as_str().map(str::to_owned),
            };
            let target = Target { name: Some(lease.name().to_owned()), ..leases.clone() };
            let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
            gone(self.delete(&target, &options).await.map(drop))?;
        }
        Ok(())
    }

    fn identity_leases(&self) -> Result<Target, Status> {
        let served = self.catalog().resource("coordination.k8s.io", "v1", "leases").cloned();
        let served = served.ok_or_else(|| Status::internal("leases are not served"))?;
        let namespace = Some(NAMESPACE.to_owned());
        Ok(Target {
            served,
            namespace,
            name: None,
            subresource: None,
            caller: None,
            lease: Lease::of_server(),
        })
    }
}

/// Whether a Lease is over at `now`. One that does not say for how long it is was not made by a server.
fn is_over(spec: &Value, now: Timestamp) -> bool {
    let renewed = spec["renewTime"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    match (renewed, spec["leaseDurationSeconds"].as_i64()) {
        (Some(renewed), Some(seconds)) => renewed.as_second().saturating_add(seconds) < now.as_second(),
        _ => true,
    }
}

/// Another server may have deleted it, or its own have renewed it.
fn gone(done: Result<(), Status>) -> Result<(), Status> {
    match done {
        Err(status) if !matches!(status.reason, Reason::NotFound | Reason::Conflict) => Err(status),
        _ => Ok(()),
    }
}

/// RFC 4648 in lower case, without padding.
fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
    let bits: Vec<u8> = bits.collect();
    let letter = |five: &[u8]| {
        let number = five.iter().fold(0, |number, bit| number << 1 | bit);
        char::from(LETTERS[usize::from(number << (5 - five.len()))])
    };
    bits.chunks(5).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_server_has_the_name_that_kube_apiserver_has_there() {
        for (hostname, name) in [
            ("node-1", "apiserver-lgabes5ywnaqeagh5dny4zlzs4"),
            ("example.org", "apiserver-dzfmufcbmcqhprkionatesolty"),
        ] {
            assert_eq!(Identity::new(hostname, None).name, name);
        }
        let here = |place| Identity::new("node-1", Some(place)).name;
        assert_eq!(here("192.0.2.1:6443"), here("192.0.2.1:6443"));
        assert_ne!(here("192.0.2.1:6443"), here("192.0.2.1:7443"));
    }

    #[test]
    fn a_lease_is_over_once_its_time_has_passed_or_nobody_says_how_long_that_is() {
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().expect("a time");
        for (spec, over) in [
            (json!({ "renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 3600 }), false),
            (json!({ "renewTime": "2025-12-31T23:59:59.000000Z", "leaseDurationSeconds": 3600 }), true),
            (json!({ "renewTime": "2026-01-01T00:00:00.000000Z" }), true),
            (json!({ "leaseDurationSeconds": 3600 }), true),
            (Value::Null, true),
        ] {
            assert_eq!(is_over(&spec, now), over, "{spec}");
        }
    }

    #[test]
    fn a_host_whose_name_is_no_label_is_left_out_of_the_labels() {
        let labels = |hostname: &str| {
            let mut lease = json!({});
            Identity::new(hostname, None).put_into(&mut lease, "h", Timestamp::UNIX_EPOCH);
            assert_eq!(lease["spec"]["renewTime"], "1970-01-01T00:00:00.000000Z");
            lease["metadata"]["labels"].clone()
        };
        assert_eq!(labels("node-1"), json!({ LABEL: COMPONENT, HOSTNAME: "node-1" }));
        assert_eq!(labels(&"n".repeat(64)), json!({ LABEL: COMPONENT }));
    }
}
