//! What knows somebody besides what every server has: tokens that Secrets hold, and that others vouch for.
//!
//! In: what was decided. Out: more members of the chain, and in which ways somebody may act as somebody else.
//! Never: asks anybody by itself.

use std::sync::Arc;

use forebay_api::Authenticator;
use forebay_documents::metrics::AuthenticationMetrics;

use crate::impersonation::Ways;

/// How it becomes known who asks, besides certificates, the token file and service accounts.
#[derive(Clone, Default)]
pub struct FurtherAuthentication {
    /// Tokens that others vouch for.
    pub remote: Option<Arc<dyn Authenticator>>,
    pub bootstrap_tokens: BootstrapTokenUse,
    /// In which ways somebody may act as somebody else.
    pub ways: Ways,
    pub metrics: Arc<AuthenticationMetrics>,
}

/// Whether tokens are believed that Secrets of `kube-system` hold for machines that are to become nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BootstrapTokenUse {
    Believed,
    #[default]
    Unknown,
}
