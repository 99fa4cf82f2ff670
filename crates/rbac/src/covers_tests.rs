//! What covers what, and the words for what does not.

use forebay_rt::Random;

use super::*;
use crate::binding::{RoleBinding, RoleRef};
use crate::limits::STEP_BYTES;

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

#[test]
fn texts_are_looked_at_for_no_longer_than_their_bytes_allow() {
    // Twelve long resources that differ in their last letter, in each of ten rules.
    let long: Vec<String> = ('a'..='l').map(|last| format!("{}{last}", "x".repeat(20_000))).collect();
    let rules = (0..10).map(|_| json!({ "verbs": ["get"], "apiGroups": ["*"], "resources": long }));
    let held = role(Value::Array(rules.collect()));
    let held: Vec<_> = held.rules().iter().collect();
    let wanted = |groups: Vec<String>| {
        role(json!([{ "verbs": ["get", "get"], "apiGroups": groups, "resources": long }]))
    };
    // A group that is named ten thousand times is one.
    assert!(uncovered(&held, wanted(vec!["g".to_owned(); 10_000]).rules()).is_empty());
    // As many groups would be looked for for minutes.
    let many = wanted((0..10_000).map(|at| format!("g{at}")).collect());
    assert_eq!(uncovered(&held, many.rules()).words(), "\nand more");
    // Whatever one search compares, it has counted.
    let resources = &many.rules()[0].resources;
    let Looked { has, steps } = has_resource(resources, &long[11]);
    assert!(has && steps >= 12 * long[11].len() / STEP_BYTES, "{steps}");
}

#[test]
fn missing_rights_with_long_texts_are_told_of_up_to_a_number_of_bytes() {
    let long = |count: usize| -> Vec<String> {
        (0..count).map(|at| format!("{}{at}", "x".repeat(100_000))).collect()
    };
    let wanted = role(json!([
        { "verbs": long(30), "apiGroups": ["g"], "resources": long(30) },
        { "verbs": ["get"], "nonResourceURLs": long(30) },
    ]));
    let missing = uncovered(&[], wanted.rules());
    assert!(missing.bytes <= UNCOVERED_TEXTS_MAX + 200_100, "{}", missing.bytes);
    let words = missing.words();
    assert!(words.len() < 3 * UNCOVERED_BYTES_MAX && words.ends_with("\nand more"), "{}", words.len());
}

#[test]
fn rules_without_verbs_and_nobodys_rules_take_steps_as_well() {
    let many = |prefix: &str| (0..30_000).map(|at| format!("{prefix}{at}")).collect::<Vec<_>>();
    let wanted = role(json!([{ "verbs": [], "apiGroups": many("g"), "resources": many("r") }]));
    assert_eq!(uncovered(&[], wanted.rules()).words(), "\nand more");
}

#[test]
fn who_gives_what_they_have_not_is_told_what_and_which_of_their_roles_are_not_there() {
    let reference = |name: &str| RoleRef { namespace: "".into(), name: name.into() };
    let mut rights = Rights::default();
    let pods = json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }]);
    rights.put_role(&reference("own"), role(pods.clone()));
    for name in ["own", "gone"] {
        let binding = json!({
            "metadata": { "name": name }, "roleRef": { "kind": "ClusterRole", "name": name },
            "subjects": [{ "kind": "User", "name": "bob" }],
        });
        rights.put_binding(RoleBinding::read(&binding, "n").expect("a binding"));
    }
    let bob = Caller { name: "bob".into(), groups: vec!["dev".into()], ..Caller::default() };
    let refusal = |namespace: &str, rules: &Value| {
        rights.refusal_to_give(&bob, namespace, &role(rules.clone()), "roles")
    };
    assert_eq!(refusal("n", &pods), None);
    let why = r#"user "bob" (groups=["dev"]) is attempting to grant RBAC permissions not currently held:
{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#;
    assert_eq!(refusal("m", &pods).as_deref(), Some(why));
    let secrets = json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["secrets"] }]);
    let absent = r#"; resolution errors: [roles.rbac.authorization.k8s.io "gone" not found]"#;
    assert_eq!(refusal("n", &secrets), Some(format!("{}{absent}", why.replace("pods", "secrets"))));
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
