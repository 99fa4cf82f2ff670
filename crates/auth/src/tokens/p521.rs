//! Keys on P-521, which `ring` has not.
//!
//! In: DER of a private key, a point, a message. Out: a key that signs, signatures, verdicts. Never: shows
//! what is private; decides which tokens such a key is good for.
//!
//! Source: RFC 5208, 5915, 7518 (3.4): both numbers of a signature in 66 bytes each, over SHA-512.

use p521::ecdsa::signature::{Signer as _, Verifier as _};
use p521::ecdsa::{Signature, SigningKey, VerifyingKey};
use rustls::pki_types::alg_id;
use x509_parser::asn1_rs::{FromDer as _, OctetString, Sequence};

/// A private key; its nonces are the system's random numbers.
pub struct P521Key {
    key: SigningKey,
    /// Not compressed.
    pub point: Vec<u8>,
}

/// The curve, as a key says it that stands alone: `[0]` with its name.
const CURVE: [u8; 9] = [0xa0, 0x07, 0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23];

impl P521Key {
    /// Of a `PrivateKeyInfo`; `None` where it is of another curve or kind.
    pub fn of_pkcs8(der: &[u8]) -> Option<P521Key> {
        let (_, info) = Sequence::from_der(der).ok()?;
        let (rest, _version) = u8::from_der(&info.content).ok()?;
        let (rest, algorithm) = Sequence::from_der(rest).ok()?;
        let (_, key) = OctetString::from_der(rest).ok()?;
        let (secret, _) = (*algorithm.content == *alg_id::ECDSA_P521).then(|| secret(key.as_ref()))??;
        P521Key::of_secret(&secret)
    }

    /// Of an `ECPrivateKey`, which says its curve.
    pub fn of_sec1(der: &[u8]) -> Option<P521Key> {
        let (secret, rest) = secret(der)?;
        rest.starts_with(&CURVE).then(|| P521Key::of_secret(&secret))?
    }

    fn of_secret(secret: &[u8]) -> Option<P521Key> {
        let key = SigningKey::from_slice(secret).ok()?;
        let point = VerifyingKey::from(&key).to_encoded_point(false).as_bytes().to_vec();
        Some(P521Key { key, point })
    }

    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let signature: Signature = self.key.try_sign(message).map_err(|why| why.to_string())?;
        Ok(signature.to_bytes().to_vec())
    }
}

/// The number of an `ECPrivateKey`, and what is said behind it.
fn secret(der: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (_, key) = Sequence::from_der(der).ok()?;
    let (rest, version) = u8::from_der(&key.content).ok()?;
    let (rest, secret) = OctetString::from_der(rest).ok()?;
    (version == 1).then(|| (secret.as_ref().to_vec(), rest.to_vec()))
}

/// Whether it is a point of the curve, and not compressed.
pub fn is_point(point: &[u8]) -> bool {
    point.first() == Some(&4) && VerifyingKey::from_sec1_bytes(point).is_ok()
}

/// Whether `signature` is one of this point over `message`.
pub fn has_signed(point: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let (key, signature) = (VerifyingKey::from_sec1_bytes(point), Signature::from_slice(signature));
    key.is_ok_and(|key| signature.is_ok_and(|signature| key.verify(message, &signature).is_ok()))
}
