//! `--tls-min-version` and `--tls-cipher-suites`: what is spoken on the wire.

use rustls::crypto::{CryptoProvider, ring};
use rustls::{CipherSuite, SupportedProtocolVersion, version};

/// What a client may negotiate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsPolicy {
    pub min_version: TlsVersion,
    /// The suites for TLS 1.2; those of TLS 1.3 are always all of them, as in Go.
    tls12_suites: Vec<CipherSuite>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsVersion {
    Tls12,
    Tls13,
}

impl TlsPolicy {
    /// Decides on the two flags; warnings are added to `warnings`.
    ///
    /// # Errors
    /// The flag and the reason.
    pub(super) fn decide(
        min_version: &str,
        suites: &[String],
        warnings: &mut Vec<String>,
    ) -> Result<Self, (&'static str, String)> {
        let min_version = version(min_version, warnings).map_err(|reason| ("tls-min-version", reason))?;
        if suites.is_empty() {
            return Ok(Self { min_version, tls12_suites: TLS12.iter().map(|(_, suite)| *suite).collect() });
        }
        let tls12_suites = chosen(suites, warnings).map_err(|reason| ("tls-cipher-suites", reason))?;
        // Only suites of TLS 1.3 were asked for: then nothing else is spoken.
        let min_version = if tls12_suites.is_empty() { TlsVersion::Tls13 } else { min_version };
        Ok(Self { min_version, tls12_suites })
    }

    /// The cryptography for the server's side, without the suites that were not asked for.
    pub fn provider(&self) -> CryptoProvider {
        let mut provider = ring::default_provider();
        provider
            .cipher_suites
            .retain(|suite| suite.tls13().is_some() || self.tls12_suites.contains(&suite.suite()));
        provider
    }

    pub fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        match self.min_version {
            TlsVersion::Tls12 => BOTH,
            TlsVersion::Tls13 => NEWEST,
        }
    }
}

static BOTH: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];
static NEWEST: &[&SupportedProtocolVersion] = &[&version::TLS13];

fn version(name: &str, warnings: &mut Vec<String>) -> Result<TlsVersion, String> {
    match name {
        "VersionTLS12" => Ok(TlsVersion::Tls12),
        "VersionTLS13" => Ok(TlsVersion::Tls13),
        "VersionTLS10" | "VersionTLS11" => {
            warnings.push(format!("--tls-min-version={name}: nothing older than TLS 1.2 is spoken"));
            Ok(TlsVersion::Tls12)
        }
        _ => Err(format!("unknown tls version {name:?}")),
    }
}

/// The suites of TLS 1.2 among the names.
fn chosen(names: &[String], warnings: &mut Vec<String>) -> Result<Vec<CipherSuite>, String> {
    let mut suites = Vec::new();
    let mut weak = Vec::new();
    let mut tls13 = false;
    for name in names {
        if let Some((_, suite)) = TLS12.iter().find(|(known, _)| known == name || alias(known) == *name) {
            suites.push(*suite);
        } else if TLS13.contains(&name.as_str()) {
            tls13 = true;
        } else if WEAK.split(' ').any(|known| known == name) {
            weak.push(name.as_str());
        } else {
            return Err(format!("cipher suite {name} not supported or doesn't exist"));
        }
    }
    if suites.is_empty() && !tls13 {
        return Err("none of these cipher suites is spoken".to_owned());
    }
    if !weak.is_empty() {
        warnings.push(format!("weak cipher suites are never spoken: {}", weak.join(", ")));
    }
    Ok(suites)
}

/// Go knows the ChaCha20 suites under two names.
fn alias(name: &str) -> &str {
    name.strip_suffix("_SHA256").filter(|short| short.ends_with("CHACHA20_POLY1305")).unwrap_or(name)
}

const TLS12: [(&str, CipherSuite); 6] = [
    ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    (
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

const TLS13: [&str; 3] = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

/// Names that kube-apiserver knows and this server never speaks: no forward secrecy, or CBC, or RC4.
const WEAK: &str = "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256 \
    TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA TLS_ECDHE_ECDSA_WITH_RC4_128_SHA TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA \
    TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256 TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA \
    TLS_ECDHE_RSA_WITH_RC4_128_SHA TLS_RSA_WITH_3DES_EDE_CBC_SHA TLS_RSA_WITH_AES_128_CBC_SHA \
    TLS_RSA_WITH_AES_128_CBC_SHA256 TLS_RSA_WITH_AES_128_GCM_SHA256 TLS_RSA_WITH_AES_256_CBC_SHA \
    TLS_RSA_WITH_AES_256_GCM_SHA384 TLS_RSA_WITH_RC4_128_SHA";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(min_version: &str, suites: &[&str], want: &str) {
        let mut warnings = Vec::new();
        let suites: Vec<String> = suites.iter().map(|name| (*name).to_owned()).collect();
        let got = match TlsPolicy::decide(min_version, &suites, &mut warnings) {
            Ok(policy) => {
                let names: Vec<_> = policy
                    .provider()
                    .cipher_suites
                    .iter()
                    .map(|suite| format!("{:?}", suite.suite()))
                    .collect();
                assert_eq!(names.iter().filter(|name| name.starts_with("TLS13_")).count(), 3);
                let old: Vec<_> = names.into_iter().filter(|name| !name.starts_with("TLS13_")).collect();
                format!("{:?} {} of {}", policy.min_version, old.len(), policy.versions().len())
            }
            Err((flag, reason)) => format!("{flag}: {reason}"),
        };
        let lines: Vec<_> = std::iter::once(got).chain(warnings).collect();
        assert_eq!(lines.join("; "), want, "{min_version} {suites:?}");
    }

    #[test]
    fn only_what_was_asked_for_is_spoken() {
        check("VersionTLS12", &[], "Tls12 6 of 2");
        check("VersionTLS13", &[], "Tls13 6 of 1");
        check(
            "VersionTLS11",
            &[],
            "Tls12 6 of 2; --tls-min-version=VersionTLS11: nothing older than TLS 1.2 is spoken",
        );
        check("TLS13", &[], "tls-min-version: unknown tls version \"TLS13\"");
        check("VersionTLS12", &["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"], "Tls12 1 of 2");
        check("VersionTLS12", &["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"], "Tls12 1 of 2");
        check("VersionTLS12", &["TLS_AES_128_GCM_SHA256"], "Tls13 0 of 1");
        check(
            "VersionTLS12",
            &["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA"],
            "Tls12 1 of 2; weak cipher suites are never spoken: TLS_RSA_WITH_AES_128_CBC_SHA",
        );
        check(
            "VersionTLS12",
            &["TLS_RSA_WITH_AES_128_CBC_SHA"],
            "tls-cipher-suites: none of these cipher suites is spoken",
        );
        check(
            "VersionTLS12",
            &["NOPE"],
            "tls-cipher-suites: cipher suite NOPE not supported or doesn't exist",
        );
    }
}
