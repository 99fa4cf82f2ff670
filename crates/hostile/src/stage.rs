//! What a row plays on: a running server, and the ways to reach it as everybody who there is.
//!
//! In: a server. Out: connections, and answers. Never: a connection that two rows share.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::beside::RowNeighbours;
use super::http2::Http2Wire;
use super::request::Request;
use super::wire::{Heard, Wire};
use super::{Row, Said, Tally, Who, tls};
use forebay_contenders::Error;
use forebay_contenders::client::{Client, Protocol, RestConfig};

/// Tokens of two users without any right, one of whom is the bystander.
pub const NOBODY: &str = "hostile-nobody";
pub const BYSTANDER: &str = "hostile-bystander";
/// What the bystander reads.
pub const WATCHED: &str = "/api/v1/namespaces/hostile/configmaps/bystander";

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dose {
    Full,
    /// Size 10: whether it works at all.
    Ten,
}

/// Where a row's clients connect to. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Stage {
    pub address: SocketAddr,
    pub dose: Dose,
    /// Who the server was started with that does badly.
    pub neighbours: Arc<RowNeighbours>,
    who: Who,
    /// Whether nothing, on a connection that stays open, is an answer.
    may_stay: bool,
    admin: Arc<ClientConfig>,
}

/// The file of `--token-auth-file`.
pub fn write_tokens(file: &Path) -> Result<(), Error> {
    let text = format!("{NOBODY},nobody,nobody\n{BYSTANDER},bystander,bystander\n");
    std::fs::write(file, text).map_err(Error::file("cannot write", file))
}

/// Makes what all rows need on a new server.
pub async fn furnish(target: &RestConfig) -> Result<(), Error> {
    let mut client = Client::connect(target, Protocol::Http1).await?;
    let named = |kind: &str, name: &str| {
        Bytes::from(format!(r#"{{"apiVersion":"v1","kind":"{kind}","metadata":{{"name":"{name}"}}}}"#))
    };
    let made = client.post("/api/v1/namespaces", named("Namespace", "hostile")).await?;
    made.expect("create namespace", &[201])?;
    let path = "/api/v1/namespaces/hostile/serviceaccounts";
    // 409: a server that makes it by itself was first.
    client
        .post(path, named("ServiceAccount", "default"))
        .await?
        .expect("create serviceaccount", &[201, 409])?;
    let path = "/api/v1/namespaces/hostile/configmaps";
    client.post(path, named("ConfigMap", "bystander")).await?.expect("create configmap", &[201])?;
    Ok(())
}

impl Stage {
    pub fn new(target: &RestConfig, row: &Row, dose: Dose, neighbours: Arc<RowNeighbours>) -> Stage {
        let may_stay = row.law.allows(Said::Open);
        let admin = target.tls.clone();
        Stage { address: target.address, dose, neighbours, who: row.who, may_stay, admin }
    }

    /// The same for somebody else.
    pub fn of(&self, who: Who) -> Stage {
        Stage { who, ..self.clone() }
    }

    /// How long it is waited for an answer: long where there has to be one, however slow the machine is.
    pub fn patience(&self) -> Duration {
        if self.may_stay { self.push() } else { Duration::from_secs(20) }
    }

    /// How long it is waited for what need not come, and for a server to take what it is sent.
    pub fn push(&self) -> Duration {
        match self.dose {
            Dose::Full => Duration::from_secs(2),
            Dose::Ten => Duration::from_millis(200),
        }
    }

    /// How long a server may take to end what has to be ended: longer than its limits, where there is time
    /// for that.
    pub fn limit(&self, full: Duration) -> Duration {
        match self.dose {
            Dose::Full => full,
            Dose::Ten => self.push(),
        }
    }

    pub fn host(&self) -> String {
        self.address.to_string()
    }

    pub fn server_name(&self) -> ServerName<'static> {
        ServerName::IpAddress(self.address.ip().into())
    }

    /// TLS settings for HTTP/1.1 or HTTP/2, with the certificate of who has one.
    pub fn tls(&self, alpn: &[u8]) -> ClientConfig {
        match self.who {
            Who::Admin => tls::speaking(&self.admin, alpn),
            Who::Anonymous | Who::Nobody => tls::showing(&self.admin, alpn, None),
        }
    }

    pub async fn tcp(&self) -> Result<TcpStream, Error> {
        let tcp = TcpStream::connect(self.address).await.map_err(lost)?;
        tcp.set_nodelay(true).map_err(lost)?;
        Ok(tcp)
    }

    pub async fn tls_over(
        &self,
        tcp: TcpStream,
        config: ClientConfig,
    ) -> Result<TlsStream<TcpStream>, Error> {
        TlsConnector::from(Arc::new(config)).connect(self.server_name(), tcp).await.map_err(lost)
    }

    pub async fn connect(&self) -> Result<Wire, Error> {
        let io = self.tls_over(self.tcp().await?, self.tls(tls::HTTP1)).await?;
        Ok(Wire::new(io, self.host(), self.token()))
    }

    /// A connection whose client's kernel takes hardly anything that is not read.
    pub async fn connect_narrow(&self) -> Result<Wire, Error> {
        let socket = TcpSocket::new_v4().map_err(lost)?;
        socket.set_recv_buffer_size(2_048).map_err(lost)?;
        let tcp = socket.connect(self.address).await.map_err(lost)?;
        let io = self.tls_over(tcp, self.tls(tls::HTTP1)).await?;
        Ok(Wire::new(io, self.host(), self.token()))
    }

    /// A connection that speaks HTTP/2 and on which nothing was said yet.
    pub async fn silent_http2(&self) -> Result<Http2Wire, Error> {
        let io = self.tls_over(self.tcp().await?, self.tls(tls::HTTP2)).await?;
        Ok(Http2Wire::silent(io, self.host(), self.token()))
    }

    /// One that has begun well.
    pub async fn http2(&self) -> Result<Http2Wire, Error> {
        let mut http2 = self.silent_http2().await?;
        http2.begin().await;
        Ok(http2)
    }

    /// One request on a connection of its own.
    pub async fn ask(&self, request: &Request) -> Result<Heard, Error> {
        Ok(self.connect().await?.ask(request).await)
    }

    /// The request as an administrator, which has to succeed.
    pub async fn make(&self, request: Request) -> Result<(), Error> {
        let heard = self.of(Who::Admin).ask(&request).await?;
        // What an earlier run on the same server has made will do.
        match heard.said {
            Said::Status(200..300 | 409) => Ok(()),
            other => Err(Error::Answer { what: "prepare".into(), answer: format!("{other} {}", heard.text) }),
        }
    }

    /// All requests that `request` makes, in turn on `connections` connections at once.
    pub async fn each(
        &self,
        connections: usize,
        count: usize,
        request: impl Fn(usize) -> Request + Clone + Send + 'static,
    ) -> Result<Tally, Error> {
        let mut tally = Tally::default();
        let mut clients = JoinSet::new();
        for first in 0..connections.min(count) {
            let (stage, request) = (self.clone(), request.clone());
            clients.spawn(async move {
                let mut tally = Tally::default();
                let mut wire = stage.connect().await?;
                for index in (first..count).step_by(connections) {
                    let heard = wire.ask(&request(index)).await;
                    if heard.said == Said::Closed {
                        wire = stage.connect().await?;
                    }
                    tally.merge(heard.into());
                }
                Ok::<Tally, Error>(tally)
            });
        }
        while let Some(ended) = clients.join_next().await {
            tally.merge(ended.map_err(|e| Error::Connection(e.to_string()))??);
        }
        Ok(tally)
    }

    /// Opens `count` connections, 16 at a time, by `open`; those that failed are left out.
    pub async fn open<T: Send + 'static>(&self, count: usize, open: impl AsyncOpen<T>) -> Vec<T> {
        let mut opening = JoinSet::new();
        let mut all = Vec::new();
        for index in 0..count {
            if opening.len() >= 16
                && let Some(Ok(Ok(one))) = opening.join_next().await
            {
                all.push(one);
            }
            opening.spawn(open.open(self.clone(), index));
        }
        while let Some(ended) = opening.join_next().await {
            if let Ok(Ok(one)) = ended {
                all.push(one);
            }
        }
        all
    }

    fn token(&self) -> Option<&'static str> {
        (self.who == Who::Nobody).then_some(NOBODY)
    }
}

/// How one of many connections is opened.
pub trait AsyncOpen<T> {
    fn open(&self, stage: Stage, index: usize) -> impl Future<Output = Result<T, Error>> + Send + 'static;
}

impl<T, F, O> AsyncOpen<T> for F
where
    F: Fn(Stage, usize) -> O,
    O: Future<Output = Result<T, Error>> + Send + 'static,
{
    fn open(&self, stage: Stage, index: usize) -> impl Future<Output = Result<T, Error>> + Send + 'static {
        self(stage, index)
    }
}

fn lost(why: impl std::fmt::Display) -> Error {
    Error::Connection(why.to_string())
}
