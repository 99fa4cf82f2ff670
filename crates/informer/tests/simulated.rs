//! An informer of a server that is simulated with all that may go wrong, against a model.
//!
//! In: a seed for each run, time that passes when nobody has anything to do. Out: what the informer shows and
//! tells, held against the server's history. Never: real time, a real connection.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress};
use forebay_informer::{
    Encoding, Factory, Handle, Informer, Notice, Options, Revision, Subscription, Watched,
};
use forebay_rt::{Clock, Random};
use forebay_schema::builtin::codec::normalize;
use forebay_schema::builtin::protobuf::{Envelope, encode, open_watch_frame};
use forebay_schema::builtin::table;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

/// Rounds of writing and looking in each run.
const ROUNDS: u64 = 60;
/// Changes that the server remembers.
const HISTORY: usize = 12;
/// Names that objects have.
const NAMES: u64 = 8;

type State = BTreeMap<String, u64>;

/// A server with one collection.
struct Server {
    random: Random,
    /// Answers are in it, whatever is asked for.
    is_protobuf: bool,
    inner: Mutex<Inner>,
    changed: watch::Sender<u64>,
}

struct Inner {
    revision: u64,
    state: State,
    // What changed, oldest first: revision, name, and whether it is gone.
    log: VecDeque<(u64, String, &'static str)>,
    oldest: u64,
    // Every state that there was.
    history: BTreeMap<u64, State>,
    // Of 16 things, how many go wrong.
    trouble: u64,
    // How often it was put back: streams of before end.
    restored: u64,
}

impl Server {
    fn new(seed: u64, is_protobuf: bool) -> Arc<Server> {
        let inner = Inner {
            revision: 10,
            state: State::new(),
            log: VecDeque::new(),
            oldest: 10,
            history: BTreeMap::from([(10, State::new())]),
            trouble: 0,
            restored: 0,
        };
        let changed = watch::Sender::new(0);
        Arc::new(Server { random: Random::seeded(seed), is_protobuf, inner: Mutex::new(inner), changed })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes something; its name and revision.
    fn write(&self) -> (String, u64) {
        let name = format!("map-{}", self.random.below(NAMES));
        let mut inner = self.lock();
        inner.revision += 1 + self.random.below(3);
        let revision = inner.revision;
        let kind = match inner.state.contains_key(&name) {
            true if self.random.below(3) == 0 => "DELETED",
            true => "MODIFIED",
            false => "ADDED",
        };
        match kind {
            "DELETED" => drop(inner.state.remove(&name)),
            _ => drop(inner.state.insert(name.clone(), revision)),
        }
        inner.log.push_back((revision, name.clone(), kind));
        if inner.log.len() > HISTORY
            && let Some((gone, ..)) = inner.log.pop_front()
        {
            inner.oldest = gone;
        }
        let state = inner.state.clone();
        inner.history.insert(revision, state);
        drop(inner);
        self.changed.send_modify(|times| *times += 1);
        (name, revision)
    }

    /// Puts it back to an earlier state.
    fn restore(&self) {
        let mut inner = self.lock();
        let behind = self.random.below(inner.history.len() as u64) as usize;
        let Some((revision, state)) =
            inner.history.iter().nth(behind).map(|(at, state)| (*at, state.clone()))
        else {
            return;
        };
        inner.history.retain(|at, _| *at <= revision);
        (inner.revision, inner.state, inner.oldest) = (revision, state, revision);
        inner.log.clear();
        inner.restored += 1;
        drop(inner);
        self.changed.send_modify(|times| *times += 1);
    }

    fn goes_wrong(&self) -> bool {
        let trouble = self.lock().trouble;
        self.random.below(16) < trouble
    }

    fn answer(self: &Arc<Server>, target: &str) -> io::Result<Response<Stream>> {
        let query = |name: &str| {
            let pairs = target.split_once('?').map_or("", |(_, query)| query).split('&');
            pairs
                .filter_map(|pair| pair.split_once('='))
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value)
        };
        if self.goes_wrong() {
            return match self.random.below(6) {
                0 => Err(io::ErrorKind::ConnectionRefused.into()),
                1 => Err(io::ErrorKind::ConnectionReset.into()),
                2 => Ok(self.refused(429, "TooManyRequests")),
                3 => Ok(self.refused(500, "InternalError")),
                4 => Ok(self.refused(403, "Forbidden")),
                _ => Ok(self.refused(503, "ServiceUnavailable")),
            };
        }
        let after = query("resourceVersion").and_then(|revision| revision.parse::<u64>().ok());
        if query("watch").is_none() {
            return Ok(self.list(query("limit").and_then(|limit| limit.parse().ok()), query("continue")));
        }
        let (current, oldest) = {
            let inner = self.lock();
            (inner.revision, inner.oldest)
        };
        let whole = query("sendInitialEvents").is_some();
        match after {
            Some(after) if after > current => Ok(self.too_large()),
            Some(after) if !whole && after < oldest => Ok(self.refused(410, "Expired")),
            after => Ok(self.watch(after.filter(|_| !whole))),
        }
    }

    fn list(&self, limit: Option<usize>, next: Option<&str>) -> Response<Stream> {
        let inner = self.lock();
        let (revision, from) = match next.and_then(|next| next.split_once('.')) {
            Some((revision, from)) => (revision.parse().unwrap_or(0), from.parse().unwrap_or(0)),
            None => (inner.revision, 0),
        };
        let Some(state) = inner.history.get(&revision).filter(|_| revision >= inner.oldest) else {
            return self.refused(410, "Expired");
        };
        // Pages of three are enough for a server to be slow.
        let limit = limit.unwrap_or(usize::MAX).min(3);
        let items: Vec<Value> =
            state.iter().skip(from).take(limit).map(|(name, revision)| object(name, *revision)).collect();
        let more = from + items.len() < state.len();
        let next = if more { format!("{revision}.{}", from + items.len()) } else { String::new() };
        let list = json!({
            "kind": "ConfigMapList", "apiVersion": "v1",
            "metadata": {"resourceVersion": revision.to_string(), "continue": next}, "items": items,
        });
        self.whole(StatusCode::OK, &list)
    }

    /// - `after`: `None` begins with the state.
    fn watch(self: &Arc<Server>, after: Option<u64>) -> Response<Stream> {
        let (give, take) = mpsc::channel(4);
        let server = self.clone();
        let mut response = self.response(take);
        let zip = (self.random.below(4) > 0).then(|| Zip::new(self.random.below(3) > 0));
        if zip.is_some() {
            response.headers_mut().insert(CONTENT_ENCODING, "gzip".parse().expect("a value"));
        }
        let mut give = Give { give, zip };
        tokio::spawn(async move {
            // Whoever listened is gone, or the stream was cut as it was to be.
            if let Ok(()) = server.tell(after, &mut give).await {
                let _gone = give.end().await;
            }
        });
        response
    }

    fn response(&self, take: mpsc::Receiver<Piece>) -> Response<Stream> {
        let mut response = Response::new(StreamBody::new(Pieces(take)));
        let media = match self.is_protobuf {
            false => "application/json",
            true => "application/vnd.kubernetes.protobuf",
        };
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
        response
    }

    fn refused(&self, code: u16, reason: &str) -> Response<Stream> {
        self.whole(StatusCode::from_u16(code).unwrap_or_default(), &status(code, reason))
    }

    fn too_large(&self) -> Response<Stream> {
        let mut status = status(504, "Timeout");
        status["details"] = json!({"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]});
        self.whole(StatusCode::GATEWAY_TIMEOUT, &status)
    }

    fn whole(&self, code: StatusCode, body: &Value) -> Response<Stream> {
        let (give, take) = mpsc::channel(1);
        let text = match self.is_protobuf {
            false => body.to_string().into_bytes(),
            true => message(body),
        };
        // There is room for one.
        let _given = give.try_send(Ok(Frame::data(Bytes::from(text))));
        let mut response = self.response(take);
        *response.status_mut() = code;
        response
    }

    /// An event as it is sent.
    fn written(&self, event: &Value) -> Vec<u8> {
        match self.is_protobuf {
            false => (event.to_string() + "\n").into_bytes(),
            true => {
                let (object, mut frame) = (message(&event["object"]), Vec::new());
                open_watch_frame(event["type"].as_str().expect("a type"), object.len(), &mut frame);
                [frame, object].concat()
            }
        }
    }

    async fn tell(&self, after: Option<u64>, give: &mut Give) -> Result<(), ()> {
        let mut changed = self.changed.subscribe();
        // There may be something after `after` already.
        changed.mark_changed();
        let (mut at, restored, mut lines) = {
            let inner = self.lock();
            let at = after.unwrap_or(inner.revision);
            let mut lines = Vec::new();
            if after.is_none() {
                let added = |(name, revision): (&String, &u64)| {
                    self.written(&event("ADDED", object(name, *revision)))
                };
                let objects: Vec<Vec<u8>> = inner.state.iter().map(added).collect();
                // Together, as blocks are, or one by one.
                match self.random.below(3) {
                    0 => lines.extend(objects),
                    _ => lines.push(objects.concat()),
                }
                lines.push(self.written(&event("BOOKMARK", bookmark(inner.revision, true))));
            }
            (at, inner.restored, lines)
        };
        // It asks to be served for minutes, and is for one.
        let clock = Clock::system();
        let end = clock.now() + Duration::from_secs(60);
        loop {
            for text in lines.drain(..) {
                self.give(&text, give).await?;
            }
            tokio::select! {
                biased;
                gone = changed.changed() => gone.map_err(drop)?,
                () = clock.sleep_until(end) => return Ok(()),
            }
            let inner = self.lock();
            if inner.restored != restored {
                return Ok(());
            }
            if at < inner.oldest {
                lines.push(self.written(&error(410, "Expired")));
                continue;
            }
            for (revision, name, kind) in inner.log.iter().filter(|(revision, ..)| *revision > at) {
                lines.push(self.written(&event(kind, object(name, *revision))));
            }
            at = inner.revision;
            drop(inner);
            if self.random.below(4) == 0 {
                lines.push(self.written(&event("BOOKMARK", bookmark(at, false))));
            }
        }
    }

    async fn give(&self, text: &[u8], give: &mut Give) -> Result<(), ()> {
        if !self.goes_wrong() {
            return give.send(text).await;
        }
        match self.random.below(6) {
            0 => {}
            1 => give.send(&text[..text.len() / 2]).await?,
            2 => {
                let cut = Err(io::ErrorKind::ConnectionReset.into());
                give.give.send(cut).await.map_err(drop)?;
            }
            3 => give.send(&self.written(&error(500, "InternalError"))).await?,
            4 => give.send(&self.written(&error(410, "Expired"))).await?,
            // It says nothing more, and does not end.
            _ => give.give.closed().await,
        }
        Err(())
    }
}

/// What a stream is written to.
struct Give {
    give: mpsc::Sender<Piece>,
    zip: Option<Zip>,
}

/// A member of gzip.
struct Zip {
    coder: Compress,
    sum: Crc,
    has_begun: bool,
    // Whether each text is deflated by itself.
    in_runs: bool,
}

impl Zip {
    fn new(in_runs: bool) -> Zip {
        Zip { coder: Compress::new(Compression::fast(), false), sum: Crc::new(), has_begun: false, in_runs }
    }

    fn text(&mut self, text: &[u8], flush: FlushCompress) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len() + 1_000);
        if !std::mem::replace(&mut self.has_begun, true) {
            out.extend([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255]);
        }
        self.coder.compress_vec(text, &mut out, flush).expect("there is room");
        self.sum.update(text);
        out
    }
}

impl Give {
    async fn send(&mut self, text: &[u8]) -> Result<(), ()> {
        let text = match &mut self.zip {
            Some(zip) if zip.in_runs => zip.text(text, FlushCompress::Full),
            Some(zip) => zip.text(text, FlushCompress::Sync),
            None => text.to_vec(),
        };
        // As packets come, which know nothing of texts.
        for piece in text.chunks(900) {
            self.give.send(Ok(Frame::data(Bytes::copy_from_slice(piece)))).await.map_err(drop)?;
        }
        Ok(())
    }

    async fn end(mut self) -> Result<(), ()> {
        let Some(zip) = &mut self.zip else { return Ok(()) };
        let mut text = zip.text(b"", FlushCompress::Finish);
        text.extend([zip.sum.sum().to_le_bytes(), zip.sum.amount().to_le_bytes()].concat());
        self.give.send(Ok(Frame::data(Bytes::from(text)))).await.map_err(drop)
    }
}

type Piece = io::Result<Frame<Bytes>>;
type Stream = StreamBody<Pieces>;

/// What comes of a channel.
struct Pieces(mpsc::Receiver<Piece>);

impl futures_util::Stream for Pieces {
    type Item = Piece;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Piece>> {
        self.0.poll_recv(context)
    }
}

fn object(name: &str, revision: u64) -> Value {
    // So that half of them are enough for a block.
    let note = "the same in all of them ".repeat(400);
    json!({
        "data": {"note": note},
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "here", "uid": name, "resourceVersion": revision.to_string()},
    })
}

fn bookmark(revision: u64, ends_state: bool) -> Value {
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if ends_state {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata})
}

fn event(kind: &str, object: Value) -> Value {
    json!({"type": kind, "object": object})
}

fn error(code: u16, reason: &str) -> Value {
    event("ERROR", status(code, reason))
}

/// An object, a Status or a list as a body of protobuf.
fn message(object: &Value) -> Vec<u8> {
    let of = |member: &str| object[member].as_str().expect("it says its type");
    let (kind, api_version) = (of("kind"), of("apiVersion"));
    let ty = table().kind("", api_version, kind).expect("a kind").ty;
    let (mut canonical, mut message, mut body) = (object.clone(), Vec::new(), Vec::new());
    normalize(ty, &mut canonical).expect("it is of its kind");
    encode(ty, &canonical, &mut message).expect("canonical");
    Envelope::new(api_version, kind).write(&message, &mut body);
    body
}

fn status(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason})
}

fn informer(server: &Arc<Server>, seed: u64) -> (Factory, Informer<ConfigMap>) {
    let encoding = if server.is_protobuf { Encoding::Protobuf } else { Encoding::Json };
    let asked = server.clone();
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let answer = asked.answer(&request.uri().to_string());
        async move { answer }
    });
    let client = kube::Client::new(service, "here");
    let options = Options { random: Random::seeded(seed), rate: None, encoding, ..Options::default() };
    let factory = Factory::new(client, options);
    let informer = factory.informer(&Watched::<ConfigMap>::all().namespace("here")).expect("no index");
    (factory, informer)
}

/// One who listens, and what its tale adds up to.
struct Tale {
    subscription: Subscription<ConfigMap>,
    told: State,
}

impl Tale {
    fn new(informer: &Informer<ConfigMap>) -> Tale {
        Tale { subscription: informer.subscribe(), told: State::new() }
    }

    /// Takes all that there is now.
    fn listen(&mut self, seed: u64) {
        while let Some(notice) = self.subscription.try_next() {
            let of = |map: &Handle<ConfigMap>| (map.name().to_owned(), map.revision().get());
            match notice {
                Notice::Added(map) => {
                    let (name, revision) = of(&map);
                    assert_eq!(self.told.insert(name, revision), None, "seed {seed}: it was there");
                }
                Notice::Updated { old, new } => {
                    let (name, revision) = of(&new);
                    let before = self.told.insert(name, revision);
                    assert_eq!(before, Some(old.revision().get()), "seed {seed}: the last that was told");
                    assert_ne!(before, Some(revision), "seed {seed}: nothing happened to it");
                }
                Notice::Deleted(map) => {
                    let (name, revision) = of(&map);
                    assert_eq!(self.told.remove(&name), Some(revision), "seed {seed}: its last state");
                }
                Notice::Synced | Notice::Relisted { .. } | Notice::LetGo { .. } | Notice::Resync(_) => {}
                Notice::Ended => panic!("seed {seed}: it ended"),
            }
        }
    }
}

fn shown(informer: &Informer<ConfigMap>) -> Option<(u64, State)> {
    let view = informer.view().ok()?;
    let objects = view.iter().map(|map| (map.name().to_owned(), map.revision().get())).collect();
    Some((view.revision()?.get(), objects))
}

/// - `is_restored`: whether the server is put back now and then.
async fn run(seed: u64, is_protobuf: bool, is_restored: bool) {
    let server = Server::new(seed, is_protobuf);
    let random = Random::seeded(seed ^ 0x5eed);
    let clock = Clock::system();
    let (_factory, informer) = informer(&server, seed);
    let (mut quick, mut slow) = (Tale::new(&informer), Tale::new(&informer));
    for round in 0..ROUNDS {
        server.lock().trouble = random.below(6);
        for _ in 0..random.below(4) {
            let (name, revision) = server.write();
            if random.below(4) == 0 {
                let revision = Revision::new(revision).expect("not 0");
                let deadline = clock.now() + Duration::from_secs(random.below(40));
                // A server in trouble may be too late for it; what is promised is that what is shown is not
                // older.
                if let Ok(view) = informer.wait_until(revision, deadline).await {
                    assert!(view.revision() >= Some(revision), "seed {seed}, round {round}");
                    let held = view.get("here", &name).map(|map| map.revision());
                    assert!(
                        held.is_none_or(|held| held >= revision),
                        "seed {seed}, round {round}: {name} {held:?}"
                    );
                }
            }
        }
        if is_restored && random.below(12) == 0 {
            server.restore();
            // As long as nothing is written, its revisions have one meaning.
            let end = clock.now() + Duration::from_secs(1200);
            while shown(&informer).is_some_and(|(at, _)| at > server.lock().revision) {
                assert!(clock.now() < end, "seed {seed}: it was not noticed; {:?}", informer.health());
                clock.sleep(Duration::from_secs(1)).await;
            }
        }
        clock.sleep(Duration::from_millis(random.below(20_000))).await;
        if let Some((at, objects)) = shown(&informer)
            && !is_restored
        {
            let inner = server.lock();
            let (_, there) = inner.history.range(..=at).next_back().expect("the first state");
            assert_eq!(&objects, there, "seed {seed}, round {round}: the state at {at}");
        }
        quick.listen(seed);
        if random.below(16) == 0 {
            slow.listen(seed);
        }
    }
    server.lock().trouble = 0;
    server.write();
    let end = clock.now() + Duration::from_secs(1200);
    loop {
        let there = {
            let inner = server.lock();
            (inner.revision, inner.state.clone())
        };
        if shown(&informer).as_ref() == Some(&there) {
            break;
        }
        assert!(
            clock.now() < end,
            "seed {seed}: {:?} is not {there:?} at {:?}; {:?} {:?}",
            shown(&informer),
            clock.now(),
            informer.health(),
            informer.stats()
        );
        clock.sleep(Duration::from_secs(1)).await;
    }
    let there = server.lock().state.clone();
    for tale in [&mut quick, &mut slow] {
        tale.listen(seed);
        assert_eq!(tale.told, there, "seed {seed}");
    }
    let (_, stats) = &informer.stats()[0];
    assert_eq!(stats.protobuf_answers > 0, is_protobuf, "seed {seed}: it stays as asked for");
    assert!(informer.health().failing.is_none(), "seed {seed}: {:?}", informer.health());
}

#[tokio::test(start_paused = true)]
async fn what_is_shown_is_a_state_that_there_was_and_no_event_is_lost_or_told_twice() {
    for seed in 0..200 {
        run(seed, false, false).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_put_back_is_followed_there() {
    for seed in 1000..1100 {
        run(seed, false, true).await;
    }
}

#[tokio::test(start_paused = true)]
async fn all_of_it_holds_in_protobuf() {
    for seed in 2000..2100 {
        run(seed, true, seed % 2 == 0).await;
    }
}
