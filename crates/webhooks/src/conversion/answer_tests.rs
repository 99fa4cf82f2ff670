//! What is taken of an answer, and what is said of one that is wrong.

use bytes::Bytes;
use serde_json::json;

use super::*;

fn original() -> Value {
    let metadata = json!({
        "name": "a", "namespace": "n", "uid": "u", "generation": 3, "labels": { "l": "1" },
        "finalizers": ["f.io/x"],
    });
    json!({ "apiVersion": "g.io/v1", "kind": "Tab", "metadata": metadata, "spec": { "hostPort": "h:1" } })
}

fn made(edit: impl FnOnce(&mut Value)) -> Value {
    let mut made = original();
    made["apiVersion"] = "g.io/v2".into();
    made["spec"] = json!({ "host": "h", "port": "1" });
    edit(&mut made);
    made
}

fn answer(of: Value) -> Result<Vec<Value>, String> {
    let answered =
        Answered { code: 200, content_type: "application/json".into(), body: Bytes::from(of.to_string()) };
    judged(Ok(answered), &[original()])
}

fn judged(answered: Result<Answered, NoAnswer>, objects: &[Value]) -> Result<Vec<Value>, String> {
    let asked = AskedToConvert { version: ReviewVersion::V1, uid: "r", to: "g.io/v2", objects };
    converted(&asked, ("https://h/c", answered), &Lease::of_server(), || 1)
        .map_err(|failure| format!("{}: {}", failure.sort.as_str(), failure.status.message))
}

fn review(response: Value) -> Value {
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response })
}

fn of_objects(objects: Vec<Value>) -> Value {
    review(json!({ "uid": "r", "result": { "status": "Success" }, "convertedObjects": objects }))
}

fn of_one(edit: impl FnOnce(&mut Value)) -> Result<Vec<Value>, String> {
    answer(of_objects(vec![made(edit)]))
}

const OF: &str = "conversion webhook for g.io/v1, Kind=Tab";

#[test]
fn metadata_is_what_it_was_but_for_labels_and_annotations() {
    let objects = of_one(|made| {
        made["metadata"]["labels"] = json!({ "l": "2" });
        made["metadata"]["annotations"] = json!({ "a": "b" });
        made["metadata"]["generation"] = 99.into();
        made["metadata"]["finalizers"] = json!([]);
    });
    let made = &objects.expect("converted")[0];
    let mut want = original()["metadata"].clone();
    want["labels"] = json!({ "l": "2" });
    want["annotations"] = json!({ "a": "b" });
    assert_eq!((&made["metadata"], &made["spec"]), (&want, &json!({ "host": "h", "port": "1" })));
    let objects = of_one(|made| made["metadata"]["labels"] = Value::Null).expect("converted");
    assert!(objects[0]["metadata"].get("labels").is_none());
}

#[test]
fn an_object_that_is_another_is_refused() {
    let invalid = |why: &str| Err(format!("conversion_webhook_invalid_converted_object_failure: {why}"));
    let other = |name: &str, to: &str| of_one(|made| made["metadata"][name] = to.into());
    let same = |word: &str, from: &str| {
        invalid(&format!("{OF} returned invalid object: must have the same {word}: {from} != x"))
    };
    assert_eq!(other("name", "x"), same("name", "a"));
    assert_eq!(other("namespace", "x"), same("namespace", "n"));
    assert_eq!(other("uid", "x"), same("UID", "u"));
    assert_eq!(
        of_one(|made| made["kind"] = "Other".into()),
        invalid(&format!(
            "{OF} returned invalid object at index 0: invalid kind (expected Tab, received Other)"
        ))
    );
    assert_eq!(
        of_one(|made| made["apiVersion"] = "g.io/v3".into()),
        invalid(&format!(
            "{OF} returned invalid object at index 0: invalid groupVersion (expected g.io/v2, received g.io/v3)"
        ))
    );
    assert_eq!(
        of_one(|made| made["metadata"]["labels"] = json!({ "l": 1 })),
        invalid(&format!(
            "{OF} returned invalid metadata: metadata.labels[l] must be a string, but is int64 in converted object"
        ))
    );
    let label = of_one(|made| made["metadata"]["labels"] = json!({ "l": "-" }));
    assert!(label.is_err_and(|why| {
        why.contains("returned invalid metadata: metadata.labels: Invalid value: \"-\": ")
    }));
    assert_eq!(answer(of_objects(vec![json!({})])), invalid("Object 'Kind' is missing in '{}'"));
    assert_eq!(answer(of_objects(vec![Value::Null])), invalid("unexpected end of JSON input"));
    assert_eq!(
        answer(of_objects(vec![json!(5)])),
        invalid("json: cannot unmarshal number into Go value of type map[string]interface {}")
    );
}

#[test]
fn an_answer_to_something_else_is_refused() {
    let malformed =
        |why: &str| Err(format!("conversion_webhook_malformed_response_failure: {OF} failed: {why}"));
    assert_eq!(
        answer(json!({ "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1" })),
        malformed("no response provided")
    );
    assert_eq!(
        answer(json!({})),
        malformed(
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind="
        )
    );
    assert_eq!(answer(review(json!({ "uid": "x" }))), malformed("expected response.uid=\"r\", got \"x\""));
    assert_eq!(
        answer(review(json!({ "uid": "r", "result": { "status": "Failed" } }))),
        malformed("response.result.status was 'Failed', not 'Success'")
    );
    assert_eq!(
        answer(review(json!({ "uid": "r", "result": { "status": "Failed", "message": "no port" } }))),
        malformed("no port")
    );
    assert_eq!(
        answer(of_objects(vec![made(|_| {}), made(|_| {})])),
        Err(format!("conversion_webhook_partial_response_failure: {OF} returned 2 objects, expected 1"))
    );
}

#[test]
fn no_answer_says_why() {
    let call = |why: &str| Err(format!("conversion_webhook_call_failure: {OF} failed: {why}"));
    let refused = NoAnswer::Failed("dial tcp 127.0.0.1:1: connect: connection refused".into());
    assert_eq!(
        judged(Err(refused), &[original()]),
        call("Post \"https://h/c\": dial tcp 127.0.0.1:1: connect: connection refused")
    );
    let answered = Answered {
        code: 404,
        content_type: "text/plain".into(),
        body: Bytes::from_static(b"404 page not found"),
    };
    assert_eq!(judged(Ok(answered), &[original()]), call("the server could not find the requested resource"));
}

#[test]
fn who_finds_no_room_behind_it_is_told_when_to_come_back_as_others_are() {
    let asked =
        AskedToConvert { version: ReviewVersion::V1, uid: "r", to: "g.io/v2", objects: &[original()] };
    let told = |seconds| {
        let busy = Err(NoAnswer::Busy("too many requests wait for it to answer".into()));
        let failed = converted(&asked, ("https://h/c", busy), &Lease::of_server(), || seconds);
        failed.expect_err("busy").status
    };
    let status = told(7);
    assert_eq!((status.reason, status.retry_after_seconds), (Reason::TooManyRequests, 7));
    let why = "Post \"https://h/c\": too many requests wait for it to answer";
    assert_eq!(status.message, format!("{OF} failed: {why}"));
    assert_eq!(told(3).retry_after_seconds, 3);
}

#[test]
fn an_answer_for_which_there_is_no_room_is_refused_as_that() {
    let lease = Lease::of_one_tree();
    let objects = vec![made(|made| made["spec"]["blob"] = "x".repeat(12 << 20).into())];
    let answered = Answered {
        code: 200,
        content_type: "application/json".into(),
        body: Bytes::from(of_objects(objects).to_string()),
    };
    let asked =
        AskedToConvert { version: ReviewVersion::V1, uid: "r", to: "g.io/v2", objects: &[original()] };
    // As often as it takes to fill what one tree may have.
    let mut refused = None;
    for _ in 0..1_000 {
        if let Err(failure) = converted(&asked, ("https://h/c", Ok(answered.clone())), &lease, || 1) {
            refused = Some(failure.status.reason);
            break;
        }
    }
    assert_eq!(refused, Some(Reason::RequestEntityTooLarge));
}
