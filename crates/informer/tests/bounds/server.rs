//! A server with one collection of ConfigMaps in each namespace, whose data is long and like nothing else.
//!
//! In: what is there, and how it is to behave. Out: answers; what it was asked for. Never: real time, a real
//! connection, a second thread.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use forebay_informer::{Encoding, Factory, Informer, Options, Watched};
use forebay_rt::{BlockingAsTasks, Clock, Instant, Random};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

type Piece = io::Result<Frame<Bytes>>;
pub type Stream = StreamBody<Pieces>;

/// Bytes of an object's data.
pub const DATA_BYTES: usize = 4_000;

pub struct Server {
    inner: Mutex<Inner>,
    changed: watch::Sender<()>,
    clock: Clock,
    /// What an informer does aside is done here: the time of the test stands still meanwhile.
    _one_thread: BlockingAsTasks,
}

#[derive(Default)]
pub struct Inner {
    pub revision: u64,
    /// Name -> revision, in every namespace.
    pub objects: BTreeMap<String, u64>,
    /// Oldest first: revision, name, whether it is there.
    log: Vec<(u64, String, bool)>,
    /// Nobody listens, and what was open is cut.
    pub is_gone: bool,
    /// The next event of open watches comes by half, and then nothing.
    pub stalls: bool,
    /// When, and what for.
    pub asked: Vec<(Instant, String)>,
}

impl Server {
    /// - `objects`: how many there are.
    pub fn new(objects: usize) -> Arc<Server> {
        let server = Server {
            inner: Mutex::default(),
            changed: watch::Sender::new(()),
            clock: Clock::system(),
            _one_thread: BlockingAsTasks::on_this_thread(),
        };
        server.lock().revision = 10;
        for number in 0..objects {
            server.put(&format!("map-{number:05}"));
        }
        Arc::new(server)
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn put(&self, name: &str) -> u64 {
        let mut inner = self.lock();
        inner.revision += 1;
        let revision = inner.revision;
        inner.objects.insert(name.into(), revision);
        inner.log.push((revision, name.into(), true));
        drop(inner);
        self.changed.send_replace(());
        revision
    }

    pub fn delete(&self, name: &str) {
        let mut inner = self.lock();
        inner.revision += 1;
        let revision = inner.revision;
        inner.objects.remove(name);
        inner.log.push((revision, name.into(), false));
        drop(inner);
        self.changed.send_replace(());
    }

    pub fn be_gone(&self, is_gone: bool) {
        self.lock().is_gone = is_gone;
        self.changed.send_replace(());
    }

    /// Requests for a whole state.
    pub fn lists(&self) -> usize {
        let is_list = |target: &str| target.contains("sendInitialEvents") || !target.contains("watch=");
        self.lock().asked.iter().filter(|(_, target)| is_list(target)).count()
    }

    /// Informers of it: one factory.
    pub fn factory(self: &Arc<Server>, options: Options) -> Factory {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let answer = server.answer(&request.uri().to_string());
            async move { answer }
        });
        Factory::new(
            kube::Client::new(service, "here"),
            Options {
                encoding: Encoding::Json,
                random: Random::seeded(1),
                // What is quiet comes to rest by the time of the test.
                clock: Clock::steady(1_000_000),
                ..options
            },
        )
    }

    fn answer(self: &Arc<Server>, target: &str) -> io::Result<Response<Stream>> {
        let mut inner = self.lock();
        inner.asked.push((self.clock.now(), target.into()));
        if inner.is_gone {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (_, query) = target.split_once('?').expect("a query");
        assert!(query.contains("watch=true"), "watch-lists are enough: {target}");
        let whole = query.contains("sendInitialEvents");
        let after = query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion="));
        let after = after.filter(|_| !whole).map(|after| after.parse::<u64>().expect("a revision"));
        let namespace = target.split('/').nth(4).expect("a namespace").to_owned();
        let (give, take) = mpsc::channel(4);
        let server = self.clone();
        tokio::spawn(async move {
            // Whoever listened is gone, or the stream was cut as it was to be.
            let _ended = server.tell(&namespace, after, &give).await;
        });
        Ok(Response::new(StreamBody::new(Pieces(take))))
    }

    async fn tell(&self, namespace: &str, after: Option<u64>, give: &mpsc::Sender<Piece>) -> Result<(), ()> {
        let mut changed = self.changed.subscribe();
        changed.mark_changed();
        let (mut at, state) = {
            let inner = self.lock();
            let state = after.is_none().then(|| inner.objects.clone());
            (after.unwrap_or(inner.revision), state)
        };
        if let Some(state) = state {
            for (name, revision) in state {
                send(give, &event("ADDED", object(namespace, &name, revision))).await?;
            }
            let mut end = json!({"kind": "ConfigMap", "apiVersion": "v1"});
            end["metadata"] = json!({
                "resourceVersion": at.to_string(), "annotations": {"k8s.io/initial-events-end": "true"},
            });
            send(give, &event("BOOKMARK", end)).await?;
        }
        loop {
            tokio::select! {
                biased;
                gone = changed.changed() => gone.map_err(drop)?,
                () = give.closed() => return Err(()),
            }
            let (told, is_gone, stalls) = {
                let inner = self.lock();
                let told: Vec<_> =
                    inner.log.iter().filter(|(revision, ..)| *revision > at).cloned().collect();
                (told, inner.is_gone, inner.stalls)
            };
            if is_gone {
                let cut = Err(io::ErrorKind::ConnectionReset.into());
                return give.send(cut).await.map_err(drop);
            }
            for (revision, name, is_there) in told {
                let line =
                    event(if is_there { "MODIFIED" } else { "DELETED" }, object(namespace, &name, revision));
                if stalls {
                    send(give, &line[..line.len() / 2]).await?;
                    give.closed().await;
                    return Err(());
                }
                send(give, &line).await?;
                at = revision;
            }
        }
    }
}

/// An informer of `namespace`.
pub fn informer(factory: &Factory, namespace: &str) -> Informer<ConfigMap> {
    factory.informer(&maps(namespace)).expect("no path")
}

pub fn maps(namespace: &str) -> Watched<ConfigMap> {
    Watched::all().namespace(namespace)
}

async fn send(give: &mpsc::Sender<Piece>, text: &str) -> Result<(), ()> {
    give.send(Ok(Frame::data(Bytes::copy_from_slice(text.as_bytes())))).await.map_err(drop)
}

fn event(kind: &str, object: Value) -> String {
    json!({"type": kind, "object": object}).to_string() + "\n"
}

fn object(namespace: &str, name: &str, revision: u64) -> Value {
    let random = Random::seeded(revision);
    let text: String = (0..DATA_BYTES / 16).map(|_| format!("{:016x}", random.next_u64())).collect();
    json!({
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {
            "name": name, "namespace": namespace, "uid": name, "labels": {"app": "web"},
            "resourceVersion": revision.to_string(),
        },
        "data": {"text": text, "short": name},
    })
}

/// What comes of a channel.
pub struct Pieces(mpsc::Receiver<Piece>);

impl futures_util::Stream for Pieces {
    type Item = Piece;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Piece>> {
        self.0.poll_recv(context)
    }
}
