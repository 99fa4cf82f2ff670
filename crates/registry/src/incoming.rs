//! What a client sent, made into a value of its kind.
//!
//! In: a body or a patched value. Out: a normalized value and warnings. Refuses what the kind cannot hold.

use forebay_apimachinery::options::FieldValidation;
use forebay_apimachinery::{GroupVersionKind, Lease, Status, json};
use forebay_catalog::{Served, normalize_as};
use forebay_fieldmanager::Sent;
use forebay_schema::builtin::table;
use serde_json::Value;

use forebay_api::Body;
use forebay_apimachinery::unrecognized;
use forebay_catalog::Target;

/// A value of its kind, and what is to be said about it.
pub struct Incoming {
    pub value: Value,
    pub warnings: Vec<String>,
    /// What it said of who owns its fields.
    pub entries: Sent,
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
    let (value, problems) = decode(target, expected, body)?;
    normalize(target, expected, value, problems, body, validation)
}

/// The tree of `body`, which says that it is of `expected`; and what is wrong with it to a strict reader:
/// members that come twice.
///
/// # Errors
/// As [`read`].
pub(crate) fn decode(
    target: &Target,
    expected: &GroupVersionKind,
    body: &Body,
) -> Result<(Value, Vec<String>), Status> {
    let (served, lease) = (&*target.served, &target.lease);
    let (mut value, duplicates): (Value, Vec<String>) = match body {
        Body::Unreadable(why) => return Err(Status::clone(why)),
        Body::Value(value) => (json::copy(value, lease)?, Vec::new()),
        Body::Json(json) | Body::Yaml { json, .. } => {
            let parsed = json::parse(json, lease).map_err(|error| {
                let why = format!("couldn't get version/kind; json parse error: {error}");
                unrecognized(&expected.kind, &why, json)
            })?;
            let duplicates = match body {
                Body::Yaml { repeated, .. } => repeated.iter().cloned().collect(),
                _ => parsed.duplicate_fields().collect(),
            };
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
        Body::Unreadable(_) => String::new(),
        Body::Value(value) => text(value),
        Body::Json(json) | Body::Yaml { json, .. } => {
            json::parse(json, lease).map(|parsed| text(&parsed.value)).unwrap_or_default()
        }
    }
}

/// Brings `value` into the form of its kind: types checked, unknown fields dropped, defaults of a CRD's
/// schema set.
///
/// - `problems`: what is wrong with the body already, `duplicate field "x"`.
/// - `body`: what the value was read from. Of a built-in kind all that is wrong is told as it stands there.
///
/// # Errors
/// 400 for a value of the wrong type, and for problems when `validation` is strict.
pub fn normalize(
    target: &Target,
    expected: &GroupVersionKind,
    value: Value,
    problems: Vec<String>,
    body: &Body,
    validation: FieldValidation,
) -> Result<Incoming, Status> {
    let text = match body {
        Body::Json(json) if !target.served.is_custom() || expected != &target.served.gvk => Some(&**json),
        _ => None,
    };
    normalized(target, expected, value, problems, text, validation).map_err(|why| {
        Status::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {why}",
            expected.kind, expected.version, expected.kind
        ))
    })
}

/// As [`normalize`], with the bare reason of a refusal.
///
/// - `text`: the JSON that says in which order problems are told; else it is that of their finding.
///
/// # Errors
/// What Go's decoder says, or the problems when `validation` is strict.
pub(crate) fn normalized(
    target: &Target,
    expected: &GroupVersionKind,
    mut value: Value,
    mut problems: Vec<String>,
    text: Option<&[u8]>,
    validation: FieldValidation,
) -> Result<Incoming, String> {
    let entries = Sent::of(&value, target.served.ty().is_none());
    problems.extend(fit(&target.served, expected, &mut value, &target.lease)?);
    if validation == FieldValidation::Ignore || problems.is_empty() {
        return Ok(Incoming { value, warnings: Vec::new(), entries });
    }
    if let Some(text) = text.filter(|_| problems.len() > 1) {
        json::in_order(text, &mut problems);
        problems.truncate(json::DUPLICATES_MAX);
    }
    if validation == FieldValidation::Strict {
        return Err(format!("strict decoding error: {}", problems.join(", ")));
    }
    let warnings = problems.iter().flat_map(|problem| told_of_yaml(problem)).collect();
    Ok(Incoming { value, warnings, entries })
}

/// What is told of a problem to who is only warned: that of each key by itself, where it is one of YAML.
pub(crate) fn told_of_yaml(problem: &str) -> Vec<String> {
    match problem.strip_prefix("yaml: unmarshal errors:\n") {
        None => vec![problem.to_owned()],
        Some(lines) => lines.lines().map(|line| line.trim().to_owned()).collect(),
    }
}

/// What an apply made of an object of `expected`, in the form of its kind. Who applied it is told of nothing.
///
/// # Errors
/// As [`normalized`].
pub(crate) fn applied(
    target: &Target,
    expected: &GroupVersionKind,
    mut value: Value,
) -> Result<Value, String> {
    let served = &target.served;
    match expected == &served.gvk {
        true => served.kind.normalize_applied(&mut value, &target.lease)?,
        false => drop(fit(served, expected, &mut value, &target.lease)?),
    }
    Ok(value)
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

/// The problems of unknown fields, or why the value cannot be of the `expected` kind: the resource's own, or
/// a subresource's.
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
