//! The header of a token that somebody else has signed: what may stand there.
//!
//! In: a header as it stands in a token. Out: the name of the key that it names; or what is wrong, in
//! upstream's words. Stricter than upstream where Go's decoder takes what others read in another way: names
//! in capitals, and what comes behind the object.
//!
//! Source: kubernetes v1.36.3 `externaljwt/plugin/plugin.go` (`validateJWTHeader`); Go 1.24 `encoding/json`.

use base64::DecodeError;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use forebay_apimachinery::json::go_quote;
use serde_json::Value;

use crate::limits;

/// How tokens may be signed.
const ALGORITHMS: [&str; 4] = ["RS256", "ES256", "ES384", "ES512"];

/// The key that `header` names.
///
/// # Errors
/// What is wrong with it.
pub fn key_id(header: &str) -> Result<String, String> {
    if header.len() > limits::HEADER_BYTES_MAX {
        return Err(format!("header longer than {} bytes", limits::HEADER_BYTES_MAX));
    }
    let json = URL_SAFE_NO_PAD.decode(header);
    let json =
        json.map_err(|error| format!("while unwrapping header: {}", as_go_says(error, header.len())))?;
    let (mut algorithm, mut id, mut sort) = (String::new(), String::new(), String::new());
    let members = members(&json).map_err(|why| format!("while parsing header JSON: {why}"))?;
    for (name, text) in members {
        match name.as_str() {
            "alg" => algorithm = text,
            "kid" => id = text,
            _ => sort = text,
        }
    }
    if sort != "JWT" {
        return Err("bad type".to_owned());
    }
    if id.is_empty() {
        return Err("key id missing".to_owned());
    }
    if id.len() > limits::KEY_ID_BYTES_MAX {
        return Err("key id longer than 1 kb".to_owned());
    }
    if !ALGORITHMS.contains(&algorithm.as_str()) {
        let said: String = algorithm.chars().take(limits::SAID_CHARS_MAX).collect();
        return Err(format!("bad signing algorithm {}", go_quote(&said)));
    }
    Ok(id)
}

/// The members of a header, which are texts of three names.
fn members(json: &[u8]) -> Result<Vec<(String, String)>, String> {
    let header: Value = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    let kind = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let Value::Object(header) = header else {
        return Err(format!("json: cannot unmarshal {} into a header", kind(&header)));
    };
    let mut all = Vec::new();
    for (name, value) in header {
        if !matches!(name.as_str(), "alg" | "kid" | "typ") {
            let said: String = name.chars().take(limits::SAID_CHARS_MAX).collect();
            return Err(format!("json: unknown field {}", go_quote(&said)));
        }
        match value {
            Value::String(text) => all.push((name, text)),
            Value::Null => {}
            other => {
                let kind = kind(&other);
                return Err(format!(
                    "json: cannot unmarshal {kind} into Go struct field .{name} of type string"
                ));
            }
        }
    }
    Ok(all)
}

fn as_go_says(error: DecodeError, bytes: usize) -> String {
    let at = match error {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol { offset: at, .. } => at,
        _ => bytes,
    };
    format!("illegal base64 data at input byte {at}")
}

#[cfg(test)]
mod tests {
    use forebay_fuzz::{Corpus, run};

    use super::*;

    #[test]
    fn a_header_says_how_by_which_key_and_that_it_is_a_token() {
        let long = "k".repeat(1025);
        let rows = [
            (r#"{"alg":"ES256","kid":"a","typ":"JWT"}"#.to_owned(), Ok("a")),
            (r#" {"typ":"JWT","kid":"a","alg":"RS256"} "#.to_owned(), Ok("a")),
            (r#"{"alg":"ES256","kid":"a"}"#.to_owned(), Err("bad type")),
            (r#"{"alg":"ES256","kid":"a","typ":"jwt"}"#.to_owned(), Err("bad type")),
            (r#"{"alg":"ES256","typ":"JWT"}"#.to_owned(), Err("key id missing")),
            (r#"{"alg":"ES256","kid":null,"typ":"JWT"}"#.to_owned(), Err("key id missing")),
            (format!(r#"{{"alg":"ES256","kid":"{long}","typ":"JWT"}}"#), Err("key id longer than 1 kb")),
            (r#"{"kid":"a","typ":"JWT"}"#.to_owned(), Err(r#"bad signing algorithm """#)),
            (r#"{"alg":"none","kid":"a","typ":"JWT"}"#.to_owned(), Err(r#"bad signing algorithm "none""#)),
            (r#"{"alg":"PS256","kid":"a","typ":"JWT"}"#.to_owned(), Err(r#"bad signing algorithm "PS256""#)),
            (
                r#"{"alg":"ES256","kid":"a","typ":"JWT","jku":"https://x"}"#.to_owned(),
                Err(r#"while parsing header JSON: json: unknown field "jku""#),
            ),
            (
                r#"{"alg":"ES256","Kid":"a","typ":"JWT"}"#.to_owned(),
                Err(r#"while parsing header JSON: json: unknown field "Kid""#),
            ),
            (
                r#"{"alg":5,"kid":"a","typ":"JWT"}"#.to_owned(),
                Err(
                    "while parsing header JSON: json: cannot unmarshal number into Go struct field .alg of type string",
                ),
            ),
            ("[]".to_owned(), Err("while parsing header JSON: json: cannot unmarshal array into a header")),
        ];
        for (json, want) in rows {
            let found = key_id(&URL_SAFE_NO_PAD.encode(&json));
            assert_eq!(found.as_deref().map_err(String::as_str), want, "{json}");
        }
        let behind = key_id(&URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256","kid":"a","typ":"JWT"} {}"#));
        assert!(behind.expect_err("more than an object").starts_with("while parsing header JSON: "));
        let deep = key_id(&URL_SAFE_NO_PAD.encode("[".repeat(8_000)));
        assert!(deep.expect_err("no object").starts_with("while parsing header JSON: "));
        assert_eq!(
            key_id("e*30"),
            Err("while unwrapping header: illegal base64 data at input byte 1".into())
        );
        assert_eq!(key_id(&"A".repeat(13_000)), Err("header longer than 12288 bytes".into()));
        // The longest name, however it is written.
        let escaped = format!(r#"{{"alg":"ES256","kid":"{}","typ":"JWT"}}"#, "\\u006b".repeat(1024));
        assert_eq!(key_id(&URL_SAFE_NO_PAD.encode(escaped)), Ok("k".repeat(1024)));
    }

    #[test]
    fn fuzz_headers_of_signers() {
        let inputs: &[&[u8]] = &[b"eyJhbGciOiJFUzI1NiIsImtpZCI6ImEiLCJ0eXAiOiJKV1QifQ", b"e30"];
        run("signer_headers", &Corpus { inputs, ..Corpus::default() }, |input| {
            let found = key_id(&String::from_utf8_lossy(input));
            assert!(found.as_ref().map_or(true, |id| !id.is_empty() && id.len() <= limits::KEY_ID_BYTES_MAX));
            found.map_err(|why| why.len())
        });
    }
}
