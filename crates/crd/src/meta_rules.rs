//! Values of ObjectMeta: names, labels, annotations, owners, finalizers, managed fields.
//!
//! In: metadata as [`super::object_meta::coerce`] leaves it. Out: all violations. What a name must look like
//! is the caller's rule. Never compares with an earlier object.
//!
//! Source: apimachinery v0.36.3 `pkg/api/validation/objectmeta.go`.

use forebay_apimachinery::FaultBytes;
use serde_json::Value;

use super::field::{BadValue, FieldError, Path};
use super::limits::{ANNOTATIONS_BYTES_MAX, FIELD_MANAGER_CHARS_MAX, SUBRESOURCE_BYTES_MAX};
use super::names;
use forebay_apimachinery::go_format as go;

/// Whether an object has a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespaced {
    Required,
    Forbidden,
}

/// Refusals of a name; the flag says that it is a `generateName`, to which more is added.
pub type NameRule<'a> = &'a dyn Fn(&str, bool) -> Vec<String>;

/// The rule of most kinds: names are DNS subdomains.
pub fn subdomain_name(name: &str, is_prefix: bool) -> Vec<String> {
    match is_prefix {
        true => names::dns1123_subdomain(&names::mask_trailing_dash(name)),
        false => names::dns1123_subdomain(name),
    }
}

/// Returns all violations of the metadata of a new object.
pub fn validate_create(
    metadata: &Value,
    namespaced: Namespaced,
    name_rule: NameRule<'_>,
    path: &Path<'_>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let generate_name = text(metadata, "generateName");
    if !generate_name.is_empty() {
        let at = path.child("generateName");
        let wrong = name_rule(generate_name, true);
        errors.extend(wrong.into_iter().map(|w| FieldError::invalid(&at, BadValue::Text(generate_name), w)));
    }
    let (name, at) = (text(metadata, "name"), path.child("name"));
    match name {
        "" => errors.push(FieldError::required(&at, "name or generateName is required")),
        _ => {
            let wrong = name_rule(name, false);
            errors.extend(wrong.into_iter().map(|w| FieldError::invalid(&at, BadValue::Text(name), w)));
        }
    }
    errors.extend(namespace(metadata, namespaced, &path.child("namespace")));
    let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or(0);
    if generation < 0 {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&path.child("generation"), BadValue::Int(generation), detail));
    }
    errors.extend(labels(metadata, &path.child("labels")));
    errors.extend(annotations(metadata, &path.child("annotations")));
    errors.extend(owners(metadata, &path.child("ownerReferences")));
    errors.extend(finalizers(metadata, &path.child("finalizers")));
    errors.extend(managed_fields(metadata, &path.child("managedFields")));
    errors
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or("")
}

fn list<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    object.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The entries of a map of strings, in order of key.
fn entries<'a>(object: &'a Value, key: &str) -> Vec<(&'a str, &'a str)> {
    let Some(map) = object.get(key).and_then(Value::as_object) else { return Vec::new() };
    let mut entries: Vec<_> =
        map.iter().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or(""))).collect();
    entries.sort_unstable();
    entries
}

fn namespace(metadata: &Value, namespaced: Namespaced, path: &Path<'_>) -> Vec<FieldError> {
    match (namespaced, text(metadata, "namespace")) {
        (Namespaced::Forbidden, "") => Vec::new(),
        (Namespaced::Forbidden, _) => vec![FieldError::forbidden(path, "not allowed on this type")],
        (Namespaced::Required, "") => vec![FieldError::required(path, "")],
        (Namespaced::Required, name) => names::dns1123_label(name)
            .into_iter()
            .map(|wrong| FieldError::invalid(path, BadValue::Text(name), wrong))
            .collect(),
    }
}

/// Returns all violations of the labels in `metadata`.
pub fn labels(metadata: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in entries(metadata, "labels") {
        for wrong in names::label_key(key) {
            errors.push(FieldError::invalid(path, BadValue::Text(key), wrong));
        }
        for wrong in names::label_value(value) {
            errors.push(FieldError::invalid(path, BadValue::Text(value), wrong));
        }
    }
    errors
}

/// Returns all violations of the annotations in `metadata`.
pub fn annotations(metadata: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut bytes = 0;
    for (key, value) in entries(metadata, "annotations") {
        bytes += key.len() + value.len();
        for wrong in names::label_key(&key.to_lowercase()) {
            errors.push(FieldError::invalid(path, BadValue::Text(key), wrong));
        }
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError::too_long(path, ANNOTATIONS_BYTES_MAX as i64));
    }
    errors
}

fn owners(metadata: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let owners = list(metadata, "ownerReferences");
    let mut controller: Option<String> = None;
    // Each shows all of them.
    let mut told = FaultBytes::default();
    for owner in owners {
        errors.extend(owner_errors(owner, path));
        if owner.get("controller").and_then(Value::as_bool) != Some(true) {
            continue;
        }
        let name = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
        match &controller {
            None => controller = Some(name),
            Some(_) if told.is_full() => {}
            Some(first) => {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                );
                let printed: Vec<String> = owners.iter().map(print_owner).collect();
                let printed = format!("[{}]", printed.join(","));
                told.add(printed.len());
                errors.push(FieldError::invalid(path, BadValue::shown(&printed), detail));
            }
        }
    }
    errors
}

fn owner_errors(owner: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let api_version = text(owner, "apiVersion");
    // A version with more than one slash is none at all.
    let (group, version) = match api_version.matches('/').count() {
        0 => ("", api_version),
        1 => api_version.split_once('/').unwrap_or(("", "")),
        _ => ("", ""),
    };
    let mut check = |empty: bool, field: &str, detail: &str| {
        if empty {
            let value = text(owner, field);
            errors.push(FieldError::invalid(&path.child(field), BadValue::Text(value), detail));
        }
    };
    check(version.is_empty(), "apiVersion", "version must not be empty");
    for field in ["kind", "name", "uid"] {
        check(text(owner, field).is_empty(), field, "must not be empty");
    }
    if (group, version, text(owner, "kind")) == ("", "v1", "Event") {
        let printed = print_owner(owner);
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(FieldError::invalid(path, BadValue::shown(&printed), detail));
    }
    errors
}

/// An owner reference with its fields in the order of Kubernetes' type.
fn print_owner(owner: &Value) -> String {
    let mut out = String::from("{");
    for field in ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"] {
        if let Some(value) = owner.get(field) {
            let comma = if out.len() > 1 { "," } else { "" };
            out.push_str(&format!("{comma}\"{field}\":{}", go::to_json(value)));
        }
    }
    out + "}"
}

fn finalizers(metadata: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let finalizers = list(metadata, "finalizers");
    let mut errors = Vec::new();
    for name in finalizers.iter().map(|name| name.as_str().unwrap_or("")) {
        for wrong in names::label_key(name) {
            errors.push(FieldError::invalid(path, BadValue::Text(name), wrong));
        }
    }
    // Once: each of two names.
    let has = |name: &str| finalizers.iter().any(|f| f == name);
    if has("orphan") && has("foregroundDeletion") {
        let all = Value::Array(finalizers.to_vec());
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(path, BadValue::Json(&all), detail));
    }
    errors
}

fn managed_fields(metadata: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (i, entry) in list(metadata, "managedFields").iter().enumerate() {
        let path = path.index(i);
        let operation = text(entry, "operation");
        if !matches!(operation, "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid(&path.child("operation"), BadValue::Text(operation), detail));
        }
        let fields_type = text(entry, "fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            let detail = "must be `FieldsV1`";
            errors.push(FieldError::invalid(&path.child("fieldsType"), BadValue::Text(fields_type), detail));
        }
        errors.extend(field_manager(text(entry, "manager"), &path.child("manager")));
        if text(entry, "subresource").len() > SUBRESOURCE_BYTES_MAX {
            errors.push(FieldError::too_long(&path.child("subresource"), SUBRESOURCE_BYTES_MAX as i64));
        }
    }
    errors
}

fn field_manager(name: &str, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if name.len() > FIELD_MANAGER_CHARS_MAX {
        errors.push(FieldError::too_long(path, FIELD_MANAGER_CHARS_MAX as i64));
    }
    for (i, c) in name.char_indices().filter(|(_, c)| !go::is_print(*c)) {
        let detail = format!("invalid character U+{:04X} (at position {i})", c as u32);
        errors.push(FieldError::invalid(path, BadValue::Text(name), detail));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(metadata: Value, namespaced: Namespaced, want: &[&str]) {
        let found = validate_create(&metadata, namespaced, &subdomain_name, &Path::root("metadata"));
        let found: Vec<String> = found
            .iter()
            .map(|e| e.to_string().split(" (e.g.").next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(found, want, "{metadata}");
    }

    #[test]
    fn names_and_namespaces_are_judged() {
        check(json!({"name": "a.b"}), Namespaced::Forbidden, &[]);
        check(json!({"name": "a", "generateName": "a-"}), Namespaced::Forbidden, &[]);
        check(
            json!({}),
            Namespaced::Forbidden,
            &["metadata.name: Required value: name or generateName is required"],
        );
        check(
            json!({"name": "a", "namespace": "x"}),
            Namespaced::Forbidden,
            &["metadata.namespace: Forbidden: not allowed on this type"],
        );
        check(json!({"name": "a"}), Namespaced::Required, &["metadata.namespace: Required value"]);
        check(
            json!({"name": "a", "namespace": "x.y", "generation": -1}),
            Namespaced::Required,
            &[
                "metadata.namespace: Invalid value: \"x.y\": must not contain dots",
                "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
            ],
        );
    }

    #[test]
    fn labels_annotations_and_finalizers_are_judged() {
        let label = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
        check(
            json!({"name": "a", "labels": {"-": "b c", "ok": ""}, "annotations": {"-": "", "OK": "any thing"},
                "finalizers": ["-", "orphan", "foregroundDeletion"]}),
            Namespaced::Forbidden,
            &[
                &format!("metadata.labels: Invalid value: \"-\": {label}"),
                "metadata.labels: Invalid value: \"b c\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
                &format!("metadata.annotations: Invalid value: \"-\": {label}"),
                &format!("metadata.finalizers: Invalid value: \"-\": {label}"),
                "metadata.finalizers: Invalid value: [\"-\",\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set",
            ],
        );
        let long = "x".repeat(ANNOTATIONS_BYTES_MAX);
        check(
            json!({"name": "a", "annotations": {"a": long}}),
            Namespaced::Forbidden,
            &["metadata.annotations: Too long: may not be more than 262144 bytes"],
        );
    }

    #[test]
    fn owners_and_managers_are_judged() {
        let owner = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "name": "n", "uid": "u", "controller": true});
        check(
            json!({"name": "a", "ownerReferences": [owner("A"), owner("B")]}),
            Namespaced::Forbidden,
            &[
                "metadata.ownerReferences: Invalid value: [{\"apiVersion\":\"v1\",\"kind\":\"A\",\"name\":\"n\",\"uid\":\"u\",\"controller\":true},{\"apiVersion\":\"v1\",\"kind\":\"B\",\"name\":\"n\",\"uid\":\"u\",\"controller\":true}]: Only one reference can have Controller set to true. Found \"true\" in references for A/n and B/n",
            ],
        );
        check(
            json!({"name": "a", "ownerReferences": [{"apiVersion": "a/b/c", "kind": "", "name": "", "uid": ""}]}),
            Namespaced::Forbidden,
            &[
                "metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty",
                "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
                "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
                "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
            ],
        );
        check(
            json!({"name": "a", "managedFields": [{"operation": "X", "fieldsType": "Y", "manager": "a\u{7}"}]}),
            Namespaced::Forbidden,
            &[
                "metadata.managedFields[0].operation: Invalid value: \"X\": must be `Apply` or `Update`",
                "metadata.managedFields[0].fieldsType: Invalid value: \"Y\": must be `FieldsV1`",
                "metadata.managedFields[0].manager: Invalid value: \"a\\a\": invalid character U+0007 (at position 1)",
            ],
        );
    }
}
