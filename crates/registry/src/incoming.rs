//! What a client sent, made into a value of its kind.
//!
//! In: a body or a patched value. Out: a normalized value and warnings. Refuses what the kind cannot hold.

use forebay_apimachinery::options::FieldValidation;
use forebay_apimachinery::{GroupVersionKind, Lease, Status, json};
use forebay_catalog::{Served, normalize_as};
use forebay_schema::builtin::table;
use serde_json::Value;

use crate::request::{Body, Target, unrecognized};

/// A value of its kind, and what is to be said about it.
pub struct Incoming {
    pub value: Value,
    pub warnings: Vec<String>,
}

/// Reads `body` as an object of `expected`, which is the kind of the target's resource or of a subresource.
///
/// # Errors
/// 400 in kube-apiserver's words; 413 and 429 when it takes more than the target's lease has.
pub fn read(
    target: &Target,
    expected: &GroupVersionKind,
    body: &Body,
    validation: FieldValidation,
) -> Result<Incoming, Status> {
    let (value, duplicates) = decode(target, expected, body)?;
    normalize(target, expected, value, duplicates, validation)
}

/// The tree of `body`, which says that it is of `expected`; and what members come twice in it.
///
/// # Errors
/// As [`read`].
pub(crate) fn decode(
    target: &Target,
    expected: &GroupVersionKind,
    body: &Body,
) -> Result<(Value, Vec<String>), Status> {
    let (served, lease) = (&*target.served, &target.lease);
    let (mut value, duplicates) = match body {
        Body::Value(value) => (json::copy(value, lease)?, Vec::new()),
        Body::Json(json) => {
            let parsed = json::parse(json, lease).map_err(|error| {
                let why = format!("couldn't get version/kind; json parse error: {error}");
                unrecognized(&expected.kind, &why, json)
            })?;
            let duplicates: Vec<String> = parsed.duplicate_fields().collect();
            (parsed.value, duplicates)
        }
    };
    served.check_type(&mut value, expected)?;
    Ok((value, duplicates))
}

/// The name in a body that is not read any further; empty when it has none.
pub fn name_in(body: &Body, lease: &Lease) -> String {
    text_in(body, lease, |value| value["metadata"]["name"].as_str())
}

/// The version that a body says it is of; empty when it says none.
pub fn api_version_in(body: &Body, lease: &Lease) -> String {
    text_in(body, lease, |value| value["apiVersion"].as_str())
}

fn text_in(body: &Body, lease: &Lease, find: impl Fn(&Value) -> Option<&str>) -> String {
    let text = |value: &Value| find(value).unwrap_or("").to_string();
    let _tree = lease.scope();
    match body {
        Body::Value(value) => text(value),
        Body::Json(json) => json::parse(json, lease).map(|parsed| text(&parsed.value)).unwrap_or_default(),
    }
}

/// Brings `value` into the form of its kind: types checked, unknown fields dropped, defaults of a CRD's schema set.
///
/// - `problems`: what is wrong with the body already, `duplicate field "x"`.
///
/// # Errors
/// 400 for a value of the wrong type, and for problems when `validation` is strict.
pub fn normalize(
    target: &Target,
    expected: &GroupVersionKind,
    value: Value,
    problems: Vec<String>,
    validation: FieldValidation,
) -> Result<Incoming, Status> {
    normalized(target, expected, value, problems, validation).map_err(|why| {
        Status::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {why}",
            expected.kind, expected.version, expected.kind
        ))
    })
}

/// As [`normalize`], with the bare reason of a refusal.
///
/// # Errors
/// What Go's decoder says, or the problems when `validation` is strict.
pub(crate) fn normalized(
    target: &Target,
    expected: &GroupVersionKind,
    mut value: Value,
    mut problems: Vec<String>,
    validation: FieldValidation,
) -> Result<Incoming, String> {
    problems.extend(fit(&target.served, expected, &mut value, &target.lease)?);
    // Fields have no managers yet: what a client says of them is forgotten.
    forget_managers(&mut value);
    match validation {
        FieldValidation::Ignore => problems.clear(),
        FieldValidation::Strict if !problems.is_empty() => {
            return Err(format!("strict decoding error: {}", problems.join(", ")));
        }
        FieldValidation::Strict | FieldValidation::Warn => {}
    }
    Ok(Incoming { value, warnings: problems })
}

/// Takes away what `value` says of who manages its fields; whether it said so.
pub(crate) fn forget_managers(value: &mut Value) -> bool {
    let metadata = value.get_mut("metadata").and_then(Value::as_object_mut);
    metadata.is_some_and(|metadata| metadata.remove("managedFields").is_some())
}

/// Puts the path's namespace into the object, or refuses an object of another place.
pub(crate) fn place(target: &Target, value: &mut Value) -> Result<(), Status> {
    if !value.get("metadata").is_some_and(Value::is_object) {
        value["metadata"] = Value::Object(serde_json::Map::new());
    }
    let found = value["metadata"]["namespace"].as_str().unwrap_or("").to_string();
    let wanted = target.namespace();
    if target.served.namespaced {
        if !found.is_empty() && found != wanted {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        value["metadata"]["namespace"] = Value::from(wanted);
    } else if let Some(metadata) = value["metadata"].as_object_mut() {
        // What is in no namespace says so, whatever it was sent with.
        metadata.remove("namespace");
    }
    Ok(())
}

/// `metadata.name`, empty when there is none.
pub(crate) fn name_of(value: &Value) -> &str {
    value["metadata"]["name"].as_str().unwrap_or("")
}

/// The problems of unknown fields, or why the value cannot be of the `expected` kind: the resource's own, or a subresource's.
fn fit(
    served: &Served,
    expected: &GroupVersionKind,
    value: &mut Value,
    lease: &Lease,
) -> Result<Vec<String>, String> {
    if expected == &served.gvk {
        return served.kind.normalize(value, lease);
    }
    let kind = table().kind(&expected.group, &expected.version, &expected.kind);
    let kind = kind.ok_or_else(|| format!("no kind {:?} is registered", expected.kind))?;
    normalize_as(kind.ty, value)
}
