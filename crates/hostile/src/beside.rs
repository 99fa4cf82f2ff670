//! Who a row's server is started with that does badly: an audit log that takes nothing, a webhook that
//! authorizes, a plugin that has the keys of what is encrypted, somebody who signs service accounts' tokens.
//!
//! In: which of them. Out: the server's flags, whose files are written, and those of them who are somebody,
//! to be told by the row what to do. They end with the [`RowNeighbours`]. Never: one that does badly before
//! the server is ready and furnished.

use std::path::Path;
use std::thread::Builder;

use bytes::Bytes;
use forebay_contenders::Error;
use forebay_contenders::client::{Client, Protocol, RestConfig};
use forebay_hook::Hook;
use forebay_hook::kms::{KmsMethods, KmsMischief, KmsPlugin};
use forebay_hook::signer::{SignerMischief, SignerPlugin};
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// Which of them there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    Nothing,
    /// All that is done is noted in a file on a disk that is full.
    FullDisk,
    /// The same by a server that is not there.
    DeadAuditWebhook,
    /// All that is sent and answered is noted, and taken as it comes.
    AuditedWhole,
    /// A webhook is asked whether somebody may.
    Authorizer(WhenAsked),
    /// Secrets are encrypted by a plugin that did well until the server was started again, and does this
    /// since.
    Plugin(KmsMischief, KmsMethods),
    /// Service accounts' tokens are signed by somebody who did well until the row begins, and does this
    /// whatever it is asked since.
    Signer(SignerMischief),
}

/// When a webhook is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenAsked {
    /// Before roles are: about everybody but `system:masters`.
    First,
    /// About what no role allows.
    Last,
}

/// Those who are somebody.
#[derive(Debug, Default)]
pub struct RowNeighbours {
    authorizer: Option<Apart>,
    plugin: Option<KmsPlugin>,
    // It ends with the row.
    signer: Option<SignerPlugin>,
}

/// A webhook on a thread of its own: whoever waits for a bystander whom it is asked about stops its own.
#[derive(Debug)]
struct Apart {
    hook: Hook,
    // Dropped, the thread ends.
    _goes_on: oneshot::Sender<()>,
}

impl Apart {
    async fn start() -> Result<Apart, Error> {
        let (says, told) = oneshot::channel();
        let (goes_on, gone) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| Error::Proc(e.to_string()))?;
        let serve = move || {
            runtime.block_on(async {
                // Whoever asked for it may be gone.
                let _ = says.send(Hook::start().await);
                let _ = gone.await;
            });
        };
        let thread = Builder::new().name("authorizer".into()).spawn(serve);
        thread.map_err(|e| Error::Proc(format!("cannot start a thread: {e}")))?;
        let hook = told.await.map_err(|_| Error::Proc("a webhook did not start".into()))?;
        Ok(Apart { hook, _goes_on: goes_on })
    }
}

/// What the webhook's answer is called.
const ANSWER: &str = "authorize";
/// How long it has for one: less than a row takes.
const TIMEOUT: &str = "1s";
/// So many Secrets are there when the plugin begins to do badly.
pub const SECRETS: usize = 10;

impl Beside {
    /// Starts them, and writes the files of the flags into `dir`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub async fn start(self, dir: &Path) -> Result<(Vec<String>, RowNeighbours), Error> {
        let mut neighbours = RowNeighbours::default();
        let flags = match self {
            Beside::Nothing => Vec::new(),
            Beside::FullDisk | Beside::AuditedWhole => {
                let log = if self == Beside::FullDisk { "/dev/full" } else { "/dev/null" };
                let log = [format!("--audit-log-path={log}"), "--audit-log-maxsize=0".to_owned()];
                [vec![flag("audit-policy-file", dir, POLICY)?], log.to_vec()].concat()
            }
            Beside::DeadAuditWebhook => vec![
                flag("audit-policy-file", dir, POLICY)?,
                flag("audit-webhook-config-file", dir, &kubeconfig("http://127.0.0.1:9/", ""))?,
            ],
            Beside::Authorizer(asked) => {
                let apart = Apart::start().await?;
                apart.hook.answers(ANSWER, allowed());
                let at = kubeconfig(&format!("{}/row/{ANSWER}", apart.hook.url()), &apart.hook.authority);
                neighbours.authorizer = Some(apart);
                vec![flag("authorization-config", dir, &chain(asked, dir, &at)?)?]
            }
            Beside::Plugin(..) => {
                let plugin = KmsPlugin::start(&dir.join("kms.sock"), "key");
                let encrypted = flag("encryption-provider-config", dir, &encryption(&plugin.endpoint()))?;
                neighbours.plugin = Some(plugin);
                vec![encrypted]
            }
            Beside::Signer(_) => {
                let signer = SignerPlugin::start(&dir.join("signer.sock"), "key");
                let endpoint = format!("--service-account-signing-endpoint={}", signer.endpoint());
                neighbours.signer = Some(signer);
                vec![endpoint]
            }
        };
        Ok((flags, neighbours))
    }

    /// Whether it says by itself who is asked whether somebody may.
    pub fn authorizes(self) -> bool {
        matches!(self, Beside::Authorizer(_))
    }

    /// Where there is a plugin: makes what it is asked about later, and lets it do what it does from now on.
    /// So does who signs. Whether the server is to be started again.
    ///
    /// # Errors
    /// A Secret cannot be made.
    pub async fn turn(self, neighbours: &RowNeighbours, target: &RestConfig) -> Result<bool, Error> {
        if let (Beside::Signer(mischief), Some(signer)) = (self, &neighbours.signer) {
            let methods = ["Sign", "FetchKeys"].map(|method| (method, mischief));
            signer.change(|says| says.mischief.extend(methods));
        }
        let (Beside::Plugin(mischief, methods), Some(plugin)) = (self, &neighbours.plugin) else {
            return Ok(false);
        };
        let mut client = Client::connect(target, Protocol::Http1).await?;
        for index in 0..SECRETS {
            let secret = Bytes::from(secret(&format!("before-{index}")));
            client.post(SECRETS_PATH, secret).await?.expect("create secret", &[201])?;
        }
        plugin.misbehave(mischief, methods);
        Ok(true)
    }
}

/// Whether a server is ready that needs no plugin for it: neither how that is nor what it encrypted counts.
pub const READY: &str = "/readyz?exclude=informer-sync&exclude=kms-providers&exclude=kms-provider-0";

pub const SECRETS_PATH: &str = "/api/v1/namespaces/hostile/secrets";

/// A Secret of this name.
pub fn secret(name: &str) -> String {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": { "k": "v" } })
        .to_string()
}

impl RowNeighbours {
    /// From now on the webhook that authorizes answers so.
    pub fn authorizer_answers(&self, answer: Value) {
        if let Some(authorizer) = &self.authorizer {
            authorizer.hook.answers(ANSWER, answer);
        }
    }

    /// How often it was asked since somebody looked last.
    pub fn authorizer_was_asked(&self) -> usize {
        self.authorizer.as_ref().map_or(0, |authorizer| authorizer.hook.asked().len())
    }

    /// The plugin is gone.
    pub fn plugin_dies(&self) {
        if let Some(plugin) = &self.plugin {
            plugin.die();
        }
    }
}

/// The answer of a webhook that allows whatever it is asked about.
fn allowed() -> Value {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": { "allowed": true },
    });
    json!({ "raw": review.to_string() })
}

/// A flag, and its file.
fn flag(name: &str, dir: &Path, text: &str) -> Result<String, Error> {
    let file = dir.join(name);
    std::fs::write(&file, text).map_err(Error::file("cannot write", &file))?;
    Ok(format!("--{name}={}", file.display()))
}

const POLICY: &str =
    r#"{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"RequestResponse"}]}"#;

/// - `authority`: in base64; nobody's where there is no TLS.
fn kubeconfig(url: &str, authority: &str) -> String {
    let mut cluster = json!({ "server": url });
    if !authority.is_empty() {
        cluster["certificate-authority-data"] = authority.into();
    }
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{ "name": "c", "context": { "cluster": "k", "user": "" } }],
        "clusters": [{ "name": "k", "cluster": cluster }],
    })
    .to_string()
}

/// Who is asked whether somebody may, and in which order.
fn chain(asked: WhenAsked, dir: &Path, kubeconfig: &str) -> Result<String, Error> {
    let file = dir.join("authorizer");
    std::fs::write(&file, kubeconfig).map_err(Error::file("cannot write", &file))?;
    // Whom it was asked about before roles are, and could not say, no role lets in.
    let policy = if asked == WhenAsked::First { "Deny" } else { "NoOpinion" };
    let webhook = json!({
        "type": "Webhook", "name": "asked", "webhook": {
            "timeout": TIMEOUT, "authorizedTTL": "5m", "unauthorizedTTL": "30s", "failurePolicy": policy,
            "subjectAccessReviewVersion": "v1", "matchConditionSubjectAccessReviewVersion": "v1",
            "connectionInfo": { "type": "KubeConfigFile", "kubeConfigFile": file.display().to_string() },
        },
    });
    let roles = json!({ "type": "RBAC", "name": "rbac" });
    let authorizers = match asked {
        WhenAsked::First => json!([webhook, roles]),
        WhenAsked::Last => json!([roles, webhook]),
    };
    Ok(json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration",
        "authorizers": authorizers,
    })
    .to_string())
}

fn encryption(endpoint: &str) -> String {
    let plugin = json!({ "apiVersion": "v2", "name": "plugin", "timeout": TIMEOUT, "endpoint": endpoint });
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
        "resources": [{ "resources": ["secrets"], "providers": [{ "kms": plugin }] }],
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn a_kubeconfig_names_whom_it_believes_where_there_is_tls() {
        let of = |url: &str, authority: &str| -> Value {
            serde_json::from_str(&kubeconfig(url, authority)).expect("JSON")
        };
        let cluster = |of: &Value| of["clusters"][0]["cluster"].clone();
        assert_eq!(cluster(&of("http://h", "")), json!({ "server": "http://h" }));
        let data = STANDARD.encode("pem");
        let tls = json!({ "server": "https://h", "certificate-authority-data": data });
        assert_eq!(cluster(&of("https://h", &data)), tls);
    }
}
