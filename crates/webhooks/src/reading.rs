//! What came back, read into a review: of the right kind, in the right version, with members of the right
//! types.
//!
//! In: what came back. Out: its tree, or why it is none, in the words of client-go and of Go's decoder.
//! Never: what it says.
//!
//! Source: client-go v0.36.3 `rest/request.go` (`Into`), apimachinery v0.36.3
//! `pkg/runtime/serializer/{json,recognizer,versioning}`.

use forebay_apimachinery::json::{ParseError, go_quote, kind_of, parse};
use forebay_apimachinery::{Exhausted, Lease};
use serde_json::{Map, Value};

use crate::call::Answered;
use crate::configuration::ReviewVersion;
use crate::status;
use crate::typed::{self, ReviewSort};

/// Why there is no review.
pub(crate) enum Unread {
    /// With the number that metrics have for it, if it says one.
    Why(String, Option<u16>),
    /// There is no room for its tree.
    Full(Exhausted),
}

impl ReviewSort {
    pub(crate) fn kind(self) -> &'static str {
        match self {
            ReviewSort::Admission => "AdmissionReview",
            ReviewSort::Conversion => "ConversionReview",
        }
    }

    pub(crate) fn api_version(self, version: ReviewVersion) -> String {
        let group = match self {
            ReviewSort::Admission => "admission.k8s.io",
            ReviewSort::Conversion => "apiextensions.k8s.io",
        };
        format!("{group}/{}", version.name())
    }
}

/// The tree of a review of that version.
///
/// - `lease`: it is charged for the tree.
///
/// # Errors
/// It is no such review; there is no room for its tree.
pub(crate) fn read(
    (sort, version): (ReviewSort, ReviewVersion),
    answered: &Answered,
    lease: &Lease,
) -> Result<Value, Unread> {
    let Answered { code, content_type, body } = answered;
    if !status::is_success(*code) {
        let said = status::said(body);
        let number = said.as_ref().map_or(*code, |said| said.number);
        let why = said.map_or_else(|| status::words(*code, body, content_type), |said| said.message);
        return Err(Unread::Why(why, Some(number)));
    }
    let wrong = |why: String| Unread::Why(why, None);
    if body.is_empty() {
        let sort = if content_type.is_empty() { "application/json" } else { content_type };
        return Err(wrong(format!("0-length response with status code: {code} and content type: {sort}")));
    }
    let unkind = |why: String| wrong(format!("couldn't get version/kind; json parse error: {why}"));
    let review = match parse(body, lease) {
        Ok(parsed) => parsed.value,
        Err(ParseError::Exhausted(full)) => return Err(Unread::Full(full)),
        // What is no object is taken for YAML, of which all that comes is a text.
        Err(why) => match body.trim_ascii_start().first() {
            Some(b'{') => return Err(unkind(why.to_string())),
            _ => Value::String(String::new()),
        },
    };
    let members = match review {
        Value::Object(members) => members,
        Value::Null => Map::new(),
        other => {
            const META: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                                Kind string \"json:\\\"kind,omitempty\\\"\" }";
            let kind = kind_of(&other);
            return Err(unkind(format!("json: cannot unmarshal {kind} into Go value of type {META}")));
        }
    };
    for name in ["apiVersion", "kind"] {
        if let Some(other) = members.get(name).filter(|value| !value.is_string() && !value.is_null()) {
            let kind = kind_of(other);
            let why = format!("json: cannot unmarshal {kind} into Go struct field .{name} of type string");
            return Err(unkind(why));
        }
    }
    let review = Value::Object(members);
    let told = told((sort, version), &review).map_err(wrong)?;
    // A patch is decoded to see whether that can be done.
    lease.charge(body.len()).map_err(Unread::Full)?;
    let checked = typed::check(sort, told, &review);
    lease.give_back(body.len());
    checked.map_err(wrong)?;
    if told == version {
        return Ok(review);
    }
    let (from, to, kind) = (told.name(), version.name(), sort.kind());
    Err(wrong(format!("converting ({from}.{kind}) to ({to}.{kind}): unknown conversion")))
}

/// Of which version it is; of `asked`, where it does not say.
fn told((sort, asked): (ReviewSort, ReviewVersion), review: &Value) -> Result<ReviewVersion, String> {
    let (usual, kind) = (sort.api_version(asked), sort.kind());
    let or = |name: &str, usual: &str| match review[name].as_str() {
        None | Some("") => usual.to_owned(),
        Some(told) => told.to_owned(),
    };
    let told = (or("apiVersion", &usual), or("kind", kind));
    let mut known = [ReviewVersion::V1, ReviewVersion::V1beta1].into_iter();
    if let Some(version) = known.find(|version| told.1 == kind && told.0 == sort.api_version(*version)) {
        return Ok(version);
    }
    Err(match (told.0.as_str(), told.1.as_str()) {
        ("v1", "Status") => {
            format!("converting (v1.Status) to ({}.{kind}): unknown conversion", asked.name())
        }
        (version, kind) => format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            go_quote(kind),
            go_quote(version)
        ),
    })
}
