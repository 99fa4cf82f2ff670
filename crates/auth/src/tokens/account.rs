//! Whether what a token stands on is still there: its service account, and what it is bound to.
//!
//! In: a token that was recognized, and [`Grounds`]. Out: the user that it stands for. Reads what a GET would
//! read.
//!
//! Source: kubernetes v1.36.3 `pkg/serviceaccount/{claims,legacy}.go`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_api::{Presented, TokenUse};
use forebay_apimachinery::caller::{SERVICE_ACCOUNTS, service_account_name as username};
use forebay_apimachinery::{Caller, Status};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::jwt::{Claims, Reference};
use super::{LEEWAY, Recognized};
use crate::certificates::CREDENTIAL_ID;

const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const NODE_UID: &str = "authentication.kubernetes.io/node-uid";
/// On a Secret whose token is no longer to be used, though it is still there.
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// On a Secret whose token was used, with the day.
pub const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";

const INVALIDATED: &str = "service account token has been invalidated";
const LEGACY_INVALIDATED: &str = "Token has been invalidated";

/// The objects that tokens stand on.
pub trait Grounds: Send + Sync {
    /// What counts of an object of a core resource, as fresh as a GET of it.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    fn find(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<Found, Status>> + Send;

    /// Hears of a Secret that it has to say that its token was used.
    fn used(&self, secret: UsedSecret);
}

/// A Secret that does not say of a day on which its token was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedSecret {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// `2006-01-02`, in UTC.
    pub day: String,
}

/// What a look at an object is for.
#[derive(Deserialize)]
pub struct Found {
    metadata: Metadata,
    // Of a Secret, in base64.
    #[serde(default)]
    data: BTreeMap<String, String>,
    // Of a Secret.
    #[serde(default, rename = "type")]
    sort: String,
    // Of a service account: Secrets that a controller made for it.
    #[serde(default)]
    secrets: Vec<SecretRef>,
}

#[derive(Deserialize)]
struct SecretRef {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    deletion_timestamp: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

impl Found {
    /// What a Secret is for.
    pub(crate) fn sort(&self) -> &str {
        &self.sort
    }

    /// What a Secret holds by `name`; nothing, if that cannot be read.
    pub(crate) fn datum(&self, name: &str) -> Vec<u8> {
        self.data.get(name).and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default()
    }

    pub(crate) fn is_being_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether it should have been gone for longer than clocks are apart.
    fn is_past(&self, now: Timestamp) -> bool {
        let leeway = SignedDuration::from_secs(LEEWAY.as_secs() as i64);
        let ends =
            self.metadata.deletion_timestamp.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
        ends.is_some_and(|ends| ends < now.saturating_sub(leeway).unwrap_or(Timestamp::MIN))
    }
}

/// The user that a token stands for, if it still stands.
///
/// - `presented`: the token itself, and who hears how it is used.
/// - `lookup`: whether a token that is kept in a Secret has to be there still.
///
/// # Errors
/// Why it does not, in kube-apiserver's words.
pub async fn still_stands(
    grounds: &impl Grounds,
    now: Timestamp,
    token: &Recognized,
    presented: &Presented<'_>,
    lookup: bool,
) -> Result<Caller, String> {
    let claims = &token.claims;
    if claims.aud.as_slice().is_empty() {
        presented.note(|| TokenUse::Legacy { subject: claims.sub.clone() });
    }
    if token.is_legacy {
        return legacy(grounds, now, claims, presented, lookup).await;
    }
    let caller = bound(grounds, now, claims).await?;
    if let Some(warn_after) = claims.bound.warnafter.map(|at| at as i64).filter(|at| *at != 0) {
        presented.note(|| match now.as_second() - warn_after {
            seconds @ 1.. => TokenUse::Stale { subject: claims.sub.clone(), seconds },
            _ => TokenUse::Fresh,
        });
    }
    Ok(caller)
}

async fn bound(grounds: &impl Grounds, now: Timestamp, claims: &Claims) -> Result<Caller, String> {
    let to = &claims.bound;
    let (namespace, account) = (to.namespace.as_str(), &to.serviceaccount);
    let found = service_account(grounds, namespace, &account.name).await?;
    let uid = &found.metadata.uid;
    if *uid != account.uid {
        return Err(format!("service account UID ({uid}) does not match claim ({})", account.uid));
    }
    if found.is_past(now) {
        return Err(format!("service account {namespace}/{} has been deleted", account.name));
    }
    let mut extra = BTreeMap::new();
    let mut say = |key: &str, value: &str| {
        if !value.is_empty() {
            extra.insert(key.to_string(), vec![value.to_string()]);
        }
    };
    if !claims.jti.is_empty() {
        say(CREDENTIAL_ID, &format!("JTI={}", claims.jti));
    }
    if let Some(secret) = &to.secret {
        is_there(grounds, "secrets", namespace, secret, now).await?;
    }
    if let Some(pod) = &to.pod {
        is_there(grounds, "pods", namespace, pod, now).await?;
        if !pod.name.is_empty() && !pod.uid.is_empty() {
            say(POD_NAME, &pod.name);
            say(POD_UID, &pod.uid);
        }
    }
    if let Some(node) = &to.node {
        // A pod's token lives as long as the pod does, wherever that runs.
        if to.pod.is_none() {
            is_there(grounds, "nodes", "", node, now).await?;
        }
        if !node.name.is_empty() {
            say(NODE_NAME, &node.name);
            say(NODE_UID, &node.uid);
        }
    }
    Ok(user(namespace, account, extra))
}

/// Whether what a token is bound to is there, and still the same.
async fn is_there(
    grounds: &impl Grounds,
    resource: &str,
    namespace: &str,
    to: &Reference,
    now: Timestamp,
) -> Result<(), String> {
    let (title, claim) = match resource {
        "secrets" => ("secret", "secret"),
        "pods" => ("pod", "pod"),
        _ => ("node", "node"),
    };
    let found =
        grounds.find(resource, namespace, &to.name).await.map_err(|_: Status| INVALIDATED.to_string())?;
    let uid = &found.metadata.uid;
    if *uid != to.uid {
        return Err(format!(
            "{title} UID ({uid}) does not match service account {claim} ref claim ({})",
            to.uid
        ));
    }
    if found.is_past(now) { Err(INVALIDATED.to_string()) } else { Ok(()) }
}

async fn legacy(
    grounds: &impl Grounds,
    now: Timestamp,
    claims: &Claims,
    presented: &Presented<'_>,
    lookup: bool,
) -> Result<Caller, String> {
    let namespace = claims.legacy_namespace.as_str();
    let account = Reference { name: claims.legacy_name.clone(), uid: claims.legacy_uid.clone() };
    for (what, value) in [
        ("sub", claims.sub.as_str()),
        ("namespace", namespace),
        ("secretName", claims.legacy_secret.as_str()),
        ("serviceAccountName", account.name.as_str()),
        ("serviceAccountUID", account.uid.as_str()),
    ] {
        if value.is_empty() {
            return Err(format!("{what} claim is missing"));
        }
    }
    if claims.sub != username(namespace, &account.name) {
        return Err("sub claim is invalid".into());
    }
    if lookup {
        is_kept(grounds, now, claims, &account, presented).await?;
    }
    Ok(user(namespace, &account, BTreeMap::new()))
}

/// Whether a token that is kept in a Secret still is, and its service account still is the same.
async fn is_kept(
    grounds: &impl Grounds,
    now: Timestamp,
    claims: &Claims,
    account: &Reference,
    presented: &Presented<'_>,
) -> Result<(), String> {
    let (namespace, name) = (claims.legacy_namespace.as_str(), claims.legacy_secret.as_str());
    let secret =
        grounds.find("secrets", namespace, name).await.map_err(|_: Status| LEGACY_INVALIDATED.to_string())?;
    if secret.metadata.deletion_timestamp.is_some() {
        return Err(LEGACY_INVALIDATED.into());
    }
    let kept = secret.data.get("token").and_then(|token| STANDARD.decode(token).ok()).unwrap_or_default();
    // Digests are compared: how long that takes says nothing about the token.
    if Sha256::digest(&kept) != Sha256::digest(presented.token.unwrap_or_default()) {
        return Err("Token does not match server's copy".into());
    }
    let found = service_account(grounds, namespace, &account.name).await?;
    if found.metadata.deletion_timestamp.is_some() {
        return Err(format!("ServiceAccount {namespace}/{} has been deleted", account.name));
    }
    let uid = &found.metadata.uid;
    if *uid != account.uid {
        return Err(format!("ServiceAccount UID ({uid}) does not match claim ({})", account.uid));
    }
    // One that is marked is used, too: whoever looks for tokens that nobody needs goes by that.
    if let Some(day) = unsaid_day(&secret, now) {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        grounds.used(UsedSecret { namespace, name, uid: secret.metadata.uid.clone(), day });
    }
    if secret.metadata.labels.get(INVALID_SINCE).is_some_and(|since| !since.is_empty()) {
        presented.note(|| TokenUse::Invalidated { secret: name.to_owned(), namespace: namespace.to_owned() });
        return Err(format!(
            "the token in secret {namespace}/{name} for service account {namespace}/{} has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to temporarily allow use of this token",
            account.name
        ));
    }
    // Once: the Secrets of an account are looked through for one.
    let is_automatic = found.secrets.iter().any(|own| own.name == name);
    presented.note(|| match (is_automatic, name.to_owned()) {
        (true, secret) => TokenUse::Automatic { secret },
        (false, secret) => TokenUse::Manual { secret },
    });
    Ok(())
}

/// The day, unless a Secret says that its token was used on it, or on the next one: another server's clock
/// may be ahead.
fn unsaid_day(secret: &Found, now: Timestamp) -> Option<String> {
    let day = |at: Timestamp| at.strftime("%Y-%m-%d").to_string();
    let said = secret.metadata.labels.get(LAST_USED).map_or("", String::as_str);
    let tomorrow = now.saturating_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX);
    let today = day(now);
    (said != today && said != day(tomorrow)).then_some(today)
}

async fn service_account(grounds: &impl Grounds, namespace: &str, name: &str) -> Result<Found, String> {
    if name.is_empty() {
        return Err("resource name may not be empty".into());
    }
    if namespace.is_empty() {
        return Err("an empty namespace may not be set when a resource name is provided".into());
    }
    grounds.find("serviceaccounts", namespace, name).await.map_err(|status| status.message)
}

fn user(namespace: &str, account: &Reference, extra: BTreeMap<String, Vec<String>>) -> Caller {
    Caller {
        name: username(namespace, &account.name),
        uid: account.uid.clone(),
        groups: vec![SERVICE_ACCOUNTS.to_string(), format!("{SERVICE_ACCOUNTS}:{namespace}")],
        extra,
    }
}
