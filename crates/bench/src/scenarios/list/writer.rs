//! Somebody who writes while others read.
//!
//! In: a server with the objects of a lab. Out: so many updates a second, of objects here and there, until
//! stopped. Never: an update that failed without a word.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::Error;
use crate::client::{Client, RestConfig};
use crate::draw::Draw;
use crate::lab::Lab;
use crate::objects::Objects;

/// Updates a second, unless a scenario is told otherwise.
pub const RATE: u32 = 20;

/// A task that writes.
#[derive(Debug)]
pub struct Writer {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), Error>>,
}

impl Writer {
    /// - `rate`: updates a second, if the server keeps up.
    pub async fn start(lab: &Lab, target: &RestConfig, rate: u32) -> Result<Writer, Error> {
        let client = Client::connect(target, lab.protocol).await?;
        let (stop, stopped) = oneshot::channel();
        Ok(Writer { stop, task: tokio::spawn(write(client, (lab.objects, lab.size), rate, stopped)) })
    }

    /// Ends it, and says how it went.
    pub async fn stop(self) -> Result<(), Error> {
        let _ = self.stop.send(());
        self.task.await.map_err(|e| Error::Connection(e.to_string()))?
    }
}

async fn write(
    mut client: Client,
    (objects, size): (Objects, usize),
    rate: u32,
    mut stopped: oneshot::Receiver<()>,
) -> Result<(), Error> {
    let mut tick = tokio::time::interval(Duration::from_secs(1) / rate);
    let mut draw = Draw::of("updates", 0);
    for number in 0_u64.. {
        tokio::select! {
            _ = &mut stopped => break,
            _ = tick.tick() => {}
        }
        let path = some_path(objects, size, &mut draw);
        let body = format!(r#"{{"metadata":{{"annotations":{{"touched.example.com/at":"{number}"}}}}}}"#);
        client.patch(&path, Bytes::from(body)).await?.expect("update", &[200])?;
    }
    Ok(())
}

/// Path of one of the objects.
pub fn some_path(objects: Objects, size: usize, draw: &mut Draw) -> String {
    let batch = objects.batch(draw.below(objects.batches(size)), size, "");
    let made = &batch[draw.below(batch.len())];
    format!("{}/{}", made.path, made.name)
}
