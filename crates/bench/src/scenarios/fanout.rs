//! One update, sent to many watchers: what each delivered event costs, and how long it takes.
//!
//! In: a contender. Out: CPU of the server for each delivered event and the delays, a sample a run, with a
//! connection for each watcher and with 100 on each. The scenario crowd is the same with many more of them,
//! one update a second. Never: a run in which an event was lost.

use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::client::{Client, Protocol};
use crate::contender::Contender;
use crate::lab::Lab;
use crate::load::percentile;
use crate::report::{Measurements, Unit, add, ms};
use crate::server::Instance;
use crate::watchers::Watchers;
use crate::{Error, load, pods};

const RUNS: usize = 5;
/// Updates of one run.
const UPDATES: usize = 50;
/// From one update to the next, unless the events of the one before take longer.
const PERIOD: Duration = Duration::from_millis(200);
/// Updates of the crowd, and from one to the next.
const CROWD_UPDATES: usize = 10;
const CROWD_PERIOD: Duration = Duration::from_secs(1);
/// An event that has not come by then is lost.
const WAIT: Duration = Duration::from_secs(30);
/// A pod is padded to about so many bytes.
const POD_BYTES: usize = 8 << 10;

/// How the watchers are connected, as the figures name it.
const WAYS: [(&str, Protocol); 2] = [("own connection", Protocol::Http1), ("100 on one", Protocol::Http2)];

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "{} watchers of all pods, each on a connection of its own (HTTP/1.1) and 100 on one (HTTP/2), TLS; {UPDATES} updates of a pod of 8 KB, one each {PERIOD:?}; {} runs",
        lab.watchers,
        lab.runs(RUNS)
    )
}

pub(super) fn about_crowd(lab: &Lab) -> String {
    format!(
        "{} watchers of all pods, each on a connection of its own (HTTP/1.1) and 100 on one (HTTP/2), TLS; {CROWD_UPDATES} updates of a pod of 8 KB, one each {CROWD_PERIOD:?}; {} runs",
        lab.crowd,
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    measure(lab, who, (lab.updates(UPDATES), PERIOD)).await
}

/// Many watchers, as a large cluster has them.
pub(super) async fn run_crowd(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let crowd = Lab { watchers: lab.crowd, ..lab.clone() };
    measure(&crowd, who, (CROWD_UPDATES.min(lab.crowd / 4).max(1), CROWD_PERIOD)).await
}

async fn measure(lab: &Lab, who: &Contender, pace: (usize, Duration)) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    for _ in 0..lab.runs(RUNS) {
        let (_dir, server) = load::start(lab, who).await?;
        let mut pod = Pod::create(&server).await?;
        for (way, protocol) in WAYS {
            add_paced(&mut metrics, lab, &server, &mut pod, (way, protocol), pace).await?;
        }
        server.stop().await?;
    }
    Ok(metrics)
}

pub(super) async fn add_fanout(
    metrics: &mut Measurements,
    lab: &Lab,
    server: &Instance,
    pod: &mut Pod,
    way: &str,
    protocol: Protocol,
) -> Result<(), Error> {
    add_paced(metrics, lab, server, pod, (way, protocol), (lab.updates(UPDATES), PERIOD)).await
}

async fn add_paced(
    metrics: &mut Measurements,
    lab: &Lab,
    server: &Instance,
    pod: &mut Pod,
    (way, protocol): (&str, Protocol),
    (updates, period): (usize, Duration),
) -> Result<(), Error> {
    let path = format!("/api/v1/pods?watch=1&resourceVersion={}", pod.revision);
    let mut watchers = Watchers::open(&server.target, protocol, lab.watchers, |_| path.clone()).await?;
    tokio::time::sleep(lab.settle).await;
    let before = server.cpus()?;
    let mut delays = Vec::new();
    for _ in 0..updates {
        let sent = Instant::now();
        pod.update().await?;
        delays.extend(watchers.events(watchers.count, sent, WAIT).await?);
        tokio::time::sleep(period.saturating_sub(sent.elapsed())).await;
    }
    let cpu: Duration = server.cpu_since(&before)?.iter().sum();
    delays.sort_unstable();
    let each = cpu.as_secs_f64() * 1e6 / delays.len() as f64;
    add(metrics, &format!("server CPU per delivered event, {way}"), Unit::Microseconds, each);
    add(metrics, &format!("delay p50, {way}"), Unit::Milliseconds, ms(percentile(&delays, 0.5)));
    add(metrics, &format!("delay p99, {way}"), Unit::Milliseconds, ms(percentile(&delays, 0.99)));
    Ok(())
}

/// A pod that is updated again and again.
pub(super) struct Pod {
    client: Client,
    path: String,
    revision: String,
    serial: usize,
}

impl Pod {
    pub(super) async fn create(server: &Instance) -> Result<Pod, Error> {
        let mut client = Client::connect(&server.target, Protocol::Http1).await?;
        let workload = pods::Workload::new(0);
        let pod = workload.pod(0, "11111111-2222-4333-8444-555555555555");
        let mut body: serde_json::Value = serde_json::from_slice(&pod.body).map_err(not_json)?;
        let padding = "x".repeat(POD_BYTES.saturating_sub(pod.body.len()));
        body["metadata"]["annotations"]["padding"] = padding.into();
        // One whose owner is not there would be collected.
        body["metadata"]["ownerReferences"] = serde_json::Value::Array(Vec::new());
        let path = format!("/api/v1/namespaces/{}/pods", workload.namespace);
        let made = client.post(&path, body.to_string().into()).await?.expect("create pod", &[201])?;
        let path = format!("{path}/{}", pod.name);
        Ok(Pod { client, path, revision: revision(&made.body)?, serial: 0 })
    }

    async fn update(&mut self) -> Result<(), Error> {
        self.serial += 1;
        let patch = format!(r#"{{"metadata":{{"annotations":{{"serial":"{}"}}}}}}"#, self.serial);
        let patch = Bytes::from(patch);
        let done = self.client.patch(&self.path, patch).await?.expect("patch pod", &[200])?;
        self.revision = revision(&done.body)?;
        Ok(())
    }
}

fn revision(body: &[u8]) -> Result<String, Error> {
    let object: serde_json::Value = serde_json::from_slice(body).map_err(not_json)?;
    Ok(object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())
}

fn not_json(why: serde_json::Error) -> Error {
    Error::Answer { what: "an object".into(), answer: why.to_string() }
}
