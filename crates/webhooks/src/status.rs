//! What an answer that is no review says, in the words of client-go.
//!
//! Source: apimachinery v0.36.3 `pkg/api/errors/errors.go`, client-go v0.36.3 `rest/request.go`.

use forebay_apimachinery::json::go_quote;
use serde_json::Value;

use crate::limits::ERROR_BYTES_MAX;

/// Whether what came is what was asked for.
pub fn is_success(number: u16) -> bool {
    (200..=206).contains(&number)
}

/// Why an answer with that number is none.
///
/// - `is_text`: whether it is said to be text.
pub fn words(number: u16, body: &[u8], is_text: bool) -> String {
    if let Some(said) = said(body) {
        return said;
    }
    let text = String::from_utf8_lossy(&body[..body.len().min(ERROR_BYTES_MAX)]);
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

/// The message of a Status, if that is what came.
fn said(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body.get(..body.len().min(64 << 10))?).ok()?;
    let is_status = value["kind"] == "Status" && value["apiVersion"] == "v1" && value["status"] != "Success";
    is_status.then(|| value["message"].as_str().unwrap_or_default().to_owned())
}
