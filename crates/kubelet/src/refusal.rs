//! What a kubelet refuses a log with, as kube-apiserver tells it: with its code.
//!
//! In: a code and a text. Out: a status. Never: a success.
//!
//! Source: apiserver v0.36.3 `registry/generic/rest/response_checker.go`; apimachinery v0.36.3
//! `api/errors/errors.go` (`NewGenericServerResponse`).

use forebay_apimachinery::{Foreign, Reason, Status};
use http::StatusCode;
use serde_json::{Map, json};

/// - `pod`: its name.
/// - `told`: what the kubelet says.
pub fn of_log(code: StatusCode, pod: &str, told: &str) -> Status {
    match code {
        StatusCode::INTERNAL_SERVER_ERROR => return Status::internal(told),
        StatusCode::BAD_REQUEST => return Status::bad_request(told),
        _ => {}
    }
    let (reason, message) = match code.as_u16() {
        409 => (Reason::Conflict, "the server reported a conflict"),
        404 => (Reason::NotFound, "the server could not find the requested resource"),
        401 => (Reason::Unauthorized, "the server has asked for the client to provide credentials"),
        403 => (Reason::Forbidden, told),
        406 if told.is_empty() || told == "unknown" => (
            Reason::NotAcceptable,
            "the server was unable to respond with a content type that the client supports",
        ),
        406 => (Reason::NotAcceptable, told),
        415 => (Reason::UnsupportedMediaType, told),
        405 => (Reason::MethodNotAllowed, "the server does not allow this method on the requested resource"),
        422 => (Reason::Invalid, "the server rejected our request due to an error in our request"),
        503 => (Reason::ServiceUnavailable, "the server is currently unable to handle the request"),
        504 => (
            Reason::Timeout,
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        429 => (
            Reason::TooManyRequests,
            "the server has received too many requests and has asked us to try again later",
        ),
        number if number >= 500 => {
            let why = format!("an error on the server ({told:?}) has prevented the request from succeeding");
            return of_another(number, Reason::InternalError, &why, pod);
        }
        number => {
            let why = format!(
                "the server responded with the status code {number} but did not return more information"
            );
            return of_another(number, Reason::Unknown, &why, pod);
        }
    };
    Status::new(reason, with_subject(message, pod)).about("", "pods/log", pod)
}

/// One of a code that no reason stands for.
fn of_another(code: u16, reason: Reason, message: &str, pod: &str) -> Status {
    let details = [("name".to_owned(), json!(pod)), ("kind".to_owned(), json!("pods/log"))];
    let details = Some(Map::from_iter(details));
    let foreign = Foreign { code, reason: reason.as_str().to_owned(), details };
    let status = Status::new(reason, with_subject(message, pod));
    Status { foreign: Some(Box::new(foreign)), ..status }
}

/// Upstream says a verb, which there is none of here.
fn with_subject(message: &str, pod: &str) -> String {
    format!("{message} ( pods/log {pod})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_kept_and_told_in_upstreams_words() {
        let told = |code: u16| {
            let status = of_log(StatusCode::from_u16(code).expect("a code"), "p", "why");
            let code = status.foreign.as_ref().map_or(0, |foreign| foreign.code);
            (status.reason, code, status.message)
        };
        for (code, want, foreign, message) in [
            (400, Reason::BadRequest, 0, "why"),
            (500, Reason::InternalError, 0, "Internal error occurred: why"),
            (404, Reason::NotFound, 0, "the server could not find the requested resource ( pods/log p)"),
            (403, Reason::Forbidden, 0, "why ( pods/log p)"),
            (
                503,
                Reason::ServiceUnavailable,
                0,
                "the server is currently unable to handle the request ( pods/log p)",
            ),
            (
                502,
                Reason::InternalError,
                502,
                "an error on the server (\"why\") has prevented the request from succeeding ( pods/log p)",
            ),
            (
                416,
                Reason::Unknown,
                416,
                "the server responded with the status code 416 but did not return more information ( pods/log p)",
            ),
        ] {
            assert_eq!(told(code), (want, foreign, message.to_owned()), "{code}");
        }
    }
}
