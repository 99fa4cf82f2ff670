//! What the status of a CustomResourceDefinition says: accepted names, conditions, stored versions.
//!
//! In: one CRD and the others. Out: its status as the naming, establishing, non-structural-schema and
//! approval controllers of apiextensions-apiserver leave it, in one step. Pure; the caller decides the order:
//! who comes first gets a name, so CRDs are taken in order of creation.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/controller/{status,establish,nonstructuralschema,apiapproval,finalizer}`.

use forebay_apimachinery::Seen;
use serde_json::{Map, Value, json};

use super::approval::{Approval, ApprovalState};
use super::check;
use super::field::{self, BadValue, Faults, FieldError, Path};
use super::props::Props;
use super::spec::{self, Spec};
use super::structural;
use forebay_apimachinery::go_format as go;

/// One condition, before its transition time is known.
struct Condition {
    kind: &'static str,
    status: &'static str,
    reason: String,
    message: String,
}

fn condition(
    kind: &'static str,
    status: &'static str,
    reason: impl Into<String>,
    message: impl Into<String>,
) -> Condition {
    Condition { kind, status, reason: reason.into(), message: message.into() }
}

/// The status of `crd` beside `others`.
///
/// - `others`: the CRDs whose accepted names are taken. A built-in resource of the same group can stand among
///   them in the form of a CRD with `spec.group` and `status.acceptedNames`.
/// - `more`: conditions that the server adds: (type, status, reason, message).
/// - `now`: RFC 3339 in whole seconds, for conditions that change.
pub fn status(
    crd: &Value,
    others: &[&Value],
    more: &[(&'static str, &'static str, &str, &str)],
    now: &str,
) -> Value {
    let mut status = crd["status"].as_object().cloned().unwrap_or_default();
    let mut conditions = Conditions(crd["status"]["conditions"].as_array().cloned().unwrap_or_default());
    let wanted = &crd["spec"]["names"];
    if *wanted != crd["status"]["acceptedNames"] || !conditions.has("NamesAccepted") {
        let (accepted, names_accepted) =
            accept(wanted, &crd["status"]["acceptedNames"], &Used::of(crd, others));
        status.insert("acceptedNames".into(), accepted);
        conditions.set(names_accepted, now);
        if !conditions.has("Established") {
            let reason = "not all names are accepted";
            conditions.set(condition("Established", "False", "NotAccepted", reason), now);
        }
    }
    if conditions.is_true("NamesAccepted") && !conditions.is_true("Established") {
        conditions.set(establish(crd), now);
    }
    match non_structural(crd) {
        Some(found) => conditions.set(found, now),
        None => conditions.remove("NonStructuralSchema"),
    }
    if let Some(approval) = Approval::of(crd) {
        conditions.set(approval_condition(&approval), now);
    }
    for (kind, status, reason, message) in more {
        conditions.set(condition(kind, status, *reason, *message), now);
    }
    status.insert("storedVersions".into(), stored_versions(crd));
    status.insert("conditions".into(), Value::Array(conditions.0));
    Value::Object(status)
}

/// Sets one condition in the status of `crd`.
pub fn set_condition(
    crd: &mut Value,
    kind: &'static str,
    status: &'static str,
    reason: &str,
    message: &str,
    now: &str,
) {
    let Some(object) = crd.as_object_mut() else { return };
    let own = object.entry("status").or_insert_with(|| json!({}));
    if !own.is_object() {
        *own = json!({});
    }
    let mut conditions = Conditions(own["conditions"].as_array().cloned().unwrap_or_default());
    conditions.set(condition(kind, status, reason, message), now);
    own["conditions"] = Value::Array(conditions.0);
}

/// How far the deletion of a CRD is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Termination {
    /// It was asked for; the finalizer holds the CRD.
    Pending,
    /// Its objects are being deleted.
    InProgress,
    /// Its objects could not be read: why.
    NotListed(String),
    /// Its objects could not be deleted: why.
    Failed(String),
    /// Objects are left, or it is not known: why.
    NotConfirmed(String),
    /// It never served objects.
    NeverEstablished,
    /// Built-in objects are where its own would be: none was deleted.
    BuiltIn,
    /// No objects are left.
    Completed,
}

/// Sets the `Terminating` condition of `crd`.
pub fn set_terminating(crd: &mut Value, termination: &Termination, now: &str) {
    let (status, reason, message) = match termination {
        Termination::Pending => (
            "True",
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
                .to_owned(),
        ),
        Termination::InProgress => {
            ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress".to_owned())
        }
        Termination::NotListed(why) => {
            ("True", "InstanceDeletionFailed", format!("could not list instances: {why}"))
        }
        Termination::Failed(why) => {
            ("True", "InstanceDeletionFailed", format!("could not issue all deletes: {why}"))
        }
        Termination::NotConfirmed(why) => (
            "True",
            "InstanceDeletionCheck",
            format!("could not confirm zero CustomResources remaining: {why}"),
        ),
        Termination::NeverEstablished => {
            ("False", "NeverEstablished", "resource was never established".to_owned())
        }
        Termination::BuiltIn => (
            "False",
            "OverlappingBuiltInResource",
            "instances overlap with built-in resources in storage".to_owned(),
        ),
        Termination::Completed => ("False", "InstanceDeletionCompleted", "removed all instances".to_owned()),
    };
    set_condition(crd, "Terminating", status, reason, &message, now);
}

/// Names in use in the group, also those accepted for the CRD itself: it may not take one of them a second
/// time.
struct Used<'a> {
    resources: Seen<&'a str>,
    kinds: Seen<&'a str>,
}

impl<'a> Used<'a> {
    fn of(crd: &'a Value, others: &[&'a Value]) -> Used<'a> {
        let mut used = Used { resources: Seen::default(), kinds: Seen::default() };
        let in_group = others.iter().filter(|other| other["spec"]["group"] == crd["spec"]["group"]);
        for other in in_group.copied().chain([crd]) {
            let names = Props::of(&other["status"]["acceptedNames"]);
            let written = |key: &str| Some(names.str(key)).filter(|name| !name.is_empty());
            used.resources.extend(written("plural").into_iter().chain(written("singular")));
            used.resources.extend(names.strings("shortNames"));
            used.kinds.extend(written("kind").into_iter().chain(written("listKind")));
        }
        used
    }
}

/// The accepted names, and whether they are all that were asked for. A later conflict hides an earlier one's
/// reason.
fn accept(wanted: &Value, before: &Value, used: &Used<'_>) -> (Value, Condition) {
    let (wanted_names, accepted) = (Props::of(wanted), Props::of(before));
    let mut names: Map<String, Value> = before.as_object().cloned().unwrap_or_default();
    let mut verdict = condition("NamesAccepted", "True", "NoConflicts", "no conflicts found");
    let mut judge = |names: &mut Map<String, Value>, key: &str, reason: &str, taken: &Seen<&str>| {
        let name = wanted_names.str(key);
        if name != accepted.str(key) && taken.has(name) {
            let message = format!("{} is already in use", go::quote(name));
            verdict = condition("NamesAccepted", "False", reason, message);
        } else {
            names.insert(key.to_owned(), name.into());
        }
    };
    judge(&mut names, "plural", "PluralConflict", &used.resources);
    judge(&mut names, "singular", "SingularConflict", &used.resources);
    let short_names = short_name_conflicts(wanted_names, accepted, used);
    let short_names_conflict = (!short_names.is_empty()).then(|| field::aggregate_texts(&short_names));
    if let Some(message) = &short_names_conflict {
        verdict = condition("NamesAccepted", "False", "ShortNamesConflict", message.clone());
    }
    let mut judge = |names: &mut Map<String, Value>, key: &str, reason: &str| {
        let name = wanted_names.str(key);
        if name != accepted.str(key) && used.kinds.has(name) {
            let message = format!("{} is already in use", go::quote(name));
            verdict = condition("NamesAccepted", "False", reason, message);
        } else {
            names.insert(key.to_owned(), name.into());
        }
    };
    judge(&mut names, "kind", "KindConflict");
    judge(&mut names, "listKind", "ListKindConflict");
    let mut copy = |key: &str| match wanted_names.filled(key) {
        Some(list) => drop(names.insert(key.to_owned(), list.clone())),
        None => drop(names.remove(key)),
    };
    if short_names_conflict.is_none() {
        copy("shortNames");
    }
    copy("categories");
    (Value::Object(names), verdict)
}

fn short_name_conflicts(wanted: Props<'_>, accepted: Props<'_>, used: &Used<'_>) -> Vec<String> {
    if wanted.filled("shortNames") == accepted.filled("shortNames") {
        return Vec::new();
    }
    let own: Seen<&str> = accepted.strings("shortNames").collect();
    let mut told = Seen::default();
    let conflicts = wanted.strings("shortNames").filter(|name| {
        let conflicts = !own.has(*name) && used.resources.has(*name);
        conflicts && !told.again(*name)
    });
    conflicts.map(|name| format!("{} is already in use", go::quote(name))).collect()
}

fn establish(crd: &Value) -> Condition {
    match check::has_bad_ca(crd) {
        true => {
            condition("Established", "False", "InvalidCABundle", "The conversion webhook CABundle is invalid")
        }
        false => {
            condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
        }
    }
}

/// What is wrong with schemas that were stored before structural schemas were required.
fn non_structural(crd: &Value) -> Option<Condition> {
    let mut errors = Faults::default();
    if Spec::of(crd).preserve_unknown_fields() {
        let path = Path::root("spec");
        errors.push(FieldError::invalid(
            &path.child("preserveUnknownFields"),
            BadValue::Bool(true),
            "must be false",
        ));
    }
    let mut unreadable = None;
    spec::each_written_schema(crd, |version, schema, path| match structural::unreadable(schema) {
        None if unreadable.is_none() => errors.extend(structural::violations(path, schema)),
        None => {}
        Some(reason) => {
            let message =
                format!("failed to check validation schema for version {}: {reason}", version.str("name"));
            unreadable.get_or_insert(message);
        }
    });
    if let Some(message) = unreadable {
        return Some(condition("NonStructuralSchema", "Unknown", "StructuralError", message));
    }
    let errors = errors.into_vec();
    let message = field::aggregate(&errors);
    (!errors.is_empty()).then(|| condition("NonStructuralSchema", "True", "Violations", message))
}

/// Every version that objects may be stored in: the storage version is added, none is taken away.
fn stored_versions(crd: &Value) -> Value {
    let mut stored = crd["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    let spec = Spec::of(crd);
    // Once: for the whole definition.
    if let Some(storage) = spec.versions.iter().find(|version| version.written.flag("storage")) {
        let name = Value::from(storage.name());
        // Once: for the whole definition.
        if !stored.contains(&name) {
            stored.push(name);
        }
    }
    Value::Array(stored)
}

/// The conditions of a status, in the order in which they came.
struct Conditions(Vec<Value>);

impl Conditions {
    /// Puts a condition in its place; the transition time changes only with the status.
    fn set(&mut self, new: Condition, now: &str) {
        let Condition { kind, status, reason, message } = new;
        let old = self.0.iter_mut().find(|condition| condition["type"] == kind);
        let Some(old) = old else {
            return self.0.push(json!({"type": kind, "status": status, "lastTransitionTime": now,
                "reason": reason, "message": message}));
        };
        if old["status"] != status || old["lastTransitionTime"].is_null() {
            old["lastTransitionTime"] = now.into();
        }
        old["status"] = status.into();
        old["reason"] = reason.into();
        old["message"] = message.into();
    }

    fn remove(&mut self, kind: &str) {
        self.0.retain(|condition| condition["type"] != kind);
    }

    fn has(&self, kind: &str) -> bool {
        self.0.iter().any(|condition| condition["type"] == kind)
    }

    fn is_true(&self, kind: &str) -> bool {
        self.0.iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
    }
}

fn approval_condition(approval: &Approval<'_>) -> Condition {
    let (status, reason) = match approval.state {
        ApprovalState::Approved => ("True", "ApprovedAnnotation"),
        ApprovalState::Bypassed => ("False", "UnapprovedAnnotation"),
        ApprovalState::Missing => ("False", "MissingAnnotation"),
        ApprovalState::Invalid => ("False", "InvalidAnnotation"),
    };
    condition("KubernetesAPIApprovalPolicyConformant", status, reason, approval.reason())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::APPROVAL_ANNOTATION;

    fn crd(group: &str, plural: &str, kind: &str, short: &[&str]) -> Value {
        json!({
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind,
                "listKind": format!("{kind}List"), "shortNames": short},
                "versions": [{"name": "v1", "served": true, "storage": true}]},
        })
    }

    fn settled(mut crd: Value, others: &[&Value]) -> Value {
        crd["status"] = status(&crd, others, &[], "2026-01-01T00:00:00Z");
        crd
    }

    fn said(crd: &Value) -> Vec<String> {
        let text = |c: &Value, key: &str| c[key].as_str().unwrap_or("").to_owned();
        let print = |c: &Value| {
            format!("{}={} {}: {}", text(c, "type"), text(c, "status"), text(c, "reason"), text(c, "message"))
        };
        crd["status"]["conditions"].as_array().into_iter().flatten().map(print).collect()
    }

    const ESTABLISHED: &str = "Established=True InitialNamesAccepted: the initial names have been accepted";
    const NOT_ACCEPTED: &str = "Established=False NotAccepted: not all names are accepted";

    #[test]
    fn free_names_are_accepted_and_established() {
        let foo = settled(crd("g.io", "foos", "Foo", &["f"]), &[]);
        assert_eq!(said(&foo), ["NamesAccepted=True NoConflicts: no conflicts found", ESTABLISHED]);
        assert_eq!(
            foo["status"]["acceptedNames"],
            json!({"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList", "shortNames": ["f"]})
        );
        assert_eq!(foo["status"]["storedVersions"], json!(["v1"]));
        assert_eq!(
            status(&foo, &[], &[], "2027-01-01T00:00:00Z"),
            foo["status"],
            "nothing changes the second time"
        );
    }

    #[test]
    fn taken_names_are_refused_with_the_last_conflict() {
        let foo = settled(crd("g.io", "foos", "Foo", &["f", "g"]), &[]);
        let conflict = |plural: &str, kind: &str, list: &str, short: &[&str]| {
            let mut other = crd("g.io", plural, kind, short);
            other["spec"]["names"]["listKind"] = list.into();
            other["spec"]["names"]["singular"] = plural.trim_end_matches('s').into();
            let other = settled(other, &[&foo]);
            assert_eq!(said(&other)[1], NOT_ACCEPTED, "{plural}");
            said(&other)[0].clone()
        };
        let rows = [
            (conflict("f", "Bar", "BarList", &[]), "SingularConflict: \"f\" is already in use"),
            (conflict("gs", "Bar", "BarList", &[]), "SingularConflict: \"g\" is already in use"),
            (conflict("bars", "Bar", "BarList", &["f"]), "ShortNamesConflict: \"f\" is already in use"),
            (
                conflict("bars", "Bar", "BarList", &["g", "x", "f"]),
                "ShortNamesConflict: [\"g\" is already in use, \"f\" is already in use]",
            ),
            (conflict("bars", "Foo", "BarList", &["f"]), "KindConflict: \"Foo\" is already in use"),
            (conflict("bars", "Foo", "FooList", &[]), "ListKindConflict: \"FooList\" is already in use"),
        ];
        for (found, want) in rows {
            assert_eq!(found, format!("NamesAccepted=False {want}"));
        }
        let elsewhere = settled(crd("h.io", "foos", "Foo", &["f"]), &[&foo]);
        assert_eq!(said(&elsewhere)[1], ESTABLISHED);
    }

    #[test]
    fn what_is_established_stays_so_while_new_names_wait() {
        let foo = settled(crd("g.io", "foos", "Foo", &[]), &[]);
        let mut bar = settled(crd("g.io", "bars", "Bar", &["b"]), &[&foo]);
        bar["spec"]["names"]["shortNames"] = json!(["foo", "b"]);
        let bar = settled(bar, &[&foo]);
        assert_eq!(
            said(&bar),
            ["NamesAccepted=False ShortNamesConflict: \"foo\" is already in use", ESTABLISHED]
        );
        assert_eq!(bar["status"]["acceptedNames"]["shortNames"], json!(["b"]));
        let freed = settled(bar, &[]);
        assert_eq!(said(&freed)[0], "NamesAccepted=True NoConflicts: no conflicts found");
        assert_eq!(freed["status"]["acceptedNames"]["shortNames"], json!(["foo", "b"]));
    }

    #[test]
    fn transition_times_change_with_the_status_only() {
        let mut foo = settled(crd("g.io", "foos", "Foo", &[]), &[]);
        set_terminating(&mut foo, &Termination::Pending, "2026-02-01T00:00:00Z");
        set_terminating(&mut foo, &Termination::InProgress, "2026-03-01T00:00:00Z");
        let terminating = &foo["status"]["conditions"][2];
        assert_eq!(terminating["reason"], "InstanceDeletionInProgress");
        assert_eq!(terminating["lastTransitionTime"], "2026-02-01T00:00:00Z");
        set_terminating(&mut foo, &Termination::Completed, "2026-04-01T00:00:00Z");
        assert_eq!(foo["status"]["conditions"][2]["lastTransitionTime"], "2026-04-01T00:00:00Z");
        assert_eq!(said(&foo)[2], "Terminating=False InstanceDeletionCompleted: removed all instances");
    }

    #[test]
    fn schemas_that_are_not_structural_are_reported_until_they_are() {
        let mut foo = crd("g.io", "foos", "Foo", &[]);
        foo["spec"]["preserveUnknownFields"] = true.into();
        foo["spec"]["versions"][0]["schema"] = json!({"openAPIV3Schema": {"properties": {"a": {}}}});
        let mut foo = settled(foo, &[]);
        assert_eq!(
            said(&foo)[2],
            "NonStructuralSchema=True Violations: [spec.preserveUnknownFields: Invalid value: true: must be false, \
             spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified \
             object fields, spec.versions[0].schema.openAPIV3Schema.type: Required value: must not be empty at the root]"
        );
        foo["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["$ref"] = "#/a".into();
        let mut foo = settled(foo, &[]);
        assert_eq!(
            said(&foo)[2],
            "NonStructuralSchema=Unknown StructuralError: failed to check validation schema for version v1: \
             OpenAPIV3Schema '$ref' is not supported"
        );
        foo["spec"]["preserveUnknownFields"] = false.into();
        foo["spec"]["versions"][0]["schema"] = json!({"openAPIV3Schema": {"type": "object"}});
        assert_eq!(said(&settled(foo, &[])).len(), 2);
    }

    #[test]
    fn a_protected_group_says_whether_it_is_approved() {
        let url = "https://github.com/kubernetes/kubernetes/pull/1";
        let rows = [
            (
                "",
                "False MissingAnnotation: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111",
            ),
            (url, "True ApprovedAnnotation: approved in https://github.com/kubernetes/kubernetes/pull/1"),
            ("unapproved, testing", "False UnapprovedAnnotation: not approved: \"unapproved, testing\""),
            (
                "/path",
                "False InvalidAnnotation: protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111",
            ),
        ];
        for (annotation, want) in rows {
            for group in ["x.k8s.io", "kubernetes.io"] {
                let mut crd = crd(group, "foos", "Foo", &[]);
                crd["metadata"]["annotations"] = json!({APPROVAL_ANNOTATION: annotation});
                let said = said(&settled(crd, &[]));
                assert_eq!(said[2], format!("KubernetesAPIApprovalPolicyConformant={want}"));
            }
        }
        assert_eq!(said(&settled(crd("notk8s.io", "foos", "Foo", &[]), &[])).len(), 2);
    }

    #[test]
    fn unreadable_certificates_keep_a_crd_from_being_established() {
        let mut foo = crd("g.io", "foos", "Foo", &[]);
        foo["spec"]["conversion"] =
            json!({"strategy": "Webhook", "webhook": {"clientConfig": {"caBundle": "eA=="}}});
        assert_eq!(
            said(&settled(foo, &[]))[1],
            "Established=False InvalidCABundle: The conversion webhook CABundle is invalid"
        );
    }
}
