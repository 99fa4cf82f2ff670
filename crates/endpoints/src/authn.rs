//! The token that a request's head presents.
//!
//! In: headers. Out: a bearer token. Never: judges it.

use std::sync::Arc;

use forebay_api::Authenticator;
use forebay_auth::Ways;
use forebay_documents::metrics::AuthenticationMetrics;
use http::{HeaderMap, header};

/// How it becomes known who asks, besides what the configuration says.
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

/// The token of `Authorization: Bearer <token>`. Any other scheme counts as no credentials.
pub fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let header = headers.get(header::AUTHORIZATION)?.as_bytes().trim_ascii();
    let mut words = header.splitn(3, |byte| *byte == b' ');
    let scheme = words.next()?;
    let token = words.next()?;
    (scheme.eq_ignore_ascii_case(b"bearer") && !token.is_empty()).then_some(token)
}
