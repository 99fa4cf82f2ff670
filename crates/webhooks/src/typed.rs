//! Whether an answer has the types that upstream reads it into.
//!
//! In: an answer as a tree. Out: what is wrong with it, in the words of Go's decoder. Never: what a member
//! means; a member that nobody knows.
//!
//! Source: `sigs.k8s.io/json`; api v0.36.3 `admission/v1`, apiextensions-apiserver v0.36.3
//! `pkg/apis/apiextensions/v1`, apimachinery v0.36.3 `pkg/apis/meta/v1` (`Status`).

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use forebay_apimachinery::json::{kind_of, to_go_text};
use serde_json::Value;

use crate::configuration::ReviewVersion;

/// As Go reads base64: with all of its padding, and whatever the bits are that are left over.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical)
        .with_decode_allow_trailing_bits(true),
);

/// What a member is read into.
enum Shape {
    /// A string, by the name of its type.
    Text(&'static str),
    Bool,
    Int(i64, i64, &'static str),
    /// Base64, or numbers.
    Bytes,
    Texts,
    TextByName,
    Object(&'static Struct),
    Objects(&'static Struct),
    /// Objects of any kind, of which only their number counts here.
    Any,
}

/// A struct: its name, its type in Go, its members.
struct Struct {
    name: &'static str,
    ty: &'static str,
    members: &'static [(&'static str, Shape)],
}

const INT32: Shape = Shape::Int(i32::MIN as i64, i32::MAX as i64, "int32");
const INT64: Shape = Shape::Int(i64::MIN, i64::MAX, "int64");
const TEXT: Shape = Shape::Text("string");

static LIST_META: Struct = Struct {
    name: "ListMeta",
    ty: "v1.ListMeta",
    members: &[
        ("selfLink", TEXT),
        ("resourceVersion", TEXT),
        ("continue", TEXT),
        ("remainingItemCount", INT64),
    ],
};

static CAUSE: Struct = Struct {
    name: "StatusCause",
    ty: "v1.StatusCause",
    members: &[("reason", Shape::Text("v1.CauseType")), ("message", TEXT), ("field", TEXT)],
};

static DETAILS: Struct = Struct {
    name: "StatusDetails",
    ty: "v1.StatusDetails",
    members: &[
        ("name", TEXT),
        ("group", TEXT),
        ("kind", TEXT),
        ("uid", Shape::Text("types.UID")),
        ("causes", Shape::Objects(&CAUSE)),
        ("retryAfterSeconds", INT32),
    ],
};

static STATUS: Struct = Struct {
    name: "Status",
    ty: "v1.Status",
    members: &[
        ("kind", TEXT),
        ("apiVersion", TEXT),
        ("metadata", Shape::Object(&LIST_META)),
        ("status", TEXT),
        ("message", TEXT),
        ("reason", Shape::Text("v1.StatusReason")),
        ("details", Shape::Object(&DETAILS)),
        ("code", INT32),
    ],
};

macro_rules! admission_review {
    ($version:literal) => {
        Struct {
            name: "AdmissionReview",
            ty: concat!($version, ".AdmissionReview"),
            members: &[
                (
                    "request",
                    Shape::Object(&Struct {
                        name: "AdmissionRequest",
                        ty: concat!($version, ".AdmissionRequest"),
                        members: &[],
                    }),
                ),
                (
                    "response",
                    Shape::Object(&Struct {
                        name: "AdmissionResponse",
                        ty: concat!($version, ".AdmissionResponse"),
                        members: &[
                            ("uid", Shape::Text("types.UID")),
                            ("allowed", Shape::Bool),
                            ("status", Shape::Object(&STATUS)),
                            ("patch", Shape::Bytes),
                            ("patchType", Shape::Text(concat!($version, ".PatchType"))),
                            ("auditAnnotations", Shape::TextByName),
                            ("warnings", Shape::Texts),
                        ],
                    }),
                ),
            ],
        }
    };
}

macro_rules! conversion_review {
    ($version:literal) => {
        Struct {
            name: "ConversionReview",
            ty: concat!($version, ".ConversionReview"),
            members: &[
                (
                    "request",
                    Shape::Object(&Struct {
                        name: "ConversionRequest",
                        ty: concat!($version, ".ConversionRequest"),
                        members: &[],
                    }),
                ),
                (
                    "response",
                    Shape::Object(&Struct {
                        name: "ConversionResponse",
                        ty: concat!($version, ".ConversionResponse"),
                        members: &[
                            ("uid", Shape::Text("types.UID")),
                            ("convertedObjects", Shape::Any),
                            ("result", Shape::Object(&STATUS)),
                        ],
                    }),
                ),
            ],
        }
    };
}

static ADMISSION: [Struct; 2] = [admission_review!("v1"), admission_review!("v1beta1")];
static CONVERSION: [Struct; 2] = [conversion_review!("v1"), conversion_review!("v1beta1")];

/// Which review an answer is read into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReviewSort {
    Admission,
    Conversion,
}

/// Whether a review of that version can be read from `answer`.
///
/// # Errors
/// The first member of another type.
pub(crate) fn check(sort: ReviewSort, version: ReviewVersion, answer: &Value) -> Result<(), String> {
    let all = match sort {
        ReviewSort::Admission => &ADMISSION,
        ReviewSort::Conversion => &CONVERSION,
    };
    let of = match version {
        ReviewVersion::V1 => &all[0],
        ReviewVersion::V1beta1 => &all[1],
    };
    of.check(answer, "")
}

/// Whether a Status can be.
pub(crate) fn is_status(answer: &Value) -> bool {
    STATUS.check(answer, "").is_ok()
}

/// The bytes that a member has.
///
/// # Errors
/// It is no base64, in Go's words.
pub(crate) fn bytes(value: &Value) -> Result<Vec<u8>, String> {
    match value {
        Value::String(text) => decoded(text),
        Value::Array(items) => Ok(items
            .iter()
            .map(|item| item.as_u64().and_then(|n| u8::try_from(n).ok()).unwrap_or(0))
            .collect()),
        _ => Ok(Vec::new()),
    }
}

fn decoded(text: &str) -> Result<Vec<u8>, String> {
    // Go passes over the ends of lines.
    let has_lines = text.bytes().any(|byte| matches!(byte, b'\n' | b'\r'));
    let joined = has_lines.then(|| text.replace(['\n', '\r'], ""));
    let text = joined.as_deref().unwrap_or(text);
    BASE64.decode(text).map_err(|why| {
        let at = match why {
            base64::DecodeError::InvalidByte(at, _) => at,
            // Where the last four begin, unless some padding is there.
            _ if !text.ends_with('=') => text.len() - text.len() % 4,
            _ => text.len(),
        };
        format!("illegal base64 data at input byte {at}")
    })
}

impl Struct {
    /// - `at`: the way to it, with a dot behind it; empty at the top.
    fn check(&self, value: &Value, at: &str) -> Result<(), String> {
        let Some(members) = value.as_object() else { return Ok(()) };
        for (name, shape) in self.members {
            match members.get(*name) {
                None | Some(Value::Null) => {}
                Some(value) => shape.check(value, self.name, &format!("{at}{name}"))?,
            }
        }
        Ok(())
    }
}

impl Shape {
    fn check(&self, value: &Value, of: &str, at: &str) -> Result<(), String> {
        let into = |found: &str, ty: &str| {
            Err(format!("json: cannot unmarshal {found} into Go struct field {of}.{at} of type {ty}"))
        };
        let kind = kind_of(value);
        let text = |value: &Value, ty: &str| match value {
            Value::String(_) | Value::Null => Ok(()),
            other => into(kind_of(other), ty),
        };
        match (self, value) {
            (Shape::Text(ty), value) => text(value, ty),
            (Shape::Bool, Value::Bool(_)) => Ok(()),
            (Shape::Bool, _) => into(kind, "bool"),
            (Shape::Int(min, max, ty), Value::Number(number)) => match number.as_i64() {
                Some(number) if (*min..=*max).contains(&number) => Ok(()),
                _ => into(&format!("number {}", to_go_text(value)), ty),
            },
            (Shape::Int(_, _, ty), _) => into(kind, ty),
            (Shape::Bytes, Value::String(text)) => decoded(text).map(drop),
            (Shape::Bytes, Value::Array(items)) => {
                let wrong =
                    items.iter().find(|item| !item.is_null() && item.as_u64().is_none_or(|n| n > 255));
                match wrong {
                    None => Ok(()),
                    Some(Value::Number(_)) => {
                        into(&format!("number {}", to_go_text(wrong.unwrap_or(&Value::Null))), "uint8")
                    }
                    Some(other) => into(kind_of(other), "uint8"),
                }
            }
            (Shape::Bytes, _) => into(kind, "[]uint8"),
            (Shape::Texts, Value::Array(items)) => items.iter().try_for_each(|item| text(item, "string")),
            (Shape::Texts, _) => into(kind, "[]string"),
            (Shape::TextByName, Value::Object(members)) => {
                members.values().try_for_each(|member| text(member, "string"))
            }
            (Shape::TextByName, _) => into(kind, "map[string]string"),
            (Shape::Object(of_member), Value::Object(_)) => of_member.check(value, &format!("{at}.")),
            (Shape::Object(of_member), _) => into(kind, of_member.ty),
            (Shape::Objects(of_item), Value::Array(items)) => items.iter().try_for_each(|item| match item {
                Value::Object(_) | Value::Null => of_item.check(item, &format!("{at}.")),
                other => into(kind_of(other), of_item.ty),
            }),
            (Shape::Objects(of_item), _) => into(kind, &format!("[]{}", of_item.ty)),
            (Shape::Any, Value::Array(_)) => Ok(()),
            (Shape::Any, _) => into(kind, "[]runtime.RawExtension"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(response: &Value) -> String {
        let answer = json!({ "response": response });
        check(ReviewSort::Admission, ReviewVersion::V1, &answer).expect_err("of another type")
    }

    #[test]
    fn members_of_another_type_are_told_as_go_tells_them() {
        for (response, told) in [
            (
                json!({ "allowed": "true" }),
                "string into Go struct field AdmissionResponse.response.allowed of type bool",
            ),
            (
                json!({ "patch": [{}] }),
                "object into Go struct field AdmissionResponse.response.patch of type uint8",
            ),
            (
                json!({ "patch": [256] }),
                "number 256 into Go struct field AdmissionResponse.response.patch of type uint8",
            ),
            (
                json!({ "patch": {} }),
                "object into Go struct field AdmissionResponse.response.patch of type []uint8",
            ),
            (
                json!({ "patchType": 5 }),
                "number into Go struct field AdmissionResponse.response.patchType of type v1.PatchType",
            ),
            (
                json!({ "warnings": ["a", 5] }),
                "number into Go struct field AdmissionResponse.response.warnings of type string",
            ),
            (
                json!({ "auditAnnotations": [] }),
                "array into Go struct field AdmissionResponse.response.auditAnnotations of type map[string]string",
            ),
            (
                json!({ "status": "no" }),
                "string into Go struct field AdmissionResponse.response.status of type v1.Status",
            ),
            (
                json!({ "status": { "code": 403.5 } }),
                "number 403.5 into Go struct field Status.response.status.code of type int32",
            ),
            (
                json!({ "status": { "details": { "causes": [{ "reason": 1 }] } } }),
                "number into Go struct field StatusCause.response.status.details.causes.reason of type v1.CauseType",
            ),
        ] {
            assert_eq!(wrong(&response), format!("json: cannot unmarshal {told}"), "{response}");
        }
        assert_eq!(wrong(&json!({ "patch": "W1=!" })), "illegal base64 data at input byte 2");
        let beta = check(ReviewSort::Conversion, ReviewVersion::V1beta1, &json!({ "response": [] }));
        let told = "json: cannot unmarshal array into Go struct field ConversionReview.response of type v1beta1.ConversionResponse";
        assert_eq!(beta, Err(told.to_owned()));
    }

    #[test]
    fn null_and_what_nobody_knows_are_passed_over() {
        let answer =
            json!({ "response": { "allowed": null, "other": [], "status": { "code": null } }, "x": 1 });
        assert_eq!(check(ReviewSort::Admission, ReviewVersion::V1beta1, &answer), Ok(()));
    }

    #[test]
    fn base64_is_read_as_go_reads_it() {
        assert_eq!(bytes(&json!("W1\n0=\r")), Ok(b"[]".to_vec()));
        assert_eq!(bytes(&json!([91, 93])), Ok(b"[]".to_vec()));
        assert_eq!(bytes(&json!("W10")), Err("illegal base64 data at input byte 0".to_owned()));
    }
}
