//! TLS: what is shown to clients, and what becomes of the certificates that they show.
//!
//! In: PEM and a policy. Out: rustls's server configuration, and [`ClientAuthority`], which judges a client's
//! certificate. The handshake takes any certificate whose key the client has: whether it is trusted is decided for
//! each request, so that an untrusted or expired one is answered 401 and not with a broken connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CipherSuite, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme,
};

use crate::config::{Http2, Tls};
use crate::old_certificate;

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("the {what} is not valid PEM")]
    Pem {
        what: &'static str,
        #[source]
        cause: rustls::pki_types::pem::Error,
    },
    #[error("the {what} holds no certificate")]
    Empty { what: &'static str },
    #[error("certificate and key cannot be served")]
    Serving(#[source] rustls::Error),
    #[error("the authorities of client certificates cannot be used")]
    Authority(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Judges client certificates.
#[derive(Clone)]
pub struct ClientAuthority {
    verifier: Arc<dyn ClientCertVerifier>,
    roots: Arc<[CertificateDer<'static>]>,
}

impl ClientAuthority {
    /// Whether `chain`, the client's certificate first, is signed by an authority for this use and valid at `unix_ms`.
    ///
    /// # Errors
    /// Why not.
    pub fn judge(&self, chain: &[CertificateDer<'_>], unix_ms: u64) -> Result<(), rustls::Error> {
        let (leaf, intermediates) = chain.split_first().ok_or(rustls::Error::NoCertificatesPresented)?;
        if old_certificate::is_old(leaf) {
            return old_certificate::judge(leaf, &self.roots, unix_ms);
        }
        let now = UnixTime::since_unix_epoch(Duration::from_millis(unix_ms));
        self.verifier.verify_client_cert(leaf, intermediates, now).map(drop)
    }
}

/// The server's side of TLS, and the judge of client certificates if there is one.
///
/// # Errors
/// [`TlsError`].
pub fn server_config(tls: &Tls) -> Result<(Arc<ServerConfig>, Option<ClientAuthority>), TlsError> {
    let mut provider = tls.provider.clone();
    provider.cipher_suites.sort_by_key(|suite| cost(suite.suite()));
    let provider = Arc::new(provider);
    let chain = certificates("serving certificate", &tls.cert_chain)?;
    let key = PrivateKeyDer::from_pem_slice(tls.key.as_bytes())
        .map_err(|cause| TlsError::Pem { what: "serving key", cause })?;
    let authority = tls.client_ca.as_deref().map(|pem| authority(pem, &provider)).transpose()?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(tls.versions)
        .map_err(TlsError::Serving)?;
    let builder = match &authority {
        Some(authority) => {
            let hints = authority.verifier.root_hint_subjects().to_vec();
            builder.with_client_cert_verifier(Arc::new(TakeAny { provider, hints }))
        }
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key).map_err(TlsError::Serving)?;
    config.ignore_client_order = true;
    config.alpn_protocols = match tls.http2 {
        Http2::Enabled => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        Http2::Disabled => vec![b"http/1.1".to_vec()],
    };
    Ok((Arc::new(config), authority))
}

/// What a server that sends much wants first: AES has its own instructions on both sides, and fewer rounds with the short
/// key. Go's servers choose likewise.
fn cost(suite: CipherSuite) -> u8 {
    match suite.as_str() {
        Some(name) if name.contains("AES_128_GCM") => 0,
        Some(name) if name.contains("AES_256_GCM") => 1,
        _ => 2,
    }
}

/// The configuration for a client that said hello with `suites`, best first: as `ours` has it, who chooses by itself, or
/// as the client does, if what it wants most is ChaCha20. It has no instructions for AES then.
pub fn for_client(ours: &Arc<ServerConfig>, suites: &[CipherSuite]) -> Arc<ServerConfig> {
    let known = |suite: &&CipherSuite| {
        let provided = &ours.crypto_provider().cipher_suites;
        provided.iter().any(|known| known.suite() == **suite)
    };
    match suites.iter().find(known) {
        Some(first) if cost(*first) > 1 => {
            let mut theirs = ServerConfig::clone(ours);
            theirs.ignore_client_order = false;
            Arc::new(theirs)
        }
        _ => ours.clone(),
    }
}

fn authority(pem: &str, provider: &Arc<CryptoProvider>) -> Result<ClientAuthority, TlsError> {
    let mut roots = RootCertStore::empty();
    let given = certificates("client CA", pem)?;
    for certificate in &given {
        roots.add(certificate.clone()).map_err(|cause| TlsError::Authority(cause.into()))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|cause| TlsError::Authority(cause.into()))?;
    Ok(ClientAuthority { verifier, roots: given.into() })
}

fn certificates(what: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match read {
        Ok(certificates) if certificates.is_empty() => Err(TlsError::Empty { what }),
        Ok(certificates) => Ok(certificates),
        Err(cause) => Err(TlsError::Pem { what, cause }),
    }
}

/// Takes any certificate, and none as well; checks that the client has its key.
struct TakeAny {
    provider: Arc<CryptoProvider>,
    hints: Vec<DistinguishedName>,
}

impl fmt::Debug for TakeAny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TakeAny").finish_non_exhaustive()
    }
}

impl ClientCertVerifier for TakeAny {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if old_certificate::is_old(cert) {
            return old_certificate::verify_tls12(
                message,
                cert,
                dss,
                &self.provider.signature_verification_algorithms,
            );
        }
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if old_certificate::is_old(cert) {
            return old_certificate::verify_tls13(
                message,
                cert,
                dss,
                &self.provider.signature_verification_algorithms,
            );
        }
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
