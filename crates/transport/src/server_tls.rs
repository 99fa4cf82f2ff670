//! TLS of a server: the certificates that are shown to clients, and the settings of rustls.
//!
//! In: PEM, and a verifier of clients' certificates. All of it may be replaced while the server runs. Out:
//! rustls's configuration for the next connection. Never: judges a certificate.
//!
//! Owner of what changes: one lock, which only those who change it take.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, NoServerSessionStorage};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CipherSuite, ServerConfig, SupportedProtocolVersion};

use crate::shown::{Named, NamedCertificate, ShownCertificates};

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

/// Whether clients may speak HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http2 {
    Enabled,
    Disabled,
}

/// The certificates that are shown to clients, and whether they are asked for one. Both may change while the
/// server runs, for connections that are accepted afterwards.
pub struct ServerTls {
    provider: Arc<CryptoProvider>,
    versions: &'static [&'static SupportedProtocolVersion],
    http2: Http2,
    // What the current configuration was made of.
    parts: Mutex<Parts>,
    current: ArcSwap<Current>,
}

struct Current {
    config: Arc<ServerConfig>,
    named: Arc<Named>,
}

#[derive(Clone)]
struct Parts {
    certified: Arc<CertifiedKey>,
    named: Arc<Named>,
    // `None` where clients are not asked for certificates.
    clients: Option<Arc<dyn ClientCertVerifier>>,
}

impl ServerTls {
    /// The configuration to begin with.
    ///
    /// - `cert_chain`, `key`: PEM.
    /// - `clients`: the verifier of clients' certificates; without it clients are not asked for any.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn new(
        mut provider: CryptoProvider,
        versions: &'static [&'static SupportedProtocolVersion],
        http2: Http2,
        (cert_chain, key): (&str, &str),
        clients: Option<Arc<dyn ClientCertVerifier>>,
    ) -> Result<ServerTls, TlsError> {
        provider.cipher_suites.sort_by_key(|suite| cost(suite.suite()));
        let provider = Arc::new(provider);
        let certified = Arc::new(certified(&provider, cert_chain, key)?);
        let parts = Parts { certified, named: Arc::default(), clients };
        let current = ArcSwap::from_pointee(current(&provider, versions, http2, parts.clone())?);
        Ok(ServerTls { provider, versions, http2, parts: Mutex::new(parts), current })
    }

    /// The configuration for a connection that is accepted now.
    pub fn current(&self) -> Arc<ServerConfig> {
        self.current.load().config.clone()
    }

    /// The same, for a client that says `hello`.
    ///
    /// - `address`: the server's end of the connection; it counts where the client asks for no name.
    pub(crate) fn for_client(&self, hello: &ClientHello<'_>, address: Option<IpAddr>) -> Arc<ServerConfig> {
        let current = self.current.load();
        let config = for_client(&current.config, hello.cipher_suites());
        let address = address.filter(|_| hello.server_name().is_none());
        match address.and_then(|address| current.named.of_address(address)) {
            None => config,
            Some(certified) => {
                let mut theirs = ServerConfig::clone(&config);
                theirs.cert_resolver = Arc::new(SingleCertAndKey::from(certified.clone()));
                Arc::new(theirs)
            }
        }
    }

    /// Shows another certificate, with its chain and key in PEM, from now on.
    ///
    /// # Errors
    /// [`TlsError`]; the old certificate stays.
    pub fn show(&self, cert_chain: &str, key: &str) -> Result<(), TlsError> {
        let certified = Arc::new(certified(&self.provider, cert_chain, key)?);
        self.change(|parts| parts.certified = certified)
    }

    /// Shows these certificates to those who ask for one of their names from now on, and no others; the
    /// [certificate](ServerTls::show) without names is for everybody else.
    ///
    /// # Errors
    /// [`TlsError`]; who asks for a name is shown what was shown before.
    pub fn show_named(&self, certificates: &[NamedCertificate]) -> Result<(), TlsError> {
        let named = Arc::new(Named::new(&self.provider, certificates)?);
        self.change(|parts| parts.named = named)
    }

    /// Asks clients for certificates from now on, and has `clients` judge them.
    ///
    /// # Errors
    /// [`TlsError`]; clients are asked and judged as before.
    pub fn ask_for(&self, clients: Arc<dyn ClientCertVerifier>) -> Result<(), TlsError> {
        self.change(|parts| parts.clients = Some(clients))
    }

    /// The signature algorithms that are accepted.
    pub fn algorithms(&self) -> WebPkiSupportedAlgorithms {
        self.provider.signature_verification_algorithms
    }

    fn change(&self, change: impl FnOnce(&mut Parts)) -> Result<(), TlsError> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = parts.clone();
        change(&mut changed);
        let current = current(&self.provider, self.versions, self.http2, changed.clone())?;
        self.current.store(Arc::new(current));
        *parts = changed;
        Ok(())
    }
}

/// A certificate with its chain, and its key, both in PEM, as rustls has them.
///
/// # Errors
/// [`TlsError`]: something else, or they do not belong together.
pub(crate) fn certified(
    provider: &CryptoProvider,
    cert_chain: &str,
    key: &str,
) -> Result<CertifiedKey, TlsError> {
    let chain = certificates("serving certificate", cert_chain)?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|cause| TlsError::Pem { what: "serving key", cause })?;
    CertifiedKey::from_der(chain, key, provider).map_err(TlsError::Serving)
}

fn current(
    provider: &Arc<CryptoProvider>,
    versions: &[&'static SupportedProtocolVersion],
    http2: Http2,
    Parts { certified, named, clients }: Parts,
) -> Result<Current, TlsError> {
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .map_err(TlsError::Serving)?;
    let builder = match clients {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config =
        builder.with_cert_resolver(Arc::new(ShownCertificates { certified, named: named.clone() }));
    config.ignore_client_order = true;
    // Nothing of a client is kept once its connection is over: a session that may be resumed has its
    // certificates, in each of two tickets. Go's clients resume none, and another client's full handshake
    // costs us one signature with P-256.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = match http2 {
        Http2::Enabled => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        Http2::Disabled => vec![b"http/1.1".to_vec()],
    };
    Ok(Current { config: Arc::new(config), named })
}

/// AES-128 is preferred: CPUs have instructions for AES, and the short key needs fewer rounds. Go's servers
/// choose likewise.
fn cost(suite: CipherSuite) -> u8 {
    match suite.as_str() {
        Some(name) if name.contains("AES_128_GCM") => 0,
        Some(name) if name.contains("AES_256_GCM") => 1,
        _ => 2,
    }
}

/// The configuration for a client whose hello lists `suites`, its favourite first. It is `ours`, by which the
/// server's order counts; but a client that lists ChaCha20 first has no instructions for AES, and gets its
/// own order.
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

/// The certificates of a PEM text, at least one.
///
/// # Errors
/// [`TlsError`].
pub fn certificates(what: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match read {
        Ok(certificates) if certificates.is_empty() => Err(TlsError::Empty { what }),
        Ok(certificates) => Ok(certificates),
        Err(cause) => Err(TlsError::Pem { what, cause }),
    }
}
