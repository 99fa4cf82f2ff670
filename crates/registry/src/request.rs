//! What the edge asks of the verbs, and what it is answered.

use std::sync::Arc;

use bytes::Bytes;
use forebay_api::Permission;
pub use forebay_apimachinery::Caller;
use forebay_apimachinery::{Lease, Status};
use forebay_catalog::Served;
use serde_json::Value;

/// What is asked for: a resource in a version, and the part of it that the path names.
#[derive(Clone)]
pub struct Target {
    pub served: Arc<Served>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub subresource: Option<String>,
    /// Who asks; none when the server itself does.
    pub caller: Option<Arc<Caller>>,
    /// What the request may hold: trees of what was sent, and what is made of them.
    pub lease: Lease,
}

/// Says whether whoever asks for an update may create as well, which is asked when it would: an update is authorized by itself, and
/// what is not there yet takes both rights. None where the server itself asks.
pub type MayCreate = Arc<dyn Permission>;

/// A write's body, in a form that does not say what it came as.
#[derive(Clone, Debug)]
pub enum Body {
    /// JSON text: what members come twice can still be told.
    Json(Bytes),
    /// What came in a form that has no members twice.
    Value(Value),
}

/// How a patch is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    Json,
    Merge,
    StrategicMerge,
}

/// What a single-object verb answers.
#[derive(Clone, Debug)]
pub struct Answer {
    pub outcome: Outcome,
    /// For `Warning` headers, in order, without the code and quotes.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug)]
pub enum Outcome {
    /// The object as it is now, whole.
    Object(Bytes),
    /// It did not exist before.
    Created(Bytes),
    /// Deletion has begun; the object as it is now.
    Accepted(Bytes),
    /// It is gone: a `Status` of success.
    Success(Bytes),
}

impl Target {
    /// The namespace of the path; empty at cluster scope.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("")
    }

    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("")
    }
}

impl Answer {
    pub fn plain(outcome: Outcome) -> Answer {
        Answer { outcome, warnings: Vec::new() }
    }
}

/// 404 for what `target` names.
pub(crate) fn not_found(target: &Target) -> Status {
    Status::not_found(target.served.group(), target.served.resource(), target.name())
}

/// 400 for a body that is no object at all.
pub fn unrecognized(kind: &str, error: &dyn std::fmt::Display, body: &[u8]) -> Status {
    let summary = summary(body);
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {error} ({summary})"
    ))
}

/// The beginning of a body, for messages: in hexadecimal unless it looks like JSON.
fn summary(body: &[u8]) -> String {
    const BYTES_MAX: usize = 30;
    if body.is_empty() {
        return "<empty>".into();
    }
    let shown = &body[..body.len().min(BYTES_MAX)];
    let text = match shown {
        [b'{', ..] => String::from_utf8_lossy(shown).into_owned(),
        _ => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if body.len() > BYTES_MAX { format!("{text} ...") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_summed_up() {
        for (body, want) in [
            ("", "<empty>"),
            ("a: [\n", "613a205b0a"),
            ("{\"a\":", "{\"a\":"),
            ("{0123456789012345678901234567890", "{01234567890123456789012345678 ..."),
        ] {
            assert_eq!(summary(body.as_bytes()), want);
        }
    }
}
