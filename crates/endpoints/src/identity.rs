//! Who this server is and whom it knows, and how that is replaced while it serves: its certificate, the
//! authorities of its clients' certificates, the tokens that it was given, the keys of service accounts'
//! tokens, the proxies in front of it; and what is shown to the servers behind it.
//!
//! In: PEM and tokens, each of them by itself. Out: what handshakes and requests go by from then on. Each
//! is taken whole or not at all, and no connection ends for it. Never: opens a file; whoever reads them has
//! the handle (ADR 46).
//!
//! Owner: whoever has the handle; what it changes is published.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use forebay_auth::tokens::ServiceAccountTokens;
use forebay_auth::{Credentials, FrontProxies};
use forebay_authorities::CertificateAuthority;
use forebay_transport::NamedCertificate;

use crate::config::{ApiServerConfig, TokenKeys, TokenUser};
use crate::tls::{self, Serving, TlsError};

/// See the module's doc. Cheap to clone.
#[derive(Clone)]
pub struct Identity {
    serving: Arc<Serving>,
    known: Arc<Known>,
}

/// Whom the server knows.
pub(crate) struct Known {
    pub credentials: Arc<Credentials>,
    pub accounts: Arc<ServiceAccountTokens>,
    pub counts: Arc<IdentityCounts>,
}

/// What may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityPart {
    /// The certificate that is shown, and its key.
    Serving,
    /// Those that are shown to who asks for their names, and their keys.
    Named,
    /// Whose certificates of clients are believed.
    ClientAuthorities,
    /// The tokens of a file.
    Tokens,
    /// Keys of service accounts' tokens.
    AccountKeys,
    /// Whose certificates of proxies are believed.
    FrontProxies,
    /// The certificate that is shown to aggregated servers, and its key.
    ProxyClient,
    /// The same of kubelets, and who vouches for them.
    KubeletClient,
}

/// How often each part was replaced, and whether what it is to be now cannot be used.
#[derive(Default)]
pub struct IdentityCounts {
    replaced: [AtomicU64; IdentityPart::ALL.len()],
    is_refused: [AtomicBool; IdentityPart::ALL.len()],
}

impl Identity {
    /// What the configuration says.
    ///
    /// - `address`: `host:port` at which others reach this server.
    ///
    /// # Errors
    /// [`TlsError`].
    pub(crate) fn new(config: &ApiServerConfig, address: String) -> Result<Identity, TlsError> {
        let (serving, authority, proxies) = Serving::new(&config.tls)?;
        let known = Arc::new(Known::new(config, address, authority));
        if let Some(proxies) = proxies {
            known.credentials.believe_proxies(proxies);
        }
        Ok(Identity { serving: Arc::new(serving), known })
    }

    pub(crate) fn serving(&self) -> &Arc<Serving> {
        &self.serving
    }

    pub(crate) fn known(&self) -> &Arc<Known> {
        &self.known
    }

    /// Shows another certificate: to who connects from now on.
    ///
    /// - `cert_chain`, `key`: PEM.
    ///
    /// # Errors
    /// [`TlsError`]: they cannot be served, and what was shown still is.
    pub fn show(&self, cert_chain: &str, key: &str) -> Result<(), TlsError> {
        self.serving.show(cert_chain, key)?;
        self.known.counts.replaced(IdentityPart::Serving);
        Ok(())
    }

    /// Shows these certificates to who asks for one of their names, and no others: to who connects from now
    /// on.
    ///
    /// # Errors
    /// [`TlsError`]: one of them cannot be served, and what was shown still is.
    pub fn show_named(&self, certificates: &[NamedCertificate]) -> Result<(), TlsError> {
        self.serving.show_named(certificates)?;
        self.known.counts.replaced(IdentityPart::Named);
        Ok(())
    }

    /// Believes these authorities of client certificates and no others: for who connects from now on, and for
    /// what is read of those who have.
    ///
    /// - `client_ca`: PEM.
    ///
    /// # Errors
    /// [`TlsError`]: something in it is no certificate, and who was believed still is.
    pub fn believe(&self, client_ca: &str) -> Result<(), TlsError> {
        let authority = CertificateAuthority::of_clients(client_ca, self.serving.algorithms())
            .map_err(tls::no_authority)?;
        self.serving.ask_for(authority.hints())?;
        self.known.credentials.believe(authority);
        self.known.counts.replaced(IdentityPart::ClientAuthorities);
        Ok(())
    }

    /// Believes proxies whom these authorities vouch for, and no others, whom a request is from: for who
    /// connects from now on, and for what is read of those who have.
    ///
    /// - `authorities`: PEM.
    /// - `names`: what their certificates are called; any, if there is none.
    ///
    /// # Errors
    /// [`TlsError`]: something in it is no certificate, and who was believed still is.
    pub fn believe_proxies(&self, authorities: &str, names: &[String]) -> Result<(), TlsError> {
        let authority = CertificateAuthority::of_clients(authorities, self.serving.algorithms())
            .map_err(tls::no_authority)?;
        self.serving.ask_for_proxies(authority.hints())?;
        let proxies = FrontProxies { authority, names: names.to_vec() };
        self.known.credentials.believe_proxies(proxies);
        self.known.counts.replaced(IdentityPart::FrontProxies);
        Ok(())
    }

    /// Whoever shows a certificate to other servers shows another one: it was replaced where it is.
    pub fn shown_to_others(&self) {
        self.known.counts.replaced(IdentityPart::ProxyClient);
    }

    /// The same of who shows one to kubelets.
    pub fn shown_to_kubelets(&self) {
        self.known.counts.replaced(IdentityPart::KubeletClient);
    }

    /// Knows these tokens and no others, from the next request on.
    pub fn know(&self, tokens: &[TokenUser]) {
        self.known.credentials.know(tokens);
        self.known.counts.replaced(IdentityPart::Tokens);
    }

    /// Signs and verifies tokens of service accounts with these keys, from the next on. What was found good
    /// before is verified again.
    pub fn sign_with(&self, keys: TokenKeys) {
        self.known.accounts.replace_keys(keys);
        self.known.counts.replaced(IdentityPart::AccountKeys);
    }

    /// Says in the metrics that a part cannot be replaced by what it is to be, or that this is over.
    pub fn refused(&self, part: IdentityPart, is_refused: bool) {
        self.known.counts.is_refused[part as usize].store(is_refused, Ordering::Relaxed);
    }
}

impl Known {
    /// See [`Identity::new`].
    pub fn new(config: &ApiServerConfig, address: String, authority: Option<CertificateAuthority>) -> Known {
        Known {
            credentials: Arc::new(Credentials::new(authority, &config.tokens)),
            accounts: Arc::new(ServiceAccountTokens::new(config.service_accounts.clone(), address)),
            counts: Arc::default(),
        }
    }
}

impl IdentityPart {
    pub const ALL: [IdentityPart; 8] = [
        IdentityPart::Serving,
        IdentityPart::Named,
        IdentityPart::ClientAuthorities,
        IdentityPart::Tokens,
        IdentityPart::AccountKeys,
        IdentityPart::FrontProxies,
        IdentityPart::ProxyClient,
        IdentityPart::KubeletClient,
    ];

    /// As metrics and the log name it.
    pub const fn name(self) -> &'static str {
        match self {
            IdentityPart::Serving => "serving-certificate",
            IdentityPart::Named => "sni-certificates",
            IdentityPart::ClientAuthorities => "client-ca",
            IdentityPart::Tokens => "token-auth-file",
            IdentityPart::AccountKeys => "service-account-keys",
            IdentityPart::FrontProxies => "requestheader-client-ca",
            IdentityPart::ProxyClient => "proxy-client-certificate",
            IdentityPart::KubeletClient => "kubelet-client-certificate",
        }
    }
}

impl IdentityCounts {
    fn replaced(&self, part: IdentityPart) {
        self.replaced[part as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Each part, how often it was replaced, and whether what it is to be now was refused.
    pub fn all(&self) -> impl Iterator<Item = (IdentityPart, u64, bool)> {
        IdentityPart::ALL.into_iter().map(|part| {
            let at = part as usize;
            (part, self.replaced[at].load(Ordering::Relaxed), self.is_refused[at].load(Ordering::Relaxed))
        })
    }
}
