//! A server behind an APIService, which is as good or bad as a request's path asks for.
//!
//! In: who may come, requests. Out: answers byte by byte as a test wants them, over HTTPS; what it was asked.
//! Never: a client that shows no certificate of a proxy.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub const GROUP: &str = "wardle.example.com";
pub const VERSION: &str = "v1alpha1";
/// What it serves.
pub const FLUNDERS: &str = "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders";
/// Where it keeps some, once it does.
pub const KEPT: &str = "/apis/wardle.example.com/v1alpha1/namespaces/x/flunders";
/// Where it is registered.
pub const API_SERVICE: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.wardle.example.com";

/// See the module's doc. It ends with the test's runtime.
pub struct Aggregated {
    pub port: u16,
    /// Who vouches for it: PEM in base64, as a `caBundle` has it.
    pub authority: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// It answers nothing well.
    is_ill: AtomicBool,
    /// It knows the newer discovery.
    is_modern: AtomicBool,
    /// What it says of its version has no end, and of all else it says nothing.
    rambles: AtomicBool,
    /// They can be deleted; for all that, not as a collection.
    deletes: AtomicBool,
    only_singly: AtomicBool,
    /// How many there are in `x`.
    kept: AtomicUsize,
    asked: Mutex<Vec<Asked>>,
    /// What watches are told: how many events, and that they break off.
    events: watch::Sender<(usize, bool)>,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Asked {
    /// The values of a header.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let of = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        of.map(|(_, value)| value.as_str()).collect()
    }
}

impl Aggregated {
    /// - `proxies`: who vouches for those that may come, PEM.
    pub async fn start(proxies: &str) -> Aggregated {
        let key = rcgen::KeyPair::generate().expect("a key");
        let own = rcgen::CertificateParams::new(vec!["api.wardle.svc".to_owned()]).expect("parameters");
        let own = own.self_signed(&key).expect("a certificate");
        let chain = vec![own.der().clone()];
        let secret = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(proxies.as_bytes()) {
            roots.add(authority.expect("PEM")).expect("an authority");
        }
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_client_cert_verifier(clients.build().expect("a verifier"))
            .with_single_cert(chain, secret)
            .expect("a configuration");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared::default());
        shared.is_modern.store(true, Ordering::Relaxed);
        tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(tls)), shared.clone()));
        Aggregated { port, authority: STANDARD.encode(own.pem()), shared }
    }

    /// From now on it answers well, or not.
    pub fn is_ill(&self, is_ill: bool) {
        self.shared.is_ill.store(is_ill, Ordering::Relaxed);
    }

    /// From now on it knows the newer discovery, or not.
    pub fn is_modern(&self, is_modern: bool) {
        self.shared.is_modern.store(is_modern, Ordering::Relaxed);
    }

    /// From now on what it says of its version has no end, and it says nothing else of itself.
    pub fn rambles(&self) {
        self.shared.rambles.store(true, Ordering::Relaxed);
    }

    /// From now on there are so many in `x`, which can be deleted.
    pub fn keeps(&self, count: usize) {
        self.shared.deletes.store(true, Ordering::Relaxed);
        self.shared.kept.store(count, Ordering::Relaxed);
    }

    /// From now on they are deleted one by one, whatever it says.
    pub fn deletes_only_singly(&self) {
        self.shared.only_singly.store(true, Ordering::Relaxed);
    }

    /// How many there are in `x`.
    pub fn kept(&self) -> usize {
        self.shared.kept.load(Ordering::Relaxed)
    }

    /// Its watches send one more event.
    pub fn happens(&self) {
        self.shared.events.send_modify(|(count, _)| *count += 1);
    }

    /// Its watches break off in the middle.
    pub fn dies(&self) {
        self.shared.events.send_modify(|(_, ends)| *ends = true);
    }

    /// What it was asked of its resources since somebody looked last.
    pub fn asked(&self) -> Vec<Asked> {
        let all = std::mem::take(&mut *self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner));
        let is_wanted =
            |line: &str| ["/flunders", "/containerLogs/", "/exec/"].iter().any(|part| line.contains(part));
        all.into_iter().filter(|asked| is_wanted(&asked.line)).collect()
    }

    /// The namespace, the service and the APIService that lead to it.
    pub fn objects(&self) -> [(&'static str, Value); 3] {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "wardle" } });
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "api" },
            "spec": { "type": "ExternalName", "externalName": "localhost" },
        });
        let api_service = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": { "name": format!("{VERSION}.{GROUP}") },
            "spec": {
                "group": GROUP, "version": VERSION, "groupPriorityMinimum": 1000, "versionPriority": 15,
                "service": { "namespace": "wardle", "name": "api", "port": self.port },
                "caBundle": self.authority,
            },
        });
        [
            ("/api/v1/namespaces", namespace),
            ("/api/v1/namespaces/wardle/services", service),
            ("/apis/apiregistration.k8s.io/v1/apiservices", api_service),
        ]
    }
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>) {
    while let Ok((tcp, _)) = listener.accept().await {
        let (tls, shared) = (tls.clone(), shared.clone());
        tokio::spawn(async move {
            let Ok(mut stream) = tls.accept(tcp).await else { return };
            // Whoever asked may be gone.
            while let Ok(Some(asked)) = read(&mut stream).await {
                match answer(&mut stream, asked, &shared).await {
                    Ok(true) => {}
                    Ok(false) => break,
                    // Without a word of TLS, either.
                    Err(_) => return,
                }
            }
            let _ = stream.shutdown().await;
        });
    }
}

async fn read(stream: &mut TlsStream<TcpStream>) -> std::io::Result<Option<Asked>> {
    let mut read = Vec::new();
    let end = loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&read[..end]).into_owned();
    let mut lines = head.lines();
    let line = lines.next().unwrap_or_default().to_owned();
    let pair = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut asked = Asked { line, headers: lines.filter_map(pair).collect(), body: String::new() };
    let length = asked.all("content-length").first().and_then(|text| text.parse().ok()).unwrap_or(0);
    let is_chunked = asked.all("transfer-encoding").contains(&"chunked");
    let mut body = read.split_off(end + 4);
    while body.len() < length || is_chunked && !body.ends_with(b"0\r\n\r\n") {
        if stream.read_buf(&mut body).await? == 0 {
            return Ok(None);
        }
    }
    asked.body = String::from_utf8_lossy(&body).into_owned();
    Ok(Some(asked))
}

/// Whether the connection goes on.
async fn answer(stream: &mut TlsStream<TcpStream>, asked: Asked, shared: &Shared) -> std::io::Result<bool> {
    let target = asked.line.split(' ').nth(1).unwrap_or_default().to_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    shared.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked.clone());
    let version_path = format!("/apis/{GROUP}/{VERSION}");
    let resources = json!([{
        "name": "flunders", "singularName": "flunder", "namespaced": true, "kind": "Flunder",
        "verbs": ["create", "get", "list", "watch"], "shortNames": ["fl"],
    }]);
    if shared.rambles.load(Ordering::Relaxed) {
        match path {
            path if path == version_path => return wished(stream, "flood").await,
            "/apis" | "/openapi/v2" | "/openapi/v3" => return wished(stream, "hang").await,
            _ => {}
        }
    }
    let (code, content_type, body) = if shared.is_ill.load(Ordering::Relaxed) {
        ("500 Internal Server Error", "text/plain", "ill".to_owned())
    } else if path == "/apis" && shared.is_modern.load(Ordering::Relaxed) {
        let verbs = match shared.deletes.load(Ordering::Relaxed) {
            true => json!(["delete", "deletecollection", "get", "list"]),
            false => json!(["get", "list"]),
        };
        let items = json!([{ "metadata": { "name": GROUP }, "versions": [{ "version": VERSION, "resources": [{
            "resource": "flunders", "responseKind": { "group": "", "version": "", "kind": "Flunder" },
            "scope": "Namespaced", "singularResource": "flunder", "verbs": verbs,
            "categories": ["fish"],
        }] }] }]);
        let body = json!({ "kind": "APIGroupDiscoveryList", "items": items });
        let content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        ("200 OK", content_type, body.to_string())
    } else if path == version_path {
        let list = json!({ "kind": "APIResourceList", "groupVersion": format!("{GROUP}/{VERSION}"),
                           "resources": resources });
        ("200 OK", "application/json", list.to_string())
    } else if path == "/openapi/v2" {
        ("200 OK", "application/json", openapi_v2().to_string())
    } else if path == "/openapi/v3" {
        let url = format!("/openapi/v3/apis/{GROUP}/{VERSION}?hash=ABC");
        let paths = json!({ format!("apis/{GROUP}/{VERSION}"): { "serverRelativeURL": url } });
        ("200 OK", "application/json", json!({ "paths": paths }).to_string())
    } else if path == format!("/openapi/v3/apis/{GROUP}/{VERSION}") {
        ("200 OK", "application/json", json!({ "openapi": "3.0.0", "of": "wardle" }).to_string())
    } else if path == FLUNDERS && query.contains("watch") {
        return watched(stream, shared).await;
    } else if path.ends_with("/admits") {
        let review: Value = serde_json::from_str(&asked.body).unwrap_or_default();
        let no =
            json!({ "uid": review["request"]["uid"], "allowed": false, "status": { "message": "not here" } });
        let body = json!({ "apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": no });
        ("200 OK", "application/json", body.to_string())
    } else if path == FLUNDERS && asked.line.starts_with("POST") {
        ("201 Created", "application/json", asked.body)
    } else if path == FLUNDERS {
        let list = json!({ "kind": "FlunderList", "apiVersion": format!("{GROUP}/{VERSION}"), "items": [] });
        ("200 OK", "application/json", list.to_string())
    } else if path == KEPT && asked.line.starts_with("DELETE") && shared.only_singly.load(Ordering::Relaxed) {
        ("405 Method Not Allowed", "application/json", json!({ "kind": "Status" }).to_string())
    } else if path.starts_with(&format!("{KEPT}/")) {
        shared.kept.fetch_sub(1, Ordering::Relaxed);
        ("200 OK", "application/json", json!({ "kind": "Status" }).to_string())
    } else if path == KEPT {
        if asked.line.starts_with("DELETE") {
            shared.kept.store(0, Ordering::Relaxed);
        }
        let one = |at| json!({ "metadata": { "name": format!("f{at}") } });
        let items: Vec<Value> = (0..shared.kept.load(Ordering::Relaxed)).map(one).collect();
        let list =
            json!({ "kind": "FlunderList", "apiVersion": format!("{GROUP}/{VERSION}"), "items": items });
        ("200 OK", "application/json", list.to_string())
    } else if path.starts_with("/containerLogs/") && path.ends_with("/waits") {
        ("400 Bad Request", "text/plain", "container \"waits\" in pod \"p\" is waiting to start".to_owned())
    } else if path.starts_with("/containerLogs/") {
        // A program's output may look like a page.
        ("200 OK", "text/html", format!("{target}\n"))
    } else if path.starts_with("/exec/") {
        return wished(stream, "upgrade").await;
    } else if let Some(wish) = path.strip_prefix(&format!("{FLUNDERS}/")) {
        return wished(stream, wish).await;
    } else {
        ("404 Not Found", "text/plain", "404 page not found".to_owned())
    };
    let own = "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\nX-Own: here\r\n";
    let length = body.len();
    let head =
        format!("HTTP/1.1 {code}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{own}\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    stream.flush().await?;
    Ok(true)
}

/// A document of its version, and of another that is not told here.
fn openapi_v2() -> Value {
    let reference = |name: &str| json!({ "$ref": format!("#/definitions/{name}") });
    let of = |name: &str| json!({ "get": { "responses": { "200": { "schema": reference(name) } } } });
    json!({
        "swagger": "2.0", "info": { "title": "Wardle", "version": "1" },
        "paths": { format!("{FLUNDERS}/{{name}}"): of("wardle.Flunder"), "/apis/other.io/v1/": of("Other") },
        "definitions": {
            "wardle.Flunder": { "type": "object", "properties": {
                "metadata": reference("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta") } },
            // It is not what it is here.
            "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": { "type": "object", "description": "bare" },
            "Other": { "type": "object" },
        },
    })
}

async fn watched(stream: &mut TlsStream<TcpStream>, shared: &Shared) -> std::io::Result<bool> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let (mut events, mut sent) = (shared.events.subscribe(), 0);
    loop {
        let (count, ends) = *events.borrow_and_update();
        while sent < count {
            sent += 1;
            let object = json!({ "kind": "Flunder", "metadata": { "name": format!("f{sent}") } });
            let line = format!("{}\n", json!({ "type": "ADDED", "object": object }));
            stream.write_all(format!("{:x}\r\n{line}\r\n", line.len()).as_bytes()).await?;
        }
        if ends {
            // Half of an event.
            stream.write_all(b"40\r\n{\"type\":").await?;
            stream.flush().await?;
            return Ok(false);
        }
        stream.flush().await?;
        if events.changed().await.is_err() {
            return Ok(false);
        }
    }
}

async fn wished(stream: &mut TlsStream<TcpStream>, wish: &str) -> std::io::Result<bool> {
    match wish {
        "hang" => std::future::pending().await,
        "flood" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            let piece = vec![b'x'; 1 << 16];
            loop {
                stream.write_all(&piece).await?;
            }
        }
        "lies" => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort").await?,
        "nonsense" => stream.write_all(b"HTTP/9 what\r\nis this\r\n\r\n").await?,
        "long-head" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nX-Long: ").await?;
            let piece = vec![b'x'; 1 << 20];
            stream.write_all(&piece).await?;
        }
        "cut" => {}
        "vanish" => return Err(std::io::ErrorKind::NotConnected.into()),
        "elsewhere" => {
            stream.write_all(b"HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0\r\n").await?;
            stream.write_all(b"Location: https://evil.example.com/\r\n\r\n").await?;
        }
        "open" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n").await?;
            stream.write_all(b"Access-Control-Allow-Origin: *\r\n\r\n").await?;
        }
        "upgrade" => {
            let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";
            stream.write_all(head.as_bytes()).await?;
            let mut heard = [0; 1024];
            loop {
                let read = stream.read(&mut heard).await?;
                if read == 0 || heard[..read].ends_with(b"bye") {
                    return Ok(false);
                }
                stream.write_all(&heard[..read].to_ascii_uppercase()).await?;
                stream.flush().await?;
            }
        }
        _ => stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await?,
    }
    stream.flush().await?;
    Ok(false)
}
