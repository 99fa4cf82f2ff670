//! A webhook of tests: it answers what a case says, and tells what it was asked.
//!
//! In: answers by name, requests to `/WHO/ANSWER`. Out: those answers, over HTTPS, good or bad; reviews
//! in the order in which they came. Never: an answer that was not given; more than one protocol: it
//! speaks HTTP/1.1 by hand, as a good library would not lie for it.
//!
//! An answer is the `response` of a review in JSON, whose patch may be written out. Besides: `code` and `raw`
//! for an answer that is none, `apiVersion` and `kind` for another's; `convert` says how the objects of a
//! ConversionReview are converted ([`tabs`]); `hang` for none at all, `cut` for a
//! connection that ends, `delay_ms` for one that comes later; `length` for what the head says of how long it
//! is, and `flood` for so many bytes of it; `location` for where it sends on, in which `$WHO` is who asked,
//! and `head` for further lines of the head; `then` for the answer to who asks with the same review again. In
//! `raw` `$UID` is the review's. As a provider of [`tokens`] it gives documents, by their names.
#![allow(
    clippy::disallowed_methods,
    reason = "it is another process to what is tested, with a clock of its own"
)]

mod answer;
mod grpc;
pub mod kms;
mod serve;
pub mod signer;
pub mod tabs;
pub mod tokens;

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::PrivateKeyDer;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// Anything that takes longer than this does not come. Generous, as machines that build are busy.
const WAIT: Duration = Duration::from_secs(120);

/// See the crate's doc. It ends with the runtime in which it was started.
#[derive(Debug)]
pub struct Hook {
    pub port: u16,
    /// Who vouches for it: PEM in base64, as a `caBundle` has it.
    pub authority: String,
    shared: Arc<Shared>,
}

/// A review, by whom it was asked.
#[derive(Clone, Debug)]
pub struct AskedReview {
    pub who: String,
    /// Of the URL.
    pub query: String,
    /// What was shown in the head; empty, if nothing was.
    pub authorization: String,
    pub review: Value,
}

#[derive(Debug, Default)]
pub(crate) struct Shared {
    answers: Mutex<HashMap<String, Value>>,
    asked: Mutex<Vec<AskedReview>>,
    // Answers with the reviews that they were given to, where another one follows.
    before: Mutex<HashSet<(String, String)>>,
    /// How often it was asked.
    count: watch::Sender<usize>,
}

impl Shared {
    fn answer(&self, name: &str) -> Option<Value> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Whether the review was answered so before.
    fn was_asked_before(&self, name: &str, uid: &str) -> bool {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        !before.insert((name.to_owned(), uid.to_owned()))
    }

    fn note(&self, asked: AskedReview) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        self.count.send_modify(|count| *count += 1);
    }
}

impl Hook {
    /// Starts one on this machine's own address, where it is known also as the service `svc.hooks`.
    ///
    /// # Panics
    /// There is no port, or no certificate can be made.
    pub async fn start() -> Hook {
        let key = rcgen::KeyPair::generate().expect("a key");
        let names = vec!["127.0.0.1".to_owned(), "svc.hooks.svc".to_owned()];
        let own = rcgen::CertificateParams::new(names).expect("parameters");
        // As envtest makes them: the authority that signed it is known to nobody, and whoever connects is
        // given the certificate itself to be believed.
        let forgotten = rcgen::KeyPair::generate().expect("a key");
        let mut authority = rcgen::CertificateParams::new(vec![]).expect("parameters");
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        authority.distinguished_name.push(rcgen::DnType::CommonName, "nobody");
        let issuer = rcgen::Issuer::from_params(&authority, &forgotten);
        let own = own.signed_by(&key, &issuer).expect("a certificate");
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
        tokio::spawn(serve::serve(listener, TlsAcceptor::from(Arc::new(tls)), shared.clone()));
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
    ///
    /// # Panics
    /// It is not.
    pub async fn was_asked(&self, times: usize) {
        let mut count = self.shared.count.subscribe();
        let counted = count.wait_for(|count| *count >= times);
        tokio::time::timeout(WAIT, counted).await.expect("in time").expect("it is there");
    }

    /// What it was asked since somebody looked last.
    pub fn asked(&self) -> Vec<AskedReview> {
        self.asked_of("")
    }

    /// The same of those whose names begin so.
    pub fn asked_of(&self, prefix: &str) -> Vec<AskedReview> {
        let mut all = self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner);
        all.extract_if(.., |asked| asked.who.starts_with(prefix)).collect()
    }
}
