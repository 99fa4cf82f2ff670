//! A token for a service account: `kubectl create token`.
//!
//! In: a `TokenRequest`, posted to a service account. Out: the same, complete, for those who judge it; then
//! with the token in its status.
//!
//! Source: kubernetes v1.36.3 `registry/core/serviceaccount/storage/token.go`.

use std::sync::Arc;

use forebay_api::{Answer, Api, Awaited, Completion, Eventual, Outcome, ReviewRequest};
use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::resource::split_api_version;
use forebay_apimachinery::{Cause, CauseReason, GroupVersionKind, Reason, Status};
use forebay_auth::tokens::{Grant, Reference, ServiceAccountTokens};
use forebay_catalog::Target;
use forebay_reads::rfc3339;
use forebay_rt::Clock;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::texts::texts;
use crate::config::PodTokens;
use crate::handler::{Handler, Head};
use crate::status::Failure;
use crate::tokens::read;

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";

/// Where a webhook has taken away what there is by default.
const EXPIRATION_DEFAULT_SECONDS: i64 = 3600;
const EXPIRATION_MIN_SECONDS: i64 = 600;
const EXPIRATION_MAX_SECONDS: i64 = 1 << 32;
/// What the volume asks for that every pod gets: recognized by its odd value, it lives for a year where that
/// is allowed.
pub const POD_EXPIRATION_SECONDS: i64 = 3607;

/// What a request takes while somebody else signs: itself, its task, and the claims as they are sent; and for
/// each audience its text and its place in a tree, some of them written several times.
const SIGNING_BYTES: usize = 16 << 10;
const SIGNING_AUDIENCE_BYTES: usize = 256;
const SIGNING_COPIES: usize = 8;

/// Who is waited for, as a refusal says it.
const SIGNER: &str = "the external signer of service account tokens";

/// What is looked at in an object that a token is for or bound to.
#[derive(Deserialize)]
struct Found {
    metadata: Metadata,
    #[serde(default)]
    spec: PodSpec,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    uid: String,
}

/// Of a pod.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    service_account_name: String,
    node_name: String,
}

/// What a token lives no longer than.
#[derive(Default)]
struct BoundTo {
    pod: Option<Reference>,
    secret: Option<Reference>,
    node: Option<Reference>,
}

/// What a request for a token becomes once who may fill in has: the account's own, for somebody, and valid.
pub struct Completing {
    api: Arc<dyn Api>,
    accounts: Arc<ServiceAccountTokens>,
    clock: Clock,
}

impl Completing {
    pub fn of(handler: &Handler) -> Completing {
        let (api, accounts, clock) = (handler.api.clone(), handler.accounts.clone(), handler.clock.clone());
        Completing { api, accounts, clock }
    }

    async fn complete_now(&self, target: &Target, request: &mut Value) -> Result<(), Status> {
        let (namespace, name) = (target.namespace(), target.name());
        check_name(request, name)?;
        let account: Found = read(&*self.api, "serviceaccounts", namespace, name).await?;
        let account = account.reference();
        check_uid(request, &account)?;
        let now = forebay_reads::timestamp(&self.clock);
        fill_in(request, &account, &self.accounts.config().api_audiences, now);
        validate(request)
    }
}

impl Completion for Completing {
    fn complete<'a>(&'a self, target: &'a Target, request: &'a mut Value) -> Awaited<'a, ()> {
        Eventual::later(self.complete_now(target, request))
    }
}

/// Answers a POST to a service account's `token`, which is complete.
///
/// # Errors
/// 400, 404 and 409 in kube-apiserver's words.
pub async fn answer(
    handler: &Handler,
    head: &Head,
    target: &Target,
    incoming: ReviewRequest,
) -> Result<Answer, Failure> {
    let api = &*handler.api;
    let (mut request, mut warnings) = (incoming.value, incoming.warnings);
    let (namespace, name) = (target.namespace(), target.name());
    let account = account_of(&request);
    let now = handler.timestamp();
    let bound = bound_to(api, &request["spec"]["boundObjectRef"], namespace, name).await?;
    let mut seconds = asked_seconds(&request);
    let max = handler.accounts.config().max_expiration.map(|max| max.as_secs() as i64);
    if let Some(max) = max.filter(|max| seconds > *max) {
        warnings.push(format!("requested expiration of {seconds} seconds shortened to {max} seconds"));
        request["spec"]["expirationSeconds"] = json!(max);
        seconds = max;
    }
    let audiences = texts(&request["spec"]["audiences"]);
    let (expires_in_seconds, warn_after_seconds) = match is_extended(handler, &bound, seconds, &audiences) {
        true => (extended_seconds(handler), Some(seconds)),
        false => (seconds, None),
    };
    let grant = Grant {
        namespace: namespace.to_string(),
        account,
        pod: bound.pod,
        secret: bound.secret,
        node: bound.node,
        audiences,
        expires_in_seconds,
        warn_after_seconds,
        id: handler.random.uuid(),
    };
    let token = match handler.accounts.issue(&grant, now.as_second()) {
        Eventual::Now(token) => token,
        Eventual::Later(signing) => signed_elsewhere(handler, head, &grant, signing).await?,
    };
    let token = token.map_err(|error| Status::internal(format!("failed to generate token: {error}")))?;
    head.note("authentication.kubernetes.io/issued-credential-id", &format!("JTI={}", grant.id));
    // No later than the token itself is over.
    let expires = made_at(&request)
        .unwrap_or(now)
        .saturating_add(SignedDuration::from_secs(seconds))
        .unwrap_or(Timestamp::MAX);
    request["status"] = json!({ "token": token, "expirationTimestamp": rfc3339(expires) });
    let json = super::json(&GroupVersionKind::new(GROUP, "v1", KIND), &request)?;
    Ok(Answer { outcome: Outcome::Created(json), warnings })
}

/// What `signing` comes to. Who waits for somebody else has no turn, and what it holds is counted among what
/// waits for that one.
///
/// # Errors
/// 429: too many wait for it.
async fn signed_elsewhere(
    handler: &Handler,
    head: &Head,
    grant: &Grant,
    signing: impl Future<Output = Result<String, String>>,
) -> Result<Result<String, String>, Failure> {
    let audiences = grant.audiences.iter();
    let said: usize = audiences.map(|said| SIGNING_AUDIENCE_BYTES + SIGNING_COPIES * said.len()).sum();
    let lease = handler.rooms.lease_of_read(head.asker.name(), SIGNING_BYTES + said).await?;
    let _waits = lease.waits_for(&Arc::from(SIGNER)).ok_or_else(|| handler.rooms.full_behind(SIGNER))?;
    Ok(head.context().away(signing).await)
}

/// How long a token lives that is extended.
fn extended_seconds(handler: &Handler) -> i64 {
    handler.accounts.config().extended_expiration.as_secs().cast_signed()
}

impl Found {
    fn reference(self) -> Reference {
        Reference { name: self.metadata.name, uid: self.metadata.uid }
    }
}

/// Whose the token is that a complete request asks for.
fn account_of(request: &Value) -> Reference {
    let text = |member: &str| request["metadata"][member].as_str().unwrap_or_default().to_owned();
    Reference { name: text("name"), uid: text("uid") }
}

/// When it was complete.
fn made_at(request: &Value) -> Option<Timestamp> {
    request["metadata"]["creationTimestamp"].as_str()?.parse().ok()
}

/// A name in the body is that of the service account, or none. The namespace has been looked at.
fn check_name(request: &Value, name: &str) -> Result<(), Status> {
    let given = request["metadata"]["name"].as_str().unwrap_or("");
    if given.is_empty() || given == name {
        return Ok(());
    }
    let detail = "must match the service account name if specified";
    Err(Status::invalid(GROUP, KIND, name, vec![invalid("metadata.name", &go_quote(given), detail)]))
}

fn check_uid(request: &Value, account: &Reference) -> Result<(), Status> {
    let given = request["metadata"]["uid"].as_str().unwrap_or("");
    if given.is_empty() || given == account.uid {
        return Ok(());
    }
    let why = format!(
        "the UID in the token request ({given}) does not match the UID of the service account ({})",
        account.uid
    );
    Err(Status::conflict(GROUP, KIND, &account.name, &why))
}

fn fill_in(request: &mut Value, account: &Reference, audiences: &[String], now: Timestamp) {
    if let Some(members) = request.as_object_mut() {
        members.remove("status");
    }
    let metadata = &mut request["metadata"];
    metadata["name"] = json!(account.name);
    metadata["uid"] = json!(account.uid);
    metadata["creationTimestamp"] = json!(rfc3339(now));
    if !request["spec"].is_object() {
        request["spec"] = json!({});
    }
    let spec = &mut request["spec"];
    if texts(&spec["audiences"]).is_empty() {
        spec["audiences"] = json!(audiences);
    }
    if spec["expirationSeconds"].is_null() {
        spec["expirationSeconds"] = json!(EXPIRATION_DEFAULT_SECONDS);
    }
}

fn asked_seconds(request: &Value) -> i64 {
    request["spec"]["expirationSeconds"].as_i64().unwrap_or(EXPIRATION_DEFAULT_SECONDS)
}

fn validate(request: &Value) -> Result<(), Status> {
    let seconds = asked_seconds(request);
    let detail = match seconds {
        ..EXPIRATION_MIN_SECONDS => "may not specify a duration less than 10 minutes",
        EXPIRATION_MIN_SECONDS..=EXPIRATION_MAX_SECONDS => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let cause = invalid("spec.expirationSeconds", &seconds.to_string(), detail);
    Err(Status::invalid(GROUP, KIND, "", vec![cause]))
}

fn invalid(field: &str, bad: &str, detail: &str) -> Cause {
    Cause::new(CauseReason::FieldValueInvalid, field, format!("Invalid value: {bad}: {detail}"))
}

/// The objects that a reference makes the token depend on, if there is one.
async fn bound_to(
    api: &dyn Api,
    reference: &Value,
    namespace: &str,
    account: &str,
) -> Result<BoundTo, Status> {
    let Some(reference) = reference.as_object() else { return Ok(BoundTo::default()) };
    let text = |member: &str| reference.get(member).and_then(Value::as_str).unwrap_or("");
    let (kind, name) = (text("kind"), text("name"));
    let (group, version) = split_api_version(text("apiVersion"));
    let mut bound = BoundTo::default();
    let to = match (group, kind) {
        ("", "Pod") => {
            let pod: Found = read(api, "pods", namespace, name).await?;
            if pod.spec.service_account_name != account {
                return Err(Status::bad_request(format!(
                    "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
                    go_quote(account)
                )));
            }
            bound.node = node_of(api, &pod.spec.node_name).await?;
            bound.pod.insert(pod.reference())
        }
        ("", "Node") => bound.node.insert(read::<Found>(api, "nodes", "", name).await?.reference()),
        ("", "Secret") => {
            bound.secret.insert(read::<Found>(api, "secrets", namespace, name).await?.reference())
        }
        _ => {
            return Err(Status::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    let asked = text("uid");
    if !asked.is_empty() && asked != to.uid {
        let why = format!(
            "the UID in the bound object reference ({asked}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(Status::conflict("", kind, name, &why));
    }
    Ok(bound)
}

/// The node that a pod runs on; by its name alone when there is no such object.
async fn node_of(api: &dyn Api, name: &str) -> Result<Option<Reference>, Status> {
    if name.is_empty() {
        return Ok(None);
    }
    match read::<Found>(api, "nodes", "", name).await {
        Ok(node) => Ok(Some(node.reference())),
        Err(status) if status.reason == Reason::NotFound => {
            Ok(Some(Reference { name: name.to_string(), uid: String::new() }))
        }
        Err(status) => Err(Status::internal(status.message)),
    }
}

/// Whether the token is one that a pod mounts by default, and may be used after it should have been replaced.
fn is_extended(handler: &Handler, bound: &BoundTo, seconds: i64, audiences: &[String]) -> bool {
    let config = handler.accounts.config();
    config.pod_tokens == PodTokens::Extended
        && bound.pod.is_some()
        && seconds == POD_EXPIRATION_SECONDS
        && audiences.iter().all(|audience| config.api_audiences.contains(audience))
}
