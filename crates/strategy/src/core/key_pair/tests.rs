//! Certificates and keys that are pairs, and that are none.
//!
//! In: PEM. Out: what is said of it. Never: a Secret.

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
        [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519].map(pair).into();
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
        (&*certificate, &*block("ENCRYPTED PRIVATE KEY", &[SEQUENCE, 0x84, 255, 255, 255, 255]), UNREADABLE),
    ];
    for (certificate, key, want) in rows {
        assert_eq!(said(certificate, key), want);
    }
}
