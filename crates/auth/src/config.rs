//! What the chains are told, checked by their caller.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use forebay_authorization::AuthorizationMetrics;
use forebay_node_rights::NodesInForce;
use forebay_rbac::RightsInForce;

use crate::authorizers::{AuthorizationWebhook, ReloadedAuthorizers};
use crate::tokens::{ExternalSigner, TokenKeys};

/// A bearer token and whom it stands for.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenUser {
    pub token: String,
    pub user: String,
    pub uid: String,
    pub groups: Vec<String>,
}

/// Without the token.
impl fmt::Debug for TokenUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenUser").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Tokens of service accounts.
#[derive(Clone, Debug)]
pub struct ServiceAccounts {
    /// The first one issues, all are believed; never empty.
    pub issuers: Vec<String>,
    /// Whom tokens are for that do not say it; never empty.
    pub api_audiences: Vec<String>,
    pub keys: AccountKeys,
    /// Longest life of a token; `None` is no limit.
    pub max_expiration: Option<Duration>,
    pub pod_tokens: PodTokens,
    /// How long those live that are extended.
    pub extended_expiration: Duration,
    pub secret_tokens: SecretTokens,
    /// Where others find the keys, if not here.
    pub keys_uri: Option<String>,
}

/// How long tokens live that are extended, unless somebody else signs them and allows less; as upstream.
pub const EXTENDED_EXPIRATION: Duration = Duration::from_secs(365 * 24 * 3600);

/// Whose keys tokens are signed with and verified by.
#[derive(Clone, Debug)]
pub enum AccountKeys {
    /// This server's.
    Own(TokenKeys),
    /// Somebody else's, who signs.
    External(Arc<dyn ExternalSigner>),
}

/// How long the tokens that pods mount really live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodTokens {
    /// As long as extended ones do, for programs that do not read them again.
    Extended,
    AsRequested,
}

/// What a token that is kept in a Secret takes to be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretTokens {
    /// The Secret and the service account are there.
    LookedUp,
    /// Its signature.
    Believed,
}

/// What is answered without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anonymous {
    /// `/healthz`, `/livez`, `/readyz` and what is below them, `/version`; elsewhere what the user whom
    /// nobody knows may do, or, where whoever is known may do everything, 401.
    HealthAndVersion,
    /// The same at these paths alone, as they are after decoding; elsewhere 401.
    AtPaths(Arc<[String]>),
    /// 401 everywhere.
    Nothing,
}

/// Who may do what: modes in the order in which they are asked. `system:masters` may do everything before
/// any of them is, as in kube-apiserver.
#[derive(Clone, Debug, Default)]
pub struct Authorization {
    pub modes: Vec<AuthorizationMode>,
    /// What is counted of them: the same for all chains of a server.
    pub metrics: Arc<AuthorizationMetrics>,
}

/// One way to decide.
#[derive(Clone, Debug)]
pub enum AuthorizationMode {
    /// Whoever is authenticated may do everything.
    AlwaysAllow,
    /// Nobody may do anything by it.
    AlwaysDeny,
    /// What a node's pods take.
    Node(Arc<NodesInForce>),
    /// What the roles that somebody is bound to allow.
    Rbac(Arc<RightsInForce>),
    /// What somebody else says.
    Webhook(Arc<AuthorizationWebhook>),
    /// What a file says, as it is now.
    Reloaded(Arc<ReloadedAuthorizers>),
}

impl Authorization {
    pub fn always_allow() -> Authorization {
        Authorization::of(vec![AuthorizationMode::AlwaysAllow])
    }

    pub fn always_deny() -> Authorization {
        Authorization::of(vec![AuthorizationMode::AlwaysDeny])
    }

    pub fn rbac(rights: Arc<RightsInForce>) -> Authorization {
        Authorization::of(vec![AuthorizationMode::Rbac(rights)])
    }

    pub fn of(modes: Vec<AuthorizationMode>) -> Authorization {
        Authorization { modes, metrics: Arc::default() }
    }

    /// Whether whoever is known may do everything; then nobody is let in unknown, as in kube-apiserver.
    pub fn allows_everyone(&self) -> bool {
        self.modes.iter().any(|mode| matches!(mode, AuthorizationMode::AlwaysAllow))
    }
}
