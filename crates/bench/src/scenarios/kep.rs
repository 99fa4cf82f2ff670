//! The shapes of KEP-3157 and KEP-2340: large Secrets read by ever more raw clients at once, and many small
//! objects.
//!
//! In: a contender. Out: growth for each number of readers, what they got, and what is left after. The
//! readers hash what they get and keep nothing of it. Never: a retry; who was refused is counted.

use std::hash::Hasher as _;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Method;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::client::{Client, Protocol, RestConfig};
use crate::contender::Contender;
use crate::lab::Lab;
use crate::report::{Measurements, Unit, add, mib, ms};
use crate::sampler::Sampler;
use crate::scenarios::memory::add_resident;
use crate::series::Phase;
use crate::server::Instance;
use crate::{Error, load};

const SECRETS: &str = "/api/v1/namespaces/bench-00/secrets";
const RUNS: usize = 1;
const READ_MAX: Duration = Duration::from_secs(180);

/// So many objects of so many bytes, and how many clients read them all at once.
struct Shape {
    objects: usize,
    bytes: usize,
    readers: &'static [usize],
}

/// 400 Secrets of 1 MB, 16 to 1,024 readers.
const LARGE: Shape = Shape { objects: 400, bytes: 1_000_000, readers: &[16, 64, 256, 1_024] };
/// 300,000 objects of 1 KB, and 300 of 1 MB.
const MANY: Shape = Shape { objects: 300_000, bytes: 1_000, readers: &[1, 10] };
const FEW: Shape = Shape { objects: 300, bytes: 1_000_000, readers: &[1, 10] };

const WRITERS: usize = 8;

pub(super) fn about_3157(lab: &Lab) -> String {
    format!("{}; {} runs", LARGE.of(lab).about(), lab.runs(RUNS))
}

pub(super) fn about_2340(lab: &Lab) -> String {
    format!("{}; then {}; {} runs", MANY.of(lab).about(), FEW.of(lab).about(), lab.runs(RUNS))
}

pub(super) async fn run_3157(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    run(lab, who, &[LARGE]).await
}

pub(super) async fn run_2340(lab: &Lab, who: &Contender) -> Result<Measurements, Error> {
    run(lab, who, &[MANY, FEW]).await
}

async fn run(lab: &Lab, who: &Contender, shapes: &[Shape]) -> Result<Measurements, Error> {
    let mut metrics = Measurements::new();
    for _ in 0..lab.runs(RUNS) {
        for shape in shapes.iter().map(|shape| shape.of(lab)) {
            let (_dir, server) = load::start(lab, who).await?;
            shape.fill(&server).await?;
            tokio::time::sleep(lab.settle).await;
            let name = format!("{} of {} B", shape.objects, shape.bytes);
            add_resident(&mut metrics, &format!("{name}: resident loaded"), &server)?;
            for readers in shape.readers {
                shape.read(&mut metrics, lab, &server, *readers).await?;
            }
            tokio::time::sleep(lab.settle).await;
            add_resident(&mut metrics, &format!("{name}: resident after"), &server)?;
            server.stop().await?;
        }
    }
    Ok(metrics)
}

impl Shape {
    /// The same, or less of it where the lab is small.
    fn of(&self, lab: &Lab) -> Shape {
        match lab.size < LARGE.objects {
            true => Shape { objects: lab.size, bytes: self.bytes / 100, readers: &[4] },
            false => Shape { ..*self },
        }
    }

    fn about(&self) -> String {
        format!("{} Secrets of {} B, read at once by {:?} clients", self.objects, self.bytes, self.readers)
    }

    async fn fill(&self, server: &Instance) -> Result<(), Error> {
        let mut writers = JoinSet::new();
        for first in 0..WRITERS.min(self.objects) {
            let (target, objects, bytes) = (server.target.clone(), self.objects, self.bytes);
            writers.spawn(async move {
                let mut client = Client::connect(&target, Protocol::Http1).await?;
                for index in (first..objects).step_by(WRITERS) {
                    client.post(SECRETS, secret(index, bytes)).await?.expect("create secret", &[201])?;
                }
                Ok::<(), Error>(())
            });
        }
        while let Some(ended) = writers.join_next().await {
            ended.map_err(|e| Error::Connection(e.to_string()))??;
        }
        Ok(())
    }

    async fn read(
        &self,
        metrics: &mut Measurements,
        lab: &Lab,
        server: &Instance,
        readers: usize,
    ) -> Result<(), Error> {
        let name = |what: &str| format!("{} of {} B, {readers} readers: {what}", self.objects, self.bytes);
        let sampler = Sampler::start(server)?;
        let (start, mut running) = (Instant::now(), JoinSet::new());
        for _ in 0..readers {
            running.spawn(timeout(READ_MAX, read_once(server.target.clone(), lab.protocol)));
        }
        let (mut whole, mut refused, mut lost, mut bytes) = (0, 0, 0, 0);
        while let Some(ended) = running.join_next().await {
            match ended.map_err(|e| Error::Connection(e.to_string()))? {
                Ok(Ok((200, read))) if read >= self.objects * self.bytes => {
                    (whole, bytes) = (whole + 1, bytes + read)
                }
                Ok(Ok((429, _))) => refused += 1,
                _ => lost += 1,
            }
        }
        let took = start.elapsed();
        let series = sampler.finish()?;
        add(metrics, &name("growth"), Unit::MiB, mib(series.growth(Phase::Load).unwrap_or(0)));
        add(metrics, &name("took"), Unit::Milliseconds, ms(took));
        add(metrics, &name("throughput"), Unit::MiBPerSecond, mib(bytes as u64) / took.as_secs_f64());
        add(metrics, &name("LISTs whole"), Unit::Count, f64::from(whole));
        add(metrics, &name("LISTs refused with 429"), Unit::Count, f64::from(refused));
        add(metrics, &name("LISTs lost"), Unit::Count, f64::from(lost));
        Ok(())
    }
}

/// A Secret whose bytes do not compress, of about so many.
fn secret(index: usize, bytes: usize) -> Bytes {
    let mut state = index as u64 + 0x9e37_79b9_7f4a_7c15;
    let noise: String = (0..bytes / 4 * 4)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + (state >> 59) as u8 % 26)
        })
        .collect();
    let meta = format!(r#""metadata":{{"name":"kep-{bytes}-{index}"}}"#);
    Bytes::from(format!(r#"{{"apiVersion":"v1","kind":"Secret",{meta},"data":{{"k":"{noise}"}}}}"#))
}

/// The status, and how many bytes there were, all of which went into a hash.
async fn read_once(target: RestConfig, protocol: Protocol) -> Result<(u16, usize), Error> {
    let mut client = Client::connect(&target, protocol).await?;
    let response = client.start(Method::GET, "/api/v1/secrets", "application/json", Bytes::new()).await?;
    let status = response.status().as_u16();
    let (mut body, mut bytes) = (response.into_body(), 0);
    let mut hash = std::collections::hash_map::DefaultHasher::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| Error::Connection(e.to_string()))?;
        let data = frame.data_ref().map_or(&[][..], |data| data);
        bytes += data.len();
        hash.write(data);
    }
    std::hint::black_box(hash.finish());
    Ok((status, bytes))
}
