//! POST: decode, default, admit, validate, commit.

use std::sync::Arc;

use forebay_apimachinery::options::CreateOptions;
use forebay_apimachinery::{Object, Reason, Status, json};
use serde_json::Value;

use crate::admission;
use crate::admission::devices;
use crate::admission::service_account;
use crate::catalog::Source;
use crate::context::{Context, whole};
use crate::crd;
use crate::custom::Custom;
use crate::incoming;
use crate::request::{Answer, Body, MayCreate, Outcome, Target};
use crate::services;
use crate::store::{Mode, Store};
use crate::subresources;
use forebay_strategy as strategy;

/// Names tried for one `generateName` before the client is told to try again (reference §3.2).
const GENERATE_ATTEMPTS: usize = 8;

/// How a new object is judged that nobody has judged yet.
pub(crate) struct Unjudged<'a> {
    context: &'a Arc<Context>,
    target: &'a Target,
    warnings: &'a mut Vec<String>,
    may_create: Option<&'a MayCreate>,
}

impl Unjudged<'_> {
    /// # Errors
    /// It is not valid, whoever asks may not create it, or it is not admitted: in that order.
    pub(crate) async fn judge(self, value: &Value) -> Result<(), Status> {
        let Unjudged { context, target, warnings, may_create } = self;
        let served = &target.served;
        let mut causes = devices::forbid_admin_access(context, served, value, None);
        causes.extend(strategy::validate_create(&served.rules(), value));
        causes.extend(served.validate_fields(value, None));
        warnings.extend(served.warnings(value, None));
        if !causes.is_empty() {
            return Err(served.invalid(name_of(value), causes));
        }
        if let Some(may_create) = may_create {
            may_create.ask().wait().await?;
        }
        admission::admit_valid(context, served, value, None)
    }
}

/// Creates an object.
///
/// # Errors
/// 400, 403, 404, 409 and 422 in kube-apiserver's words.
pub(crate) async fn create(
    context: &Arc<Context>,
    target: &Target,
    body: &Body,
    options: &CreateOptions,
) -> Result<Answer, Status> {
    if !services::take_part(&target.served) {
        return create_now(context, target, body, options, None).await;
    }
    let (owned, target, body, options) = (context.clone(), target.clone(), body.clone(), options.clone());
    services::to_the_end(context, async move { create_now(&owned, &target, &body, &options, None).await })
        .await
}

/// - `may_create`: asked once the object is valid, as kube-apiserver does, where a PUT creates.
pub(crate) async fn create_now(
    context: &Arc<Context>,
    target: &Target,
    body: &Body,
    options: &CreateOptions,
    may_create: Option<&MayCreate>,
) -> Result<Answer, Status> {
    let served = &target.served;
    if let Some(subresource) = &target.subresource {
        return subresources::create_subresource(context, target, subresource, body, options).await;
    }
    if let Source::Custom(Custom { terminating: true, .. }) = served.source {
        let name = incoming::name_in(body, &target.lease);
        let message = format!(
            "{} {name:?} is forbidden: create not allowed while custom resource definition is terminating",
            served.gvr.group_resource()
        );
        let status = Status::new(Reason::Forbidden, message);
        return Err(status.about(served.group(), served.resource(), &name));
    }
    if served.is("", "bindings") {
        return subresources::create_binding(context, target, body, options).await;
    }
    let store = context.store_of(served)?;
    let incoming = incoming::read(target, &served.gvk, body, options.field_validation)?;
    let mut value = incoming.value;
    place(target, &mut value)?;
    let generates = name_of(&value).is_empty();
    admission::admit_into_namespace(context, served, target.namespace(), name_of(&value)).await?;
    if served.is("", "pods") {
        service_account::admit_service_account(context, target.namespace(), &mut value).await?;
    }
    served.set_defaults(&mut value);
    served.to_judged(&mut value);
    admission::admit_new(context, served, &mut value).await?;
    prepare_admitted(context, target, &mut value)?;
    let mut warnings = incoming.warnings;
    let attempts = if generates { GENERATE_ATTEMPTS } else { 1 };
    for attempt in 1..=attempts {
        if generates {
            generate_name(context, &mut value);
        }
        let name = name_of(&value).to_string();
        let _copy = target.lease.scope();
        let first = Unjudged { context, target, warnings: &mut warnings, may_create };
        let unjudged = (attempt == 1).then_some(first);
        // Nothing is left of the last attempt's value; the others begin with a copy.
        let proposed =
            if attempt < attempts { json::copy(&value, &target.lease)? } else { std::mem::take(&mut value) };
        match commit_create(context, target, &store, proposed, unjudged, options.dry_run).await {
            Ok(object) => {
                crd::after_write(context, served, &object).await;
                let outcome = Outcome::Created(match options.dry_run {
                    true => served.without_revision(&object)?,
                    false => whole(served, &object, None),
                });
                return Ok(Answer { outcome, warnings });
            }
            Err(Some(status)) => return Err(status),
            Err(None) if attempt < attempts => {}
            Err(None) if generates => return Err(generated_name_taken(target, &name)),
            Err(None) => return Err(Status::already_exists(served.group(), served.resource(), &name)),
        }
    }
    Err(Status::internal("no attempt to create was made"))
}

/// Fills in what the server sets on a new object, which no plugin is asked about.
pub(crate) fn prepare(context: &Arc<Context>, target: &Target, value: &mut Value) -> Result<(), Status> {
    target.served.set_defaults(value);
    target.served.to_judged(value);
    prepare_admitted(context, target, value)
}

fn prepare_admitted(context: &Arc<Context>, target: &Target, value: &mut Value) -> Result<(), Status> {
    let rules = target.served.rules();
    if value["metadata"]["resourceVersion"].as_str().is_some_and(|rv| !rv.is_empty()) {
        return Err(Status::new(
            Reason::Unknown,
            "resourceVersion should not be set on objects to be created",
        ));
    }
    let now = context.now_rfc3339();
    let of_write = strategy::Context { now: &now, user: target.caller.as_deref() };
    strategy::fill_system_fields(value, &of_write, &context.random.uuid());
    strategy::prepare_create(&rules, value, &of_write);
    Ok(())
}

pub(crate) fn generate_name(context: &Arc<Context>, value: &mut Value) {
    let base = value["metadata"]["generateName"].as_str().unwrap_or("").to_string();
    if !base.is_empty() {
        let name = strategy::generate_name(&base, |bound| context.random.below(bound));
        value["metadata"]["name"] = Value::from(name);
    }
}

/// Takes what the object needs, validates it, and commits.
///
/// - `unjudged`: given when it was not validated before.
async fn commit_create(
    context: &Arc<Context>,
    target: &Target,
    store: &Store,
    value: Value,
    unjudged: Option<Unjudged<'_>>,
    dry_run: bool,
) -> Result<Arc<Object>, Option<Status>> {
    let served = &target.served;
    let key = store.key(target.namespace(), name_of(&value));
    let mode = if dry_run { Mode::DryRun } else { Mode::Commit };
    let mut claims = services::claims(context, target, mode);
    let committed = async {
        let value = claims.fill(value, &target.lease, unjudged).await.map_err(Some)?;
        let bytes = served.encode(value).map_err(Some)?;
        store.create(key, bytes, context.ttl(served), mode).await
    };
    let committed = committed.await;
    match &committed {
        Err(Some(status)) if services::is_unanswered(status) => claims.leave(),
        _ => claims.settle(served, committed.as_deref().ok()).await,
    }
    committed
}

/// Puts the path's namespace into the object, or refuses an object of another place.
pub(crate) fn place(target: &Target, value: &mut Value) -> Result<(), Status> {
    if !value.get("metadata").is_some_and(Value::is_object) {
        value["metadata"] = Value::Object(serde_json::Map::new());
    }
    let found = value["metadata"]["namespace"].as_str().unwrap_or("").to_string();
    let wanted = target.namespace();
    if target.served.namespaced {
        if !found.is_empty() && found != wanted {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        value["metadata"]["namespace"] = Value::from(wanted);
    } else if let Some(metadata) = value["metadata"].as_object_mut() {
        // What is in no namespace says so, whatever it was sent with.
        metadata.remove("namespace");
    }
    Ok(())
}

/// `metadata.name`, empty when there is none.
pub(crate) fn name_of(value: &Value) -> &str {
    value["metadata"]["name"].as_str().unwrap_or("")
}

fn generated_name_taken(target: &Target, name: &str) -> Status {
    let served = &target.served;
    let mut status = Status::already_exists(served.group(), served.resource(), name).retry_after(1);
    status.message.push_str(", the server was not able to generate a unique name for the object");
    status
}
