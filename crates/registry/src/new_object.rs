//! What the server writes into a new object, whoever makes it.
//!
//! In: an object with its defaults. Out: the same with its uid, its age, its generation, its status. Never: stores.

use forebay_apimachinery::{Reason, Status};
use forebay_strategy as strategy;
use serde_json::Value;

use crate::context::Context;
use crate::request::Target;
use crate::ruled::Ruled as _;

/// Fills in what the server sets on a new object of its own, which no plugin is asked about.
///
/// # Errors
/// It has a resourceVersion.
pub(crate) fn fill_in(context: &Context, target: &Target, value: &mut Value) -> Result<(), Status> {
    target.served.set_defaults(value);
    target.served.to_judged(value);
    prepare(context, target, value)
}

/// The same of an object that has its defaults.
///
/// # Errors
/// It has a resourceVersion.
pub(crate) fn prepare(context: &Context, target: &Target, value: &mut Value) -> Result<(), Status> {
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
