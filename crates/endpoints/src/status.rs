//! Failures on their way out: which HTTP code a reason has, and how a `Status` is written.
//!
//! In: a `Status` from the rooms below, or a failure of the edge itself. Out: a code and the JSON of the
//! object, in the order that kube-apiserver writes it. The only place that knows the code of a reason.

use bytes::Bytes;
use forebay_api::{Outcome, SuccessOf};
use forebay_apimachinery::accept::Media;
use forebay_apimachinery::json::{go_quote, write_string};
use forebay_apimachinery::{GroupResource, Reason, Status};
use forebay_auth::{Forbidden, ForbiddenAbout, Refused};
use forebay_catalog::Served;
use forebay_usage::Usage;
use http::StatusCode;
use serde_json::Value;

/// An answer that is what was asked for.
pub const OK: StatusCode = StatusCode::OK;
/// The client has the document.
pub const UNCHANGED: StatusCode = StatusCode::NOT_MODIFIED;
/// The document has another path.
pub const MOVED: StatusCode = StatusCode::MOVED_PERMANENTLY;
/// There is nothing to answer.
pub const NOTHING: StatusCode = StatusCode::NO_CONTENT;
/// The connection speaks another protocol from here on.
pub const UPGRADED: StatusCode = StatusCode::SWITCHING_PROTOCOLS;
/// What a check has found, and a request whose path nobody could take apart.
pub const BROKEN: StatusCode = StatusCode::INTERNAL_SERVER_ERROR;
/// Another server wants its client to ask elsewhere.
pub const MISLED: StatusCode = StatusCode::BAD_GATEWAY;
/// Who would answer is not there.
pub const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
/// A check that there is not, and what is said of it.
pub const NO_SUCH_CHECK: (StatusCode, &str) = (StatusCode::NOT_FOUND, "404 page not found\n");

/// The code of a write that was done.
pub fn of_outcome(outcome: &Outcome) -> StatusCode {
    match outcome {
        Outcome::Object(_) => OK,
        Outcome::Created(_) => StatusCode::CREATED,
        Outcome::Success(success) => of_success(success.of),
        Outcome::Accepted(_) => StatusCode::ACCEPTED,
    }
}

fn of_success(of: SuccessOf) -> StatusCode {
    match of {
        SuccessOf::Deletion | SuccessOf::CorruptDeletion => OK,
        SuccessOf::Subresource => StatusCode::CREATED,
    }
}

/// What is shown of a write that was done. The `Status` of a deletion goes without its code, as
/// kube-apiserver sends it.
pub fn shown_of(outcome: Outcome) -> Bytes {
    match outcome {
        Outcome::Success(success) if success.of != SuccessOf::Deletion => {
            let code = of_success(success.of);
            success.json(Some(code.as_u16()))
        }
        outcome => outcome.json(),
    }
}

/// Whether the server ended a request by itself that it could have answered at another time: there was no
/// turn for it, or no time left.
pub fn is_termination(code: u16) -> bool {
    matches!(StatusCode::from_u16(code), Ok(StatusCode::TOO_MANY_REQUESTS | StatusCode::GATEWAY_TIMEOUT))
}

/// Whether it was refused for who asked, or for how many did, whatever it was about.
pub fn is_not_let_in(code: u16) -> bool {
    let codes = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS];
    codes.iter().any(|known| known.as_u16() == code)
}

/// Whether the server could not answer, and not for what it was asked.
pub fn is_own_fault(code: u16) -> bool {
    StatusCode::from_u16(code).is_ok_and(|code| code.is_server_error())
}

/// Tells of an answer that sends its client away, or has it list.
pub fn put_down(code: StatusCode, usage: &Usage) {
    match code {
        StatusCode::TOO_MANY_REQUESTS => usage.refused(),
        StatusCode::GONE => usage.expired(),
        _ => {}
    }
}

/// A request that is answered with a `Status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub status: Status,
    /// `details` is sent even when there is nothing in it, as kube-apiserver does for what never reached a
    /// resource.
    details: bool,
    /// See [`Failure::for_want_of_memory`].
    is_for_want_of_memory: bool,
    /// See [`Failure::panic`].
    is_panic: bool,
}

/// Writes `status` as JSON with its code, as the ERROR event of a watch has it.
pub fn write(status: &Status, out: &mut Vec<u8>) {
    Failure::from(status.clone()).write(out);
}

/// The HTTP code of a reason.
pub fn code(reason: Reason) -> StatusCode {
    match reason {
        Reason::BadRequest => StatusCode::BAD_REQUEST,
        Reason::Unauthorized => StatusCode::UNAUTHORIZED,
        Reason::Forbidden | Reason::InvalidByPolicy => StatusCode::FORBIDDEN,
        Reason::NotFound => StatusCode::NOT_FOUND,
        Reason::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Reason::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
        Reason::AlreadyExists | Reason::Conflict => StatusCode::CONFLICT,
        Reason::Gone | Reason::Expired => StatusCode::GONE,
        Reason::RequestEntityTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Reason::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Reason::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        Reason::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
        Reason::Unknown | Reason::InternalError | Reason::ServerTimeout | Reason::StorageReadError => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
        Reason::ServiceUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        Reason::Timeout => StatusCode::GATEWAY_TIMEOUT,
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        // Upstream has details in every refusal of this reason, those in its generic words, too.
        let details = status.reason == Reason::Invalid;
        Failure { status, details, is_for_want_of_memory: false, is_panic: false }
    }
}

impl Failure {
    /// There was no memory for it; another time there may be.
    pub fn for_want_of_memory(status: Status) -> Failure {
        Failure { is_for_want_of_memory: true, ..status.into() }
    }

    pub fn is_for_want_of_memory(&self) -> bool {
        self.is_for_want_of_memory
    }

    /// The server has failed at it.
    pub fn panic(status: Status) -> Failure {
        Failure { is_panic: true, ..status.into() }
    }

    pub fn is_panic(&self) -> bool {
        self.is_panic
    }

    /// Sends `details`, be they empty.
    pub fn with_details(mut self) -> Failure {
        self.details = true;
        self
    }

    pub fn unauthorized() -> Failure {
        Status::new(Reason::Unauthorized, "Unauthorized").into()
    }

    /// A path that no resource has.
    pub fn no_such_resource() -> Failure {
        let message = "the server could not find the requested resource";
        Failure::from(Status::new(Reason::NotFound, message)).with_details()
    }

    /// A subresource that the resource does not have. Of a custom resource it is told as of an object that is
    /// not there, without a look for it.
    ///
    /// Source: apiextensions-apiserver v0.36.3 `customresource_handler.go`.
    pub fn no_such_part(served: &Served, name: &str) -> Failure {
        match served.is_custom() {
            true => Status::not_found(served.group(), served.resource(), name).into(),
            false => Failure::no_such_resource(),
        }
    }

    /// A method that the path does not have.
    pub fn no_such_method() -> Failure {
        let message = "the server does not allow this method on the requested resource";
        Failure::from(Status::new(Reason::MethodNotAllowed, message)).with_details()
    }

    /// None of the media types that a path has is taken by the client.
    pub fn not_acceptable(types: &[&str]) -> Failure {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {}", types.join(", "));
        Failure::from(Status::new(Reason::NotAcceptable, message)).with_details()
    }

    pub fn entity_too_large(limit: usize) -> Failure {
        let message = format!("Request entity too large: limit is {limit}");
        Status::new(Reason::RequestEntityTooLarge, message).into()
    }

    pub fn request_timeout() -> Failure {
        let message = "Timeout: request did not complete within the allotted timeout";
        Failure::from(Status::new(Reason::Timeout, message)).with_details()
    }

    pub fn shutting_down() -> Failure {
        Status::new(Reason::ServiceUnavailable, "apiserver is shutting down").retry_after(1).into()
    }

    pub fn code(&self) -> StatusCode {
        match &self.status.foreign {
            // A refusal is one, whatever number comes with it; of HTTP's are those of three digits.
            Some(foreign) => StatusCode::from_u16(foreign.code.max(StatusCode::BAD_REQUEST.as_u16()))
                .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            None => code(self.status.reason),
        }
    }

    /// The `Status` object, without a newline behind it.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256 + self.status.message.len());
        self.write(&mut out);
        out
    }

    /// Appends the `Status` object.
    pub fn write(&self, out: &mut Vec<u8>) {
        let status = &self.status;
        out.extend_from_slice(b"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{");
        if !status.continue_token.is_empty() {
            out.extend_from_slice(b"\"continue\":");
            write_string(&status.continue_token, out);
        }
        out.extend_from_slice(b"},\"status\":\"Failure\",\"message\":");
        write_string(&status.message, out);
        let reason = status.foreign.as_ref().map_or(status.reason.as_str(), |foreign| &foreign.reason);
        if !reason.is_empty() {
            out.extend_from_slice(b",\"reason\":");
            write_string(reason, out);
        }
        match &status.foreign {
            Some(foreign) => {
                if let Some(details) = &foreign.details {
                    out.extend_from_slice(b",\"details\":");
                    out.extend_from_slice(Value::Object(details.clone()).to_string().as_bytes());
                }
            }
            None => self.write_details(out),
        }
        out.extend_from_slice(format!(",\"code\":{}}}", self.code().as_u16()).as_bytes());
    }

    fn write_details(&self, out: &mut Vec<u8>) {
        let status = &self.status;
        let start = out.len();
        out.extend_from_slice(b",\"details\":{");
        let empty = out.len();
        write_texts(status.subject(), out);
        if !status.causes.is_empty() {
            write_member("causes", out);
            out.push(b'[');
            for (place, cause) in status.causes.iter().enumerate() {
                out.extend_from_slice(if place == 0 { b"{" } else { b",{" });
                write_texts(cause.members(), out);
                out.push(b'}');
            }
            out.push(b']');
        }
        if status.retry_after_seconds > 0 {
            write_member("retryAfterSeconds", out);
            out.extend_from_slice(status.retry_after_seconds.to_string().as_bytes());
        }
        if out.len() == empty && !self.details {
            out.truncate(start);
        } else {
            out.push(b'}');
        }
    }
}

/// A refusal in kube-apiserver's words:
/// `pods "x" is forbidden: User "u" cannot get resource "pods" in API group "" in the namespace "n"`.
impl From<Refused> for Failure {
    fn from(refused: Refused) -> Failure {
        let refused = match refused {
            Refused::Forbidden(refused) => refused,
            Refused::Unauthenticated => return Failure::unauthorized(),
            Refused::Undecided(why) => return Status::internal(why).into(),
        };
        let Forbidden { user, verb, about, why } = *refused;
        let user = go_quote(&user);
        let because = if why.is_empty() { String::new() } else { format!(": {why}") };
        match about {
            ForbiddenAbout::Path(path) => {
                let path = go_quote(&path);
                let message = format!("forbidden: User {user} cannot {verb} path {path}{because}");
                Failure::from(Status::new(Reason::Forbidden, message)).with_details()
            }
            ForbiddenAbout::Resource { group, namespace, resource, subresource, name } => {
                let whole = match subresource.as_str() {
                    "" => resource.clone(),
                    subresource => format!("{resource}/{subresource}"),
                };
                let place = match namespace.as_str() {
                    "" => "at the cluster scope".to_string(),
                    namespace => format!("in the namespace {}", go_quote(namespace)),
                };
                let why = format!(
                    "User {user} cannot {verb} resource {} in API group {} {place}{because}",
                    go_quote(&whole),
                    go_quote(&group),
                );
                forbidden(&group, &resource, &name, &why)
            }
        }
    }
}

/// `pods "x" is forbidden: <why>`.
pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Failure {
    let qualified = GroupResource { group: group.into(), resource: resource.into() };
    let message = match name {
        "" => format!("{qualified} is forbidden: {why}"),
        name => format!("{qualified} {} is forbidden: {why}", go_quote(name)),
    };
    Failure::from(Status::new(Reason::Forbidden, message).about(group, resource, name)).with_details()
}

/// Members that are texts.
fn write_texts<'t>(texts: impl Iterator<Item = (&'static str, &'t str)>, out: &mut Vec<u8>) {
    for (member, text) in texts {
        write_member(member, out);
        write_string(text, out);
    }
}

/// `"name":`, after a comma unless it is the first of its object.
fn write_member(name: &str, out: &mut Vec<u8>) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    write_string(name, out);
    out.push(b':');
}

/// What answers are offered in, in order of preference.
pub const OFFERED: [Media; 3] = [Media::Json, Media::Yaml, Media::Protobuf];

#[cfg(test)]
mod tests {
    use forebay_api::Success;
    use forebay_apimachinery::{Cause, CauseReason};

    use super::*;

    #[test]
    fn a_success_without_an_object_has_its_code_where_kube_apiserver_shows_it() {
        for (of, code, shown) in [
            (SuccessOf::Deletion, 200, None),
            (SuccessOf::CorruptDeletion, 200, Some(200)),
            (SuccessOf::Subresource, 201, Some(201)),
        ] {
            let mut details = serde_json::Map::new();
            details.insert("name".into(), "x".into());
            let outcome = Outcome::Success(Success { of, details });
            assert_eq!(of_outcome(&outcome).as_u16(), code);
            let json: serde_json::Value = serde_json::from_slice(&shown_of(outcome)).expect("JSON");
            assert_eq!(json["code"].as_u64(), shown, "{of:?}");
            assert_eq!((&json["status"], &json["details"]["name"]), (&"Success".into(), &"x".into()));
        }
    }

    #[test]
    fn a_status_is_written_as_kube_apiserver_writes_it() {
        let too_large = Status::new(Reason::Timeout, "Timeout: Too large resource version: 9, current: 1")
            .because([Cause::new(CauseReason::ResourceVersionTooLarge, "", "Too large resource version")])
            .retry_after(1);
        for (failure, want) in [
            (
                Failure::unauthorized(),
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#,
            ),
            (
                Failure::no_such_resource(),
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}"#,
            ),
            (
                Status::not_found("apps", "deployments", "d").into(),
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"deployments.apps \"d\" not found","reason":"NotFound","details":{"name":"d","group":"apps","kind":"deployments"},"code":404}"#,
            ),
            (
                too_large.into(),
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: Too large resource version: 9, current: 1","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}"#,
            ),
            (
                Status::internal("m").into(),
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Internal error occurred: m","reason":"InternalError","details":{"causes":[{"message":"m"}]},"code":500}"#,
            ),
            (
                Failure::from(Status { continue_token: "t".into(), ..Status::new(Reason::Unknown, "m") }),
                r#"{"kind":"Status","apiVersion":"v1","metadata":{"continue":"t"},"status":"Failure","message":"m","code":500}"#,
            ),
        ] {
            assert_eq!(String::from_utf8_lossy(&failure.to_json()), want);
        }
    }
}
