//! default, name and prepare: what the kind and the server write into an object.

use std::sync::Arc;

use forebay_apimachinery::{Status, json};
use forebay_fieldmanager::keep_times_if_repeated;
use forebay_strategy::{self as strategy, BindingError};
use serde_json::Value;

use super::{Input, Write, deletion};
use crate::context::Context;
use crate::incoming::name_of;
use crate::new_object;
use crate::owners;
use crate::ruled::Ruled as _;
use forebay_catalog::Target;

/// What the kind says where the client says nothing.
pub(super) fn default(write: &mut Write<'_>) -> Result<(), Status> {
    if write.is_new_object() || write.is_change() {
        let served = write.served();
        served.set_defaults(&mut write.proposed);
    }
    Ok(())
}

/// What only the server writes, and what a verb makes of the object.
pub(super) fn prepare(write: &mut Write<'_>, context: &Arc<Context>) -> Result<(), Status> {
    let (target, served) = (write.target, write.served());
    let now = context.now_rfc3339();
    let of_write = strategy::Context { now: &now, user: target.caller.as_deref() };
    if write.is_new_object() {
        write.told.extend(new_object::prepare(context, target, &mut write.proposed));
        return Ok(());
    }
    let Some(old) = &write.old else { return Ok(()) };
    if write.is_change() {
        let rules = served.rules();
        // Rules do not know of who owns what: some make the object from the one that is there.
        let entries = owners::take_entries(&mut write.proposed);
        // Rules copy what may not change, to compare it without what may.
        if rules.custom.is_none() {
            target.lease.charge(json::weight::of(&write.proposed))?;
        }
        strategy::prepare_update(
            &rules,
            write.target.subresource.as_deref(),
            &mut write.proposed,
            old,
            &of_write,
        );
        owners::set_entries(&mut write.proposed, entries);
        keep_times_if_repeated(&mut write.proposed, old);
        return Ok(());
    }
    match write.input {
        Input::Binding(_) => strategy::bind(target.name(), &write.sent, &mut write.proposed, &of_write)
            .map_err(|error| not_bound(target, error)),
        Input::Deletion(options) => {
            write.proposed = write.old.take().unwrap_or_default();
            write.then = Some(deletion::begin(served, &mut write.proposed, options, &now));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A new object that brings no name is given one: the same in all rounds of one attempt to store it. What is
/// made of the object knows it.
pub(super) fn name(write: &mut Write<'_>, context: &Context) -> Result<(), Status> {
    if !write.is_new_object() || !name_of(&write.proposed).is_empty() {
        return Ok(());
    }
    let base = write.proposed["metadata"]["generateName"].as_str().unwrap_or_default();
    if !base.is_empty() {
        let name = write
            .name_made
            .get_or_insert_with(|| strategy::generate_name(base, |bound| context.random.below(bound)));
        write.proposed["metadata"]["name"] = Value::from(name.as_str());
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
