//! From an address to a connection that speaks HTTP/1.1, over TLS or as it is.
//!
//! In: where, as what, and for how long. Out: what sends requests and what runs the connection. Never: says
//! anything on it.
//!
//! HTTP/1.1 has a connection for each request that is under way: a client that does not read its answer
//! stops its own connection, and nobody else's.

use std::sync::Arc;

use forebay_authorities::{CutIn, go_answer_words, go_dial_words, go_handshake_words};
use forebay_rt::{Clock, Duration};
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use crate::backend::RequestBody;
use crate::error::ProxyError;
use crate::limits::{BUFFER_BYTES_MAX, HEADERS_MAX};

pub type Sender = SendRequest<RequestBody>;
pub type Driver = Connection<TokioIo<Either<TlsStream<TcpStream>, TcpStream>>, RequestBody>;

/// What a handshake goes by.
pub struct Handshake {
    pub config: Arc<ClientConfig>,
    /// What the server's certificate is for.
    pub name: ServerName<'static>,
}

/// Opens a connection. Cancel-safe.
///
/// - `handshake`: none where nothing is encrypted.
/// - `address`: host and port.
///
/// # Errors
/// [`ProxyError::Unreached`].
pub async fn open(
    handshake: Option<&Handshake>,
    address: &str,
    wait: Duration,
    clock: &Clock,
) -> Result<(Sender, Driver), ProxyError> {
    let opened = async {
        let tcp = TcpStream::connect(address).await.map_err(|why| go_dial_words(address, &why))?;
        // It fails where the connection is gone already, which the handshake finds out.
        let _ = tcp.set_nodelay(true);
        let stream = match handshake {
            Some(Handshake { config, name }) => {
                let stream = TlsConnector::from(config.clone()).connect(name.clone(), tcp).await;
                Either::Left(stream.map_err(|why| go_handshake_words(&why))?)
            }
            None => Either::Right(tcp),
        };
        let mut builder = Builder::new();
        builder.max_buf_size(BUFFER_BYTES_MAX).max_headers(HEADERS_MAX);
        builder.handshake(TokioIo::new(stream)).await.map_err(|why| go_answer_words(&why, CutIn::Head))
    };
    tokio::select! {
        biased;
        opened = opened => opened.map_err(ProxyError::Unreached),
        () = clock.sleep(wait) => Err(ProxyError::Unreached(format!("dial tcp {address}: i/o timeout"))),
    }
}
