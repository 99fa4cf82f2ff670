//! The load: many clients that create pods, each on its own connection, and what they saw.
//!
//! In: a ready server and a number of pods. Out: [`Load`]: rate, latencies, CPU of servers and of the client.
//! Never: a failure passed over; a run with one has no figures.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::task::JoinSet;

use crate::client::{Client, Protocol, Target};
use crate::lab::Lab;
use crate::server::Server;
use crate::{Error, pods, proc};

/// What creating the pods took.
#[derive(Debug)]
pub struct Load {
    pub pods: usize,
    pub took: Duration,
    /// Sorted; one a create, from the first byte sent to the last byte of the answer.
    pub latencies: Vec<Duration>,
    /// Bytes of all bodies sent, and of all pods as they came back.
    pub sent: usize,
    pub returned: usize,
    /// CPU time of each process, in the order of `Server::processes`.
    pub server_cpu: Vec<Duration>,
    pub client_cpu: Duration,
}

#[derive(Default)]
struct Tally {
    latencies: Vec<Duration>,
    sent: usize,
    returned: usize,
}

impl Load {
    /// The latency that `share` of the creates did not exceed.
    pub fn latency(&self, share: f64) -> Duration {
        percentile(&self.latencies, share)
    }
}

/// The first of `sorted` that `share` of them do not exceed.
pub fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let last = sorted.len().saturating_sub(1);
    let at = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(at.saturating_sub(1).min(last)).copied().unwrap_or_default()
}

/// Makes the namespaces, and in each the ServiceAccount that kube-apiserver's default admission asks for: there is no
/// controller manager here that would.
pub async fn namespaces(server: &Server) -> Result<(), Error> {
    let mut client = Client::connect(&server.target, Protocol::Http1).await?;
    for index in 0..pods::NAMESPACES {
        let name = pods::namespace(index);
        let body = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
        let made = client.post("/api/v1/namespaces", Bytes::from(body)).await?;
        made.expect("create namespace", &[201])?;
        let body = r#"{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}"#;
        let path = format!("/api/v1/namespaces/{name}/serviceaccounts");
        // 409: a server that makes it by itself was first.
        client.post(&path, Bytes::from(body)).await?.expect("create serviceaccount", &[201, 409])?;
    }
    Ok(())
}

/// Makes the ReplicaSets that own the pods; their uids.
async fn owners(server: &Server, size: usize) -> Result<Vec<String>, Error> {
    let mut client = Client::connect(&server.target, Protocol::Http1).await?;
    let mut uids = Vec::new();
    for owner in 0..pods::owners(size) {
        let (namespace, body) = pods::replica_set(owner);
        let path = format!("/apis/apps/v1/namespaces/{namespace}/replicasets");
        let made = client.post(&path, body).await?.expect("create replicaset", &[201])?;
        let made: serde_json::Value = serde_json::from_slice(&made.body)
            .map_err(|e| Error::Answer { what: "create replicaset".into(), answer: e.to_string() })?;
        uids.push(made["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
    }
    Ok(uids)
}

/// Creates the pods; their owners are there and the clients are connected before the clock starts.
pub async fn create_pods(lab: &Lab, server: &Server) -> Result<Load, Error> {
    let owners = Arc::new(owners(server, lab.size).await?);
    let mut clients = Vec::new();
    for _ in 0..lab.clients {
        clients.push(Client::connect(&server.target, lab.protocol).await?);
    }
    let (server_before, client_before) = (server.cpus()?, proc::cpu_self()?);
    let start = Instant::now();
    let next = Arc::new(AtomicUsize::new(0));
    let mut running = JoinSet::new();
    for client in clients {
        running.spawn(create_some(client, next.clone(), owners.clone(), lab.size));
    }
    let mut all = Tally::default();
    while let Some(ended) = running.join_next().await {
        let tally = ended.map_err(|e| Error::Connection(e.to_string()))??;
        all.latencies.extend(tally.latencies);
        all.sent += tally.sent;
        all.returned += tally.returned;
    }
    let took = start.elapsed();
    let client_cpu = proc::cpu_self()?.saturating_sub(client_before);
    let server_cpu =
        server.cpus()?.iter().zip(&server_before).map(|(now, then)| now.saturating_sub(*then)).collect();
    all.latencies.sort_unstable();
    Ok(Load {
        pods: lab.size,
        took,
        latencies: all.latencies,
        sent: all.sent,
        returned: all.returned,
        server_cpu,
        client_cpu,
    })
}

/// Counts the pods on the server, in pages of their metadata.
async fn count_pods(target: &Target) -> Result<usize, Error> {
    const ACCEPT: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let mut client = Client::connect(target, Protocol::Http1).await?;
    let mut count = 0;
    let mut token = String::new();
    loop {
        let path = format!("/api/v1/pods?limit=1000&continue={token}");
        let page = client
            .send(hyper::Method::GET, &path, ACCEPT, Bytes::new())
            .await?
            .expect("list pods", &[200])?;
        let page: serde_json::Value = serde_json::from_slice(&page.body)
            .map_err(|e| Error::Answer { what: "list pods".into(), answer: e.to_string() })?;
        count += page["items"].as_array().map_or(0, Vec::len);
        match page["metadata"]["continue"].as_str() {
            None | Some("") => return Ok(count),
            Some(more) => token = more.to_owned(),
        }
    }
}

/// Makes sure that the server has `wanted` pods, no more and no less.
pub async fn expect_pods(target: &Target, wanted: usize) -> Result<(), Error> {
    match count_pods(target).await? {
        found if found == wanted => Ok(()),
        found => Err(Error::Answer {
            what: format!("{wanted} pods were acknowledged"),
            answer: format!("{found} are listed"),
        }),
    }
}

/// One client: takes the next pod until there is none left.
async fn create_some(
    mut client: Client,
    next: Arc<AtomicUsize>,
    owners: Arc<Vec<String>>,
    size: usize,
) -> Result<Tally, Error> {
    let mut tally = Tally::default();
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= size {
            return Ok(tally);
        }
        let pod = pods::pod(index, &owners[pods::owner_of(index)]);
        let path = format!("/api/v1/namespaces/{}/pods", pod.namespace);
        tally.sent += pod.body.len();
        let start = Instant::now();
        let answer = client.post(&path, pod.body).await?;
        tally.latencies.push(start.elapsed());
        tally.returned += answer.expect("create pod", &[201])?.body.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_latency_that_so_many_did_not_exceed() {
        let ms = |n| Duration::from_millis(n);
        let load = |n: u64| Load {
            pods: n as usize,
            took: ms(1),
            latencies: (1..=n).map(ms).collect(),
            sent: 0,
            returned: 0,
            server_cpu: vec![],
            client_cpu: ms(0),
        };
        assert_eq!(load(100).latency(0.5), ms(50));
        assert_eq!(load(100).latency(0.99), ms(99));
        assert_eq!(load(1).latency(0.99), ms(1));
        assert_eq!(load(0).latency(0.99), ms(0));
    }
}
