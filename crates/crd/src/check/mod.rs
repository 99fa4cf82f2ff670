//! Is a CustomResourceDefinition right? All violations, with the paths and in the words of kube-apiserver.
//!
//! In: a defaulted CRD, and for an update the one before. Out: field errors. On an update, rules that a
//! stored CRD already breaks are not held against the new one. Metadata that all kinds have in common is
//! judged elsewhere ([`super::meta_rules`]); here only that the name is made of plural and group. Webhooks
//! are not called here: [`has_webhook_conversion`] says whether a CRD asks for one.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apis/apiextensions/validation`.

pub(super) use conversion::has_bad_ca;

mod conversion;
mod expressions;
pub(super) mod field_path;
mod leniency;
mod names;
mod printed;
mod schema;
mod versions;

use std::collections::HashMap;

use forebay_apimachinery::seen::{Firsts, Seen};
use serde_json::Value;

use self::expressions::Stored;
use self::leniency::Leniency;
use super::default_check;
use super::field::{BadValue, Faults, FieldError, Path};
use super::format;
use super::limits::{DEPTH_MAX, PATTERNS_BYTES_MAX, SELECTABLE_FIELDS_MAX};
use super::pattern;
use super::props::{self, Props};
use super::spec::{self, Spec};
use super::structural;
use super::validations::Compiling;

/// Returns all violations of a new CRD.
pub fn validate_create(crd: &Value) -> Vec<FieldError> {
    if let Some(error) = too_deep(crd) {
        return vec![error];
    }
    let mut errors = names::object_name(crd);
    let spec = Spec::of(crd);
    if let Some(error) = too_many_patterns(&spec) {
        return vec![error];
    }
    errors.extend(validate_spec(&spec, &Leniency::of_create()));
    errors.extend(validate_status(crd, &spec));
    errors.extend(names::approval(crd, None));
    errors.extend(preserve_unknown_fields(&spec, None));
    errors.into_vec()
}

/// Returns all violations of how a webhook is called, be it one of conversion or of admission. CA bundles are
/// not looked at.
///
/// - `at`: where `config` stands in its object.
pub fn webhook_client(config: &Value, at: &str) -> Vec<FieldError> {
    conversion::client(Props::of(config), &Path::root(at)).into_vec()
}

/// Returns all violations of a CRD that takes the place of `old`.
pub fn validate_update(crd: &Value, old: &Value) -> Vec<FieldError> {
    if let Some(error) = too_deep(crd) {
        return vec![error];
    }
    let (spec, old_spec) = (Spec::of(crd), Spec::of(old));
    if let Some(error) = too_many_patterns(&spec) {
        return vec![error];
    }
    let mut leniency = Leniency::of_update(&spec, &old_spec);
    leniency.allow_bad_ca = conversion::allows_bad_ca(old);
    let mut errors = validate_spec(&spec, &leniency);
    errors.extend(immutable(&spec, &old_spec, spec::is_true(old, "Established")));
    errors.extend(validate_status(crd, &spec));
    errors.extend(names::approval(crd, Some(old)));
    errors.extend(preserve_unknown_fields(&spec, Some(&old_spec)));
    errors.into_vec()
}

/// Patterns that take more than there may be, compiled. It is found before anything else is: what is looked
/// at then is bounded.
fn too_many_patterns(spec: &Spec<'_>) -> Option<FieldError> {
    let mut patterns = Vec::new();
    spec.schema_values().for_each(|schema| pattern::each(schema, &mut |pattern| patterns.push(pattern)));
    let detail = format!("its patterns take more than {} MiB together, compiled", PATTERNS_BYTES_MAX >> 20);
    let error = || FieldError::forbidden(&Path::root("spec").child("versions"), detail);
    (!pattern::within_budget(patterns)).then(error)
}

/// Returns all violations of a CRD whose status is written.
pub fn validate_status_update(crd: &Value) -> Vec<FieldError> {
    accepted_names(crd).into_vec()
}

fn accepted_names(crd: &Value) -> Faults {
    let status = Props::of(crd).object("status").unwrap_or(Props::EMPTY);
    let names = status.object("acceptedNames").unwrap_or(Props::EMPTY);
    names::validate(names, &Path::root("status").child("acceptedNames"))
}

/// Whether a CRD asks for conversion between its versions by a webhook, which has to be called by more than
/// this module.
pub fn has_webhook_conversion(crd: &Value) -> bool {
    let spec = Spec::of(crd);
    spec.spec.object("conversion").is_some_and(|conversion| conversion.str("strategy") == "Webhook")
}

/// Returns what a client is told about a CRD that is accepted: formats that are not known, unless `old` has
/// them.
pub fn warnings(crd: &Value, old: Option<&Value>) -> Vec<String> {
    let before: Seen<String> = old.map(unknown_formats).unwrap_or_default().into_iter().collect();
    let new = unknown_formats(crd).into_iter().filter(|name| !before.has(name));
    new.map(|name| format!("unrecognized format {}", forebay_apimachinery::go_format::quote(&name))).collect()
}

fn unknown_formats(crd: &Value) -> Vec<String> {
    let mut formats = Vec::new();
    if props::depth_within(crd, DEPTH_MAX) {
        Spec::of(crd).any_schema(|schema| {
            let name = schema.str("format");
            if !name.is_empty() && !format::is_known(schema.kind(), name) {
                formats.push(name.to_owned());
            }
            false
        });
    }
    formats
}

impl<'a> Leniency<'a> {
    fn of_create() -> Self {
        Leniency {
            require_recognized_review_version: true,
            require_schema: true,
            require_valid_type: true,
            require_structural: true,
            require_pruned_defaults: true,
            require_atomic_set: true,
            require_list_map_keys: true,
            // A CRD that is not established yet may still get its certificates.
            allow_bad_ca: true,
            too_many_selectable: Seen::default(),
            stored: Stored::default(),
        }
    }

    fn of_update(spec: &Spec<'a>, old: &Spec<'a>) -> Self {
        let is_type = |kind: &str| {
            matches!(kind, "" | "array" | "boolean" | "integer" | "number" | "object" | "string")
        };
        let is_structural = |schema: &&Value| {
            let schema = Props::of(schema);
            structural::unreadable(schema).is_none() && structural::violations(&Path::NIL, schema).is_empty()
        };
        let mut stored = Stored::default();
        let (mut valid_types, mut atomic_sets, mut list_keys) = (true, true, true);
        old.any_schema(|schema| {
            valid_types &= is_type(schema.kind());
            atomic_sets &= !schema::has_non_atomic_set(schema);
            list_keys &= !schema::has_bad_list_keys(schema);
            stored.add(schema);
            false
        });
        stored.compare(spec, old);
        Leniency {
            require_recognized_review_version: conversion::has_recognized_version_or_none(old),
            require_schema: old.top.schema().is_some() || old.versions.iter().all(|v| v.schema().is_some()),
            require_valid_type: valid_types,
            require_structural: old.schema_values().all(|schema| is_structural(&schema)),
            require_pruned_defaults: !old
                .schema_values()
                .filter(is_structural)
                .any(default_check::are_unpruned),
            require_atomic_set: atomic_sets,
            require_list_map_keys: list_keys,
            allow_bad_ca: false,
            too_many_selectable: kept_selectable(spec, old),
            stored,
        }
    }
}

fn kept_selectable(spec: &Spec<'_>, old: &Spec<'_>) -> Seen<String> {
    let too_many = |fields: &[Value]| fields.len() > SELECTABLE_FIELDS_MAX;
    let mut kept = Seen::default();
    if too_many(old.top.selectable) && spec.top.selectable == old.top.selectable {
        kept.again(String::new());
    }
    let last_first = old.versions.iter().rev().map(|version| (version.name(), version.selectable));
    let before: Firsts<&str, &[Value]> = last_first.collect();
    for version in &spec.versions {
        let before = before.get(version.name());
        if before.is_some_and(|fields| too_many(fields) && *fields == version.selectable) {
            kept.again(version.name().to_owned());
        }
    }
    kept
}

fn too_deep(crd: &Value) -> Option<FieldError> {
    let detail = format!("must not be nested deeper than {DEPTH_MAX} levels");
    (!props::depth_within(crd, DEPTH_MAX))
        .then(|| FieldError::invalid(&Path::root("spec"), BadValue::Text(""), detail))
}

fn validate_spec(spec: &Spec<'_>, leniency: &Leniency<'_>) -> Faults {
    let path = Path::root("spec");
    let mut errors = names::group_and_scope(spec, &path);
    let preserve = spec.preserve_unknown_fields();
    errors.extend(versions::schemas_present(spec, leniency, &path));
    let has_defaults = spec.any_schema(|schema| schema.default_value().is_some());
    if has_defaults && preserve {
        let at = path.child("preserveUnknownFields");
        let detail = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid(&at, BadValue::Bool(true), detail));
    }
    let leniency = &Leniency {
        require_structural: leniency.require_structural || !preserve || has_defaults || has_extensions(spec),
        too_many_selectable: leniency.too_many_selectable.clone(),
        stored: leniency.stored.clone(),
        ..*leniency
    };
    let compiling = Compiling::new();
    errors.extend(versions::validate(spec, leniency, &compiling, &path));
    errors.extend(names::required(spec.names, &path.child("names")));
    errors.extend(names::validate(spec.names, &path.child("names")));
    errors.extend(versions::validate_top(spec, leniency, &compiling, &path));
    errors.extend(conversion::validate(spec, leniency, &path.child("conversion")));
    errors
}

fn has_extensions(spec: &Spec<'_>) -> bool {
    spec.any_schema(|s| {
        s.embedded_resource()
            || s.preserve_unknown_fields().is_some()
            || s.int_or_string()
            || s.list_map_keys().next().is_some()
            || s.list_type().is_some()
            || !s.rules().is_empty()
    })
}

/// What storage depends on.
fn immutable(spec: &Spec<'_>, old: &Spec<'_>, established: bool) -> Faults {
    let path = Path::root("spec");
    let names = path.child("names");
    let mut errors = Faults::default();
    let mut same = |new: Props<'_>, old: Props<'_>, key: &str, path: &Path<'_>| {
        if new.str(key) != old.str(key) {
            let value = Value::from(new.str(key));
            errors.push(FieldError::invalid(
                &path.child(key),
                BadValue::Encoded(&value),
                "field is immutable",
            ));
        }
    };
    if established {
        same(spec.spec, old.spec, "scope", &path);
        same(spec.names, old.names, "kind", &names);
    }
    same(spec.spec, old.spec, "group", &path);
    same(spec.names, old.names, "plural", &names);
    errors
}

fn validate_status(crd: &Value, spec: &Spec<'_>) -> Faults {
    let mut errors = accepted_names(crd);
    let status = Props::of(crd).object("status").unwrap_or(Props::EMPTY);
    let path = Path::root("status");
    let path = path.child("storedVersions");
    let printed = printed::strings(status, "storedVersions");
    let stored: Vec<&str> = status.strings("storedVersions").collect();
    if stored.is_empty() {
        errors.push(FieldError::invalid(
            &path,
            BadValue::shown(&printed),
            "must have at least one stored version",
        ));
        return errors;
    }
    let known: Seen<&str> = stored.iter().copied().collect();
    for version in spec.versions.iter().filter(|v| v.written.flag("storage") && !known.has(v.name())) {
        if errors.is_full() {
            return errors;
        }
        let detail = format!("must have the storage version {}", version.name());
        errors.push(FieldError::invalid(&path, BadValue::shown(&printed), detail));
    }
    let written: Seen<&str> = spec.versions.iter().map(|version| version.name()).collect();
    // Of equal ones the last is told of.
    let lasts: HashMap<&str, usize> = stored.iter().enumerate().map(|(i, name)| (*name, i)).collect();
    for (i, name) in stored.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        if lasts.get(name) == Some(&i) && !written.has(*name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {name} and removes {name} from \
                 status.storedVersions"
            );
            errors.push(FieldError::invalid(&path.index(i), BadValue::Text(name), detail));
        }
    }
    errors
}

fn preserve_unknown_fields(spec: &Spec<'_>, old: Option<&Spec<'_>>) -> Option<FieldError> {
    let kept = old.is_some_and(Spec::preserve_unknown_fields);
    let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
    (spec.preserve_unknown_fields() && !kept).then(|| {
        FieldError::invalid(&Path::root("spec").child("preserveUnknownFields"), BadValue::Bool(true), detail)
    })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod upstream_tests;
