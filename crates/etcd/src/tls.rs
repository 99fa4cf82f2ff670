//! Our side of TLS to etcd.
//!
//! In: what the files hold, and a way to read them again. Out: what the next connection is made with.
//! Certificates are renewed while we run, so the files are read for each connection, as kube-apiserver does;
//! while they cannot be used, what they held before is. Owner of what is held: whoever connects, under a
//! lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_grpc::chain;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// Reads the files again, or says why that cannot be done. May block.
pub type Reread = Arc<dyn Fn() -> Result<TlsFiles, String> + Send + Sync>;

/// What `--etcd-cafile`, `--etcd-certfile` and `--etcd-keyfile` hold, PEM.
#[derive(Clone, Default)]
pub struct TlsFiles {
    /// Who signs the members' certificates.
    pub ca: Option<String>,
    /// Our certificate with its chain, and its key.
    pub client: Option<(String, String)>,
    /// How what they hold later is known; without it they are what they are for good.
    pub reread: Option<Reread>,
}

impl TlsFiles {
    /// Whether they hold the same.
    fn hold_as(&self, other: &TlsFiles) -> bool {
        (&self.ca, &self.client) == (&other.ca, &other.client)
    }
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

/// See the module's doc.
pub(crate) struct Tls {
    reread: Option<Reread>,
    held: Mutex<Held>,
}

struct Held {
    files: Arc<TlsFiles>,
    config: Arc<ClientConfig>,
    // Why what the files hold now is not used, which was said.
    unusable: Option<String>,
}

impl Tls {
    /// # Errors
    /// Why what `files` holds cannot be used.
    pub(crate) fn new(files: TlsFiles) -> Result<Tls, TlsError> {
        let (config, reread) = (config(&files)?, files.reread.clone());
        Ok(Tls { reread, held: Mutex::new(Held { files: Arc::new(files), config, unusable: None }) })
    }

    /// What to make the next connection with. Cancel-safe.
    pub(crate) async fn connector(&self) -> TlsConnector {
        if let Some(reread) = self.reread.clone() {
            let known = self.held().files.clone();
            let read = forebay_rt::blocking(move || renewed(&known, &reread)).await;
            match read.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(None) => self.held().unusable = None,
                Ok(Some((files, config))) => {
                    *self.held() = Held { files: Arc::new(files), config, unusable: None };
                    tracing::info!(
                        "the --etcd- files have changed: connections are made with what they hold now"
                    );
                }
                Err(why) => self.warn_once(why),
            }
        }
        TlsConnector::from(self.held().config.clone())
    }

    /// Says why the files cannot be used, unless that was said last: each connection asks.
    fn warn_once(&self, why: String) {
        let said = self.held().unusable.replace(why.clone());
        if said.as_ref() != Some(&why) {
            tracing::warn!(
                why,
                "the --etcd- files cannot be used: connections are made with what they held before"
            );
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the files hold now and what to speak TLS with by that, if it is not what is known.
fn renewed(known: &TlsFiles, reread: &Reread) -> Result<Option<(TlsFiles, Arc<ClientConfig>)>, String> {
    let files = reread()?;
    if files.hold_as(known) {
        return Ok(None);
    }
    let config = config(&files).map_err(|error| chain(&error))?;
    Ok(Some((files, config)))
}

/// What to speak TLS with.
fn config(files: &TlsFiles) -> Result<Arc<ClientConfig>, TlsError> {
    let mut roots = RootCertStore::empty();
    let authorities = certificates("cafile", files.ca.as_deref().ok_or(TlsError::NoAuthority)?)?;
    for certificate in &authorities {
        roots.add(certificate.clone()).map_err(TlsError::Unusable)?;
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
    forebay_authorities::believe_servers(&mut config, authorities);
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(flag: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let read = read.map_err(|cause| TlsError::Pem { flag, cause })?;
    if read.is_empty() { Err(TlsError::Empty { flag }) } else { Ok(read) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (String, String) {
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = rcgen::CertificateParams::default().self_signed(&key).expect("signed");
        (certificate.pem(), key.serialize_pem())
    }

    /// What the next connection is made with.
    async fn next(tls: &Tls) -> Arc<ClientConfig> {
        let _connector = tls.connector().await;
        tls.held().config.clone()
    }

    #[tokio::test]
    async fn what_the_files_hold_now_is_used_for_the_next_connection_unless_it_is_broken() {
        let (first, second) = (pair(), pair());
        let files = |certificate: &str, key: &str| TlsFiles {
            ca: Some(first.0.clone()),
            client: Some((certificate.to_string(), key.to_string())),
            reread: None,
        };
        let begun = files(&first.0, &first.1);
        let now = Arc::new(Mutex::new(Ok::<_, String>(begun.clone())));
        let on_disk = now.clone();
        let reread: Reread = Arc::new(move || on_disk.lock().expect("no panic").clone());
        let set = |files| *now.lock().expect("no panic") = files;
        let tls = Tls::new(TlsFiles { reread: Some(reread), ..begun }).expect("valid");

        let before = next(&tls).await;
        assert!(Arc::ptr_eq(&before, &next(&tls).await), "nothing has changed");
        // The last one is half of what is being written.
        for broken in [Err("it is gone".to_string()), Ok(files("x", "y")), Ok(files(&second.0, &first.1))] {
            set(broken);
            assert!(Arc::ptr_eq(&before, &next(&tls).await), "what it was last");
            assert!(tls.held().unusable.is_some());
        }
        set(Ok(files(&second.0, &second.1)));
        let after = next(&tls).await;
        assert!(!Arc::ptr_eq(&before, &after), "renewed");
        assert!(Arc::ptr_eq(&after, &next(&tls).await));
        assert_eq!(tls.held().unusable, None);
    }
}
