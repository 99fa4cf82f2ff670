//! Whether a container says that it is ready.
//!
//! In: a container's readiness probe, the pod's address. Out: whether its GET is answered well. Never: a
//! judgement of the certificate it shows, which a kubelet does not make either.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};
use serde_json::Value;

use super::api::each;

/// Longest wait for one answer.
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// Much more than the line that counts.
const HEAD_MAX: usize = 4_096;

/// A readiness probe of the kind that is known here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Probe {
    is_https: bool,
    pub port: u16,
    path: String,
    pub delay: Duration,
    pub period: Duration,
    /// Failures in a row after which it is not ready.
    pub failures_max: u64,
}

impl Probe {
    /// - `container`: as its pod has it.
    ///
    /// # Errors
    /// It is of another kind.
    pub(super) fn of(container: &Value) -> Result<Option<Probe>, String> {
        let probe = &container["readinessProbe"];
        if probe.is_null() {
            return Ok(None);
        }
        let get = &probe["httpGet"];
        let number = |key: &str, otherwise: u64| probe[key].as_u64().unwrap_or(otherwise);
        let named =
            each(&container["ports"]).find(|port| !get["port"].is_null() && port["name"] == get["port"]);
        let port = get["port"].as_u64().or_else(|| named?["containerPort"].as_u64());
        let port = port.and_then(|port| u16::try_from(port).ok());
        Ok(Some(Probe {
            is_https: get["scheme"] == "HTTPS",
            port: port.ok_or("its readiness is not asked by httpGet, of a port that it has")?,
            path: get["path"].as_str().unwrap_or("/").to_owned(),
            delay: Duration::from_secs(number("initialDelaySeconds", 0)),
            period: Duration::from_secs(number("periodSeconds", 10).max(1)),
            failures_max: number("failureThreshold", 3),
        }))
    }

    pub(super) fn succeeds(&self, host: IpAddr) -> bool {
        self.code(host).is_ok_and(|code| (200..400).contains(&code))
    }

    fn code(&self, host: IpAddr) -> Result<u16, String> {
        let address = SocketAddr::from((host, self.port));
        let tcp = TcpStream::connect_timeout(&address, ANSWER_MAX).map_err(shown)?;
        tcp.set_read_timeout(Some(ANSWER_MAX)).map_err(shown)?;
        let request = format!("GET {} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n", self.path);
        if !self.is_https {
            return first_line(tcp, &request);
        }
        let provider = rustls::crypto::ring::default_provider();
        let config = ClientConfig::builder_with_provider(Arc::new(provider.clone()))
            .with_safe_default_protocol_versions()
            .map_err(shown)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServer(provider)))
            .with_no_client_auth();
        let tls =
            ClientConnection::new(Arc::new(config), ServerName::IpAddress(host.into())).map_err(shown)?;
        first_line(StreamOwned::new(tls, tcp), &request)
    }
}

/// The code in it.
fn first_line(mut stream: impl Read + Write, request: &str) -> Result<u16, String> {
    stream.write_all(request.as_bytes()).map_err(shown)?;
    let (mut head, mut piece) = (Vec::new(), [0; 512]);
    while !head.contains(&b'\n') && head.len() < HEAD_MAX {
        match stream.read(&mut piece).map_err(shown)? {
            0 => break,
            read => head.extend(&piece[..read]),
        }
    }
    let line = String::from_utf8_lossy(&head);
    line.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(|| format!("no answer: {line}"))
}

/// Takes every certificate.
#[derive(Debug)]
struct AnyServer(CryptoProvider);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn shown(why: impl std::fmt::Display) -> String {
    why.to_string()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use serde_json::json;

    use super::*;

    fn probe(get: Value) -> Result<Option<Probe>, String> {
        let ports = json!([{ "name": "web", "containerPort": 8_080 }]);
        Probe::of(&json!({ "ports": ports, "readinessProbe": get }))
    }

    #[test]
    fn a_port_is_a_number_or_a_name_and_other_kinds_of_probes_are_refused() {
        let named = probe(json!({ "httpGet": { "port": "web", "path": "/x" }, "periodSeconds": 1 }));
        let named = named.expect("it is known").expect("it has one");
        assert_eq!((named.port, named.path.as_str(), named.period.as_secs()), (8_080, "/x", 1));
        assert!(probe(json!({ "exec": { "command": ["true"] } })).is_err());
        assert_eq!(probe(Value::Null), Ok(None));
    }

    #[test]
    fn an_answer_that_is_no_error_is_good() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let server = std::thread::Builder::new().name("answers".into()).spawn(move || {
            for code in [204, 503] {
                let (mut peer, _) = listener.accept().expect("asked");
                let _ = peer.read(&mut [0; 512]);
                peer.write_all(format!("HTTP/1.0 {code} So\r\n\r\n").as_bytes()).expect("it reads");
            }
        });
        let probe = probe(json!({ "httpGet": { "port": port } })).expect("known").expect("one");
        let host = IpAddr::from(Ipv4Addr::LOCALHOST);
        assert_eq!([probe.succeeds(host), probe.succeeds(host)], [true, false]);
        server.expect("started").join().expect("it served");
        assert!(!probe.succeeds(host), "nobody listens");
    }
}
