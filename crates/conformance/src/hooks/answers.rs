//! What webhooks of cases answer, by name.
//!
//! In: nothing. Out: answers as [`forebay_hook::Hook`] takes them. Never: one whose words are a matter
//! of time.

use serde_json::{Value, json};

/// Names of answers with how often they are drawn; the first are those of webhooks that agree.
pub const ANSWERS: [(&str, usize); 34] = [
    ("allow", 30),
    ("warn", 8),
    ("label", 12),
    ("annotate", 10),
    ("change", 10),
    ("same", 4),
    ("nothing", 3),
    ("deny", 6),
    ("deny-message", 6),
    ("deny-reason", 4),
    ("deny-odd", 4),
    ("deny-low", 2),
    ("deny-warn", 3),
    ("missing", 3),
    ("test", 3),
    ("unknown", 3),
    ("bad-type", 3),
    ("invalid", 3),
    ("rename", 3),
    ("no-type", 2),
    ("odd-type", 2),
    ("only-type", 2),
    ("no-patch", 2),
    ("other-uid", 2),
    ("other-kind", 2),
    ("absent", 2),
    ("e400", 2),
    ("e404", 2),
    ("e500", 2),
    ("e503", 2),
    ("status", 2),
    ("cut", 2),
    ("hang", 1),
    ("remove", 4),
];

/// All of them, with what they are.
pub fn all() -> Vec<(&'static str, Value)> {
    let patch = |operations: Value| json!({"allowed": true, "patchType": "JSONPatch", "patch": operations});
    let set = |path: &str, value: Value| patch(json!([{"op": "add", "path": path, "value": value}]));
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "said so", "reason": "BadRequest",
        "code": 400,
    });
    let odd = json!({
        "code": 418, "message": "m", "reason": "Teapot", "details": {
            "name": "n", "group": "g", "kind": "k", "retryAfterSeconds": 3,
            "causes": [{"reason": "FieldValueInvalid", "message": "c", "field": "f"}],
        },
    });
    vec![
        ("allow", json!({"allowed": true})),
        (
            "warn",
            json!({"allowed": true, "warnings": ["look", "again", "look"], "auditAnnotations": {"k": "v"}}),
        ),
        ("label", set("/metadata/labels", json!({"made": "here", "tier": "gold"}))),
        ("annotate", set("/metadata/annotations", json!({"made": "here"}))),
        (
            "change",
            patch(json!([
                {"op": "add", "path": "/metadata/annotations", "value": {"first": "1"}},
                {"op": "copy", "from": "/metadata/annotations/first", "path": "/metadata/annotations/next"},
                {"op": "move", "from": "/metadata/annotations/first", "path": "/metadata/annotations/last"},
            ])),
        ),
        ("same", patch(json!([{"op": "copy", "from": "/metadata/name", "path": "/metadata/name"}]))),
        ("nothing", patch(json!([]))),
        ("deny", json!({"allowed": false})),
        (
            "deny-message",
            json!({
                "allowed": false, "status": {"message": "no way", "reason": "Forbidden", "code": 403},
            }),
        ),
        ("deny-reason", json!({"allowed": false, "status": {"reason": "BadDay"}})),
        ("deny-odd", json!({"allowed": false, "status": odd})),
        (
            "deny-low",
            json!({"allowed": false, "status": {"code": 200, "status": "Success", "message": "odd"}}),
        ),
        ("deny-warn", json!({"allowed": false, "warnings": ["look out"]})),
        ("missing", patch(json!([{"op": "remove", "path": "/nowhere/x"}]))),
        ("test", patch(json!([{"op": "test", "path": "/metadata/name", "value": "other"}]))),
        ("unknown", set("/odd", json!(1))),
        ("bad-type", set("/metadata/labels", json!("text"))),
        ("invalid", set("/metadata/labels", json!({"-": "-"}))),
        ("rename", set("/metadata/name", json!("other"))),
        ("no-type", json!({"allowed": true, "patch": [{"op": "add", "path": "/data", "value": {}}]})),
        (
            "odd-type",
            json!({
                "allowed": true, "patchType": "Odd", "patch": [{"op": "add", "path": "/data", "value": {}}],
            }),
        ),
        ("only-type", json!({"allowed": true, "patchType": "JSONPatch"})),
        ("no-patch", json!({"allowed": true, "patchType": "JSONPatch", "patch": "e30="})),
        ("other-uid", json!({"allowed": true, "uid": "other"})),
        ("other-kind", json!({"allowed": true, "kind": "Odd"})),
        ("absent", json!({"raw": r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#})),
        ("e400", json!({"code": 400, "raw": "bad"})),
        ("e404", json!({"code": 404, "raw": "nope"})),
        ("e500", json!({"code": 500, "raw": "broken"})),
        ("e503", json!({"code": 503, "raw": ""})),
        ("status", json!({"code": 400, "raw": status.to_string()})),
        ("cut", json!({"cut": true})),
        ("hang", json!({"hang": true})),
        ("remove", patch(json!([{"op": "remove", "path": "/metadata/labels"}]))),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_answer_that_is_drawn_is_there() {
        let drawn: BTreeSet<&str> = ANSWERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(drawn, all().iter().map(|(name, _)| *name).collect());
    }
}
