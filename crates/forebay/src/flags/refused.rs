//! kube-apiserver's flags that are refused until they are served, and why ignoring them would do harm.
//!
//! A flag comes out of this table when what it asks for is done, never because it is in the way.

use super::spec::FlagType::{Bool, Each, List, One};
use super::spec::{Class, Flag, FlagType};

const fn refused(name: &'static str, kind: FlagType, why: &'static str) -> Flag {
    Flag { name, kind, class: Class::Refused(why) }
}

const ADMISSION: &str = "requests would be admitted unchecked";
const AUDIT: &str = "no audit log would be written";
const AUTHENTICATION: &str = "users would not be authenticated as it says";
const AUTHORIZATION: &str = "requests would not be authorized as it says";

pub(super) const REFUSED: &[Flag] = &[
    refused("admission-control", List, ADMISSION),
    refused("audit-log-batch-buffer-size", One, AUDIT),
    refused("audit-log-batch-max-size", One, AUDIT),
    refused("audit-log-batch-max-wait", One, AUDIT),
    refused("audit-log-batch-throttle-burst", One, AUDIT),
    refused("audit-log-batch-throttle-enable", Bool, AUDIT),
    refused("audit-log-batch-throttle-qps", One, AUDIT),
    refused("audit-log-compress", Bool, AUDIT),
    refused("audit-log-format", One, AUDIT),
    refused("audit-log-maxage", One, AUDIT),
    refused("audit-log-maxbackup", One, AUDIT),
    refused("audit-log-maxsize", One, AUDIT),
    refused("audit-log-mode", One, AUDIT),
    refused("audit-log-path", One, AUDIT),
    refused("audit-log-truncate-enabled", Bool, AUDIT),
    refused("audit-log-truncate-max-batch-size", One, AUDIT),
    refused("audit-log-truncate-max-event-size", One, AUDIT),
    refused("audit-log-version", One, AUDIT),
    refused("audit-policy-file", One, AUDIT),
    refused("audit-webhook-batch-buffer-size", One, AUDIT),
    refused("audit-webhook-batch-initial-backoff", One, AUDIT),
    refused("audit-webhook-batch-max-size", One, AUDIT),
    refused("audit-webhook-batch-max-wait", One, AUDIT),
    refused("audit-webhook-batch-throttle-burst", One, AUDIT),
    refused("audit-webhook-batch-throttle-enable", Bool, AUDIT),
    refused("audit-webhook-batch-throttle-qps", One, AUDIT),
    refused("audit-webhook-config-file", One, AUDIT),
    refused("audit-webhook-initial-backoff", One, AUDIT),
    refused("audit-webhook-mode", One, AUDIT),
    refused("audit-webhook-truncate-enabled", Bool, AUDIT),
    refused("audit-webhook-truncate-max-batch-size", One, AUDIT),
    refused("audit-webhook-truncate-max-event-size", One, AUDIT),
    refused("audit-webhook-version", One, AUDIT),
    refused("authentication-config", One, AUTHENTICATION),
    refused("authentication-token-webhook-cache-ttl", One, AUTHENTICATION),
    refused("authentication-token-webhook-config-file", One, AUTHENTICATION),
    refused("authentication-token-webhook-version", One, AUTHENTICATION),
    refused("authorization-config", One, AUTHORIZATION),
    refused("authorization-policy-file", One, AUTHORIZATION),
    refused("authorization-webhook-cache-authorized-ttl", One, AUTHORIZATION),
    refused("authorization-webhook-cache-unauthorized-ttl", One, AUTHORIZATION),
    refused("authorization-webhook-config-file", One, AUTHORIZATION),
    refused("authorization-webhook-version", One, AUTHORIZATION),
    refused("etcd-servers-overrides", List, "all objects are kept in one store"),
    refused("oidc-ca-file", One, AUTHENTICATION),
    refused("oidc-client-id", One, AUTHENTICATION),
    refused("oidc-groups-claim", One, AUTHENTICATION),
    refused("oidc-groups-prefix", One, AUTHENTICATION),
    refused("oidc-issuer-url", One, AUTHENTICATION),
    refused("oidc-required-claim", List, AUTHENTICATION),
    refused("oidc-signing-algs", List, AUTHENTICATION),
    refused("oidc-username-claim", One, AUTHENTICATION),
    refused("oidc-username-prefix", One, AUTHENTICATION),
    refused("service-account-signing-endpoint", One, "tokens would be signed with a key kept here"),
    refused("strict-transport-security-directives", List, "browsers would not be told to insist on HTTPS"),
    refused("tls-curve-preferences", List, "other curves would be offered too"),
    refused("tls-sni-cert-key", Each, "clients of that name would be shown another certificate"),
];
