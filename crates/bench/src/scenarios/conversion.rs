//! A LIST of objects that a webhook has to convert: the first one, and one more.
//!
//! In: a contender. Out: how long each takes, what it costs the servers' CPU, how often the webhook is asked
//! and about how many objects, and what is resident afterwards; a sample a run. Never: a LIST that lacks an
//! object, or one that failed and counts as quick.

use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_hook::{Hook, tabs};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::resident::rest;
use crate::Error;
use crate::client::{Client, RestConfig};
use crate::contender::Contender;
use crate::lab::Lab;
use crate::load;
use crate::report::{Measurements, Unit, add, ms};
use crate::server::Instance;

const RUNS: usize = 5;
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// As they are stored.
const V1: &str = "/apis/example.com/v1/namespaces/default/tabs";
/// As a webhook makes them.
const V2: &str = "/apis/example.com/v2/tabs";
/// How often it is looked whether they are served.
const LOOKS_MAX: usize = 1_000;
/// LISTs that may fail before one is answered: kube-apiserver says 504 after 60 s each.
const LISTS_MAX: usize = 20;

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "{} custom objects that are stored in v1, made by {} clients with an {:?} connection each; then one client LISTs them in v2, which a webhook makes, until it is answered, and once more; {} runs",
        lab.size,
        lab.clients,
        lab.protocol,
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    for _ in 0..lab.runs(RUNS) {
        let (_dir, server) = load::start(lab, who).await?;
        let hook = Hook::start().await;
        hook.answers("convert", json!({ "convert": "rightly" }));
        define(lab, &server.target, &hook).await?;
        create(lab, &server.target).await?;
        let before = Asked::since(&hook);
        add(&mut metrics, "calls before the first LIST", Unit::Count, before.calls as f64);
        for what in ["first LIST", "second LIST"] {
            listed(lab, &mut metrics, (what, &server), &hook).await?;
        }
        rest(&mut metrics, &server, "resident after", lab.settle).await?;
        server.stop().await?;
    }
    Ok(metrics)
}

/// What the webhook was asked.
struct Asked {
    calls: usize,
    objects: usize,
}

impl Asked {
    /// Since somebody looked last.
    fn since(hook: &Hook) -> Asked {
        let all = hook.asked();
        let of = |review: &Value| review["request"]["objects"].as_array().map_or(0, Vec::len);
        Asked { calls: all.len(), objects: all.iter().map(|asked| of(&asked.review)).sum() }
    }
}

async fn listed(
    lab: &Lab,
    metrics: &mut Measurements,
    (what, server): (&str, &Instance),
    hook: &Hook,
) -> Result<(), Error> {
    let (cpus, began) = (server.cpus()?, Instant::now());
    let mut client = Client::connect(&server.target, lab.protocol).await?;
    let mut failed = 0;
    let answer = loop {
        let answer = client.get(V2).await?;
        if answer.status == 200 || failed == LISTS_MAX {
            break answer.expect(what, &[200])?;
        }
        failed += 1;
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let took = began.elapsed();
    let cpu: Duration = server.cpu_since(&cpus)?.iter().sum();
    let list: Value = serde_json::from_slice(&answer.body)
        .map_err(|why| Error::Answer { what: what.to_owned(), answer: why.to_string() })?;
    let items = list["items"].as_array().map_or(0, Vec::len);
    if items != lab.size || list["items"][0]["spec"]["host"] != "h" {
        return Err(Error::Answer { what: what.to_owned(), answer: format!("{items} objects") });
    }
    let asked = Asked::since(hook);
    add(metrics, &format!("{what}: answered after"), Unit::Milliseconds, ms(took));
    add(metrics, &format!("{what}: refused before"), Unit::Count, failed as f64);
    add(metrics, &format!("{what}: server CPU"), Unit::Milliseconds, ms(cpu));
    add(metrics, &format!("{what}: calls"), Unit::Count, asked.calls as f64);
    add(metrics, &format!("{what}: objects asked about"), Unit::Count, asked.objects as f64);
    Ok(())
}

/// Makes the definition, and waits until it is served.
async fn define(lab: &Lab, target: &RestConfig, hook: &Hook) -> Result<(), Error> {
    let mut client = Client::connect(target, lab.protocol).await?;
    let definition = tabs::definition(&format!("{}/bench/convert", hook.url()), &hook.authority);
    let made = client.post(DEFINITIONS, definition.to_string().into()).await?;
    made.expect("create a definition", &[201])?;
    for _ in 0..LOOKS_MAX {
        if client.get(V1).await?.status == 200 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(Error::Answer { what: V1.to_owned(), answer: "it is not served".to_owned() })
}

async fn create(lab: &Lab, target: &RestConfig) -> Result<(), Error> {
    let mut clients = JoinSet::new();
    let (step, size, protocol) = (lab.clients.max(1), lab.size, lab.protocol);
    for first in 0..step {
        let target = target.clone();
        clients.spawn(async move {
            let mut client = Client::connect(&target, protocol).await?;
            for index in (first..size).step_by(step) {
                client.post(V1, tab(index)).await?.expect("create", &[201])?;
            }
            Ok::<_, Error>(())
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.map_err(|why| Error::Connection(why.to_string()))??;
    }
    Ok(())
}

fn tab(index: usize) -> Bytes {
    let labels = json!({ "app.kubernetes.io/name": "bench", "index": format!("i-{index}") });
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "Tab",
        "metadata": { "name": format!("tab-{index:06}"), "labels": labels },
        "spec": { "hostPort": format!("h:{index}"), "replicas": 1 },
    });
    object.to_string().into()
}
