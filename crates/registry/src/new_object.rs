//! What the server writes into a new object, whoever makes it.
//!
//! In: an object with its defaults. Out: the same with its uid, its age, its generation, its status. Never:
//! stores.

use forebay_apimachinery::{Reason, Status};
use forebay_catalog::store::Mode;
use forebay_strategy as strategy;
use serde_json::Value;

use crate::context::Context;
use crate::ruled::Ruled as _;
use forebay_catalog::Target;

/// Fills in what the server sets on a new object of its own, which no plugin is asked about.
pub(crate) fn fill_in(context: &Context, target: &Target, value: &mut Value) {
    target.served.set_defaults(value);
    target.served.to_judged(value);
    prepare(context, target, value);
}

/// The same of an object that has its defaults. Returns what the client is told of it.
pub(crate) fn prepare(context: &Context, target: &Target, value: &mut Value) -> Vec<String> {
    let rules = target.served.rules();
    let now = context.now_rfc3339();
    let of_write = strategy::Context { now: &now, user: target.caller.as_deref() };
    strategy::fill_system_fields(value, &of_write, &context.random.uuid());
    strategy::prepare_create(&rules, value, &of_write)
}

/// Takes the resourceVersion that the client says a new object has.
///
/// # Errors
/// There is one, and the object is to be stored. What reads as no version is none.
pub(crate) fn take_version(value: &mut Value, mode: Mode) -> Result<Option<Value>, Status> {
    let metadata = value.get_mut("metadata").and_then(Value::as_object_mut);
    let version = metadata.and_then(|metadata| metadata.remove("resourceVersion"));
    let is_one = version.as_ref().and_then(Value::as_str).is_some_and(|text| {
        text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u64>().is_ok_and(|number| number != 0)
    });
    match mode {
        Mode::Commit if is_one => {
            Err(Status::new(Reason::Unknown, "resourceVersion should not be set on objects to be created"))
        }
        Mode::Commit | Mode::DryRun => Ok(version),
    }
}
