//! Who asks: a client certificate, a bearer token, or nobody.
//!
//! In: the connection's certificates and the request's `Authorization` header. Out: [`Asker`], or that the credentials
//! are no good. As in kube-apiserver the certificate is tried first, and a good token makes up for a bad certificate.
//! Never: decides what the asker may do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use forebay_registry::Registry;
use forebay_registry::request::Caller;
use forebay_rt::{Clock, Instant};
use http::{HeaderMap, header};
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use x509_parser::der_parser::{Oid, oid};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::config::{SecretTokens, TokenUser};
use crate::limits;
use crate::tls::ClientAuthority;
use crate::tokens::{self, ServiceAccountTokens};

/// The group of everyone who was authenticated, and of everyone who was not.
pub const AUTHENTICATED: &str = "system:authenticated";
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
pub const ANONYMOUS: &str = "system:anonymous";
/// What of a user's attributes says which credential it came with.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Who asks.
#[derive(Clone, Debug)]
pub enum Asker {
    Known(Arc<Caller>),
    /// There were no credentials.
    Anonymous,
}

/// There were credentials, and none of them is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unauthorized;

/// What a connection's client has shown.
pub struct Peer {
    // The client's certificate, then what it sent along; empty when it sent none.
    chain: Vec<CertificateDer<'static>>,
    // The last verdict on it, and when it was made.
    verdict: Mutex<Option<(Instant, Verdict)>>,
}

#[derive(Clone)]
enum Verdict {
    Good(Arc<Caller>),
    /// It is trusted but names nobody, which counts as no certificate.
    Nameless,
    Bad,
}

/// Knows the credentials.
pub struct Authenticator {
    clock: Clock,
    authority: Option<ClientAuthority>,
    // SHA-256 of the token -> user. Looking up a digest takes a time that says nothing about the tokens.
    tokens: HashMap<[u8; 32], Arc<Caller>>,
    accounts: Arc<ServiceAccountTokens>,
    registry: Registry,
}

/// Whom a token stands for, and at which of the audiences that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub caller: Arc<Caller>,
    pub audiences: Vec<String>,
}

impl Peer {
    /// A client that showed `chain`.
    pub fn new(chain: Vec<CertificateDer<'static>>) -> Peer {
        Peer { chain, verdict: Mutex::new(None) }
    }
}

impl Authenticator {
    pub fn new(
        clock: Clock,
        authority: Option<ClientAuthority>,
        tokens: &[TokenUser],
        accounts: Arc<ServiceAccountTokens>,
        registry: Registry,
    ) -> Authenticator {
        let known = |user: &TokenUser| {
            let caller = Caller {
                name: user.user.clone(),
                uid: user.uid.clone(),
                groups: user.groups.clone(),
                ..Caller::default()
            };
            (Sha256::digest(user.token.as_bytes()).into(), Arc::new(authenticated(caller)))
        };
        Authenticator { clock, authority, tokens: tokens.iter().map(known).collect(), accounts, registry }
    }

    /// Who asks.
    ///
    /// # Errors
    /// [`Unauthorized`].
    pub async fn authenticate(&self, peer: &Peer, headers: &HeaderMap) -> Result<Asker, Unauthorized> {
        let by_certificate = self.by_certificate(peer);
        if let Some(Verdict::Good(caller)) = by_certificate {
            return Ok(Asker::Known(caller));
        }
        if let Some(token) = bearer_token(headers) {
            return match self.by_token(token, self.api_audiences()).await {
                Ok(known) => Ok(Asker::Known(known.caller)),
                Err(why) => {
                    tracing::debug!(why, "bearer token refused");
                    Err(Unauthorized)
                }
            };
        }
        match by_certificate {
            Some(Verdict::Bad) => Err(Unauthorized),
            _ => Ok(Asker::Anonymous),
        }
    }

    /// Whom a token stands for at any of `audiences`, or here when there are none.
    ///
    /// # Errors
    /// Why it stands for nobody.
    pub async fn review(&self, token: &str, audiences: &[String]) -> Result<Known, String> {
        // As in a header, a token ends at the first space.
        let token = token.trim().split(' ').next().unwrap_or("");
        self.by_token(token.as_bytes(), if audiences.is_empty() { self.api_audiences() } else { audiences })
            .await
    }

    /// Whom a token is for that does not say it, and who asks for nobody in particular.
    fn api_audiences(&self) -> &[String] {
        &self.accounts.config().api_audiences
    }

    async fn by_token(&self, token: &[u8], audiences: &[String]) -> Result<Known, String> {
        const UNKNOWN: &str = "invalid bearer token";
        if let Some(caller) = self.tokens.get(<[u8; 32]>::from(Sha256::digest(token)).as_slice()) {
            let own = self.api_audiences();
            let common: Vec<String> = audiences.iter().filter(|asked| own.contains(asked)).cloned().collect();
            if !common.is_empty() {
                return Ok(Known { caller: caller.clone(), audiences: common });
            }
        }
        let Ok(text) = std::str::from_utf8(token) else { return Err(UNKNOWN.to_string()) };
        let found = match self.accounts.recognize(text, audiences, self.clock.unix_ms() as f64 / 1000.0) {
            Ok(None) => return Err(UNKNOWN.to_string()),
            Ok(Some(token)) => {
                let lookup = self.accounts.config().secret_tokens == SecretTokens::LookedUp;
                let caller = tokens::still_stands(&self.registry, &token, text, lookup).await;
                caller.map(|caller| (caller, token.audiences))
            }
            Err(why) => Err(why),
        };
        // Two look at a token, and the other one never knows it.
        let (caller, audiences) = found.map_err(|why| format!("[{UNKNOWN}, {why}]"))?;
        Ok(Known { caller: Arc::new(authenticated(caller)), audiences })
    }

    fn by_certificate(&self, peer: &Peer) -> Option<Verdict> {
        let authority = self.authority.as_ref()?;
        if peer.chain.is_empty() {
            return None;
        }
        let now = self.clock.now();
        let mut last = peer.verdict.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((at, verdict)) if now.duration_since(*at) < limits::CERTIFICATE_VERDICT => {
                Some(verdict.clone())
            }
            _ => {
                let verdict = judge(authority, &peer.chain, self.clock.unix_ms());
                *last = Some((now, verdict.clone()));
                Some(verdict)
            }
        }
    }
}

fn judge(authority: &ClientAuthority, chain: &[CertificateDer<'_>], unix_ms: u64) -> Verdict {
    if let Err(error) = authority.judge(chain, unix_ms) {
        tracing::debug!(%error, "client certificate refused");
        return Verdict::Bad;
    }
    let Some(Ok((_, leaf))) = chain.first().map(|leaf| X509Certificate::from_der(leaf)) else {
        return Verdict::Bad;
    };
    let name = leaf.subject().iter_common_name().last().and_then(|name| name.as_str().ok()).unwrap_or("");
    if name.is_empty() {
        return Verdict::Nameless;
    }
    let Ok(uid) = uid(&leaf) else { return Verdict::Bad };
    let groups = leaf.subject().iter_organization().filter_map(|group| group.as_str().ok());
    let digest = Sha256::digest(&chain[0]);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Verdict::Good(Arc::new(authenticated(Caller {
        name: name.to_string(),
        uid,
        groups: groups.map(str::to_string).collect(),
        extra: [(CREDENTIAL_ID.to_string(), vec![format!("X509SHA256={digest}")])].into(),
    })))
}

/// The subject's uid, empty when it has none.
///
/// # Errors
/// Several of them, or one that is no text or says nothing.
fn uid(leaf: &X509Certificate<'_>) -> Result<String, Unauthorized> {
    let uid: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);
    let mut uids = leaf.subject().iter_by_oid(&uid);
    match (uids.next().map(|uid| uid.as_str()), uids.next()) {
        (None, _) => Ok(String::new()),
        (Some(Ok(uid)), None) if !uid.is_empty() => Ok(uid.to_string()),
        _ => Err(Unauthorized),
    }
}

/// Puts a user into the group of everyone who is known.
fn authenticated(mut caller: Caller) -> Caller {
    if !caller.groups.iter().any(|group| group == AUTHENTICATED) {
        caller.groups.push(AUTHENTICATED.to_string());
    }
    caller
}

/// The token of `Authorization: Bearer <token>`. Any other scheme counts as no credentials.
fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let header = headers.get(header::AUTHORIZATION)?.as_bytes().trim_ascii();
    let mut words = header.splitn(3, |byte| *byte == b' ');
    let scheme = words.next()?;
    let token = words.next()?;
    (scheme.eq_ignore_ascii_case(b"bearer") && !token.is_empty()).then_some(token)
}

impl Asker {
    /// The user, be it the one whom nobody knows.
    pub fn caller(&self) -> Arc<Caller> {
        match self {
            Asker::Known(caller) => caller.clone(),
            Asker::Anonymous => Arc::new(Caller {
                name: ANONYMOUS.to_string(),
                groups: vec![UNAUTHENTICATED.to_string()],
                ..Caller::default()
            }),
        }
    }

    /// The name, as messages have it.
    pub fn name(&self) -> &str {
        match self {
            Asker::Known(caller) => &caller.name,
            Asker::Anonymous => ANONYMOUS,
        }
    }

    pub fn is_in(&self, group: &str) -> bool {
        match self {
            Asker::Known(caller) => caller.groups.iter().any(|own| own == group),
            Asker::Anonymous => group == UNAUTHENTICATED,
        }
    }
}
