//! Many updates, each for one watcher: as kubelets watch, each the pods of its own node.
//!
//! In: a contender. Out: how long an event takes from its update, the rate that was reached, and CPU of the
//! server for each update, a sample a run. Never: a run in which an event was lost.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::Error;
use crate::client::{Client, Protocol, RestConfig};
use crate::contender::Contender;
use crate::lab::Lab;
use crate::load::{self, percentile};
use crate::pods;
use crate::report::{Measurements, Unit, add, ms};
use crate::server::Instance;
use crate::watchers::{Came, Watchers};

const RUNS: usize = 5;
/// Updates a second, of all writers together, and for how long.
const RATE: usize = 1_000;
const SPAN: Duration = Duration::from_secs(10);
/// An event that has not come so long after the last update is lost.
const WAIT: Duration = Duration::from_secs(30);

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "{} nodes, each with a pod and a watcher of its pods by spec.nodeName, 100 watchers on a connection (HTTP/2), TLS; {RATE} updates a second for {SPAN:?}, each of another node's pod, by {} clients; {} runs",
        lab.crowd,
        lab.clients,
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    for _ in 0..lab.runs(RUNS) {
        let (_dir, server) = load::start(lab, who).await?;
        add_run(&mut metrics, lab, &server).await?;
        server.stop().await?;
    }
    Ok(metrics)
}

async fn add_run(metrics: &mut Measurements, lab: &Lab, server: &Instance) -> Result<(), Error> {
    let mut writers = Vec::new();
    for _ in 0..lab.clients.min(lab.crowd) {
        writers.push(Client::connect(&server.target, Protocol::Http1).await?);
    }
    writers = each_in_turn(lab.crowd, writers, |mut client, node| async move {
        let (path, body) = pod(node);
        client.post(&path, body).await?.expect("create pod", &[201])?;
        Ok(client)
    })
    .await?;
    let from = newest(&server.target).await?;
    let path = |node| {
        format!("/api/v1/pods?watch=1&resourceVersion={from}&fieldSelector=spec.nodeName%3D{}", name(node))
    };
    let mut watchers = Watchers::open(&server.target, Protocol::Http2, lab.crowd, path).await?;
    tokio::time::sleep(lab.settle).await;
    let updates = (SPAN.as_secs() as usize * RATE).min(lab.crowd * 10);
    let before = server.cpus()?;
    let start = Instant::now();
    let (tell, mut sent) = mpsc::unbounded_channel();
    let writing = tokio::spawn(update(lab.crowd, updates, writers, tell));
    let mut lanes = Lanes::new(lab.crowd);
    let all = async {
        while lanes.delays.len() < updates {
            tokio::select! {
                biased;
                Some((node, at)) = sent.recv() => lanes.sent(node, at),
                Some(came) = watchers.next() => lanes.came(came),
                else => break,
            }
        }
    };
    let _in_time = tokio::time::timeout(SPAN + WAIT, all).await;
    let took = writing.await.map_err(|e| Error::Connection(e.to_string()))??.duration_since(start);
    let mut delays = lanes.delays;
    if delays.len() < updates {
        let answer = format!("{} came", delays.len());
        return Err(Error::Answer { what: format!("{updates} events"), answer });
    }
    let cpu: Duration = server.cpu_since(&before)?.iter().sum();
    delays.sort_unstable();
    add(metrics, "updates", Unit::PerSecond, updates as f64 / took.as_secs_f64());
    add(metrics, "delay p50", Unit::Milliseconds, ms(percentile(&delays, 0.5)));
    add(metrics, "delay p99", Unit::Milliseconds, ms(percentile(&delays, 0.99)));
    add(metrics, "delay max", Unit::Milliseconds, ms(percentile(&delays, 1.0)));
    let each = cpu.as_secs_f64() * 1e6 / updates as f64;
    add(metrics, "server CPU per update", Unit::Microseconds, each);
    Ok(())
}

/// The updates of which nothing has come yet, and how long the others took.
struct Lanes {
    // By node, the oldest first.
    open: Vec<VecDeque<Instant>>,
    // An event may be heard of before its update is.
    early: Vec<VecDeque<Instant>>,
    delays: Vec<Duration>,
}

impl Lanes {
    fn new(nodes: usize) -> Lanes {
        let none = || vec![VecDeque::new(); nodes];
        Lanes { open: none(), early: none(), delays: Vec::new() }
    }

    fn sent(&mut self, node: usize, at: Instant) {
        match self.early[node].pop_front() {
            Some(came) => self.delays.push(came.saturating_duration_since(at)),
            None => self.open[node].push_back(at),
        }
    }

    fn came(&mut self, Came { watcher, at }: Came) {
        match self.open[watcher].pop_front() {
            Some(sent) => self.delays.push(at.saturating_duration_since(sent)),
            None => self.early[watcher].push_back(at),
        }
    }
}

/// Updates the nodes' pods in turn at [`RATE`]; when the last one was answered.
async fn update(
    nodes: usize,
    updates: usize,
    writers: Vec<Client>,
    tell: mpsc::UnboundedSender<(usize, Instant)>,
) -> Result<Instant, Error> {
    let mut writing = JoinSet::new();
    let count = writers.len();
    for (own, mut client) in writers.into_iter().enumerate() {
        let tell = tell.clone();
        writing.spawn(async move {
            let mut pace = interval(Duration::from_secs(1) * count as u32 / RATE as u32);
            pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
            for serial in (own..updates).step_by(count) {
                pace.tick().await;
                let node = serial % nodes;
                let patch = format!(r#"{{"metadata":{{"annotations":{{"serial":"{serial}"}}}}}}"#);
                let at = Instant::now();
                let path = format!("{}/{}", PATH, name(node));
                client.patch(&path, Bytes::from(patch)).await?.expect("patch pod", &[200])?;
                // Nobody listens any more when the run has failed.
                let _ = tell.send((node, at));
            }
            Ok::<_, Error>(())
        });
    }
    while let Some(ended) = writing.join_next().await {
        ended.map_err(|e| Error::Connection(e.to_string()))??;
    }
    Ok(Instant::now())
}

/// Does `pieces` of work, each client one after the other; the clients again.
async fn each_in_turn<W>(
    pieces: usize,
    clients: Vec<Client>,
    work: impl Fn(Client, usize) -> W + Send + Sync + 'static,
) -> Result<Vec<Client>, Error>
where
    W: Future<Output = Result<Client, Error>> + Send,
{
    let (count, work) = (clients.len(), Arc::new(work));
    let mut running = JoinSet::new();
    for (own, mut client) in clients.into_iter().enumerate() {
        let work = work.clone();
        running.spawn(async move {
            for piece in (own..pieces).step_by(count) {
                client = work(client, piece).await?;
            }
            Ok::<_, Error>(client)
        });
    }
    let mut done = Vec::new();
    while let Some(ended) = running.join_next().await {
        done.push(ended.map_err(|e| Error::Connection(e.to_string()))??);
    }
    Ok(done)
}

/// Where the pods are.
const PATH: &str = "/api/v1/namespaces/bench-00/pods";

/// Of a node, and of the pod that runs on it.
fn name(node: usize) -> String {
    format!("node-{node:05}")
}

/// A pod of the usual size on a node of its own: where to, and what.
fn pod(node: usize) -> (String, Bytes) {
    let pod = pods::Workload::new(node % 64).pod(0, "11111111-2222-4333-8444-555555555555");
    let mut body: serde_json::Value = serde_json::from_slice(&pod.body).unwrap_or_default();
    body["metadata"]["name"] = name(node).into();
    body["metadata"]["namespace"] = pods::namespace(0).into();
    // One whose owner is not there would be collected.
    body["metadata"]["ownerReferences"] = serde_json::Value::Array(Vec::new());
    body["spec"]["nodeName"] = name(node).into();
    (PATH.to_owned(), body.to_string().into())
}

/// The newest revision.
async fn newest(target: &RestConfig) -> Result<String, Error> {
    let mut client = Client::connect(target, Protocol::Http1).await?;
    let list = client.get(&format!("{PATH}?limit=1")).await?.expect("list", &[200])?;
    let list: serde_json::Value = serde_json::from_slice(&list.body)
        .map_err(|e| Error::Answer { what: "list".into(), answer: e.to_string() })?;
    Ok(list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_of_the_oldest_update_of_its_node_whichever_is_heard_of_first() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut lanes = Lanes::new(2);
        lanes.sent(0, at(0));
        lanes.sent(0, at(5));
        lanes.came(Came { watcher: 1, at: at(9) });
        lanes.came(Came { watcher: 0, at: at(10) });
        lanes.sent(1, at(8));
        lanes.came(Came { watcher: 0, at: at(30) });
        assert_eq!(lanes.delays, [10, 1, 25].map(Duration::from_millis));
    }
}
