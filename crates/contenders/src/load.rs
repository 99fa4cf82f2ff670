//! The load: many clients that create objects, each on its own connection, and what they saw.
//!
//! In: a ready server and a number of objects. Out: [`Load`]: rate, latencies, CPU of servers and of the
//! client. Never: a failure passed over; a run with one has no figures.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::task::JoinSet;

use crate::client::{Client, Protocol, RestConfig};
use crate::contender::Contender;
use crate::lab::{FreshDir, Lab};
use crate::objects::Made;
use crate::server::Instance;
use crate::{Error, governed, pods, proc};

/// What creating the objects took.
#[derive(Debug)]
pub struct Load {
    pub objects: usize,
    pub took: Duration,
    /// Sorted; one a create, from the first byte sent to the last byte of the answer.
    pub latencies: Vec<Duration>,
    /// Bytes of all bodies sent, and of all objects as they came back last.
    pub sent: usize,
    pub returned: usize,
    /// CPU time of each process, in the order of `Instance::processes`.
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

/// Starts a server on nothing, with the namespaces made; and its directory, which is to be there as long as
/// it is.
pub async fn start(lab: &Lab, who: &Contender) -> Result<(FreshDir, Instance), Error> {
    let dir = lab.fresh_dir()?;
    let governed = lab.is_governed.then(|| governed::contender(who, dir.path())).transpose()?;
    let mut server = governed.as_ref().unwrap_or(who).start(dir.path()).await?;
    namespaces(&server).await?;
    if lab.is_governed {
        governed::begin(who, &mut server, dir.path()).await?;
    }
    Ok((dir, server))
}

/// Makes the namespaces, and in each the ServiceAccount that kube-apiserver's default admission asks for:
/// there is no controller manager here that would.
pub async fn namespaces(server: &Instance) -> Result<(), Error> {
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

/// How much of an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// What a create takes; the figures of the load are of just that.
    Created,
    /// The status too, and what a server adds of managedFields taken away again: what is stored is the same
    /// everywhere.
    Whole,
    /// By three managers, as a pod has them on a cluster: who creates it, who says its status, and who
    /// annotates it. What a server adds of managedFields stays.
    Owned,
}

/// Who says the status of an object that is owned.
const STATUS_MANAGER: &str = "kubelet";
/// Who annotates it, and with what.
const ANNOTATION: (&str, &str) = (
    "multus",
    r#"{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/network-status":"[{\"name\":\"pods\",\"default\":true}]"}}}"#,
);

/// Makes the owners of the objects; their uids, by batch.
async fn owners(lab: &Lab, server: &Instance) -> Result<Vec<String>, Error> {
    let objects = lab.objects;
    if objects.owner(0).is_none() {
        return Ok(vec![String::new(); objects.batches(lab.size)]);
    }
    let mut uids = in_turn(lab, server, objects.batches(lab.size), move |mut client, batch| async move {
        let Some((namespace, body)) = objects.owner(batch) else {
            return Ok((client, (batch, String::new())));
        };
        let path = format!("/apis/apps/v1/namespaces/{namespace}/replicasets");
        let made = client.post(&path, body).await?.expect("create replicaset", &[201])?;
        let made: serde_json::Value = serde_json::from_slice(&made.body)
            .map_err(|e| Error::Answer { what: "create replicaset".into(), answer: e.to_string() })?;
        Ok((client, (batch, made["metadata"]["uid"].as_str().unwrap_or_default().to_owned())))
    })
    .await?;
    uids.sort_unstable();
    Ok(uids.into_iter().map(|(_, uid)| uid).collect())
}

/// Creates the objects; their owners are there and the clients are connected before the clock starts.
pub async fn create(lab: &Lab, server: &Instance, depth: Depth) -> Result<Load, Error> {
    let owners = Arc::new(owners(lab, server).await?);
    let (server_before, client_before) = (server.cpus()?, proc::cpu_self()?);
    let start = Instant::now();
    let (objects, size) = (lab.objects, lab.size);
    let batches = in_turn(lab, server, owners.len(), move |mut client, batch| {
        let owners = owners.clone();
        async move {
            let mut tally = Tally::default();
            for made in objects.batch(batch, size, &owners[batch]) {
                create_one(&mut client, made, depth, &mut tally).await?;
            }
            Ok((client, tally))
        }
    });
    let mut all = Tally::default();
    for tally in batches.await? {
        all.latencies.extend(tally.latencies);
        all.sent += tally.sent;
        all.returned += tally.returned;
    }
    let took = start.elapsed();
    let client_cpu = proc::cpu_self()?.saturating_sub(client_before);
    let server_cpu = server.cpu_since(&server_before)?;
    all.latencies.sort_unstable();
    Ok(Load {
        objects: lab.size,
        took,
        latencies: all.latencies,
        sent: all.sent,
        returned: all.returned,
        server_cpu,
        client_cpu,
    })
}

/// Lets the clients of `lab` do numbered pieces of work, each client one after the other.
async fn in_turn<T, F, W>(lab: &Lab, server: &Instance, pieces: usize, work: F) -> Result<Vec<T>, Error>
where
    T: Send + 'static,
    F: Fn(Client, usize) -> W + Send + Sync + 'static,
    W: Future<Output = Result<(Client, T), Error>> + Send,
{
    let (next, work) = (Arc::new(AtomicUsize::new(0)), Arc::new(work));
    let mut running = JoinSet::new();
    for _ in 0..lab.clients.min(pieces) {
        let mut client = Client::connect(&server.target, lab.protocol).await?;
        let (next, work) = (next.clone(), work.clone());
        running.spawn(async move {
            let mut done = Vec::new();
            loop {
                let piece = next.fetch_add(1, Ordering::Relaxed);
                if piece >= pieces {
                    return Ok::<_, Error>(done);
                }
                let (again, result) = work(client, piece).await?;
                client = again;
                done.push(result);
            }
        });
    }
    let mut all = Vec::new();
    while let Some(ended) = running.join_next().await {
        all.extend(ended.map_err(|e| Error::Connection(e.to_string()))??);
    }
    Ok(all)
}

async fn create_one(client: &mut Client, made: Made, depth: Depth, tally: &mut Tally) -> Result<(), Error> {
    tally.sent += made.body.len();
    let start = Instant::now();
    let mut answer = client.post(&made.path, made.body).await?.expect("create", &[201])?;
    tally.latencies.push(start.elapsed());
    let path = format!("{}/{}", made.path, made.name);
    if let Some(status) = made.status.filter(|_| depth != Depth::Created) {
        tally.sent += status.len();
        let path = match depth {
            Depth::Owned => format!("{path}/status?fieldManager={STATUS_MANAGER}"),
            Depth::Created | Depth::Whole => format!("{path}/status"),
        };
        answer = client.patch(&path, status).await?.expect("patch status", &[200])?;
    }
    match depth {
        Depth::Created => {}
        Depth::Whole if contains(&answer.body, b"\"managedFields\":[") => {
            let none = Bytes::from_static(br#"{"metadata":{"managedFields":[{}]}}"#);
            answer = client.patch(&path, none).await?.expect("drop managedFields", &[200])?;
        }
        Depth::Whole => {}
        Depth::Owned => {
            let (manager, annotation) = ANNOTATION;
            tally.sent += annotation.len();
            let path = format!("{path}?fieldManager={manager}");
            answer = client
                .patch(&path, Bytes::from_static(annotation.as_bytes()))
                .await?
                .expect("annotate", &[200])?;
        }
    }
    tally.returned += answer.body.len();
    Ok(())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Counts the objects on the server, in pages of their metadata.
async fn count(lab: &Lab, target: &RestConfig) -> Result<usize, Error> {
    const ACCEPT: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let mut client = Client::connect(target, Protocol::Http1).await?;
    let mut count = 0;
    let mut token = String::new();
    loop {
        // What servers make by themselves, as the root certificates of namespaces, has no such label.
        let path = format!("{}?labelSelector=tier&limit=1000&continue={token}", lab.objects.path());
        let page =
            client.send(hyper::Method::GET, &path, ACCEPT, Bytes::new()).await?.expect("list", &[200])?;
        let page: serde_json::Value = serde_json::from_slice(&page.body)
            .map_err(|e| Error::Answer { what: "list".into(), answer: e.to_string() })?;
        count += page["items"].as_array().map_or(0, Vec::len);
        match page["metadata"]["continue"].as_str() {
            None | Some("") => return Ok(count),
            Some(more) => token = more.to_owned(),
        }
    }
}

/// Makes sure that the server has the objects of `lab`, no more and no less.
pub async fn expect_all(lab: &Lab, target: &RestConfig) -> Result<(), Error> {
    match count(lab, target).await? {
        found if found == lab.size => Ok(()),
        found => Err(Error::Answer {
            what: format!("{} objects were acknowledged", lab.size),
            answer: format!("{found} are listed"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_latency_that_so_many_did_not_exceed() {
        let ms = |n| Duration::from_millis(n);
        let load = |n: u64| Load {
            objects: n as usize,
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
