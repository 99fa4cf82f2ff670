//! What the answer of a webhook says.
//!
//! In: what came back. Out: a judgement, with the patch as operations; or a failure in upstream's words.
//! Never: applies a patch.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go`,
//! `request/admissionreview.go` there.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_apimachinery::json::{go_quote, weight};
use forebay_apimachinery::{Exhausted, Lease, Status};
use serde_json::{Map, Value};

use crate::call::{Answered, NoAnswer};
use crate::configuration::{ReviewVersion, Webhook, WebhookSort};
use crate::failure::{CallFailure, denied};
use crate::limits::{ANNOTATIONS_MAX, WARNINGS_MAX};
use crate::status;

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
    Unsupported(String),
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
    let answered = answered.map_err(|none| {
        let why = format!("Post {}: {}", go_quote(url), none.why());
        match none {
            NoAnswer::Busy(_) => CallFailure::Busy { why: format!("failed to call webhook: {why}") },
            NoAnswer::Unreached(_) | NoAnswer::Failed(_) => failed(why),
        }
    })?;
    if !status::is_success(answered.code) {
        let why = format!(
            "failed to call webhook: {}",
            status::words(answered.code, &answered.body, answered.is_text)
        );
        return Err(CallFailure::Calling { why, code: answered.code });
    }
    let full = |why: Exhausted| failed(why.to_string());
    lease.charge(weight::of_text(&answered.body)).map_err(full)?;
    let review: Value = serde_json::from_slice(&answered.body)
        .map_err(|why| failed(format!("couldn't get version/kind; json parse error: {why}")))?;
    is_known(&review, version).map_err(failed)?;
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

/// Whether its type is the one of an answer to a review of `asked`, or none.
fn is_known(review: &Value, asked: ReviewVersion) -> Result<(), String> {
    let of = |name: &str| review[name].as_str().unwrap_or_default();
    let (version, kind) = (of("apiVersion"), of("kind"));
    if version.is_empty() || kind.is_empty() || (version, kind) == (asked.api_version(), "AdmissionReview") {
        return Ok(());
    }
    let short = |version: ReviewVersion| version.api_version().rsplit('/').next().unwrap_or_default();
    let other = match asked {
        ReviewVersion::V1 => ReviewVersion::V1beta1,
        ReviewVersion::V1beta1 => ReviewVersion::V1,
    };
    if (version, kind) == (other.api_version(), "AdmissionReview") {
        let (from, to) = (short(other), short(asked));
        return Err(format!(
            "converting ({from}.AdmissionReview) to ({to}.AdmissionReview): unknown conversion"
        ));
    }
    Err(format!(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        go_quote(kind),
        go_quote(version)
    ))
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
    let (has_patch, patch_type) = (text("patch").is_some_and(|patch| !patch.is_empty()), text("patchType"));
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
    let patch = response.get("patch").and_then(Value::as_str).unwrap_or_default();
    if patch.is_empty() {
        return Ok(Decided::default());
    }
    let undecodable = |why: String| {
        CallFailure::unavailable(format!("received undecodable patch in webhook response: {why}"))
    };
    let full = |why: Exhausted| CallFailure::unavailable(format!("failed to call webhook: {why}"));
    lease.charge(patch.len()).map_err(full)?;
    let patch = STANDARD.decode(patch).map_err(|why| undecodable(why.to_string()))?;
    lease.charge(weight::of_text(&patch)).map_err(full)?;
    let operations = match serde_json::from_slice(&patch) {
        Ok(Value::Array(operations)) => operations,
        Ok(Value::Null) => Vec::new(),
        Ok(_) => {
            let why = "json: cannot unmarshal object into Go value of type jsonpatch.Patch";
            return Err(undecodable(why.to_owned()));
        }
        Err(why) => return Err(undecodable(why.to_string())),
    };
    let of = response.get("patchType").and_then(Value::as_str).unwrap_or_default();
    if version == ReviewVersion::V1 && of != "JSONPatch" && !operations.is_empty() {
        return Ok(Decided::Unsupported(format!("unsupported patch type {}", go_quote(of))));
    }
    Ok(Decided::Allowed(operations))
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
