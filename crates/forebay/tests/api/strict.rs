//! What a strict reader of a body has against it, and in which words and order.

use http::Method;

use crate::CONFIG_MAPS;
use crate::common::{Ask, Scratch, Server, said};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const APPLY: &str = "application/apply-patch+yaml";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

#[tokio::test]
async fn what_is_wrong_with_the_fields_of_a_built_in_kind_is_told_as_it_stands_in_the_body() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let body = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","unknownMeta":1},"spec":{"unknownField":1,"replicas":2,"replicas":3,"selector":{"matchLabels":{"a":"b"}},"another":{},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","x":1}]}}}}"#;
    let post = |query: &str| Ask::new(Method::POST, format!("{DEPLOYMENTS}{query}")).body(JSON, body);
    let told = r#"unknown field "metadata.unknownMeta", unknown field "spec.unknownField", duplicate field "spec.replicas", unknown field "spec.another", unknown field "spec.template.spec.containers[0].x""#;
    let refused = client.ask(post("?fieldValidation=Strict")).await.expect(400);
    assert_eq!(
        said(&refused),
        format!(
            r#"400 BadRequest: Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: {told}"#
        )
    );
    let warned = client.ask(post("?dryRun=All")).await;
    let each: Vec<String> =
        told.split(", ").map(|told| format!("299 - \"{}\"", told.replace('"', "\\\""))).collect();
    assert_eq!(warned.warnings(), each);
    let ignored = client.ask(post("?dryRun=All&fieldValidation=Ignore")).await;
    assert_eq!(ignored.warnings(), [""; 0]);
}

#[tokio::test]
async fn keys_that_a_mapping_of_yaml_has_already_are_told_with_their_lines() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  k: v\n  k: w\n  l: v\n  l:\n    w\nx: 1\n";
    let lines = [r#"line 7: key "k" already set in map"#, r#"line 10: key "l" already set in map"#];
    let all = format!("yaml: unmarshal errors:\n  {}", lines.join("\n  "));
    let shown = |told: &str| format!("299 - \"{}\"", told.replace('"', "\\\""));
    let unknown = r#"unknown field "x""#;

    let post = |query: &str| Ask::new(Method::POST, format!("{CONFIG_MAPS}{query}")).body(YAML, body);
    let refused = client.ask(post("?fieldValidation=Strict")).await.expect(400);
    assert_eq!(
        said(&refused),
        format!(
            r#"400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: {all}, {unknown}"#
        )
    );
    let made = client.ask(post("?dryRun=All")).await;
    assert_eq!(made.warnings(), [shown(lines[0]), shown(lines[1]), shown(unknown)]);
    assert_eq!(made.expect(201)["data"], serde_json::json!({"k": "w", "l": "w"}), "the last counts");

    let known = body.replace("x: 1\n", "");
    let apply = |query: &str| {
        Ask::patch(format!("{CONFIG_MAPS}/c?fieldManager=m&dryRun=All{query}"), APPLY, known.clone())
    };
    let refused = client.ask(apply("&fieldValidation=Strict")).await.expect(400);
    assert_eq!(
        said(&refused),
        format!("400 BadRequest: error strict decoding YAML: error converting YAML to JSON: {all}")
    );
    let applied = client.ask(apply("")).await;
    assert_eq!(applied.warnings(), [shown(lines[0]), shown(lines[1])]);
}

#[tokio::test]
async fn what_is_no_yaml_is_refused_in_the_words_of_gos_parser() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let refused =
        client.ask(Ask::patch(format!("{CONFIG_MAPS}/c?fieldManager=m"), APPLY, "a: [{\"b\":1}")).await;
    assert_eq!(
        said(&refused.expect(400)),
        "400 BadRequest: error decoding YAML: error converting YAML to JSON: yaml: line 1: did not find expected ',' or ']'"
    );
}
