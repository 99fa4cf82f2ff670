//! One HTTPS request with a client certificate: enough to ask a server whether it is ready.
//!
//! In: a port, what a kubeconfig says of the trust between both, a path. Out: the status code and the body.
//! Never: a connection kept.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Whom the client trusts and who it is, in PEM.
pub struct Credentials {
    pub authority: Vec<u8>,
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
}

/// GETs `https://127.0.0.1:<port><path>`.
pub fn get(port: u16, credentials: &Credentials, path: &str) -> Result<(u16, String), String> {
    let config = config(credentials)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let tcp = TcpStream::connect_timeout(&address, ANSWER_MAX).map_err(shown)?;
    tcp.set_read_timeout(Some(ANSWER_MAX)).map_err(shown)?;
    let name = ServerName::IpAddress(address.ip().into());
    let tls = ClientConnection::new(Arc::new(config), name).map_err(shown)?;
    let mut stream = StreamOwned::new(tls, tcp);
    let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(shown)?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // Some servers close without TLS's own goodbye; the answer is whole all the same.
        Err(why) if why.kind() != ErrorKind::UnexpectedEof => Err(shown(why)),
        _ => parse(&String::from_utf8_lossy(&answer)),
    }
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

fn parse(answer: &str) -> Result<(u16, String), String> {
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| format!("half an answer: {answer:?}"))?;
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok((code.ok_or_else(|| format!("no status code: {head:?}"))?, body.to_owned()))
}

fn shown(why: impl std::fmt::Display) -> String {
    why.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_its_code_and_its_body() {
        assert_eq!(parse("HTTP/1.1 200 OK\r\nA: b\r\n\r\nok"), Ok((200, "ok".to_owned())));
        assert!(parse("HTTP/1.1 200 OK\r\n").is_err());
        assert!(parse("nonsense\r\n\r\n").is_err());
    }
}
