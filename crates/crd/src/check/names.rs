//! Names of a CRD: its own, the group's, and those of the resource.

use serde_json::Value;

use crate::approval::{APPROVAL_ANNOTATION, Approval};
use crate::field::{BadValue, Faults, FieldError, Path};
use crate::names;
use crate::props::Props;
use crate::spec::Spec;

/// The object's name is a subdomain, made of plural and group; so is what a name may begin with, which none
/// that is made from it can be.
pub(super) fn object_name(crd: &Value) -> Faults {
    let metadata = Props::of(crd).object("metadata").unwrap_or(Props::EMPTY);
    let (spec, path) = (Spec::of(crd), Path::root("metadata"));
    let mut faults = Faults::default();
    for member in ["generateName", "name"] {
        let name = metadata.str(member);
        if name.is_empty() {
            continue;
        }
        let mut wrong = match member {
            "name" => names::dns1123_subdomain(name),
            _ => names::dns1123_subdomain(&names::mask_trailing_dash(name)),
        };
        if name != format!("{}.{}", spec.names.str("plural"), spec.spec.str("group")) {
            wrong.push("must be spec.names.plural+\".\"+spec.group".into());
        }
        for wrong in wrong {
            faults.push(FieldError::invalid(&path.child(member), BadValue::Text(name), wrong));
        }
    }
    faults
}

pub(super) fn group_and_scope(spec: &Spec<'_>, path: &Path<'_>) -> Faults {
    let mut errors = Faults::default();
    let (group, at) = (spec.spec.str("group"), path.child("group"));
    let wrong = names::dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else if !wrong.is_empty() {
        errors.push(FieldError::invalid(&at, BadValue::Text(group), wrong.join(",")));
    } else if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::invalid(&at, BadValue::Text(group), detail));
    }
    let at = path.child("scope");
    match spec.spec.str("scope") {
        "" => errors.push(FieldError::required(&at, "")),
        "Cluster" | "Namespaced" => {}
        scope => {
            errors.push(FieldError::not_supported(&at, BadValue::Text(scope), &["Cluster", "Namespaced"]))
        }
    }
    errors
}

/// Names that a spec must have, and a status need not.
pub(super) fn required(names: Props<'_>, path: &Path<'_>) -> Faults {
    let missing =
        ["plural", "singular", "kind", "listKind"].into_iter().filter(|key| names.str(key).is_empty());
    missing.map(|key| FieldError::required(&path.child(key), "")).collect()
}

pub(super) fn validate(names: Props<'_>, path: &Path<'_>) -> Faults {
    let mut errors = Faults::default();
    let mut check = |name: &str, wrong: Vec<String>, prefix: &str, path: &Path<'_>| {
        if !wrong.is_empty() && !errors.is_full() {
            errors.push(FieldError::invalid(
                path,
                BadValue::Text(name),
                format!("{prefix}{}", wrong.join(",")),
            ));
        }
    };
    let mixed_case = "may have mixed case, but should otherwise match: ";
    for (key, prefix) in [("plural", ""), ("singular", ""), ("kind", mixed_case), ("listKind", mixed_case)] {
        let name = names.str(key);
        if !name.is_empty() {
            let compared = if prefix.is_empty() { name.to_owned() } else { name.to_lowercase() };
            check(name, names::dns1035_label(&compared), prefix, &path.child(key));
        }
    }
    for (i, name) in names.strings("shortNames").enumerate() {
        check(name, names::dns1035_label(name), "", &path.child("shortNames").index(i));
    }
    let kind = names.str("kind");
    if !kind.is_empty() && kind == names.str("listKind") {
        let detail = "kind and listKind may not be the same";
        check(kind, vec![detail.to_owned()], "", &path.child("listKind"));
    }
    for (i, name) in names.strings("categories").enumerate() {
        check(name, names::dns1035_label(name), "", &path.child("categories").index(i));
    }
    errors
}

/// A group of Kubernetes' own needs an approval. One that did not change is not judged again.
pub(super) fn approval(crd: &Value, old: Option<&Value>) -> Option<FieldError> {
    let approval = Approval::of(crd)?;
    if old.is_some_and(|old| Approval::state_of(old) == approval.state) {
        return None;
    }
    let metadata = Path::root("metadata");
    let annotations = metadata.child("annotations");
    let path = annotations.key(APPROVAL_ANNOTATION);
    approval.refusal(&path)
}
