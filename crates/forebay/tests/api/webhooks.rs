//! Admission webhooks: what a real kube-apiserver v1.36.3 asked and answered to the same requests, one after
//! the other.
//!
//! In: `webhooks/*.txt`, recorded by the words in their heads: `=` what a webhook answers by name; a request
//! and its body, `<` what each webhook was asked, `>` the code with reason and message, below it what is told
//! of the refusal or of the object, `!` a warning. Out: the same of ours. Never: waits for a webhook, which
//! is in force once its writer is answered.

use http::Method;
use serde_json::{Map, Value, json};

use crate::common::{Ask, AskedReview, Client, Hook, Scratch, Server, Watch, names, text};

const ADMISSION: &str = include_str!("webhooks/admission.txt");

/// What of metadata is another with each run.
const OWN: [&str; 5] = ["creationTimestamp", "managedFields", "resourceVersion", "selfLink", "uid"];

/// A request and what came of it.
struct Step<'t> {
    method: Method,
    path: &'t str,
    body: &'t str,
    answer: Vec<&'t str>,
}

fn steps<'t>(text: &'t str, hook: &Hook) -> Vec<Step<'t>> {
    let mut steps = Vec::new();
    for block in text.trim_end().split("\n\n").filter(|block| !block.starts_with('#')) {
        let mut lines = block.lines().peekable();
        while let Some(line) = lines.next_if(|line| line.starts_with("= ")) {
            let (name, answer) = line[2..].split_once(' ').expect("a name and an answer");
            hook.answers(name, serde_json::from_str(answer).expect("an answer"));
        }
        let Some((method, path)) = lines.next().and_then(|line| line.split_once(' ')) else { continue };
        let body = lines.next_if(|line| line.starts_with('{')).unwrap_or_default();
        steps.push(Step { method: method.parse().expect("a method"), path, body, answer: lines.collect() });
    }
    steps
}

/// The answer in the form of the record.
async fn answered(client: &Client, hook: &Hook, step: &Step<'_>) -> Vec<String> {
    let mut ask = Ask::new(step.method.clone(), step.path);
    if !step.body.is_empty() {
        let body = step.body.replace("$HOOK", &hook.url()).replace("$CA", &hook.authority);
        let content_type = match step.method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        ask = ask.body(content_type, body);
    }
    let reply = client.ask(ask).await;
    let (all, object) = (hook.asked(), reply.json());
    let uids: Vec<String> = all.iter().map(|one| text(&one.review, "/request/uid").to_owned()).collect();
    let mut lines = asked(all);
    if reply.code >= 400 {
        let said = &object["message"];
        lines.push(format!("> {} {}: {said}", reply.code, object["reason"].as_str().unwrap_or_default()));
        let details = object.get("details").cloned().unwrap_or_else(|| json!({}));
        lines.push(format!("  {details}"));
    } else {
        lines.push(format!("> {}", reply.code));
        let is_definition = step.path.contains("/admissionregistration");
        let shown = shown(&object);
        if shown != json!({}) && !is_definition {
            lines.push(format!("  {shown}"));
        }
    }
    lines.extend(reply.warnings().iter().map(|warning| format!("! {warning}")));
    let blank = |line: String| uids.iter().fold(line, |line, uid| line.replace(&**uid, "UID"));
    lines.into_iter().map(|line| blank(line.replace(&hook.url(), "$HOOK"))).collect()
}

/// What webhooks were asked: those whose names begin with `v` are asked at once, in no order.
fn asked(mut all: Vec<AskedReview>) -> Vec<String> {
    all.sort_by_key(|asked| if asked.who.starts_with('v') { asked.who.clone() } else { String::new() });
    let lines = all.into_iter().map(|AskedReview { who, query, review, .. }| {
        let mut request = review["request"].clone();
        request["apiVersion"] = review["apiVersion"].clone();
        assert!(request["userInfo"]["username"].is_string(), "{request}");
        for name in ["object", "oldObject"] {
            if let Some(metadata) = request[name].get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.retain(|member, _| !OWN.contains(&member.as_str()));
            }
        }
        let members = request.as_object_mut().expect("a request");
        members.remove("uid").expect("a uid");
        members.remove("userInfo");
        format!("< {who} {query} {request}")
    });
    lines.collect()
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
            let is_told = names[0] == "data" || value.as_object().is_some_and(|all| !all.is_empty());
            if of.get(name).is_some() && is_told {
                shown.insert(name.into(), value.clone());
            }
        }
    }
    Value::Object(shown)
}

/// Line by line, what is JSON in them as values.
fn are_same(ours: &[String], theirs: &[&str]) -> bool {
    fn parts(line: &str) -> (&str, Value) {
        let at = match line.get(..2) {
            Some("  " | "< ") => line.find('{').unwrap_or(line.len()),
            _ => line.len(),
        };
        (&line[..at], serde_json::from_str(&line[at..]).unwrap_or_default())
    }
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| parts(ours) == parts(theirs))
}

#[tokio::test]
async fn webhooks_are_asked_and_heard_as_by_kube_apiserver() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let (client, hook) = (server.admin().await, Hook::start().await);
    let mut different = Vec::new();
    for step in steps(ADMISSION, &hook) {
        // Reads what is current: a write that begins with an older object is judged twice, as upstream.
        assert_eq!(client.get("/api/v1/configmaps").await.code, 200);
        let answer = answered(&client, &hook, &step).await;
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

/// A configuration whose one webhook is asked about new ConfigMaps with a label.
pub fn validating(hook: &Hook, answer: &str) -> Value {
    json!({
        "metadata": { "name": "c" },
        "webhooks": [{
            "name": "w.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "timeoutSeconds": 30,
            "clientConfig": { "url": format!("{}/w/{answer}", hook.url()), "caBundle": hook.authority },
            "objectSelector": { "matchLabels": { "asked": "yes" } },
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["configmaps"] }],
        }],
    })
}

pub const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
/// So many calls to one webhook there are at once.
const ASKED_AT_ONCE: usize = 256;
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn a_webhook_that_hangs_holds_up_no_other_write_and_no_read() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let (client, hook) = (server.admin().await, Hook::start().await);
    hook.answers("hang", json!({ "hang": true }));
    client.post(CONFIGURATIONS, &validating(&hook, "hang")).await.expect(201);
    let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    let stuck = (0..100).map(|n| {
        let (client, labels) = (client.clone(), json!({ "asked": "yes" }));
        let map = json!({ "metadata": { "name": format!("stuck-{n}"), "labels": labels } });
        tokio::spawn(async move { client.try_ask(Ask::post(CONFIG_MAPS, &map)).await })
    });
    let stuck: Vec<_> = stuck.collect();
    hook.was_asked(100).await;
    for n in 0..10 {
        let name = format!("free-{n}");
        client.post(CONFIG_MAPS, &json!({ "metadata": { "name": name } })).await.expect(201);
        client.get(&format!("{CONFIG_MAPS}/{name}")).await.expect(200);
        let list = client.get(CONFIG_MAPS).await.expect(200);
        assert!(names(&list).contains(&name), "{list}");
        while next_name(&mut watch).await != name {}
    }
    assert!(stuck.iter().all(|stuck| !stuck.is_finished()));
    stuck.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn whoever_waits_behind_a_hanging_webhook_is_told_of_it_in_time() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let (client, hook) = (server.admin().await, Hook::start().await);
    hook.answers("hang", json!({ "hang": true }));
    let mut configuration = validating(&hook, "hang");
    configuration["webhooks"][0]["timeoutSeconds"] = 5.into();
    client.post(CONFIGURATIONS, &configuration).await.expect(201);
    // A connection has not as many streams.
    let clients = [server.admin().await, server.admin().await];
    let stuck = (0..ASKED_AT_ONCE + 20).map(|n| {
        let client = clients[n % 2].clone();
        let map = json!({ "metadata": { "name": format!("stuck-{n}"), "labels": { "asked": "yes" } } });
        tokio::spawn(async move { client.try_ask(Ask::post(CONFIG_MAPS, &map)).await })
    });
    for answer in stuck.collect::<Vec<_>>() {
        let refused = answer.await.expect("it is answered").expect("an answer").expect(500);
        let message = text(&refused, "/message");
        let before = "Internal error occurred: failed calling webhook \"w.example.com\": failed to call webhook: Post ";
        assert!(message.starts_with(before) && message.contains("context deadline exceeded"), "{message}");
    }
    assert!(names(&client.get(CONFIG_MAPS).await.expect(200)).iter().all(|name| !name.starts_with("stuck")));
}

async fn next_name(watch: &mut Watch) -> String {
    let event = watch.next().await.expect("a watch").expect("an event");
    text(&event.object, "/metadata/name").to_owned()
}
