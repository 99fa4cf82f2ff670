//! Ways into TLS that a hostile client takes: no certificate, a chain of its own, an old version, and records
//! of any type once the handshake is over.
//!
//! In: a client's settings. Out: others, and [`Records`]. Never: a doubt about the server: who it is does not
//! matter here.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::cipher::{MessageEncrypter, OutboundChunks, OutboundPlainMessage};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{
    ClientConfig, ClientConnection, ConnectionTrafficSecrets, ContentType, DigitallySignedStruct,
    ProtocolVersion, SignatureScheme, SupportedCipherSuite,
};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use forebay_contenders::Error;

/// Of the two versions of HTTP, as ALPN names them.
pub const HTTP1: &[u8] = b"http/1.1";
pub const HTTP2: &[u8] = b"h2";

/// `like` for another protocol, showing `chain` instead of its own certificate; no session is taken up again.
pub fn showing(like: &ClientConfig, alpn: &[u8], chain: Option<Arc<CertifiedKey>>) -> ClientConfig {
    let mut config = speaking(like, alpn);
    config.client_auth_cert_resolver = Arc::new(Shown(chain));
    config
}

/// `like` for another protocol; no session is taken up again.
pub fn speaking(like: &ClientConfig, alpn: &[u8]) -> ClientConfig {
    let mut config = like.clone();
    config.alpn_protocols = vec![alpn.to_vec()];
    config.resumption = Resumption::disabled();
    config
}

/// A client of TLS 1.2 without a certificate.
pub fn old() -> Result<ClientConfig, Error> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS12])
        .map_err(wrong)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(ring::default_provider())))
        .with_no_client_auth();
    config.alpn_protocols = vec![HTTP1.to_vec()];
    config.enable_secret_extraction = true;
    Ok(config)
}

/// A certificate that nobody else has signed, followed by `further`.
pub fn own_chain(further: Vec<CertificateDer<'static>>) -> Result<Arc<CertifiedKey>, Error> {
    let key = KeyPair::generate().map_err(wrong)?;
    let leaf = CertificateParams::default().self_signed(&key).map_err(wrong)?;
    let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let signer = ring::sign::any_supported_type(&der).map_err(wrong)?;
    let chain = std::iter::once(leaf.der().clone()).chain(further).collect();
    Ok(Arc::new(CertifiedKey::new(chain, signer)))
}

/// The first record of a client with these settings: its ClientHello.
pub fn hello(config: ClientConfig, name: ServerName<'static>) -> Result<Vec<u8>, Error> {
    let mut client = ClientConnection::new(Arc::new(config), name).map_err(wrong)?;
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).map_err(wrong)?;
    Ok(bytes)
}

/// A finished handshake whose further records are made by hand.
pub struct Records {
    pub tcp: TcpStream,
    encrypter: Box<dyn MessageEncrypter>,
    sequence: u64,
}

impl Records {
    /// Takes over from rustls, whose settings have to allow it.
    pub fn after(stream: TlsStream<TcpStream>) -> Result<Records, Error> {
        let (tcp, client) = stream.into_inner();
        let suite = client.negotiated_cipher_suite().ok_or_else(|| wrong("no cipher suite"))?;
        let (sequence, secrets) = client.dangerous_extract_secrets().map_err(wrong)?.tx;
        let (ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv }) = secrets
        else {
            return Err(wrong("a cipher suite without known keys"));
        };
        let encrypter = match suite {
            SupportedCipherSuite::Tls13(suite) => suite.aead_alg.encrypter(key, iv),
            SupportedCipherSuite::Tls12(suite) => {
                let (fixed, explicit) = iv.as_ref().split_at(suite.aead_alg.key_block_shape().fixed_iv_len);
                suite.aead_alg.encrypter(key, fixed, explicit)
            }
        };
        Ok(Records { tcp, encrypter, sequence })
    }

    /// The next record, as it goes over the wire.
    pub fn record(&mut self, kind: ContentType, content: &[u8]) -> Result<Vec<u8>, Error> {
        let plain = OutboundPlainMessage {
            typ: kind,
            version: ProtocolVersion::TLSv1_2,
            payload: OutboundChunks::Single(content),
        };
        let sealed = self.encrypter.encrypt(plain, self.sequence).map_err(wrong)?;
        self.sequence += 1;
        Ok(sealed.encode())
    }
}

/// Shows what it has, whatever is asked for.
#[derive(Debug)]
struct Shown(Option<Arc<CertifiedKey>>);

impl ResolvesClientCert for Shown {
    fn resolve(&self, _hints: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.clone()
    }

    fn has_certs(&self) -> bool {
        self.0.is_some()
    }
}

/// Takes every server.
#[derive(Debug)]
struct Anybody(CryptoProvider);

impl ServerCertVerifier for Anybody {
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

fn wrong(why: impl std::fmt::Display) -> Error {
    Error::Pki(why.to_string())
}
