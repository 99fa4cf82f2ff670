//! HTTPS requests with a client certificate: enough to ask a server whether it is ready, and for what no
//! client asks.
//!
//! In: a port, what a kubeconfig says of the trust between both, a request. Out: the status code and the
//! body. A connection is kept by who [asks for one](KeptConnection).

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const ANSWER_MAX: Duration = Duration::from_secs(30);
/// What is asked so is etcd, which may have much to do first.
const PLAIN_ANSWER_MAX: Duration = Duration::from_secs(60);

/// Whom the client trusts and who it is, in PEM.
pub struct Credentials {
    pub authority: Vec<u8>,
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
}

/// GETs `https://127.0.0.1:<port><path>`.
pub fn get(port: u16, credentials: &Credentials, path: &str) -> Result<(u16, String), String> {
    call(port, credentials, &Call { method: "GET", path, body: "" }).map(|answer| (answer.code, answer.body))
}

/// A request with a JSON body, or without one.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub body: &'a str,
}

/// An answer, whole.
#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    pub code: u16,
    /// The headers as they came.
    pub head: String,
    pub body: String,
}

/// A connection of HTTP/1.1 that is kept from one GET to the next.
pub struct KeptConnection {
    stream: StreamOwned<ClientConnection, TcpStream>,
}

impl KeptConnection {
    /// # Errors
    /// Nobody listens there.
    pub fn open(port: u16, credentials: &Credentials) -> Result<KeptConnection, String> {
        open(port, credentials).map(|stream| KeptConnection { stream })
    }

    /// GETs `path`, whose answer says how long it is. `None` for the connection when it was the last.
    ///
    /// # Errors
    /// The answer is not whole.
    pub fn get(mut self, path: &str) -> Result<(Response, Option<KeptConnection>), String> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        self.stream.write_all(request.as_bytes()).map_err(shown)?;
        let (mut answer, mut piece) = (Vec::new(), [0; 4_096]);
        loop {
            let text = String::from_utf8_lossy(&answer);
            if let Ok(response) = parse(&text)
                && length(&response.head).is_some_and(|length| response.body.len() >= length)
            {
                let is_last = response.head.to_ascii_lowercase().contains("connection: close");
                return Ok((response, (!is_last).then_some(self)));
            }
            match self.stream.read(&mut piece).map_err(shown)? {
                0 => return Err(format!("half an answer: {text:?}")),
                read => answer.extend(&piece[..read]),
            }
        }
    }
}

fn length(head: &str) -> Option<usize> {
    let head = head.to_ascii_lowercase();
    head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok())
}

fn open(port: u16, credentials: &Credentials) -> Result<StreamOwned<ClientConnection, TcpStream>, String> {
    let config = config(credentials)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let tcp = TcpStream::connect_timeout(&address, ANSWER_MAX).map_err(shown)?;
    tcp.set_read_timeout(Some(ANSWER_MAX)).map_err(shown)?;
    let name = ServerName::IpAddress(address.ip().into());
    let tls = ClientConnection::new(Arc::new(config), name).map_err(shown)?;
    Ok(StreamOwned::new(tls, tcp))
}

/// One request, answered whole.
pub fn call(port: u16, credentials: &Credentials, call: &Call<'_>) -> Result<Response, String> {
    let mut stream = open(port, credentials)?;
    let Call { method, path, body } = call;
    // Of 1.0, so that no answer comes in chunks.
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).map_err(shown)?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // Some servers close without TLS's own goodbye; the answer is whole all the same.
        Err(why) if why.kind() != ErrorKind::UnexpectedEof => Err(shown(why)),
        _ => parse(&String::from_utf8_lossy(&answer)),
    }
}

/// What comes back for a request of HTTP/1.0 without TLS, whole, from `127.0.0.1:<port>`.
pub fn plain(port: u16, request: &str) -> Result<String, String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(shown)?;
    stream.set_read_timeout(Some(PLAIN_ANSWER_MAX)).map_err(shown)?;
    stream.write_all(request.as_bytes()).map_err(shown)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(shown)?;
    Ok(answer)
}

fn config(credentials: &Credentials) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&credentials.authority) {
        roots.add(certificate.map_err(shown)?).map_err(shown)?;
    }
    let chain = CertificateDer::pem_slice_iter(&credentials.certificate).collect::<Result<_, _>>();
    let key = PrivateKeyDer::from_pem_slice(&credentials.key).map_err(shown)?;
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(shown)?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain.map_err(shown)?, key)
        .map_err(shown)
}

fn parse(answer: &str) -> Result<Response, String> {
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| format!("half an answer: {answer:?}"))?;
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let code = code.ok_or_else(|| format!("no status code: {head:?}"))?;
    Ok(Response { code, head: head.to_owned(), body: body.to_owned() })
}

fn shown(why: impl std::fmt::Display) -> String {
    why.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_its_code_and_its_body() {
        let head = "HTTP/1.1 200 OK\r\nA: b".to_owned();
        let whole = Response { code: 200, head, body: "ok".to_owned() };
        assert_eq!(parse("HTTP/1.1 200 OK\r\nA: b\r\n\r\nok"), Ok(whole));
        assert!(parse("HTTP/1.1 200 OK\r\n").is_err());
        assert!(parse("nonsense\r\n\r\n").is_err());
    }
}
