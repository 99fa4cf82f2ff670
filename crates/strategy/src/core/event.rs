//! Events, of both groups.
//!
//! In: an Event as one of its groups has it. Out: causes. Never: counts or merges events.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation/events.go`, `apis/events/v1/conversion.go`.

use crate::field::{Causes, Path};
use crate::format;
use crate::meta::label_key;
use crate::rule::Update;
use crate::value::{Members, child_or_empty, text};

const SHORT_MAX: usize = 128;
const NOTE_MAX: usize = 1024;

/// How the two groups name the same things.
pub struct Names {
    pub object: &'static str,
    pub message: &'static str,
    /// Of the field and in the message, which differ in `v1`.
    pub controller: &'static str,
}

const CORE: Names = Names { object: "involvedObject", message: "message", controller: "reportingComponent" };

pub fn validate_create(event: &Members, causes: &mut Causes) {
    validate(event, &CORE, causes);
}

pub fn validate_update(new: &Members, _: &Update<'_>, causes: &mut Causes) {
    validate(new, &CORE, causes);
}

/// What both versions ask for.
pub fn validate(event: &Members, names: &Names, causes: &mut Causes) {
    let namespace = text(child_or_empty(event, "metadata"), "namespace");
    let of_object = text(child_or_empty(event, names.object), "namespace");
    let timed = !text(event, "eventTime").is_empty();
    let elsewhere = match (timed, of_object) {
        (false, "") => !matches!(namespace, "" | "default"),
        (false, of_object) => namespace != of_object,
        (true, "") => !matches!(namespace, "default" | "kube-system"),
        (true, _) => false,
    };
    if elsewhere {
        // Said with the names of the core group in both.
        let at = Path::root("involvedObject");
        causes.invalid(&at.child("namespace"), of_object, "does not match event.namespace");
    }
    if timed {
        reported(event, names, causes);
    }
    causes.faults(&Path::root("namespace"), namespace, format::dns1123_subdomain(namespace));
}

fn reported(event: &Members, names: &Names, causes: &mut Causes) {
    let at = Path::root(names.controller);
    let controller = text(event, names.controller);
    if controller.is_empty() {
        causes.required(&at, "");
    }
    label_key(controller, &at, causes);
    for name in ["reportingInstance", "action", "reason"] {
        let value = text(event, name);
        if value.is_empty() {
            causes.required(&Path::root(name), "");
        }
        at_most(value, SHORT_MAX, &Path::root(name), causes);
    }
    at_most(text(event, names.message), NOTE_MAX, &Path::root("message"), causes);
}

fn at_most(value: &str, max: usize, at: &Path<'_>, causes: &mut Causes) {
    if value.len() > max {
        causes.invalid(at, "", &format!("can have at most {max} characters"));
    }
}
