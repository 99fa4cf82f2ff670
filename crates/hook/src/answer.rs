//! What is answered to a review, from what a case says.
//!
//! In: an answer as it was given, a review. Out: code and body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::tabs;

/// The code and the body of an answer.
pub fn written(mut answer: Value, review: &Value) -> (u64, Vec<u8>) {
    let number = answer["code"].as_u64().unwrap_or(200);
    let body = match answer["raw"].as_str() {
        Some(raw) => raw.replace("$UID", review["request"]["uid"].as_str().unwrap_or_default()).into_bytes(),
        None => response(&mut answer, review).to_string().into_bytes(),
    };
    (number, body)
}

fn response(answer: &mut Value, review: &Value) -> Value {
    if let Some(how) = answer["convert"].as_str() {
        let response = tabs::converted(review, how);
        return json!({ "apiVersion": review["apiVersion"], "kind": review["kind"], "response": response });
    }
    if answer["patch"].is_array() {
        answer["patch"] = STANDARD.encode(answer["patch"].to_string()).into();
    }
    let Some(members) = answer.as_object_mut() else { return Value::Null };
    let mut other = |name: &str, usual: &Value| members.remove(name).unwrap_or_else(|| usual.clone());
    let (version, kind) = (other("apiVersion", &review["apiVersion"]), other("kind", &review["kind"]));
    // What is said to this webhook alone.
    ["delay_ms", "length", "head"].iter().for_each(|name| drop(members.remove(*name)));
    members.entry("uid").or_insert_with(|| review["request"]["uid"].clone());
    json!({ "apiVersion": version, "kind": kind, "response": answer })
}
