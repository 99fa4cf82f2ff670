//! Admission policies: what a real kube-apiserver v1.36.3 answered to the same requests, one after the other.
//!
//! In: `policies/*.txt`, recorded by the words in their heads: a request, `type` what its body is unless
//! JSON, the body, `>` the code with reason and message, below it what is told of the refusal or of the
//! object, with the managers of its fields where the request names one, `!` a warning. Out: the same of
//! ours. Never: waits for a policy, which is in force once its writer is answered.

use http::Method;
use serde_json::{Map, Value, json};

use crate::common::{Ask, Client, Scratch, Server};

const VALIDATING: &str = include_str!("policies/validating.txt");
const MUTATING: &str = include_str!("policies/mutating.txt");
const CUSTOM: &str = include_str!("policies/custom.txt");
const REQUESTS: &str = include_str!("policies/requests.txt");
const SUBRESOURCES: &str = include_str!("policies/subresources.txt");
const MANAGED: &str = include_str!("policies/managed.txt");

/// A request and what came of it.
struct Step<'t> {
    method: Method,
    path: &'t str,
    content_type: &'t str,
    body: &'t str,
    answer: Vec<&'t str>,
}

fn steps(text: &str) -> Vec<Step<'_>> {
    let blocks = text.trim_end().split("\n\n").filter(|block| !block.starts_with('#'));
    let steps = blocks.map(|block| {
        let mut lines = block.lines().peekable();
        let (method, path) = lines.next().and_then(|line| line.split_once(' ')).expect("a request");
        let content_type = lines.next_if(|line| line.starts_with("type ")).and_then(|line| line.get(5..));
        let body = lines.next_if(|line| line.starts_with(['{', '['])).unwrap_or_default();
        let method = method.parse().expect("a method");
        let content_type = content_type.unwrap_or("application/json");
        Step { method, path, content_type, body, answer: lines.collect() }
    });
    steps.collect()
}

/// The answer in the form of the record.
async fn answered(client: &Client, step: &Step<'_>) -> Vec<String> {
    let mut ask = Ask::new(step.method.clone(), step.path);
    if !step.body.is_empty() {
        ask = ask.body(step.content_type, step.body.to_owned());
    }
    let reply = client.ask(ask).await;
    let object = reply.json();
    let mut lines = Vec::new();
    if reply.code >= 400 {
        let said = &object["message"];
        lines.push(format!("> {} {}: {said}", reply.code, object["reason"].as_str().unwrap_or_default()));
        let details = &object["details"];
        let told = ["causes", "group", "kind", "name"].map(|name| (name.to_owned(), details[name].clone()));
        lines.push(format!("  {}", Value::Object(Map::from_iter(told))));
    } else {
        lines.push(format!("> {}", reply.code));
        // What policies are about is recorded, not they themselves.
        let is_definition =
            ["/admissionregistration", "/customresourcedefinitions"].iter().any(|of| step.path.contains(of));
        let mut shown = shown(&object);
        if step.path.contains("fieldManager=") && object["metadata"].is_object() {
            shown["managed"] = managed(&object);
        }
        if shown != json!({}) && !is_definition {
            lines.push(format!("  {shown}"));
        }
    }
    lines.extend(reply.warnings().iter().map(|warning| format!("! {warning}")));
    lines
}

/// What the record has of an object.
fn shown(object: &Value) -> Value {
    let mut shown = Map::new();
    if object["kind"] == "Status" {
        return Value::Object(shown);
    }
    for (of, names) in [(object, ["data", "spec"]), (&object["metadata"], ["annotations", "labels"])] {
        for name in names {
            let value = &of[name];
            let is_there = of.get(name).is_some()
                && (names[0] == "data" || value.as_object().is_some_and(|all| !all.is_empty()));
            if is_there {
                shown.insert(name.into(), value.clone());
            }
        }
    }
    Value::Object(shown)
}

/// Who manages which of its fields.
fn managed(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let mut all: Vec<Value> = entries
        .map(|entry| {
            json!({ "manager": entry["manager"], "operation": entry["operation"], "fields": entry["fieldsV1"],
                "sub": entry["subresource"].as_str().unwrap_or_default() })
        })
        .collect();
    all.sort_by_key(|entry| (entry["manager"].to_string(), entry["operation"].to_string()));
    all.into()
}

/// Line by line, those of JSON as values.
fn are_same(ours: &[String], theirs: &[&str]) -> bool {
    let value =
        |line: &str| line.strip_prefix("  ").map(|json| serde_json::from_str::<Value>(json).expect("JSON"));
    let is_same = |(ours, theirs): (&String, &&str)| {
        ours == theirs || value(ours).is_some_and(|ours| Some(ours) == value(theirs))
    };
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(is_same)
}

async fn replay(text: &str) {
    let scratch = Scratch::new();
    // As the kube-apiserver was whose answers these are.
    let server = Server::start(&scratch, &["--authorization-mode=AlwaysAllow"]).await;
    let client = server.admin().await;
    let mut different = Vec::new();
    for step in steps(text) {
        let answer = answered(&client, &step).await;
        if !are_same(&answer, &step.answer) {
            different.push(format!(
                "{} {}\n{}\ntheirs {}\nours   {}",
                step.method,
                step.path,
                step.body,
                step.answer.join("\n       "),
                answer.join("\n       ")
            ));
        }
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n\n"));
}

#[tokio::test]
async fn validating_policies_judge_as_kube_apiservers_do() {
    replay(VALIDATING).await;
}

#[tokio::test]
async fn mutating_policies_change_what_kube_apiservers_do() {
    replay(MUTATING).await;
}

#[tokio::test]
async fn policies_know_custom_resources_as_objects_and_as_parameters() {
    replay(CUSTOM).await;
}

#[tokio::test]
async fn policies_see_the_options_and_the_subresource_of_a_request() {
    replay(REQUESTS).await;
}

#[tokio::test]
async fn what_is_sent_to_a_subresource_is_mutated() {
    replay(SUBRESOURCES).await;
}

#[tokio::test]
async fn what_policies_make_of_applied_objects_and_of_their_managers() {
    replay(MANAGED).await;
}
