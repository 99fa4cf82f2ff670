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
use crate::tracing_file;
use forebay_migrate::data_dir;
use forebay_pki::CertificateFiles;
use forebay_pki::front_proxy::{self, FrontProxy};
use forebay_pki::given::{self, GivenServing};
use forebay_pki::private_files;
use forebay_pki::signing::SigningAuthority;
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
    pub token_keys: TokenKeys,
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
        let client = GivenServing::read(files, None, now, warnings)?.pair;
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
            proxy_ca: match config.front_proxy.client_ca_file.as_deref() {
                Some(path) => Some(given::read_client_authorities(path, now, warnings)?),
                None => None,
            },
            proxy_client: match &config.front_proxy.client {
                Some(files) => Some(GivenServing::read(files, None, now, warnings)?.pair),
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
mod tests {
    use std::ffi::OsString;
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::config::Host;
    use crate::flags::argv;
    use crate::flags::layers::Raw;
    use forebay_scratch::Scratch;

    fn prepare(dir: &Path, more: &[String]) -> Result<(Prepared, Vec<String>), Error> {
        let data_dir = format!("--data-dir={}", dir.join("data").display());
        let arguments = [data_dir].into_iter().chain(more.iter().cloned()).map(OsString::from);
        let raw = Raw::collect(argv::parse(arguments)?.flags, std::iter::empty())?;
        let mut warnings = Vec::new();
        let config = ServeConfig::decide(&raw, &Host::default())?;
        let now = Timestamp::from_second(1_800_000_000).expect("a time");
        Ok((Prepared::new(config, now, &mut warnings)?, warnings))
    }

    fn write_kubeconfig(prepared: &Prepared, port: u16) -> Result<(), Error> {
        let path = prepared.config.admin_kubeconfig().expect("an administrator is made");
        prepared.admin_kubeconfig(port).write(&path)
    }

    /// Of the keys that verify.
    fn ids(prepared: &Prepared) -> Vec<&str> {
        prepared.token_keys.verifying.iter().map(|key| key.id.as_str()).collect()
    }

    fn kubeconfig(dir: &Path) -> serde_json::Value {
        let text = fs::read_to_string(dir.join("data/admin.kubeconfig")).expect("written");
        serde_saphyr::from_str(&text).expect("YAML")
    }

    #[test]
    fn an_empty_directory_gets_everything_below_the_data_directory() {
        let scratch = Scratch::new();
        let (prepared, warnings) = prepare(scratch.path(), &[]).expect("prepared");
        write_kubeconfig(&prepared, 4711).expect("written");
        assert_eq!(warnings, Vec::<String>::new());
        assert_eq!(kubeconfig(scratch.path())["clusters"][0]["cluster"]["server"], "https://127.0.0.1:4711");
        let mut names: Vec<_> = fs::read_dir(scratch.path().join("data/pki"))
            .expect("listed")
            .map(|entry| entry.expect("entry").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                "admin.crt",
                "admin.key",
                "apiserver.crt",
                "apiserver.key",
                "ca.crt",
                "ca.key",
                "front-proxy",
                "sa.key"
            ]
        );
        assert_eq!(fs::read_dir(scratch.path()).expect("listed").count(), 1);
        assert_eq!(ids(&prepared), [prepared.token_keys.signing.public.id.as_str()]);
    }

    #[test]
    fn in_memory_the_same_is_made_and_nothing_is_written() {
        let scratch = Scratch::new();
        let raw = Raw::collect(argv::parse(std::iter::empty()).expect("parsed").flags, std::iter::empty());
        let mut config = ServeConfig::decide(&raw.expect("collected"), &Host::default()).expect("decided");
        config.data_dir = scratch.path().join("data");
        config.tls.cert_dir = config.data_dir.join("pki");
        let now = Timestamp::from_second(1_800_000_000).expect("a time");
        let prepared = Prepared::in_memory(config, now, &mut Vec::new()).expect("prepared");
        assert_eq!(fs::read_dir(scratch.path()).expect("listed").count(), 0);
        let config: serde_json::Value =
            serde_saphyr::from_str(&prepared.admin_kubeconfig(4711).to_yaml()).expect("YAML");
        assert_eq!(config["clusters"][0]["cluster"]["server"], "https://127.0.0.1:4711");
        assert!(prepared.client_ca.starts_with("-----BEGIN CERTIFICATE-----"));
    }

    #[test]
    fn given_secrets_that_others_can_read_are_warned_about() {
        use std::os::unix::fs::PermissionsExt as _;
        let scratch = Scratch::new();
        let other = prepare(&scratch.path().join("other"), &[]).map(drop);
        other.expect("prepared");
        let file = |name: &str| scratch.path().join("other/data/pki").join(name);
        let tokens = scratch.path().join("tokens");
        fs::write(&tokens, "t,u,1\n").expect("written");
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("mode set");
        };
        let flags = [
            format!("--tls-cert-file={}", file("apiserver.crt").display()),
            format!("--tls-private-key-file={}", file("apiserver.key").display()),
            format!("--token-auth-file={}", tokens.display()),
            format!("--service-account-key-file={}", file("sa.key").display()),
            format!("--service-account-key-file={}", file("ca.crt").display()),
            format!("--service-account-signing-key-file={}", file("admin.key").display()),
        ];
        let secrets = [file("apiserver.key"), tokens, file("admin.key"), file("sa.key")];
        let mut want = Vec::new();
        for (secret, mode) in secrets.iter().zip([0o644, 0o640, 0o604, 0o440]) {
            set(secret, mode);
            let shown = secret.display();
            want.push(format!(
                "{shown} is open to other users of this machine (mode {mode:04o}); chmod 600 closes it"
            ));
        }
        let (_, warnings) = prepare(scratch.path(), &flags).expect("theirs to decide");
        assert_eq!(warnings, want);
        secrets.iter().for_each(|secret| set(secret, 0o600));
        let (_, warnings) = prepare(scratch.path(), &flags).expect("prepared");
        assert_eq!(warnings, Vec::<String>::new());
        // What was made here is not.
        for name in ["ca.key", "apiserver.key", "admin.key", "sa.key"] {
            let made = scratch.path().join("data/pki").join(name);
            set(&made, 0o640);
            let error = prepare(scratch.path(), &[]).expect_err("others may have it");
            let why = "is open to other users of this machine (mode 0640); chmod 600 closes it";
            assert_eq!(error.line(), format!("{}: {why}", made.display()));
            set(&made, 0o600);
        }
    }

    #[test]
    fn an_authority_that_is_not_in_its_time_is_warned_about() {
        let scratch = Scratch::new();
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, "old");
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        let key = rcgen::KeyPair::generate().expect("a key");
        let file = scratch.path().join("clients.crt");
        fs::write(&file, params.self_signed(&key).expect("signed").pem()).expect("written");
        let flag = format!("--client-ca-file={}", file.display());
        let (_, warnings) = prepare(scratch.path(), &[flag]).expect("prepared");
        assert_eq!(
            warnings,
            [format!(
                "authority CN=old in {} is valid from 2000-01-01T00:00:00Z to 2020-01-01T00:00:00Z only: it vouches for \
                 nobody",
                file.display()
            )]
        );
    }

    #[test]
    fn a_missing_file_is_named_and_leaves_no_directory_behind() {
        for flag in [
            "token-auth-file",
            "client-ca-file",
            "service-account-key-file",
            "service-account-signing-key-file",
        ] {
            let scratch = Scratch::new();
            let missing = scratch.path().join("missing");
            let error =
                prepare(scratch.path(), &[format!("--{flag}={}", missing.display())]).expect_err(flag);
            assert!(error.line().starts_with(&format!("read {}: ", missing.display())), "{}", error.line());
            assert_eq!(fs::read_dir(scratch.path()).expect("listed").count(), 0, "{flag}");
        }
    }

    #[test]
    fn given_files_take_the_place_of_made_ones() {
        let scratch = Scratch::new();
        let other =
            prepare(&scratch.path().join("other"), &["--external-hostname=api.example.org".to_owned()]);
        let (other, _) = other.expect("prepared");
        let file = |name: &str| scratch.path().join("other/data/pki").join(name).display().to_string();
        fs::write(scratch.path().join("tokens"), "t,u,1,\"g,h\"\n").expect("written");
        let flags = [
            format!("--tls-cert-file={}", file("apiserver.crt")),
            format!("--tls-private-key-file={}", file("apiserver.key")),
            format!("--client-ca-file={}", file("ca.crt")),
            format!("--token-auth-file={}", scratch.path().join("tokens").display()),
            format!("--service-account-key-file={}", file("sa.key")),
            "--bind-address=127.0.0.9".to_owned(),
        ];
        let (prepared, _) = prepare(scratch.path(), &flags).expect("prepared");
        write_kubeconfig(&prepared, 1).expect("written");
        assert_eq!(prepared.serving, other.serving);
        assert_eq!(prepared.token_users.len(), 1);
        assert!(
            prepared.client_ca.starts_with(&other.client_ca)
                && prepared.client_ca.len() > other.client_ca.len()
        );
        let signing = |prepared: &Prepared| prepared.token_keys.signing.public.id.clone();
        assert_eq!(ids(&prepared), [signing(&other), signing(&prepared)]);
        let cluster = &kubeconfig(scratch.path())["clusters"][0]["cluster"];
        assert_eq!(cluster["server"], "https://127.0.0.9:1");
        // The given certificate does not cover that address; the authority that signed it is known.
        assert_eq!(cluster["tls-server-name"], "localhost");
        use base64::Engine as _;
        let authority = base64::engine::general_purpose::STANDARD.encode(&other.client_ca);
        assert_eq!(cluster["certificate-authority-data"].as_str().map(str::len), Some(authority.len()));
    }

    #[test]
    fn files_of_the_wrong_kind_are_named() {
        let scratch = Scratch::new();
        let (_, _) = prepare(&scratch.path().join("other"), &[]).expect("prepared");
        let file = |name: &str| scratch.path().join("other/data/pki").join(name).display().to_string();
        let rows = [
            (vec![("client-ca-file", "ca.key")], "ca.key: holds no certificate in PEM"),
            (vec![("service-account-signing-key-file", "ca.crt")], "ca.crt: not a private key in PEM"),
            (
                vec![("tls-cert-file", "apiserver.crt"), ("tls-private-key-file", "admin.key")],
                "admin.key: is not the private key of the certificate in",
            ),
            (
                vec![("tls-cert-file", "apiserver.key"), ("tls-private-key-file", "apiserver.key")],
                "apiserver.key: holds no certificate in PEM",
            ),
        ];
        for (flags, want) in rows {
            let flags: Vec<_> = flags.iter().map(|(flag, name)| format!("--{flag}={}", file(name))).collect();
            let error = prepare(scratch.path(), &flags).expect_err(want);
            assert!(error.line().contains(want), "{}", error.line());
            assert_eq!(error.exit_code(), 1);
        }
    }

    #[test]
    fn what_is_spoken_to_etcd_with_is_read_again_when_its_files_were_renewed() {
        let scratch = Scratch::new();
        prepare(scratch.path(), &[]).expect("prepared");
        let (pki, at) = (scratch.path().join("data/pki"), |name: &str| scratch.path().join(name));
        let renew = |name: &str| {
            for (end, to) in [("crt", "client.crt"), ("key", "client.key")] {
                fs::copy(pki.join(format!("{name}.{end}")), at(to)).expect("copied");
            }
        };
        renew("admin");
        let config = EtcdConfig {
            endpoints: Vec::new(),
            ca_file: Some(pki.join("ca.crt")),
            client: Some(CertificateFiles { cert: at("client.crt"), key: at("client.key") }),
            compaction_interval: None,
        };
        let files = etcd_tls(&config).expect("read");
        let reread = files.reread.clone().expect("files may be renewed");
        assert_eq!(reread().expect("read").client, files.client);
        renew("apiserver");
        let renewed = reread().expect("read");
        assert!(renewed.ca == files.ca && renewed.client.is_some() && renewed.client != files.client);
        fs::remove_file(at("client.key")).expect("removed");
        let why = reread().expect_err("it is gone");
        assert!(why.starts_with(&format!("read {}: ", at("client.key").display())), "{why}");
    }

    #[test]
    fn the_certificate_directory_may_be_elsewhere() {
        let scratch = Scratch::new();
        let certs = scratch.path().join("certs");
        prepare(scratch.path(), &[format!("--cert-dir={}", certs.display())]).expect("prepared");
        assert!(private_files::read_if_there(&certs.join("ca.crt")).expect("read").is_some());
        assert!(!scratch.path().join("data/pki").exists());
    }
}
