//! What the status of a CustomResourceDefinition says: accepted names, conditions, stored versions.
//!
//! In: one CRD and the others. Out: its status as the naming, establishing, non-structural-schema and approval
//! controllers of apiextensions-apiserver leave it, in one step. Pure.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/controller/{status,establish,nonstructuralschema,apiapproval}`.

use serde_json::{Map, Value, json};

/// One condition, before its transition time is known.
struct Condition {
    kind: &'static str,
    status: &'static str,
    reason: String,
    message: String,
}

/// The status of `crd` beside `others`.
///
/// - `now`: RFC 3339 in whole seconds, for conditions that change.
/// - `more`: conditions that the server adds: (type, status, reason, message).
pub fn status(
    crd: &Value,
    others: &[&Value],
    more: &[(&'static str, &'static str, &str, &str)],
    now: &str,
) -> Value {
    let mut status = crd["status"].as_object().cloned().unwrap_or_default();
    let names = &crd["spec"]["names"];
    let used = Used::of(crd, others);
    let (accepted, names_accepted) = accept(names, &crd["status"]["acceptedNames"], &used);
    let is_accepted = names_accepted.status == "True";
    status.insert("acceptedNames".into(), accepted);
    status.insert("storedVersions".into(), stored_versions(crd));
    let mut conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
    set(&mut conditions, names_accepted, now);
    if is_accepted || !has(&conditions, "Established") {
        let established = if is_accepted {
            condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
        } else {
            condition("Established", "False", "NotAccepted", "not all names are accepted")
        };
        // Once established, a CRD stays so: its objects are there.
        if is_accepted || !is_true(&conditions, "Established") {
            set(&mut conditions, established, now);
        }
    }
    match approval(crd) {
        Some(approval) => set(&mut conditions, approval, now),
        None => conditions.retain(|condition| condition["type"] != APPROVAL),
    }
    for (kind, status, reason, message) in more {
        set(&mut conditions, condition(kind, status, *reason, *message), now);
    }
    status.insert("conditions".into(), Value::Array(conditions));
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
    if !crd["status"].is_object() {
        crd["status"] = json!({});
    }
    let mut conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
    set(&mut conditions, condition(kind, status, reason, message), now);
    crd["status"]["conditions"] = Value::Array(conditions);
}

/// Names in use by the other CRDs of the group.
struct Used {
    resources: Vec<String>,
    kinds: Vec<String>,
}

impl Used {
    fn of(crd: &Value, others: &[&Value]) -> Used {
        let mut used = Used { resources: Vec::new(), kinds: Vec::new() };
        for other in others.iter().filter(|other| other["spec"]["group"] == crd["spec"]["group"]) {
            let names = &other["status"]["acceptedNames"];
            let text =
                |member: &str| names[member].as_str().filter(|name| !name.is_empty()).map(String::from);
            used.resources
                .extend(text("plural").into_iter().chain(text("singular")).chain(short_names(names)));
            used.kinds.extend(text("kind").into_iter().chain(text("listKind")));
        }
        used
    }
}

/// The accepted names, and whether they are all that were asked for. A later conflict hides an earlier one's reason,
/// as upstream.
fn accept(wanted: &Value, before: &Value, used: &Used) -> (Value, Condition) {
    let mut accepted: Map<String, Value> = before.as_object().cloned().unwrap_or_default();
    let mut verdict = condition("NamesAccepted", "True", "NoConflicts", "no conflicts found");
    let mut judge = |member: &str, reason: &str, taken: &[String]| {
        let name = wanted[member].as_str().unwrap_or("");
        if name != before[member].as_str().unwrap_or("") && taken.iter().any(|other| other == name) {
            verdict = condition("NamesAccepted", "False", reason, format!("{name:?} is already in use"));
            return;
        }
        if !name.is_empty() {
            accepted.insert(member.into(), json!(name));
        }
    };
    judge("plural", "PluralConflict", &used.resources);
    judge("singular", "SingularConflict", &used.resources);
    judge("kind", "KindConflict", &used.kinds);
    judge("listKind", "ListKindConflict", &used.kinds);
    let had: Vec<String> = short_names(before).collect();
    let taken: Vec<String> = short_names(wanted)
        .filter(|name| !had.contains(name) && used.resources.contains(name))
        .map(|name| format!("{name:?} is already in use"))
        .collect();
    match taken.as_slice() {
        [] => {
            for member in ["shortNames", "categories"] {
                match wanted.get(member).filter(|list| list.as_array().is_some_and(|list| !list.is_empty())) {
                    Some(list) => drop(accepted.insert(member.into(), list.clone())),
                    None => drop(accepted.remove(member)),
                }
            }
        }
        [one] => verdict = condition("NamesAccepted", "False", "ShortNamesConflict", one.clone()),
        many => {
            let message = format!("[{}]", many.join(", "));
            verdict = condition("NamesAccepted", "False", "ShortNamesConflict", message);
        }
    }
    (Value::Object(accepted), verdict)
}

fn short_names(names: &Value) -> impl Iterator<Item = String> + '_ {
    names["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str).map(String::from)
}

/// Every version that objects may be stored in: the storage version is added, none is taken away.
fn stored_versions(crd: &Value) -> Value {
    let mut stored = crd["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    for storage in versions.filter(|version| version["storage"] == true) {
        if !stored.contains(&storage["name"]) {
            stored.push(storage["name"].clone());
        }
    }
    Value::Array(stored)
}

const APPROVAL: &str = "KubernetesAPIApprovalPolicyConformant";
const APPROVAL_ANNOTATION: &str = "api-approved.kubernetes.io";

/// What is to be said of a CRD in a group that belongs to Kubernetes.
fn approval(crd: &Value) -> Option<Condition> {
    let group = crd["spec"]["group"].as_str().unwrap_or("");
    let protected = |suffix: &str| group == suffix || group.ends_with(&format!(".{suffix}"));
    if !protected("k8s.io") && !protected("kubernetes.io") {
        return None;
    }
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let annotation = crd["metadata"]["annotations"][APPROVAL_ANNOTATION].as_str().unwrap_or("");
    let is_url =
        annotation.split_once("://").is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
    Some(match annotation {
        "" => condition(
            APPROVAL,
            "False",
            "MissingAnnotation",
            format!("protected groups must have approval annotation {APPROVAL_ANNOTATION:?}, {see}"),
        ),
        text if text.starts_with("unapproved") => {
            condition(APPROVAL, "False", "UnapprovedAnnotation", format!("not approved: {text:?}"))
        }
        text if is_url => condition(APPROVAL, "True", "ApprovedAnnotation", format!("approved in {text}")),
        _ => condition(
            APPROVAL,
            "False",
            "InvalidAnnotation",
            format!(
                "protected groups must have approval annotation {APPROVAL_ANNOTATION:?} with either a URL or a reason starting with \"unapproved\", {see}"
            ),
        ),
    })
}

fn condition(
    kind: &'static str,
    status: &'static str,
    reason: impl Into<String>,
    message: impl Into<String>,
) -> Condition {
    Condition { kind, status, reason: reason.into(), message: message.into() }
}

/// Puts a condition in its place; the transition time changes only with the status.
fn set(conditions: &mut Vec<Value>, new: Condition, now: &str) {
    let old = conditions.iter_mut().find(|condition| condition["type"] == new.kind);
    let since = match &old {
        Some(old) if old["status"] == new.status => old["lastTransitionTime"].clone(),
        _ => json!(now),
    };
    let mut value = json!({
        "type": new.kind, "status": new.status, "lastTransitionTime": since,
        "reason": new.reason, "message": new.message,
    });
    match old {
        Some(old) => {
            if let Some(generation) = old.get("observedGeneration") {
                value["observedGeneration"] = generation.clone();
            }
            *old = value;
        }
        None => conditions.push(value),
    }
}

fn has(conditions: &[Value], kind: &str) -> bool {
    conditions.iter().any(|condition| condition["type"] == kind)
}

fn is_true(conditions: &[Value], kind: &str) -> bool {
    conditions.iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(group: &str, plural: &str, kind: &str, short: &[&str]) -> Value {
        json!({
            "metadata": { "name": format!("{plural}.{group}") },
            "spec": { "group": group, "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind,
                "listKind": format!("{kind}List"), "shortNames": short },
                "versions": [{ "name": "v1", "served": true, "storage": true }] },
        })
    }

    fn settled(mut crd: Value, others: &[&Value]) -> Value {
        crd["status"] = status(&crd, others, &[], "2026-01-01T00:00:00Z");
        crd
    }

    fn said(crd: &Value) -> Vec<String> {
        let conditions = crd["status"]["conditions"].as_array().expect("conditions");
        conditions
            .iter()
            .map(|c| {
                format!("{}={} {} {}", c["type"], c["status"], c["reason"], c["message"]).replace('"', "")
            })
            .collect()
    }

    #[test]
    fn free_names_are_accepted_and_established() {
        let foo = settled(crd("g.io", "foos", "Foo", &["f"]), &[]);
        assert_eq!(
            said(&foo),
            [
                "NamesAccepted=True NoConflicts no conflicts found",
                "Established=True InitialNamesAccepted the initial names have been accepted"
            ]
        );
        assert_eq!(foo["status"]["acceptedNames"]["shortNames"], json!(["f"]));
        assert_eq!(foo["status"]["storedVersions"], json!(["v1"]));
        assert_eq!(
            status(&foo, &[], &[], "2027-01-01T00:00:00Z"),
            foo["status"],
            "nothing changes the second time"
        );
    }

    #[test]
    fn taken_names_are_not() {
        let foo = settled(crd("g.io", "foos", "Foo", &["f"]), &[]);
        let short = settled(crd("g.io", "bars", "Bar", &["f"]), &[&foo]);
        assert_eq!(
            said(&short),
            [
                "NamesAccepted=False ShortNamesConflict \\f\\ is already in use",
                "Established=False NotAccepted not all names are accepted"
            ]
        );
        let kind = settled(crd("g.io", "others", "Foo", &[]), &[&foo]);
        assert!(said(&kind)[0].contains("ListKindConflict"), "{:?}", said(&kind));
        let elsewhere = settled(crd("h.io", "foos", "Foo", &["f"]), &[&foo]);
        assert!(said(&elsewhere)[0].contains("NoConflicts"));
    }

    #[test]
    fn a_protected_group_needs_approval() {
        let mut crd = crd("x.k8s.io", "foos", "Foo", &[]);
        assert!(
            said(&settled(crd.clone(), &[]))[2]
                .starts_with("KubernetesAPIApprovalPolicyConformant=False MissingAnnotation")
        );
        crd["metadata"]["annotations"] =
            json!({ APPROVAL_ANNOTATION: "https://github.com/kubernetes/kubernetes/pull/1" });
        assert!(said(&settled(crd, &[]))[2].contains("True ApprovedAnnotation"));
    }
}
