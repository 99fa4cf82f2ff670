//! kube-apiserver's flags that are accepted without effect, and why that is harmless.
//!
//! The rule: whoever gives the flag gets no less protection, and no other data, than without this server
//! ignoring it. Some are judged by their value.

use super::spec::FlagType::{Bool, List, One};
use super::spec::{Class, Flag, FlagType};

const fn harmless(name: &'static str, kind: FlagType, why: &'static str) -> Flag {
    Flag { name, kind, class: Class::Harmless(why) }
}

const fn judged(name: &'static str, kind: FlagType, judge: fn(&str) -> Result<(), &'static str>) -> Flag {
    Flag { name, kind, class: Class::Judged(judge) }
}

const NO_REDIRECT: &str = "no redirect of another API server is followed or handed on";
const OWN_WAIT: &str = "connections have deadlines of our own";
const NO_PEERS: &str = "servers do not find or call each other";
const NO_OUTGOING: &str = "no outgoing connection is made";
const OWN_PROBE: &str = "etcd is asked again and again, with deadlines of our own";
const OWN_TYPE: &str = "the kubernetes Service is reached at its cluster IP";
const NO_ELECTION: &str = "leases are not coordinated by the server";
const OWN_CACHE: &str = "the cache sizes itself";
const OWN_STORE: &str = "the embedded store looks after itself";
const OWN_LOG: &str = "logs are text on stderr, never held back";
const OWN_METRICS: &str = "concerns metrics only";
const NO_DEBUG: &str = "there is nothing to turn off";
const STRICTER: &str = "what it would let in stays out";
const NO_EMULATION: &str = "only one version is served";
const LOAD: &str = "spreads load, protects nothing";

pub(super) const ACCEPTED: &[Flag] = &[
    harmless("aggregator-reject-forwarding-redirect", Bool, NO_REDIRECT),
    harmless("allow-metric-labels", List, OWN_METRICS),
    harmless("allow-metric-labels-manifest", One, OWN_METRICS),
    harmless("apiserver-count", One, NO_PEERS),
    harmless("contention-profiling", Bool, NO_DEBUG),
    harmless("coordinated-leadership-lease-duration", One, NO_ELECTION),
    harmless("coordinated-leadership-renew-deadline", One, NO_ELECTION),
    harmless("coordinated-leadership-retry-period", One, NO_ELECTION),
    harmless("cors-allowed-origins", List, STRICTER),
    harmless("debug-socket-path", One, NO_DEBUG),
    harmless("default-watch-cache-size", One, OWN_CACHE),
    harmless("delete-collection-workers", One, OWN_STORE),
    harmless("disabled-metrics", List, OWN_METRICS),
    harmless("egress-selector-config-file", One, NO_OUTGOING),
    harmless("emulated-version", List, NO_EMULATION),
    harmless("emulation-forward-compatible", Bool, NO_EMULATION),
    judged("enable-garbage-collector", Bool, enable_garbage_collector),
    harmless("enable-logs-handler", Bool, STRICTER),
    harmless("endpoint-reconciler-type", One, NO_PEERS),
    harmless("etcd-count-metric-poll-period", One, OWN_METRICS),
    harmless("etcd-db-metric-poll-interval", One, OWN_METRICS),
    harmless("etcd-healthcheck-timeout", One, OWN_PROBE),
    harmless("etcd-readycheck-timeout", One, OWN_PROBE),
    harmless("goaway-chance", One, LOAD),
    harmless("kubelet-read-only-port", One, "it is in use nowhere"),
    harmless("kubelet-timeout", One, OWN_WAIT),
    harmless("kubernetes-service-node-port", One, OWN_TYPE),
    harmless("lease-reuse-duration-seconds", One, OWN_STORE),
    harmless("livez-grace-period", One, "the server is live as soon as it listens"),
    harmless("log-flush-frequency", One, OWN_LOG),
    harmless("log-text-info-buffer-size", One, OWN_LOG),
    harmless("log-text-split-stream", Bool, OWN_LOG),
    harmless("logging-format", One, OWN_LOG),
    harmless("max-connection-bytes-per-sec", One, "clients are held to their flows"),
    harmless("min-compatibility-version", List, NO_EMULATION),
    harmless("peer-advertise-ip", One, NO_PEERS),
    harmless("peer-advertise-port", One, NO_PEERS),
    harmless("peer-ca-file", One, NO_PEERS),
    harmless("permit-address-sharing", Bool, "a port in use is an error at start"),
    harmless("permit-port-sharing", Bool, "a port in use is an error at start"),
    harmless("profiling", Bool, NO_DEBUG),
    judged("runtime-config", List, runtime_config),
    harmless("runtime-config-emulation-forward-compatible", Bool, NO_EMULATION),
    harmless("show-hidden-metrics-for-version", One, OWN_METRICS),
    harmless("shutdown-send-retry-after", Bool, LOAD),
    judged("storage-backend", One, storage_backend),
    harmless("storage-initialization-timeout", One, "/readyz tells when the store is ready"),
    harmless("storage-media-type", One, "how objects are kept does not show"),
    harmless("vmodule", List, OWN_LOG),
    harmless("watch-cache", Bool, OWN_CACHE),
    harmless("watch-cache-sizes", List, OWN_CACHE),
];

fn is_false(value: &str) -> bool {
    super::values::bool(value) == Ok(false)
}

fn enable_garbage_collector(value: &str) -> Result<(), &'static str> {
    if is_false(value) { Err("dependents would be deleted with their owner all the same") } else { Ok(()) }
}

fn runtime_config(value: &str) -> Result<(), &'static str> {
    match value.rsplit_once('=') {
        Some((_, switch)) if is_false(switch) => Err("the API would be served all the same"),
        _ => Ok(()),
    }
}

fn storage_backend(value: &str) -> Result<(), &'static str> {
    if matches!(value, "" | "etcd3") { Ok(()) } else { Err("the data would be kept in another store") }
}
