//! What an answer that is no review says, in the words of client-go.
//!
//! Source: apimachinery v0.36.3 `pkg/api/errors/errors.go`, client-go v0.36.3 `rest/request.go`.

use forebay_apimachinery::json::go_quote;
use serde_json::Value;

use crate::limits::{ERROR_BYTES_MAX, STATUS_BYTES_MAX};
use crate::typed::is_status;

/// Whether what came is what was asked for.
pub fn is_success(number: u16) -> bool {
    (200..=206).contains(&number)
}

/// Why an answer with that number is none, where it does not say so itself.
///
/// - `content_type`: as it is said; text is told.
pub fn words(number: u16, body: &[u8], content_type: &str) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(ERROR_BYTES_MAX)]);
    let is_text =
        content_type.is_empty() || content_type.trim_start().to_ascii_lowercase().starts_with("text/");
    let text = if is_text { text.trim() } else { "unknown" };
    let fixed = match number {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 415 => text,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 if text == "unknown" => {
            "the server was unable to respond with a content type that the client supports"
        }
        406 => text,
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the \
             request"
        }
        500.. => {
            let quoted = go_quote(text);
            return format!("an error on the server ({quoted}) has prevented the request from succeeding");
        }
        _ => {
            return format!(
                "the server responded with the status code {number} but did not return more information"
            );
        }
    };
    fixed.to_owned()
}

/// What a Status says that came.
pub struct ToldStatus {
    pub message: String,
    pub number: u16,
}

/// What a Status says of a failure, if that is what came. It need not say its version.
pub fn said(body: &[u8]) -> Option<ToldStatus> {
    let value: Value = serde_json::from_slice(body.get(..body.len().min(STATUS_BYTES_MAX))?).ok()?;
    let version = value["apiVersion"].as_str().unwrap_or_default();
    let is_failure =
        value["kind"] == "Status" && matches!(version, "" | "v1") && value["status"] == "Failure";
    (is_failure && is_status(&value)).then(|| ToldStatus {
        message: value["message"].as_str().unwrap_or_default().to_owned(),
        number: u16::try_from(value["code"].as_i64().unwrap_or_default().max(0)).unwrap_or(u16::MAX),
    })
}
