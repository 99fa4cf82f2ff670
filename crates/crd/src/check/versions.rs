//! Versions of a CRD: their names, what they serve, and the parts that may stand in each or at the top.

use forebay_apimachinery::Seen;
use serde_json::Value;

use super::field_path::{self, Brackets};
use super::leniency::Leniency;
use super::printed;
use super::schema::{self, Around};
use crate::field::{BadValue, Faults, FieldError, Path};
use crate::limits::{DEPRECATION_WARNING_BYTES_MAX, SELECTABLE_FIELDS_MAX};
use crate::names;
use crate::props::Props;
use crate::spec::{Spec, Version};
use crate::structural;
use crate::validations::Compiling;
use forebay_apimachinery::go_format as go;

/// Every version (of an older CRD: every served one) has a schema.
pub(super) fn schemas_present(spec: &Spec<'_>, leniency: &Leniency<'_>, path: &Path<'_>) -> Faults {
    let detail = match (leniency.require_schema, spec.preserve_unknown_fields()) {
        (true, _) => "",
        (false, false) => "because otherwise all fields are pruned",
        (false, true) => return Faults::default(),
    };
    if spec.top.schema().is_some() {
        return Faults::default();
    }
    let versions = path.child("versions");
    let missing = spec.versions.iter().enumerate().filter(|(_, version)| {
        version.schema().is_none() && (leniency.require_schema || version.written.flag("served"))
    });
    missing
        .map(|(i, _)| {
            let version = versions.index(i);
            FieldError::required(&version.child("schema").child("openAPIV3Schema"), detail)
        })
        .collect()
}

pub(super) fn validate(
    spec: &Spec<'_>,
    leniency: &Leniency<'_>,
    compiling: &Compiling,
    path: &Path<'_>,
) -> Faults {
    let mut errors = Faults::default();
    let at = path.child("versions");
    for (i, version) in spec.versions.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let at = at.index(i);
        errors.extend(version_name(version.name(), &at.child("name")));
        errors.extend(deprecation(version.written, &at.child("deprecationWarning")));
        let has_status = spec.has_status(*version);
        let around = Around { has_status, name: version.name(), compiling, leniency };
        errors.extend(schema::validate(*version, around, &at.child("schema")));
        errors.extend(subresources(version.subresources, &at.child("subresources")));
        errors.extend(columns(version.columns, &at.child("additionalPrinterColumns")));
        errors.extend(selectable_in_version(*version, leniency, &at));
    }
    let mut whole = |wrong: bool, detail: &str| {
        if wrong {
            let printed = printed::versions(spec);
            errors.push(FieldError::invalid(&at, BadValue::shown(&printed), detail));
        }
    };
    let names: Vec<&str> = spec.versions.iter().map(|v| v.name()).collect();
    let mut seen = Seen::default();
    // Once: for the whole list.
    let repeated = names.iter().any(|name| seen.again(*name));
    whole(repeated, "must contain unique version names");
    let storage = spec.versions.iter().filter(|v| v.written.flag("storage")).count();
    whole(storage != 1, "must have exactly one version marked as storage version");
    // Kubernetes keeps the first name a second time, and judges it a second time.
    if let Some(first) = names.first().filter(|name| !name.is_empty()) {
        errors.extend(version_name(first, &path.child("version")));
    }
    errors
}

/// The parts that all versions share.
pub(super) fn validate_top(
    spec: &Spec<'_>,
    leniency: &Leniency<'_>,
    compiling: &Compiling,
    path: &Path<'_>,
) -> Faults {
    let top = spec.top;
    // Once: for the whole list.
    let has_status = top.has_status() || spec.versions.iter().any(|v| v.has_status());
    // Once: it is the first.
    let name = spec.versions.first().map_or("", |version| version.name());
    let around = Around { has_status, name, compiling, leniency };
    let mut errors = schema::validate(top, around, &path.child("validation"));
    errors.extend(subresources(top.subresources, &path.child("subresources")));
    errors.extend(columns(top.columns, &path.child("additionalPrinterColumns")));
    if !top.selectable.is_empty() {
        let at = path.child("selectableFields");
        match top.validation {
            None => {
                let detail = "may only be set when validations.schema is included";
                errors.push(FieldError::invalid(&at, BadValue::Text(""), detail));
            }
            Some(_) => {
                errors.extend(unreadable(top, path));
                errors.extend(selectable(top, "", leniency, &at));
            }
        }
    }
    errors
}

fn version_name(name: &str, path: &Path<'_>) -> Option<FieldError> {
    let wrong = names::dns1035_label(name);
    (!wrong.is_empty()).then(|| FieldError::invalid(path, BadValue::Text(name), wrong.join(",")))
}

fn deprecation(version: Props<'_>, path: &Path<'_>) -> Vec<FieldError> {
    let Some(value) = version.get("deprecationWarning") else { return Vec::new() };
    let warning = value.as_str().unwrap_or("");
    let mut wrong = Vec::new();
    if !version.flag("deprecated") {
        wrong.push("can only be set for deprecated versions".to_owned());
    } else {
        if warning.len() > DEPRECATION_WARNING_BYTES_MAX {
            wrong.push(format!("must be <= {DEPRECATION_WARNING_BYTES_MAX} characters long"));
        }
        if warning.is_empty() {
            wrong.push("must not be an empty string".to_owned());
        }
        if let Some((i, _)) = warning.char_indices().find(|(_, c)| !go::is_print(*c)) {
            wrong.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {i}"
            ));
        }
    }
    wrong.into_iter().map(|detail| FieldError::invalid(path, BadValue::Encoded(value), detail)).collect()
}

fn subresources(subresources: Option<Props<'_>>, path: &Path<'_>) -> Faults {
    let mut errors = Faults::default();
    let Some(scale) = subresources.and_then(|s| s.object("scale")) else { return errors };
    for (key, prefix) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let name = format!("scale.{key}");
        let at = path.child(&name);
        let value = scale.str(key);
        if value.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if let Some(error) = simple_path(value, &at) {
            errors.push(error);
        } else if !value.starts_with(prefix) {
            let detail = format!("should be a json path under {}", prefix.trim_end_matches('.'));
            errors.push(FieldError::invalid(&at, BadValue::Text(value), detail));
        }
    }
    let at = path.child("scale.labelSelectorPath");
    let selector = scale.str("labelSelectorPath");
    if let Some(value) = scale.get("labelSelectorPath").filter(|_| !selector.is_empty()) {
        if let Some(error) = simple_path(selector, &at) {
            errors.push(error);
        } else if !selector.starts_with(".spec.") && !selector.starts_with(".status.") {
            let detail = "should be a json path under either .spec or .status";
            errors.push(FieldError::invalid(&at, BadValue::Encoded(value), detail));
        }
    }
    errors
}

fn simple_path(text: &str, path: &Path<'_>) -> Option<FieldError> {
    let detail = "must be a simple json path starting with .";
    (!text.starts_with('.')).then(|| FieldError::invalid(path, BadValue::Text(text), detail))
}

fn columns(columns: &[Value], path: &Path<'_>) -> Faults {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let mut errors = Faults::default();
    for (i, column) in columns.iter().map(Props::of).enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.index(i);
        if column.str("name").is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        let (kind, at) = (column.str("type"), path.child("type"));
        let one_of = format!("must be one of {}", TYPES.join(","));
        if kind.is_empty() {
            errors.push(FieldError::required(&at, one_of));
        } else if !TYPES.contains(&kind) {
            errors.push(FieldError::invalid(&at, BadValue::Text(kind), one_of));
        }
        let format = column.str("format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            let detail = format!("must be one of {}", FORMATS.join(","));
            errors.push(FieldError::invalid(&path.child("format"), BadValue::Text(format), detail));
        }
        let at = path.child("JSONPath");
        match column.str("jsonPath") {
            "" => errors.push(FieldError::required(&at, "")),
            text => errors.extend(simple_path(text, &at)),
        }
    }
    errors
}

fn selectable_in_version(version: Version<'_>, leniency: &Leniency<'_>, path: &Path<'_>) -> Faults {
    if version.selectable.is_empty() {
        return Faults::default();
    }
    let at = path.child("selectableFields");
    if version.schema().is_none() {
        // The words are Kubernetes': it means that the schema is missing, or stands at the top.
        let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
        return Faults::from_iter([FieldError::invalid(&at, BadValue::Text(""), detail)]);
    }
    let mut errors: Faults = unreadable(version, path).into_iter().collect();
    errors.extend(selectable(version, version.name(), leniency, &at));
    errors
}

fn unreadable(version: Version<'_>, path: &Path<'_>) -> Option<FieldError> {
    let reason = structural::unreadable(version.schema()?)?;
    Some(FieldError::invalid(&path.child("schema.openAPIV3Schema"), BadValue::Text(""), reason))
}

fn selectable(version: Version<'_>, name: &str, leniency: &Leniency<'_>, path: &Path<'_>) -> Faults {
    let schema = version.schema().unwrap_or(Props::EMPTY);
    let (mut errors, mut seen) = (Faults::default(), Seen::default());
    for (i, field) in version.selectable.iter().map(Props::of).enumerate() {
        if errors.is_full() {
            return errors;
        }
        let at = path.index(i);
        let at = at.child("jsonPath");
        let text = field.str("jsonPath");
        if text.is_empty() {
            errors.push(FieldError::required(&at, ""));
            continue;
        }
        let found = match field_path::follow(text, schema, Brackets::Refused) {
            Ok(found) => found,
            Err(reason) => {
                let detail = format!("is an invalid path: {reason}");
                errors.push(FieldError::invalid(&at, BadValue::Text(text), detail));
                continue;
            }
        };
        let mut invalid = |detail: &str| errors.push(FieldError::invalid(&at, BadValue::Text(text), detail));
        if found.root == "metadata" {
            invalid("must not point to fields in metadata");
        }
        if !matches!(found.schema.map_or("", Props::kind), "string" | "boolean" | "integer") {
            invalid(
                "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                 formats are allowed.",
            );
        }
        if seen.again(found.path) {
            errors.push(FieldError::duplicate(&at, BadValue::Text(text)));
        }
    }
    let kept = leniency.too_many_selectable.has(name);
    if seen.len() > SELECTABLE_FIELDS_MAX && !kept {
        errors.push(FieldError::too_many(path, seen.len(), SELECTABLE_FIELDS_MAX as i64));
    }
    errors
}
