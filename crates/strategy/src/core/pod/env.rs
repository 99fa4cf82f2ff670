//! Environment variables, and fields of the pod that files and variables can show.
//!
//! In: `env`, `envFrom`, a field or resource reference. Out: causes. Never: a value.
//!
//! Source: kubernetes v1.36.3 `apis/core/{pods,validation}`.

use std::cell::OnceCell;
use std::collections::HashMap;

use forebay_apimachinery::quantity;
use forebay_apimachinery::selector::label_key_faults;

use super::mounts::no_backsteps;
use super::warnings::each_container;
use crate::field::{Causes, Path};
use crate::format;
use crate::names::NameRule;
use crate::value::{Members, child, child_or_empty, objects, text, text_opt};

/// What a reference is used in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Use {
    Variable,
    File,
}

/// A container's `env` and `envFrom`.
pub fn validate(container: &Members, at: &Path<'_>, causes: &mut Causes) {
    let env = at.child("env");
    for (index, variable) in objects(container, "env").enumerate() {
        let at = env.index(index);
        let name = text(variable, "name");
        if name.is_empty() {
            causes.required(&at.child("name"), "");
        } else {
            causes.faults(&at.child("name"), name, format::env_name(name));
        }
        if let Some(source) = child(variable, "valueFrom") {
            value_from(variable, source, &at.child("valueFrom"), causes);
        }
    }
    let from = at.child("envFrom");
    for (index, source) in objects(container, "envFrom").enumerate() {
        env_from(source, &from, &from.index(index), causes);
    }
}

fn value_from(variable: &Members, source: &Members, at: &Path<'_>, causes: &mut Causes) {
    let mut sources = 0;
    for name in ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"] {
        let Some(reference) = child(source, name) else { continue };
        sources += 1;
        let at = at.child(name);
        match name {
            "fieldRef" => field_ref(reference, Use::Variable, &at, causes),
            "resourceFieldRef" => resource_ref(reference, Use::Variable, &at, causes),
            "fileKeyRef" => file_key(reference, &at, causes),
            _ => key_ref(reference, &at, causes),
        }
    }
    if sources == 0 {
        let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        causes.invalid(at, "", detail);
    } else if !text(variable, "value").is_empty() {
        causes.invalid(at, "", "may not be specified when `value` is not empty");
    } else if sources > 1 {
        causes.invalid(at, "", "may not have more than one field specified at a time");
    }
}

fn env_from(source: &Members, list_at: &Path<'_>, at: &Path<'_>, causes: &mut Causes) {
    let prefix = text(source, "prefix");
    if !prefix.is_empty() {
        causes.faults(&at.child("prefix"), prefix, format::env_name(prefix));
    }
    let mut sources = 0;
    for name in ["configMapRef", "secretRef"] {
        let Some(reference) = child(source, name) else { continue };
        sources += 1;
        let at = at.child(name);
        match text(reference, "name") {
            "" => causes.required(&at.child("name"), ""),
            name => causes.faults(&at.child("name"), name, NameRule::Subdomain.generate_faults(name)),
        }
    }
    match sources {
        0 => causes.invalid(list_at, "", "must specify one of: `configMapRef` or `secretRef`"),
        1 => {}
        _ => causes.invalid(list_at, "", "may not have more than one field specified at a time"),
    }
}

fn key_ref(reference: &Members, at: &Path<'_>, causes: &mut Causes) {
    let name = text(reference, "name");
    causes.faults(&at.child("name"), name, format::dns1123_subdomain(name));
    key(text(reference, "key"), at, causes);
}

fn key(key: &str, at: &Path<'_>, causes: &mut Causes) {
    match key {
        "" => causes.required(&at.child("key"), ""),
        key => causes.faults(&at.child("key"), key, format::config_key(key)),
    }
}

fn file_key(reference: &Members, at: &Path<'_>, causes: &mut Causes) {
    for name in ["key", "volumeName", "path"] {
        let (at, value) = (at.child(name), text(reference, name));
        match name {
            _ if value.is_empty() => causes.required(&at, ""),
            "key" => causes.faults(&at, value, format::env_name(value)),
            "volumeName" => causes.faults(&at, value, format::dns1123_label(value)),
            _ => no_backsteps(value, &at, causes),
        }
    }
}

/// Files that variables are read from are in volumes of the pod that begin empty.
pub fn file_volumes(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    // By name: whether it is one. Made once somebody asks.
    let volumes: OnceCell<HashMap<&str, bool>> = OnceCell::new();
    let is_empty_dir =
        || objects(spec, "volumes").map(|of| (text(of, "name"), of.contains_key("emptyDir"))).collect();
    each_container(spec, at, |container, at| {
        let at = at.child("env");
        for (index, variable) in objects(container, "env").enumerate() {
            let Some(file) = child(child_or_empty(variable, "valueFrom"), "fileKeyRef") else { continue };
            let (name, at) = (text(file, "volumeName"), at.index(index));
            let at = at.child("valueFrom");
            let at = at.child("fileKeyRef");
            let at = at.child("volumeName");
            match volumes.get_or_init(is_empty_dir).get(name) {
                None => causes.not_found(&at, name),
                Some(false) => causes.invalid(&at, name, "referenced volume must be of type emptyDir"),
                Some(true) => {}
            }
        }
    });
}

const KNOWN: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const IN_VARIABLES: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const IN_FILES: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// A field of the pod.
pub fn field_ref(reference: &Members, used: Use, at: &Path<'_>, causes: &mut Causes) {
    if text(reference, "apiVersion").is_empty() {
        return causes.required(&at.child("apiVersion"), "");
    }
    let path = text(reference, "fieldPath");
    if path.is_empty() {
        return causes.required(&at.child("fieldPath"), "");
    }
    let refuse = |detail: String, causes: &mut Causes| {
        causes.invalid(&at.child("fieldPath"), path, &format!("error converting fieldPath: {detail}"));
    };
    if text(reference, "apiVersion") != "v1" {
        return refuse(format!("unsupported pod version: {}", text(reference, "apiVersion")), causes);
    }
    if let Some((field, key)) = subscript(path) {
        return match field {
            "metadata.annotations" => {
                causes.faults(at, &key.to_lowercase(), label_key_faults(&key.to_lowercase()))
            }
            "metadata.labels" => causes.faults(at, key, label_key_faults(key)),
            _ => refuse(format!("field label does not support subscript: {path}"), causes),
        };
    }
    let known: &[&str] = if used == Use::Variable { &IN_VARIABLES } else { &IN_FILES };
    if path != "spec.host" && !KNOWN.contains(&path) {
        return refuse(format!("field label not supported: {path}"), causes);
    }
    let path = if path == "spec.host" { "spec.nodeName" } else { path };
    // Few: a constant of two.
    if !known.contains(&path) {
        causes.not_supported(&at.child("fieldPath"), path, known);
    }
}

/// `metadata.labels['app']`, apart.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (field, rest) = path.strip_suffix("']")?.split_once("['")?;
    Some((field, rest))
}

/// A resource of a container.
pub fn resource_ref(reference: &Members, used: Use, at: &Path<'_>, causes: &mut Causes) {
    const RESOURCES: [&str; 6] = [
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
    ];
    let resource = text(reference, "resource");
    let huge = resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-");
    if used == Use::File && text(reference, "containerName").is_empty() {
        causes.required(&at.child("containerName"), "");
    } else if resource.is_empty() {
        causes.required(&at.child("resource"), "");
    } else if !RESOURCES.contains(&resource) && !huge {
        causes.not_supported(&at.child("resource"), resource, &RESOURCES);
    }
    divisor(reference, resource, huge, at, causes);
}

fn divisor(reference: &Members, resource: &str, huge: bool, at: &Path<'_>, causes: &mut Causes) {
    const SIZES: [&str; 13] =
        ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let Some(divisor) = text_opt(reference, "divisor").filter(|divisor| quantity::nanos(divisor) != Ok(0))
    else {
        return;
    };
    let (allowed, of): (&[&str], &str) = match resource.rsplit('.').next() {
        Some("cpu") => (&["1m", "1"], "cpu"),
        Some("memory") => (&SIZES, "memory"),
        Some("ephemeral-storage") => (&SIZES, "local ephemeral storage"),
        _ if huge => (&SIZES, "hugepages"),
        _ => return,
    };
    // Few: a constant of two.
    if !allowed.contains(&divisor) {
        let values = if of == "cpu" { "1m and 1".to_string() } else { SIZES.join(", ") };
        let detail = format!("only divisor's values {values} are supported with the {of} resource");
        causes.invalid(&at.child("divisor"), resource, &detail);
    }
}

/// A file made of fields.
pub fn downward_file(file: &Members, at: &Path<'_>, causes: &mut Causes) {
    match (child(file, "fieldRef"), child(file, "resourceFieldRef")) {
        (Some(field), resource) => {
            field_ref(field, Use::File, &at.child("fieldRef"), causes);
            if resource.is_some() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                causes.invalid(at, "resource", detail);
            }
        }
        (None, Some(resource)) => resource_ref(resource, Use::File, &at.child("resourceFieldRef"), causes),
        (None, None) => causes.required(at, "one of fieldRef and resourceFieldRef is required"),
    }
}
