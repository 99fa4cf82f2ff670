//! decode and normalize: from what a client sent to a tree of its kind, at the place that the path names.
//!
//! Never: reads a body twice in one round.

use forebay_apimachinery::{GroupVersionKind, Status};
use forebay_schema::builtin::table;
use forebay_strategy as strategy;
use serde_json::Value;

use super::{Input, Write, scale};
use crate::incoming::{self, Incoming, name_of, place};
use crate::request::{Body, Target};
use crate::ruled::Ruled as _;

/// What the server fills in of a review, and a client's word counts nothing about.
const SYSTEM_FIELDS: [&str; 5] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];

/// The tree of what was sent.
pub(super) fn decode(write: &mut Write<'_>) -> Result<(), Status> {
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
            (write.proposed, write.problems) = (patched.value, patched.warnings);
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
            take_sent(write, incoming::read(target, &gvk, body, write.validation)?);
        }
        Input::Eviction(body) => {
            let gvk = eviction_kind(write.kind_sent()?, body, target);
            take_sent(write, incoming::read(target, &gvk, body, write.validation)?);
        }
        Input::Deletion(_) => {}
    }
    Ok(())
}

fn take_sent(write: &mut Write<'_>, sent: Incoming) {
    (write.sent, write.problems) = (sent.value, sent.warnings);
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
        Input::Object(_) | Input::Review(_) => {
            let (value, problems) =
                (std::mem::take(&mut write.proposed), std::mem::take(&mut write.problems));
            let gvk = write.kind_sent()?;
            let normal = incoming::normalize(target, &gvk, value, problems, write.validation)?;
            (write.proposed, write.problems) = (normal.value, normal.warnings);
            place(target, &mut write.proposed)?;
            if write.is_change() {
                return has_the_name(target, &write.proposed);
            }
            if matches!(write.input, Input::Review(_)) && target.subresource.is_none() {
                forget_system_fields(&mut write.proposed);
            }
        }
        Input::Patch(_) => same_name(target, &write.proposed)?,
        Input::Scale(_) | Input::ScalePatch(_) => {
            write.proposed = served.to_value(&write.current()?.object)?;
            same_name(target, &write.sent)?;
            strategy::apply_scale(&served.rules(), &write.sent, &mut write.proposed)
                .map_err(|error| scale::refused(target, error))?;
        }
        Input::Binding(_) | Input::Eviction(_) | Input::Deletion(_) => {}
    }
    Ok(())
}

fn forget_system_fields(review: &mut Value) {
    if let Some(metadata) = review["metadata"].as_object_mut() {
        metadata.retain(|name, _| !SYSTEM_FIELDS.contains(&name.as_str()));
    }
}

fn has_the_name(target: &Target, value: &Value) -> Result<(), Status> {
    match name_of(value) {
        "" => Err(Status::bad_request("name must be provided")),
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
