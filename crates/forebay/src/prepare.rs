//! From the configuration to what serving needs: the files it names are read, the data directory and its
//! certificates are made.
//!
//! What is given is read first, so that a slip in a name leaves no new directory behind.

use std::path::PathBuf;
use std::sync::Arc;

use forebay_endpoints::config::{KeyError, NamedCertificate, TokenKeys, TokenUser};
use forebay_etcd::{Reread, TlsFiles};
use jiff::Timestamp;

use crate::admission_files;
use crate::audit_files::{self, AuditFiles};
use crate::auth_files;
use crate::authentication_files::AuthenticationFiles;
use crate::authorization::AuthorizationRead;
use crate::config::{EtcdConfig, Kubelets, ServeConfig};
use crate::error::Error;
use crate::exposed;
use crate::kubeconfig::Kubeconfig;
use crate::sni_files;
use crate::token_key_files;
use crate::token_signing::TokenSigning;
use crate::tracing_file;
use forebay_migrate::data_dir;
use forebay_pki::CertificateFiles;
use forebay_pki::front_proxy::{self, FrontProxy};
use forebay_pki::given::{self, GivenServing};
use forebay_pki::private_files;
use forebay_pki::signing::SigningAuthority;
use forebay_pki::trust;
use forebay_pki::{self as pki, KeyPairPem, Pki};
use forebay_registry::PluginSettings;
use forebay_spans::TracingConfiguration;
use forebay_webhook_client::CredentialsOfPlugins;

/// Where, in the directory of certificates, that of aggregated servers is.
const FRONT_PROXY_DIR: &str = "front-proxy";

/// All that is needed to serve, apart from the store.
#[derive(Debug)]
pub struct Prepared {
    pub config: ServeConfig,
    /// What is shown to clients.
    pub serving: KeyPairPem,
    /// And to those who ask for one of their names.
    pub named: Vec<NamedCertificate>,
    /// What is spoken to etcd with.
    pub etcd_tls: TlsFiles,
    /// The authorities of client certificates, PEM: the given ones and the one that signed `admin`.
    pub client_ca: String,
    pub token_users: Vec<TokenUser>,
    /// Not used where somebody else signs.
    pub token_keys: TokenKeys,
    /// Who signs, where that is somebody else: there once they have answered, before the server listens.
    pub token_signing: Option<TokenSigning>,
    /// Who it is to webhooks.
    pub webhook_credentials: CredentialsOfPlugins,
    /// Which requests are noted, if any are.
    pub audit: Option<AuditFiles>,
    pub front_proxy: FrontProxyFiles,
    /// Who vouches for tokens elsewhere.
    pub authentication: AuthenticationFiles,
    pub kubelets: Option<KubeletFiles>,
    /// Who is asked whether somebody may.
    pub authorization: AuthorizationRead,
    /// What is told of requests.
    pub(crate) tracing: Option<TracingConfiguration>,
    /// Signs what is asked for and approved.
    pub(crate) signing: Arc<SigningAuthority>,
    pub(crate) admin: KeyPairPem,
    /// What clients trust, and the name they check when it is not the address.
    pub(crate) authority: String,
    pub(crate) tls_server_name: Option<String>,
    pub(crate) made: Made,
}

/// What is known of proxies, and what is shown as one.
#[derive(Debug, Clone)]
pub struct FrontProxyFiles {
    /// Authorities of proxies that are believed here, PEM.
    pub believed: Option<String>,
    /// The authority that signed what is shown to other servers, if it was made here; PEM.
    pub made: Option<String>,
    /// What is shown to them.
    pub client: KeyPairPem,
}

/// What kubelets are spoken to with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeletFiles {
    pub client: KeyPairPem,
    /// Who vouches for them, PEM; `None`: nobody needs to.
    pub authority: Option<String>,
}

impl KubeletFiles {
    /// `None`: no kubelet is spoken to.
    ///
    /// # Errors
    /// A file that cannot be used.
    pub fn read(
        decided: &Kubelets,
        now: Timestamp,
        warnings: &mut Vec<String>,
    ) -> Result<Option<KubeletFiles>, Error> {
        let Some(files) = &decided.client else { return Ok(None) };
        let client = given::read_client(files, now, warnings)?;
        let authority = decided.authority.as_deref().map(given::read_authorities).transpose()?;
        Ok(Some(KubeletFiles { client, authority }))
    }
}

/// Where what was made is.
#[derive(Debug, Clone)]
pub(crate) enum Made {
    /// In a directory.
    InFiles(PathBuf),
    Kept(Box<Pki>),
}

impl Prepared {
    /// Reads, checks and makes everything that the configuration names.
    ///
    /// - `warnings`: gets what somebody should look after.
    ///
    /// # Errors
    /// The first file or directory that is not as it should be.
    pub fn new(config: ServeConfig, now: Timestamp, warnings: &mut Vec<String>) -> Result<Self, Error> {
        let given = Given::read(&config, now, warnings)?;
        warnings.extend(data_dir::prepare(&config.data_dir)?);
        let pki = pki::ensure(&config.tls.cert_dir, &config.tls.names, now, warnings)?;
        let front_proxy = match given.proxy_client {
            Some(_) => None,
            None => Some(front_proxy::ensure(&config.tls.cert_dir.join(FRONT_PROXY_DIR), now, warnings)?),
        };
        let made = Made::InFiles(config.tls.cert_dir.clone());
        Self::with(config, given, (pki, front_proxy), made)
    }

    /// The same for a server that keeps nothing: what the configuration names is read, and nothing is
    /// written.
    ///
    /// # Errors
    /// As [`Prepared::new`].
    pub fn in_memory(config: ServeConfig, now: Timestamp, warnings: &mut Vec<String>) -> Result<Self, Error> {
        let given = Given::read(&config, now, warnings)?;
        let pki = pki::in_memory(&config.tls.names, now).map_err(Error::Serve)?;
        let front_proxy = match given.proxy_client {
            Some(_) => None,
            None => Some(front_proxy::in_memory(now).map_err(Error::Serve)?),
        };
        let made = Made::Kept(Box::new(pki.clone()));
        Self::with(config, given, (pki, front_proxy), made)
    }

    fn with(
        mut config: ServeConfig,
        given: Given,
        (pki, front_proxy): (Pki, Option<FrontProxy>),
        made: Made,
    ) -> Result<Self, Error> {
        let admission = config.admission.with_security(given.admission.security);
        let lost_nodes = config.operating.lost_nodes;
        let settings = PluginSettings { lost_nodes, ..given.admission.settings };
        if admission.is_turned_on("EventRateLimit") && settings.event_rates.is_empty() {
            let why = "plugin EventRateLimit has no limits: --admission-control-config-file is to say them";
            return Err(Error::Conflict(why.to_owned()));
        }
        config.admission = admission.with_limited(given.admission.limited).with_settings(settings);
        let tls_server_name =
            given.serving.as_ref().and_then(|serving| serving.tls_server_name(config.local_address()));
        let (serving, authority) = match given.serving {
            Some(given) => (given.pair, given.authority),
            None => (pki.serving, pki.ca_cert.clone()),
        };
        let own = front_proxy.map(|own| (own.ca_cert, own.client));
        let (made_authority, made_client) = own.unzip();
        let shown = given.proxy_client.or(made_client);
        let no_pair = || Error::Serve("there is nothing to show to aggregated servers".to_owned());
        Ok(Self {
            front_proxy: FrontProxyFiles {
                believed: given.proxy_ca,
                made: made_authority,
                client: shown.ok_or_else(no_pair)?,
            },
            authentication: given.authentication,
            kubelets: given.kubelets,
            authorization: given.authorization,
            serving,
            named: given.named,
            etcd_tls: given.etcd,
            client_ca: joined(given.client_ca.as_deref(), config.own_authority(&pki.ca_cert)),
            token_users: given.token_users,
            webhook_credentials: given.admission.webhook_credentials,
            audit: given.audit,
            token_keys: token_keys(given.signing_key, given.token_keys, pki.service_account_key.0)
                .map_err(|cause| Error::pki(config.tls.cert_dir.join("sa.key"), cause.to_string()))?,
            token_signing: None,
            tracing: given.tracing,
            signing: pki.signing,
            admin: pki.admin,
            authority,
            tls_server_name,
            made,
            config,
        })
    }

    /// The authorities that clients of this server are to trust, PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The administrator's kubeconfig for the port that is listened on.
    pub fn admin_kubeconfig(&self, port: u16) -> Kubeconfig<'_> {
        Kubeconfig {
            server: self.config.local_url(port),
            authority: &self.authority,
            tls_server_name: self.tls_server_name.as_deref(),
            client: &self.admin,
        }
    }
}

/// The content of the files that the configuration names.
struct Given {
    serving: Option<GivenServing>,
    named: Vec<NamedCertificate>,
    etcd: TlsFiles,
    client_ca: Option<String>,
    token_users: Vec<TokenUser>,
    signing_key: Option<String>,
    token_keys: Vec<String>,
    admission: admission_files::AdmissionFiles,
    audit: Option<AuditFiles>,
    proxy_ca: Option<String>,
    proxy_client: Option<KeyPairPem>,
    kubelets: Option<KubeletFiles>,
    authentication: AuthenticationFiles,
    authorization: AuthorizationRead,
    tracing: Option<TracingConfiguration>,
}

impl Given {
    fn read(config: &ServeConfig, now: Timestamp, warnings: &mut Vec<String>) -> Result<Self, Error> {
        let client_ca = match config.tls.client_ca_file.as_deref() {
            Some(path) => Some(given::read_client_authorities(path, now, warnings)?),
            None => None,
        };
        let serving = match &config.tls.given {
            Some(files) => Some(GivenServing::read(files, client_ca.as_deref(), now, warnings)?),
            None => None,
        };
        exposed::warn(config, warnings);
        if let Some(given) = &config.encryption {
            // Keys and all: it is made something of when the store is opened.
            forebay_encryption::read_configuration(&given.file, given.reload).map_err(Error::Serve)?;
        }
        let proxy_ca = match config.front_proxy.client_ca_file.as_deref() {
            Some(path) => Some(given::read_client_authorities(path, now, warnings)?),
            None => None,
        };
        if let (Some(clients), Some(proxies), []) =
            (&client_ca, &proxy_ca, &*config.front_proxy.allowed_names)
            && trust::overlap(clients, proxies)
        {
            let why = "--requestheader-client-ca-file and --client-ca-file have an authority in common: \
                       without --requestheader-allowed-names every client could act as anybody";
            return Err(Error::Conflict(why.to_owned()));
        }
        let accounts = &config.authentication.service_accounts;
        Ok(Self {
            serving,
            named: sni_files::read(&config.tls.named, now, warnings)?,
            etcd: config.etcd.as_ref().map_or_else(|| Ok(TlsFiles::default()), etcd_tls)?,
            client_ca,
            token_users: match &config.authentication.token_auth_file {
                Some(path) => auth_files::read(path, warnings)?,
                None => Vec::new(),
            },
            admission: match &config.admission_file {
                Some(path) => admission_files::read(path)?,
                None => admission_files::AdmissionFiles::default(),
            },
            authentication: AuthenticationFiles::read(&config.authentication)?,
            tracing: config.operating.tracing_file.as_deref().map(tracing_file::read).transpose()?,
            audit: audit_files::read(&config.audit, warnings)?,
            proxy_ca,
            proxy_client: match &config.front_proxy.client {
                Some(files) => Some(given::read_client(files, now, warnings)?),
                None => None,
            },
            kubelets: KubeletFiles::read(&config.kubelets, now, warnings)?,
            authorization: AuthorizationRead::read(&config.authorization)?,
            signing_key: accounts
                .signing_key_file
                .as_deref()
                .map(token_key_files::read_signing)
                .transpose()?,
            token_keys: accounts
                .key_files
                .iter()
                .map(|path| token_key_files::read_verifying(path))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// Reads what is spoken to etcd with. It is read again later, since certificates are renewed on disk.
pub(crate) fn etcd_tls(etcd: &EtcdConfig) -> Result<TlsFiles, Error> {
    let (files, etcd) = (read_etcd_tls(etcd)?, etcd.clone());
    let reread: Reread = Arc::new(move || read_etcd_tls(&etcd).map_err(|error| error.line()));
    Ok(TlsFiles { reread: Some(reread), ..files })
}

fn read_etcd_tls(etcd: &EtcdConfig) -> Result<TlsFiles, Error> {
    let pair = |files: &CertificateFiles| {
        Ok::<_, Error>((given::read_authorities(&files.cert)?, private_files::read(&files.key)?))
    };
    Ok(TlsFiles {
        ca: etcd.ca_file.as_deref().map(given::read_authorities).transpose()?,
        client: etcd.client.as_ref().map(pair).transpose()?,
        reread: None,
    })
}

/// Bundles one behind the other.
pub(crate) fn joined(given: Option<&str>, made: &str) -> String {
    match given {
        Some(given) if given.ends_with('\n') => format!("{given}{made}"),
        Some(given) => format!("{given}\n{made}"),
        None => made.to_owned(),
    }
}

/// Tokens that are signed here are always accepted here, unless other keys were given for just that.
pub(crate) fn token_keys(
    given_signing: Option<String>,
    mut verifying: Vec<String>,
    made: String,
) -> Result<TokenKeys, KeyError> {
    let signing_was_given = given_signing.is_some();
    let signing = given_signing.unwrap_or(made);
    if verifying.is_empty() || !signing_was_given {
        verifying.push(signing.clone());
    }
    TokenKeys::from_pem(&signing, &verifying)
}

#[cfg(test)]
mod tests;
