//! preconditions: the object is still the one that the client means.
//!
//! In: what the client names, and what is there. Out: a conflict, or the resourceVersion taken over. Never:
//! judges the object.

use forebay_apimachinery::options::DeleteOptions;
use forebay_apimachinery::{Cause, CauseReason, Reason, Status};
use serde_json::Value;

use super::{Input, Write};
use crate::ruled::Ruled as _;
use forebay_catalog::Target;
use forebay_catalog::store::Mode;

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Looks at what is there, and compares.
pub(super) fn check(write: &mut Write<'_>) -> Result<(), Status> {
    let (target, served) = (write.target, write.served());
    let old = match write.input {
        Input::Eviction(_) | Input::Review(_) | Input::Connection => return Ok(()),
        // A POST names nothing in its path.
        Input::Object(_) if write.is_new_object() && target.name.is_some() => {
            return of_absent(target, &mut write.proposed, write.mode);
        }
        _ if write.is_new_object() => return Ok(()),
        Input::Binding(_) => served.to_value(&write.current()?.object)?,
        _ => served.to_judged_value(&write.current()?.object)?,
    };
    match write.input {
        Input::Object(_) => of_change(target, &mut write.proposed, &old, true)?,
        Input::Patch(_) | Input::Apply(_) | Input::Scale(_) | Input::ScalePatch(_) | Input::ScaleApply(_) => {
            of_change(target, &mut write.proposed, &old, false)?;
        }
        Input::Binding(_) => {
            of_binding(target, &write.sent["metadata"], &old)?;
            write.proposed = served.to_value(&write.current()?.object)?;
        }
        Input::Deletion(options) => of_deletion(target, &old, options)?,
        Input::Eviction(_) | Input::Review(_) | Input::Connection => {}
    }
    write.old = Some(old);
    Ok(())
}

/// Compares the proposed uid and resourceVersion with the current ones, and takes the current resourceVersion
/// over.
///
/// - `is_put`: it was not computed from the current object. It may overwrite whatever is there only where the
///   kind allows that.
fn of_change(target: &Target, proposed: &mut Value, old: &Value, is_put: bool) -> Result<(), Status> {
    let served = &target.served;
    let text = |value: &Value, member: &str| value["metadata"][member].as_str().unwrap_or("").to_string();
    let (new_uid, old_uid) = (text(proposed, "uid"), text(old, "uid"));
    // Only a PUT makes a precondition of the uid in its body; in a patched object it is a field that may not
    // change.
    if is_put && !new_uid.is_empty() && new_uid != old_uid {
        return Err(other_uid(target, &new_uid, &old_uid));
    }
    let (new_rv, old_rv) = (text(proposed, "resourceVersion"), text(old, "resourceVersion"));
    match new_rv.as_str() {
        "" | "0" if is_put && !served.rules().flags().unconditional_update => {
            let cause = Cause::new(
                CauseReason::FieldValueInvalid,
                "metadata.resourceVersion",
                "Invalid value: 0: must be specified for an update",
            );
            // Here kube-apiserver names the resource, not the kind.
            return Err(Status::invalid(served.group(), served.resource(), target.name(), vec![cause]));
        }
        "" | "0" => {}
        rv if rv.parse::<u64>().is_err() && !is_put => {
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
        rv if rv != old_rv => {
            return Err(Status::conflict(served.group(), served.resource(), target.name(), MODIFIED));
        }
        _ => {}
    }
    proposed["metadata"]["resourceVersion"] = Value::from(old_rv);
    Ok(())
}

/// Of a PUT that creates: it does not mean an object that was there once. At which version that was is no
/// concern of the new one, and is told again where nothing is stored.
fn of_absent(target: &Target, proposed: &mut Value, mode: Mode) -> Result<(), Status> {
    let Some(metadata) = proposed["metadata"].as_object_mut() else { return Ok(()) };
    if mode == Mode::Commit {
        metadata.remove("resourceVersion");
    }
    match metadata.get("uid").and_then(Value::as_str) {
        None | Some("") => Ok(()),
        Some(uid) => Err(other_uid(target, uid, "")),
    }
}

fn other_uid(target: &Target, asked: &str, found: &str) -> Status {
    let (served, mut key) = (&target.served, shown_key(target));
    // The store itself finds that there is none, and shows all of its key.
    if found.is_empty() {
        key.insert_str(0, "/registry");
    }
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {asked}, UID in object meta: {found}"
    );
    Status::conflict(served.group(), served.resource(), target.name(), &why)
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

/// Refuses what is not the object that was meant.
pub(crate) fn of_deletion(target: &Target, old: &Value, options: &DeleteOptions) -> Result<(), Status> {
    let served = &target.served;
    let text = |member: &str| old["metadata"][member].as_str().unwrap_or("");
    let conflict = |why: String| {
        // Upstream names the kind here, not the resource.
        Err(Status::conflict(served.group(), &served.gvk.kind, target.name(), &why))
    };
    if let Some(uid) = options.preconditions.uid.as_deref().filter(|uid| *uid != text("uid")) {
        return conflict(format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            text("uid")
        ));
    }
    let asked = options.preconditions.resource_version.as_deref();
    if let Some(rv) = asked.filter(|rv| *rv != text("resourceVersion")) {
        return conflict(format!(
            "the ResourceVersion in the precondition ({rv}) does not match the ResourceVersion in record ({}). The object \
             might have been modified",
            text("resourceVersion")
        ));
    }
    Ok(())
}

fn of_binding(target: &Target, wanted: &Value, pod: &Value) -> Result<(), Status> {
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
