//! Matching, rule by rule.

use forebay_apimachinery::attributes::{About, ResourceAttributes};
use forebay_apimachinery::{Attributes, Caller, Verb};
use serde_json::json;

use super::*;
use crate::builtin;

fn caller(name: &str, groups: &[&str]) -> Caller {
    let groups = groups.iter().map(|group| group.to_string()).collect();
    Caller { name: name.to_string(), groups, ..Caller::default() }
}

fn rule(subject: serde_json::Value, rules: serde_json::Value) -> FlowSchema {
    let mut rules = rules;
    rules["subjects"] = json!([subject]);
    let spec = json!({"priorityLevelConfiguration": {"name": "exempt"}, "rules": [rules]});
    FlowSchema::read(&json!({"metadata": {"name": "it"}, "spec": spec})).unwrap()
}

fn user(name: &str) -> serde_json::Value {
    json!({"kind": "User", "user": {"name": name}})
}

/// Asks for `verb group/resource[/subresource] namespace`, or for `verb /path`, as user goodu of goodg1 and
/// goodg2.
fn asks(schema: &FlowSchema, asked: &str) -> bool {
    let caller = caller("goodu", &["goodg1", "goodg2"]);
    let words: Vec<&str> = asked.split(' ').collect();
    let verb = Verb::named(words[0]);
    if words[1].starts_with('/') {
        return matches(schema, &Attributes { caller: &caller, verb: &verb, about: About::Path(words[1]) });
    }
    let mut of = words[1].split('/');
    let resource = ResourceAttributes {
        group: of.next().unwrap(),
        resource: of.next().unwrap(),
        subresource: of.next().unwrap_or_default(),
        namespace: words.get(2).unwrap_or(&""),
        ..ResourceAttributes::default()
    };
    matches(schema, &Attributes { caller: &caller, verb: &verb, about: About::Resource(resource) })
}

fn resources(verb: &str, group: &str, resource: &str, namespace: &str) -> serde_json::Value {
    json!({"resourceRules": [{"verbs": [verb], "apiGroups": [group], "resources": [resource], "namespaces": [namespace]}]})
}

#[test]
fn each_part_of_a_rule_has_to_match() {
    let asked = "get apps/pods ns";
    for part in 0..4 {
        let mut parts = ["get", "apps", "pods", "ns"];
        let of = |parts: [&str; 4]| rule(user("goodu"), resources(parts[0], parts[1], parts[2], parts[3]));
        assert!(asks(&of(parts), asked));
        parts[part] = "*";
        assert!(asks(&of(parts), asked), "{parts:?}");
        parts[part] = "bad";
        assert!(!asks(&of(parts), asked), "{parts:?}");
    }
}

#[test]
fn a_star_among_others_is_a_name() {
    let rules = json!({"resourceRules": [{"verbs": ["*", "list"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}]});
    let schema = rule(user("*"), rules);
    assert!(asks(&schema, "list apps/pods ns"));
    assert!(!asks(&schema, "get apps/pods ns"));
}

#[test]
fn what_has_no_namespace_needs_a_rule_that_says_so() {
    let mut rules = resources("*", "*", "*", "*");
    assert!(!asks(&rule(user("*"), rules.clone()), "get apps/nodes"));
    rules["resourceRules"][0]["clusterScope"] = true.into();
    assert!(asks(&rule(user("*"), rules), "get apps/nodes"));
}

#[test]
fn a_subresource_is_a_resource_of_its_own() {
    assert!(asks(&rule(user("*"), resources("*", "*", "pods/status", "*")), "get apps/pods/status ns"));
    assert!(!asks(&rule(user("*"), resources("*", "*", "pods", "*")), "get apps/pods/status ns"));
    assert!(!asks(&rule(user("*"), resources("*", "*", "pods/status", "*")), "get apps/pods ns"));
}

#[test]
fn paths_match_as_they_are_and_below() {
    let matched = |path: &str, asked: &str| {
        let rules = json!({"nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": [path]}]});
        asks(&rule(user("*"), rules), asked)
    };
    for (path, asked) in [
        ("*", "get /x"),
        ("/healthz", "get /healthz"),
        ("/healthz", "get /healthz/etcd"),
        ("/healthz/*", "get /healthz/etcd"),
        ("/healthz/", "get /healthz/etcd"),
        ("/*", "get /x"),
    ] {
        assert!(matched(path, asked), "{path} {asked}");
    }
    for (path, asked) in [("/healthz", "get /healthzz"), ("/healthz/*", "get /healthz"), ("/a", "put /a")] {
        assert!(!matched(path, asked), "{path} {asked}");
    }
}

#[test]
fn subjects_are_users_groups_and_service_accounts() {
    let any = resources("*", "*", "*", "*");
    let group = |name: &str| json!({"kind": "Group", "group": {"name": name}});
    for subject in [user("goodu"), user("*"), group("goodg2"), group("*")] {
        assert!(asks(&rule(subject.clone(), any.clone()), "get apps/pods ns"), "{subject}");
    }
    for subject in [user("badu"), group("badg")] {
        assert!(!asks(&rule(subject.clone(), any.clone()), "get apps/pods ns"), "{subject}");
    }
    let account = |namespace: &str, name: &str| {
        let schema = rule(
            json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}),
            json!({"nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}),
        );
        let caller = caller("system:serviceaccount:kube-system:gc", &[]);
        matches(&schema, &Attributes { caller: &caller, verb: &Verb::Get, about: About::Path("/x") })
    };
    assert!(account("kube-system", "gc") && account("kube-system", "*"));
    assert!(!account("kube", "*") && !account("kube-system", "g") && !account("default", "gc"));
}

/// The built-in schemas that requests are of:
/// `user[groups]: verb what [namespace] -> schema/level (distinguisher)`.
#[test]
fn the_built_in_schemas_take_each_request_where_upstream_does() {
    let schemas = builtin::schema_objects().map(|(_, object)| FlowSchema::read(&object).unwrap()).collect();
    let schemas = Schemas::new(schemas);
    let known = "system:authenticated";
    let lease = ResourceAttributes {
        group: "coordination.k8s.io",
        resource: "leases",
        namespace: "kube-node-lease",
        ..ResourceAttributes::default()
    };
    let pods = ResourceAttributes { resource: "pods", namespace: "ns", ..ResourceAttributes::default() };
    let check = |name: &str, groups: &[&str], verb: Verb, about: About, expected: &str| {
        let flow = schemas.flow(&Attributes { caller: &caller(name, groups), verb: &verb, about });
        assert_eq!(format!("{}/{} {}", flow.schema, flow.level, flow.distinguisher), expected);
    };
    let (lease, pods) = (About::Resource(lease), About::Resource(pods));
    let (node, account) = ("system:node:n1", "system:serviceaccount:ns:x");
    let kcm = "system:kube-controller-manager";
    check("admin", &["system:masters", known], Verb::List, pods, "exempt/exempt ");
    check(
        "system:anonymous",
        &["system:unauthenticated"],
        Verb::Get,
        About::Path("/livez"),
        "probes/exempt ",
    );
    check(node, &["system:nodes", known], Verb::Update, lease, "system-node-high/node-high system:node:n1");
    check(node, &["system:nodes", known], Verb::List, pods, "system-nodes/system system:node:n1");
    check(kcm, &[known], Verb::Update, lease, &format!("system-leader-election/leader-election {kcm}"));
    check(kcm, &[known], Verb::List, pods, "kube-controller-manager/workload-high ns");
    check(
        "system:serviceaccount:kube-system:gc",
        &[known],
        Verb::List,
        pods,
        "kube-system-service-accounts/workload-high ns",
    );
    check(
        account,
        &["system:serviceaccounts", known],
        Verb::List,
        pods,
        &format!("service-accounts/workload-low {account}"),
    );
    check("jane", &[known], Verb::List, pods, "global-default/global-default jane");
    check("nobody", &[], Verb::List, pods, "catch-all/catch-all nobody");
}
