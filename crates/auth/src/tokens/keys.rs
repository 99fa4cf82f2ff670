//! Keys of service account tokens: the one that signs, and those that are believed.
//!
//! In: PEM, private keys, public keys or certificates. Out: signatures, verdicts on them, and the public
//! halves as others learn them. RSA from 2048 bits, and ECDSA on P-256, P-384 and P-521. Never: shows what is
//! private.
//!
//! Source: kubernetes v1.36.3 `pkg/serviceaccount/{jwt,openidmetadata}.go`; RFC 7517, 7518.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa;
use ring::signature::{self, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey};
use rustls::pki_types::pem::{PemObject as _, SectionKind};
use rustls::pki_types::{AlgorithmIdentifier, alg_id};
use rustls::sign::public_key_to_spki;
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::p521::{self, P521Key};

/// Why there is no key in a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("is not PEM: {0}")]
    Pem(String),
    #[error("holds no key in PEM")]
    None,
    #[error("holds a key that is neither RSA of at least 2048 bits nor ECDSA on P-256, P-384 or P-521")]
    Unsupported,
    #[error("cannot sign: {0}")]
    Signing(String),
}

/// How a key signs, and everything that depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    Rs256,
    Es256,
    Es384,
    Es512,
}

/// A key that is believed.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicHalf {
    pub id: String,
    pub algorithm: Algorithm,
    // The contents of `subjectPublicKey`.
    bits: Vec<u8>,
}

/// A key that signs.
pub struct SigningKey {
    pub public: PublicHalf,
    pair: Pair,
    random: SystemRandom,
}

enum Pair {
    Rsa(rsa::KeyPair),
    Ecdsa(EcdsaKeyPair),
    P521(P521Key),
}

/// What tokens are signed with and verified by.
#[derive(Clone)]
pub struct TokenKeys {
    pub signing: Arc<SigningKey>,
    /// In the order in which they were given, each once; never empty.
    pub verifying: Vec<PublicHalf>,
}

/// Without the private halves.
impl fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<&str> = self.verifying.iter().map(|key| key.id.as_str()).collect();
        f.debug_struct("TokenKeys").field("verifying", &ids).finish_non_exhaustive()
    }
}

impl TokenKeys {
    /// The key of `signing`, and those of each text of `verifying`.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_pem(signing: &str, verifying: &[String]) -> Result<TokenKeys, KeyError> {
        let mut keys: Vec<PublicHalf> = Vec::new();
        for text in verifying {
            for key in public_halves(text)? {
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        let signing = Arc::new(SigningKey::from_pem(signing)?);
        if keys.is_empty() {
            keys.push(signing.public.clone());
        }
        Ok(TokenKeys { signing, verifying: keys })
    }
}

/// The public halves of every key in a PEM text, at least one.
///
/// # Errors
/// [`KeyError`].
pub fn public_halves(pem: &str) -> Result<Vec<PublicHalf>, KeyError> {
    let mut keys = Vec::new();
    for section in sections(pem) {
        let (kind, der) = section?;
        match kind {
            SectionKind::PublicKey => keys.push(PublicHalf::of_spki(&der)?),
            SectionKind::Certificate => {
                let (_, certificate) = X509Certificate::from_der(&der).map_err(|_| KeyError::Unsupported)?;
                keys.push(PublicHalf::of_spki(certificate.public_key().raw)?);
            }
            _ => {
                if let Some(pair) = Pair::of_section(kind, &der)? {
                    keys.push(pair.public());
                }
            }
        }
    }
    if keys.is_empty() { Err(KeyError::None) } else { Ok(keys) }
}

fn sections(pem: &str) -> impl Iterator<Item = Result<(SectionKind, Vec<u8>), KeyError>> + '_ {
    <(SectionKind, Vec<u8>)>::pem_slice_iter(pem.as_bytes())
        .map(|section| section.map_err(|error| KeyError::Pem(error.to_string())))
}

impl SigningKey {
    /// The first private key of a PEM text.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_pem(pem: &str) -> Result<SigningKey, KeyError> {
        for section in sections(pem) {
            let (kind, der) = section?;
            if let Some(pair) = Pair::of_section(kind, &der)? {
                return Ok(SigningKey { public: pair.public(), pair, random: SystemRandom::new() });
            }
        }
        Err(KeyError::None)
    }

    /// Signs.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let failed = |_| KeyError::Signing("no random numbers".to_string());
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&signature::RSA_PKCS1_SHA256, &self.random, message, &mut signature)
                    .map_err(failed)?;
                Ok(signature)
            }
            Pair::Ecdsa(pair) => Ok(pair.sign(&self.random, message).map_err(failed)?.as_ref().to_vec()),
            Pair::P521(key) => key.sign(message).map_err(KeyError::Signing),
        }
    }
}

impl Pair {
    /// The private key of a section of PEM; `None` for what is no private key.
    fn of_section(kind: SectionKind, der: &[u8]) -> Result<Option<Pair>, KeyError> {
        let found = match kind {
            SectionKind::RsaPrivateKey => rsa::KeyPair::from_der(der).ok().map(Pair::Rsa),
            SectionKind::PrivateKey => {
                let rsa = rsa::KeyPair::from_pkcs8(der).ok().map(Pair::Rsa);
                let known = rsa.or_else(|| Pair::ecdsa(|_| der.to_vec()));
                known.or_else(|| P521Key::of_pkcs8(der).map(Pair::P521))
            }
            SectionKind::EcPrivateKey => {
                let known = Pair::ecdsa(|curve| pkcs8(curve, der));
                known.or_else(|| P521Key::of_sec1(der).map(Pair::P521))
            }
            _ => return Ok(None),
        };
        found.map(Some).ok_or(KeyError::Unsupported)
    }

    /// The key of the first curve that `pkcs8` makes one for.
    fn ecdsa(pkcs8: impl Fn(AlgorithmIdentifier) -> Vec<u8>) -> Option<Pair> {
        let random = SystemRandom::new();
        [
            (alg_id::ECDSA_P256, &signature::ECDSA_P256_SHA256_FIXED_SIGNING),
            (alg_id::ECDSA_P384, &signature::ECDSA_P384_SHA384_FIXED_SIGNING),
        ]
        .into_iter()
        .find_map(|(curve, signing)| EcdsaKeyPair::from_pkcs8(signing, &pkcs8(curve), &random).ok())
        .map(Pair::Ecdsa)
    }

    fn public(&self) -> PublicHalf {
        match self {
            Pair::Rsa(pair) => PublicHalf::new(Algorithm::Rs256, pair.public().as_ref()),
            Pair::Ecdsa(pair) => {
                let point = pair.public_key().as_ref();
                let algorithm = if point.len() == 65 { Algorithm::Es256 } else { Algorithm::Es384 };
                PublicHalf::new(algorithm, point)
            }
            Pair::P521(key) => PublicHalf::new(Algorithm::Es512, &key.point),
        }
    }
}

/// A key of RFC 5915 in the envelope of RFC 5208.
fn pkcs8(curve: AlgorithmIdentifier, key: &[u8]) -> Vec<u8> {
    const SEQUENCE: u8 = 0x30;
    const OCTETS: u8 = 0x04;
    const VERSION: [u8; 3] = [0x02, 0x01, 0x00];
    let algorithm = der(SEQUENCE, &curve);
    der(SEQUENCE, &[&VERSION[..], &algorithm, &der(OCTETS, key)].concat())
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match content.len() {
        short @ 0..0x80 => out.push(short as u8),
        long => {
            let bytes = long.to_be_bytes();
            let from = bytes.iter().position(|byte| *byte != 0).unwrap_or(0);
            out.push(0x80 | (bytes.len() - from) as u8);
            out.extend_from_slice(&bytes[from..]);
        }
    }
    out.extend_from_slice(content);
    out
}

impl Algorithm {
    const ALL: [Algorithm; 4] = [Algorithm::Rs256, Algorithm::Es256, Algorithm::Es384, Algorithm::Es512];

    /// As tokens name it.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Rs256 => "RS256",
            Algorithm::Es256 => "ES256",
            Algorithm::Es384 => "ES384",
            Algorithm::Es512 => "ES512",
        }
    }

    fn id(self) -> AlgorithmIdentifier {
        match self {
            Algorithm::Rs256 => alg_id::RSA_ENCRYPTION,
            Algorithm::Es256 => alg_id::ECDSA_P256,
            Algorithm::Es384 => alg_id::ECDSA_P384,
            Algorithm::Es512 => alg_id::ECDSA_P521,
        }
    }

    /// The curve of such a key, as others call it; `None` for RSA.
    const fn curve(self) -> Option<&'static str> {
        match self {
            Algorithm::Rs256 => None,
            Algorithm::Es256 => Some("P-256"),
            Algorithm::Es384 => Some("P-384"),
            Algorithm::Es512 => Some("P-521"),
        }
    }
}

impl PublicHalf {
    fn new(algorithm: Algorithm, bits: &[u8]) -> PublicHalf {
        let spki = public_key_to_spki(&algorithm.id(), bits);
        let id = URL_SAFE_NO_PAD.encode(Sha256::digest(spki.as_ref()));
        PublicHalf { id, algorithm, bits: bits.to_vec() }
    }

    /// Of a `SubjectPublicKeyInfo`.
    pub(super) fn of_spki(der: &[u8]) -> Result<PublicHalf, KeyError> {
        let (_, spki) = SubjectPublicKeyInfo::from_der(der).map_err(|_| KeyError::Unsupported)?;
        let bits = &spki.subject_public_key.data;
        let is_of = |algorithm: &Algorithm| public_key_to_spki(&algorithm.id(), bits).as_ref() == der;
        let algorithm = Algorithm::ALL.into_iter().find(is_of).ok_or(KeyError::Unsupported)?;
        match algorithm {
            Algorithm::Es512 if !p521::is_point(bits) => Err(KeyError::Unsupported),
            _ => Ok(PublicHalf::new(algorithm, bits)),
        }
    }

    /// The same under a name that somebody else gave it.
    pub(super) fn called(self, id: String) -> PublicHalf {
        PublicHalf { id, ..self }
    }

    /// Whether it has the length of a key that verifies anything. Whether a point is on its curve is seen
    /// when it does.
    pub(super) fn is_sound(&self) -> bool {
        let point = |bytes: usize| self.bits.len() == bytes && self.bits.first() == Some(&4);
        match self.algorithm {
            Algorithm::Rs256 => {
                let (modulus, exponent) = self.rsa_numbers();
                (256..=1024).contains(&modulus.len()) && modulus[0] & 0x80 != 0 && !exponent.is_empty()
            }
            Algorithm::Es256 => point(65),
            Algorithm::Es384 => point(97),
            Algorithm::Es512 => point(133),
        }
    }

    /// Whether this key signed `message`.
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let verification: &dyn signature::VerificationAlgorithm = match self.algorithm {
            Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Algorithm::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Algorithm::Es384 => &signature::ECDSA_P384_SHA384_FIXED,
            Algorithm::Es512 => return p521::has_signed(&self.bits, message, signature),
        };
        UnparsedPublicKey::new(verification, &self.bits).verify(message, signature).is_ok()
    }

    /// As others learn it: the members of its JSON, in order.
    pub fn jwk(&self) -> Vec<(&'static str, String)> {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let curve = self.algorithm.curve();
        let mut members = vec![
            ("use", "sig".to_string()),
            ("kty", if curve.is_some() { "EC" } else { "RSA" }.to_string()),
            ("kid", self.id.clone()),
        ];
        let alg = ("alg", self.algorithm.name().to_string());
        let Some(curve) = curve else {
            let (modulus, exponent) = self.rsa_numbers();
            members.extend([alg, ("n", encode(&modulus)), ("e", encode(&exponent))]);
            return members;
        };
        // 04, then both coordinates.
        let point = self.bits.get(1..).unwrap_or_default();
        let (x, y) = point.split_at(point.len() / 2);
        members.extend([("crv", curve.to_string()), alg, ("x", encode(x)), ("y", encode(y))]);
        members
    }

    /// Modulus and exponent, without the zeros in front.
    fn rsa_numbers(&self) -> (Vec<u8>, Vec<u8>) {
        let spki = public_key_to_spki(&self.algorithm.id(), &self.bits);
        let Ok((_, spki)) = SubjectPublicKeyInfo::from_der(spki.as_ref()) else { return Default::default() };
        let trimmed = |number: &[u8]| {
            number[number.iter().position(|byte| *byte != 0).unwrap_or(number.len())..].to_vec()
        };
        match spki.parsed() {
            Ok(PublicKey::RSA(key)) => (trimmed(key.modulus), trimmed(key.exponent)),
            _ => Default::default(),
        }
    }
}
