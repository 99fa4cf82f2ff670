//! The flags that are served, in the order of `--help`.
//!
//! Where kube-apiserver has a flag for the same thing, its name and meaning are used; where the default differs, the
//! text says what it is here. Read by [`crate::config`].

use super::spec::Heading::{Api, Authentication, Authorization, Data, Limits, Logging, Serving, Tls};
use super::spec::Kind::{Bool, Each, List, One};
use super::spec::{Class, Flag, Heading, Help, Kind};

const fn served(
    heading: Heading,
    name: &'static str,
    kind: Kind,
    value: &'static str,
    default: &'static str,
    text: &'static str,
) -> Flag {
    Flag { name, kind, class: Class::Served(Help { heading, value, default, text }) }
}

/// Served flags whose values are read and checked, and used by nothing so far: there are no service account tokens.
pub(super) const NOT_YET: &[&str] = &[
    "api-audiences",
    "service-account-issuer",
    "service-account-key-file",
    "service-account-max-token-expiration",
    "service-account-signing-key-file",
];

pub(super) const SERVED: &[Flag] = &[
    served(Data, "data-dir", One, "DIR", "./forebay-data", "Directory for everything that is kept."),
    served(Data, "etcd-prefix", One, "PATH", "/registry", "Prefix of the keys of all objects in the store."),
    served(Data, "event-ttl", One, "DURATION", "1h0m0s", "How long events are kept; 0 keeps them."),
    served(Serving, "bind-address", One, "IP", "127.0.0.1", "Address to listen on; 0.0.0.0 or :: for all."),
    served(Serving, "secure-port", One, "PORT", "6443", "Port for HTTPS; 0 takes a free one."),
    served(
        Serving,
        "advertise-address",
        One,
        "IP",
        "",
        "Address at which others reach this server [the bind address].",
    ),
    served(
        Serving,
        "external-hostname",
        One,
        "NAME",
        "",
        "Name at which others reach this server; the certificate covers it.",
    ),
    served(Serving, "disable-http2-serving", Bool, "", "false", "Serve HTTP/1.1 only."),
    served(
        Serving,
        "http2-max-streams-per-connection",
        One,
        "N",
        "0",
        "Requests in flight on one HTTP/2 connection; 0 leaves it to the server.",
    ),
    served(
        Serving,
        "shutdown-delay-duration",
        One,
        "DURATION",
        "0s",
        "How long to go on serving, with /readyz failing, once told to stop.",
    ),
    served(
        Tls,
        "cert-dir",
        One,
        "DIR",
        "",
        "Directory for the certificates made on first start [pki in the data directory].",
    ),
    served(
        Tls,
        "tls-cert-file",
        One,
        "FILE",
        "",
        "Certificate to serve, PEM, followed by its chain, instead of a made one.",
    ),
    served(Tls, "tls-private-key-file", One, "FILE", "", "Private key of --tls-cert-file, PEM."),
    served(Tls, "tls-min-version", One, "VERSION", "VersionTLS12", "VersionTLS12 or VersionTLS13."),
    served(
        Tls,
        "tls-cipher-suites",
        List,
        "NAMES",
        "",
        "Cipher suites for TLS 1.2 [all that are secure]; those of TLS 1.3 are not configurable.",
    ),
    served(
        Authentication,
        "client-ca-file",
        One,
        "FILE",
        "",
        "Authorities for client certificates, PEM, beside the one that signs admin.kubeconfig.",
    ),
    served(
        Authentication,
        "token-auth-file",
        One,
        "FILE",
        "",
        "CSV of bearer tokens, one a line: token,user,uid,\"group1,group2\".",
    ),
    served(
        Authentication,
        "anonymous-auth",
        Bool,
        "",
        "",
        "Answer health and version without credentials [yes; nothing else is, even if true].",
    ),
    served(
        Authentication,
        "api-audiences",
        List,
        "NAMES",
        "",
        "Audiences of service account tokens [the first issuer].",
    ),
    served(
        Authentication,
        "service-account-issuer",
        Each,
        "URL",
        "https://kubernetes.default.svc.cluster.local",
        "Issuer of service account tokens; more of them are accepted.",
    ),
    served(
        Authentication,
        "service-account-key-file",
        Each,
        "FILE",
        "",
        "Keys that verify service account tokens, PEM [the signing key].",
    ),
    served(
        Authentication,
        "service-account-signing-key-file",
        One,
        "FILE",
        "",
        "Key that signs service account tokens, PEM [made in --cert-dir].",
    ),
    served(
        Authentication,
        "service-account-max-token-expiration",
        One,
        "DURATION",
        "0s",
        "Longest life of a service account token; 0 is no limit.",
    ),
    served(
        Authorization,
        "authorization-mode",
        List,
        "MODES",
        "AlwaysAllow",
        "AlwaysAllow (whoever is authenticated), AlwaysDeny, or RBAC (for now: system:masters only).",
    ),
    served(Limits, "request-timeout", One, "DURATION", "1m0s", "Longest time for a request, watches apart."),
    served(
        Limits,
        "min-request-timeout",
        One,
        "SECONDS",
        "1800",
        "Watches that ask for no time end at random after this or up to twice this.",
    ),
    served(Limits, "max-requests-inflight", One, "N", "400", "Reads in flight before 429; 0 is no limit."),
    served(
        Limits,
        "max-mutating-requests-inflight",
        One,
        "N",
        "200",
        "Writes in flight before 429; 0 is no limit.",
    ),
    served(
        Api,
        "service-cluster-ip-range",
        One,
        "CIDR",
        "10.0.0.0/24",
        "Range for service IPs; one of each family for dual stack.",
    ),
    served(
        Api,
        "feature-gates",
        List,
        "NAME=BOOL",
        "",
        "Kubernetes feature gates; known ones are accepted and have no effect.",
    ),
    served(Logging, "config", One, "FILE", "", "YAML file of flags, by name, such as data-dir: ./data."),
    served(Logging, "v", One, "LEVEL", "0", "How much to log on stderr: 0 to 10; -v 4 works too."),
];
