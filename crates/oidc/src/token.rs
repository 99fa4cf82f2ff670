//! A token as text: three parts in base64url, the last one the signature over the other two.
//!
//! In: a text. Out: whose it says it is, or its parts. Never: believes any of it.
//!
//! Source: RFC 7515; apiserver v0.36.3 `plugin/pkg/authenticator/token/oidc/oidc.go` (`untrustedIssuer`);
//! go-oidc v2.5.0 `verify.go`.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::limits::{CLAIM_BYTES_MAX, TOKEN_BYTES_MAX};

/// As Go reads it: what is left over of the last letter is not looked at.
const CODED: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// A token, taken apart and not judged.
pub struct Token<'t> {
    header: Header,
    issuer: String,
    payload: Vec<u8>,
    pub(crate) signed: &'t str,
    pub(crate) signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: Option<String>,
    kid: Option<String>,
    // Extensions that whoever does not know them must refuse; none are known.
    #[serde(default)]
    crit: Value,
}

/// What is read before it is known who says it.
#[derive(Deserialize)]
struct Untrusted {
    iss: Option<String>,
}

impl<'t> Token<'t> {
    /// Takes a text apart. `None` when it is no token that a provider could have issued: then it is for
    /// somebody else to know.
    pub fn parse(text: &'t str) -> Option<Token<'t>> {
        Token::up_to(TOKEN_BYTES_MAX, text)
    }

    /// The same of what a source of claims said, which may be longer.
    pub fn of_source(text: &'t str) -> Option<Token<'t>> {
        Token::up_to(CLAIM_BYTES_MAX, text.trim())
    }

    fn up_to(bytes_max: usize, text: &'t str) -> Option<Token<'t>> {
        if text.len() > bytes_max {
            return None;
        }
        let (signed, signature) = text.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let decode = |part: &str| CODED.decode(part).ok();
        let payload = decode(claims)?;
        let Untrusted { iss } = serde_json::from_slice(&payload).ok()?;
        let header = serde_json::from_slice(&decode(header)?).ok()?;
        Some(Token {
            header,
            issuer: iss.unwrap_or_default(),
            payload,
            signed,
            signature: decode(signature)?,
        })
    }

    /// Whose it says it is; empty if it does not say.
    pub fn issuer(&self) -> &str {
        match self.issuer.as_str() {
            // As Google wrote it once.
            "accounts.google.com" => "https://accounts.google.com",
            issuer => issuer,
        }
    }

    /// How it says it was signed.
    pub fn algorithm(&self) -> &str {
        self.header.alg.as_deref().unwrap_or_default()
    }

    /// Which key it says it was signed with; empty if it does not say.
    pub fn key_id(&self) -> &str {
        self.header.kid.as_deref().unwrap_or_default()
    }

    /// What it says, as a tree: for whoever knows who says it.
    ///
    /// # Errors
    /// It is no object, or deeper than is read.
    pub(crate) fn claims(&self) -> Result<Map<String, Value>, serde_json::Error> {
        serde_json::from_slice(&self.payload)
    }

    /// Whether it takes what nobody here knows.
    pub(crate) fn has_extensions(&self) -> bool {
        !self.header.crit.is_null()
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use forebay_fuzz::{Corpus, gist, run};

    use super::*;

    fn text(header: &str, claims: &str) -> String {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!("{}.{}.{}", part(header), part(claims), part("signature"))
    }

    #[test]
    fn what_is_no_token_is_nobodys() {
        for text in [
            String::new(),
            "abcdef.0123456789abcdef".to_owned(),
            "a.b.c".to_owned(),
            text("{}", r#"{"iss":1}"#),
            text("{", "{}"),
            format!("{}.x", text("{}", "{}")),
            format!("{}=", text("{}", "{}")),
            text("{}", &format!("{{\"a\":\"{}\"}}", "x".repeat(TOKEN_BYTES_MAX))),
        ] {
            assert!(Token::parse(&text).is_none(), "{}", &text[..text.len().min(40)]);
        }
        let nested = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        let nested = text("{}", &nested);
        let is_read = Token::parse(&nested).is_some_and(|token| token.claims().is_ok());
        assert!(!is_read, "deeper than a stack should be");
    }

    #[test]
    fn a_token_says_whose_it_is_and_how_it_was_signed() {
        for (claims, issuer) in [
            (r#"{"iss":"https://i"}"#, "https://i"),
            (r#"{"iss":"accounts.google.com"}"#, "https://accounts.google.com"),
            (r#"{}"#, ""),
            (r#"{"iss":null}"#, ""),
        ] {
            let text = text(r#"{"alg":"RS256","kid":"k"}"#, claims);
            let token = Token::parse(&text).expect("a token");
            assert_eq!((token.issuer(), token.algorithm(), token.key_id()), (issuer, "RS256", "k"));
        }
        let whole = text(r#"{"kid":null}"#, "{}");
        let token = Token::parse(&whole[..whole.len() - 2]).expect("a token");
        assert_eq!((token.algorithm(), token.key_id()), ("", ""));
    }

    #[test]
    fn fuzz_oidc_tokens() {
        let good = text(r#"{"alg":"RS256","kid":"k"}"#, r#"{"iss":"https://i","aud":["a"],"exp":1.5}"#);
        let none = text(r#"{"alg":"none","crit":["b64"]}"#, r#"{"iss":1,"groups":[null,{}]}"#);
        let inputs: &[&[u8]] = &[good.as_bytes(), none.as_bytes(), b"..", b"e30.e30."];
        run("oidc tokens", &Corpus { inputs, words: &[".", "e30", "eyJ"], ..Corpus::default() }, |input| {
            let text = std::str::from_utf8(input).map_err(gist)?;
            let token = Token::parse(text).ok_or_else(|| gist("none"))?;
            let members = token.claims().map(|claims| claims.len().min(9)).map_err(gist)?;
            Ok::<_, String>((token.issuer().len().min(9), token.has_extensions(), members))
        });
    }
}
