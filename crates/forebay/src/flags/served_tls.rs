//! The flags of certificates that are served and of TLS, in the order of `--help`: those of kube-apiserver.
//! Read by `crate::config`.

use super::served::served;
use super::spec::Flag;
use super::spec::FlagType::{self, Each, List, One};
use super::spec::Heading::Tls;

const fn tls(name: &'static str, kind: FlagType, value: &'static str, text: &'static str) -> Flag {
    served(Tls, name, kind, value, "", text)
}

const DIR: &str = "Directory for the certificates made on first start [pki in the data directory].";
const CERT: &str = "Certificate to serve, PEM, followed by its chain, instead of a made one.";
const NAMED: &str =
    "Files to serve to who asks for one of these names [those in the certificate]; repeatable.";
const VERSION: &str = "VersionTLS12 or VersionTLS13.";
const SUITES: &str =
    "Cipher suites for TLS 1.2 [all that are secure]; those of TLS 1.3 are not configurable.";
const CURVES: &str = "Curves to exchange keys by, as Go numbers them, in any order: 23, 24 and 29 [all].";

pub(super) const SERVED_TLS: &[Flag] = &[
    tls("cert-dir", One, "DIR", DIR),
    tls("tls-cert-file", One, "FILE", CERT),
    tls("tls-private-key-file", One, "FILE", "Private key of --tls-cert-file, PEM."),
    tls("tls-sni-cert-key", Each, "CERT,KEY[:NAMES]", NAMED),
    served(Tls, "tls-min-version", One, "VERSION", "VersionTLS12", VERSION),
    tls("tls-cipher-suites", List, "NAMES", SUITES),
    tls("tls-curve-preferences", List, "IDS", CURVES),
];
