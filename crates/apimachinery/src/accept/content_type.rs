//! The `Content-Type` header.
//!
//! In: its text. Out: what the body is, if it is anything that the API knows. Never: decides which of them a
//! place takes.

use crate::{Reason, Status};

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentType {
    Json,
    Yaml,
    Protobuf,
    Cbor,
    JsonPatch,
    MergePatch,
    StrategicMergePatch,
    ApplyYaml,
    ApplyCbor,
    Form,
}

const ALL: [ContentType; 10] = [
    ContentType::Json,
    ContentType::Yaml,
    ContentType::Protobuf,
    ContentType::Cbor,
    ContentType::JsonPatch,
    ContentType::MergePatch,
    ContentType::StrategicMergePatch,
    ContentType::ApplyYaml,
    ContentType::ApplyCbor,
    ContentType::Form,
];

impl ContentType {
    /// Reads a header; parameters such as `charset` do not matter. `None` for any other type and for the
    /// empty text.
    ///
    /// A body without a header is JSON, but for a PATCH, which must say what it is.
    pub fn parse(header: &str) -> Option<ContentType> {
        let name = header.split(';').next().unwrap_or_default().trim_matches([' ', '\t']);
        ALL.into_iter().find(|content_type| content_type.as_str().eq_ignore_ascii_case(name))
    }

    /// As the header names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            ContentType::Json => "application/json",
            ContentType::Yaml => "application/yaml",
            ContentType::Protobuf => "application/vnd.kubernetes.protobuf",
            ContentType::Cbor => "application/cbor",
            ContentType::JsonPatch => "application/json-patch+json",
            ContentType::MergePatch => "application/merge-patch+json",
            ContentType::StrategicMergePatch => "application/strategic-merge-patch+json",
            ContentType::ApplyYaml => "application/apply-patch+yaml",
            ContentType::ApplyCbor => "application/apply-patch+cbor",
            ContentType::Form => "application/x-www-form-urlencoded",
        }
    }

    /// Whether it is a server-side apply.
    pub const fn is_apply(self) -> bool {
        matches!(self, ContentType::ApplyYaml | ContentType::ApplyCbor)
    }
}

/// What a client is told that sent none of `accepted`.
pub fn unsupported_media_type(accepted: &[ContentType]) -> Status {
    let accepted: Vec<&str> = accepted.iter().map(|content_type| content_type.as_str()).collect();
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    );
    Status::new(Reason::UnsupportedMediaType, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_read_back() {
        for content_type in ALL {
            assert_eq!(ContentType::parse(content_type.as_str()), Some(content_type));
        }
    }

    #[test]
    fn case_and_parameters_do_not_matter() {
        for (header, want) in [
            ("Application/JSON; charset=utf-8", Some(ContentType::Json)),
            (" application/apply-patch+yaml ;x", Some(ContentType::ApplyYaml)),
            ("", None),
            ("application/json,application/yaml", None),
            ("text/plain", None),
        ] {
            assert_eq!(ContentType::parse(header), want, "{header}");
        }
    }

    #[test]
    fn a_refusal_lists_what_is_taken() {
        let status = unsupported_media_type(&[ContentType::Json, ContentType::Yaml]);
        assert_eq!(status.reason, Reason::UnsupportedMediaType);
        assert_eq!(
            status.message,
            "the body of the request was in an unknown format - accepted media types include: application/json, \
             application/yaml"
        );
    }
}
