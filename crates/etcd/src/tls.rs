//! Our side of TLS to etcd.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// What `--etcd-cafile`, `--etcd-certfile` and `--etcd-keyfile` hold, PEM.
#[derive(Clone, Default)]
pub struct TlsFiles {
    /// Who signs the members' certificates.
    pub ca: Option<String>,
    /// Our certificate with its chain, and its key.
    pub client: Option<(String, String)>,
}

/// A key is not for logs.
impl std::fmt::Debug for TlsFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsFiles")
            .field("ca", &self.ca.is_some())
            .field("client", &self.client.is_some())
            .finish()
    }
}

/// Why TLS to etcd cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("etcd is at https: --etcd-cafile says who signs its certificates")]
    NoAuthority,
    #[error("--etcd-{flag} is not valid PEM")]
    Pem {
        flag: &'static str,
        #[source]
        cause: rustls::pki_types::pem::Error,
    },
    #[error("--etcd-{flag} holds no certificate")]
    Empty { flag: &'static str },
    #[error("what the --etcd- files hold cannot be used")]
    Unusable(#[source] rustls::Error),
}

/// What to speak TLS with.
pub(crate) fn config(files: &TlsFiles) -> Result<Arc<ClientConfig>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("cafile", files.ca.as_deref().ok_or(TlsError::NoAuthority)?)? {
        roots.add(certificate).map_err(TlsError::Unusable)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Unusable)?
        .with_root_certificates(roots);
    let mut config = match &files.client {
        Some((chain, key)) => {
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
                .map_err(|cause| TlsError::Pem { flag: "keyfile", cause })?;
            builder
                .with_client_auth_cert(certificates("certfile", chain)?, key)
                .map_err(TlsError::Unusable)?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(flag: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let read = read.map_err(|cause| TlsError::Pem { flag, cause })?;
    if read.is_empty() { Err(TlsError::Empty { flag }) } else { Ok(read) }
}
