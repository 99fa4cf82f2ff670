//! Who is asked whether somebody may: the chain that the flags say, or that `--authorization-config` says,
//! which is read again and again.
//!
//! In: files, looked at every [`LOOK_EVERY`]. Out: a chain in force; one that cannot be used stays out, and
//! what was in force is still, which the log and a metric say. Never: decides.
//!
//! Owner: one task.
//!
//! Source: kubernetes v1.36.3 `pkg/kubeapiserver/authorizer/{config,reload}.go`.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_api::BoxFuture;
use forebay_auth::config::{Authorization, AuthorizationMode};
use forebay_auth::{AuthorizationWebhook, CarriedReview, CarriesReviews, NotCarried, ReloadedAuthorizers};
use forebay_authorization::limits::CONFIGURATION_BYTES_MAX;
use forebay_authorization::{
    AuthorizationConfiguration, AuthorizationMetrics, AuthorizerKind, MatchConditions,
    WebhookAuthorizerConfig,
};
use forebay_node_rights::NodesInForce;
use forebay_rbac::RightsInForce;
use forebay_rt::{Clock, Random};
use forebay_webhook_client::Remote;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::config::AuthorizationSource;
use crate::error::Error;

/// How often the file is looked at; kube-apiserver does once in a minute, and when its system tells of a
/// change.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// What was read when the server was prepared.
#[derive(Debug, Clone, Default)]
pub struct AuthorizationRead {
    chain: AuthorizationConfiguration,
    /// Where it is read again, and what was there.
    file: Option<(PathBuf, String)>,
}

/// The chain of a server, and what it decides by.
pub(crate) struct Chain {
    pub authorization: Authorization,
    pub rights: Arc<RightsInForce>,
    pub nodes: Arc<NodesInForce>,
    /// Who decides from the start on: nobody else may be put in later but webhooks.
    types: Vec<&'static str>,
    /// Whether others may be put in later.
    is_reloaded: bool,
    reloading: Option<Reloading>,
}

/// A file that is read again.
pub(crate) struct Reloading {
    path: PathBuf,
    text: String,
    in_force: AuthorizationConfiguration,
    reloaded: Arc<ReloadedAuthorizers>,
    parts: Parts,
    types: Vec<&'static str>,
}

/// What chains are made of.
#[derive(Clone)]
struct Parts {
    rights: Arc<RightsInForce>,
    nodes: Arc<NodesInForce>,
    metrics: Arc<AuthorizationMetrics>,
    clock: Clock,
}

impl AuthorizationRead {
    /// Reads what the flags name.
    ///
    /// # Errors
    /// What of it cannot be used.
    pub fn read(source: &AuthorizationSource) -> Result<AuthorizationRead, Error> {
        match source {
            AuthorizationSource::Flags(chain) => Ok(AuthorizationRead { chain: chain.clone(), file: None }),
            AuthorizationSource::File(path) => {
                let wrong = |reason| Error::AuthorizationFile { path: path.clone(), reason };
                let text = text(path).map_err(wrong)?;
                let chain = configuration(&text, &[]).map_err(wrong)?;
                Ok(AuthorizationRead { chain, file: Some((path.clone(), text)) })
            }
        }
    }
}

impl Chain {
    /// The chain that was read. To be called within a runtime, in which connections to webhooks live.
    ///
    /// # Errors
    /// A webhook's kubeconfig that cannot be used.
    pub fn new(read: &AuthorizationRead, clock: &Clock) -> Result<Chain, Error> {
        let parts = Parts {
            rights: Arc::default(),
            nodes: Arc::default(),
            metrics: Arc::default(),
            clock: clock.clone(),
        };
        let types = read.chain.types();
        let own = parts.authorization(&read.chain, &types).map_err(Error::Serve)?;
        let (rights, nodes) = (parts.rights.clone(), parts.nodes.clone());
        let Some((path, text)) = read.file.clone() else {
            let (is_reloaded, reloading) = (false, None);
            return Ok(Chain { authorization: own, rights, nodes, types, is_reloaded, reloading });
        };
        let reloaded = Arc::new(ReloadedAuthorizers::new(&own));
        let modes = vec![AuthorizationMode::Reloaded(reloaded.clone())];
        let authorization = Authorization { modes, metrics: parts.metrics.clone() };
        let in_force = read.chain.clone();
        let reloading = Some(Reloading { path, text, in_force, reloaded, parts, types: types.clone() });
        Ok(Chain { authorization, rights, nodes, types, is_reloaded: true, reloading })
    }

    /// The rights of roles, where somebody is judged by them: whoever asks for something, or, whoever it is
    /// that decides about that, whoever gives a right. Where everything is allowed to everybody nobody is.
    pub fn followed_rights(&self) -> Option<Arc<RightsInForce>> {
        let decides = self.is_reloaded || self.types.iter().any(|kind| *kind != "AlwaysAllow");
        decides.then(|| self.rights.clone())
    }

    /// What leads to nodes, where somebody is judged by it.
    pub fn followed_nodes(&self) -> Option<Arc<NodesInForce>> {
        self.types.contains(&"Node").then(|| self.nodes.clone())
    }

    /// The file that is to be followed, if there is one.
    ///
    /// - `server`: what this server is called.
    pub fn reloading(&mut self, server: &str) -> Option<Reloading> {
        let reloading = self.reloading.take()?;
        reloading.parts.metrics.began(hash(server), hash(&reloading.text));
        Some(reloading)
    }
}

impl Reloading {
    /// Follows it for as long as the server runs. Cancel-safe: what was not taken in counts for nobody.
    pub async fn follow(mut self) {
        loop {
            self.parts.clock.sleep(LOOK_EVERY).await;
            let path = self.path.clone();
            // A disk may be elsewhere.
            let Ok(read) = forebay_rt::blocking(move || text(&path)).await else {
                tracing::error!("the authorization configuration is no longer followed");
                return;
            };
            self.look(read);
        }
    }

    /// Takes in what was read.
    fn look(&mut self, read: Result<String, String>) {
        let now = self.parts.clock.unix_ms() as f64 / 1_000.0;
        let taken = match read {
            Err(why) => Err(why),
            Ok(text) if text == self.text => return,
            Ok(text) => {
                self.text = text;
                self.take()
            }
        };
        match taken {
            Ok(false) => {}
            Ok(true) => {
                tracing::info!("the authorization configuration has changed and was taken in");
                self.parts.metrics.reloaded(hash(&self.text), now);
            }
            Err(why) => {
                tracing::error!(why, "reloading authorization config: it stays what it was");
                self.parts.metrics.not_reloaded(now);
            }
        }
    }

    /// Whether another chain is in force now.
    fn take(&mut self) -> Result<bool, String> {
        let configuration = configuration(&self.text, &self.types)?;
        if configuration == self.in_force {
            return Ok(false);
        }
        self.reloaded.replace(&self.parts.authorization(&configuration, &self.types)?);
        self.in_force = configuration;
        Ok(true)
    }
}

impl Parts {
    /// # Errors
    /// Somebody who was not there when the server started, or a webhook that cannot be reached by what its
    /// kubeconfig says.
    fn authorization(
        &self,
        configuration: &AuthorizationConfiguration,
        types: &[&'static str],
    ) -> Result<Authorization, String> {
        let mut modes = Vec::with_capacity(configuration.authorizers.len());
        for one in &configuration.authorizers {
            let kind = one.kind.as_str();
            if matches!(kind, "Node" | "RBAC") && !types.contains(&kind) {
                return Err(format!(
                    "authorizer type {kind} is not allowed if it was not enabled at initial server startup"
                ));
            }
            modes.push(match &one.kind {
                AuthorizerKind::AlwaysAllow => AuthorizationMode::AlwaysAllow,
                AuthorizerKind::AlwaysDeny => AuthorizationMode::AlwaysDeny,
                AuthorizerKind::Node => AuthorizationMode::Node(self.nodes.clone()),
                AuthorizerKind::Rbac => AuthorizationMode::Rbac(self.rights.clone()),
                AuthorizerKind::Webhook(config) => {
                    AuthorizationMode::Webhook(Arc::new(self.webhook(&one.name, config)?))
                }
            });
        }
        Ok(Authorization { modes, metrics: self.metrics.clone() })
    }

    fn webhook(&self, name: &str, config: &WebhookAuthorizerConfig) -> Result<AuthorizationWebhook, String> {
        let path = &config.kubeconfig;
        let wrong = |why: String| format!("webhook {name:?}: {}: {why}", path.display());
        let kubeconfig = tree(&text(path).map_err(wrong)?).map_err(wrong)?;
        let read = |file: &Path| {
            let file = path.parent().unwrap_or_else(|| Path::new("")).join(file);
            fs::read(&file).map_err(|why| format!("read {}: {why}", file.display()))
        };
        let remote = Remote::of_kubeconfig(&kubeconfig, &read, &self.clock).map_err(wrong)?;
        let conditions =
            MatchConditions::of(&config.conditions, "").map_err(|faults| wrong(faults.join(", ")))?;
        let with = (self.clock.clone(), Random::system());
        let (carrier, metrics) = (Arc::new(ToRemote(remote)), self.metrics.clone());
        Ok(AuthorizationWebhook::new(name, config.clone(), conditions, carrier, metrics, with))
    }
}

/// A webhook that a kubeconfig says.
struct ToRemote(Remote);

impl CarriesReviews for ToRemote {
    fn carry(&self, review: Bytes) -> BoxFuture<'_, Result<CarriedReview, NotCarried>> {
        Box::pin(async move {
            let answer = self.0.post(review).await;
            answer
                .map(|answer| CarriedReview { number: answer.number, body: answer.body })
                .map_err(|fault| NotCarried { why: fault.why, is_lost: fault.is_lost })
        })
    }
}

fn configuration(text: &str, required: &[&str]) -> Result<AuthorizationConfiguration, String> {
    AuthorizationConfiguration::of(&tree(text)?, &is_file, required)
}

fn is_file(path: &Path) -> Result<bool, String> {
    let found = fs::metadata(path).map_err(|why| match why.kind() {
        std::io::ErrorKind::NotFound => format!("stat {}: no such file or directory", path.display()),
        _ => format!("stat {}: {why}", path.display()),
    })?;
    Ok(found.is_file())
}

fn text(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(CONFIGURATION_BYTES_MAX as u64 + 1).read_to_string(&mut text))
        .map_err(|why| why.to_string())?;
    match text.len() > CONFIGURATION_BYTES_MAX {
        true => Err(format!("larger than {CONFIGURATION_BYTES_MAX} bytes")),
        false => Ok(text),
    }
}

fn tree(text: &str) -> Result<Value, String> {
    match text.trim() {
        "" => Ok(Value::Null),
        text => serde_saphyr::from_str(text).map_err(|why| why.to_string()),
    }
}

fn hash(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

#[cfg(test)]
mod tests {
    use forebay_scratch::Scratch;

    use super::*;

    fn file(authorizers: &str) -> String {
        format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n{authorizers}"
        )
    }

    fn chain(scratch: &Scratch, text: &str) -> Result<Chain, Error> {
        let path = scratch.path().join("config");
        fs::write(&path, text).expect("written");
        let read = AuthorizationRead::read(&AuthorizationSource::File(path))?;
        Chain::new(&read, &Clock::system())
    }

    const RBAC: &str = "- {type: RBAC, name: rbac}\n";

    #[tokio::test]
    async fn a_file_that_changes_is_taken_in_and_one_that_is_wrong_is_not() {
        let scratch = Scratch::new();
        let mut chain = chain(&scratch, &file(RBAC)).expect("a chain");
        assert!(chain.followed_rights().is_some() && chain.followed_nodes().is_none());
        let mut reloading = chain.reloading("server").expect("a file");
        let metrics = chain.authorization.metrics.clone();
        let reloads = || {
            let reloads = metrics.counted().reloads;
            (reloads.succeeded.0, reloads.failed.0)
        };
        let deny = file(&format!("{RBAC}- {{type: AlwaysDeny, name: alwaysdeny}}\n"));
        reloading.look(Ok(file(RBAC)));
        // Other words for the same chain.
        reloading.look(Ok(format!("{}# and no more\n", file(RBAC))));
        assert_eq!(reloads(), (0, 0));
        reloading.look(Ok(deny.clone()));
        assert_eq!(reloads(), (1, 0));
        assert_eq!(metrics.counted().reloads.in_force, hash(&deny));
        for (text, failed) in [
            (file("- {type: AlwaysDeny, name: alwaysdeny}\n"), 1),
            (file(&format!("{RBAC}- {{type: Node, name: node}}\n")), 2),
            ("[".to_owned(), 3),
            (String::new(), 4),
        ] {
            reloading.look(Ok(text.clone()));
            assert_eq!(reloads(), (1, failed), "{text}");
        }
        reloading.look(Err("gone".to_owned()));
        assert_eq!(reloads(), (1, 5));
        assert_eq!(metrics.counted().reloads.in_force, hash(&deny));
    }

    #[tokio::test]
    async fn rights_are_followed_wherever_somebody_may_be_told_that_they_have_not_what_they_give() {
        let scratch = Scratch::new();
        let of_file = |kind: &str, name: &str| {
            let chain =
                chain(&scratch, &file(&format!("- {{type: {kind}, name: {name}}}\n"))).expect("a chain");
            (chain.followed_rights().is_some(), chain.followed_nodes().is_some())
        };
        assert_eq!(of_file("AlwaysDeny", "alwaysdeny"), (true, false));
        // A webhook may be put in later.
        assert_eq!(of_file("AlwaysAllow", "alwaysallow"), (true, false));
        assert_eq!(of_file("Node", "node"), (true, true));
        let tree = serde_saphyr::from_str(&file("- {type: AlwaysAllow, name: alwaysallow}\n")).expect("YAML");
        let allow = AuthorizationConfiguration::of(&tree, &is_file, &[]).expect("a configuration");
        let read = AuthorizationRead::read(&AuthorizationSource::Flags(allow)).expect("read");
        assert!(Chain::new(&read, &Clock::system()).expect("a chain").followed_rights().is_none());
    }

    #[tokio::test]
    async fn a_file_or_a_kubeconfig_that_cannot_be_used_ends_the_start() {
        let scratch = Scratch::new();
        let refused = |text: &str| chain(&scratch, text).err().expect("refused").line();
        assert!(
            refused(&file("- {type: Node, name: other}\n"))
                .ends_with("expected name node for authorizer Node instead of other")
        );
        let kubeconfig = scratch.path().join("k");
        fs::write(&kubeconfig, "current-context: none\n").expect("written");
        let webhook = format!(
            "- type: Webhook\n  name: w\n  webhook: {{timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, \
             connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {}}}}}\n",
            kubeconfig.display()
        );
        let said = refused(&file(&webhook));
        assert!(said.ends_with("context \"none\" does not exist"), "{said}");
    }
}
