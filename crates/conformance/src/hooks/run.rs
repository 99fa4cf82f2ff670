//! A case at both servers, each with a webhook of its own: what was asked and answered, side by side.
//!
//! In: a pair of servers, a case. Out: the steps that differ. Never: a step before its configurations are in
//! force at both.

use std::time::Duration;

use forebay_hook::{AskedReview, Hook};
use forebay_rt::Clock;
use http::Method;
use serde_json::{Value, json};

use super::draw::{HookCase, HookStep};
use super::{answers, odd};
use crate::normal::{Chosen, normal};
use crate::pair::{Answer, Pair, Peer, RawAnswer, Request};

/// How often kube-apiserver is asked whether it has heard of a configuration.
const ASKED_MAX: usize = 4_000;
/// Between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// `gen-` and what is put behind it.
const GENERATED_BYTES: usize = 9;
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
/// By whom it is told that configurations are in force.
const READY: &str = "ready";

/// Both servers, and a webhook for each.
pub struct HookPair {
    pub pair: Pair,
    ours: Hook,
    theirs: Hook,
}

/// What came of a case.
#[derive(Debug, Default)]
pub struct ComparedHooks {
    pub steps: usize,
    /// How often webhooks were asked at either server.
    pub asked: usize,
    pub refused: usize,
    /// What differs.
    pub lines: Vec<String>,
}

impl HookPair {
    /// Starts both. Needs a runtime that outlives them.
    ///
    /// # Errors
    /// Why one of them does not serve.
    pub async fn start() -> Result<HookPair, String> {
        let (pair, ours, theirs) = (Pair::start().await?, Hook::start().await, Hook::start().await);
        for hook in [&ours, &theirs] {
            let all = answers::all().into_iter().chain(odd::odd_answers());
            all.into_iter().for_each(|(name, answer)| hook.answers(name, answer));
            hook.answers(READY, json!({"allowed": false, "status": {"message": READY}}));
        }
        Ok(HookPair { pair, ours, theirs })
    }

    fn both(&self) -> [(&Peer, &Hook); 2] {
        [(&self.pair.ours, &self.ours), (&self.pair.theirs, &self.theirs)]
    }
}

/// Runs the case at both, and takes its configurations back.
///
/// # Errors
/// What kept a server from being asked.
pub async fn compare(servers: &HookPair, case: &HookCase) -> Result<ComparedHooks, String> {
    let mut compared = ComparedHooks::default();
    for (peer, hook) in servers.both() {
        prepare(peer, hook, case).await?;
    }
    for step in &case.steps {
        let mut seen = Vec::new();
        for (peer, hook) in servers.both() {
            let answer = send(peer, step).await?;
            seen.push((told(answer, hook), asked(hook, case, step)));
        }
        let theirs = seen.pop().ok_or("no answer")?;
        let ours = seen.pop().ok_or("no answer")?;
        compared.steps += 1;
        compared.asked += theirs.1.len();
        compared.refused += usize::from(theirs.0.code >= 400);
        let what = format!("{}: {} {} {}", case.name, step.method, step.path, step.body);
        if ours.0 != theirs.0 {
            compared.lines.push(format!("{what}\n  ours   {:?}\n  theirs {:?}", ours.0, theirs.0));
        }
        if ours.1 != theirs.1 {
            let shown = |all: &[String]| all.join("\n         ");
            compared.lines.push(format!(
                "{what}: asked\n  ours   {}\n  theirs {}",
                shown(&ours.1),
                shown(&theirs.1)
            ));
        }
    }
    for (peer, _) in servers.both() {
        for (sort, configuration) in &case.configurations {
            take_back(peer, sort, configuration).await?;
        }
    }
    Ok(compared)
}

/// Makes the namespace and the configurations, and waits until these are in force: behind the last webhook of
/// each stands one that refuses what is said to be a question for it.
async fn prepare(peer: &Peer, hook: &Hook, case: &HookCase) -> Result<(), String> {
    let HookCase { name, labels, configurations, .. } = case;
    let namespace = json!({"metadata": {"name": name, "labels": labels}});
    made(peer, "/api/v1/namespaces", &namespace).await?;
    for (at, (sort, configuration)) in configurations.iter().enumerate() {
        let mut configuration = configuration.clone();
        let ready = format!("{name}-{at}");
        if let Some(hooks) = configuration["webhooks"].as_array_mut() {
            hooks.push(json!({
                "name": "ready.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": format!("$HOOK/{READY}/{READY}"), "caBundle": "$CA"},
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"],
                }],
                "objectSelector": {"matchLabels": {"ready": ready}},
            }));
        }
        let text = configuration.to_string().replace("$HOOK", &hook.url()).replace("$CA", &hook.authority);
        let configuration = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        made(peer, &format!("{CONFIGURATIONS}/{sort}webhookconfigurations"), &configuration).await?;
        in_force(peer, &ready).await?;
    }
    hook.asked_of(&format!("{name}-"));
    Ok(())
}

/// Waits until a configuration is. The question is put in a namespace that no case is about.
async fn in_force(peer: &Peer, ready: &str) -> Result<(), String> {
    let secret = json!({"metadata": {"name": "ready", "labels": {"ready": ready}}});
    for _ in 0..ASKED_MAX {
        let path = "/api/v1/namespaces/default/secrets?dryRun=All";
        let answer = peer.send(Method::POST, path, Some(&secret)).await?;
        if answer.body["message"].as_str().is_some_and(|message| message.ends_with(READY)) {
            return Ok(());
        }
        Clock::system().sleep(LOOK_AGAIN).await;
    }
    Err(format!("{ready}: nobody hears of the configuration"))
}

async fn take_back(peer: &Peer, sort: &str, configuration: &Value) -> Result<(), String> {
    let name = configuration["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{CONFIGURATIONS}/{sort}webhookconfigurations/{name}");
    peer.send(Method::DELETE, &path, None).await.map(drop)
}

async fn made(peer: &Peer, path: &str, object: &Value) -> Result<(), String> {
    let answer = peer.send(Method::POST, path, Some(object)).await?;
    match answer.code {
        201 | 409 => Ok(()),
        _ => Err(format!("{path}: {object}: {answer:?}")),
    }
}

async fn send(peer: &Peer, step: &HookStep) -> Result<Answer, String> {
    let mut request = Request::new(step.method.clone(), step.path.clone());
    request.content_type = step.content_type;
    // No webhook is told of it.
    request.agent = Some("tester/1.0".to_owned());
    if !step.body.is_null() {
        request.body = step.body.to_string().into_bytes();
    }
    let RawAnswer { code, warnings, body } = peer.ask(&request, "application/json").await?;
    let text = || Value::String(String::from_utf8_lossy(&body).into_owned());
    let body = serde_json::from_slice(&body).unwrap_or_else(|_| text());
    Ok(Answer { code, warnings, body })
}

/// The answer as both servers would give it.
fn told(answer: Answer, hook: &Hook) -> Answer {
    let chosen = Chosen::of(&answer.body);
    let mut answer = normal(answer, &chosen);
    replace(&mut answer.body, &hook.url());
    // Nobody else's is the same.
    if let Some(status) = answer.body.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("token");
    }
    // Those that validate are asked at once.
    answer.warnings.sort();
    answer
}

/// What the webhooks of a case were asked: those that validate are asked at once, in no order.
fn asked(hook: &Hook, case: &HookCase, step: &HookStep) -> Vec<String> {
    let mut all = hook.asked_of(&format!("{}-", case.name));
    let of_validating = format!("{}-v", case.name);
    all.sort_by_key(|asked| match asked.who.starts_with(&of_validating) {
        true => asked.who.clone(),
        false => String::new(),
    });
    all.into_iter().map(|asked| review(asked, hook, step)).collect()
}

fn review(AskedReview { who, query, review, .. }: AskedReview, hook: &Hook, step: &HookStep) -> String {
    let mut request = review["request"].clone();
    if let Some(members) = request.as_object_mut() {
        // The administrators have names of their own.
        members.remove("userInfo");
    }
    if step.path.contains("/scale") {
        // Ours shows whose the fields are with the object alone.
        for name in ["object", "oldObject"] {
            if let Some(metadata) = request[name].get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
        }
    }
    // What is put without one has it a little sooner at ours: those that change it see it, too.
    if step.method == Method::PUT
        && let Some(metadata) = request["object"].get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("resourceVersion");
    }
    let chosen = Chosen::of(&request["object"]);
    let body = json!({"apiVersion": review["apiVersion"], "request": request});
    let mut answer = normal(Answer { code: 0, warnings: Vec::new(), body }, &chosen);
    replace(&mut answer.body, &hook.url());
    format!("{who} {query} {}", answer.body)
}

/// Gives the webhook's own place a name.
fn replace(value: &mut Value, url: &str) {
    match value {
        Value::Object(members) => members.values_mut().for_each(|value| replace(value, url)),
        Value::Array(items) => items.iter_mut().for_each(|value| replace(value, url)),
        Value::String(text) => {
            if text.contains(url) {
                *text = text.replace(url, "$HOOK");
            }
            // What a server makes of a name that it may choose.
            if let Some(at) = text.find("gen-").filter(|at| text.len() >= at + GENERATED_BYTES) {
                text.replace_range(at..at + GENERATED_BYTES, "<gen>");
            }
        }
        _ => {}
    }
}
