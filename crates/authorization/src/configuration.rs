//! An AuthorizationConfiguration: who is asked, in which order.
//!
//! In: the tree of a file. Out: the same with defaults. Never: reads a file; judges one, which
//! `validation.rs` does.
//!
//! Source: apiserver v0.36.3 `pkg/apis/apiserver/{v1,load}`.

use std::path::PathBuf;
use std::time::Duration;

use forebay_apimachinery::go_duration;
use serde_json::Value;

use crate::strict::{Strict, Wrong};

/// See the module's doc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizationConfiguration {
    pub authorizers: Vec<ConfiguredAuthorizer>,
}

/// One who is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredAuthorizer {
    pub name: String,
    pub kind: AuthorizerKind,
}

/// Which one it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorizerKind {
    AlwaysAllow,
    AlwaysDeny,
    Node,
    Rbac,
    Webhook(Box<WebhookAuthorizerConfig>),
}

/// A webhook, and how it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookAuthorizerConfig {
    /// How long an answer is kept that allows; `None`: it is not.
    pub authorized_ttl: Option<Duration>,
    /// The same of one that does not.
    pub unauthorized_ttl: Option<Duration>,
    /// For one call.
    pub timeout: Duration,
    pub version: ReviewVersion,
    pub on_error: OnWebhookError,
    pub kubeconfig: PathBuf,
    /// Expressions, all of which hold for what it is asked.
    pub conditions: Vec<String>,
}

/// The version of the reviews that a webhook is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewVersion {
    V1,
    V1beta1,
}

/// What comes of a webhook that cannot be asked, or of a condition that cannot be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnWebhookError {
    NoOpinion,
    Deny,
}

/// The configuration as it is written, with defaults.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub authorizers: Vec<WrittenAuthorizer>,
}

#[derive(Debug, Default)]
pub(crate) struct WrittenAuthorizer {
    pub kind: String,
    pub name: String,
    pub webhook: Option<WrittenWebhook>,
}

/// Durations in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct WrittenWebhook {
    pub authorized_ttl: i64,
    pub unauthorized_ttl: i64,
    pub caches_authorized: bool,
    pub caches_unauthorized: bool,
    pub timeout: i64,
    pub version: String,
    pub conditions_version: String,
    pub failure_policy: String,
    pub connection: String,
    pub kubeconfig: Option<String>,
    pub conditions: Vec<String>,
}

const SECOND: i64 = 1_000_000_000;

const VERSIONS: [&str; 3] =
    ["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"];

const KIND: &str = "AuthorizationConfiguration";

/// Why ABAC is refused, wherever it is asked for.
pub const ABAC_REFUSED: &str = "authorization-mode \"ABAC\" is not served: its file cannot be changed without a restart, and Kubernetes has \
                                put RBAC in its place since 1.8; `kubectl create role` and `kubectl create rolebinding` say the same";

impl AuthorizerKind {
    /// As metrics and files have it.
    pub fn as_str(&self) -> &'static str {
        match self {
            AuthorizerKind::AlwaysAllow => "AlwaysAllow",
            AuthorizerKind::AlwaysDeny => "AlwaysDeny",
            AuthorizerKind::Node => "Node",
            AuthorizerKind::Rbac => "RBAC",
            AuthorizerKind::Webhook(_) => "Webhook",
        }
    }
}

impl ReviewVersion {
    /// The API version of a review.
    pub fn api_version(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "authorization.k8s.io/v1",
            ReviewVersion::V1beta1 => "authorization.k8s.io/v1beta1",
        }
    }
}

impl Written {
    /// Reads a tree; nothing is a configuration without anybody.
    ///
    /// # Errors
    /// It is another kind, or has members that there are not.
    pub fn read(tree: &Value) -> Result<Written, String> {
        if tree.is_null() {
            return Ok(Written::default());
        }
        let text = |name: &str| tree[name].as_str().unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        if kind.is_empty() {
            return Err("Object 'Kind' is missing".to_owned());
        }
        if kind != KIND || !VERSIONS.contains(&version) {
            return Err(format!("no kind {kind:?} is registered for version {version:?}"));
        }
        let mut wrong = Wrong::default();
        let known = ["apiVersion", "kind", "authorizers"];
        let mut written = Written::default();
        if let Some(all) = Strict::of(tree, String::new(), &known, &mut wrong) {
            for (at, one) in all.list("authorizers", &mut wrong).iter().enumerate() {
                written.authorizers.push(authorizer(one, format!("authorizers[{at}]"), &mut wrong));
            }
        }
        wrong.result().map(|()| written)
    }
}

fn authorizer(value: &Value, way: String, wrong: &mut Wrong) -> WrittenAuthorizer {
    let Some(of) = Strict::of(value, way, &["type", "name", "webhook"], wrong) else {
        return WrittenAuthorizer::default();
    };
    let (kind, name) = (of.text("type", wrong), of.text("name", wrong));
    WrittenAuthorizer { kind, name, webhook: webhook(of.value("webhook"), of.to("webhook"), wrong) }
}

fn webhook(value: &Value, way: String, wrong: &mut Wrong) -> Option<WrittenWebhook> {
    let known = [
        "authorizedTTL",
        "cacheAuthorizedRequests",
        "unauthorizedTTL",
        "cacheUnauthorizedRequests",
        "timeout",
        "subjectAccessReviewVersion",
        "matchConditionSubjectAccessReviewVersion",
        "failurePolicy",
        "connectionInfo",
        "matchConditions",
    ];
    let of = Strict::of(value, way, &known, wrong)?;
    let or = |nanos: i64, default: i64| if nanos == 0 { default } else { nanos };
    let mut written = WrittenWebhook {
        authorized_ttl: or(duration(&of, "authorizedTTL", wrong), 300 * SECOND),
        unauthorized_ttl: or(duration(&of, "unauthorizedTTL", wrong), 30 * SECOND),
        caches_authorized: of.boolean("cacheAuthorizedRequests", wrong).unwrap_or(true),
        caches_unauthorized: of.boolean("cacheUnauthorizedRequests", wrong).unwrap_or(true),
        timeout: duration(&of, "timeout", wrong),
        version: of.text("subjectAccessReviewVersion", wrong),
        conditions_version: of.text("matchConditionSubjectAccessReviewVersion", wrong),
        failure_policy: of.text("failurePolicy", wrong),
        ..WrittenWebhook::default()
    };
    let connection = of.value("connectionInfo");
    let known = ["type", "kubeConfigFile"];
    if let Some(connection) = Strict::of(connection, of.to("connectionInfo"), &known, wrong) {
        written.connection = connection.text("type", wrong);
        let is_said = !connection.value("kubeConfigFile").is_null();
        written.kubeconfig = is_said.then(|| connection.text("kubeConfigFile", wrong));
    }
    for (at, condition) in of.list("matchConditions", wrong).iter().enumerate() {
        let way = of.to(&format!("matchConditions[{at}]"));
        let condition = Strict::of(condition, way, &["expression"], wrong);
        let text = condition.map(|condition| condition.text("expression", wrong));
        written.conditions.push(text.unwrap_or_default());
    }
    Some(written)
}

fn duration(of: &Strict<'_>, name: &str, wrong: &mut Wrong) -> i64 {
    let text = of.text(name, wrong);
    if text.is_empty() {
        return 0;
    }
    go_duration::parse(&text).unwrap_or_else(|why| {
        wrong.types.push(why.as_go_says(&text));
        0
    })
}
