//! Acting as somebody else.
//!
//! In: whom a request wants to be made as, who really asks, and what the request is. Out: whom it is made as.
//! There are five ways to it, tried from the narrowest on; the first that lets it through counts. Four of
//! them, constrained impersonation, take two rights: to be somebody in that way, and to do by it what the
//! request does. The fifth is the old one, by which every name, group and attribute has to be allowed by
//! itself, and which is then good for everything. Never: reads a header.
//!
//! Owner: the one lock in here, around what way somebody went last. No right is remembered: one that was
//! taken is gone with the next request, which upstream keeps for ten seconds.
//!
//! Source: apiserver v0.36.3 `pkg/endpoints/filters/impersonation`; KEP-5284.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use forebay_apimachinery::caller::{
    ANONYMOUS, AUTHENTICATED, MASTERS, NODES, SERVICE_ACCOUNTS, UNAUTHENTICATED,
};
use forebay_apimachinery::{About, Caller, ResourceAttributes, Verb, domain_prefixed_path_faults};
use forebay_documents::metrics::{AuthenticationMetrics, ImpersonationMode, Went};
use forebay_rt::Clock;
use sha2::{Digest, Sha256};

use crate::access::{Access, Forbidden, Refused};
use crate::asker::Asker;
use crate::limits::{IMPERSONATION_CHECKS_MANY, IMPERSONATORS_KNOWN_MAX};

/// What service accounts are named by, and nodes.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
const NODE: &str = "system:node:";
/// On which node whoever asks runs.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// What is left of the attributes of who asks to be the node that it runs on: their keys.
const NODE_KEYS: &str = "authentication.kubernetes.io/associated-node-keys";
const GROUP: &str = "authentication.k8s.io";

/// Whom a request wants to be made as.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Not empty.
    pub user: String,
    pub uid: String,
    pub groups: Vec<String>,
    /// Further attributes, key and value.
    pub extra: Vec<(String, String)>,
}

/// Whom a request is made as.
#[derive(Clone, Debug)]
pub struct Impersonated {
    pub asker: Asker,
    /// The right by which, where that is one of constrained impersonation.
    pub constraint: Option<String>,
}

/// Which ways there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ways {
    #[default]
    All,
    /// The old one.
    Legacy,
}

/// Decides who may act as whom.
pub struct Impersonation {
    clock: Clock,
    metrics: Arc<AuthenticationMetrics>,
    ways: Ways,
    // Digest of who asks -> the way that it went last, in two generations: the younger one first.
    last: Mutex<[HashMap<u64, usize>; 2]>,
}

/// The ways, in the order in which they are tried.
const MODES: [ImpersonationMode; 5] = [
    ImpersonationMode::AssociatedNode,
    ImpersonationMode::ArbitraryNode,
    ImpersonationMode::ServiceAccount,
    ImpersonationMode::UserInfo,
    ImpersonationMode::Legacy,
];

/// A request, and who makes it.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    pub access: &'a Access,
    pub asker: &'a Asker,
    pub verb: &'a Verb,
    pub about: About<'a>,
}

/// A way on which a request is tried.
struct Trial<'a> {
    impersonation: &'a Impersonation,
    access: &'a Access,
    asker: &'a Asker,
    mode: ImpersonationMode,
    verb: Verb,
}

impl Impersonation {
    pub fn new(clock: Clock, metrics: Arc<AuthenticationMetrics>, ways: Ways) -> Impersonation {
        Impersonation { clock, metrics, ways, last: Mutex::default() }
    }

    /// Whom the request is made as, if who asks may.
    ///
    /// # Errors
    /// [`Refused`]: what the first way that could have led there says.
    pub async fn become_wanted(&self, wanted: &Wanted, asking: Asking<'_>) -> Result<Impersonated, Refused> {
        let began = self.clock.now();
        let found = self.tried(wanted, asking).await;
        let (mode, allowed) = match &found {
            Ok((mode, _)) => (*mode, Went::Well),
            Err(_) => (ImpersonationMode::Unknown, Went::Badly),
        };
        self.metrics.impersonated(mode, allowed, self.clock.now() - began);
        let (mode, caller) = found?;
        let is_constrained = mode != ImpersonationMode::Legacy;
        let constraint = is_constrained.then(|| format!("impersonate:{}", mode.name()));
        // Whoever it is: it is known who is behind it, so that `system:anonymous` is asked for rights and not
        // for credentials.
        Ok(Impersonated { asker: Asker::Known(Arc::new(caller)), constraint })
    }

    async fn tried(
        &self,
        wanted: &Wanted,
        asking: Asking<'_>,
    ) -> Result<(ImpersonationMode, Caller), Refused> {
        let digest = digest(asking.asker.name());
        let last = self.last(digest);
        let others = (0..MODES.len()).filter(|at| Some(*at) != last);
        let mut first = None;
        for at in last.into_iter().chain(others) {
            let mode = MODES[at];
            if self.ways == Ways::Legacy && mode != ImpersonationMode::Legacy {
                continue;
            }
            match self.by(mode, wanted, asking).await {
                Ok(Some(caller)) => {
                    self.went(digest, at);
                    return Ok((mode, caller));
                }
                Ok(None) => {}
                Err(refused) => first = first.or(Some(refused)),
            }
        }
        // The old way is open to everybody's question, and so somebody has refused.
        Err(first.unwrap_or(Refused::Unauthenticated))
    }

    /// Whom the request is made as on one way; `None`: it does not lead there.
    async fn by(
        &self,
        mode: ImpersonationMode,
        wanted: &Wanted,
        Asking { access, asker, verb, about }: Asking<'_>,
    ) -> Result<Option<Caller>, Refused> {
        let requester = asker.caller();
        if !leads_to(mode, wanted, &requester) {
            return Ok(None);
        }
        let stripped;
        let asker = match mode {
            ImpersonationMode::AssociatedNode => {
                stripped = Asker::Known(Arc::new(on_any_node(&requester)));
                &stripped
            }
            _ => asker,
        };
        let verb_of = |verb: &str| Verb::named(&format!("impersonate{verb}"));
        if mode != ImpersonationMode::Legacy {
            let verb = verb_of(&format!("-on:{}:{verb}", mode.name()));
            Trial { impersonation: self, access, asker, mode, verb }.may(about).await?;
        }
        let verb = match mode {
            ImpersonationMode::Legacy => Verb::Impersonate,
            mode => verb_of(&format!(":{}", mode.name())),
        };
        Trial { impersonation: self, access, asker, mode, verb }.all_of(wanted).await.map(Some)
    }

    fn last(&self, digest: u64) -> Option<usize> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let found = last[0].get(&digest).copied();
        found.or_else(|| {
            let at = last[1].remove(&digest)?;
            note(&mut last, digest, at);
            Some(at)
        })
    }

    fn went(&self, digest: u64, at: usize) {
        note(&mut self.last.lock().unwrap_or_else(PoisonError::into_inner), digest, at);
    }
}

fn note(last: &mut [HashMap<u64, usize>; 2], digest: u64, at: usize) {
    if last[0].len() >= IMPERSONATORS_KNOWN_MAX && !last[0].contains_key(&digest) {
        last.swap(0, 1);
        last[0].clear();
    }
    last[0].insert(digest, at);
}

/// Two that are taken for one only try the ways in another order.
fn digest(name: &str) -> u64 {
    let digest: [u8; 32] = Sha256::digest(name).into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// Whether a way leads from who asks to who is wanted, rights apart.
fn leads_to(mode: ImpersonationMode, wanted: &Wanted, requester: &Caller) -> bool {
    let is_name_alone = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
    match mode {
        ImpersonationMode::AssociatedNode => {
            let own = match requester.extra.get(NODE_NAME).map(Vec::as_slice) {
                Some([only]) => only.as_str(),
                _ => "",
            };
            is_name_alone && service_account(&requester.name).is_some() && node(&wanted.user) == Some(own)
        }
        ImpersonationMode::ArbitraryNode => is_name_alone && node(&wanted.user).is_some(),
        ImpersonationMode::ServiceAccount => is_name_alone && service_account(&wanted.user).is_some(),
        ImpersonationMode::UserInfo => {
            node(&wanted.user).is_none() && service_account(&wanted.user).is_none()
        }
        ImpersonationMode::Legacy => true,
        ImpersonationMode::Unknown => false,
    }
}

impl Trial<'_> {
    /// # Errors
    /// [`Refused`].
    async fn may(&self, about: About<'_>) -> Result<(), Refused> {
        let Impersonation { clock, metrics, .. } = self.impersonation;
        let began = clock.now();
        let checked = self.access.check(self.asker, &self.verb, about).await;
        let allowed = if checked.is_ok() { Went::Well } else { Went::Badly };
        metrics.impersonation_checked(self.mode, allowed, clock.now() - began);
        // Where somebody could not be asked, it is refused as what was not allowed, as upstream does.
        checked.map_err(|refused| match refused {
            Refused::Undecided(why) => self.refused(about, &why),
            refused => refused,
        })
    }

    async fn may_be(&self, of: ResourceAttributes<'_>) -> Result<(), Refused> {
        self.may(About::Resource(of)).await
    }

    fn is_constrained(&self) -> bool {
        self.mode != ImpersonationMode::Legacy
    }

    /// What users and groups are in: the old way has them in the core group.
    fn base(&self) -> ResourceAttributes<'static> {
        let group = if self.is_constrained() { GROUP } else { "" };
        ResourceAttributes { group, version: "v1", ..ResourceAttributes::default() }
    }

    /// Who whoever asks is to be, if each part of that is allowed.
    ///
    /// # Errors
    /// [`Refused`], for the first that is not.
    async fn all_of(&self, wanted: &Wanted) -> Result<Caller, Refused> {
        let mut groups = self.name(wanted).await?;
        let own = ResourceAttributes { group: GROUP, version: "v1", ..ResourceAttributes::default() };
        if !wanted.uid.is_empty() {
            self.may_be(ResourceAttributes { resource: "uids", name: &wanted.uid, ..own }).await?;
        }
        self.groups(&wanted.groups).await?;
        let mut extra = BTreeMap::<String, Vec<String>>::new();
        for (key, value) in &wanted.extra {
            extra.entry(key.clone()).or_default().push(value.clone());
        }
        self.extra(&extra, ResourceAttributes { resource: "userextras", ..own }).await?;
        let of_all = if wanted.user == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
        if !groups.iter().any(|group| group == of_all || group == UNAUTHENTICATED) {
            groups.push(of_all.to_string());
        }
        Ok(Caller { name: wanted.user.clone(), uid: wanted.uid.clone(), groups, extra })
    }

    /// The groups that the user has.
    async fn name(&self, wanted: &Wanted) -> Result<Vec<String>, Refused> {
        let base = self.base();
        if let Some(name) = node(&wanted.user).filter(|_| self.is_constrained()) {
            // Whoever runs on a node may be that on all nodes or on none.
            let name = if self.mode == ImpersonationMode::AssociatedNode { "*" } else { name };
            self.may_be(ResourceAttributes { resource: "nodes", name, ..base }).await?;
            return Ok(vec![NODES.to_string()]);
        }
        let Some((namespace, name)) = service_account(&wanted.user) else {
            self.may_be(ResourceAttributes { resource: "users", name: &wanted.user, ..base }).await?;
            return Ok(wanted.groups.clone());
        };
        self.may_be(ResourceAttributes { resource: "serviceaccounts", namespace, name, ..base }).await?;
        Ok(match wanted.groups.is_empty() {
            true => vec![SERVICE_ACCOUNTS.to_string(), format!("{SERVICE_ACCOUNTS}:{namespace}")],
            false => wanted.groups.clone(),
        })
    }

    async fn groups(&self, groups: &[String]) -> Result<(), Refused> {
        let base = ResourceAttributes { resource: "groups", ..self.base() };
        if groups.is_empty() {
            return Ok(());
        }
        if self.is_constrained() {
            if groups.iter().any(String::is_empty) {
                let why = "impersonating the empty string group is not allowed";
                return Err(self.refused(About::Resource(base), why));
            }
            if groups.iter().any(|group| group == MASTERS) {
                let of = About::Resource(ResourceAttributes { name: MASTERS, ..base });
                return Err(self.refused(of, "impersonating the system:masters group is not allowed"));
            }
            if groups.len() >= IMPERSONATION_CHECKS_MANY
                && self.may_be(ResourceAttributes { name: "*", ..base }).await.is_ok()
            {
                return Ok(());
            }
        }
        for name in groups {
            self.may_be(ResourceAttributes { name, ..base }).await?;
        }
        Ok(())
    }

    async fn extra(
        &self,
        extra: &BTreeMap<String, Vec<String>>,
        base: ResourceAttributes<'_>,
    ) -> Result<(), Refused> {
        if self.is_constrained() {
            check_extra(extra).map_err(|why| self.refused(About::Resource(base), &why))?;
            let count = extra.values().map(Vec::len).sum::<usize>();
            let every = ResourceAttributes { subresource: "*", name: "*", ..base };
            if count >= IMPERSONATION_CHECKS_MANY && self.may_be(every).await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for name in values {
                self.may_be(ResourceAttributes { subresource: key, name, ..base }).await?;
            }
        }
        Ok(())
    }

    /// A refusal in other words than those of an authorizer.
    fn refused(&self, of: About<'_>, why: &str) -> Refused {
        let (user, verb) = (self.asker.name().to_string(), self.verb.clone());
        Refused::Forbidden(Box::new(Forbidden { user, verb, about: of.into(), why: why.to_string() }))
    }
}

/// # Errors
/// Upstream's words for attributes that nobody may be given by constrained impersonation.
fn check_extra(extra: &BTreeMap<String, Vec<String>>) -> Result<(), String> {
    for (key, values) in extra {
        if key.is_empty() {
            return Err("impersonating the empty string key in extra is not allowed".into());
        }
        let faults = domain_prefixed_path_faults("extra.key", key);
        let told = match faults.as_slice() {
            [] => None,
            [only] => Some(only.clone()),
            several => Some(format!("[{}]", several.join(", "))),
        };
        if let Some(why) = told {
            return Err(format!("impersonating an invalid key in extra is not allowed: {why}"));
        }
        if *key != key.to_lowercase() {
            return Err(format!("impersonating a non-lowercase key in extra is not allowed: {key:?}"));
        }
        if values.iter().any(String::is_empty) {
            return Err("impersonating the empty string value in extra is not allowed".into());
        }
    }
    Ok(())
}

/// Who asks to be the node that it runs on, as it would on any node.
fn on_any_node(requester: &Caller) -> Caller {
    let keys = requester.extra.keys().cloned().collect();
    Caller { extra: [(NODE_KEYS.to_string(), keys)].into(), ..requester.clone() }
}

/// The name of the node that `user` is; one that could not be there is a user like any other.
fn node(user: &str) -> Option<&str> {
    let name = user.strip_prefix(NODE)?;
    is_subdomain(name).then_some(name)
}

/// The namespace and the name of the service account that `user` is; one that could not be there is a user
/// like any other.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let fits = namespace.len() <= 63 && is_label(namespace) && is_subdomain(name);
    fits.then_some((namespace, name))
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

fn is_label(text: &str) -> bool {
    let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = bytes.first().is_some_and(is_end) && bytes.last().is_some_and(is_end);
    ends && bytes.iter().all(|byte| is_end(byte) || *byte == b'-')
}

#[cfg(test)]
mod tests;
