//! Who asks: a client certificate, a bearer token, or nobody.
//!
//! In: the connection's certificates and the request's `Authorization` header. Out: [`Asker`], or that the credentials
//! are no good. As in kube-apiserver the certificate is tried first, and a good token makes up for a bad certificate.
//! Never: decides what the asker may do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use forebay_registry::request::Caller;
use forebay_rt::{Clock, Instant};
use http::{HeaderMap, header};
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::config::TokenUser;
use crate::limits;
use crate::tls::ClientAuthority;

/// The group of everyone who was authenticated, and of everyone who was not.
pub const AUTHENTICATED: &str = "system:authenticated";
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
pub const ANONYMOUS: &str = "system:anonymous";

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
}

impl Peer {
    /// A client that showed `chain`.
    pub fn new(chain: Vec<CertificateDer<'static>>) -> Peer {
        Peer { chain, verdict: Mutex::new(None) }
    }
}

impl Authenticator {
    pub fn new(clock: Clock, authority: Option<ClientAuthority>, tokens: &[TokenUser]) -> Authenticator {
        let known = |user: &TokenUser| {
            let caller = caller(user.user.clone(), user.uid.clone(), user.groups.clone());
            (Sha256::digest(user.token.as_bytes()).into(), Arc::new(caller))
        };
        Authenticator { clock, authority, tokens: tokens.iter().map(known).collect() }
    }

    /// Who asks.
    ///
    /// # Errors
    /// [`Unauthorized`].
    pub fn authenticate(&self, peer: &Peer, headers: &HeaderMap) -> Result<Asker, Unauthorized> {
        let by_certificate = self.by_certificate(peer);
        if let Some(Verdict::Good(caller)) = by_certificate {
            return Ok(Asker::Known(caller));
        }
        if let Some(token) = bearer_token(headers) {
            let known = self.tokens.get(<[u8; 32]>::from(Sha256::digest(token)).as_slice());
            return known.map(|caller| Asker::Known(caller.clone())).ok_or(Unauthorized);
        }
        match by_certificate {
            Some(Verdict::Bad) => Err(Unauthorized),
            _ => Ok(Asker::Anonymous),
        }
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
    let groups = leaf.subject().iter_organization().filter_map(|group| group.as_str().ok());
    Verdict::Good(Arc::new(caller(name.to_string(), String::new(), groups.map(str::to_string).collect())))
}

fn caller(name: String, uid: String, mut groups: Vec<String>) -> Caller {
    if !groups.iter().any(|group| group == AUTHENTICATED) {
        groups.push(AUTHENTICATED.to_string());
    }
    Caller { name, uid, groups }
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
