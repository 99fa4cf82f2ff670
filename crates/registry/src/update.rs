//! PUT, and what PUT and PATCH share: from a proposed object to a decision on the current one.

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::options::{CreateOptions, UpdateOptions};
use forebay_apimachinery::{Cause, CauseReason, Reason, Status, json};
use forebay_object::Object;
use serde_json::Value;

use crate::create::{name_of, place};
use crate::incoming;
use crate::registry::{Registry, whole};
use crate::request::{Answer, Body, MayCreate, Outcome, Target};
use crate::services::{self, Claims};
use crate::store::{Current, Decision, Done, Mode};
use forebay_strategy::{self as strategy, Context};

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Whether a write that names no resourceVersion may overwrite whatever is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unconditional {
    /// PATCH: it was computed from the current object.
    Always,
    /// PUT: where the kind allows it.
    ByKind,
}

impl Registry {
    /// Replaces an object, or one of its subresources, for the server itself: where that creates, nobody is asked.
    ///
    /// # Errors
    /// 400, 404, 409 and 422 in kube-apiserver's words.
    pub async fn update(
        &self,
        target: &Target,
        body: &Body,
        options: &UpdateOptions,
    ) -> Result<Answer, Status> {
        self.update_or_create(target, body, options, None).await
    }

    /// The same for somebody who may update.
    ///
    /// - `may_create`: asked before it creates.
    ///
    /// # Errors
    /// The same, and what `may_create` says.
    ///
    /// Source: apiserver v1.36.3 `endpoints/handlers/update.go` (`withAuthorization`).
    pub async fn update_or_create(
        &self,
        target: &Target,
        body: &Body,
        options: &UpdateOptions,
        may_create: Option<MayCreate>,
    ) -> Result<Answer, Status> {
        if !services::take_part(&target.served) {
            return self.update_now(target, body, options, may_create.as_ref()).await;
        }
        let (registry, target, body, options) = (self.clone(), target.clone(), body.clone(), options.clone());
        self.to_the_end(
            async move { registry.update_now(&target, &body, &options, may_create.as_ref()).await },
        )
        .await
    }

    async fn update_now(
        &self,
        target: &Target,
        body: &Body,
        options: &UpdateOptions,
        may_create: Option<&MayCreate>,
    ) -> Result<Answer, Status> {
        let served = &target.served;
        if target.subresource.as_deref() == Some("scale") {
            return self.update_scale(target, body, options).await;
        }
        let store = self.store_of(served)?;
        let read = || {
            let mut incoming = incoming::read(target, &served.gvk, body, options.field_validation)?;
            place(target, &mut incoming.value)?;
            Ok::<_, Status>(incoming)
        };
        let incoming = read()?;
        let proposed = incoming.value;
        match name_of(&proposed) {
            "" => return Err(Status::bad_request("name must be provided")),
            name if name != target.name() => {
                return Err(Status::bad_request(format!(
                    "the name of the object ({name}) does not match the name on the URL ({})",
                    target.name()
                )));
            }
            _ => {}
        }
        let key = store.key(target.namespace(), target.name());
        let mode = if options.dry_run { Mode::DryRun } else { Mode::Commit };
        let creates = target.subresource.is_none() && served.rules().flags().create_on_update;
        if creates && store.live(&key).await?.is_none() {
            return self.create_on_update(target, body, options, may_create).await;
        }
        let mut last = None;
        let mut first = Some(proposed);
        let done = self
            .guarded_update(target, &store, mode, |current, claims| {
                let current = current.ok_or_else(|| not_found(target))?;
                let _again = target.lease.scope();
                // A decision consumes it, and most updates take one: it is read again rather than copied for each.
                let proposed = first.take().map_or_else(|| read().map(|incoming| incoming.value), Ok)?;
                self.decide(target, proposed, current, Unconditional::ByKind, claims, &mut last)
            })
            .await?;
        self.answer(target, done, mode, last, incoming.warnings).await
    }

    /// What to do with `current` when `proposed` is to take its place.
    ///
    /// - `claims`: what the object takes; while some of it is pending, the decision is to leave the object.
    /// - `last`: where an object that this ends is put as it would have been stored, which is what the client is shown.
    pub(crate) fn decide(
        &self,
        target: &Target,
        mut proposed: Value,
        current: &Current,
        unconditional: Unconditional,
        claims: &mut Claims,
        last: &mut Option<Bytes>,
    ) -> Result<Decision<Vec<String>>, Status> {
        let served = &target.served;
        let rules = served.rules();
        let mut old = served.to_judged_value(&current.object)?;
        check_preconditions(target, &mut proposed, &old, unconditional)?;
        let (subresource, now) = (target.subresource.as_deref(), self.now_rfc3339());
        served.set_defaults(&mut proposed);
        served.to_judged(&mut proposed);
        if subresource.is_none() {
            self.admit_change(served, &mut proposed, &old)?;
        }
        if !claims.plan_update(&mut proposed, &old)? {
            return Ok(Decision::Keep { carry: Vec::new() });
        }
        // Rules copy what may not change, to compare it without what may.
        let _rules = target.lease.scope();
        if rules.custom.is_none() {
            target.lease.charge(json::weight::of(&proposed))?;
        }
        let context = Context { now: &now, user: target.caller.as_deref() };
        strategy::prepare_update(&rules, subresource, &mut proposed, &old, &context);
        let mut causes = match subresource {
            Some("status") => self.forbid_admin_access(served, &proposed, Some(&old)),
            _ => Vec::new(),
        };
        causes.extend(strategy::validate_update(&rules, subresource, &proposed, &old));
        causes.extend(served.validate_fields(&proposed, Some(&old)));
        if !causes.is_empty() {
            return Err(served.invalid(target.name(), causes));
        }
        if subresource.is_none() {
            self.admit_valid(served, &proposed, Some(&old))?;
        }
        if claims.pending() {
            return Ok(Decision::Keep { carry: Vec::new() });
        }
        let carry = served.warnings(&proposed, Some((subresource, &old)));
        if strategy::may_finish_deletion(&rules, &proposed, &old) {
            *last = Some(served.encode(proposed)?);
            return Ok(Decision::Delete { carry });
        }
        // A kube-apiserver notes who manages fields, and nobody here proposes that: its absence alone is no change.
        let mut is_same = proposed == old;
        if !is_same && incoming::forget_managers(&mut old) {
            is_same = proposed == old;
        }
        if is_same && !served.is_stale(&current.object) {
            return Ok(Decision::Keep { carry });
        }
        Ok(Decision::Put { value: served.encode(proposed)?, ttl: self.ttl(served), carry })
    }

    /// The answer to a PUT or PATCH.
    ///
    /// - `last`: from [`Registry::decide`].
    pub(crate) async fn answer(
        &self,
        target: &Target,
        done: Done<Vec<String>>,
        mode: Mode,
        last: Option<Bytes>,
        mut warnings: Vec<String>,
    ) -> Result<Answer, Status> {
        let served = &target.served;
        let (object, more): (Arc<Object>, Vec<String>) = match done {
            Done::Put { object, carry } | Done::Kept { object, carry } => (object, carry),
            Done::Deleted { object, revision, carry } => {
                self.after_delete(served, &object, revision, mode).await;
                warnings.extend(carry);
                let key = object.key().clone();
                let object = match last {
                    Some(last) => self.store_of(served)?.decode(key, object.revision(), &last)?,
                    None => object,
                };
                return Ok(Answer { outcome: Outcome::Object(whole(served, &object, None)), warnings });
            }
        };
        self.after_write(served, &object).await;
        warnings.extend(more);
        Ok(Answer { outcome: Outcome::Object(whole(served, &object, None)), warnings })
    }

    async fn create_on_update(
        &self,
        target: &Target,
        body: &Body,
        options: &UpdateOptions,
        may_create: Option<&MayCreate>,
    ) -> Result<Answer, Status> {
        let collection = Target { name: None, ..target.clone() };
        let options = CreateOptions {
            dry_run: options.dry_run,
            field_manager: options.field_manager.clone(),
            field_validation: options.field_validation,
        };
        // What takes part in Services is driven to its end already.
        self.create_now(&collection, body, &options, may_create).await
    }
}

/// 404 for what `target` names.
pub(crate) fn not_found(target: &Target) -> Status {
    Status::not_found(target.served.group(), target.served.resource(), target.name())
}

/// The key of what `target` names as kube-apiserver's errors show it: below the store's own prefix.
fn shown_key(target: &Target) -> String {
    let served = &target.served;
    let resource = served.kind.storage_path().unwrap_or_else(|| served.resource().to_string());
    match target.namespace() {
        "" => format!("/{resource}/{}", target.name()),
        namespace => format!("/{resource}/{namespace}/{}", target.name()),
    }
}

/// Compares the proposed uid and resourceVersion with the current ones, and takes the current resourceVersion over.
fn check_preconditions(
    target: &Target,
    proposed: &mut Value,
    old: &Value,
    unconditional: Unconditional,
) -> Result<(), Status> {
    let served = &target.served;
    let conflict = |why: &str| Status::conflict(served.group(), served.resource(), target.name(), why);
    let text = |value: &Value, member: &str| value["metadata"][member].as_str().unwrap_or("").to_string();
    let (new_uid, old_uid) = (text(proposed, "uid"), text(old, "uid"));
    // Only a PUT makes a precondition of the uid in its body; in a patched object it is a field that may not change.
    if unconditional == Unconditional::ByKind && !new_uid.is_empty() && new_uid != old_uid {
        let key = shown_key(target);
        return Err(conflict(&format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {new_uid}, UID in object meta: {old_uid}"
        )));
    }
    let (new_rv, old_rv) = (text(proposed, "resourceVersion"), text(old, "resourceVersion"));
    match new_rv.as_str() {
        "" | "0"
            if unconditional == Unconditional::ByKind && !served.rules().flags().unconditional_update =>
        {
            let cause = Cause::new(
                CauseReason::FieldValueInvalid,
                "metadata.resourceVersion",
                "Invalid value: 0: must be specified for an update",
            );
            // Here kube-apiserver names the resource, not the kind.
            return Err(Status::invalid(served.group(), served.resource(), target.name(), vec![cause]));
        }
        "" | "0" => {}
        rv if rv.parse::<u64>().is_err() && unconditional == Unconditional::Always => {
            let message = format!("strconv.ParseUint: parsing {rv:?}: invalid syntax");
            return Err(Status::new(Reason::Unknown, message));
        }
        rv if rv.parse::<u64>().is_err() => {
            let cause = Cause::new(
                CauseReason::FieldValueInvalid,
                "metadata.resourceVersion",
                format!("Invalid value: {rv:?}: strconv.ParseUint: parsing {rv:?}: invalid syntax"),
            );
            return Err(served.invalid(target.name(), vec![cause]));
        }
        rv if rv != old_rv => return Err(conflict(MODIFIED)),
        _ => {}
    }
    proposed["metadata"]["resourceVersion"] = Value::from(old_rv);
    Ok(())
}
