//! What a webhook adds to a write that it is asked about, and what a hanging one does to other writes.
//!
//! In: a contender. Out: latency of creates that nobody is asked about, of those that a webhook is asked
//! about which takes a millisecond, and of the first again while many clients wait for one that hangs; a
//! sample a run. Never: a create that failed.

use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_hook::Hook;
use serde_json::json;
use tokio::task::JoinSet;

use crate::Error;
use crate::client::{Client, RestConfig};
use crate::contender::Contender;
use crate::lab::Lab;
use crate::load::{self, percentile};
use crate::report::{Measurements, Unit, add, ms};

const RUNS: usize = 5;
const API: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const FREE: &str = "hooks-free";
const ASKED: &str = "hooks-asked";
const HUNG: &str = "hooks-hung";
/// How often it is looked whether a webhook is asked.
const LOOKS_MAX: usize = 1_000;
/// Clients that wait are enough once a webhook is asked by so many: ours asks one by 256 at once.
const ASKED_AT_ONCE: usize = 200;

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "{} ConfigMaps by {} clients with an {:?} connection each: nobody is asked; a webhook is asked that takes 1 ms; nobody is asked while {} clients wait for one that hangs; {} runs",
        lab.size,
        lab.clients,
        lab.protocol,
        lab.crowd,
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    for _ in 0..lab.runs(RUNS) {
        let (_dir, server) = load::start(lab, who).await?;
        let target = &server.target;
        namespace(lab, target, FREE).await?;
        let without = creates(lab, target, FREE, "before").await?;
        add_latency(&mut metrics, "nobody asked", &without);
        let _slow = asked(lab, target, ASKED, json!({ "allowed": true, "delay_ms": 1 })).await?;
        let with = creates(lab, target, ASKED, "asked").await?;
        add_latency(&mut metrics, "a webhook of 1 ms", &with);
        let more = ms(percentile(&with, 0.99)) - ms(percentile(&without, 0.99));
        add(&mut metrics, "a webhook of 1 ms: p99 more", Unit::Milliseconds, more);
        let hanging = asked(lab, target, HUNG, json!({ "hang": true })).await?;
        let mut stuck = JoinSet::new();
        for index in 0..lab.crowd {
            let (target, protocol) = (target.clone(), lab.protocol);
            stuck.spawn(async move {
                let mut client = Client::connect(&target, protocol).await?;
                client.post(&maps(HUNG), map(&format!("stuck-{index}"))).await
            });
        }
        hanging.was_asked(lab.crowd.min(ASKED_AT_ONCE)).await;
        add_latency(&mut metrics, "beside one that hangs", &creates(lab, target, FREE, "beside").await?);
        stuck.shutdown().await;
        server.stop().await?;
    }
    Ok(metrics)
}

fn add_latency(metrics: &mut Measurements, what: &str, sorted: &[Duration]) {
    add(metrics, &format!("{what}: p50"), Unit::Milliseconds, ms(percentile(sorted, 0.5)));
    add(metrics, &format!("{what}: p99"), Unit::Milliseconds, ms(percentile(sorted, 0.99)));
}

/// A webhook that answers so to creates of ConfigMaps in a namespace of its own, once it is asked.
async fn asked(lab: &Lab, target: &RestConfig, of: &str, answer: serde_json::Value) -> Result<Hook, Error> {
    namespace(lab, target, of).await?;
    let hook = Hook::start().await;
    hook.answers("answer", answer);
    hook.answers("ready", json!({ "allowed": false }));
    let webhook = |name: &str, operator: &str| {
        json!({
            "name": format!("{name}.example.com"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 30,
            "clientConfig": { "url": format!("{}/bench/{name}", hook.url()), "caBundle": hook.authority },
            "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": of } },
            "objectSelector": { "matchExpressions": [{ "key": "ready", "operator": operator }] },
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["configmaps"] }],
        })
    };
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": of },
        "webhooks": [webhook("answer", "DoesNotExist"), webhook("ready", "Exists")],
    });
    let mut client = Client::connect(target, lab.protocol).await?;
    client.post(API, configuration.to_string().into()).await?.expect("create a configuration", &[201])?;
    let probe = json!({ "metadata": { "name": "ready", "labels": { "ready": "" } } }).to_string();
    for _ in 0..LOOKS_MAX {
        let answer = client.post(&format!("{}?dryRun=All", maps(of)), probe.clone().into()).await?;
        if answer.expect("ask whether it is asked", &[201]).is_err() {
            hook.asked();
            return Ok(hook);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(Error::Answer { what: of.to_owned(), answer: "no webhook is asked".to_owned() })
}

/// Latencies of all creates, sorted.
async fn creates(lab: &Lab, target: &RestConfig, of: &str, called: &str) -> Result<Vec<Duration>, Error> {
    let mut clients = JoinSet::new();
    for first in 0..lab.clients.max(1) {
        let (target, protocol, path) = (target.clone(), lab.protocol, maps(of));
        let (step, size, called) = (lab.clients.max(1), lab.size, called.to_owned());
        clients.spawn(async move {
            let mut client = Client::connect(&target, protocol).await?;
            let mut took = Vec::new();
            for index in (first..size).step_by(step) {
                let body = map(&format!("{called}-{index}"));
                let began = Instant::now();
                client.post(&path, body).await?.expect("create", &[201])?;
                took.push(began.elapsed());
            }
            Ok::<_, Error>(took)
        });
    }
    let mut all = Vec::new();
    while let Some(ended) = clients.join_next().await {
        all.extend(ended.map_err(|e| Error::Connection(e.to_string()))??);
    }
    all.sort_unstable();
    Ok(all)
}

async fn namespace(lab: &Lab, target: &RestConfig, name: &str) -> Result<(), Error> {
    let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let mut client = Client::connect(target, lab.protocol).await?;
    let made = client.post("/api/v1/namespaces", object.to_string().into()).await?;
    made.expect("create a namespace", &[201]).map(drop)
}

fn maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

fn map(name: &str) -> Bytes {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "k": "v" },
    });
    object.to_string().into()
}
