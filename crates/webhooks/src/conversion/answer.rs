//! What the answer of a conversion webhook says.
//!
//! In: what came back, and the objects that were sent. Out: the objects in the other version, each with the
//! metadata that it had but for labels and annotations; or what is wrong, in upstream's words, which asks for
//! one object at a time. Never: an object that is another by its name, namespace, uid or kind.

use forebay_apimachinery::json::{go_quote, kind_of, weight, write_sorted};
use forebay_apimachinery::resource::split_api_version;
use forebay_apimachinery::{Lease, Reason, Status};
use forebay_crd::field::{Path, aggregate};
use forebay_crd::meta_rules;
use serde_json::{Map, Value};

use super::GROUP;
use crate::call::{Answered, NoAnswer};
use crate::configuration::ReviewVersion;
use crate::reading::{Unread, read};
use crate::typed::ReviewSort;

/// What was asked of a webhook.
pub struct AskedToConvert<'a> {
    pub version: ReviewVersion,
    pub uid: &'a str,
    /// The version that is wanted, as `apiVersion` names it.
    pub to: &'a str,
    /// What was sent, in that order; one at least.
    pub objects: &'a [Value],
}

/// Why there is no conversion.
#[derive(Clone, Debug)]
pub struct ConversionFailure {
    pub status: Status,
    pub sort: FailureSort,
}

/// As metrics tell failures apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureSort {
    Call,
    MalformedResponse,
    PartialResponse,
    InvalidObject,
}

impl FailureSort {
    /// Upstream's name.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureSort::Call => "conversion_webhook_call_failure",
            FailureSort::MalformedResponse => "conversion_webhook_malformed_response_failure",
            FailureSort::PartialResponse => "conversion_webhook_partial_response_failure",
            FailureSort::InvalidObject => "conversion_webhook_invalid_converted_object_failure",
        }
    }

    fn failure(self, why: String) -> ConversionFailure {
        ConversionFailure { status: Status::new(Reason::Unknown, why), sort: self }
    }

    fn full(self, status: impl Into<Status>) -> ConversionFailure {
        ConversionFailure { status: status.into(), sort: self }
    }
}

/// The objects that `answered` has for those that were sent, in their order.
///
/// - `url`: what was asked.
/// - `lease`: the answer's tree is charged to it.
/// - `retry_seconds`: when to come back, for whom there was no room behind it.
///
/// # Errors
/// [`ConversionFailure`]: it is no answer, or not to this; there is no room for it.
pub fn converted(
    asked: &AskedToConvert<'_>,
    (url, answered): (&str, Result<Answered, NoAnswer>),
    lease: &Lease,
    retry_seconds: impl FnOnce() -> u32,
) -> Result<Vec<Value>, ConversionFailure> {
    let of = |object: &Value| {
        let (group, version) = split_api_version(text(object, "apiVersion"));
        format!("conversion webhook for {group}/{version}, Kind={}", text(object, "kind"))
    };
    let first = of(&asked.objects[0]);
    let failed = |sort: FailureSort, why: String| sort.failure(format!("{first} failed: {why}"));
    let answered = answered.map_err(|none| match none {
        NoAnswer::Busy(why) => {
            let why = format!("{first} failed: Post {}: {why}", go_quote(url));
            let busy = Status::new(Reason::TooManyRequests, why);
            FailureSort::Call.full(busy.retry_after(retry_seconds()))
        }
        NoAnswer::Unusable(why) | NoAnswer::Unread(why) => failed(FailureSort::Call, why),
        NoAnswer::Unreached(why) | NoAnswer::Failed(why) => {
            failed(FailureSort::Call, format!("Post {}: {why}", go_quote(url)))
        }
    })?;
    let review = read((ReviewSort::Conversion, asked.version), &answered, lease);
    let review = review.map_err(|unread| match unread {
        Unread::Why(why, _) => failed(FailureSort::Call, why),
        Unread::Full(why) => FailureSort::Call.full(why),
    })?;
    let made = verify(review, asked).map_err(|why| failed(FailureSort::MalformedResponse, why))?;
    let (count, expected) = (made.len(), asked.objects.len());
    if count != expected {
        let why = format!("{first} returned {count} objects, expected {expected}");
        return Err(FailureSort::PartialResponse.failure(why));
    }
    let mut objects = Vec::with_capacity(count);
    for (original, made) in asked.objects.iter().zip(made) {
        lease
            .charge(weight::of(&original["metadata"]))
            .map_err(|full| FailureSort::InvalidObject.full(full))?;
        let made = restored(original, made, asked.to, &of(original));
        objects.push(made.map_err(|why| FailureSort::InvalidObject.failure(why))?);
    }
    Ok(objects)
}

/// The objects of the response, if it is one to this review.
fn verify(mut review: Value, asked: &AskedToConvert<'_>) -> Result<Vec<Value>, String> {
    if asked.version == ReviewVersion::V1 {
        let (group, version) = split_api_version(text(&review, "apiVersion"));
        let told = format!("{group}/{version}, Kind={}", text(&review, "kind"));
        let wanted = format!("{GROUP}/v1, Kind=ConversionReview");
        if told != wanted {
            return Err(format!("expected webhook response of {wanted}, got {told}"));
        }
    }
    let Some(response) = review.get_mut("response").and_then(Value::as_object_mut) else {
        return Err("no response provided".to_owned());
    };
    let told = response.get("uid").and_then(Value::as_str).unwrap_or_default();
    if asked.version == ReviewVersion::V1 && told != asked.uid {
        return Err(format!("expected response.uid={}, got {}", go_quote(asked.uid), go_quote(told)));
    }
    let result = response.get("result").unwrap_or(&Value::Null);
    if text(result, "status") != "Success" {
        return Err(match text(result, "message") {
            "" => format!("response.result.status was '{}', not 'Success'", text(result, "status")),
            message => message.to_owned(),
        });
    }
    match response.remove("convertedObjects") {
        Some(Value::Array(objects)) => Ok(objects),
        _ => Ok(Vec::new()),
    }
}

/// `made` with the metadata of `original`, but for labels and annotations.
///
/// - `of`: how what is wrong begins.
fn restored(original: &Value, mut made: Value, to: &str, of: &str) -> Result<Value, String> {
    match &made {
        Value::Object(_) => {}
        Value::Null => return Err("unexpected end of JSON input".to_owned()),
        other => {
            let kind = kind_of(other);
            return Err(format!(
                "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            ));
        }
    }
    if text(&made, "kind").is_empty() {
        let mut shown = Vec::new();
        write_sorted(&made, &mut shown);
        return Err(format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(&shown)));
    }
    let told = text(&made, "apiVersion");
    if told != to {
        let why = format!("invalid groupVersion (expected {to}, received {told})");
        return Err(format!("{of} returned invalid object at index 0: {why}"));
    }
    let (wanted, told) = (text(original, "kind"), text(&made, "kind"));
    if told != wanted {
        let why = format!("invalid kind (expected {wanted}, received {told})");
        return Err(format!("{of} returned invalid object at index 0: {why}"));
    }
    for (name, word) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (wanted, told) = (text(&original["metadata"], name), text(&made["metadata"], name));
        if told != wanted {
            return Err(format!(
                "{of} returned invalid object: must have the same {word}: {wanted} != {told}"
            ));
        }
    }
    let metadata = made.get_mut("metadata").map(Value::take);
    made["metadata"] = restored_metadata(&original["metadata"], metadata)
        .map_err(|why| format!("{of} returned invalid metadata: {why}"))?;
    Ok(made)
}

/// The metadata of the original, with labels and annotations of what was made.
fn restored_metadata(original: &Value, made: Option<Value>) -> Result<Value, String> {
    let mut made = match made {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(made)) => made,
        Some(other) => {
            return Err(format!("invalid metadata of type {} in converted object", go_type(&other)));
        }
    };
    let mut metadata = original.as_object().cloned().unwrap_or_default();
    for name in ["labels", "annotations"] {
        let texts = match made.remove(name) {
            None | Some(Value::Null) => {
                metadata.remove(name);
                continue;
            }
            Some(Value::Object(texts)) => texts,
            Some(other) => {
                let of = go_type(&other);
                return Err(format!("invalid metadata.{name} of type {of} in converted object"));
            }
        };
        if metadata.get(name).and_then(Value::as_object) != Some(&texts) {
            check(name, &texts)?;
        }
        metadata.insert(name.to_owned(), Value::Object(texts));
    }
    Ok(Value::Object(metadata))
}

/// What is wrong with labels or annotations.
fn check(name: &str, texts: &Map<String, Value>) -> Result<(), String> {
    if let Some((key, value)) = texts.iter().find(|(_, value)| !value.is_string()) {
        let of = go_type(value);
        return Err(format!("metadata.{name}[{key}] must be a string, but is {of} in converted object"));
    }
    let all = Value::Object(Map::from_iter([(name.to_owned(), Value::Object(texts.clone()))]));
    let metadata = Path::NIL.child("metadata");
    let errors = match name {
        "labels" => meta_rules::labels(&all, &metadata.child("labels")),
        // Upstream's path has no plural.
        _ => meta_rules::annotations(&all, &metadata.child("annotation")),
    };
    if errors.is_empty() { Ok(()) } else { Err(aggregate(&errors)) }
}

/// As Go names the type of what JSON has.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn text<'v>(of: &'v Value, name: &str) -> &'v str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
