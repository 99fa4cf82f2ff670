//! What the chains are told, checked by their caller.

use std::fmt;
use std::time::Duration;

use crate::tokens::TokenKeys;

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
    pub keys: TokenKeys,
    /// Longest life of a token; `None` is no limit.
    pub max_expiration: Option<Duration>,
    pub pod_tokens: PodTokens,
    pub secret_tokens: SecretTokens,
    /// Where others find the keys, if not here.
    pub keys_uri: Option<String>,
}

/// How long the tokens that pods mount really live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodTokens {
    /// A year, for programs that do not read them again.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anonymous {
    /// `/healthz`, `/livez`, `/readyz` and what is below them, `/version`; 401 elsewhere.
    HealthAndVersion,
    /// 401 everywhere.
    Nothing,
}

/// Who may do what. `system:masters` may do everything, as in kube-apiserver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authorization {
    /// Whoever is authenticated may do everything.
    AlwaysAllow,
    /// Nobody else may do anything.
    AlwaysDeny,
    /// Until RBAC is enforced, the same.
    SystemMastersOnly,
}
