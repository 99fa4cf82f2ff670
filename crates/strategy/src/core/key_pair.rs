//! Whether a certificate and a key in PEM are a pair, as Go's TLS takes one up.
//!
//! In: what a TLS Secret holds. Out: what is wrong with it, in Go's words as far as they are told apart.
//! Never: repeats what is in a key.
//!
//! An EC key that leaves its public half out is taken to fit: that half is not computed here.
//!
//! Source: Go 1.26 `crypto/tls` `X509KeyPair`, `crypto/x509`.

#[cfg(test)]
mod tests;

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
