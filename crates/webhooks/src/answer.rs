//! What the answer of a webhook says.
//!
//! In: what came back. Out: a judgement, with the patch as operations; or a failure in upstream's words.
//! Never: applies a patch.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go`,
//! `request/admissionreview.go` there.

use forebay_apimachinery::json::{ParseError, go_quote, kind_of, parse};
use forebay_apimachinery::{Exhausted, Lease, Status};
use serde_json::{Map, Value};

use crate::call::{Answered, NoAnswer};
use crate::configuration::{ReviewVersion, Webhook, WebhookSort};
use crate::failure::{CallFailure, denied};
use crate::limits::{ANNOTATIONS_MAX, WARNINGS_MAX};
use crate::reading::{Unread, read};
use crate::typed::{self, ReviewSort};

/// What a webhook has to say of a write that it was asked about.
#[derive(Debug, Default)]
pub struct Judgement {
    pub warnings: Vec<String>,
    /// With the webhook's name before each key.
    pub annotations: Vec<(String, String)>,
    /// Why it does not let the write pass, or what it makes of the object.
    pub decided: Decided,
}

/// What a webhook has decided.
#[derive(Debug)]
pub enum Decided {
    /// With the operations of its patch.
    Allowed(Vec<Value>),
    /// Allowed with a patch that is none of a known type: why it cannot be applied.
    Unsupported(CallFailure),
    Denied(Box<Status>),
}

impl Default for Decided {
    fn default() -> Decided {
        Decided::Allowed(Vec::new())
    }
}

/// Reads an answer.
///
/// - `uid`: that of the review.
/// - `url`: what was asked.
/// - `lease`: for what is made of the answer; there being no room in it is the webhook's fault.
///
/// # Errors
/// [`CallFailure`]: it is no answer; there is no room for it.
pub fn judge(
    webhook: &Webhook,
    sort: WebhookSort,
    version: ReviewVersion,
    uid: &str,
    (url, answered): (&str, Result<Answered, NoAnswer>),
    lease: &Lease,
) -> Result<Judgement, CallFailure> {
    let failed = |why: String| CallFailure::unavailable(format!("failed to call webhook: {why}"));
    let answered = answered.map_err(|none| match none {
        NoAnswer::Busy(why) => {
            let why = format!("failed to call webhook: Post {}: {why}", go_quote(url));
            CallFailure::Busy { why }
        }
        NoAnswer::Unusable(why) => CallFailure::unusable(why),
        NoAnswer::Unread(why) => failed(why),
        NoAnswer::Unreached(why) | NoAnswer::Failed(why) => failed(format!("Post {}: {why}", go_quote(url))),
    })?;
    let review = read((ReviewSort::Admission, version), &answered, lease).map_err(|unread| match unread {
        Unread::Full(why) => failed(why.to_string()),
        Unread::Why(why, None) => failed(why),
        Unread::Why(why, Some(code)) => {
            CallFailure::Calling { why: format!("failed to call webhook: {why}"), code }
        }
    })?;
    let response = verify(&review, sort, version, uid)
        .map_err(|why| CallFailure::unavailable(format!("received invalid webhook response: {why}")))?;
    let texts = |name: &str| response.get(name).and_then(Value::as_array).into_iter().flatten();
    let annotations = response.get("auditAnnotations").and_then(Value::as_object).into_iter().flatten();
    let annotations = annotations
        .filter_map(|(key, value)| Some((format!("{}/{key}", webhook.name), value.as_str()?.to_owned())));
    let mut judgement = Judgement {
        warnings: texts("warnings").filter_map(Value::as_str).take(WARNINGS_MAX).map(String::from).collect(),
        annotations: annotations.take(ANNOTATIONS_MAX).collect(),
        decided: Decided::default(),
    };
    if response.get("allowed") != Some(&Value::Bool(true)) {
        let denied = denied(&webhook.name, response.get("status").and_then(Value::as_object));
        judgement.decided = Decided::Denied(Box::new(denied));
    } else if sort == WebhookSort::Mutating {
        judgement.decided = operations(response, version, lease)?;
    }
    Ok(judgement)
}

/// The response, if it is one to this review.
fn verify<'r>(
    review: &'r Value,
    sort: WebhookSort,
    version: ReviewVersion,
    uid: &str,
) -> Result<&'r Map<String, Value>, String> {
    let response = review["response"].as_object().ok_or("webhook response was absent")?;
    if version == ReviewVersion::V1beta1 {
        return Ok(response);
    }
    let text = |name: &str| response.get(name).and_then(Value::as_str);
    let told = text("uid").unwrap_or_default();
    if told != uid {
        return Err(format!("expected response.uid={}, got {}", go_quote(uid), go_quote(told)));
    }
    let of = |name: &str| review[name].as_str().unwrap_or_default();
    if (of("apiVersion"), of("kind")) != (version.api_version(), "AdmissionReview") {
        let (wanted, kind) = (version.api_version(), of("kind"));
        // As Go prints a kind: a core version has a slash before it.
        let told = match of("apiVersion") {
            told if told.contains('/') => told.to_owned(),
            told => format!("/{told}"),
        };
        return Err(format!(
            "expected webhook response of {wanted}, Kind=AdmissionReview, got {told}, Kind={kind}"
        ));
    }
    let has_patch = match response.get("patch") {
        Some(Value::String(patch)) => !patch.is_empty(),
        Some(Value::Array(patch)) => !patch.is_empty(),
        _ => false,
    };
    let patch_type = text("patchType");
    match (sort, has_patch, patch_type) {
        (WebhookSort::Mutating, true, None) => {
            Err("webhook returned response.patch but not response.patchType".to_owned())
        }
        (WebhookSort::Mutating, false, Some(_)) => {
            Err("webhook returned response.patchType but not response.patch".to_owned())
        }
        (WebhookSort::Mutating, true, Some("")) => {
            Err("webhook returned invalid response.patchType of \"\"".to_owned())
        }
        (WebhookSort::Validating, true, _) => {
            Err("validating webhook may not return response.patch".to_owned())
        }
        (WebhookSort::Validating, _, Some(_)) => {
            Err("validating webhook may not return response.patchType".to_owned())
        }
        _ => Ok(response),
    }
}

/// What is decided with the operations of the patch; none without one.
fn operations(
    response: &Map<String, Value>,
    version: ReviewVersion,
    lease: &Lease,
) -> Result<Decided, CallFailure> {
    let patch = response.get("patch").unwrap_or(&Value::Null);
    let undecodable = |why: String| {
        CallFailure::unavailable(format!("received undecodable patch in webhook response: {why}"))
    };
    let full = |why: Exhausted| CallFailure::unavailable(format!("failed to call webhook: {why}"));
    lease.charge(patch.as_str().map_or(0, str::len)).map_err(full)?;
    let patch = typed::bytes(patch).map_err(undecodable)?;
    if patch.is_empty() {
        return Ok(Decided::default());
    }
    let patch = match parse(&patch, lease) {
        Ok(parsed) => parsed.value,
        Err(ParseError::Exhausted(why)) => return Err(full(why)),
        Err(why) => return Err(undecodable(why.to_string())),
    };
    let into = |found: &Value, ty: &str| {
        undecodable(format!("json: cannot unmarshal {} into Go value of type {ty}", kind_of(found)))
    };
    let operations = match patch {
        Value::Array(operations) => operations,
        Value::Null => Vec::new(),
        other => return Err(into(&other, "jsonpatch.Patch")),
    };
    if let Some(other) = operations.iter().find(|operation| !operation.is_object() && !operation.is_null()) {
        return Err(into(other, "jsonpatch.Operation"));
    }
    let of = response.get("patchType").and_then(Value::as_str).unwrap_or_default();
    if version == ReviewVersion::V1 && of != "JSONPatch" && !operations.is_empty() {
        // Its number is that of a refusal.
        let number = response.get("status").and_then(|status| status["code"].as_u64()).unwrap_or_default();
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        let why = format!("unsupported patch type {}", go_quote(of));
        return Ok(Decided::Unsupported(CallFailure::refused(why, number)));
    }
    Ok(Decided::Allowed(operations))
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
