//! The flags of audit logs, in the order of `--help`: those of kube-apiserver, with its defaults. Read by
//! `crate::config`.

use super::served::served;
use super::spec::Flag;
use super::spec::FlagType::{self, Bool, One};
use super::spec::Heading::Audit;

const fn audit(
    name: &'static str,
    kind: FlagType,
    value: &'static str,
    default: &'static str,
    text: &'static str,
) -> Flag {
    served(Audit, name, kind, value, default, text)
}

const MODES: &str = "batch, blocking (requests wait for it) or blocking-strict (and fail with it).";
const BUFFER: &str = "Events that wait, in mode batch; what is beyond is lost.";
const SIZE: &str = "Events of a batch, in mode batch.";
const WAIT: &str = "How long a batch that is not full waits for more, in mode batch.";
const THROTTLE: &str = "Send batches at a limited rate, in mode batch.";
const QPS: &str = "Batches a second, in mode batch.";
const BURST: &str = "Batches at the same moment, in mode batch.";
const VERSION: &str = "API group and version of events.";
const TRUNCATE: &str = "Leave bodies out of events that are too long.";
const EVENT_BYTES: &str = "Longest event in bytes; what is still longer without bodies is lost.";
const BATCH_BYTES: &str = "Longest batch in bytes; a longer one is sent in parts.";

pub(super) const SERVED_AUDIT: &[Flag] = &[
    audit("audit-policy-file", One, "FILE", "", "Which requests are noted, and how much of them."),
    audit("audit-log-path", One, "FILE", "", "File that gets the events, a line each; - is standard output."),
    audit("audit-log-format", One, "FORMAT", "json", "json, or legacy: a line of text."),
    audit("audit-log-maxage", One, "DAYS", "366", "How long old files stay; 0 is for ever."),
    audit("audit-log-maxbackup", One, "N", "100", "How many old files stay; 0 is all."),
    audit("audit-log-maxsize", One, "MB", "100", "Size at which another file is begun; 0 is never."),
    audit("audit-log-compress", Bool, "", "false", "Compress old files with gzip."),
    audit("audit-log-version", One, "VERSION", "audit.k8s.io/v1", VERSION),
    audit("audit-log-mode", One, "MODE", "blocking", MODES),
    audit("audit-log-batch-buffer-size", One, "N", "10000", BUFFER),
    audit("audit-log-batch-max-size", One, "N", "1", SIZE),
    audit("audit-log-batch-max-wait", One, "DURATION", "0s", WAIT),
    audit("audit-log-batch-throttle-enable", Bool, "", "false", THROTTLE),
    audit("audit-log-batch-throttle-qps", One, "N", "0", QPS),
    audit("audit-log-batch-throttle-burst", One, "N", "0", BURST),
    audit("audit-log-truncate-enabled", Bool, "", "false", TRUNCATE),
    audit("audit-log-truncate-max-event-size", One, "BYTES", "102400", EVENT_BYTES),
    audit("audit-log-truncate-max-batch-size", One, "BYTES", "10485760", BATCH_BYTES),
    audit("audit-webhook-config-file", One, "FILE", "", "Kubeconfig of the server that is sent the events."),
    audit(
        "audit-webhook-initial-backoff",
        One,
        "DURATION",
        "10s",
        "How long to wait before events are sent again; longer each time.",
    ),
    audit("audit-webhook-batch-initial-backoff", One, "DURATION", "", "The same, by its deprecated name."),
    audit("audit-webhook-version", One, "VERSION", "audit.k8s.io/v1", VERSION),
    audit("audit-webhook-mode", One, "MODE", "batch", MODES),
    audit("audit-webhook-batch-buffer-size", One, "N", "10000", BUFFER),
    audit("audit-webhook-batch-max-size", One, "N", "400", SIZE),
    audit("audit-webhook-batch-max-wait", One, "DURATION", "30s", WAIT),
    audit("audit-webhook-batch-throttle-enable", Bool, "", "true", THROTTLE),
    audit("audit-webhook-batch-throttle-qps", One, "N", "10", QPS),
    audit("audit-webhook-batch-throttle-burst", One, "N", "15", BURST),
    audit("audit-webhook-truncate-enabled", Bool, "", "false", TRUNCATE),
    audit("audit-webhook-truncate-max-event-size", One, "BYTES", "102400", EVENT_BYTES),
    audit("audit-webhook-truncate-max-batch-size", One, "BYTES", "10485760", BATCH_BYTES),
];
