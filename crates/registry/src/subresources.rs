//! Subresources whose body is not the object itself: scale, binding; eviction has a file of its own.
//!
//! In: a Scale or a Binding. Out: the object that it changes, through the same guarded update as every write.

use bytes::Bytes;
use forebay_apimachinery::options::{CreateOptions, PatchOptions, UpdateOptions};
use forebay_apimachinery::{GroupVersionKind, Lease, Reason, Status};
use forebay_object::Object;
use forebay_schema::builtin::{codec, table};
use serde_json::{Value, json};

use crate::catalog::{Served, SubresourceInfo};
use crate::create::name_of;
use crate::errors;
use crate::incoming;
use crate::patch::Patch;
use crate::registry::Registry;
use crate::request::{Answer, Body, Outcome, Target};
use crate::services::Claims;
use crate::store::{Current, Decision, Done, Mode};
use crate::update::{Unconditional, not_found};
use forebay_strategy::{self as strategy, BindingError, Context, ScaleError};

impl Registry {
    /// The Scale of an object.
    ///
    /// # Errors
    /// As a GET of the object; 500 for a custom resource that says nothing of its replicas.
    pub async fn get_scale(&self, target: &Target, resource_version: &str) -> Result<Bytes, Status> {
        let object = self.get(target, resource_version).await?;
        scale_of(target, &object)
    }

    pub(crate) async fn update_scale(
        &self,
        target: &Target,
        body: &Body,
        options: &UpdateOptions,
    ) -> Result<Answer, Status> {
        let gvk = body_kind(target, "scale")?;
        let incoming = incoming::read(target, &gvk, body, options.field_validation)?;
        let scale = incoming.value;
        let mode = if options.dry_run { Mode::DryRun } else { Mode::Commit };
        let done = self.change_scale(target, mode, |_, _| Ok((scale.clone(), Vec::new()))).await?;
        answer_scale(target, done, incoming.warnings)
    }

    pub(crate) async fn patch_scale(
        &self,
        target: &Target,
        patch: &Patch<'_>,
        options: &PatchOptions,
    ) -> Result<Answer, Status> {
        let gvk = body_kind(target, "scale")?;
        let ty = table().kind(&gvk.group, &gvk.version, &gvk.kind).map(|kind| kind.ty);
        let mode = if options.dry_run { Mode::DryRun } else { Mode::Commit };
        let done = self
            .change_scale(target, mode, |served, current| {
                let scale = strategy::scale_to_update(&served.rules(), current)
                    .map_err(|error| refused(target, error))?;
                let incoming =
                    patch.applied(target, &gvk, ty, || Ok(scale.clone()), options.field_validation)?;
                Ok((incoming.value, incoming.warnings))
            })
            .await?;
        answer_scale(target, done, Vec::new())
    }

    /// Applies the Scale that `make` makes of the current object to it.
    async fn change_scale(
        &self,
        target: &Target,
        mode: Mode,
        make: impl Fn(&Served, &Value) -> Result<(Value, Vec<String>), Status>,
    ) -> Result<Done<Vec<String>>, Status> {
        let served = &target.served;
        let store = self.store_of(served)?;
        let key = store.key(target.namespace(), target.name());
        store
            .guarded_update(&key, mode, |current| {
                let current = current.ok_or_else(|| not_found(target))?;
                let mut proposed = served.to_value(&current.object)?;
                let (scale, warnings) = make(served, &proposed)?;
                let name = name_of(&scale);
                if name != target.name() {
                    return Err(Status::bad_request(format!(
                        "the name of the object ({name}) does not match the name on the URL ({})",
                        target.name()
                    )));
                }
                strategy::apply_scale(&served.rules(), &scale, &mut proposed)
                    .map_err(|error| refused(target, error))?;
                // The Scale shown is that of the stored object, even if this ends it.
                let mut last = None;
                let claims = &mut Claims::none();
                let decision =
                    self.decide(target, proposed, current, Unconditional::Always, claims, &mut last)?;
                Ok(decision.with_warnings(warnings))
            })
            .await
    }

    /// POST to a subresource.
    pub(crate) async fn create_subresource(
        &self,
        target: &Target,
        subresource: &str,
        body: &Body,
        options: &CreateOptions,
    ) -> Result<Answer, Status> {
        let gvk = body_kind(target, subresource)?;
        match (target.served.group(), target.served.resource(), subresource) {
            ("", "pods", "binding") => {
                let incoming = incoming::read(target, &gvk, body, options.field_validation)?;
                self.bind(target, &incoming.value, options.dry_run).await
            }
            ("", "pods", "eviction") => {
                let gvk = eviction_kind(gvk, body, &target.lease);
                let incoming = incoming::read(target, &gvk, body, options.field_validation)?;
                self.evict(target, &incoming.value, options.dry_run).await
            }
            _ => Err(Status::new(
                Reason::MethodNotAllowed,
                format!(
                    "{}/{subresource} is not served by this server yet",
                    target.served.gvr.group_resource()
                ),
            )),
        }
    }

    /// POST to `bindings`: as to the `binding` of the pod that the body names.
    pub(crate) async fn create_binding(
        &self,
        target: &Target,
        body: &Body,
        options: &CreateOptions,
    ) -> Result<Answer, Status> {
        let incoming = incoming::read(target, &target.served.gvk, body, options.field_validation)?;
        let pods = self.catalog().resource("", "v1", "pods").cloned();
        let pods = pods.ok_or_else(|| target.served.method_not_supported("create"))?;
        let name = name_of(&incoming.value).to_string();
        let pod =
            Target { served: pods, name: Some(name), subresource: Some("binding".into()), ..target.clone() };
        self.bind(&pod, &incoming.value, options.dry_run).await
    }

    async fn bind(&self, target: &Target, binding: &Value, dry_run: bool) -> Result<Answer, Status> {
        let served = &target.served;
        let store = self.store_of(served)?;
        let key = store.key(target.namespace(), target.name());
        let mode = if dry_run { Mode::DryRun } else { Mode::Commit };
        let now = self.now_rfc3339();
        let judge = |current: Option<&Current>| {
            let current = current.ok_or_else(|| not_found(target))?;
            let mut pod = served.to_value(&current.object)?;
            check_identity(target, &binding["metadata"], &pod)?;
            strategy::bind(
                target.name(),
                binding,
                &mut pod,
                &Context { now: &now, user: target.caller.as_deref() },
            )
            .map_err(|error| not_bound(target, error))?;
            Ok(Decision::Put { value: served.encode(pod)?, ttl: None, carry: () })
        };
        store.guarded_update(&key, mode, judge).await?;
        created()
    }
}

/// Evictions are taken in their older version, too, which is the same.
fn eviction_kind(known: GroupVersionKind, body: &Body, lease: &Lease) -> GroupVersionKind {
    const OLDER: &str = "v1beta1";
    let older = GroupVersionKind::new(&known.group, OLDER, &known.kind);
    if incoming::api_version_in(body, lease) == older.api_version() { older } else { known }
}

/// The kind of a subresource's body.
fn body_kind(target: &Target, subresource: &str) -> Result<GroupVersionKind, Status> {
    let known: Option<&SubresourceInfo> = target.served.subresource(subresource);
    known.map(|known| known.gvk.clone()).ok_or_else(|| target.served.method_not_supported("update"))
}

/// `Status` of success, as a POST that creates nothing answers.
pub(crate) fn created() -> Result<Answer, Status> {
    let status =
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    let mut out = crate::catalog::compact(&status).into_bytes();
    out.push(b'\n');
    Ok(Answer::plain(Outcome::Created(Bytes::from(out))))
}

fn check_identity(target: &Target, wanted: &Value, pod: &Value) -> Result<(), Status> {
    for (member, title) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let (asked, found) =
            (wanted[member].as_str().unwrap_or(""), pod["metadata"][member].as_str().unwrap_or(""));
        if !asked.is_empty() && asked != found {
            let why = format!(
                "Precondition failed: {title} in precondition: {asked}, {title} in object meta: {found}"
            );
            return Err(Status::conflict("", "pods", target.name(), &why));
        }
    }
    Ok(())
}

fn not_bound(target: &Target, error: BindingError) -> Status {
    match error {
        BindingError::OtherName => Status::bad_request(BindingError::OTHER_NAME),
        BindingError::Invalid(causes) => Status::invalid("", "Binding", target.name(), causes),
        BindingError::Conflict(why) => Status::conflict("", "pods/binding", target.name(), &why),
    }
}

fn scale_of(target: &Target, object: &Object) -> Result<Bytes, Status> {
    let value = target.served.to_value(object)?;
    let scale = strategy::to_scale(&target.served.rules(), &value).map_err(|error| refused(target, error))?;
    let mut out = Vec::new();
    match table().kind("autoscaling", "v1", "Scale") {
        Some(kind) => codec::write_json(kind.ty, &scale, &mut out).map_err(Status::internal)?,
        None => forebay_apimachinery::json::write_sorted(&scale, &mut out),
    }
    out.push(b'\n');
    Ok(Bytes::from(out))
}

fn answer_scale(
    target: &Target,
    done: Done<Vec<String>>,
    mut warnings: Vec<String>,
) -> Result<Answer, Status> {
    let (Done::Put { object, carry } | Done::Kept { object, carry } | Done::Deleted { object, carry, .. }) =
        done;
    warnings.extend(carry);
    Ok(Answer { outcome: Outcome::Object(scale_of(target, &object)?), warnings })
}

fn refused(target: &Target, error: ScaleError) -> Status {
    let served = &target.served;
    match error {
        ScaleError::NoReplicas(why) | ScaleError::Unreadable(why) => Status::internal(why),
        ScaleError::Empty(why) => Status::bad_request(why),
        ScaleError::Invalid(causes) => Status::invalid("autoscaling", "Scale", target.name(), causes),
        ScaleError::OtherUid(why) => Status::conflict(served.group(), served.resource(), target.name(), &why),
    }
}
