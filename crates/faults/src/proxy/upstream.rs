//! The API server behind a proxy: a connection of its own for each request.
//!
//! In: what a kubeconfig says, requests. Out: answers, whose bodies are read as they come. With a connection
//! for each request no stream waits for another, and what becomes of one is not seen by any other. Never: a
//! retry, a request that is changed beyond its hop: the proxy is who asks, and answers are not compressed, so
//! that frames can be told apart.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use kube::client::ConfigExt;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::Error;

/// Where it listens and how to be let in.
#[derive(Clone, Debug)]
pub struct Upstream {
    address: SocketAddr,
    name: ServerName<'static>,
    authority: HeaderValue,
    tls: Arc<ClientConfig>,
}

impl Upstream {
    /// The server of a client's configuration.
    ///
    /// # Errors
    /// It names no server that can be reached by TLS.
    pub fn of(config: &kube::Config) -> Result<Upstream, Error> {
        let unfit = |why: String| Error::Config(why);
        let url = &config.cluster_url;
        let authority = url.authority().ok_or_else(|| unfit(format!("{url} names no host")))?;
        let port = authority.port_u16().unwrap_or(443);
        let mut addresses = (authority.host(), port).to_socket_addrs().map_err(|e| unfit(e.to_string()))?;
        let address = addresses.next().ok_or_else(|| unfit(format!("{authority} has no address")))?;
        let name = ServerName::try_from(authority.host().to_owned()).map_err(|e| unfit(e.to_string()))?;
        let mut tls = config.rustls_client_config().map_err(|e| unfit(e.to_string()))?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let authority = HeaderValue::from_str(authority.as_str()).map_err(|e| unfit(e.to_string()))?;
        Ok(Upstream { address, name, authority, tls: Arc::new(tls) })
    }

    /// Sends a request on, and returns with the head of the answer.
    pub async fn forward(&self, request: Request<Incoming>) -> Result<Response<Incoming>, Error> {
        let lost = |why: &dyn std::error::Error| Error::Upstream(why.to_string());
        let tcp = TcpStream::connect(self.address).await.map_err(|e| lost(&e))?;
        tcp.set_nodelay(true).map_err(|e| lost(&e))?;
        let connector = TlsConnector::from(self.tls.clone());
        let stream = connector.connect(self.name.clone(), tcp).await.map_err(|e| lost(&e))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|e| lost(&e))?;
        // Ends with the answer's body, or when that is dropped.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        sender.send_request(self.addressed(request)).await.map_err(|e| lost(&e))
    }

    fn addressed(&self, request: Request<Incoming>) -> Request<Incoming> {
        let (mut head, body) = request.into_parts();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        head.uri = path.parse::<Uri>().unwrap_or_default();
        head.version = hyper::Version::HTTP_11;
        for name in [header::CONNECTION, header::ACCEPT_ENCODING, header::AUTHORIZATION, header::TE] {
            head.headers.remove(name);
        }
        head.headers.insert(header::HOST, self.authority.clone());
        Request::from_parts(head, body)
    }
}
