//! Answers of webhooks that are none, or odd, each to a webhook of its own.
//!
//! In: nothing. Out: cases, and what is answered in them by name. Never: a draw; two webhooks in a case.

use http::Method;
use serde_json::{Value, json};

use super::draw::{HookCase, HookStep};

/// What the names of their webhooks end with.
pub const ODD: &str = ".odd.example.com";

/// A review that says so of itself, and answers what it was asked.
fn review(response: &str) -> Value {
    let head = r#""apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview""#;
    json!({"raw": format!("{{{head},\"response\":{{\"uid\":\"$UID\",{response}}}}}")})
}

/// Answers by name.
pub fn odd_answers() -> Vec<(&'static str, Value)> {
    let raw = |text: &str| json!({"raw": text});
    let of = |number: u64, text: &str| json!({"code": number, "raw": text});
    let denied = |status: Value| json!({"allowed": false, "status": status});
    let patch = |operations: Value| json!({"allowed": true, "patchType": "JSONPatch", "patch": operations});
    let set = |path: &str, value: Value| patch(json!([{"op": "add", "path": path, "value": value}]));
    let sent_on = |number: u64, to: &str| json!({"code": number, "location": to, "raw": "elsewhere"});
    let again = |number: u64, after: &str| json!({"code": number, "raw": "later", "head": [format!("Retry-After: {after}\r\n")], "then": "allow"});
    let sort = |number: u64, sort: &str, text: &str| json!({"code": number, "raw": text, "head": [format!("Content-Type: {sort}\r\n")]});
    let status = |more: &str| of(500, &format!("{{{more}\"message\":\"said so\",\"code\":418}}"));
    vec![
        ("o-empty", raw("")),
        ("o-text", raw("nope")),
        ("o-half", raw("{\"response\":")),
        ("o-null", raw("null")),
        ("o-list", raw("[]")),
        ("o-number", raw("5")),
        ("o-html", sort(200, "text/html", "<html>")),
        ("o-plain-sort", sort(500, "application/json", "broken")),
        ("o-text-sort", sort(500, "text/plain", " broken ")),
        ("o-allowed-text", review(r#""allowed":"true""#)),
        ("o-patch-list", review(r#""allowed":true,"patchType":"JSONPatch","patch":[{"op":"add"}]"#)),
        ("o-patch-object", review(r#""allowed":true,"patch":{"op":"add"}"#)),
        ("o-patch-bytes", review(r#""allowed":true,"patchType":"JSONPatch","patch":[91,93]"#)),
        ("o-base64", review(r#""allowed":true,"patchType":"JSONPatch","patch":"!!!""#)),
        ("o-base64-lines", review(r#""allowed":true,"patchType":"JSONPatch","patch":"W1\n0=""#)),
        ("o-type-number", review(r#""allowed":true,"patchType":5,"patch":"W10=""#)),
        ("o-type-empty", review(r#""allowed":true,"patchType":"","patch":"W10=""#)),
        ("o-warnings-text", review(r#""allowed":true,"warnings":"x""#)),
        ("o-warnings-numbers", review(r#""allowed":true,"warnings":[5]"#)),
        ("o-warnings-null", review(r#""allowed":true,"warnings":["a",null,"b"]"#)),
        ("o-annotations-number", review(r#""allowed":true,"auditAnnotations":{"a":5}"#)),
        ("o-status-text", review(r#""allowed":false,"status":"no""#)),
        ("o-code-text", review(r#""allowed":false,"status":{"code":"403"}"#)),
        ("o-code-part", review(r#""allowed":false,"status":{"code":403.5}"#)),
        ("o-code-huge", review(r#""allowed":false,"status":{"code":4030000000}"#)),
        ("o-causes-text", review(r#""allowed":false,"status":{"details":{"causes":"x"}}"#)),
        ("o-retry-text", review(r#""allowed":false,"status":{"details":{"retryAfterSeconds":"3"}}"#)),
        (
            "o-response-list",
            raw(r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":[]}"#),
        ),
        (
            "o-uid-number",
            raw(r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":5}}"#),
        ),
        (
            "o-request-list",
            raw(r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":[]}"#),
        ),
        ("o-version-number", raw(r#"{"apiVersion":5,"kind":"AdmissionReview","response":{}}"#)),
        ("o-no-kind", raw(r#"{"apiVersion":"foo/v1","response":{"uid":"$UID","allowed":true}}"#)),
        ("o-no-version", raw(r#"{"kind":"AdmissionReview","response":{"uid":"$UID","allowed":true}}"#)),
        (
            "o-only-version",
            raw(r#"{"apiVersion":"admission.k8s.io/v1","response":{"uid":"$UID","allowed":true}}"#),
        ),
        ("o-beta", json!({"allowed": true, "apiVersion": "admission.k8s.io/v1beta1"})),
        ("o-odd-version", json!({"allowed": true, "apiVersion": "admission.k8s.io/v2"})),
        ("o-status-kind", raw(r#"{"apiVersion":"v1","kind":"Status","status":"Failure","message":"m"}"#)),
        (
            "o-capital",
            raw(
                r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","Response":{"uid":"$UID","allowed":true}}"#,
            ),
        ),
        ("o-twice", review(r#""allowed":false,"allowed":true"#)),
        ("o-unknown", review(r#""allowed":true,"other":[{}]"#)),
        ("o-code-700", denied(json!({"code": 700}))),
        ("o-code-999", denied(json!({"code": 999, "message": "m"}))),
        ("o-code-399", denied(json!({"code": 399}))),
        ("o-code-low", denied(json!({"code": -5}))),
        ("o-code-401", denied(json!({"code": 401, "reason": "Unauthorized"}))),
        (
            "o-code-429",
            denied(json!({"code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": 2}})),
        ),
        ("o-code-409", denied(json!({"code": 409, "reason": "Conflict"}))),
        ("o-code-404", denied(json!({"code": 404, "reason": "NotFound"}))),
        ("o-code-500", denied(json!({"code": 500, "reason": "InternalError"}))),
        ("o-code-503", denied(json!({"code": 503, "reason": "ServiceUnavailable"}))),
        ("o-status-kinds", denied(json!({"apiVersion": "v1", "kind": "Status", "message": "m"}))),
        ("o-details", denied(json!({"details": {"uid": "u", "causes": [{"reason": "r", "other": 1}, {}]}}))),
        ("o-details-empty", denied(json!({"details": {}}))),
        ("o-message-lines", denied(json!({"message": "a\nb\t\"c\""}))),
        (
            "o-warn-many",
            json!({"allowed": true, "warnings": (0..40).map(|n| format!("{n:02}{}", "y".repeat(200))).collect::<Vec<_>>()}),
        ),
        ("o-annotations", json!({"allowed": true, "auditAnnotations": {"": "x", "a/b": "y", "c": ""}})),
        ("o-allowed-status", json!({"allowed": true, "status": {"code": 500, "message": "m"}})),
        (
            "o-denied-patch",
            json!({"allowed": false, "patchType": "JSONPatch", "patch": [{"op": "add", "path": "/data", "value": {}}]}),
        ),
        ("o-204", of(204, "")),
        ("o-201", json!({"allowed": true, "code": 201})),
        ("o-206", json!({"allowed": true, "code": 206})),
        ("o-207", json!({"allowed": true, "code": 207})),
        ("o-304", of(304, "")),
        ("o-401", of(401, "who")),
        ("o-402", of(402, "pay")),
        ("o-403", of(403, "no")),
        ("o-403-text", sort(403, "text/plain", "no")),
        ("o-405", of(405, "no")),
        ("o-406", of(406, "no")),
        ("o-409", of(409, "no")),
        ("o-410", of(410, "gone")),
        ("o-413", of(413, "much")),
        ("o-415", of(415, "odd")),
        ("o-418", of(418, "tea")),
        ("o-422", of(422, "odd")),
        ("o-429", of(429, "much")),
        ("o-502", of(502, "bad")),
        ("o-504", of(504, "late")),
        ("o-599", of(599, "odd")),
        ("o-again-429", again(429, "0")),
        ("o-again-503", again(503, "1")),
        ("o-again-500", again(500, "0")),
        ("o-again-400", again(400, "0")),
        ("o-again-date", again(503, "Wed, 21 Oct 2015 07:28:00 GMT")),
        ("o-again-always", json!({"code": 503, "raw": "never", "head": ["Retry-After: 0\r\n"]})),
        ("o-again-long", again(503, "60")),
        ("o-301", sent_on(301, "/$WHO/allow")),
        ("o-302", sent_on(302, "/$WHO/allow")),
        ("o-303", sent_on(303, "/$WHO/allow")),
        ("o-307", sent_on(307, "/$WHO/allow")),
        ("o-308", sent_on(308, "/$WHO/allow?x=y")),
        ("o-307-deny", sent_on(307, "/$WHO/deny")),
        ("o-307-nowhere", of(307, "where")),
        ("o-300", sent_on(300, "/$WHO/allow")),
        ("o-loop", sent_on(307, "/$WHO/o-loop")),
        ("o-error-status", status(r#""kind":"Status","apiVersion":"v1","status":"Failure","#)),
        ("o-error-no-version", status(r#""kind":"Status","status":"Failure","#)),
        ("o-error-no-kind", status(r#""apiVersion":"v1","status":"Failure","#)),
        ("o-error-bare", status("")),
        ("o-error-success", status(r#""kind":"Status","apiVersion":"v1","status":"Success","#)),
        ("o-error-odd", status(r#""kind":"Status","apiVersion":"v1","status":"Odd","#)),
        ("o-error-type", status(r#""kind":"Status","apiVersion":"v1","status":"Failure","reason":5,"#)),
        ("o-short", json!({"allowed": true, "length": 20_000})),
        ("o-whole", set("", json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}))),
        ("o-version", set("/apiVersion", json!("v2"))),
        ("o-kindless", patch(json!([{"op": "remove", "path": "/kind"}]))),
        ("o-versionless", patch(json!([{"op": "remove", "path": "/apiVersion"}]))),
        ("o-namespaceless", patch(json!([{"op": "remove", "path": "/metadata/namespace"}]))),
        ("o-nameless", patch(json!([{"op": "remove", "path": "/metadata/name"}]))),
        ("o-name", set("/metadata/name", json!("Bad_Name"))),
        ("o-uid", set("/metadata/uid", json!("own"))),
        ("o-revision", set("/metadata/resourceVersion", json!("1"))),
        ("o-generation", set("/metadata/generation", json!(7))),
        ("o-created", set("/metadata/creationTimestamp", json!("2020-01-01T00:00:00Z"))),
        ("o-uncreated", patch(json!([{"op": "remove", "path": "/metadata/creationTimestamp"}]))),
        ("o-generate", set("/metadata/generateName", json!("x-"))),
        ("o-finalizer", set("/metadata/finalizers", json!(["odd"]))),
        (
            "o-owner",
            set(
                "/metadata/ownerReferences",
                json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "n", "uid": "u"}]),
            ),
        ),
        ("o-managed", set("/metadata/managedFields", json!([]))),
        ("o-managers", set("/metadata/managedFields", json!([{"manager": "m", "operation": "Update"}]))),
        ("o-bare", set("/metadata", json!({}))),
        ("o-metadata", patch(json!([{"op": "remove", "path": "/metadata"}]))),
        ("o-scalar", set("", json!(5))),
        ("o-nothing", set("", Value::Null)),
        ("o-data", set("/data", json!({"k": 5}))),
        ("o-op", patch(json!([{"op": "odd", "path": "/data"}]))),
        ("o-op-less", patch(json!([{"path": "/data"}]))),
        ("o-op-number", patch(json!([{"op": 5, "path": "/data"}]))),
        ("o-valueless", patch(json!([{"op": "add", "path": "/data/x"}]))),
        ("o-replace", patch(json!([{"op": "replace", "path": "/data/nowhere", "value": "x"}]))),
        ("o-operations", patch(json!([5]))),
        ("o-null-operation", patch(json!([null]))),
        (
            "o-escape",
            patch(
                json!([{"op": "add", "path": "/metadata/annotations", "value": {"a/b": "c"}}, {"op": "replace", "path": "/metadata/annotations/a~1b", "value": "d"}]),
            ),
        ),
        ("o-patch-text", json!({"allowed": true, "patchType": "JSONPatch", "patch": "InRleHQi"})),
        ("o-patch-null", json!({"allowed": true, "patchType": "JSONPatch", "patch": "bnVsbA=="})),
        ("o-patch-half", json!({"allowed": true, "patchType": "JSONPatch", "patch": "W3s="})),
        ("o-merge", json!({"allowed": true, "patchType": "MergePatch", "patch": "e30="})),
    ]
}

/// A case of each answer by a webhook that changes and by one that does not, in either version, and by one
/// that may fail.
pub fn odd_cases() -> Vec<HookCase> {
    let names = odd_answers().into_iter().map(|(name, _)| name).enumerate();
    let ways = [
        ("mutating", "v1", "Fail"),
        ("mutating", "v1beta1", "Fail"),
        ("mutating", "v1", "Ignore"),
        ("validating", "v1", "Fail"),
        ("validating", "v1", "Ignore"),
    ];
    let cases = names.flat_map(|(at, answer)| {
        ways.iter().enumerate().map(move |(way, of)| case(&format!("o{at}-{way}"), answer, *of))
    });
    cases.collect()
}

fn case(name: &str, answer: &str, (sort, version, failure): (&'static str, &str, &str)) -> HookCase {
    let kind = if sort == "mutating" { "Mutating" } else { "Validating" };
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}WebhookConfiguration"),
        "metadata": {"name": name},
        "webhooks": [{
            "name": format!("{name}{ODD}"), "sideEffects": "None", "admissionReviewVersions": [version],
            "clientConfig": {"url": format!("$HOOK/{name}-/{answer}"), "caBundle": "$CA"},
            "failurePolicy": failure, "timeoutSeconds": 5,
            "namespaceSelector": {"matchLabels": {"case": name}},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
            }],
        }],
    });
    let path = format!("/api/v1/namespaces/{name}/configmaps");
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    let step = |method, body| HookStep { method, path: path.clone(), content_type: "application/json", body };
    HookCase {
        name: name.to_owned(),
        labels: json!({"case": name}),
        configurations: vec![(sort, configuration)],
        steps: vec![step(Method::POST, object), step(Method::GET, Value::Null)],
    }
}
