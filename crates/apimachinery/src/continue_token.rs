//! Continue tokens: where a LIST in pages goes on.
//!
//! In: the last key of a page and the revision of the list. Out: the opaque text for `metadata.continue`, and
//! back. Never: knows the prefix of a resource; keys here are relative to it.
//!
//! The format is kube-apiserver's, so that a client may go on at another server: unpadded base64url of
//! `{"v":"meta.k8s.io/v1","rv":7,"start":"default/web\u0000"}`.
//!
//! Source: apiserver v0.36.3 `storage/continue.go`.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::json::{Members, parse, write_string};
use crate::{Lease, Revision, Status};

const VERSION: &str = "meta.k8s.io/v1";

/// As Go decodes: without padding, and whatever the unused bits of the last letter are.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// Where to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinueToken {
    /// The first key that may be in the next page, relative to the resource's prefix. It is path-clean: no
    /// part of it is empty, `.` or `..`.
    pub start: String,
    pub at: ContinueAt,
}

/// Which state the next page is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContinueAt {
    /// The state that the first page was read from.
    Revision(Revision),
    /// The newest one; for a client whose revision was compacted and that accepts an inconsistent list.
    Latest,
}

/// Why a text is not a continue token. Prints as kube-apiserver prints it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContinueError {
    /// Not base64url, not JSON, or with a start that climbs out of the resource's prefix.
    #[error("continue key is not valid: {0}")]
    Invalid(String),
    #[error("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")]
    NoRevision,
    #[error("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")]
    NoStart,
    #[error("continue key is not valid: server does not recognize this encoded version {0}")]
    UnknownVersion(String),
}

impl ContinueToken {
    /// A token that goes on behind `last`, the relative key of a page's last object.
    pub fn after(last: &str, at: ContinueAt) -> ContinueToken {
        ContinueToken { start: format!("{last}\0"), at }
    }

    /// The text for `metadata.continue`.
    pub fn encode(&self) -> String {
        let revision = match self.at {
            ContinueAt::Revision(revision) => revision.to_string(),
            ContinueAt::Latest => "-1".to_string(),
        };
        let mut token = format!("{{\"v\":\"{VERSION}\",\"rv\":{revision},\"start\":").into_bytes();
        write_string(&self.start, &mut token);
        token.push(b'}');
        BASE64.encode(token)
    }

    /// Reads what a client sent back.
    ///
    /// # Errors
    /// [`ContinueError`], a 400 by way of [`ContinueError::to_status`].
    pub fn decode(text: &str) -> Result<ContinueToken, ContinueError> {
        let letters = text.replace(['\r', '\n'], "");
        let token = BASE64.decode(letters).map_err(|_| ContinueError::Invalid(illegal_base64(text)))?;
        let token = parse(&token, &Lease::of_one_tree())
            .map_err(|error| ContinueError::Invalid(error.to_string()))?
            .value;
        let (version, revision, start) = (|| {
            let members = Members::of(&token, "storage.continueToken", "continueToken.")?;
            Ok((members.text("v", "string")?, members.integer("rv")?, members.text("start", "string")?))
        })()
        .map_err(ContinueError::Invalid)?;
        match version {
            Some(VERSION) => {}
            other => return Err(ContinueError::UnknownVersion(other.unwrap_or_default().to_string())),
        }
        let at = match revision.unwrap_or(0) {
            0 => return Err(ContinueError::NoRevision),
            ..0 => ContinueAt::Latest,
            revision @ 1.. => ContinueAt::Revision(Revision::from_log(revision.unsigned_abs())),
        };
        let start = start.unwrap_or_default();
        if start.is_empty() {
            return Err(ContinueError::NoStart);
        }
        let relative = start.strip_prefix('/').unwrap_or(start);
        if !is_clean(relative) {
            return Err(ContinueError::Invalid(start.to_string()));
        }
        Ok(ContinueToken { start: relative.to_string(), at })
    }
}

impl ContinueError {
    /// What the client is told.
    pub fn to_status(&self) -> Status {
        Status::bad_request(format!("invalid continue token: {self}"))
    }
}

/// Whether a relative key stays below the prefix that it is put behind, and names one place in one way.
fn is_clean(key: &str) -> bool {
    key.is_empty() || !key.split('/').any(|part| matches!(part, "" | "." | ".."))
}

/// Go blames the first byte that is no letter, or else the last one, which is one too many. It overlooks line
/// ends.
fn illegal_base64(text: &str) -> String {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'\r' | b'\n');
    let offset = text.bytes().position(|byte| !is_letter(byte)).unwrap_or(text.len().saturating_sub(1));
    format!("illegal base64 data at input byte {offset}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(number: u64) -> ContinueAt {
        ContinueAt::Revision(Revision::from_log(number))
    }

    #[test]
    fn encodes_as_kube_apiserver_does() {
        for (last, at, want) in [
            ("a/b", revision(7), "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Nywic3RhcnQiOiJhL2JcdTAwMDAifQ"),
            ("a", ContinueAt::Latest, "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYVx1MDAwMCJ9"),
        ] {
            let token = ContinueToken::after(last, at);
            assert_eq!(token.encode(), want);
            assert_eq!(ContinueToken::decode(want), Ok(token));
        }
    }

    #[test]
    fn every_key_comes_back() {
        for last in ["default/web", "é<&>", "a\"b\\c", "..a/b..", "\u{2028}"] {
            let token = ContinueToken::after(last, revision(u64::try_from(i64::MAX).expect("positive")));
            assert_eq!(ContinueToken::decode(&token.encode()), Ok(token));
        }
    }

    /// Takes the JSON in a token and shows what became of it.
    fn check(json: &str, want: &str) {
        let got = match ContinueToken::decode(&BASE64.encode(json)) {
            Ok(token) => format!("{:?} {:?}", token.at, token.start),
            Err(error) => error.to_string(),
        };
        assert_eq!(got, want, "{json}");
    }

    #[test]
    fn decodes_with_upstreams_words() {
        let of = |rest: &str| format!("{{\"v\":\"meta.k8s.io/v1\",{rest}}}");
        check(&of(r#""rv":5,"start":"/a""#), r#"Revision(Revision(5)) "a""#);
        check(&of(r#""rv":-7,"start":"a..b/.c""#), r#"Latest "a..b/.c""#);
        check(
            &of(r#""rv":0,"start":"a""#),
            "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        );
        check(
            &of(r#""rv":5"#),
            "continue key is not valid: encoded start key empty (version meta.k8s.io/v1)",
        );
        check(
            r#"{"v":"v2","rv":5,"start":"a"}"#,
            "continue key is not valid: server does not recognize this encoded version v2",
        );
        check("null", "continue key is not valid: server does not recognize this encoded version ");
        check("{", "continue key is not valid: unexpected end of JSON input");
        check(
            &of(r#""rv":"5","start":"a""#),
            "continue key is not valid: json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
        );
        check(
            &of(r#""rv":5.5,"start":"a""#),
            "continue key is not valid: json: cannot unmarshal number 5.5 into Go struct field continueToken.rv of type \
             int64",
        );
        check(
            "[]",
            "continue key is not valid: json: cannot unmarshal array into Go value of type storage.continueToken",
        );
    }

    #[test]
    fn a_start_that_climbs_out_is_refused() {
        for start in ["../a", "a/../b", "a/", "//a", "a//b", ".", "..", "a/."] {
            let json = format!(r#"{{"v":"meta.k8s.io/v1","rv":5,"start":"{start}"}}"#);
            check(&json, &format!("continue key is not valid: {start}"));
        }
    }

    #[test]
    fn text_that_is_no_base64_is_refused() {
        for (text, offset) in [
            ("a", 0),
            ("a=", 1),
            ("!!!", 0),
            ("YWJj!", 4),
            ("YWJjZ", 4),
            ("YQ==", 2),
            ("a\nb=", 3),
            ("b\n", 1),
        ] {
            let error = ContinueToken::decode(text).expect_err("no token");
            let want = format!("continue key is not valid: illegal base64 data at input byte {offset}");
            assert_eq!(error.to_string(), want);
            assert_eq!(error.to_status().message, format!("invalid continue token: {want}"));
        }
    }
}
