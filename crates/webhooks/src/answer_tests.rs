//! Answers of webhooks, and what is made of them.
//!
//! In: answers as they come. Out: operations, refusals in upstream's words. Never: a connection.

use bytes::Bytes;
use serde_json::json;

use super::*;

fn asked(sort: WebhookSort, code: u16, body: &str) -> String {
    asked_in(ReviewVersion::V1, sort, code, body)
}

fn asked_in(version: ReviewVersion, sort: WebhookSort, code: u16, body: &str) -> String {
    let configuration = json!({ "metadata": { "name": "c" }, "webhooks": [{ "name": "w.x.io" }] });
    let webhook = Webhook::read_all(&configuration).remove(0);
    let answered = Ok(Answered { code, is_text: true, body: Bytes::copy_from_slice(body.as_bytes()) });
    let lease = Lease::of_server();
    match judge(&webhook, sort, version, "u", ("https://h/?timeout=1s", answered), &lease) {
        Ok(Judgement { decided: Decided::Allowed(operations), .. }) => Value::from(operations).to_string(),
        Ok(Judgement { decided: Decided::Unsupported(why), .. }) => why,
        Ok(Judgement { decided: Decided::Denied(status), .. }) => status.message,
        Err(failure) => failure.refusal(&webhook, || 1).message,
    }
}

fn response(members: &Value) -> String {
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": members }).to_string()
}

fn mutating(members: Value) -> String {
    asked(WebhookSort::Mutating, 200, &response(&members))
}

#[test]
fn a_denial_is_told_with_what_the_webhook_says_of_it() {
    let denied = |status: Value| mutating(json!({ "uid": "u", "allowed": false, "status": status }));
    let by = "admission webhook \"w.x.io\" denied the request";
    assert_eq!(denied(json!({ "message": "no" })), format!("{by}: no"));
    assert_eq!(denied(json!({ "reason": "Odd" })), format!("{by}: Odd"));
    assert_eq!(denied(Value::Null), format!("{by} without explanation"));
    assert_eq!(mutating(json!({ "uid": "u" })), format!("{by} without explanation"));
}

#[test]
fn an_answer_to_another_review_or_of_another_kind_is_none() {
    let invalid = |why: &str| {
        format!(
            "Internal error occurred: failed calling webhook \"w.x.io\": received invalid webhook response: {why}"
        )
    };
    assert_eq!(mutating(json!({ "uid": "v" })), invalid("expected response.uid=\"u\", got \"v\""));
    let kind = "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=";
    assert_eq!(asked(WebhookSort::Mutating, 200, r#"{"response":{"uid":"u"}}"#), invalid(kind));
    assert_eq!(asked(WebhookSort::Mutating, 200, "{}"), invalid("webhook response was absent"));
    let other = asked_in(ReviewVersion::V1beta1, WebhookSort::Mutating, 200, &response(&json!({})));
    let unknown = "converting (v1.AdmissionReview) to (v1beta1.AdmissionReview): unknown conversion";
    assert!(other.ends_with(&format!("failed to call webhook: {unknown}")), "{other}");
    let patched = json!({ "uid": "u", "allowed": true, "patch": "W10=", "patchType": "JSONPatch" });
    assert_eq!(
        asked(WebhookSort::Validating, 200, &response(&patched)),
        invalid("validating webhook may not return response.patch")
    );
}

#[test]
fn a_patch_is_read_where_it_says_what_it_is() {
    let patch = |of: Value| {
        let mut members =
            json!({ "uid": "u", "allowed": true, "patch": STANDARD.encode(r#"[{"op":"add"}]"#) });
        if !of.is_null() {
            members["patchType"] = of;
        }
        mutating(members)
    };
    assert_eq!(patch(json!("JSONPatch")), r#"[{"op":"add"}]"#);
    assert!(patch(Value::Null).ends_with("webhook returned response.patch but not response.patchType"));
    assert!(patch(json!("Odd")).ends_with("unsupported patch type \"Odd\""));
}

#[test]
fn what_is_no_review_is_told_as_client_go_does() {
    let failed = |why: &str| {
        format!("Internal error occurred: failed calling webhook \"w.x.io\": failed to call webhook: {why}")
    };
    let answered = |code, body: &str| asked(WebhookSort::Validating, code, body);
    assert_eq!(answered(404, ""), failed("the server could not find the requested resource"));
    assert_eq!(
        answered(500, "broken\n"),
        failed("an error on the server (\"broken\") has prevented the request from succeeding")
    );
    let status = r#"{"kind":"Status","apiVersion":"v1","message":"m","status":"CallFailure"}"#;
    assert_eq!(answered(400, status), failed("m"));
}
