//! What a decision takes with 5,000 bindings and 500 roles of 20 rules: `cargo run --release -p forebay-rbac
//! --example decide`.
//!
//! In: nothing. Out: nanoseconds a decision, of five runs, by who asks. Never: a claim; ADR 82 has the table.

#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::time::Instant;

use forebay_apimachinery::{About, Attributes, Caller, ResourceAttributes, Verb};
use forebay_rbac::{Rights, Role, RoleBinding, RoleRef, Ruling};
use serde_json::json;

const ROUNDS: usize = 200_000;

fn rights() -> Rights {
    let mut rights = Rights::default();
    for at in 0..500 {
        let rules: Vec<_> = (0..20)
            .map(|rule| {
                let resources: Vec<String> = (0..5).map(|of| format!("kind{}", (at * 7 + rule * 5 + of) % 300)).collect();
                json!({ "verbs": ["get", "list", "watch"], "apiGroups": [format!("group{}.example.com", at % 50)], "resources": resources })
            })
            .collect();
        let reference = RoleRef { namespace: "".into(), name: format!("role{at}").into() };
        rights.put_role(&reference, Role::read(&json!({ "rules": rules })));
    }
    for at in 0..5_000 {
        let (namespace, subject) = match at % 4 {
            // Every role by five bindings, all of one group.
            0 | 1 => (String::new(), json!({ "kind": "Group", "name": "everybody" })),
            2 => (
                format!("namespace{}", at % 250),
                json!({ "kind": "User", "name": format!("user{}", at % 1_000) }),
            ),
            _ => (String::new(), json!({ "kind": "User", "name": format!("user{}", at % 1_000) })),
        };
        let role = if at % 4 < 2 { at / 2 % 500 } else { at % 500 };
        let object = json!({
            "metadata": { "name": format!("binding{at}") },
            "roleRef": { "kind": "ClusterRole", "name": format!("role{role}") },
            "subjects": [subject],
        });
        rights.put_binding(RoleBinding::read(&object, &namespace).expect("a binding"));
    }
    rights
}

fn main() {
    let rights = rights();
    for (who, groups) in [
        ("few roles", vec!["system:authenticated".to_owned()]),
        ("all 500 roles", vec!["everybody".to_owned(), "system:authenticated".to_owned()]),
    ] {
        for (what, resource) in [("not allowed", "other"), ("most often allowed", "kind7")] {
            let callers: Vec<Caller> = (0..1_000)
                .map(|at| Caller { name: format!("user{at}"), groups: groups.clone(), ..Caller::default() })
                .collect();
            let apis: Vec<String> = (0..50).map(|at| format!("group{at}.example.com")).collect();
            let mut taken = Vec::new();
            let mut allowed = 0;
            for _ in 0..5 {
                let started = Instant::now();
                allowed = 0;
                for at in 0..ROUNDS {
                    let of = ResourceAttributes {
                        group: &apis[at % apis.len()],
                        version: "v1",
                        namespace: "namespace2",
                        resource,
                        name: "x",
                        ..ResourceAttributes::default()
                    };
                    let caller = &callers[at * 7 % callers.len()];
                    let asked = Attributes { caller, verb: &Verb::Get, about: About::Resource(of) };
                    allowed += usize::from(matches!(rights.decide(&asked), Ruling::Allowed(_)));
                }
                taken.push(started.elapsed().as_nanos() / ROUNDS as u128);
            }
            taken.sort_unstable();
            println!(
                "{who}, {what}: {} / {} / {} ns, {allowed} of {ROUNDS} allowed",
                taken[0], taken[2], taken[4]
            );
        }
    }
}
