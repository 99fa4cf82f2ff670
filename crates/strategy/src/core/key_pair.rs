//! Whether a certificate and a key in PEM are a pair, as Go's TLS takes one up.
//!
//! In: what a TLS Secret holds. Out: what is wrong with it, in Go's words as far as they are told apart. Never:
//! repeats what is in a key.
//!
//! An EC key that leaves its public half out is taken to fit: that half is not computed here.
//!
//! Source: Go 1.26 `crypto/tls` `X509KeyPair`, `crypto/x509`.

use ring::signature::{Ed25519KeyPair, KeyPair as _};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use crate::pem;

const CERTIFICATE: &str = "CERTIFICATE";
const PRIVATE_KEY: &str = "PRIVATE KEY";

const MALFORMED: &str = "x509: malformed certificate";
const UNREADABLE: &str = "tls: failed to parse private key";
const UNKNOWN_KEY: &str = "tls: found unknown private key type in PKCS#8 wrapping";
const OTHER_TYPE: &str = "tls: private key type does not match public key type";
const NO_MATCH: &str = "tls: private key does not match public key";

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const TAGGED_0: u8 = 0xa0;
const TAGGED_1: u8 = 0xa1;

// Contents of object identifiers.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const X25519: &[u8] = &[0x2b, 0x65, 0x6e];

/// The public half of a key.
#[derive(Debug, PartialEq, Eq)]
enum Public {
    /// Modulus and exponent, without zeros in front.
    Rsa(Vec<u8>, Vec<u8>),
    /// A point as it is written; none when the key does not say.
    Ec(Option<Vec<u8>>),
    Ed25519(Vec<u8>),
}

/// Why `certificate` and `key` are no pair.
///
/// Cost: one walk through each.
pub fn fault(certificate: &[u8], key: &[u8]) -> Option<String> {
    judged(&String::from_utf8_lossy(certificate), &String::from_utf8_lossy(key)).err()
}

fn judged(certificate: &str, key: &str) -> Result<(), String> {
    let certificate = first_certificate(certificate)?;
    let key = first_key(key)?;
    let (_, certificate) =
        X509Certificate::from_der(&certificate).map_err(|_| MALFORMED).and_then(|(rest, read)| match rest
            .is_empty()
        {
            true => Ok((rest, read)),
            false => Err("x509: trailing data"),
        })?;
    let held = private_key(&key)?;
    let certified = certified(certificate.public_key())?;
    match (&certified, &held) {
        (Public::Ec(_), Public::Ec(None)) => Ok(()),
        _ if std::mem::discriminant(&certified) != std::mem::discriminant(&held) => Err(OTHER_TYPE.into()),
        _ if certified != held => Err(NO_MATCH.into()),
        _ => Ok(()),
    }
}

fn first_certificate(text: &str) -> Result<Vec<u8>, String> {
    let mut skipped = Vec::new();
    for block in pem::blocks(text) {
        if block.label == CERTIFICATE {
            return Ok(block.bytes);
        }
        skipped.push(block.label);
    }
    Err(match skipped.as_slice() {
        [] => "tls: failed to find any PEM data in certificate input".into(),
        [key] if key.ends_with(PRIVATE_KEY) => {
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM \
             inputs may have been switched"
                .into()
        }
        others => format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the \
             following types: [{}]",
            others.join(" ")
        ),
    })
}

fn first_key(text: &str) -> Result<Vec<u8>, String> {
    let mut skipped = Vec::new();
    for block in pem::blocks(text) {
        if block.label.strip_suffix(PRIVATE_KEY).is_some_and(|kind| kind.is_empty() || kind.ends_with(' ')) {
            return Ok(block.bytes);
        }
        skipped.push(block.label);
    }
    Err(match skipped.as_slice() {
        [] => "tls: failed to find any PEM data in key input".into(),
        [CERTIFICATE] => "tls: found a certificate rather than a key in the PEM for the private key".into(),
        others => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM \
             blocks of the following types: [{}]",
            others.join(" ")
        ),
    })
}

fn certified(key: &SubjectPublicKeyInfo<'_>) -> Result<Public, &'static str> {
    const UNKNOWN: &str = "tls: unknown public key algorithm";
    match key.algorithm.algorithm.as_bytes() {
        RSA => match key.parsed() {
            Ok(PublicKey::RSA(rsa)) => Ok(Public::Rsa(number(rsa.modulus), number(rsa.exponent))),
            _ => Err("x509: invalid RSA public key"),
        },
        EC => Ok(Public::Ec(Some(key.subject_public_key.data.to_vec()))),
        ED25519 => Ok(Public::Ed25519(key.subject_public_key.data.to_vec())),
        _ => Err(UNKNOWN),
    }
}

/// The public half of a private key: of PKCS #1, PKCS #8 or SEC 1.
fn private_key(der: &[u8]) -> Result<Public, &'static str> {
    if let Some(key) = pkcs1(der) {
        return Ok(key);
    }
    if let Some(key) = pkcs8(der) {
        return key;
    }
    sec1(der).ok_or(UNREADABLE)
}

fn pkcs1(der: &[u8]) -> Option<Public> {
    let (_version, rest) = element(whole(der)?, INTEGER)?;
    let (modulus, rest) = element(rest, INTEGER)?;
    let (exponent, mut rest) = element(rest, INTEGER)?;
    // The private exponent, two primes and what is computed of them.
    for _ in 0..6 {
        rest = element(rest, INTEGER)?.1;
    }
    Some(Public::Rsa(number(modulus), number(exponent)))
}

/// - Inner none: it is well-formed, and of a kind that signs nothing.
fn pkcs8(der: &[u8]) -> Option<Result<Public, &'static str>> {
    let (_version, rest) = element(whole(der)?, INTEGER)?;
    let (algorithm, rest) = element(rest, SEQUENCE)?;
    let (key, _) = element(rest, OCTET_STRING)?;
    match element(algorithm, OID)?.0 {
        RSA => pkcs1(key).map(Ok),
        EC => sec1(key).map(Ok),
        ED25519 => {
            let seed = whole_of(key, OCTET_STRING)?;
            let pair = Ed25519KeyPair::from_seed_unchecked(seed).ok()?;
            Some(Ok(Public::Ed25519(pair.public_key().as_ref().to_vec())))
        }
        X25519 => Some(Err(UNKNOWN_KEY)),
        _ => None,
    }
}

fn sec1(der: &[u8]) -> Option<Public> {
    let (_version, rest) = element(whole(der)?, INTEGER)?;
    let (_secret, rest) = element(rest, OCTET_STRING)?;
    let rest = element(rest, TAGGED_0).map_or(rest, |(_curve, rest)| rest);
    let point = element(rest, TAGGED_1).and_then(|(point, _)| whole_of(point, BIT_STRING));
    // The first byte says how many bits of the last one do not count.
    Some(Public::Ec(point.and_then(|bits| Some(bits.split_first()?.1.to_vec()))))
}

fn number(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().skip_while(|byte| *byte == 0).collect()
}

fn whole(der: &[u8]) -> Option<&[u8]> {
    whole_of(der, SEQUENCE)
}

/// The content of the element that `der` is.
fn whole_of(der: &[u8], tag: u8) -> Option<&[u8]> {
    element(der, tag).filter(|(_, rest)| rest.is_empty()).map(|(content, _)| content)
}

/// The content of the element that `der` begins with, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        short @ 0..0x80 => (usize::from(*short), rest),
        long => {
            let (length, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            let is_readable = (1..=4).contains(&length.len());
            let length = length.iter().take(4).fold(0, |length, byte| length << 8 | usize::from(*byte));
            (is_readable.then_some(length)?, rest)
        }
    };
    if *found != tag {
        return None;
    }
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    use super::*;

    const RSA_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----
MIIBcTCCARugAwIBAgIULoK8UfoDRU6M5CeBlhgk3NUflVYwDQYJKoZIhvcNAQEL
BQAwDDEKMAgGA1UEAwwBYTAgFw0yNjExMjcxNTA5MDRaGA8yMTI2MTEwMzE1MDkw
NFowDDEKMAgGA1UEAwwBYTBcMA0GCSqGSIb3DQEBAQUAA0sAMEgCQQCz/8ZDSgdz
tmQsLWRFAGh4tbHr/RwjZkYDecjj9NoIC+XLl9h2PeN5X6SloNSuWyvtlZznaZIL
VvPDC128B9AFAgMBAAGjUzBRMB0GA1UdDgQWBBTn/c5cV3mGS3Lzm3Eoe88mRhxy
PjAfBgNVHSMEGDAWgBTn/c5cV3mGS3Lzm3Eoe88mRhxyPjAPBgNVHRMBAf8EBTAD
AQH/MA0GCSqGSIb3DQEBCwUAA0EAQoE1MIAVPGtnlurqdmhCC4wR14dmtbZfKGbz
OY7q34kwxG1ZZB7ecqiT7oaBF3DG/1jyTpBtRlyjNAR/naR+zw==
-----END CERTIFICATE-----";
    /// Of 512 bits, for this test alone.
    const RSA_KEY: &str = "-----BEGIN RSA PRIVATE KEY-----
MIIBPAIBAAJBALP/xkNKB3O2ZCwtZEUAaHi1sev9HCNmRgN5yOP02ggL5cuX2HY9
43lfpKWg1K5bK+2VnOdpkgtW88MLXbwH0AUCAwEAAQJANWGpftM5mouA8ckUb5JL
aWEZPw91hNoT8XvwpAo9jxzYojPSXMzRMmHbJfphbKMc6jraPVYHJef2QxQO8FrS
AQIhAOOpasjPonZ3Cxkk1SBowW4NX03MOV5ms286ruE5vEAlAiEAymeOoK+7ia5B
nE/iGn7B66RdPNJfgdRiPOSH33KE2mECIQCaBj3jvG5q/aE5kqzKr3Tmcw+ef+P0
VUFiqG42nKwbLQIhAIc5wq+WWNw2YL1XHX+IGnUdnfFJt+dchrmaETD3KM1hAiEA
lpbL7FBD79u1xunV9nFnkH4HE1g2ph/WCrlqqgDTHsI=
-----END RSA PRIVATE KEY-----";

    fn said(certificate: &str, key: &str) -> String {
        fault(certificate.as_bytes(), key.as_bytes()).unwrap_or_default()
    }

    fn pair(kind: &'static rcgen::SignatureAlgorithm) -> (String, String) {
        let key = KeyPair::generate_for(kind).expect("a key");
        let certificate = CertificateParams::default().self_signed(&key).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }

    fn block(label: &str, der: &[u8]) -> String {
        let body = crate::core::base64::encode(der);
        format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
    }

    #[test]
    fn a_certificate_and_its_own_key_are_a_pair() {
        let mut pairs: Vec<(String, String)> =
            [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519].map(|kind| pair(kind)).into();
        pairs.push((RSA_CERTIFICATE.into(), RSA_KEY.into()));
        for (at, (certificate, _)) in pairs.iter().enumerate() {
            for (of, (_, key)) in pairs.iter().enumerate() {
                let want = match (at, of) {
                    _ if at == of => "",
                    (0 | 1, 0 | 1) => NO_MATCH,
                    _ => OTHER_TYPE,
                };
                assert_eq!(said(certificate, key), want, "{at} {of}");
            }
        }
        for kind in [&PKCS_ECDSA_P256_SHA256, &PKCS_ED25519] {
            assert_eq!(said(&pair(kind).0, &pair(kind).1), NO_MATCH);
        }
        let chain = format!("{}{}", pairs[0].0, pairs[1].0);
        assert_eq!(said(&chain, &format!("{}{}", block("EC PARAMETERS", b"x"), pairs[0].1)), "");
    }

    #[test]
    fn an_ec_key_of_its_own_form_is_read_with_or_without_its_public_half() {
        let (certificate, key) = pair(&PKCS_ECDSA_P256_SHA256);
        let wrapped = pem::blocks(&key).next().expect("a key").bytes;
        let (_, rest) = element(whole(&wrapped).expect("PKCS #8"), INTEGER).expect("a version");
        let (_, rest) = element(rest, SEQUENCE).expect("an algorithm");
        let (inner, _) = element(rest, OCTET_STRING).expect("a key");
        assert_eq!(said(&certificate, &block("EC PRIVATE KEY", inner)), "");
        assert_eq!(said(&pair(&PKCS_ECDSA_P256_SHA256).0, &block("EC PRIVATE KEY", inner)), NO_MATCH);
        let short = [SEQUENCE, 6, INTEGER, 1, 1, OCTET_STRING, 1, 7];
        assert_eq!(said(&certificate, &block("EC PRIVATE KEY", &short)), "");
        assert_eq!(said(RSA_CERTIFICATE, &block("EC PRIVATE KEY", &short)), OTHER_TYPE);
    }

    #[test]
    fn what_is_no_certificate_or_no_key_is_told_apart() {
        let (certificate, key) = pair(&PKCS_ED25519);
        let other = block("A", b"a");
        let rows = [
            ("", "", "tls: failed to find any PEM data in certificate input"),
            (
                &*key,
                &*certificate,
                "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM \
                 inputs may have been switched",
            ),
            (
                &*format!("{other}{other}"),
                &*key,
                "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of \
                 the following types: [A A]",
            ),
            (&*certificate, "x", "tls: failed to find any PEM data in key input"),
            (
                &*certificate,
                &*certificate,
                "tls: found a certificate rather than a key in the PEM for the private key",
            ),
            (
                &*certificate,
                &*other,
                "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM \
                 blocks of the following types: [A]",
            ),
            (&*block(CERTIFICATE, b"a"), &*key, MALFORMED),
            (&*certificate, &*block(PRIVATE_KEY, b"a"), UNREADABLE),
            (
                &*certificate,
                &*block("ENCRYPTED PRIVATE KEY", &[SEQUENCE, 0x84, 255, 255, 255, 255]),
                UNREADABLE,
            ),
        ];
        for (certificate, key, want) in rows {
            assert_eq!(said(certificate, key), want);
        }
    }
}
