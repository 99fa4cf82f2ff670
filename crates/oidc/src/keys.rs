//! The keys of a provider, and whether one of them signed.
//!
//! In: a set of keys in JSON; a token. Out: yes or no. An algorithm is for one kind of key: what a token says
//! of its signature chooses among the ways in which a key is used, never what a key is. Symmetric keys are
//! not used at all. Never: fetches a key.
//!
//! Source: RFC 7517, 7518; go-oidc v2.5.0 `jwks.go`.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::limits::{KEYS_MAX, RSA_BITS};
use crate::token::Token;

/// How a token may be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    Es256,
    Es384,
    Ps256,
    Ps384,
    Ps512,
    Rs256,
    Rs384,
    Rs512,
}

/// A provider's keys, in its order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct KeySet {
    // <= KEYS_MAX
    keys: Vec<Key>,
}

#[derive(Debug, PartialEq, Eq)]
struct Key {
    id: String,
    material: Material,
}

#[derive(Debug, PartialEq, Eq)]
enum Material {
    Rsa {
        /// Big-endian, without zeros in front, as the exponent.
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// Points that are not compressed.
    P256(Vec<u8>),
    P384(Vec<u8>),
}

#[derive(Deserialize)]
struct Document {
    #[serde(default, deserialize_with = "few")]
    keys: Vec<Member>,
}

/// Keys, while there are not more than there may be: no more of them are held.
fn few<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Member>, D::Error> {
    struct Few;

    impl<'de> Visitor<'de> for Few {
        type Value = Vec<Member>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of {KEYS_MAX} keys at most")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Vec<Member>, A::Error> {
            let mut keys = Vec::new();
            while let Some(key) = all.next_element()? {
                if keys.len() == KEYS_MAX {
                    return Err(A::Error::custom(format!("more than {KEYS_MAX} keys")));
                }
                keys.push(key);
            }
            Ok(keys)
        }
    }

    from.deserialize_seq(Few)
}

/// What is looked at in a key; all of it is text.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Member {
    kty: String,
    kid: String,
    #[serde(rename = "use")]
    purpose: String,
    crv: String,
    n: String,
    e: String,
    x: String,
    y: String,
}

impl Algorithm {
    /// All that are served, in the order of their names. ES512 is not: `ring` has no P-521.
    pub const ALL: [Algorithm; 8] = [
        Algorithm::Es256,
        Algorithm::Es384,
        Algorithm::Ps256,
        Algorithm::Ps384,
        Algorithm::Ps512,
        Algorithm::Rs256,
        Algorithm::Rs384,
        Algorithm::Rs512,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Es256 => "ES256",
            Algorithm::Es384 => "ES384",
            Algorithm::Ps256 => "PS256",
            Algorithm::Ps384 => "PS384",
            Algorithm::Ps512 => "PS512",
            Algorithm::Rs256 => "RS256",
            Algorithm::Rs384 => "RS384",
            Algorithm::Rs512 => "RS512",
        }
    }

    /// The algorithm of a name.
    pub fn named(name: &str) -> Option<Algorithm> {
        // Few: there are eight.
        Algorithm::ALL.into_iter().find(|one| one.name() == name)
    }

    fn rsa(self) -> Option<&'static RsaParameters> {
        Some(match self {
            Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Algorithm::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
            Algorithm::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
            Algorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
            Algorithm::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
            Algorithm::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
            Algorithm::Es256 | Algorithm::Es384 => return None,
        })
    }
}

impl KeySet {
    /// The keys of a document that can be used. Keys that are not for signatures, or of a kind or a size that
    /// is not known, are passed over: others in the set may be what is needed.
    ///
    /// # Errors
    /// It is no set of keys, or holds more than there may be.
    pub fn of(document: &[u8]) -> Result<KeySet, String> {
        // A list would be read as one without members.
        if document.trim_ascii_start().first() != Some(&b'{') {
            return Err("it is no object".to_owned());
        }
        let read: Document = serde_json::from_slice(document).map_err(|why| why.to_string())?;
        let keys = read.keys.into_iter().filter(|key| key.purpose != "enc");
        let keys = keys.filter_map(|member| Some(Key { material: member.material()?, id: member.kid }));
        Ok(KeySet { keys: keys.collect() })
    }

    /// Whether one of these keys signed `token`: the one that it names, or any if it names none.
    pub fn has_signed(&self, token: &Token<'_>) -> bool {
        let Some(algorithm) = Algorithm::named(token.algorithm()) else { return false };
        if token.has_extensions() {
            return false;
        }
        let id = token.key_id();
        // Few: there are KEYS_MAX at most, and a token that names one is tried with that alone.
        let mut named = self.keys.iter().filter(|key| id.is_empty() || key.id == id);
        named.any(|key| key.material.has_signed(algorithm, token.signed.as_bytes(), &token.signature))
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl Member {
    fn material(&self) -> Option<Material> {
        let number = |text: &str| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
        match (self.kty.as_str(), self.crv.as_str()) {
            ("RSA", _) => {
                let (modulus, exponent) = (trimmed(number(&self.n)?), trimmed(number(&self.e)?));
                RSA_BITS.contains(&(modulus.len() * 8)).then_some(Material::Rsa { modulus, exponent })
            }
            ("EC", curve) => {
                let (x, y) = (number(&self.x)?, number(&self.y)?);
                let bytes = match curve {
                    "P-256" => 32,
                    "P-384" => 48,
                    _ => return None,
                };
                if x.len() != bytes || y.len() != bytes {
                    return None;
                }
                let point = [&[4][..], &x, &y].concat();
                Some(if bytes == 32 { Material::P256(point) } else { Material::P384(point) })
            }
            _ => None,
        }
    }
}

fn trimmed(number: Vec<u8>) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number[zeros..].to_vec()
}

impl Material {
    fn has_signed(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let verify = |with: &'static dyn VerificationAlgorithm, point: &[u8]| {
            UnparsedPublicKey::new(with, point).verify(message, signature).is_ok()
        };
        match (self, algorithm, algorithm.rsa()) {
            (Material::Rsa { modulus, exponent }, _, Some(parameters)) => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(parameters, message, signature).is_ok()
            }
            (Material::P256(point), Algorithm::Es256, _) => {
                verify(&signature::ECDSA_P256_SHA256_FIXED, point)
            }
            (Material::P384(point), Algorithm::Es384, _) => {
                verify(&signature::ECDSA_P384_SHA384_FIXED, point)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_passed_over_and_what_is_no_set_is_refused() {
        let (x, long) = ("A".repeat(43), format!("{}w", "_".repeat(341)));
        let set = format!(
            r#"{{"keys":[
                {{"kty":"RSA","kid":"a","n":"{long}","e":"AQAB","use":"sig"}},
                {{"kty":"RSA","kid":"b","n":"{long}","e":"AQAB","use":"enc"}},
                {{"kty":"RSA","kid":"short","n":"AQAB","e":"AQAB"}},
                {{"kty":"EC","crv":"P-256","kid":"c","x":"{x}","y":"{x}"}},
                {{"kty":"EC","crv":"P-256","kid":"d","x":"{x}","y":"AA"}},
                {{"kty":"EC","crv":"P-521","kid":"e","x":"{x}","y":"{x}"}},
                {{"kty":"oct","kid":"f","k":"AAAA"}},
                {{"kty":"OKP","crv":"Ed25519","kid":"g","x":"{x}"}},
                {{"kty":"AKP","kid":"h"}}]}}"#
        );
        let ids = |set: &str| -> Vec<String> {
            KeySet::of(set.as_bytes()).expect("a set").keys.into_iter().map(|key| key.id).collect()
        };
        assert_eq!(ids(&set), ["a", "c"]);
        assert!(KeySet::of(b"{}").expect("a set").is_empty());
        for no_set in ["[]", "{\"keys\":1}", "<html>", "", "{\"keys\":[{\"kid\":7}]}"] {
            assert!(KeySet::of(no_set.as_bytes()).is_err(), "{no_set}");
        }
        let many = |count: usize| format!("{{\"keys\":[{}]}}", vec!["{}"; count].join(","));
        assert_eq!(KeySet::of(many(KEYS_MAX).as_bytes()).map(|set| set.len()), Ok(0));
        assert!(KeySet::of(many(KEYS_MAX + 1).as_bytes()).is_err());
    }
}
