//! What a provider says of itself.
//!
//! In: its document, and who it should be. Out: where its keys are. Never: fetches one.
//!
//! Source: go-oidc v2.5.0 `oidc.go` (`NewProvider`).

use forebay_apimachinery::json::go_quote;
use serde::Deserialize;

/// What counts of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovered {
    /// Where the keys are.
    pub keys_url: String,
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    issuer: String,
    #[serde(default)]
    jwks_uri: String,
}

impl Discovered {
    /// - `issuer`: who it should be.
    ///
    /// # Errors
    /// It is somebody else's, or says not where the keys are.
    pub fn of(document: &[u8], issuer: &str) -> Result<Discovered, String> {
        let read = serde_json::from_slice(document);
        let Document { issuer: says, jwks_uri } =
            read.map_err(|why| format!("oidc: failed to decode provider discovery object: {why}"))?;
        if says != issuer {
            return Err(format!(
                "oidc: issuer did not match the issuer returned by provider, expected {} got {}",
                go_quote(issuer),
                go_quote(&says)
            ));
        }
        if jwks_uri.is_empty() {
            return Err("provider did not return JWKS URL".to_owned());
        }
        Ok(Discovered { keys_url: jwks_uri })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_counts_if_it_is_the_issuers_and_says_where_the_keys_are() {
        let of = |text: &str| Discovered::of(text.as_bytes(), "https://i").map(|found| found.keys_url);
        assert_eq!(of(r#"{"issuer":"https://i","jwks_uri":"https://k","x":1}"#), Ok("https://k".to_owned()));
        assert_eq!(
            of(r#"{"issuer":"https://i/","jwks_uri":"https://k"}"#),
            Err(
                "oidc: issuer did not match the issuer returned by provider, expected \"https://i\" got \"https://i/\""
                    .to_owned()
            )
        );
        assert_eq!(of(r#"{"issuer":"https://i"}"#), Err("provider did not return JWKS URL".to_owned()));
        assert!(of("<html>").is_err_and(|why| why.starts_with("oidc: failed to decode")));
    }
}
