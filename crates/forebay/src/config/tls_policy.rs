//! `--tls-min-version`, `--tls-cipher-suites` and `--tls-curve-preferences`: what is spoken on the wire.
//!
//! In: their values. Out: rustls's versions, suites and groups. Never: a certificate.
//!
//! Source: component-base v0.36.3 `cli/flag/ciphersuites_flag.go`, `curves_flag.go`; Go 1.26 `crypto/tls`.

use rustls::crypto::{CryptoProvider, ring};
use rustls::{CipherSuite, NamedGroup, SupportedProtocolVersion, version};

/// What a client may negotiate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsPolicy {
    pub min_version: TlsVersion,
    /// The suites for TLS 1.2; those of TLS 1.3 are always all of them, as in Go.
    tls12_suites: Vec<CipherSuite>,
    /// By which keys are exchanged; which of them is the server's choice, as in Go.
    groups: Vec<NamedGroup>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsVersion {
    Tls12,
    Tls13,
}

impl TlsPolicy {
    /// Decides on the three flags; warnings are added to `warnings`.
    ///
    /// # Errors
    /// The flag and the reason.
    pub(super) fn decide(
        min_version: &str,
        suites: &[String],
        curves: &[String],
        warnings: &mut Vec<String>,
    ) -> Result<Self, (&'static str, String)> {
        let min_version = version(min_version, warnings).map_err(|reason| ("tls-min-version", reason))?;
        let groups = groups(curves).map_err(|reason| ("tls-curve-preferences", reason))?;
        if suites.is_empty() {
            let tls12_suites = TLS12.iter().map(|(_, suite)| *suite).collect();
            return Ok(Self { min_version, tls12_suites, groups });
        }
        let tls12_suites = chosen(suites, warnings).map_err(|reason| ("tls-cipher-suites", reason))?;
        // Only suites of TLS 1.3 were asked for: then nothing else is spoken.
        let min_version = if tls12_suites.is_empty() { TlsVersion::Tls13 } else { min_version };
        Ok(Self { min_version, tls12_suites, groups })
    }

    /// The cryptography for the server's side, without the suites and groups that were not asked for.
    pub fn provider(&self) -> CryptoProvider {
        let mut provider = ring::default_provider();
        provider
            .cipher_suites
            .retain(|suite| suite.tls13().is_some() || self.tls12_suites.contains(&suite.suite()));
        provider.kx_groups.retain(|group| self.groups.contains(&group.name()));
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

/// The groups of these numbers; all that there are, if none is said.
fn groups(curves: &[String]) -> Result<Vec<NamedGroup>, String> {
    if curves.is_empty() {
        return Ok(GROUPS.iter().map(|(_, group, _)| *group).collect());
    }
    let (mut seen, mut groups) = (Vec::new(), Vec::new());
    for text in curves {
        let Ok(id) = text.parse::<i32>() else {
            return Err(format!("{text:?} is not the number of a curve; {}", known_groups()));
        };
        let Some(id) = u16::try_from(id).ok().filter(|id| *id > 0) else {
            return Err(format!("curve preference {id} is out of range (must be 1-65535)"));
        };
        if seen.contains(&id) {
            return Err(format!("duplicate curve preference {id}"));
        }
        seen.push(id);
        match (GROUPS.iter().find(|(known, ..)| *known == id), OTHERS.iter().find(|(known, _)| *known == id))
        {
            (Some((_, group, _)), _) => groups.push(*group),
            (None, Some((_, name))) => {
                return Err(format!("curve preference {id} ({name}) is not spoken here; {}", known_groups()));
            }
            (None, None) => {
                return Err(format!("curve preference {id} is not supported; {}", known_groups()));
            }
        }
    }
    Ok(groups)
}

fn known_groups() -> String {
    let known: Vec<_> = GROUPS.iter().map(|(id, _, name)| format!("{id} ({name})")).collect();
    format!("there are {}", known.join(", "))
}

/// Go's numbers of what is spoken, and what it calls them.
const GROUPS: [(u16, NamedGroup, &str); 3] = [
    (23, NamedGroup::secp256r1, "CurveP256"),
    (24, NamedGroup::secp384r1, "CurveP384"),
    (29, NamedGroup::X25519, "X25519"),
];

/// What Go has besides; `ring` has none of it.
const OTHERS: [(u16, &str); 4] =
    [(25, "CurveP521"), (4587, "SecP256r1MLKEM768"), (4588, "X25519MLKEM768"), (4589, "SecP384r1MLKEM1024")];

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
        let got = match TlsPolicy::decide(min_version, &suites, &[], &mut warnings) {
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

    #[test]
    fn keys_are_exchanged_by_what_was_asked_for_in_the_order_of_the_server() {
        let decided = |curves: &[&str]| {
            let curves: Vec<String> = curves.iter().map(|id| (*id).to_owned()).collect();
            let policy = TlsPolicy::decide("VersionTLS12", &[], &curves, &mut Vec::new());
            policy.map_or_else(
                |(flag, reason)| format!("{flag}: {reason}"),
                |policy| {
                    let groups = policy.provider().kx_groups;
                    let names: Vec<_> = groups.iter().map(|group| format!("{:?}", group.name())).collect();
                    names.join(" ")
                },
            )
        };
        const ALL: &str = "there are 23 (CurveP256), 24 (CurveP384), 29 (X25519)";
        for (curves, want) in [
            (&[][..], "X25519 secp256r1 secp384r1"),
            (&["29"], "X25519"),
            (&["24", "23"], "secp256r1 secp384r1"),
            (&["23", "24", "29"], "X25519 secp256r1 secp384r1"),
        ] {
            assert_eq!(decided(curves), want, "{curves:?}");
        }
        for (curves, want) in [
            (&["23", "29", "23"][..], "duplicate curve preference 23".to_owned()),
            (&["0"], "curve preference 0 is out of range (must be 1-65535)".to_owned()),
            (&["-1"], "curve preference -1 is out of range (must be 1-65535)".to_owned()),
            (&["70000"], "curve preference 70000 is out of range (must be 1-65535)".to_owned()),
            (&["9999"], format!("curve preference 9999 is not supported; {ALL}")),
            (&["29", "4588"], format!("curve preference 4588 (X25519MLKEM768) is not spoken here; {ALL}")),
            (&["25"], format!("curve preference 25 (CurveP521) is not spoken here; {ALL}")),
            (&["X25519"], format!("\"X25519\" is not the number of a curve; {ALL}")),
        ] {
            assert_eq!(decided(curves), format!("tls-curve-preferences: {want}"), "{curves:?}");
        }
    }
}
