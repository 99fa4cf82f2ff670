//! Updates of the objects of a lab, one of each in turn.
//!
//! In: a server that has them, how many updates, how many clients write at once. Out: the newest revision.
//! Never: an update that changes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;

use crate::Error;
use crate::caller::Caller;
use crate::client::{Client, Protocol};
use crate::lab::Lab;
use crate::server::Instance;

/// Longest wait for an update by a user.
const UPDATE_MAX: Duration = Duration::from_secs(10);

/// Where the objects are, and how many updates were made.
#[derive(Debug)]
pub struct Updated {
    paths: Vec<String>,
    made: AtomicUsize,
}

impl Updated {
    /// Those of `lab`, as [`crate::load`] creates them.
    pub fn of(lab: &Lab) -> Arc<Updated> {
        let batches = 0..lab.objects.batches(lab.size);
        let all = batches.flat_map(|batch| lab.objects.batch(batch, lab.size, ""));
        let paths = all.map(|made| format!("{}/{}", made.path, made.name)).collect();
        Arc::new(Updated { paths, made: AtomicUsize::new(0) })
    }

    async fn update(&self, client: &mut Client) -> Result<u64, Error> {
        let (path, patch) = self.next();
        let done = client.patch(path, Bytes::from(patch)).await?.expect("patch", &[200])?;
        revision(&done.body)
    }

    /// An update by a user, of the next object in turn; its revision.
    pub async fn by(&self, caller: &mut Caller) -> Result<u64, Error> {
        let (path, patch) = self.next();
        let done = caller.patch(path, patch, UPDATE_MAX).await?.expect("patch", &[200])?;
        revision(&done.body)
    }

    fn next(&self) -> (&str, String) {
        let serial = self.made.fetch_add(1, Ordering::Relaxed);
        let patch = format!(r#"{{"metadata":{{"annotations":{{"serial":"{serial}"}}}}}}"#);
        (&self.paths[serial % self.paths.len()], patch)
    }
}

/// Makes `count` updates by so many `writers`.
pub async fn write(
    objects: &Arc<Updated>,
    server: &Instance,
    count: usize,
    writers: usize,
) -> Result<u64, Error> {
    let mut writing = JoinSet::new();
    let left = Arc::new(AtomicUsize::new(count));
    for _ in 0..writers.min(count) {
        let mut client = Client::connect(&server.target, Protocol::Http1).await?;
        let (left, objects) = (left.clone(), objects.clone());
        writing.spawn(async move {
            let mut newest = 0;
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
            {
                newest = objects.update(&mut client).await?.max(newest);
            }
            Ok::<u64, Error>(newest)
        });
    }
    let mut newest = 0;
    while let Some(ended) = writing.join_next().await {
        newest = ended.map_err(|e| Error::Connection(e.to_string()))??.max(newest);
    }
    Ok(newest)
}

fn revision(body: &[u8]) -> Result<u64, Error> {
    let odd = |why: &str| Error::Answer { what: "a resourceVersion".into(), answer: why.into() };
    let object: serde_json::Value = serde_json::from_slice(body).map_err(|e| odd(&e.to_string()))?;
    let said = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    said.parse().map_err(|_| odd(said))
}
