//! Tokens as text: three parts in base64url, the last one the signature over the other two.
//!
//! In: claims and a key, or a text. Out: a text, or claims and what is needed to judge them. Never: believes
//! a claim.
//!
//! Source: RFC 7515, 7519; kubernetes v1.36.3 `pkg/serviceaccount/{claims,legacy}.go`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::keys::{KeyError, PublicHalf, SigningKey};
use crate::limits::TOKEN_BYTES_MAX;

/// A token, taken apart and not judged.
pub struct Token<'t> {
    header: Header,
    pub claims: Claims,
    signed: &'t str,
    signature: Vec<u8>,
}

/// Why a token is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unverified {
    /// None of the keys is the one that it names.
    UnknownKey,
    /// None of those has signed it.
    Forged,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
    // Extensions that whoever does not know them must refuse; none are known.
    #[serde(default)]
    crit: Value,
}

/// What a token says. Both forms that there have been: with `kubernetes.io`, and with names in a row.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Claims {
    pub iss: String,
    pub sub: String,
    pub aud: Audience,
    pub jti: String,
    // Seconds since 1970.
    pub exp: Option<f64>,
    pub nbf: Option<f64>,
    pub iat: Option<f64>,
    #[serde(rename = "kubernetes.io")]
    pub bound: Bound,
    #[serde(rename = "kubernetes.io/serviceaccount/namespace")]
    pub legacy_namespace: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name")]
    pub legacy_name: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid")]
    pub legacy_uid: String,
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name")]
    pub legacy_secret: String,
}

/// One audience or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Audience {
    One(String),
    Many(Vec<String>),
}

impl Default for Audience {
    fn default() -> Self {
        Audience::Many(Vec::new())
    }
}

/// The service account, and what its token lives no longer than.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Bound {
    pub namespace: String,
    pub serviceaccount: Reference,
    pub pod: Option<Reference>,
    pub secret: Option<Reference>,
    pub node: Option<Reference>,
    /// When it was to be replaced, in seconds since 1970; 0 for one that was not.
    pub warnafter: Option<f64>,
}

/// An object, by name and uid.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Reference {
    pub name: String,
    pub uid: String,
}

impl Audience {
    pub fn as_slice(&self) -> &[String] {
        match self {
            Audience::One(one) => std::slice::from_ref(one),
            Audience::Many(many) => many,
        }
    }
}

/// The token that says `claims`.
///
/// # Errors
/// The system gives no random numbers.
pub fn sign(key: &SigningKey, claims: &Value) -> Result<String, KeyError> {
    let header = json!({ "alg": key.public.algorithm.name(), "kid": key.public.id });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&header), part(claims));
    let signature = key.sign(signed.as_bytes())?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

impl<'t> Token<'t> {
    /// Takes a text apart. `None` when it is no token that could be ours.
    pub fn parse(text: &'t str) -> Option<Token<'t>> {
        if text.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let (signed, signature) = text.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        Some(Token {
            header: serde_json::from_slice(&decode(header)?).ok()?,
            claims: serde_json::from_slice(&decode(claims)?).ok()?,
            signed,
            signature: decode(signature)?,
        })
    }

    /// Whether one of `keys` signed it.
    ///
    /// # Errors
    /// Why it is not believed.
    pub fn verify(&self, keys: &[PublicHalf]) -> Result<(), Unverified> {
        let is_named = |key: &&PublicHalf| self.header.kid.is_empty() || key.id == self.header.kid;
        let mut named = keys.iter().filter(is_named).peekable();
        if named.peek().is_none() {
            return Err(Unverified::UnknownKey);
        }
        let is_good = self.header.crit.is_null()
            && named.any(|key| {
                key.algorithm.name() == self.header.alg
                    && key.has_signed(self.signed.as_bytes(), &self.signature)
            });
        if is_good { Ok(()) } else { Err(Unverified::Forged) }
    }
}
