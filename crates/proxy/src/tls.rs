//! Who is believed to be a server, and who this one is to it.
//!
//! In: authorities, a certificate with its key. Out: what a handshake goes by. Never: reads a file of its
//! own, but the system's authorities where nobody else vouches.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use forebay_authorities::{believe_servers, old_certificate};
use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Who vouches for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Authorities in PEM.
    Bundle(Vec<u8>),
    /// Whom the system believes.
    System,
    /// Nobody needs to.
    Anybody,
}

/// Who this server is to others: a certificate, its chain, its key. Cheap to clone; all clones are one, and
/// what replaces it is shown with the next handshake.
#[derive(Clone)]
pub struct ClientIdentity(Arc<ArcSwap<CertifiedKey>>);

/// Without the key.
impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity").finish_non_exhaustive()
    }
}

impl ClientIdentity {
    /// - `cert`, `key`: PEM.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn from_pem(cert: &str, key: &str) -> Result<ClientIdentity, String> {
        Ok(ClientIdentity(Arc::new(ArcSwap::from_pointee(certified(cert, key)?))))
    }

    /// Shows another certificate from now on, to who is connected to next.
    ///
    /// - `cert`, `key`: PEM.
    ///
    /// # Errors
    /// They cannot be read, or do not belong together; what was shown still is.
    pub fn replace(&self, cert: &str, key: &str) -> Result<(), String> {
        self.0.store(Arc::new(certified(cert, key)?));
        Ok(())
    }
}

fn certified(cert: &str, key: &str) -> Result<CertifiedKey, String> {
    let chain = CertificateDer::pem_slice_iter(cert.as_bytes()).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|why| format!("not a certificate in PEM: {why}"))?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes());
    let key = key.map_err(|why| format!("not a private key in PEM: {why}"))?;
    old_certificate::certified_key(chain, key, &ring::default_provider()).map_err(|why| format!("tls: {why}"))
}

/// Shows whatever it is now, whoever the server believes: one that believes others says so.
impl ResolvesClientCert for ClientIdentity {
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let own = self.0.load_full();
        own.key.choose_scheme(schemes).is_some().then_some(own)
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// # Errors
/// What cannot be used, in upstream's words where it has some.
pub fn config(trust: &Trust, own: Option<&ClientIdentity>) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions().map_err(|why| why.to_string())?;
    let builder = match trust {
        Trust::Bundle(_) => builder.with_root_certificates(RootCertStore::empty()),
        Trust::System => builder.with_root_certificates(system()),
        Trust::Anybody => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody { provider }))
        }
    };
    let mut config = match own {
        Some(own) => builder.with_client_cert_resolver(Arc::new(own.clone())),
        None => builder.with_no_client_auth(),
    };
    if let Trust::Bundle(pem) = trust {
        believe_servers(&mut config, authorities(pem)?);
    }
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn authorities(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(pem).flatten().collect();
    match all.is_empty() {
        true => Err("unable to load root certificates: unable to parse bytes as PEM block".to_owned()),
        false => Ok(all),
    }
}

/// Read once: they are as many as a hundred, in files.
fn system() -> Arc<RootCertStore> {
    static SYSTEM: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let read = || {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    };
    SYSTEM.get_or_init(read).clone()
}

/// Takes whatever certificate a server has the key of: `insecureSkipTLSVerify`. What else it says is nothing,
/// of whichever version it is.
#[derive(Debug)]
struct Anybody {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        old_certificate::verify_tls12(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        old_certificate::verify_tls13(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use rustls::server::ServerConfig;
    use rustls::sign::SingleCertAndKey;
    use rustls::version::{TLS12, TLS13};
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;

    /// A certificate and its key.
    fn made() -> (Vec<u8>, rcgen::KeyPair) {
        let mut params = rcgen::CertificateParams::default();
        // Long enough for lengths of two bytes, before and after.
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "x".repeat(300));
        let key = rcgen::KeyPair::generate().expect("a key");
        (params.self_signed(&key).expect("signed").der().to_vec(), key)
    }

    /// The same of version 1: nobody looks at its signature here.
    fn old(mut der: Vec<u8>) -> Vec<u8> {
        const VERSION: [u8; 5] = [0xa0, 3, 2, 1, 2];
        assert_eq!((der[1], der[5], &der[8..13]), (0x82, 0x82, &VERSION[..]));
        der.drain(8..13);
        for at in [2, 6] {
            let length = u16::from_be_bytes([der[at], der[at + 1]]) - VERSION.len() as u16;
            der[at..at + 2].copy_from_slice(&length.to_be_bytes());
        }
        der
    }

    fn pem(der: &[u8]) -> String {
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(der))
    }

    #[tokio::test]
    async fn where_nobody_has_to_vouch_for_a_server_its_certificate_may_be_of_any_version() {
        for (version, is_old) in [(&TLS12, false), (&TLS12, true), (&TLS13, false), (&TLS13, true)] {
            let (der, key) = made();
            let der = if is_old { old(der) } else { der };
            assert_eq!(old_certificate::is_old(&der.clone().into()), is_old);
            let provider = Arc::new(ring::default_provider());
            let secret = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
            let secret = provider.key_provider.load_private_key(secret).expect("a key");
            let shown = CertifiedKey::new(vec![der.into()], secret);
            let server = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[version]);
            let server = server.expect("a version").with_no_client_auth();
            let server = Arc::new(server.with_cert_resolver(Arc::new(SingleCertAndKey::from(shown))));
            let (near, far) = tokio::io::duplex(1 << 14);
            let connector = TlsConnector::from(config(&Trust::Anybody, None).expect("a configuration"));
            let name = ServerName::try_from("localhost").expect("a name");
            let acceptor = TlsAcceptor::from(server);
            let (connected, accepted) = tokio::join!(connector.connect(name, near), acceptor.accept(far));
            assert!(connected.is_ok() && accepted.is_ok(), "{version:?} {is_old}: {:?}", connected.err());
        }
    }

    #[test]
    fn a_certificate_of_our_own_may_be_of_any_version_and_is_that_of_the_key() {
        let ((der, key), (_, other)) = (made(), made());
        for der in [der.clone(), old(der)] {
            let read = |key: &rcgen::KeyPair| ClientIdentity::from_pem(&pem(&der), &key.serialize_pem());
            assert!(read(&key).is_ok());
            let why = read(&other).expect_err("another's");
            assert!(why.contains("keys may not be consistent: KeyMismatch"), "{why}");
        }
    }
}
