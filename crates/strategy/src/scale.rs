//! The `scale` subresource: a part of an object in the form of `autoscaling/v1` Scale.
//!
//! In: an object, where its replicas are, a Scale from a client. Out: a Scale; the object with other
//! replicas. Never: reads the store; a precondition on the resourceVersion is the caller's, who finds it in
//! the object.
//!
//! Source: kubernetes v1.36.3 `registry/{apps,core/replicationcontroller}/storage`; apiextensions-apiserver v0.36.3
//! `registry/customresource/etcd.go`.

use forebay_apimachinery::Cause;
use forebay_crd::ScalePaths;
use serde_json::{Value, json};

use super::field::{Causes, Path};
use super::kind::GroupKind;
use super::meta::validate_built_in_create;
use super::names::NameRule;
use super::selector;
use super::value;
use super::value::{Members, child_made, child_or_empty, entries, int, set, text};

/// Why there is no Scale, or why one is not applied.
#[derive(Debug, PartialEq, Eq)]
pub enum ScaleError {
    /// A GET of a custom resource that says nothing of its replicas: an internal error, with this message.
    NoReplicas(String),
    /// The object holds something else where a path leads: this message.
    Unreadable(String),
    /// The client's Scale leaves out what must be there: a bad request, with this message.
    Empty(String),
    /// The Scale is invalid: `Scale.autoscaling "name" is invalid`.
    Invalid(Vec<Cause>),
    /// The Scale is of another object: a conflict, with this message.
    OtherUid(String),
}

/// Stands in a Scale that is about to be patched for replicas that the object does not have.
const UNSET: i64 = i32::MIN as i64;

/// The Scale of an object.
///
/// # Errors
/// [`ScaleError::NoReplicas`] and [`ScaleError::Unreadable`], for custom resources; the latter for selectors.
pub fn to_scale(kind: &GroupKind<'_>, object: &Value) -> Result<Value, ScaleError> {
    let Some(object) = object.as_object() else { return Err(ScaleError::Unreadable("not an object".into())) };
    let (replicas, scale) = read(kind, object)?;
    match (replicas, scale_paths(kind)) {
        (None, Some(paths)) => {
            let message = format!("the spec replicas field {:?} does not exist", paths.spec_replicas);
            Err(ScaleError::NoReplicas(message))
        }
        _ => Ok(scale),
    }
}

/// The Scale that an update starts from: to patch, or to be replaced by what was sent.
///
/// # Errors
/// [`ScaleError::Unreadable`].
pub fn scale_to_update(kind: &GroupKind<'_>, object: &Value) -> Result<Value, ScaleError> {
    let Some(object) = object.as_object() else { return Err(ScaleError::Unreadable("not an object".into())) };
    let (replicas, mut scale) = read(kind, object)?;
    if replicas.is_none() && scale_paths(kind).is_some() {
        scale["spec"] = json!({ "replicas": UNSET });
    }
    Ok(scale)
}

/// Gives `object` the replicas, and as a precondition the resourceVersion, of a Scale.
///
/// # Errors
/// [`ScaleError`], the object unchanged.
pub fn apply_scale(kind: &GroupKind<'_>, scale: &Value, object: &mut Value) -> Result<(), ScaleError> {
    let (Some(scale), Some(object)) = (scale.as_object(), object.as_object_mut()) else {
        return Err(ScaleError::Unreadable("not an object".into()));
    };
    let replicas = int(child_or_empty(scale, "spec"), "replicas").unwrap_or(0);
    let meta = child_or_empty(scale, "metadata");
    let version = text(meta, "resourceVersion");
    if let Some(paths) = scale_paths(kind) {
        if replicas == UNSET {
            let message = format!("the spec replicas field {:?} cannot be empty", paths.spec_replicas);
            return Err(ScaleError::Empty(message));
        }
        write_at(object, &paths.spec_replicas, replicas.into()).map_err(ScaleError::Unreadable)?;
        if !version.is_empty() {
            set(child_made(object, "metadata"), "resourceVersion", Some(version.into()));
        }
        return Ok(());
    }
    let causes = validate(scale, replicas);
    if !causes.is_empty() {
        return Err(ScaleError::Invalid(causes));
    }
    let (uid, own) = (text(meta, "uid"), text(child_or_empty(object, "metadata"), "uid"));
    if !uid.is_empty() && uid != own {
        let message = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {own}");
        return Err(ScaleError::OtherUid(message));
    }
    set(child_made(object, "spec"), "replicas", Some(replicas.into()));
    let version = (!version.is_empty()).then(|| version.into());
    set(child_made(object, "metadata"), "resourceVersion", version);
    Ok(())
}

fn validate(scale: &Members, replicas: i64) -> Vec<Cause> {
    let mut causes = Causes::default();
    validate_built_in_create(child_or_empty(scale, "metadata"), true, NameRule::Subdomain, &mut causes);
    if replicas < 0 {
        let at = Path::root("spec");
        causes.invalid(&at.child("replicas"), replicas, "must be greater than or equal to 0");
    }
    causes.into_vec()
}

fn scale_paths<'k>(kind: &GroupKind<'k>) -> Option<&'k ScalePaths> {
    kind.custom.and_then(|custom| custom.scale.as_ref())
}

/// The object's own replicas, and its Scale.
fn read(kind: &GroupKind<'_>, object: &Members) -> Result<(Option<i64>, Value), ScaleError> {
    let (replicas, current, selected) = match scale_paths(kind) {
        Some(paths) => (
            replicas_at(object, &paths.spec_replicas).map_err(ScaleError::Unreadable)?,
            replicas_at(object, &paths.status_replicas).map_err(ScaleError::Unreadable)?,
            match &paths.label_selector {
                Some(path) => selector_at(object, path).map_err(ScaleError::Unreadable)?.to_string(),
                None => String::new(),
            },
        ),
        None => {
            let (spec, status) = (child_or_empty(object, "spec"), child_or_empty(object, "status"));
            (int(spec, "replicas"), int(status, "replicas"), selected(kind, spec)?)
        }
    };
    let mut status = json!({ "replicas": current.unwrap_or(0) });
    if !selected.is_empty() {
        status["selector"] = selected.into();
    }
    let mut meta = Members::new();
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        value::take_over(&mut meta, child_or_empty(object, "metadata"), name);
    }
    let mut scale = json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": {} });
    if let Some(replicas) = replicas.filter(|replicas| *replicas != 0) {
        scale["spec"]["replicas"] = replicas.into();
    }
    scale["status"] = status;
    Ok((replicas, scale))
}

/// The selector of a built-in kind as text.
fn selected(kind: &GroupKind<'_>, spec: &Members) -> Result<String, ScaleError> {
    if kind.kind == "ReplicationController" {
        return Ok(entries(spec, "selector")
            .map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
            .join(","));
    }
    selector::of(spec, "selector")
        .map(|selector| selector::to_text(&selector))
        .map_err(ScaleError::Unreadable)
}

/// The number at a path.
pub fn replicas_at(object: &Members, path: &str) -> Result<Option<i64>, String> {
    match value_at(object, path)? {
        None => Ok(None),
        Some(value) => match value.as_i64() {
            Some(replicas) => Ok(Some(replicas)),
            None => Err(wrong_type(path, value, "int64")),
        },
    }
}

/// The text at a path; empty when there is none.
pub fn selector_at<'o>(object: &'o Members, path: &str) -> Result<&'o str, String> {
    match value_at(object, path)? {
        None => Ok(""),
        Some(value) => value.as_str().ok_or_else(|| wrong_type(path, value, "string")),
    }
}

fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.strip_prefix('.').unwrap_or(path).split('.')
}

fn value_at<'o>(object: &'o Members, path: &str) -> Result<Option<&'o Value>, String> {
    let mut members = object;
    let mut walked: Vec<&str> = Vec::new();
    let mut steps = steps(path).peekable();
    while let Some(step) = steps.next() {
        walked.push(step);
        let Some(value) = members.get(step) else { return Ok(None) };
        if steps.peek().is_none() {
            return Ok(Some(value));
        }
        members = match value {
            Value::Object(members) => members,
            Value::Null => return Ok(None),
            other => return Err(wrong_type(&walked.join("."), other, "map[string]interface{}")),
        };
    }
    Ok(None)
}

fn write_at(object: &mut Members, path: &str, value: Value) -> Result<(), String> {
    let mut members = object;
    let mut walked: Vec<&str> = Vec::new();
    let mut steps = steps(path).peekable();
    while let Some(step) = steps.next() {
        walked.push(step);
        if steps.peek().is_none() {
            members.insert(step.to_string(), value);
            return Ok(());
        }
        if members.get(step).is_some_and(|value| !value.is_object()) {
            return Err(format!(
                "value cannot be set because .{} is not a map[string]interface{{}}",
                walked.join(".")
            ));
        }
        members = child_made(members, step);
    }
    Ok(())
}

/// What upstream says of a value of another type, which it shows as Go does.
fn wrong_type(path: &str, value: &Value, want: &str) -> String {
    let path = path.strip_prefix('.').unwrap_or(path);
    let (shown, is) = match value {
        Value::String(text) => (text.clone(), "string"),
        Value::Bool(bool) => (bool.to_string(), "bool"),
        Value::Number(number) if number.is_i64() => (number.to_string(), "int64"),
        Value::Number(number) => (number.to_string(), "float64"),
        Value::Array(_) => (value.to_string(), "[]interface {}"),
        Value::Object(_) => (value.to_string(), "map[string]interface {}"),
        Value::Null => ("<nil>".into(), "<nil>"),
    };
    format!(".{path} accessor error: {shown} is of the type {is}, expected {want}")
}
