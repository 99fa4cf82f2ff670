//! Answers of webhooks, and what is made of them.
//!
//! In: answers as they come. Out: operations, refusals in upstream's words. Never: a connection.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::json;

use super::*;

fn asked(sort: WebhookSort, code: u16, body: &str) -> String {
    asked_in(ReviewVersion::V1, sort, code, body)
}

fn asked_in(version: ReviewVersion, sort: WebhookSort, code: u16, body: &str) -> String {
    let configuration = json!({ "metadata": { "name": "c" }, "webhooks": [{ "name": "w.x.io" }] });
    let webhook = Webhook::read_all(&configuration).remove(0);
    let body = Bytes::copy_from_slice(body.as_bytes());
    let answered = Ok(Answered { code, content_type: "text/plain; charset=utf-8".into(), body });
    let lease = Lease::of_server();
    match judge(&webhook, sort, version, "u", ("https://h/?timeout=1s", answered), &lease) {
        Ok(Judgement { decided: Decided::Allowed(operations), .. }) => Value::from(operations).to_string(),
        Ok(Judgement { decided: Decided::Unsupported(failure), .. }) | Err(failure) => {
            failure.refusal(&webhook, || 1).message
        }
        Ok(Judgement { decided: Decided::Denied(status), .. }) => status.message,
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
    let status = r#"{"kind":"Status","apiVersion":"v1","message":"m","status":"Failure","code":418}"#;
    assert_eq!(answered(400, status), failed("m"));
}

#[test]
fn an_answer_of_another_type_counts_by_the_failure_policy_and_is_told_as_go_does() {
    let failed = |why: &str| {
        format!("Internal error occurred: failed calling webhook \"w.x.io\": failed to call webhook: {why}")
    };
    let answered = |body: &str| asked(WebhookSort::Mutating, 200, body);
    let no_kind = |why: &str| failed(&format!("couldn't get version/kind; json parse error: {why}"));
    let meta = "into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
    assert_eq!(
        answered(""),
        failed("0-length response with status code: 200 and content type: text/plain; charset=utf-8")
    );
    assert_eq!(answered("<html>"), no_kind(&format!("json: cannot unmarshal string {meta}")));
    assert_eq!(answered("[]"), no_kind(&format!("json: cannot unmarshal array {meta}")));
    assert_eq!(answered("{\"response\":"), no_kind("unexpected end of JSON input"));
    assert_eq!(
        answered("{\"kind\":5}"),
        no_kind("json: cannot unmarshal number into Go struct field .kind of type string")
    );
    assert_eq!(
        mutating(json!({ "uid": "u", "allowed": "true" })),
        failed(
            "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool"
        )
    );
    assert_eq!(
        mutating(json!({ "uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": "!" })),
        failed("illegal base64 data at input byte 0")
    );
    let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure"}"#;
    assert_eq!(
        answered(status),
        failed("converting (v1.Status) to (v1.AdmissionReview): unknown conversion")
    );
}

#[test]
fn operations_that_are_none_make_a_patch_undecodable() {
    let patch = |text: &str| {
        mutating(
            json!({ "uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(text) }),
        )
    };
    let undecodable = |why: &str| {
        format!(
            "Internal error occurred: failed calling webhook \"w.x.io\": received undecodable patch in webhook response: {why}"
        )
    };
    assert_eq!(
        patch("[5]"),
        undecodable("json: cannot unmarshal number into Go value of type jsonpatch.Operation")
    );
    assert_eq!(
        patch("\"x\""),
        undecodable("json: cannot unmarshal string into Go value of type jsonpatch.Patch")
    );
    assert_eq!(patch("[{"), undecodable("unexpected end of JSON input"));
    assert_eq!(patch("null"), "[]");
}

#[test]
fn a_status_is_told_for_what_it_is_and_other_errors_by_their_number() {
    let number = |body: &str| {
        let configuration = json!({ "metadata": { "name": "c" }, "webhooks": [{ "name": "w.x.io" }] });
        let webhook = Webhook::read_all(&configuration).remove(0);
        let body = Bytes::copy_from_slice(body.as_bytes());
        let answered = Ok(Answered { code: 500, content_type: "application/json".into(), body });
        let asked = (WebhookSort::Validating, ReviewVersion::V1);
        let judged = judge(&webhook, asked.0, asked.1, "u", ("https://h/", answered), &Lease::of_server());
        match judged.expect_err("no answer") {
            CallFailure::Calling { why, code } => format!("{code} {why}"),
            other => panic!("{other:?}"),
        }
    };
    let generic = "500 failed to call webhook: an error on the server (\"unknown\") has prevented the request from succeeding";
    let said = "418 failed to call webhook: m";
    for (body, told) in [
        (r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"m","code":418}"#, said),
        (r#"{"kind":"Status","status":"Failure","message":"m","code":418}"#, said),
        (r#"{"message":"m","code":418}"#, generic),
        (r#"{"kind":"Status","apiVersion":"v1","status":"Odd","message":"m"}"#, generic),
        (r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"m","reason":5}"#, generic),
    ] {
        assert_eq!(number(body), told, "{body}");
    }
}
