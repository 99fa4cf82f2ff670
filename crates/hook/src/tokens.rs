//! Tokens of a provider that is a [`Hook`](crate::Hook): keys, and what is signed with them.
//!
//! In: claims, headers. Out: tokens, good ones and others; the documents of a provider. Never: judges one.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use p521::ecdsa::signature::Signer as _;
use p521::ecdsa::{Signature, SigningKey, VerifyingKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{self, EcdsaKeyPair, KeyPair as _, RsaEncoding};
use ring::{hmac, rsa};
use serde_json::{Value, json};

/// What a provider signs with.
pub struct Signer {
    id: String,
    rsa: rsa::KeyPair,
    p256: EcdsaKeyPair,
    p521: SigningKey,
}

impl Signer {
    /// Its RSA key is always the same, the others are new.
    ///
    /// - `id`: what its keys are called begins so.
    ///
    /// # Panics
    /// The system gives no random numbers.
    pub fn new(id: &str) -> Signer {
        let text: String = include_str!("testdata/rsa.pkcs8.b64").split_whitespace().collect();
        let (random, algorithm) = (SystemRandom::new(), &signature::ECDSA_P256_SHA256_FIXED_SIGNING);
        let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
        // Below the order of the curve, which has 521 bits.
        let mut secret = [0; 66];
        random.fill(&mut secret[1..]).expect("random");
        Signer {
            id: id.to_owned(),
            p521: SigningKey::from_slice(&secret).expect("a key"),
            rsa: rsa::KeyPair::from_pkcs8(&STANDARD.decode(text).expect("base64")).expect("a key"),
            p256: EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).expect("a key"),
        }
    }

    /// Its RSA key in PEM, for who is to sign and verify with the same.
    pub fn rsa_pem() -> String {
        let text = include_str!("testdata/rsa.pkcs8.b64").trim();
        format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
    }

    /// The set of its public keys, in JSON.
    pub fn keys(&self) -> String {
        let number = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let on_curve = |curve: &str, algorithm: &str, point: &[u8]| {
            let (x, y) = point[1..].split_at(point.len() / 2);
            json!({ "kty": "EC", "use": "sig", "crv": curve, "kid": self.key(algorithm),
                "x": number(x), "y": number(y) })
        };
        let p521 = VerifyingKey::from(&self.p521).to_encoded_point(false);
        let public = rsa::PublicKeyComponents::<Vec<u8>>::from(self.rsa.public());
        json!({ "keys": [
            { "kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.key("RS256"),
                "n": number(&public.n), "e": number(&public.e) },
            on_curve("P-256", "ES256", self.p256.public_key().as_ref()),
            on_curve("P-521", "ES512", p521.as_bytes()),
        ] })
        .to_string()
    }

    fn key(&self, algorithm: &str) -> String {
        let kind = match algorithm {
            "ES512" => "p521",
            _ if algorithm.starts_with("ES") => "ec",
            _ => "rsa",
        };
        format!("{}-{kind}", self.id)
    }

    /// A token of these claims, signed as `algorithm` says.
    pub fn token(&self, algorithm: &str, claims: &Value) -> String {
        self.token_under(json!({ "alg": algorithm, "kid": self.key(algorithm) }), claims)
    }

    /// The same under any header. An algorithm that is none leaves the signature empty; HS256 signs with the
    /// public key, which everybody knows.
    ///
    /// # Panics
    /// The system gives no random numbers.
    pub fn token_under(&self, header: Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(claims));
        let random = SystemRandom::new();
        let with_rsa = |encoding: &'static dyn RsaEncoding| {
            let mut signature = vec![0; self.rsa.public().modulus_len()];
            self.rsa.sign(encoding, &random, signed.as_bytes(), &mut signature).expect("signed");
            signature
        };
        let signature = match header["alg"].as_str().unwrap_or_default() {
            "RS256" => with_rsa(&signature::RSA_PKCS1_SHA256),
            "RS512" => with_rsa(&signature::RSA_PKCS1_SHA512),
            "PS256" => with_rsa(&signature::RSA_PSS_SHA256),
            "ES256" => self.p256.sign(&random, signed.as_bytes()).expect("signed").as_ref().to_vec(),
            "ES512" => {
                let signature: Signature = self.p521.sign(signed.as_bytes());
                signature.to_bytes().to_vec()
            }
            "HS256" => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, self.rsa.public().as_ref());
                hmac::sign(&key, signed.as_bytes()).as_ref().to_vec()
            }
            _ => Vec::new(),
        };
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// What a provider says of itself.
pub fn discovery(issuer: &str, keys_url: &str) -> String {
    let url = |what: &str| format!("{issuer}/{what}");
    json!({
        "issuer": issuer, "jwks_uri": keys_url,
        "authorization_endpoint": url("authorize"), "token_endpoint": url("token"),
        "response_types_supported": ["code"], "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256", "ES256"],
    })
    .to_string()
}
