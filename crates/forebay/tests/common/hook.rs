//! A webhook that answers what a case says, and tells what it was asked.
//!
//! In: answers by name, requests to `/WHO/ANSWER`. Out: those answers, over HTTPS; reviews in the order in
//! which they came. Never: an answer that was not given.
//!
//! An answer is the `response` of a review in JSON, whose patch may be written out, besides: `code` and `raw`
//! for an answer that is none, `apiVersion` and `kind` for another's, `hang` for none at all, `cut` for a
//! connection that ends; `convert` says how the objects of a ConversionReview are converted.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::WAIT;

/// See the module's doc. It ends with the test's runtime.
pub struct Hook {
    pub port: u16,
    /// Who vouches for it: PEM in base64, as a `caBundle` has it.
    pub authority: String,
    shared: Arc<Shared>,
}

/// A review, by whom it was asked.
#[derive(Clone, Debug)]
pub struct Asked {
    pub who: String,
    pub query: String,
    pub review: Value,
}

#[derive(Default)]
struct Shared {
    answers: Mutex<HashMap<String, Value>>,
    asked: Mutex<Vec<Asked>>,
    /// How often it was asked.
    count: watch::Sender<usize>,
}

impl Shared {
    fn answer(&self, name: &str) -> Option<Value> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

impl Hook {
    pub async fn start() -> Hook {
        let key = rcgen::KeyPair::generate().expect("a key");
        let names = vec!["127.0.0.1".to_owned(), "svc.hooks.svc".to_owned()];
        let own = rcgen::CertificateParams::new(names).expect("parameters");
        let own = own.self_signed(&key).expect("a certificate");
        let chain = vec![own.der().clone()];
        let secret = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .expect("a configuration");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared::default());
        tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(tls)), shared.clone()));
        Hook { port, authority: STANDARD.encode(own.pem()), shared }
    }

    /// `https://` and where it listens.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// From now on `name` is answered so.
    pub fn answers(&self, name: &str, answer: Value) {
        self.shared.answers.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), answer);
    }

    /// Waits until it was asked so often in all.
    pub async fn was_asked(&self, times: usize) {
        let mut count = self.shared.count.subscribe();
        let counted = count.wait_for(|count| *count >= times);
        timeout(WAIT, counted).await.expect("in time").expect("it is there");
    }

    /// What it was asked since somebody looked last.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>) {
    while let Ok((tcp, _)) = listener.accept().await {
        let (tls, shared) = (tls.clone(), shared.clone());
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(tcp).await else { return };
            let service = service_fn(|request| answer(request, shared.clone()));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Full<Bytes>>, String> {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let (who, name) = path[1..].split_once('/').ok_or("no such path")?;
    let body = request.into_body().collect().await.map_err(|why| why.to_string())?.to_bytes();
    let review: Value = serde_json::from_slice(&body).map_err(|why| why.to_string())?;
    let asked = Asked { who: who.to_owned(), query, review: review.clone() };
    shared.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
    shared.count.send_modify(|count| *count += 1);
    let mut answer = shared.answer(name).ok_or("no such answer")?;
    if answer["hang"] == true {
        std::future::pending::<()>().await;
    }
    if answer["cut"] == true {
        return Err("the connection ends".to_owned());
    }
    let code = answer["code"].as_u64().map_or(200, |code| code as u16);
    let said = match answer["raw"].as_str() {
        Some(raw) => raw.to_owned(),
        None => response(&mut answer, &review).to_string(),
    };
    let response = Response::builder().status(code).header("content-type", "application/json");
    response.body(Full::new(said.into())).map_err(|why| why.to_string())
}

fn response(answer: &mut Value, review: &Value) -> Value {
    if let Some(how) = answer["convert"].as_str() {
        let response = super::tabs::converted(review, how);
        return json!({ "apiVersion": review["apiVersion"], "kind": review["kind"], "response": response });
    }
    if answer["patch"].is_array() {
        answer["patch"] = STANDARD.encode(answer["patch"].to_string()).into();
    }
    let members = answer.as_object_mut().expect("an answer");
    let mut other = |name: &str, usual: &Value| members.remove(name).unwrap_or_else(|| usual.clone());
    let (version, kind) = (other("apiVersion", &review["apiVersion"]), other("kind", &review["kind"]));
    members.entry("uid").or_insert_with(|| review["request"]["uid"].clone());
    json!({ "apiVersion": version, "kind": kind, "response": answer })
}
