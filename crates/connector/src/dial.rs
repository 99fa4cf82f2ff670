//! From the configuration to bytes that go to the server and back: name, address, proxy, TLS.
//!
//! In: where the server is, and which protocols will do. Out: a stream, and the protocol that was agreed on.
//! Never: speaks HTTP with the server, keeps a connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use forebay_rt::{Clock, Duration};
use http::Uri;
use kube::client::ConfigExt as _;
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, ServerName};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::Error;
use crate::book::Protocol;
use crate::limits::{ADDRESSES_IN_TIME, PING_INTERVAL, PING_TIMEOUT};
use crate::proxy::Proxy;

/// A connection as bytes in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// What may be spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// HTTP/2, or else HTTP/1.1.
    Either,
    /// HTTP/1.1 alone: for a request that asks for an upgrade.
    Http1,
}

/// The way to one server.
#[derive(Debug)]
pub(crate) struct Dialer {
    at: Place,
    proxy: Option<Proxy>,
    tls: Option<Tls>,
    clock: Clock,
    /// How long one address may take to answer while there are others to try.
    patience: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// An IPv6 address stands here without its brackets.
    pub host: String,
    pub port: u16,
}

#[derive(Debug)]
struct Tls {
    name: ServerName<'static>,
    either: Arc<ClientConfig>,
    http1: Arc<ClientConfig>,
}

impl Dialer {
    /// # Errors
    /// When something of the configuration cannot be used: the URL, a certificate, a proxy.
    pub fn new(config: &kube::Config, connect_max: Duration, clock: Clock) -> Result<Dialer, Error> {
        let url = &config.cluster_url;
        let tls = match url.scheme_str() {
            Some("https") => Some(Tls::new(config)?),
            Some("http") => None,
            _ => return Err(Error::Url(url.to_string())),
        };
        let at = Place::of(url, if tls.is_some() { 443 } else { 80 })?;
        let proxy = config.proxy_url.as_ref().map(Proxy::new).transpose()?;
        let patience = connect_max / ADDRESSES_IN_TIME;
        Ok(Dialer { at, proxy, tls, clock, patience })
    }

    /// Connects; the whole takes as long as whoever calls waits. Cancel-safe.
    pub async fn dial(&self, offer: Offer) -> Result<(Box<dyn Stream>, Protocol), Error> {
        let tcp = match &self.proxy {
            None => self.connect(&self.at).await?,
            Some(proxy) => proxy.tunnel(self.connect(proxy.place()).await?, &self.at).await?,
        };
        let Some(tls) = &self.tls else { return Ok((Box::new(tcp), Protocol::Http1)) };
        let config = match offer {
            Offer::Either => &tls.either,
            Offer::Http1 => &tls.http1,
        };
        let failed = |source| Error::Tls { host: self.at.host.clone(), source };
        let stream =
            TlsConnector::from(config.clone()).connect(tls.name.clone(), tcp).await.map_err(failed)?;
        let protocol = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => Protocol::Http2,
            _ => Protocol::Http1,
        };
        Ok((Box::new(stream), protocol))
    }

    /// Connects to the first address that answers, one after the other.
    async fn connect(&self, place: &Place) -> Result<TcpStream, Error> {
        let no_address = |source| Error::Dns { host: place.host.clone(), source };
        let found = tokio::net::lookup_host((place.host.as_str(), place.port)).await.map_err(no_address)?;
        let addresses: Vec<SocketAddr> = found.collect();
        let mut failed = no_address(io::Error::new(io::ErrorKind::NotFound, "the name has no addresses"));
        for (at, address) in addresses.iter().enumerate() {
            let connects = async { prepared(TcpStream::connect(address).await?) };
            let tried = match at + 1 == addresses.len() {
                true => connects.await,
                // An address that swallows packets has to leave time for the addresses after it.
                false => tokio::select! {
                    connected = connects => connected,
                    () = self.clock.sleep(self.patience) => Err(io::ErrorKind::TimedOut.into()),
                },
            };
            match tried {
                Ok(tcp) => return Ok(tcp),
                Err(source) => failed = Error::Connect { address: address.to_string(), source },
            }
        }
        Err(failed)
    }
}

impl Tls {
    fn new(config: &kube::Config) -> Result<Tls, Error> {
        let name = match &config.tls_server_name {
            Some(name) => name.clone(),
            None => Place::of(&config.cluster_url, 443)?.host,
        };
        let parsed = ServerName::try_from(name.clone()).map_err(|_| Error::ServerName(name))?;
        let mut http1 = config.rustls_client_config().map_err(|e| Error::Config(Box::new(e)))?;
        if let Some(authorities) = config.root_cert.as_ref().filter(|_| !config.accept_invalid_certs) {
            let authorities = authorities.iter().map(|der| CertificateDer::from(der.as_slice()));
            forebay_authorities::believe_servers(&mut http1, authorities);
        }
        let mut either = http1.clone();
        either.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls { name: parsed, either: Arc::new(either), http1: Arc::new(http1) })
    }
}

impl Place {
    pub fn of(url: &Uri, port: u16) -> Result<Place, Error> {
        let host = url.host().filter(|it| !it.is_empty()).ok_or_else(|| Error::Url(url.to_string()))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Place { host, port: url.port_u16().unwrap_or(port) })
    }
}

/// As it stands in a URL.
impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Small pieces are sent at once; and the kernel asks whether the other end is there, which HTTP/1.1 cannot.
fn prepared(tcp: TcpStream) -> io::Result<TcpStream> {
    tcp.set_nodelay(true)?;
    let asks = TcpKeepalive::new().with_time(PING_INTERVAL).with_interval(PING_TIMEOUT);
    SockRef::from(&tcp).set_tcp_keepalive(&asks)?;
    Ok(tcp)
}
