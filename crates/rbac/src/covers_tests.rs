//! What covers what, and the words for what does not.

use forebay_rt::Random;

use super::*;

fn role(rules: Value) -> Role {
    Role::read(&json!({ "rules": rules }))
}

/// The words for what `wanted` has more than `held`.
fn words(held: &Value, wanted: &Value) -> String {
    let (held, wanted) = (role(held.clone()), role(wanted.clone()));
    let missing = uncovered(&held.rules().iter().collect::<Vec<_>>(), wanted.rules());
    assert_eq!(missing.is_empty(), missing.words().is_empty());
    missing.words()
}

#[test]
fn rights_are_covered_as_upstream_has_it() {
    let rule = |verbs: Value, groups: Value, resources: Value, names: Value| json!({ "verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names });
    let all = json!(["*"]);
    let admin = json!([rule(all.clone(), all.clone(), all.clone(), json!([]))]);
    let pods = rule(json!(["get", "list"]), json!([""]), json!(["pods"]), json!([]));
    for (held, wanted, want) in [
        (json!([]), json!([]), ""),
        (admin.clone(), json!([pods]), ""),
        (admin.clone(), admin.clone(), ""),
        (json!([pods]), admin.clone(), r#"{APIGroups:["*"], Resources:["*"], Verbs:["*"]}"#),
        (json!([]), json!([pods]), r#"{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}"#),
        // One rule has to have it by itself, but each right may be another's.
        (
            json!([
                rule(json!(["get"]), json!([""]), json!(["pods"]), json!([])),
                rule(json!(["list"]), all.clone(), json!(["pods", "nodes"]), json!([])),
            ]),
            json!([pods]),
            "",
        ),
        // All verbs are more than each that there is.
        (
            json!([pods]),
            json!([rule(all.clone(), json!([""]), json!(["pods"]), json!([]))]),
            r#"{APIGroups:[""], Resources:["pods"], Verbs:["*"]}"#,
        ),
        (
            json!([rule(json!(["get"]), json!([""]), json!(["pods"]), json!(["a"]))]),
            json!([rule(json!(["get"]), json!([""]), json!(["pods"]), json!(["a", "b"]))]),
            r#"{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}"#,
        ),
        (
            json!([rule(json!(["get"]), json!([""]), json!(["pods"]), json!(["a"]))]),
            json!([rule(json!(["get"]), json!([""]), json!(["pods"]), json!([]))]),
            r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#,
        ),
        (
            json!([rule(json!(["get"]), json!([""]), json!(["*/scale"]), json!([]))]),
            json!([rule(json!(["get"]), json!([""]), json!(["pods/scale", "*/scale", "pods"]), json!([]))]),
            r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#,
        ),
        (
            json!([{ "verbs": ["get"], "nonResourceURLs": ["/a/*", "/b"] }]),
            json!([{ "verbs": ["get"], "nonResourceURLs": ["/a/x", "/a/*", "/b", "/c"] }]),
            r#"{NonResourceURLs:["/c"], Verbs:["get"]}"#,
        ),
        // Resources do not cover paths.
        (
            admin,
            json!([{ "verbs": ["get", "post"], "nonResourceURLs": ["/a"] }]),
            "{NonResourceURLs:[\"/a\"], Verbs:[\"get\"]}\n{NonResourceURLs:[\"/a\"], Verbs:[\"post\"]}",
        ),
        // A rule without verbs gives nothing.
        (json!([]), json!([{ "verbs": [], "apiGroups": [""], "resources": ["pods"] }]), ""),
    ] {
        assert_eq!(words(&held, &wanted), want, "{held} {wanted}");
    }
}

#[test]
fn a_rule_that_stands_for_more_rights_than_are_looked_at_is_not_covered() {
    let many = |prefix: &str, count: usize| -> Vec<String> {
        (0..count).map(|at| format!("{prefix}{at}")).collect()
    };
    let wanted = json!([{
        "verbs": many("v", 1_000), "apiGroups": many("g", 1_000), "resources": many("r", 1_000),
    }]);
    // Whoever may do everything has it all the same.
    let full = full_authority();
    let wanted = role(wanted);
    assert!(uncovered(&full.rules().iter().collect::<Vec<_>>(), wanted.rules()).is_empty());
    let held = role(json!([{ "verbs": ["*"], "apiGroups": ["*"], "resources": many("r", 1_000) }]));
    let missing = uncovered(&held.rules().iter().collect::<Vec<_>>(), wanted.rules());
    assert!(!missing.is_empty());
    assert_eq!(missing.words(), "\nand more");
    let missing = uncovered(&[], wanted.rules());
    assert_eq!(missing.rights.len(), UNCOVERED_MAX);
    assert!(missing.words().len() < 2 * UNCOVERED_BYTES_MAX && missing.words().ends_with("\nand more"));
}

/// One of a few texts, so that rules meet.
fn some(random: &Random, of: &[&str]) -> Vec<String> {
    let texts = of.iter().filter(|_| random.below(3) == 0);
    let mut texts: Vec<String> = texts.map(|text| (*text).to_owned()).collect();
    if texts.is_empty() {
        texts.push(of[random.below(of.len() as u64) as usize].to_owned());
    }
    texts
}

fn drawn(random: &Random) -> Value {
    let rules = (0..random.below(4) + 1).map(|_| {
        let names = if random.below(3) == 0 { some(random, &["a", "b"]) } else { Vec::new() };
        json!({
            "verbs": some(random, &["get", "list", "*"]),
            "apiGroups": some(random, &["", "apps", "*"]),
            "resources": some(random, &["pods", "pods/scale", "*/scale", "*"]),
            "resourceNames": names,
        })
    });
    Value::Array(rules.collect())
}

#[test]
fn what_is_missing_and_what_is_held_cover_what_is_wanted() {
    let random = Random::seeded(32);
    for _ in 0..2_000 {
        let (held, wanted) = (role(drawn(&random)), role(drawn(&random)));
        let missing = uncovered(&held.rules().iter().collect::<Vec<_>>(), wanted.rules());
        let added = role(Value::Array(missing.to_rules()));
        let both: Vec<_> = held.rules().iter().chain(added.rules()).collect();
        assert!(uncovered(&both, wanted.rules()).is_empty());
        // Nothing is told of that is held.
        let none: Vec<_> = added.rules().iter().collect();
        assert_eq!(
            uncovered(&held.rules().iter().collect::<Vec<_>>(), added.rules()).rights.len(),
            none.len()
        );
    }
}
