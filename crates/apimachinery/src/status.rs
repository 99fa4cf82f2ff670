//! `metav1.Status` as data. The HTTP code of a reason is chosen in `endpoints/status.rs` and nowhere else.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::lease::Exhausted;

/// Causes that a status tells: about 300 kB of them. A body of 3 MiB may have as many faults as it has
/// members, and an answer that lists them all would be thirty times as long; who has mended so many is told
/// of the others then.
pub const CAUSES_MAX: usize = 1_000;

/// Bytes of the texts of an object's faults, behind which no other is made: each may say a path, or show a
/// value, as long as the object, and there may be as many as it has members.
pub const FAULT_BYTES_MAX: usize = 1 << 20;

/// What is told of an object's faults so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultBytes(usize);

impl FaultBytes {
    /// Nothing more is told.
    pub fn is_full(self) -> bool {
        self.0 >= FAULT_BYTES_MAX
    }

    pub fn add(&mut self, bytes: usize) {
        self.0 += bytes;
    }

    /// Takes back what is not told after all.
    pub fn take_back(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes);
    }
}

/// Why a request failed, in the words that clients branch on (`metav1.StatusReason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No reason is sent: the empty string.
    Unknown,
    Unauthorized,
    Forbidden,
    NotFound,
    AlreadyExists,
    Conflict,
    Gone,
    Expired,
    Invalid,
    /// Invalid by a mutating policy, which is not Unprocessable Entity but Forbidden.
    InvalidByPolicy,
    ServerTimeout,
    StorageReadError,
    Timeout,
    TooManyRequests,
    BadRequest,
    MethodNotAllowed,
    NotAcceptable,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    InternalError,
    ServiceUnavailable,
}

/// Why one field, or one aspect, is at fault (`metav1.CauseType`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CauseReason {
    FieldValueNotFound,
    FieldValueRequired,
    FieldValueDuplicate,
    FieldValueInvalid,
    FieldValueNotSupported,
    FieldValueForbidden,
    FieldValueTooLong,
    FieldValueTooMany,
    FieldValueTypeInvalid,
    UnexpectedServerResponse,
    FieldManagerConflict,
    ResourceVersionTooLarge,
    NamespaceTerminating,
    DisruptionBudget,
    NodeCapacity,
    UnsupportedPlatform,
    InternalError,
}

/// One cause of a [`Status`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub reason: CauseReason,
    pub message: String,
    /// The field's path, `spec.replicas`; empty when it is not about one field.
    pub field: String,
}

/// A failure as clients see it. Without its HTTP code, which belongs to the edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub reason: Reason,
    pub message: String,
    /// Name, group, kind (a resource or a kind, as Kubernetes has it in each case) and uid of what it is
    /// about.
    pub name: String,
    pub group: String,
    pub kind: String,
    pub uid: String,
    pub causes: Vec<Cause>,
    pub retry_after_seconds: u32,
    /// A token that goes on from here, on an expired continue token.
    pub continue_token: Box<str>,
    /// What the client is warned of beside. No part of the body.
    pub warnings: Vec<String>,
    /// What somebody else said in place of reason, code and details, and is passed on as it was said.
    pub foreign: Option<Box<Foreign>>,
}

/// What a webhook says of its refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// A number of its own choice.
    pub code: u16,
    /// A word of its own choice; empty for none.
    pub reason: String,
    pub details: Option<Map<String, Value>>,
}

impl From<Exhausted> for Status {
    fn from(why: Exhausted) -> Status {
        match why {
            Exhausted::TooLarge => Status::new(Reason::RequestEntityTooLarge, why.to_string()),
            Exhausted::NoRoom => Status::new(Reason::TooManyRequests, why.to_string()).retry_after(1),
        }
    }
}

impl Reason {
    /// As it stands in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Unknown => "",
            Reason::Unauthorized => "Unauthorized",
            Reason::Forbidden => "Forbidden",
            Reason::NotFound => "NotFound",
            Reason::AlreadyExists => "AlreadyExists",
            Reason::Conflict => "Conflict",
            Reason::Gone => "Gone",
            Reason::Expired => "Expired",
            Reason::Invalid | Reason::InvalidByPolicy => "Invalid",
            Reason::ServerTimeout => "ServerTimeout",
            Reason::StorageReadError => "StorageReadError",
            Reason::Timeout => "Timeout",
            Reason::TooManyRequests => "TooManyRequests",
            Reason::BadRequest => "BadRequest",
            Reason::MethodNotAllowed => "MethodNotAllowed",
            Reason::NotAcceptable => "NotAcceptable",
            Reason::RequestEntityTooLarge => "RequestEntityTooLarge",
            Reason::UnsupportedMediaType => "UnsupportedMediaType",
            Reason::InternalError => "InternalError",
            Reason::ServiceUnavailable => "ServiceUnavailable",
        }
    }
}

impl CauseReason {
    /// As it stands in JSON.
    pub const fn as_str(&self) -> &'static str {
        match self {
            CauseReason::FieldValueNotFound => "FieldValueNotFound",
            CauseReason::FieldValueRequired => "FieldValueRequired",
            CauseReason::FieldValueDuplicate => "FieldValueDuplicate",
            CauseReason::FieldValueInvalid => "FieldValueInvalid",
            CauseReason::FieldValueNotSupported => "FieldValueNotSupported",
            CauseReason::FieldValueForbidden => "FieldValueForbidden",
            CauseReason::FieldValueTooLong => "FieldValueTooLong",
            CauseReason::FieldValueTooMany => "FieldValueTooMany",
            CauseReason::FieldValueTypeInvalid => "FieldValueTypeInvalid",
            CauseReason::UnexpectedServerResponse => "UnexpectedServerResponse",
            CauseReason::FieldManagerConflict => "FieldManagerConflict",
            CauseReason::ResourceVersionTooLarge => "ResourceVersionTooLarge",
            CauseReason::NamespaceTerminating => "NamespaceTerminating",
            CauseReason::DisruptionBudget => "DisruptionBudget",
            CauseReason::NodeCapacity => "NodeCapacity",
            CauseReason::UnsupportedPlatform => "UnsupportedPlatform",
            CauseReason::InternalError => "InternalError",
        }
    }
}

impl Status {
    /// A failure with nothing but a reason and a message.
    pub fn new(reason: Reason, message: impl Into<String>) -> Status {
        Status {
            reason,
            message: message.into(),
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: 0,
            continue_token: Box::default(),
            warnings: Vec::new(),
            foreign: None,
        }
    }

    /// Warns the client beside.
    pub fn warning(mut self, warnings: impl IntoIterator<Item = String>) -> Status {
        self.warnings.extend(warnings);
        self
    }

    /// Says what it is about.
    pub fn about(mut self, group: &str, kind: &str, name: &str) -> Status {
        (self.group, self.kind, self.name) = (group.into(), kind.into(), name.into());
        self
    }

    /// Adds causes.
    pub fn because(mut self, causes: impl IntoIterator<Item = Cause>) -> Status {
        self.causes.extend(causes);
        self
    }

    /// Tells the client when to come again.
    pub fn retry_after(mut self, seconds: u32) -> Status {
        self.retry_after_seconds = seconds;
        self
    }

    /// `pods "web" not found`; `resource` is `deployments.apps` in the message.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Status {
        Status::new(Reason::NotFound, format!("{} {name:?} not found", qualified(group, resource)))
            .about(group, resource, name)
    }

    /// `pods "web" already exists`.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Status {
        Status::new(Reason::AlreadyExists, format!("{} {name:?} already exists", qualified(group, resource)))
            .about(group, resource, name)
    }

    /// `delete is not supported on resources of kind "widgets.example.com"`.
    pub fn method_not_supported(group: &str, resource: &str, verb: &str) -> Status {
        let message =
            format!("{verb} is not supported on resources of kind {:?}", qualified(group, resource));
        Status::new(Reason::MethodNotAllowed, message).about(group, resource, "")
    }

    /// `Operation cannot be fulfilled on pods "web": ...`.
    pub fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Status {
        let message =
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", qualified(group, resource));
        Status::new(Reason::Conflict, message).about(group, resource, name)
    }

    /// `Pod "web" is invalid: spec.x: Invalid value: ...`; one cause is written plainly, several in brackets.
    pub fn invalid(group: &str, kind: &str, name: &str, mut causes: Vec<Cause>) -> Status {
        causes.truncate(CAUSES_MAX);
        let (mut listed, mut known) = (Vec::new(), HashSet::new());
        for cause in &causes {
            let text = if cause.field.is_empty() {
                cause.message.clone()
            } else {
                format!("{}: {}", cause.field, cause.message)
            };
            // There may be as many as a body has objects.
            if known.insert(text.clone()) {
                listed.push(text);
            }
        }
        let listed = match listed.as_slice() {
            [] => "<nil>".to_string(),
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        Status::new(Reason::Invalid, format!("{} {name:?} is invalid: {listed}", qualified(group, kind)))
            .about(group, kind, name)
            .because(causes)
    }

    /// A request that makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Status {
        Status::new(Reason::BadRequest, message)
    }

    /// Our own fault; `message` is what went wrong.
    pub fn internal(message: impl std::fmt::Display) -> Status {
        Status::new(Reason::InternalError, format!("Internal error occurred: {message}")).because([Cause {
            reason: CauseReason::InternalError,
            message: message.to_string(),
            field: String::new(),
        }])
    }

    /// The `Status` object. `code` is the HTTP code that the edge chose for it.
    pub fn to_value(&self, code: u16) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": code,
        });
        if !self.continue_token.is_empty() {
            status["metadata"] = json!({ "continue": self.continue_token });
        }
        if let Some(foreign) = &self.foreign {
            status["code"] = json!(foreign.code);
            if !foreign.reason.is_empty() {
                status["reason"] = json!(foreign.reason);
            }
            if let Some(details) = &foreign.details {
                status["details"] = Value::Object(details.clone());
            }
            return status;
        }
        if self.reason != Reason::Unknown {
            status["reason"] = json!(self.reason.as_str());
        }
        let details = self.details();
        // Upstream's NewInvalid and its answer to a patch that does not fit have details even when nothing is
        // in them.
        if !details.is_empty() || self.reason == Reason::Invalid {
            status["details"] = Value::Object(details);
        }
        status
    }

    /// What it is about, as far as it is said: members of its details, in the order in which they are sent.
    pub fn subject(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let texts = [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)];
        texts.into_iter().filter(|(_, text)| !text.is_empty()).map(|(member, text)| (member, text.as_str()))
    }

    /// Its details, as they are sent.
    pub fn details(&self) -> Map<String, Value> {
        let mut details = Map::new();
        for (member, text) in self.subject() {
            details.insert(member.into(), json!(text));
        }
        if !self.causes.is_empty() {
            details.insert("causes".into(), self.causes.iter().map(Cause::to_value).collect());
        }
        if self.retry_after_seconds > 0 {
            details.insert("retryAfterSeconds".into(), json!(self.retry_after_seconds));
        }
        details
    }
}

impl Cause {
    pub fn new(reason: CauseReason, field: impl Into<String>, message: impl Into<String>) -> Cause {
        Cause { reason, message: message.into(), field: field.into() }
    }

    /// The reason as clients see it. Upstream's NewInternalError gives its cause none; an internal error of a
    /// field has one.
    fn shown_reason(&self) -> Option<&str> {
        let hidden = self.reason == CauseReason::InternalError && self.field.is_empty();
        (!hidden).then(|| self.reason.as_str())
    }

    /// Its members, in the order in which they are sent.
    pub fn members(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let reason = self.shown_reason().unwrap_or_default();
        let texts = [("reason", reason), ("message", &*self.message), ("field", &*self.field)];
        texts.into_iter().filter(|(_, text)| !text.is_empty())
    }

    fn to_value(&self) -> Value {
        Value::Object(self.members().map(|(member, text)| (member.into(), text.into())).collect())
    }
}

/// `deployments.apps`, or `pods` in the core group.
fn qualified(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_string() } else { format!("{resource}.{group}") }
}
