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
use p521::ecdsa::signature::Verifier as _;
use ring::signature::{
    self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::limits::{KEYS_MAX, RSA_BITS, SLOW_TRIES_MAX};
use crate::token::Token;

/// How a token may be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    Es256,
    Es384,
    Es512,
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
    P521(Vec<u8>),
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
    /// All that there are, in the order of their names.
    pub const ALL: [Algorithm; 9] = [
        Algorithm::Es256,
        Algorithm::Es384,
        Algorithm::Es512,
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
            Algorithm::Es512 => "ES512",
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
        // Few: there are nine.
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
            Algorithm::Es256 | Algorithm::Es384 | Algorithm::Es512 => return None,
        })
    }

    /// With how many keys a token is tried that names none.
    const fn tries_max(self) -> usize {
        match self {
            Algorithm::Es384 | Algorithm::Es512 => SLOW_TRIES_MAX,
            _ => KEYS_MAX,
        }
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
        let named = self.keys.iter().filter(|key| id.is_empty() || key.id == id);
        let mut tried = named.filter(|key| key.material.is_for(algorithm)).take(algorithm.tries_max());
        tried.any(|key| key.material.has_signed(algorithm, token.signed.as_bytes(), &token.signature))
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
                let (bytes, of): (usize, fn(Vec<u8>) -> Material) = match curve {
                    "P-256" => (32, Material::P256),
                    "P-384" => (48, Material::P384),
                    "P-521" => (66, Material::P521),
                    _ => return None,
                };
                (x.len() == bytes && y.len() == bytes).then(|| of([&[4][..], &x, &y].concat()))
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
    /// Whether `algorithm` is one for such a key.
    fn is_for(&self, algorithm: Algorithm) -> bool {
        match self {
            Material::Rsa { .. } => algorithm.rsa().is_some(),
            Material::P256(_) => algorithm == Algorithm::Es256,
            Material::P384(_) => algorithm == Algorithm::Es384,
            Material::P521(_) => algorithm == Algorithm::Es512,
        }
    }

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
            (Material::P521(point), Algorithm::Es512, _) => has_signed_on_p521(point, message, signature),
            _ => false,
        }
    }
}

/// Whether `signature`, both numbers in 66 bytes each, is one of this point over the SHA-512 of `message`;
/// none is of what is no point of the curve. `ring` has no P-521.
fn has_signed_on_p521(point: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(point);
    let signature = p521::ecdsa::Signature::from_slice(signature);
    key.is_ok_and(|key| signature.is_ok_and(|signature| key.verify(message, &signature).is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_passed_over_and_what_is_no_set_is_refused() {
        let (x, long, wide) = ("A".repeat(43), format!("{}w", "_".repeat(341)), "A".repeat(88));
        let set = format!(
            r#"{{"keys":[
                {{"kty":"RSA","kid":"a","n":"{long}","e":"AQAB","use":"sig"}},
                {{"kty":"RSA","kid":"b","n":"{long}","e":"AQAB","use":"enc"}},
                {{"kty":"RSA","kid":"short","n":"AQAB","e":"AQAB"}},
                {{"kty":"EC","crv":"P-256","kid":"c","x":"{x}","y":"{x}"}},
                {{"kty":"EC","crv":"P-256","kid":"d","x":"{x}","y":"AA"}},
                {{"kty":"EC","crv":"P-521","kid":"e","x":"{x}","y":"{x}"}},
                {{"kty":"EC","crv":"P-521","kid":"e66","x":"{wide}","y":"{wide}"}},
                {{"kty":"EC","crv":"P-256","kid":"c66","x":"{wide}","y":"{wide}"}},
                {{"kty":"oct","kid":"f","k":"AAAA"}},
                {{"kty":"OKP","crv":"Ed25519","kid":"g","x":"{x}"}},
                {{"kty":"AKP","kid":"h"}}]}}"#
        );
        let ids = |set: &str| -> Vec<String> {
            KeySet::of(set.as_bytes()).expect("a set").keys.into_iter().map(|key| key.id).collect()
        };
        assert_eq!(ids(&set), ["a", "c", "e66"]);
        assert!(KeySet::of(b"{}").expect("a set").is_empty());
        for no_set in ["[]", "{\"keys\":1}", "<html>", "", "{\"keys\":[{\"kid\":7}]}"] {
            assert!(KeySet::of(no_set.as_bytes()).is_err(), "{no_set}");
        }
        let many = |count: usize| format!("{{\"keys\":[{}]}}", vec!["{}"; count].join(","));
        assert_eq!(KeySet::of(many(KEYS_MAX).as_bytes()).map(|set| set.len()), Ok(0));
        assert!(KeySet::of(many(KEYS_MAX + 1).as_bytes()).is_err());
    }

    /// The example of RFC 7515, appendix A.4.
    #[test]
    fn the_signature_on_p521_that_the_standard_shows_is_good_and_no_other() {
        let number = |text: &str| URL_SAFE_NO_PAD.decode(text).expect("base64url");
        let x = "AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk";
        let y = "ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2";
        let key =
            Member { kty: "EC".into(), crv: "P-521".into(), x: x.into(), y: y.into(), ..Member::default() };
        let key = key.material().expect("a key");
        let message = b"eyJhbGciOiJFUzUxMiJ9.UGF5bG9hZA";
        let good = number(
            "AdwMgeerwtHoh-l192l60hp9wAHZFVJbLfD_UxMi70cwnZOYaRI1bKPWROc-mZZqwqT2SI-KGDKB34XO0aw_7Xdt\
             AG8GaSwFKdCAPZgoXD2YBJZCPEX3xKpRwcdOO8KpEHwJjyqOgzDO7iKvU8vcnwNrmxYbSW9ERBXukOXolLzeO_Jn",
        );
        let verdict = |message: &[u8], signature: &[u8]| key.has_signed(Algorithm::Es512, message, signature);
        assert!(verdict(message, &good));
        assert!(!verdict(b"eyJhbGciOiJFUzUxMiJ9.UGF5bG9hZB", &good));
        for at in 0..good.len() {
            let mut other = good.clone();
            other[at] ^= 1;
            assert!(!verdict(message, &other), "byte {at} is another");
        }
        let (r, s) = good.split_at(66);
        // As long as one of another curve, or with zeros that nobody needs; both as DER has it.
        let (short, long) = (good[..131].to_vec(), [good.as_slice(), &[0]].concat());
        let der = [&[0x30, 0x81, 0x88, 0x02, 0x42][..], r, &[0x02, 0x42], s].concat();
        let padded = [&[0][..], r, &[0], s].concat();
        for other in [short, long, der, padded, Vec::new(), vec![0; 132], vec![0xff; 132], [s, r].concat()] {
            assert!(!verdict(message, &other), "{} bytes", other.len());
        }
        for other in Algorithm::ALL.into_iter().filter(|other| *other != Algorithm::Es512) {
            assert!(!key.is_for(other) && !key.has_signed(other, message, &good), "{}", other.name());
        }
        let nowhere = Material::P521([&[4][..], &number(x), &number(x)].concat());
        assert!(!nowhere.has_signed(Algorithm::Es512, message, &good), "no point of the curve");
    }
}
