//! The files that say who this server is and whom it knows, followed while it runs: its certificates with
//! their keys, the authorities of client certificates, the token file, the keys of service accounts' tokens,
//! the authorities of proxies, what is shown to aggregated servers and to kubelets; those that were given
//! and, of the first ones, those that were made.
//!
//! In: files, looked at every [`LOOK_EVERY`]. Out: what they hold now, handed to the server that runs, each
//! of the parts whole or not at all: a part that is being written, or whose files do not belong
//! together, stays what it was, which the log says once and a metric as long as it is so (ADR 46). Never:
//! makes or renews a file but the administrator's kubeconfig.
//!
//! Owner: one task.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use forebay_endpoints::config::{NamedCertificate, TokenKeys, TokenUser};
use forebay_endpoints::identity::IdentityPart;
use forebay_rt::Clock;
use jiff::Timestamp;

use crate::auth_files;
use crate::config::ServeConfig;
use crate::error::Error;
use crate::kubeconfig::Kubeconfig;
use crate::prepare::{self, KubeletFiles, Made, Prepared};
use crate::server::Replacing;
use crate::sni_files;
use crate::token_key_files;
use forebay_pki::given::{self, GivenServing};
use forebay_pki::{self as pki, KeyPairPem};

/// How often the files are looked at: a dozen calls of stat, 20 us or so. Who takes a certificate or a token
/// away waits for that; kube-apiserver looks once in a minute.
pub const LOOK_EVERY: Duration = Duration::from_secs(10);

/// What has changed is taken once it was the same for so long: who writes a file in pieces, or a certificate
/// and then its key, is through by then.
pub const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// See the module's doc.
pub struct Files {
    from: Sources,
    parts: Vec<Followed>,
    // Of the kubeconfig.
    port: u16,
    // Whether there are authorities that the store has not taken yet.
    is_unpublished: bool,
}

/// Where it is all read from.
#[derive(Clone)]
struct Sources {
    config: ServeConfig,
    made: Made,
    // Beside a serving certificate that was given, what was made for the administrator stays.
    admin: KeyPairPem,
}

/// What a part's files have settled to, and what somebody should look after.
pub struct Settled {
    part: IdentityPart,
    held: Held,
    warnings: Vec<String>,
}

/// A part, and how far it is known.
struct Followed {
    part: IdentityPart,
    paths: Vec<PathBuf>,
    counts: Content,
    // What the files were when they were last looked at, and how often they were read since they were that.
    stamps: Vec<Option<Stamp>>,
    reads: u32,
    // What they hold now, once it was read, and what cannot be used of what they held.
    changed: Option<Held>,
    refused: Option<Held>,
}

/// What a part's files hold, or why that cannot be told.
type Held = Result<Content, String>;

/// What changes when a file does, mostly.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    // Seconds and nanoseconds.
    modified: (i64, i64),
    changed: (i64, i64),
}

/// What a part's files hold.
#[derive(Clone)]
enum Content {
    Serving(Box<Serving>),
    Named(Vec<NamedCertificate>),
    ClientAuthorities(String),
    Tokens(Vec<TokenUser>),
    AccountKeys(TokenKeys),
    FrontProxies(String),
    ProxyClient(Box<KeyPairPem>),
    KubeletClient(Box<KubeletFiles>),
}

/// The certificate that is shown; and what the administrator's kubeconfig says of it.
#[derive(Clone, PartialEq, Eq)]
struct Serving {
    pair: KeyPairPem,
    authority: String,
    tls_server_name: Option<String>,
    admin: KeyPairPem,
}

impl PartialEq for Content {
    fn eq(&self, other: &Content) -> bool {
        match (self, other) {
            (Content::Serving(one), Content::Serving(other)) => one == other,
            (Content::Named(one), Content::Named(other)) => one == other,
            (Content::ClientAuthorities(one), Content::ClientAuthorities(other)) => one == other,
            (Content::Tokens(one), Content::Tokens(other)) => one == other,
            // A private key is known by its public half.
            (Content::AccountKeys(one), Content::AccountKeys(other)) => {
                one.signing.public == other.signing.public && one.verifying == other.verifying
            }
            (Content::FrontProxies(one), Content::FrontProxies(other)) => one == other,
            (Content::ProxyClient(one), Content::ProxyClient(other)) => one == other,
            (Content::KubeletClient(one), Content::KubeletClient(other)) => one == other,
            _ => false,
        }
    }
}

impl Files {
    /// The files of a server that began as `prepared`. What it keeps in memory is not followed.
    ///
    /// - `port`: that it listens on.
    pub fn of(prepared: &Prepared, port: u16) -> Files {
        let from = Sources {
            config: prepared.config.clone(),
            made: prepared.made.clone(),
            admin: prepared.admin.clone(),
        };
        let signs_here = prepared.token_signing.is_none();
        let parts = IdentityPart::ALL.into_iter();
        let parts = parts.filter(|part| signs_here || *part != IdentityPart::AccountKeys);
        let parts = parts.filter_map(|part| {
            let counts = match part {
                IdentityPart::Serving => Content::Serving(Box::new(Serving {
                    pair: prepared.serving.clone(),
                    authority: prepared.authority.clone(),
                    tls_server_name: prepared.tls_server_name.clone(),
                    admin: prepared.admin.clone(),
                })),
                IdentityPart::Named => Content::Named(prepared.named.clone()),
                IdentityPart::ClientAuthorities => Content::ClientAuthorities(prepared.client_ca.clone()),
                IdentityPart::Tokens => Content::Tokens(prepared.token_users.clone()),
                IdentityPart::AccountKeys => Content::AccountKeys(prepared.token_keys.clone()),
                IdentityPart::FrontProxies => {
                    Content::FrontProxies(prepared.front_proxy.believed.clone().unwrap_or_default())
                }
                IdentityPart::ProxyClient => {
                    Content::ProxyClient(Box::new(prepared.front_proxy.client.clone()))
                }
                IdentityPart::KubeletClient => Content::KubeletClient(Box::new(prepared.kubelets.clone()?)),
            };
            let paths = from.paths(part);
            Some(Followed { part, paths, counts, stamps: Vec::new(), reads: 0, changed: None, refused: None })
        });
        let parts = parts.filter(|followed| !followed.paths.is_empty()).collect();
        Files { from, parts, port, is_unpublished: false }
    }

    /// Follows them for as long as the server runs. Cancel-safe: what was not taken in counts for nobody.
    pub async fn follow(mut self, server: Replacing, clock: Clock) {
        loop {
            let is_settling = self.parts.iter().any(|followed| followed.changed.is_some());
            clock.sleep(if is_settling { SETTLED_AFTER } else { LOOK_EVERY }).await;
            let now = server.timestamp();
            // A disk may be elsewhere.
            let looked = forebay_rt::blocking(move || {
                let settled = self.look(now);
                (self, settled)
            });
            let Ok((files, settled)) = looked.await else {
                tracing::error!("the files of certificates, keys and tokens are no longer followed");
                return;
            };
            self = files;
            self.take_in(settled, &server).await;
        }
    }

    /// What has changed, and was the same when it was looked at before.
    pub fn look(&mut self, now: Timestamp) -> Vec<Settled> {
        let Files { from, parts, .. } = self;
        parts.iter_mut().filter_map(|followed| followed.look(|part| from.read(part, now))).collect()
    }

    /// Hands it to the server, each part that can be used.
    pub async fn take_in(&mut self, settled: Vec<Settled>, server: &Replacing) {
        for Settled { part, held, warnings } in settled {
            warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
            self.take(part, held, server);
        }
        self.publish(server).await;
    }

    /// Takes what a part's files hold, or says why not.
    fn take(&mut self, part: IdentityPart, held: Held, server: &Replacing) {
        let taken = match &held {
            Ok(content) => self.put_in_force(content, server).map(|()| content.clone()),
            Err(why) => Err(why.clone()),
        };
        server.identity.refused(part, taken.is_err());
        let Some(followed) = self.parts.iter_mut().find(|followed| followed.part == part) else { return };
        match taken {
            Ok(content) => {
                tracing::info!(part = part.name(), "its files have changed and were taken in");
                (followed.counts, followed.refused) = (content, None);
            }
            Err(why) => {
                let part = part.name();
                tracing::warn!(part, why, "its files have changed and cannot be used: it stays what it was");
                followed.refused = Some(held);
            }
        }
    }

    /// # Errors
    /// Why it cannot be used; then nothing has changed.
    fn put_in_force(&mut self, content: &Content, server: &Replacing) -> Result<(), String> {
        let line = |error: forebay_endpoints::TlsError| crate::server::failed(error).line();
        match content {
            Content::Serving(serving) => {
                server.identity.show(&serving.pair.cert, &serving.pair.key).map_err(line)?;
                server.trust(&serving.authority);
                self.write_kubeconfig(serving);
            }
            Content::Named(all) => server.identity.show_named(all).map_err(line)?,
            Content::ClientAuthorities(pem) => {
                server.identity.believe(pem).map_err(line)?;
                server.are_client_authorities(pem);
                self.is_unpublished = true;
            }
            Content::Tokens(users) => server.identity.know(users),
            Content::AccountKeys(keys) => server.identity.sign_with(keys.clone()),
            Content::FrontProxies(pem) => {
                let names = &self.from.config.front_proxy.allowed_names;
                server.identity.believe_proxies(pem, names).map_err(line)?;
                server.are_proxy_authorities(pem);
                self.is_unpublished = true;
            }
            Content::ProxyClient(pair) => server.show_to_others(&pair.cert, &pair.key)?,
            Content::KubeletClient(files) => server.show_to_kubelets(files)?,
        }
        Ok(())
    }

    fn write_kubeconfig(&self, serving: &Serving) {
        let config = &self.from.config;
        let kubeconfig = Kubeconfig {
            server: config.local_url(self.port),
            authority: &serving.authority,
            tls_server_name: serving.tls_server_name.as_deref(),
            client: &serving.admin,
        };
        let written = config.admin_kubeconfig().map_or(Ok(()), |path| kubeconfig.write(&path));
        if let Err(error) = written {
            tracing::warn!(why = error.line(), "the administrator's kubeconfig is not what it should be now");
        }
    }

    /// Publishes the authorities, if they are not yet; what does not succeed is tried again with the next
    /// look.
    async fn publish(&mut self, server: &Replacing) {
        if !self.is_unpublished {
            return;
        }
        match server.publish_authorities().await {
            Ok(()) => self.is_unpublished = false,
            Err(why) => tracing::warn!(why, "the authorities of clients and proxies are not published yet"),
        }
    }
}

impl Followed {
    /// What the files hold, once it has changed and settled: read twice, and the same.
    fn look(&mut self, read: impl FnOnce(IdentityPart) -> (Held, Vec<String>)) -> Option<Settled> {
        let stamps: Vec<_> = self.paths.iter().map(Stamp::of).collect();
        // What is written within the same moment of the disk's clock may have the same stamp: they are read
        // once more.
        self.reads = if stamps == self.stamps { self.reads.saturating_add(1) } else { 1 };
        self.stamps = stamps;
        if self.reads > 2 && self.changed.is_none() && self.refused.is_none() {
            return None;
        }
        let (held, warnings) = read(self.part);
        let before = self.changed.take();
        // What counts is news only to who was told that the files cannot be used.
        let is_old = match &self.refused {
            Some(refused) => *refused == held,
            None => held.as_ref().is_ok_and(|content| *content == self.counts),
        };
        if is_old {
            return None;
        }
        if before.as_ref() == Some(&held) {
            return Some(Settled { part: self.part, held, warnings });
        }
        self.changed = Some(held);
        None
    }
}

impl Stamp {
    /// Of what a path leads to.
    fn of(path: &PathBuf) -> Option<Stamp> {
        let found = fs::metadata(path).ok()?;
        Some(Stamp {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

impl Sources {
    /// The files of a part.
    fn paths(&self, part: IdentityPart) -> Vec<PathBuf> {
        let made = |names: &[&str]| match &self.made {
            Made::InFiles(dir) => names.iter().map(|name| dir.join(name)).collect(),
            Made::Kept(_) => Vec::new(),
        };
        let (tls, authentication) = (&self.config.tls, &self.config.authentication);
        let accounts = &authentication.service_accounts;
        match part {
            IdentityPart::Serving => match &tls.given {
                // One of those authorities may have signed it, and is named in the kubeconfig then.
                Some(given) => {
                    let authorities = tls.client_ca_file.iter().cloned();
                    [given.cert.clone(), given.key.clone()].into_iter().chain(authorities).collect()
                }
                None => made(&["ca.crt", "apiserver.crt", "apiserver.key", "admin.crt", "admin.key"]),
            },
            IdentityPart::Named => {
                let files = tls.named.iter().map(|named| &named.files);
                files.flat_map(|files| [files.cert.clone(), files.key.clone()]).collect()
            }
            IdentityPart::ClientAuthorities => {
                tls.client_ca_file.iter().cloned().chain(made(&["ca.crt"])).collect()
            }
            IdentityPart::Tokens => authentication.token_auth_file.iter().cloned().collect(),
            IdentityPart::FrontProxies => self.config.front_proxy.client_ca_file.iter().cloned().collect(),
            IdentityPart::ProxyClient => {
                let files = self.config.front_proxy.client.iter();
                files.flat_map(|files| [files.cert.clone(), files.key.clone()]).collect()
            }
            IdentityPart::KubeletClient => {
                let kubelets = &self.config.kubelets;
                let client = kubelets.client.iter().flat_map(|files| [files.cert.clone(), files.key.clone()]);
                client.chain(kubelets.authority.clone()).collect()
            }
            IdentityPart::AccountKeys => {
                let given = accounts.signing_key_file.iter().chain(&accounts.key_files).cloned();
                let made = if accounts.signing_key_file.is_none() { made(&["sa.key"]) } else { Vec::new() };
                given.chain(made).collect()
            }
        }
    }

    /// What a part's files hold now, and what somebody should look after.
    fn read(&self, part: IdentityPart, now: Timestamp) -> (Held, Vec<String>) {
        let mut warnings = Vec::new();
        let read = match part {
            IdentityPart::Serving => {
                self.serving(now, &mut warnings).map(|serving| Content::Serving(Box::new(serving)))
            }
            IdentityPart::Named => {
                let named = sni_files::read(&self.config.tls.named, now, &mut warnings);
                named.map(Content::Named)
            }
            IdentityPart::ClientAuthorities => {
                self.client_authorities(now, &mut warnings).map(Content::ClientAuthorities)
            }
            IdentityPart::Tokens => self.tokens(&mut warnings).map(Content::Tokens),
            IdentityPart::AccountKeys => self.account_keys().map(Content::AccountKeys),
            IdentityPart::FrontProxies => self.proxies(now, &mut warnings).map(Content::FrontProxies),
            IdentityPart::ProxyClient => {
                self.proxy_client(now, &mut warnings).map(|pair| Content::ProxyClient(Box::new(pair)))
            }
            IdentityPart::KubeletClient => {
                self.kubelet_client(now, &mut warnings).map(|files| Content::KubeletClient(Box::new(files)))
            }
        };
        (read.map_err(|error| error.line()), warnings)
    }

    fn serving(&self, now: Timestamp, warnings: &mut Vec<String>) -> Result<Serving, Error> {
        let Some(files) = &self.config.tls.given else {
            let (authority, pair, admin) = match &self.made {
                Made::InFiles(dir) => pki::read_certificates(dir)?,
                Made::Kept(pki) => (pki.ca_cert.clone(), pki.serving.clone(), pki.admin.clone()),
            };
            return Ok(Serving { pair, authority, tls_server_name: None, admin });
        };
        let client_ca = self.config.tls.client_ca_file.as_deref().map(given::read_authorities).transpose()?;
        let given = GivenServing::read(files, client_ca.as_deref(), now, warnings)?;
        let tls_server_name = given.tls_server_name(self.config.local_address());
        let admin = self.admin.clone();
        Ok(Serving { pair: given.pair, authority: given.authority, tls_server_name, admin })
    }

    fn client_authorities(&self, now: Timestamp, warnings: &mut Vec<String>) -> Result<String, Error> {
        let given = self.config.tls.client_ca_file.as_deref();
        let given = given.map(|path| given::read_client_authorities(path, now, warnings)).transpose()?;
        let own = match &self.made {
            Made::InFiles(dir) => given::read_authorities(&dir.join("ca.crt"))?,
            Made::Kept(pki) => pki.ca_cert.clone(),
        };
        Ok(prepare::joined(given.as_deref(), self.config.own_authority(&own)))
    }

    fn tokens(&self, warnings: &mut Vec<String>) -> Result<Vec<TokenUser>, Error> {
        match &self.config.authentication.token_auth_file {
            Some(path) => auth_files::read(path, warnings),
            None => Ok(Vec::new()),
        }
    }

    fn proxies(&self, now: Timestamp, warnings: &mut Vec<String>) -> Result<String, Error> {
        match self.config.front_proxy.client_ca_file.as_deref() {
            Some(path) => Ok(given::read_client_authorities(path, now, warnings)?),
            None => Ok(String::new()),
        }
    }

    fn proxy_client(&self, now: Timestamp, warnings: &mut Vec<String>) -> Result<KeyPairPem, Error> {
        match &self.config.front_proxy.client {
            Some(files) => Ok(given::read_client(files, now, warnings)?),
            None => Err(Error::Serve("no certificate for aggregated servers was given".to_owned())),
        }
    }

    fn kubelet_client(&self, now: Timestamp, warnings: &mut Vec<String>) -> Result<KubeletFiles, Error> {
        let read = KubeletFiles::read(&self.config.kubelets, now, warnings)?;
        read.ok_or_else(|| Error::Serve("no certificate for kubelets was given".to_owned()))
    }

    fn account_keys(&self) -> Result<TokenKeys, Error> {
        let accounts = &self.config.authentication.service_accounts;
        let signing = accounts.signing_key_file.as_deref().map(token_key_files::read_signing).transpose()?;
        let verifying = accounts.key_files.iter().map(|path| token_key_files::read_verifying(path));
        let verifying = verifying.collect::<Result<_, _>>()?;
        let made = match (&signing, &self.made) {
            (Some(_), _) => String::new(),
            (None, Made::InFiles(dir)) => pki::read_service_account_key(dir)?.0,
            (None, Made::Kept(pki)) => pki.service_account_key.0.clone(),
        };
        prepare::token_keys(signing, verifying, made)
            .map_err(|cause| Error::pki(self.config.tls.cert_dir.join("sa.key"), cause.to_string()))
    }
}
