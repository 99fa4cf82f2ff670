//! A KMS v2 plugin of tests: it answers over a Unix socket, as `v2.KeyManagementService` of gRPC.
//!
//! In: what a test says of its key, and of what goes wrong. Out: answers, and how often it was asked what.
//! What it encrypts is not secret: the key's name, and the text with each byte turned over. Never: code of
//! what is tested: it reads and writes protobuf by itself, and grpc-go speaks to it as well.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

/// See the module's doc. Dropped, it is gone with its socket.
#[derive(Debug)]
pub struct KmsPlugin {
    socket: PathBuf,
    state: Arc<Mutex<PluginState>>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct PluginState {
    key_id: String,
    /// What it does to these methods.
    mischief: Option<(KmsMischief, KmsMethods)>,
    healthz: String,
    /// It answers everything with this.
    failure: Option<(u32, String)>,
    /// What was encrypted under these is decrypted no more.
    forgotten: BTreeSet<String>,
    asked: AskedPlugin,
}

/// What it does where it should answer well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KmsMischief {
    /// Nothing, for ever.
    Hangs,
    /// It says one message of so many bytes, and sends them.
    Floods(u32),
    /// Its key is called otherwise in each answer.
    RenamesItsKey,
}

/// Which questions it does that to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KmsMethods {
    All,
    Decrypt,
}

/// How often it was asked what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskedPlugin {
    pub status: usize,
    pub encrypt: usize,
    pub decrypt: usize,
}

/// Where its key's name is told beside what it encrypts.
const ANNOTATION: &str = "plugin.example.com";

impl KmsPlugin {
    /// Listens at `socket` with the key `key_id`. To be called within a runtime.
    ///
    /// # Panics
    /// It cannot listen there.
    pub fn start(socket: &Path, key_id: &str) -> KmsPlugin {
        // Of one that was before.
        let _absent = std::fs::remove_file(socket);
        let listener = UnixListener::bind(socket).expect("a socket");
        let state = Arc::new(Mutex::new(PluginState {
            key_id: key_id.to_owned(),
            mischief: None,
            healthz: "ok".to_owned(),
            failure: None,
            forgotten: BTreeSet::new(),
            asked: AskedPlugin::default(),
        }));
        let shared = state.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, shared.clone()));
            }
        });
        KmsPlugin { socket: socket.to_owned(), state, task }
    }

    /// As a configuration names it.
    pub fn endpoint(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    /// It encrypts with `key_id` from now on, and decrypts what was encrypted before.
    pub fn use_key(&self, key_id: &str) {
        key_id.clone_into(&mut self.state().key_id);
    }

    /// It says so of itself.
    pub fn be(&self, healthz: &str) {
        healthz.clone_into(&mut self.state().healthz);
    }

    /// It answers everything with this status; with none, as it should.
    pub fn fail(&self, failure: Option<(u32, &str)>) {
        self.state().failure = failure.map(|(code, text)| (code, text.to_owned()));
    }

    /// It does this to these questions from now on.
    pub fn misbehave(&self, mischief: KmsMischief, methods: KmsMethods) {
        self.state().mischief = Some((mischief, methods));
    }

    /// It does well again.
    pub fn behave(&self) {
        self.state().mischief = None;
    }

    /// It is gone, with its connections and its socket, as one that crashed and was cleaned up after.
    pub fn die(&self) {
        self.task.abort();
        let _absent = std::fs::remove_file(&self.socket);
    }

    /// What was encrypted under `key_id` is decrypted no more.
    pub fn forget(&self, key_id: &str) {
        self.state().forgotten.insert(key_id.to_owned());
    }

    pub fn asked(&self) -> AskedPlugin {
        self.state().asked
    }

    fn state(&self) -> MutexGuard<'_, PluginState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for KmsPlugin {
    fn drop(&mut self) {
        self.die();
    }
}

async fn serve(stream: UnixStream, state: Arc<Mutex<PluginState>>) {
    let answer = service_fn(move |request| answer(request, state.clone()));
    let connection = http2::Builder::new(TokioExecutor::new());
    // Whoever goes away is gone.
    let _ended = connection.serve_connection(TokioIo::new(stream), answer).await;
}

async fn answer(
    request: Request<Incoming>,
    state: Arc<Mutex<PluginState>>,
) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = match request.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let message = body.get(5..).unwrap_or_default();
    let (mischief, answered) = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.mischief_to(&path), state.answer(&path, message))
    };
    match mischief {
        // Until the other side goes.
        Some(KmsMischief::Hangs) => std::future::pending().await,
        Some(KmsMischief::Floods(bytes)) => {
            let head = [&[0][..], &bytes.to_be_bytes()].concat();
            let flood = Flood { head: Some(head.into()), left: bytes as usize };
            return Ok(grpc(Response::new(flood.boxed())));
        }
        Some(KmsMischief::RenamesItsKey) | None => {}
    }
    let (data, code, text) = match answered {
        Ok(message) => {
            let mut data = vec![0];
            data.extend_from_slice(&(message.len() as u32).to_be_bytes());
            data.extend_from_slice(&message);
            (Bytes::from(data), 0, String::new())
        }
        Err((code, text)) => (Bytes::new(), code, text),
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(code));
    if let Ok(text) = HeaderValue::from_str(&text) {
        trailers.insert("grpc-message", text);
    }
    let body = Full::new(data).with_trailers(std::future::ready(Some(Ok(trailers))));
    Ok(grpc(Response::new(body.boxed())))
}

fn grpc(mut response: Response<BoxBody<Bytes, Infallible>>) -> Response<BoxBody<Bytes, Infallible>> {
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}

/// A message that is long.
struct Flood {
    head: Option<Bytes>,
    left: usize,
}

impl Body for Flood {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        static PIECE: [u8; 64 << 10] = [0; 64 << 10];
        if let Some(head) = self.head.take() {
            return Poll::Ready(Some(Ok(Frame::data(head))));
        }
        let piece = self.left.min(PIECE.len());
        self.left -= piece;
        Poll::Ready((piece > 0).then(|| Ok(Frame::data(Bytes::from_static(&PIECE[..piece])))))
    }
}

impl PluginState {
    fn mischief_to(&mut self, path: &str) -> Option<KmsMischief> {
        let (mischief, methods) = self.mischief?;
        let is_meant = methods == KmsMethods::All || path.ends_with("/Decrypt");
        if is_meant && mischief == KmsMischief::RenamesItsKey {
            let asked = self.asked.status + self.asked.encrypt + self.asked.decrypt;
            self.key_id = format!("key-{asked}");
        }
        is_meant.then_some(mischief)
    }

    fn answer(&mut self, path: &str, message: &[u8]) -> Result<Vec<u8>, (u32, String)> {
        let fields = fields(message);
        let field = |number| fields.iter().rev().find(|(of, _)| *of == number).map_or(&[][..], |(_, it)| *it);
        let mut out = Vec::new();
        match path {
            "/v2.KeyManagementService/Status" => self.asked.status += 1,
            "/v2.KeyManagementService/Encrypt" => self.asked.encrypt += 1,
            "/v2.KeyManagementService/Decrypt" => self.asked.decrypt += 1,
            _ => return Err((12, format!("unknown method {path}"))),
        }
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        match path {
            "/v2.KeyManagementService/Status" => {
                put(&mut out, 1, b"v2");
                put(&mut out, 2, self.healthz.as_bytes());
                put(&mut out, 3, self.key_id.as_bytes());
            }
            "/v2.KeyManagementService/Encrypt" => {
                let turned: Vec<u8> = field(1).iter().map(|byte| !byte).collect();
                let ciphertext = [self.key_id.as_bytes(), b":", &turned].concat();
                put(&mut out, 1, &ciphertext);
                put(&mut out, 2, self.key_id.as_bytes());
                let mut annotation = Vec::new();
                put(&mut annotation, 1, ANNOTATION.as_bytes());
                put(&mut annotation, 2, self.key_id.as_bytes());
                put(&mut out, 3, &annotation);
            }
            _ => {
                let key_id = String::from_utf8_lossy(field(3)).into_owned();
                if self.forgotten.contains(&key_id) {
                    return Err((5, format!("no key {key_id}")));
                }
                let annotation: Vec<(u64, Vec<u8>)> = inner(field(4));
                let is_told = annotation.iter().any(|(of, it)| *of == 2 && it == key_id.as_bytes());
                let head = format!("{key_id}:");
                let turned = field(1).strip_prefix(head.as_bytes()).filter(|_| is_told);
                let Some(turned) = turned else { return Err((3, "not encrypted here".to_owned())) };
                put(&mut out, 1, &turned.iter().map(|byte| !byte).collect::<Vec<u8>>());
            }
        }
        Ok(out)
    }
}

fn inner(message: &[u8]) -> Vec<(u64, Vec<u8>)> {
    fields(message).into_iter().map(|(number, bytes)| (number, bytes.to_vec())).collect()
}

/// The fields of `message` that are bytes; there are no others.
fn fields(message: &[u8]) -> Vec<(u64, &[u8])> {
    let (mut all, mut rest) = (Vec::new(), message);
    while let Some(tag) = number(&mut rest) {
        let Some(length) = number(&mut rest) else { break };
        let Some((bytes, after)) = rest.split_at_checked(length as usize) else { break };
        all.push((tag >> 3, bytes));
        rest = after;
    }
    all
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 || shift > 56 {
            return Some(value);
        }
    }
}

fn put(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
}
