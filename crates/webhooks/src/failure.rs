//! Why a webhook has not let a write pass, in upstream's words.
//!
//! Source: apiserver v0.36.3 `pkg/util/webhook/error.go`, `pkg/admission/plugin/webhook/errors`.

use forebay_apimachinery::{Exhausted, Foreign, Reason, Status};
use serde_json::{Map, Value};

use crate::configuration::Webhook;
use crate::metrics::CallOutcome;

/// What metrics have where there was no answer.
const UNAVAILABLE: u16 = 503;
/// The same where it cannot be asked by what is said of it.
const INTERNAL: u16 = 500;
/// The same where too many wait for one.
const BUSY: u16 = 429;
/// What is said then.
pub const CROWDED: &str = "too many requests wait for it to answer";
/// The least that a refusal is told with.
const REFUSED_MIN: u16 = 400;

/// What came of a call that does not let the write pass.
#[derive(Clone, Debug)]
pub enum CallFailure {
    /// The webhook could not be asked: its failure policy says what that means.
    Calling {
        why: String,
        /// As metrics tell it.
        code: u16,
    },
    /// The same for now: too many wait for it to answer.
    Busy { why: String },
    /// It refused, or what it wants cannot be done.
    Rejected(Box<Status>),
}

impl CallFailure {
    /// What the client is told where the failure policy says that it counts.
    ///
    /// - `retry_seconds`: when to come back, for whom there was no room behind it.
    pub fn refusal(self, webhook: &Webhook, retry_seconds: impl FnOnce() -> u32) -> Status {
        let failed = |why: String| format!("failed calling webhook {:?}: {why}", webhook.name);
        match self {
            CallFailure::Calling { why, .. } => Status::internal(failed(why)),
            CallFailure::Busy { why } => {
                Status::new(Reason::TooManyRequests, failed(why)).retry_after(retry_seconds())
            }
            CallFailure::Rejected(status) => *status,
        }
    }
}

impl CallFailure {
    /// The webhook could not be reached, or what it says is no answer.
    pub fn unavailable(why: String) -> CallFailure {
        CallFailure::Calling { why, code: UNAVAILABLE }
    }

    /// There is no room for one more that waits for it.
    pub fn crowded() -> CallFailure {
        CallFailure::Busy { why: CROWDED.to_owned() }
    }

    /// There is no room for what it would be sent.
    pub fn full(why: Exhausted) -> CallFailure {
        match why {
            Exhausted::NoRoom => CallFailure::Busy { why: why.to_string() },
            Exhausted::TooLarge => CallFailure::unavailable(why.to_string()),
        }
    }

    /// What is said of where it is, or of who vouches for it, cannot be used.
    pub fn unusable(why: String) -> CallFailure {
        CallFailure::Calling { why: format!("could not get REST client: {why}"), code: INTERNAL }
    }

    /// What it answers cannot be done, and it says a number with it.
    pub(crate) fn refused(why: String, code: u16) -> CallFailure {
        CallFailure::Calling { why, code: code.max(REFUSED_MIN) }
    }

    /// It cannot be asked, whether it is there or not.
    pub fn unasked(why: String) -> CallFailure {
        CallFailure::Calling { why, code: REFUSED_MIN }
    }

    /// As metrics have it.
    ///
    /// - `counts`: whether the write fails for it.
    pub fn outcome(&self, counts: bool) -> CallOutcome {
        match self {
            CallFailure::Calling { code, .. } if counts => CallOutcome::Failed(*code),
            CallFailure::Calling { code, .. } => CallOutcome::FailedOpen(*code),
            CallFailure::Busy { .. } if counts => CallOutcome::Failed(BUSY),
            CallFailure::Busy { .. } => CallOutcome::FailedOpen(BUSY),
            CallFailure::Rejected(status) => match &status.foreign {
                Some(foreign) => CallOutcome::Refused(foreign.code.max(REFUSED_MIN)),
                None => CallOutcome::Impossible,
            },
        }
    }
}

impl From<Status> for CallFailure {
    fn from(status: Status) -> CallFailure {
        CallFailure::Rejected(Box::new(status))
    }
}

/// The webhook changes more than what it answers, and nothing is to be changed.
pub fn dry_run_unsupported(webhook: &Webhook) -> Status {
    Status::bad_request(format!("admission webhook {:?} does not support dry run", webhook.name))
}

/// The webhook sent a patch where there is no object.
pub fn not_modifiable(webhook: &Webhook) -> Status {
    Status::internal(format!(
        "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
        webhook.name
    ))
}

/// What the client is told of a denial.
///
/// - `result`: the `status` of the answer.
pub(crate) fn denied(webhook: &str, result: Option<&Map<String, Value>>) -> Status {
    let text = |name: &str| result.and_then(|of| of.get(name)?.as_str()).unwrap_or_default();
    let by = format!("admission webhook {webhook:?} denied the request");
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{by} without explanation"),
        ("", why) | (why, _) => format!("{by}: {why}"),
    };
    let code = result.and_then(|of| of.get("code")?.as_u64()).unwrap_or_default();
    let foreign = Foreign {
        code: u16::try_from(code).unwrap_or(u16::MAX),
        reason: text("reason").to_owned(),
        details: result.and_then(|of| of.get("details")?.as_object()).map(known),
    };
    Status { foreign: Some(Box::new(foreign)), ..Status::new(Reason::Unknown, message) }
}

/// Of details what has a place in them.
fn known(details: &Map<String, Value>) -> Map<String, Value> {
    const TEXTS: [&str; 4] = ["name", "group", "kind", "uid"];
    let is_kept = |name: &str, value: &Value| match name {
        "causes" => value.as_array().is_some_and(|all| !all.is_empty()),
        "retryAfterSeconds" => value.as_i64().is_some_and(|seconds| seconds != 0),
        // Few: there are four.
        name => TEXTS.contains(&name) && value.as_str().is_some_and(|text| !text.is_empty()),
    };
    let kept = details.iter().filter(|(name, value)| is_kept(name, value));
    kept.map(|(name, value)| match (name.as_str(), value) {
        ("causes", Value::Array(causes)) => (name.clone(), causes.iter().map(known_cause).collect()),
        _ => (name.clone(), value.clone()),
    })
    .collect()
}

/// Of a cause what has a place in it.
fn known_cause(cause: &Value) -> Value {
    let text = |name: &str| cause.get(name)?.as_str().filter(|text| !text.is_empty());
    let members = ["reason", "message", "field"].into_iter();
    members.filter_map(|name| Some((name.to_owned(), Value::from(text(name)?)))).collect::<Map<_, _>>().into()
}
