//! ControllerRevisions.
//!
//! In: a ControllerRevision. Out: causes. Never: what is in its data.
//!
//! Source: kubernetes v1.36.3 `apis/apps/validation`.

use serde_json::Value;

use crate::field::{Causes, Path};
use crate::meta::{IMMUTABLE, validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::rule::Update;
use crate::value::{Members, child_or_empty, int};

const DATA: Path<'static> = Path::root("data");

pub fn validate_create(revision: &Members, causes: &mut Causes) {
    number(revision, causes);
    match revision.get("data") {
        None | Some(Value::Null) => causes.required(&DATA, "data is mandatory"),
        Some(Value::Object(_)) => {}
        Some(_) => causes.required(&DATA, "data must be a valid JSON object"),
    }
}

/// Its number, which orders it.
fn number(revision: &Members, causes: &mut Causes) {
    if let Some(number) = int(revision, "revision").filter(|number| *number < 0) {
        causes.invalid(&Path::root("revision"), number, "must be greater than or equal to 0");
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_update(new, update.old, causes);
    validate_built_in_create(child_or_empty(new, "metadata"), true, NameRule::Subdomain, causes);
    number(new, causes);
    if new.get("data") != update.old.get("data") {
        causes.invalid(&DATA, new.get("data"), IMMUTABLE);
    }
}
