//! A step as the request that one server gets.
//!
//! In: a step, the object as that server showed it last. Out: a [`Request`]. Never: a difference between the
//! requests of two servers whose objects are alike but for what each chose.

use http::Method;
use serde_json::{Value, json};

use super::kinds::WrittenKind;
use super::path;
use super::step::{Action, ScaleVerb, SentManagers, SentVersion, Step, Wrong};
use crate::pair::Request;

const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";

/// Asks for the object `name` in the version of that number.
pub(super) fn get(kind: &WrittenKind, version: usize, name: &str) -> Request {
    Request::new(Method::GET, format!("{}/{name}", kind.collection(version)))
}

/// Deletes the object `name` at once.
pub(super) fn delete(kind: &WrittenKind, name: &str) -> Request {
    let query = "gracePeriodSeconds=0&propagationPolicy=Background";
    Request::new(Method::DELETE, format!("{}/{name}?{query}", kind.collection(0)))
}

/// Takes every finalizer off the object `name`.
pub(super) fn release(kind: &WrittenKind, name: &str) -> Request {
    let mut request = Request::new(Method::PATCH, format!("{}/{name}", kind.collection(0)));
    request.content_type = "application/merge-patch+json";
    request.body = json!({ "metadata": { "finalizers": null } }).to_string().into_bytes();
    request
}

/// `step` for the object `name`.
///
/// - `last`: the object in the step's version, unless it is gone.
pub(super) fn of_step(kind: &WrittenKind, step: &Step, name: &str, last: Option<&Value>) -> Request {
    let collection = kind.collection(step.version);
    let object = format!("{collection}/{name}{}", if step.status { "/status" } else { "" });
    let current = last.cloned().unwrap_or_else(|| kind.named(&kind.base, step.version, name));
    let (method, path, content_type, body) = match step.action {
        Action::Create => {
            let mut body = edited(kind, step, kind.named(&kind.base, step.version, name));
            add_managers(step.managers, &mut body, &json!([]));
            (Method::POST, collection, JSON, body)
        }
        Action::Put(version) => {
            let mut body = edited(kind, step, current.clone());
            match version {
                SentVersion::Current => {}
                SentVersion::Stale => body["metadata"]["resourceVersion"] = "1".into(),
                SentVersion::None => {
                    if let Some(metadata) = body["metadata"].as_object_mut() {
                        metadata.remove("resourceVersion");
                    }
                }
            }
            add_managers(step.managers, &mut body, &current["metadata"]["managedFields"]);
            (Method::PUT, object, JSON, body)
        }
        Action::MergePatch => {
            let mut patch = json!({});
            let mut to = current.clone();
            for (field, value, removes) in edits(kind, step) {
                edit(&mut to, field, value, removes);
                path::merge_patch(&mut patch, field, &to);
            }
            add_managers(step.managers, &mut patch, &current["metadata"]["managedFields"]);
            (Method::PATCH, object, "application/merge-patch+json", patch)
        }
        Action::StrategicPatch => {
            let mut patch = json!({});
            for (field, value, removes) in edits(kind, step) {
                match removes {
                    true => path::strategic_removal(&mut patch, field, value),
                    false => path::set(&mut patch, field, value),
                }
            }
            add_managers(step.managers, &mut patch, &current["metadata"]["managedFields"]);
            (Method::PATCH, object, "application/strategic-merge-patch+json", patch)
        }
        Action::JsonPatch => {
            (Method::PATCH, object, "application/json-patch+json", json_patch(kind, step, &current))
        }
        Action::Apply { with_base, .. } => {
            let none = json!({});
            let base = if with_base { &kind.base } else { &none };
            let body = edited(kind, step, kind.named(base, step.version, name));
            (Method::PATCH, object, APPLY, body)
        }
        Action::Scale(verb, replicas) => {
            let metadata = json!({ "name": name, "namespace": kind.namespace() });
            let spec = json!({ "replicas": replicas });
            let scale = json!({ "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": spec });
            let path = format!("{collection}/{name}/scale");
            match verb {
                ScaleVerb::Put => (Method::PUT, path, JSON, scale),
                ScaleVerb::Apply { .. } => (Method::PATCH, path, APPLY, scale),
                ScaleVerb::Merge => {
                    (Method::PATCH, path, "application/merge-patch+json", json!({ "spec": spec }))
                }
            }
        }
        Action::Delete { .. } => (Method::DELETE, object, JSON, Value::Null),
    };
    let mut request = Request::new(method, path);
    request.content_type = content_type;
    request.agent = step.agent.clone();
    if !body.is_null() {
        request.body = body.to_string().into_bytes();
    }
    if let Action::Apply { wrong: Some(wrong), .. } = step.action {
        spoil(&mut request, body, wrong, kind);
    }
    request.path = format!("{}?{}", request.path, query(step));
    request
}

fn query(step: &Step) -> String {
    let mut query = Vec::new();
    if let Some(manager) = &step.manager {
        query.push(format!("fieldManager={}", manager.replace('\u{7}', "%07")));
    }
    if let Action::Apply { force: true, .. } | Action::Scale(ScaleVerb::Apply { force: true }, _) =
        step.action
    {
        query.push("force=true".to_owned());
    }
    if step.dry_run {
        query.push("dryRun=All".to_owned());
    }
    if let Some(validation) = step.validation {
        query.push(format!("fieldValidation={validation}"));
    }
    if let Action::Delete { background } = step.action {
        query.push("gracePeriodSeconds=0".to_owned());
        if background {
            query.push("propagationPolicy=Background".to_owned());
        }
    }
    query.join("&")
}

fn edits<'a>(
    kind: &'a WrittenKind,
    step: &'a Step,
) -> impl Iterator<Item = (&'a [path::Part], &'a Value, bool)> {
    step.edits.iter().map(|edit| {
        let field = &kind.fields[edit.field];
        (&field.path[..], &field.values[edit.value], edit.removes)
    })
}

fn edit(object: &mut Value, field: &[path::Part], value: &Value, removes: bool) {
    match removes {
        true => path::remove(object, field, value),
        false => path::set(object, field, value),
    }
}

fn edited(kind: &WrittenKind, step: &Step, mut object: Value) -> Value {
    for (field, value, removes) in edits(kind, step) {
        edit(&mut object, field, value, removes);
    }
    object
}

fn json_patch(kind: &WrittenKind, step: &Step, current: &Value) -> Value {
    let (mut operations, mut from) = (Vec::new(), current.clone());
    for (field, value, removes) in edits(kind, step) {
        let mut to = from.clone();
        edit(&mut to, field, value, removes);
        operations.push(path::json_operation(&from, &to, field, value));
        from = to;
    }
    if let Some(entries) = sent_managers(step.managers, &current["metadata"]["managedFields"]) {
        operations.push(json!({ "op": "add", "path": "/metadata/managedFields", "value": entries }));
    }
    operations.into()
}

fn add_managers(sent: SentManagers, body: &mut Value, read: &Value) {
    if let Some(entries) = sent_managers(sent, read) {
        body["metadata"]["managedFields"] = entries;
    }
}

/// The managedFields that are sent, if others than were read.
fn sent_managers(sent: SentManagers, read: &Value) -> Option<Value> {
    let own = |fields: Value| {
        json!([{
            "manager": "forged", "operation": "Update", "apiVersion": "v1", "time": "2020-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": fields
        }])
    };
    Some(match sent {
        SentManagers::AsRead => return None,
        SentManagers::Emptied => json!([]),
        SentManagers::EmptyEntry => json!([{}]),
        SentManagers::LeftOut => Value::Null,
        SentManagers::Broken => own(json!({ "bad": {} })),
        SentManagers::Forged => match read.as_array().filter(|entries| !entries.is_empty()) {
            None => own(json!({ "f:metadata": { "f:labels": { "f:x": {} } } })),
            Some(entries) => {
                // Their order is a matter of seconds.
                let owner = |entry: &Value| {
                    ["operation", "manager", "apiVersion", "subresource"].map(|name| entry[name].to_string())
                };
                let mut entries = entries.clone();
                if let Some(first) = entries.iter_mut().min_by_key(|entry| owner(entry)) {
                    first["manager"] = "forged".into();
                }
                entries.into()
            }
        },
    })
}

fn spoil(request: &mut Request, mut body: Value, wrong: Wrong, kind: &WrittenKind) {
    let metadata = &mut body["metadata"];
    match wrong {
        Wrong::ManagerMissing | Wrong::ManagerLong | Wrong::ManagerUnprintable => {}
        Wrong::ManagersGiven => {
            metadata["managedFields"] = sent_managers(SentManagers::Forged, &Value::Null).unwrap_or_default();
        }
        Wrong::VersionStale => metadata["resourceVersion"] = "1".into(),
        Wrong::UidOther => metadata["uid"] = "44444444-1111-1111-8111-111111111111".into(),
        Wrong::NameOther => metadata["name"] = "other".into(),
        Wrong::NameMissing => drop(metadata.as_object_mut().and_then(|members| members.remove("name"))),
        Wrong::GenerateName => {
            metadata["generateName"] = "g-".into();
            drop(metadata.as_object_mut().and_then(|members| members.remove("name")));
        }
        Wrong::NamespaceOther => metadata["namespace"] = "other".into(),
        Wrong::KindOther => body["kind"] = "Other".into(),
        Wrong::KindMissing => drop(body.as_object_mut().and_then(|members| members.remove("kind"))),
        Wrong::VersionOther => body["apiVersion"] = "other/v1".into(),
        Wrong::VersionMissing => drop(body.as_object_mut().and_then(|members| members.remove("apiVersion"))),
        Wrong::MemberUnknown => {
            body["unknown"] = json!({ "a": 1 });
            body["spec"]["unknown"] = 1.into();
        }
        Wrong::TypeOther => body["spec"] = "text".into(),
        Wrong::List => body = json!([body]),
        Wrong::Null => body = Value::Null,
        Wrong::MetadataNull => body["metadata"] = Value::Null,
        Wrong::TextBroken | Wrong::MemberTwice => {}
        Wrong::Cbor => request.content_type = "application/apply-patch+cbor",
        Wrong::Json => request.content_type = "application/apply-patch+json",
    }
    let text = body.to_string();
    request.body = match wrong {
        Wrong::TextBroken => format!("a: [{text}").into_bytes(),
        Wrong::MemberTwice => text.replacen('{', &format!("{{\"kind\":\"{}\",", kind.kind), 1).into_bytes(),
        _ => text.into_bytes(),
    };
}
