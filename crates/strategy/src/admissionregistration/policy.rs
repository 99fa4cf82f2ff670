//! ValidatingAdmissionPolicies and MutatingAdmissionPolicies.
//!
//! In: a policy. Out: defaults, causes. Never: evaluates its expressions.

use forebay_apimachinery::Seen;
use forebay_crd::{JsonPath, JsonPathError};
use forebay_policy::Returns;

use super::expressions::Expressions;
use super::matching::{
    FAILURE_POLICIES, REINVOCATION_POLICIES, conditions, default_resources, is_blank, mutating_operations,
    one_of, required_one_of, resources,
};
use crate::conditions;
use crate::field::{Causes, Path};
use crate::format;
use crate::internal;
use crate::meta::label_key;
use crate::value::{
    Members, child, child_made, child_mut, child_or_empty, default, list, objects, same_member, text,
    text_opt,
};

const SPEC: Path<'static> = Path::root("spec");
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const PATCH_TYPES: [&str; 2] = ["ApplyConfiguration", "JSONPatch"];
const AUDIT_ANNOTATIONS_MAX: usize = 20;
const AUDIT_EXPRESSION_BYTES_MAX: usize = 5 << 10;
/// Words that name no variable.
const CEL_RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

pub fn defaults(policy: &mut Members) {
    let spec = child_made(policy, "spec");
    default(spec, "failurePolicy", "Fail");
    if let Some(constraints) = child_mut(spec, "matchConstraints") {
        default_resources(constraints);
    }
}

pub fn validating(policy: &Members, old: Option<&Members>, causes: &mut Causes) {
    let spec = child_or_empty(policy, "spec");
    let mut expressions = Expressions::of_policy(spec, old.map(|old| child_or_empty(old, "spec")), false);
    begin(spec, causes);
    if !keeps_conditions(spec, old) {
        conditions(spec, &SPEC, &mut expressions, causes);
    }
    variables(spec, &mut expressions, causes);
    if list(spec, "validations").is_empty() && list(spec, "auditAnnotations").is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        causes.required(&SPEC.child("validations"), detail);
        return causes.required(&SPEC.child("auditAnnotations"), detail);
    }
    for (index, of) in objects(spec, "validations").enumerate() {
        validation(of, &SPEC.child("validations").index(index), &mut expressions, causes);
    }
    audit_annotations(spec, text(child_or_empty(policy, "metadata"), "name"), &mut expressions, causes);
}

pub fn mutating(policy: &Members, old: Option<&Members>, causes: &mut Causes) {
    let spec = child_or_empty(policy, "spec");
    let mut expressions = Expressions::of_policy(spec, old.map(|old| child_or_empty(old, "spec")), true);
    begin(spec, causes);
    if let Some(constraints) = child(spec, "matchConstraints") {
        mutating_operations(constraints, &SPEC.child("matchConstraints"), causes);
    }
    if !keeps_conditions(spec, old) {
        conditions(spec, &SPEC, &mut expressions, causes);
    }
    variables(spec, &mut expressions, causes);
    if list(spec, "mutations").is_empty() {
        causes.required(&SPEC.child("mutations"), "mutations must contain at least one item");
    }
    for (index, of) in objects(spec, "mutations").enumerate() {
        mutation(of, &SPEC.child("mutations").index(index), &mut expressions, causes);
    }
    match text(spec, "reinvocationPolicy") {
        "" => causes.required(&SPEC.child("reinvocationPolicy"), ""),
        _ => one_of(spec, "reinvocationPolicy", &REINVOCATION_POLICIES, &SPEC, causes),
    }
}

/// What both begin with.
fn begin(spec: &Members, causes: &mut Causes) {
    required_one_of(spec, "failurePolicy", &FAILURE_POLICIES, &SPEC, causes);
    if let Some(kind) = child(spec, "paramKind") {
        param_kind(kind, &SPEC.child("paramKind"), causes);
    }
    let at = SPEC.child("matchConstraints");
    match child(spec, "matchConstraints") {
        None => causes.required(&at, ""),
        Some(constraints) => {
            resources(constraints, &at, causes);
            if list(constraints, "resourceRules").is_empty() {
                causes.required(&at.child("resourceRules"), "");
            }
        }
    }
}

/// Whether the conditions are those that were let through before.
fn keeps_conditions(spec: &Members, old: Option<&Members>) -> bool {
    old.map(|old| child_or_empty(old, "spec"))
        .is_some_and(|old| same_member(spec, old, "paramKind") && same_member(spec, old, "matchConditions"))
}

fn param_kind(param: &Members, at: &Path<'_>, causes: &mut Causes) {
    let (version_at, api_version) = (at.child("apiVersion"), text(param, "apiVersion"));
    match api_version {
        "" => causes.required(&version_at, ""),
        _ if api_version.matches('/').count() > 1 => {
            let detail = format!("unexpected GroupVersion string: {api_version}");
            causes.invalid(&version_at, api_version, &detail);
        }
        _ => {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let faults = format::dns1123_subdomain(group);
            if !group.is_empty() && !faults.is_empty() {
                causes.invalid(&version_at, group, &faults.join(","));
            }
            let faults = format::dns1035_label(version);
            if version.is_empty() {
                causes.invalid(&version_at, api_version, "version must be specified");
            } else if !faults.is_empty() {
                causes.invalid(&version_at, version, &faults.join(","));
            }
        }
    }
    let kind = text(param, "kind");
    let faults = format::dns1035_label(&kind.to_lowercase());
    match kind {
        "" => causes.required(&at.child("kind"), ""),
        _ if faults.is_empty() => {}
        _ => {
            let detail = format!("may have mixed case, but should otherwise match: {}", faults.join(","));
            causes.invalid(&at.child("kind"), kind, &detail);
        }
    }
}

fn variables(spec: &Members, expressions: &mut Expressions<'_>, causes: &mut Causes) {
    for (index, variable) in objects(spec, "variables").enumerate() {
        let at = SPEC.child("variables");
        let at = at.index(index);
        let name = text(variable, "name");
        if is_blank(variable, "name") {
            causes.required(&at.child("name"), "name is not specified");
        } else if !is_identifier(name) {
            causes.invalid(&at.child("name"), name, "must be a valid CEL identifier");
        }
        if is_blank(variable, "expression") {
            causes.required(&at.child("expression"), "expression is not specified");
        } else {
            expressions.variable(name, text(variable, "expression"), &at.child("expression"), causes);
        }
    }
}

fn is_identifier(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && CEL_RESERVED.binary_search(&name).is_err()
}

fn validation(validation: &Members, at: &Path<'_>, expressions: &mut Expressions<'_>, causes: &mut Causes) {
    if is_blank(validation, "expression") {
        causes.required(&at.child("expression"), "expression is not specified");
    } else {
        expressions.validation(text(validation, "expression"), &at.child("expression"), causes);
    }
    let blank = |name| !text(validation, name).is_empty() && is_blank(validation, name);
    let message = text(validation, "message");
    if blank("messageExpression") {
        let bad = text(validation, "messageExpression");
        causes.invalid(&at.child("messageExpression"), bad, "must be non-empty if specified");
    } else if !is_blank(validation, "messageExpression") {
        let text = text(validation, "messageExpression");
        expressions.message(text, &at.child("messageExpression"), causes);
    }
    if blank("message") {
        causes.invalid(&at.child("message"), message, "must be non-empty if specified");
    } else if message.trim().contains(['\n', '\r']) {
        causes.invalid(&at.child("message"), message, "must not contain line breaks");
    }
    one_of(validation, "reason", &REASONS, at, causes);
}

fn audit_annotations(spec: &Members, policy: &str, expressions: &mut Expressions<'_>, causes: &mut Causes) {
    let at = SPEC.child("auditAnnotations");
    if list(spec, "auditAnnotations").len() > AUDIT_ANNOTATIONS_MAX {
        let shown = internal::list_shown("admission.AuditAnnotation", spec, "auditAnnotations");
        let detail = format!("must not have more than {AUDIT_ANNOTATIONS_MAX} auditAnnotations");
        causes.invalid(&at, shown, &detail);
    }
    let mut known = Seen::default();
    for (index, annotation) in objects(spec, "auditAnnotations").enumerate() {
        let at = at.index(index);
        let key = text(annotation, "key");
        match policy {
            "" => causes.invalid(&at.child("key"), key, "requires metadata.name be non-empty"),
            _ => label_key(&format!("{policy}/{key}"), &at.child("key"), causes),
        }
        if is_blank(annotation, "valueExpression") {
            causes.required(&at.child("valueExpression"), "valueExpression is not specified");
        } else if text(annotation, "valueExpression").trim().len() > AUDIT_EXPRESSION_BYTES_MAX {
            let detail = format!("must not exceed {AUDIT_EXPRESSION_BYTES_MAX} bytes in length");
            causes.required(&at.child("valueExpression"), &detail);
        } else {
            let text = text(annotation, "valueExpression");
            expressions.annotation(text, &at.child("valueExpression"), causes);
        }
        if known.again(key) {
            causes.duplicate(&at.child("key"), key);
        }
    }
}

/// A mutation says in the member of its type how it is made, and nothing in the other.
fn mutation(mutation: &Members, at: &Path<'_>, expressions: &mut Expressions<'_>, causes: &mut Causes) {
    let (own, other) = match text(mutation, "patchType") {
        "JSONPatch" => ("jsonPatch", "applyConfiguration"),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
        "" => return causes.required(&at.child("patchType"), ""),
        unknown => return causes.not_supported(&at.child("patchType"), unknown, &PATCH_TYPES),
    };
    let patch_type = text(mutation, "patchType");
    match child(mutation, own) {
        None => {
            let detail = format!("must be specified when patchType is {patch_type}");
            causes.required(&at.child(own), &detail);
        }
        Some(patch) if is_blank(patch, "expression") => {
            causes.required(&at.child(own).child("expression"), "");
        }
        Some(patch) => {
            let returns = if own == "jsonPatch" { Returns::Patches } else { Returns::Object };
            let at = at.child(own);
            expressions.mutation(text(patch, "expression"), returns, &at.child("expression"), causes);
        }
    }
    if mutation.contains_key(other) {
        let detail = format!("must not be specified when patchType is {patch_type}");
        causes.invalid(&at.child(other), format!("{{{other}}}").as_str(), &detail);
    }
}

/// What the type checker of a ValidatingAdmissionPolicy has found.
pub fn status(policy: &Members, causes: &mut Causes) {
    let (status, at) = (child_or_empty(policy, "status"), Path::root("status"));
    let checking = at.child("typeChecking");
    for (index, warning) in objects(child_or_empty(status, "typeChecking"), "expressionWarnings").enumerate()
    {
        let at = checking.child("expressionWarnings");
        let at = at.index(index);
        if text_opt(warning, "warning").unwrap_or("").is_empty() {
            causes.required(&at.child("warning"), "");
        }
        let path = text_opt(warning, "fieldRef").unwrap_or("").trim();
        if path.is_empty() {
            causes.required(&at.child("fieldRef"), "");
        } else if let Err(why) = field_ref(path) {
            causes.invalid(&at.child("fieldRef"), path, &format!("invalid JSONPath: {why}"));
        }
    }
    conditions::validate(status, &at.child("conditions"), causes);
}

/// Reads where in the policy a warning is about: a path that may do without the point that it begins with.
fn field_ref(path: &str) -> Result<JsonPath, JsonPathError> {
    let path = path.strip_prefix(['$', '@']).unwrap_or(path);
    if path.is_empty() || path.starts_with(['.', '[']) {
        return JsonPath::parse(path);
    }
    JsonPath::parse(&format!(".{path}"))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn reserved_words_are_sorted_for_the_search() {
        assert!(CEL_RESERVED.is_sorted());
        for (name, fine) in [("a", true), ("_1", true), ("1a", false), ("a-b", false), ("in", false)] {
            assert_eq!(is_identifier(name), fine, "{name}");
        }
    }
}
