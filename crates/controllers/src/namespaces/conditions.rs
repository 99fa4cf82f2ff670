//! The conditions of a namespace that is being deleted.
//!
//! In: what is left of its content. Out: its status, changed where it says something else.

use serde_json::{Value, json};

use super::content::Content;

/// A condition as it is to be.
struct Wanted {
    kind: &'static str,
    reason: &'static str,
    message: String,
    holds: bool,
}

/// Sets the five conditions in `status`; whether one of them is new or another than before.
pub fn update(status: &mut Value, content: &Content, now: &str) -> bool {
    let mut changed = false;
    if !status.is_object() {
        *status = json!({});
    }
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else { return false };
    for wanted in wanted(content) {
        let holds = if wanted.holds { "True" } else { "False" };
        let fresh = json!({
            "type": wanted.kind, "status": holds, "lastTransitionTime": now,
            "reason": wanted.reason, "message": wanted.message,
        });
        match conditions.iter_mut().find(|condition| condition["type"] == wanted.kind) {
            None => conditions.push(fresh),
            Some(old) => {
                let same = |member: &str| old[member] == fresh[member];
                if same("status") && same("reason") && same("message") {
                    continue;
                }
                if !same("status") {
                    old["lastTransitionTime"] = json!(now);
                }
                for member in ["status", "reason", "message"] {
                    old[member] = fresh[member].clone();
                }
            }
        }
        changed = true;
    }
    changed
}

fn wanted(content: &Content) -> [Wanted; 5] {
    let counted = |counts: &std::collections::BTreeMap<String, usize>, word: &str| {
        let mut parts: Vec<String> =
            counts.iter().map(|(name, count)| format!("{name} {word} {count} resource instances")).collect();
        parts.sort();
        parts.join(", ")
    };
    let mut failures = content.failures.clone();
    failures.sort();
    let ok =
        |kind, reason, message: &str| Wanted { kind, reason, message: message.to_string(), holds: false };
    let bad = |kind, reason, message| Wanted { kind, reason, message, holds: true };
    [
        match content.undiscovered.len() {
            0 => ok(
                "NamespaceDeletionDiscoveryFailure",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            count => bad(
                "NamespaceDeletionDiscoveryFailure",
                "DiscoveryFailed",
                format!("Discovery failed for some groups, {count} failing: {}", undiscovered(content)),
            ),
        },
        // The versions were parsed when they were served: this one never fails.
        ok(
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        match failures.len() {
            0 => ok(
                "NamespaceDeletionContentFailure",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            count => bad(
                "NamespaceDeletionContentFailure",
                "ContentDeletionFailed",
                format!("Failed to delete all resource types, {count} remaining: {}", failures.join(", ")),
            ),
        },
        match content.remaining.is_empty() {
            true => ok("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
            false => bad(
                "NamespaceContentRemaining",
                "SomeResourcesRemain",
                format!("Some resources are remaining: {}", counted(&content.remaining, "has")),
            ),
        },
        match content.finalizers.is_empty() {
            true => ok(
                "NamespaceFinalizersRemaining",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            ),
            false => bad(
                "NamespaceFinalizersRemaining",
                "SomeFinalizersRemain",
                format!(
                    "Some content in the namespace has finalizers remaining: {}",
                    counted(&content.finalizers, "in")
                ),
            ),
        },
    ]
}

fn undiscovered(content: &Content) -> String {
    let told = |version: &String| format!("{version}: stale GroupVersion discovery: {version}");
    let all: Vec<String> = content.undiscovered.iter().map(told).collect();
    format!("unable to retrieve the complete list of server APIs: {}", all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(status: &Value) -> Vec<String> {
        let conditions = status["conditions"].as_array().expect("conditions");
        let text = |condition: &Value, member: &str| condition[member].as_str().unwrap_or("").to_string();
        conditions
            .iter()
            .map(|one| {
                ["type", "status", "lastTransitionTime", "reason"].map(|name| text(one, name)).join(" ")
            })
            .collect()
    }

    #[test]
    fn what_is_in_the_way_is_told_and_taken_back() {
        let mut status = json!({ "phase": "Terminating" });
        let held = Content {
            remaining: [("widgets.example.io".to_string(), 2), ("pods.".to_string(), 1)].into(),
            finalizers: [("example.io/hold".to_string(), 2)].into(),
            failures: vec!["b".into(), "a".into()],
            undiscovered: vec!["example.io/v1".into()],
            waits_for_pods: false,
        };
        assert!(update(&mut status, &held, "t1"));
        assert!(!update(&mut status, &held, "t2"));
        assert_eq!(
            shown(&status),
            [
                "NamespaceDeletionDiscoveryFailure True t1 DiscoveryFailed",
                "NamespaceDeletionGroupVersionParsingFailure False t1 ParsedGroupVersions",
                "NamespaceDeletionContentFailure True t1 ContentDeletionFailed",
                "NamespaceContentRemaining True t1 SomeResourcesRemain",
                "NamespaceFinalizersRemaining True t1 SomeFinalizersRemain",
            ]
        );
        let messages: Vec<&str> =
            (2..5).map(|at| status["conditions"][at]["message"].as_str().expect("a message")).collect();
        assert_eq!(
            messages,
            [
                "Failed to delete all resource types, 2 remaining: a, b",
                "Some resources are remaining: pods. has 1 resource instances, widgets.example.io has 2 resource instances",
                "Some content in the namespace has finalizers remaining: example.io/hold in 2 resource instances",
            ]
        );
        assert_eq!(
            status["conditions"][0]["message"],
            "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: \
             example.io/v1: stale GroupVersion discovery: example.io/v1"
        );
        assert!(update(&mut status, &Content::default(), "t3"));
        assert_eq!(
            shown(&status)[2..],
            [
                "NamespaceDeletionContentFailure False t3 ContentDeleted",
                "NamespaceContentRemaining False t3 ContentRemoved",
                "NamespaceFinalizersRemaining False t3 ContentHasNoFinalizers",
            ]
        );
    }
}
