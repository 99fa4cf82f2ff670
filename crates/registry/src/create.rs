//! POST: decode, default, admit, validate, commit.

use std::sync::Arc;
use std::time::Duration;

use forebay_apimachinery::options::CreateOptions;
use forebay_apimachinery::{Reason, Status, json};
use forebay_object::Object;
use serde_json::Value;

use crate::incoming;
use crate::registry::{Registry, whole};
use crate::request::{Answer, Body, MayCreate, Outcome, Target};
use crate::services;
use crate::store::{Mode, Store};
use forebay_strategy::{self as strategy, Context};

/// Names tried for one `generateName` before the client is told to try again (reference §3.2).
const GENERATE_ATTEMPTS: usize = 8;

/// How a new object is judged that nobody has judged yet.
pub(crate) struct Unjudged<'a> {
    registry: &'a Registry,
    target: &'a Target,
    warnings: &'a mut Vec<String>,
    may_create: Option<&'a MayCreate>,
}

impl Unjudged<'_> {
    /// # Errors
    /// It is not valid, whoever asks may not create it, or it is not admitted: in that order.
    pub(crate) async fn judge(self, value: &Value) -> Result<(), Status> {
        let Unjudged { registry, target, warnings, may_create } = self;
        let served = &target.served;
        let mut causes = registry.forbid_admin_access(served, value, None);
        causes.extend(strategy::validate_create(&served.rules(), value));
        causes.extend(served.validate_fields(value, None));
        warnings.extend(served.warnings(value, None));
        if !causes.is_empty() {
            return Err(served.invalid(name_of(value), causes));
        }
        if let Some(may_create) = may_create {
            may_create.ask().wait().await?;
        }
        registry.admit_valid(served, value, None)
    }
}

impl Registry {
    /// Creates an object.
    ///
    /// # Errors
    /// 400, 403, 404, 409 and 422 in kube-apiserver's words.
    pub async fn create(
        &self,
        target: &Target,
        body: &Body,
        options: &CreateOptions,
    ) -> Result<Answer, Status> {
        if !services::take_part(&target.served) {
            return self.create_now(target, body, options, None).await;
        }
        let (registry, target, body, options) = (self.clone(), target.clone(), body.clone(), options.clone());
        self.to_the_end(async move { registry.create_now(&target, &body, &options, None).await }).await
    }

    /// - `may_create`: asked once the object is valid, as kube-apiserver does, where a PUT creates.
    pub(crate) async fn create_now(
        &self,
        target: &Target,
        body: &Body,
        options: &CreateOptions,
        may_create: Option<&MayCreate>,
    ) -> Result<Answer, Status> {
        let served = &target.served;
        if let Some(subresource) = &target.subresource {
            return self.create_subresource(target, subresource, body, options).await;
        }
        if served.kind.is_terminating() {
            let name = incoming::name_in(body, &target.lease);
            let message = format!(
                "{} {name:?} is forbidden: create not allowed while custom resource definition is terminating",
                served.gvr.group_resource()
            );
            let status = Status::new(Reason::Forbidden, message);
            return Err(status.about(served.group(), served.resource(), &name));
        }
        if served.is("", "bindings") {
            return self.create_binding(target, body, options).await;
        }
        let store = self.store_of(served)?;
        let incoming = incoming::read(target, &served.gvk, body, options.field_validation)?;
        let mut value = incoming.value;
        place(target, &mut value)?;
        let generates = name_of(&value).is_empty();
        self.admit_into_namespace(served, target.namespace(), name_of(&value)).await?;
        if served.is("", "pods") {
            self.admit_service_account(target.namespace(), &mut value).await?;
        }
        served.set_defaults(&mut value);
        served.to_judged(&mut value);
        self.admit_new(served, &mut value).await?;
        self.prepare_admitted(target, &mut value)?;
        let mut warnings = incoming.warnings;
        let attempts = if generates { GENERATE_ATTEMPTS } else { 1 };
        for attempt in 1..=attempts {
            if generates {
                self.generate_name(&mut value);
            }
            let name = name_of(&value).to_string();
            let _copy = target.lease.scope();
            let first = Unjudged { registry: self, target, warnings: &mut warnings, may_create };
            let unjudged = (attempt == 1).then_some(first);
            // Nothing is left of the last attempt's value; the others begin with a copy.
            let proposed = if attempt < attempts {
                json::copy(&value, &target.lease)?
            } else {
                std::mem::take(&mut value)
            };
            match self.commit_create(target, &store, proposed, unjudged, options.dry_run).await {
                Ok(object) => {
                    self.after_write(served, &object).await;
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
    pub(crate) fn prepare(&self, target: &Target, value: &mut Value) -> Result<(), Status> {
        target.served.set_defaults(value);
        target.served.to_judged(value);
        self.prepare_admitted(target, value)
    }

    fn prepare_admitted(&self, target: &Target, value: &mut Value) -> Result<(), Status> {
        let rules = target.served.rules();
        if value["metadata"]["resourceVersion"].as_str().is_some_and(|rv| !rv.is_empty()) {
            return Err(Status::new(
                Reason::Unknown,
                "resourceVersion should not be set on objects to be created",
            ));
        }
        let now = self.now_rfc3339();
        let context = Context { now: &now, user: target.caller.as_deref() };
        strategy::fill_system_fields(value, &context, &self.random.uuid());
        strategy::prepare_create(&rules, value, &context);
        Ok(())
    }

    pub(crate) fn generate_name(&self, value: &mut Value) {
        let base = value["metadata"]["generateName"].as_str().unwrap_or("").to_string();
        if !base.is_empty() {
            let name = strategy::generate_name(&base, |bound| self.random.below(bound));
            value["metadata"]["name"] = Value::from(name);
        }
    }

    /// Takes what the object needs, validates it, and commits.
    ///
    /// - `unjudged`: given when it was not validated before.
    async fn commit_create(
        &self,
        target: &Target,
        store: &Store,
        value: Value,
        unjudged: Option<Unjudged<'_>>,
        dry_run: bool,
    ) -> Result<Arc<Object>, Option<Status>> {
        let served = &target.served;
        let key = store.key(target.namespace(), name_of(&value));
        let mode = if dry_run { Mode::DryRun } else { Mode::Commit };
        let mut claims = self.claims(target, mode);
        let committed = async {
            let value = claims.fill(value, &target.lease, unjudged).await.map_err(Some)?;
            let bytes = served.encode(value).map_err(Some)?;
            store.create(key, bytes, self.ttl(served), mode).await
        };
        let committed = committed.await;
        match &committed {
            Err(Some(status)) if services::is_unanswered(status) => claims.leave(),
            _ => claims.settle(served, committed.as_deref().ok()).await,
        }
        committed
    }

    /// How long objects of this kind are kept.
    pub(crate) fn ttl(&self, served: &crate::catalog::Served) -> Option<Duration> {
        self.config.event_ttl.filter(|_| served.rules().flags().expires)
    }

    /// Wall time as `creationTimestamp` has it.
    pub fn now_rfc3339(&self) -> String {
        crate::wall_time::timestamp(&self.clock).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
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
