//! decode and normalize: from what a client sent to a tree of its kind, at the place that the path names.
//!
//! Never: reads a body twice in one round.

use forebay_apimachinery::resource::shown_kind;
use forebay_apimachinery::{GroupVersionKind, Reason, Status};
use forebay_fieldmanager::LAST_APPLIED;
use forebay_schema::builtin::table;
use forebay_strategy as strategy;
use serde_json::Value;

use super::{Input, Write, own, scale};
use crate::configuration::Configuration;
use crate::context::Context;
use crate::incoming::{self, Incoming, name_of, place};
use crate::owners;
use crate::ruled::Ruled as _;
use forebay_api::Body;
use forebay_catalog::Target;

/// What the server fills in of what is posted, and a client's word counts nothing about.
const SYSTEM_FIELDS: [&str; 5] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];

/// The tree of what was sent.
pub(super) fn decode(write: &mut Write<'_>, context: &Context) -> Result<(), Status> {
    let (target, served) = (write.target, write.served());
    match write.input {
        Input::Object(body) | Input::Review(body) => {
            let gvk = write.kind_sent()?;
            (write.proposed, write.problems) = incoming::decode(target, &gvk, body)?;
        }
        // The words of a refusal are about the patch and what becomes of it: it is normalized in one go.
        Input::Patch(patch) => {
            let current = write.current()?.object.clone();
            let patched = patch.applied(
                target,
                &served.gvk,
                served.ty(),
                || served.to_value(&current),
                write.validation,
            )?;
            (write.proposed, write.problems, write.entries_sent) =
                (patched.value, patched.warnings, patched.entries);
        }
        Input::Apply(apply) => {
            let is_there = write.is_change();
            let mut live = is_there.then(|| served.to_value(&write.current()?.object)).transpose()?;
            // Only of a custom resource it is asked afterwards what was there.
            let given = match served.is_custom() {
                true => live.as_ref().map(std::borrow::Cow::Borrowed),
                false => live.take().map(std::borrow::Cow::Owned),
            };
            let (mut applied, is_stamped) = own::applied(write, context, given, &apply.config, apply.force)?;
            write.is_stamped = is_stamped;
            let is_kept = live.is_some_and(|live| is_the_same(live, &mut applied));
            write.problems = apply.problems(write.validation)?;
            // What stays as it is gets nothing that its kind says of it now.
            write.proposed = if is_kept { applied } else { normal_form(write, apply, applied)? };
            if !is_there {
                begin_object(target, &mut write.proposed)?;
            }
        }
        Input::ScaleApply(apply) => {
            let (applied, is_stamped) = own::applied_scale(write, context, &apply.config, apply.force)?;
            write.is_stamped = is_stamped;
            write.problems = apply.problems(write.validation)?;
            write.sent = normal_form(write, apply, applied)?;
        }
        Input::ScalePatch(patch) => {
            let gvk = write.kind_sent()?;
            let ty = table().kind(&gvk.group, &gvk.version, &gvk.kind).map(|kind| kind.ty);
            let current = served.to_value(&write.current()?.object)?;
            let scale = strategy::scale_to_update(&served.rules(), &current)
                .map_err(|error| scale::refused(target, error))?;
            let patched = patch.applied(target, &gvk, ty, || Ok(scale.clone()), write.validation)?;
            (write.sent, write.problems) = (patched.value, patched.warnings);
        }
        Input::Scale(body) | Input::Binding(body) => {
            let gvk = write.kind_sent()?;
            take_sent(write, &gvk, incoming::read(target, &gvk, body, write.validation)?)?;
        }
        Input::Eviction(body) => {
            let gvk = eviction_kind(write.kind_sent()?, body, target);
            take_sent(write, &gvk, incoming::read(target, &gvk, body, write.validation)?)?;
        }
        Input::Deletion(_) | Input::Connection => {}
    }
    Ok(())
}

/// Whether `applied` is `live` but for who owns what, and for what kubectl notes of its applies.
fn is_the_same(mut live: Value, applied: &mut Value) -> bool {
    owners::take_entries(&mut live);
    let entries = owners::take_entries(applied);
    let annotations = live.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(before) = annotations.and_then(|annotations| annotations.get_mut(LAST_APPLIED)) {
        before.clone_from(&applied["metadata"]["annotations"][LAST_APPLIED]);
    }
    let is_same = live == *applied;
    owners::set_entries(applied, entries);
    is_same
}

/// What an apply made, in the form of its kind.
fn normal_form(write: &Write<'_>, apply: &Configuration, applied: Value) -> Result<Value, Status> {
    let gvk = write.kind_sent()?;
    incoming::applied(write.target, &gvk, applied).map_err(|why| {
        // Upstream makes it of a tree and not of text here, where only bytes are still decoded.
        let why =
            if why.starts_with("illegal base64") { format!("error decoding from json: {why}") } else { why };
        let (metadata, kind) = (&apply.config["metadata"], shown_kind(&gvk.api_version(), &gvk.kind));
        let text = |name: &str| metadata[name].as_str().unwrap_or_default();
        let what = format!("{}/{}; {kind}", text("namespace"), text("name"));
        let why = format!("unable to convert unstructured object to {kind}: {why}");
        Status::new(
            Reason::Unknown,
            format!("failed to convert new object ({what}) to proper version: {why}"),
        )
    })
}

/// What is applied and not there is not what had this uid once; what it was at is none of its concern.
fn begin_object(target: &Target, proposed: &mut Value) -> Result<(), Status> {
    if let Some(uid) = proposed["metadata"]["uid"].as_str().filter(|uid| !uid.is_empty()) {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        let served = &target.served;
        return Err(Status::conflict(served.group(), served.resource(), target.name(), &why));
    }
    if let Some(metadata) = proposed["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    Ok(())
}

/// Notes what was sent, where an audit log asks for it.
fn note(write: &Write<'_>, gvk: &GroupVersionKind, sent: &Value) -> Result<(), Status> {
    let (target, served) = (write.target, write.served());
    let json = || served.noted(gvk, sent, &target.lease, |sent| served.set_defaults(sent));
    Ok(target.context.note_object(sent, json)?)
}

/// Takes what was sent to a subresource. It is of the path's namespace: rights were asked for there.
fn take_sent(write: &mut Write<'_>, gvk: &GroupVersionKind, sent: Incoming) -> Result<(), Status> {
    note(write, gvk, &sent.value)?;
    (write.sent, write.problems) = (sent.value, sent.warnings);
    place(write.target, &mut write.sent)
}

/// Evictions are taken in their older version, too, which is the same.
fn eviction_kind(known: GroupVersionKind, body: &Body, target: &Target) -> GroupVersionKind {
    const OLDER: &str = "v1beta1";
    let older = GroupVersionKind::new(&known.group, OLDER, &known.kind);
    if incoming::api_version_in(body, &target.lease) == older.api_version() { older } else { known }
}

/// The object in the form of its kind, and where the path has it.
pub(super) fn normalize(write: &mut Write<'_>) -> Result<(), Status> {
    let (target, served) = (write.target, write.served());
    match write.input {
        Input::Object(body) | Input::Review(body) => {
            let (value, problems) =
                (std::mem::take(&mut write.proposed), std::mem::take(&mut write.problems));
            let gvk = write.kind_sent()?;
            let normal = incoming::normalize(target, &gvk, value, problems, body, write.validation)?;
            (write.proposed, write.problems, write.entries_sent) =
                (normal.value, normal.warnings, normal.entries);
            strategy::default_review(&gvk, &mut write.proposed);
            note(write, &gvk, &write.proposed)?;
            place(target, &mut write.proposed)?;
            let repeated = strategy::dedup_owner_references(&mut write.proposed);
            write.problems.extend(repeated.map(|uids| {
                format!(
                    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in \
                     1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) \
                     observed: {uids}"
                )
            }));
            if write.is_change() {
                return has_the_name(target, &write.proposed);
            }
            // As upstream has it, a PUT that makes an object keeps them for who judges it.
            if target.name().is_empty() && target.subresource.is_none() {
                forget_system_fields(&mut write.proposed);
            }
        }
        Input::Patch(_) => has_the_name(target, &write.proposed)?,
        Input::Apply(_) => {
            place(target, &mut write.proposed)?;
            has_the_name(target, &write.proposed)?;
        }
        Input::Scale(_) | Input::ScalePatch(_) | Input::ScaleApply(_) => {
            write.proposed = served.to_value(&write.current()?.object)?;
            same_name(target, &write.sent)?;
            strategy::apply_scale(&served.rules(), &write.sent, &mut write.proposed)
                .map_err(|error| scale::refused(target, error))?;
        }
        Input::Binding(_) | Input::Eviction(_) | Input::Deletion(_) | Input::Connection => {}
    }
    Ok(())
}

fn forget_system_fields(posted: &mut Value) {
    if let Some(metadata) = posted["metadata"].as_object_mut() {
        metadata.retain(|name, _| !SYSTEM_FIELDS.contains(&name.as_str()));
    }
}

fn has_the_name(target: &Target, value: &Value) -> Result<(), Status> {
    match name_of(value) {
        "" => Err(Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            target.name()
        ))),
        _ => same_name(target, value),
    }
}

fn same_name(target: &Target, value: &Value) -> Result<(), Status> {
    let (name, wanted) = (name_of(value), target.name());
    if name == wanted {
        return Ok(());
    }
    Err(Status::bad_request(format!(
        "the name of the object ({name}) does not match the name on the URL ({wanted})"
    )))
}
