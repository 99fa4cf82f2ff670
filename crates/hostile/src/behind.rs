//! A server behind an APIService of a row, which does what the path asks for.
//!
//! In: the row's name. Out: an APIService that is available, and a server that hangs, floods, lies or dies.
//! Never: a good answer but to who looks whether it is there. It ends with the runtime in which it was
//! started.

use std::net::Ipv4Addr;
use std::sync::Arc;

use forebay_contenders::Error;
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::prelude::{Duration, Request, Stage, Who, namespace_of};
use super::request::JSON;
use super::said::Said;

const FLOOD_BYTES: usize = 100 << 20;
static PIECE: [u8; 64 << 10] = [b' '; 64 << 10];

/// Of one row: its group has the row's name.
#[derive(Clone, Copy, Debug)]
pub struct Behind {
    pub row: &'static str,
    /// Whether what it says of what it serves has no end.
    pub has_endless_documents: bool,
}

impl Behind {
    pub const fn new(row: &'static str) -> Behind {
        Behind { row, has_endless_documents: false }
    }

    fn group(self) -> String {
        format!("{}.hostile.dev", self.row)
    }

    /// A request that is answered so.
    pub fn ask(self, wish: &str) -> Request {
        Request::get(format!("/apis/{}/v1/{wish}", self.group()))
    }

    /// Starts it, and waits until requests are sent on to it.
    pub async fn start(self, stage: &Stage) -> Result<(), Error> {
        let port = self.listen().await?;
        namespace_of(stage, self.row).await?;
        let group = self.group();
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "api" },
            "spec": { "type": "ExternalName", "externalName": "localhost" },
        });
        let services = format!("/api/v1/namespaces/{}/services", self.row);
        stage.make(Request::post(services, JSON, service.to_string())).await?;
        let api_service = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": { "name": format!("v1.{group}") },
            "spec": {
                "group": group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
                "service": { "namespace": self.row, "name": "api", "port": port },
                "insecureSkipTLSVerify": true,
            },
        });
        let all = "/apis/apiregistration.k8s.io/v1/apiservices";
        stage.make(Request::post(all, JSON, api_service.to_string())).await?;
        let mut wire = stage.of(Who::Admin).connect().await?;
        for _ in 0..500 {
            if wire.ask(&Request::get(format!("/apis/{group}/v1"))).await.said == Said::Status(200) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(Error::Answer { what: format!("{group} after 10 s"), answer: "not available".into() })
    }

    async fn listen(self) -> Result<u16, Error> {
        let failed = Error::Connection;
        let key = rcgen::KeyPair::generate().map_err(|why| failed(why.to_string()))?;
        let own = rcgen::CertificateParams::new(vec!["localhost".to_owned()]);
        let own = own.and_then(|own| own.self_signed(&key)).map_err(|why| failed(why.to_string()))?;
        let secret = PrivateKeyDer::try_from(key.serialize_der()).map_err(|why| failed(why.to_owned()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|why| failed(why.to_string()))?
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], secret)
            .map_err(|why| failed(why.to_string()))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.map_err(|why| failed(why.to_string()))?;
        let port = listener.local_addr().map_err(|why| failed(why.to_string()))?.port();
        tokio::spawn(async move {
            let tls = TlsAcceptor::from(Arc::new(tls));
            while let Ok((tcp, _)) = listener.accept().await {
                let tls = tls.clone();
                tokio::spawn(async move {
                    let Ok(mut stream) = tls.accept(tcp).await else { return };
                    // Whoever asked may be gone.
                    while let Ok(true) = self.answer(&mut stream).await {}
                });
            }
        });
        Ok(port)
    }

    /// Answers one request; whether the connection goes on.
    async fn answer(self, stream: &mut TlsStream<TcpStream>) -> std::io::Result<bool> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut head).await? == 0 {
                return Ok(false);
            }
        }
        let head = String::from_utf8_lossy(&head);
        let path = head.split(' ').nth(1).unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        let version = format!("/apis/{}/v1", self.group());
        if path == version {
            let list =
                json!({ "kind": "APIResourceList", "groupVersion": "x/v1", "resources": [] }).to_string();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length:";
            let answer = format!("{head} {}\r\n\r\n{list}", list.len());
            stream.write_all(answer.as_bytes()).await?;
            stream.flush().await?;
            return Ok(true);
        }
        match path.strip_prefix(&format!("{version}/")) {
            Some("hang") => std::future::pending().await,
            Some("flood") => self.flood(stream).await?,
            Some("lies") => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort").await?,
            Some("long-head") => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nX-Long: ").await?;
                stream.write_all(&[b'x'; 1 << 20]).await?;
            }
            Some("dies") => {
                let head =
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
                let event = "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Thing\"}}\n";
                let half = format!("{head}{:x}\r\n{event}\r\n40\r\n{{\"type\":", event.len());
                stream.write_all(half.as_bytes()).await?;
            }
            None if self.has_endless_documents => self.flood(stream).await?,
            _ => stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await?,
        }
        stream.flush().await?;
        stream.shutdown().await?;
        Ok(false)
    }

    async fn flood(self, stream: &mut TlsStream<TcpStream>) -> std::io::Result<()> {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json;g=apidiscovery.k8s.io\r\nContent-Length: {FLOOD_BYTES}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        for _ in 0..FLOOD_BYTES / PIECE.len() {
            stream.write_all(&PIECE).await?;
        }
        Ok(())
    }
}
