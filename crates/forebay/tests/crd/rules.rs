//! Rules of definitions in CEL: which are taken, and what they say of objects.

use serde_json::{Value, json};

use crate::common::{Ask, Client, Scratch, Server, causes, said};
use crate::{CRD, CRDS, MERGE, WIDGETS, definition, widget};

/// A definition of widgets with these rules for their spec.
fn ruled(rules: Value) -> Value {
    let mut ruled = definition();
    let version = &mut ruled["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] = rules;
    ruled
}

async fn patched(client: &Client, name: &str, patch: &'static str) -> crate::common::Reply {
    client.ask(Ask::patch(format!("{WIDGETS}/{name}"), MERGE, patch)).await
}

#[tokio::test]
async fn a_rule_that_cannot_be_is_refused_with_its_definition() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let at = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations";
    let rows = [
        (
            json!({"rule": "self.colour == 'red'"}),
            format!("FieldValueInvalid {at}[0].rule: "),
            "undefined field 'colour'",
        ),
        (
            json!({"rule": "self.replicas"}),
            format!("FieldValueInvalid {at}[0].rule: "),
            "cel expression must evaluate to a bool",
        ),
        (
            json!({"rule": "true", "messageExpression": "self.replicas"}),
            format!("FieldValueInvalid {at}[0].messageExpression: "),
            "messageExpression must evaluate to a string",
        ),
        (
            json!({"rule": "self.free.all(k, self.free.all(l, k != l))"}),
            format!("FieldValueInvalid {at}[0].rule: "),
            "cannot be range of a comprehension",
        ),
        (
            json!({"rule": "self.color.contains(self.color) && self.color.matches(self.inner.mode)", "reason": "Odd"}),
            format!("FieldValueNotSupported {at}[0].reason: "),
            "supported values",
        ),
        (
            json!({"rule": "true", "optionalOldSelf": true}),
            format!("FieldValueInvalid {at}[0].optionalOldSelf: "),
            "may not be set if oldSelf is not used in rule",
        ),
    ];
    for (rule, beginning, part) in rows {
        let status = client.post(CRDS, &ruled(json!([rule]))).await.expect(422);
        let found = causes(&status);
        assert!(found.starts_with(&beginning) && found.contains(part), "{rule}: {found}");
    }
    let mut dear = definition();
    let schema = &mut dear["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["texts"] = json!({
        "type": "array", "items": {"type": "string"},
        "x-kubernetes-validations": [{"rule": "self.all(a, self.all(b, a != b))"}],
    });
    let status = client.post(CRDS, &dear).await.expect(422);
    assert!(
        causes(&status).contains("estimated rule cost exceeds budget by factor of more than 100x"),
        "{}",
        causes(&status)
    );
}

#[tokio::test]
async fn objects_that_break_a_rule_are_refused_in_its_words() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let rules = json!([
        {"rule": "self.replicas < 5", "message": "too many"},
        {"rule": "self.color != 'blue' || self.inner.mode == 'auto'", "messageExpression": "'no ' + self.inner.mode + ' for blue'",
            "fieldPath": ".inner.mode", "reason": "FieldValueForbidden"},
        {"rule": "self.color == oldSelf.color"},
    ]);
    let reply = client.post(CRDS, &ruled(rules)).await;
    reply.expect(201);
    assert!(reply.warnings().is_empty(), "{:?}", reply.warnings());
    let status = client.post(WIDGETS, &widget("a", json!({"color": "red", "replicas": 8}))).await.expect(422);
    assert_eq!(
        said(&status),
        r#"422 Invalid: Widget.example.com "a" is invalid: spec: Invalid value: too many"#
    );
    let odd = json!({"color": "blue", "inner": {"mode": "fast"}, "replicas": 7});
    let status = client.post(WIDGETS, &widget("a", odd)).await.expect(422);
    assert_eq!(
        causes(&status).trim_end(),
        "FieldValueInvalid spec: Invalid value: too many\nFieldValueForbidden spec.inner.mode: Forbidden: no fast for blue"
    );
    let wrong = client.post(WIDGETS, &widget("a", json!({"color": 5, "replicas": 8}))).await.expect(422);
    assert!(causes(&wrong).contains("some validation rules were not checked"), "{}", causes(&wrong));

    client.post(WIDGETS, &widget("a", json!({"color": "red"}))).await.expect(201);
    let status = patched(&client, "a", r#"{"spec":{"color":"blue"}}"#).await.expect(422);
    assert_eq!(
        causes(&status).trim_end(),
        "FieldValueInvalid spec: Invalid value: failed rule: self.color == oldSelf.color"
    );
    patched(&client, "a", r#"{"spec":{"replicas":4}}"#).await.expect(200);
}

#[tokio::test]
async fn what_an_object_broke_before_is_only_warned_of() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    client.post(CRDS, &ruled(json!([]))).await.expect(201);
    client.post(WIDGETS, &widget("a", json!({"color": "red", "replicas": 8}))).await.expect(201);
    let rules = json!([{"rule": "self.replicas < 5", "message": "too many"}]);
    let stricter = ruled(rules)["spec"]["versions"].to_string();
    let patch = format!(r#"{{"spec":{{"versions":{stricter}}}}}"#);
    client.ask(Ask::patch(CRD.to_owned(), MERGE, patch)).await.expect(200);
    let reply = patched(&client, "a", r#"{"metadata":{"labels":{"a":"b"}}}"#).await;
    reply.expect(200);
    assert_eq!(reply.warnings(), [r#"299 - "spec: Invalid value: too many""#]);
    let status = patched(&client, "a", r#"{"spec":{"replicas":7}}"#).await.expect(422);
    assert_eq!(causes(&status).trim_end(), "FieldValueInvalid spec: Invalid value: too many");
    // What is forgiven is told of even where something else is refused.
    let reply = patched(&client, "a", r#"{"metadata":{"labels":{"a":"no label!"}}}"#).await;
    assert!(causes(&reply.expect(422)).starts_with("FieldValueInvalid metadata.labels: "));
    assert_eq!(reply.warnings(), [r#"299 - "spec: Invalid value: too many""#]);
}
