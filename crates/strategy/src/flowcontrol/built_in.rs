//! The FlowSchemas and PriorityLevelConfigurations that exist from the first start on.
//!
//! In: nothing, or a name. Out: the objects, complete. Never: writes them.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::value::same;

/// An object that the server keeps up to date as long as this annotation says `true`.
const AUTOUPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

/// An object that is always there.
pub struct BuiltIn {
    pub kind: &'static str,
    pub resource: &'static str,
    pub name: &'static str,
    /// Whether its spec is what it is; otherwise it is a suggestion.
    pub mandatory: bool,
    pub object: Value,
}

const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

/// All of them, the levels first, which the schemas refer to.
pub static ALL: LazyLock<Vec<BuiltIn>> = LazyLock::new(|| levels().into_iter().chain(schemas()).collect());

/// One of them.
pub fn built_in(kind: &str, name: &str) -> Option<&'static BuiltIn> {
    ALL.iter().find(|built_in| built_in.kind == kind && built_in.name == name)
}

/// What `current` is to be made when it is not what it should be: of one of these that is not to be kept as it is, or
/// that must be as it is, the spec is made up to date.
pub fn renewed(current: &Value, wanted: &Value) -> Option<Value> {
    let text = |value: &Value| value.as_str().unwrap_or("").to_string();
    let known = built_in(&text(&wanted["kind"]), &text(&wanted["metadata"]["name"]))?;
    let follows = current["metadata"]["annotations"][AUTOUPDATE] == "true";
    // An administrator decides what the exempt level lends.
    let is_free = known.kind == "PriorityLevelConfiguration" && known.name == "exempt" && !follows;
    let is_kept = !(known.mandatory || follows) || is_free;
    if is_kept || same("spec", current.get("spec"), wanted.get("spec")) {
        return None;
    }
    let mut renewed = current.clone();
    renewed["spec"] = wanted["spec"].clone();
    Some(renewed)
}

/// Says in a new FlowSchema of these that its level exists, as upstream's controller does.
pub fn settle(object: &mut Value, now: &str) {
    if object["kind"] != "FlowSchema" {
        return;
    }
    let level = object["spec"]["priorityLevelConfiguration"]["name"].as_str().unwrap_or("");
    let message = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named {level:?} and it exists"
    );
    object["status"] = json!({ "conditions": [{
        "type": "Dangling", "status": "False", "lastTransitionTime": now, "reason": "Found", "message": message,
    }] });
}

fn levels() -> Vec<BuiltIn> {
    let limited = |name, shares: u32, lendable: u32, queues: Option<(u32, u32)>| {
        let response = match queues {
            None => json!({ "type": "Reject" }),
            Some((queues, hand)) => json!({
                "type": "Queue",
                "queuing": { "queues": queues, "handSize": hand, "queueLengthLimit": 50 },
            }),
        };
        let limited = json!({
            "nominalConcurrencyShares": shares, "limitResponse": response, "lendablePercent": lendable,
        });
        level(name, json!({ "type": "Limited", "limited": limited }))
    };
    let exempt = json!({ "nominalConcurrencyShares": 0, "lendablePercent": 0 });
    vec![
        level("exempt", json!({ "type": "Exempt", "exempt": exempt })),
        limited("catch-all", 5, 0, None),
        limited("system", 30, 33, Some((64, 6))),
        limited("node-high", 40, 25, Some((64, 6))),
        limited("leader-election", 10, 0, Some((16, 4))),
        limited("workload-high", 40, 50, Some((128, 6))),
        limited("workload-low", 100, 90, Some((128, 6))),
        limited("global-default", 20, 50, Some((128, 6))),
    ]
}

fn level(name: &'static str, spec: Value) -> BuiltIn {
    of("PriorityLevelConfiguration", "prioritylevelconfigurations", name, spec)
}

fn schemas() -> Vec<BuiltIn> {
    let everything = || (vec![resources(&["*"], "*", &["*"], true)], vec![urls(&["*"], &["*"])]);
    let leases = |verbs: &[&str]| resources(verbs, "coordination.k8s.io", &["leases"], false);
    let nodes = resources(&["*"], "", &["nodes", "nodes/status"], true);
    let everyone = || vec![group("system:unauthenticated"), group("system:authenticated")];
    let (manager, scheduler) = (user("system:kube-controller-manager"), user("system:kube-scheduler"));
    let system_account =
        json!({ "kind": "ServiceAccount", "serviceAccount": { "namespace": "kube-system", "name": "*" } });
    let probes = vec![urls(&["get"], &["/healthz", "/readyz", "/livez"])];
    let leader = vec![leases(&["get", "create", "update"])];
    vec![
        schema("exempt", "exempt", 1, None, vec![group("system:masters")], everything()),
        schema("catch-all", "catch-all", 10_000, USER, everyone(), everything()),
        schema("system-nodes", "system", 500, USER, vec![group("system:nodes")], everything()),
        schema(
            "system-node-high",
            "node-high",
            400,
            USER,
            vec![group("system:nodes")],
            (vec![nodes, leases(&["*"])], vec![]),
        ),
        schema("probes", "exempt", 2, None, everyone(), (vec![], probes)),
        schema(
            "system-leader-election",
            "leader-election",
            100,
            USER,
            vec![manager.clone(), scheduler.clone(), system_account.clone()],
            (leader, vec![]),
        ),
        schema("kube-controller-manager", "workload-high", 800, NAMESPACE, vec![manager], everything()),
        schema("kube-scheduler", "workload-high", 800, NAMESPACE, vec![scheduler], everything()),
        schema(
            "kube-system-service-accounts",
            "workload-high",
            900,
            NAMESPACE,
            vec![system_account],
            everything(),
        ),
        schema(
            "service-accounts",
            "workload-low",
            9_000,
            USER,
            vec![group("system:serviceaccounts")],
            everything(),
        ),
        schema("global-default", "global-default", 9_900, USER, everyone(), everything()),
    ]
}

const USER: Option<&str> = Some("ByUser");
const NAMESPACE: Option<&str> = Some("ByNamespace");

/// - `rules`: of resources, and of other paths.
fn schema(
    name: &'static str,
    level: &str,
    precedence: u32,
    distinguisher: Option<&str>,
    subjects: Vec<Value>,
    rules: (Vec<Value>, Vec<Value>),
) -> BuiltIn {
    let mut rule = json!({ "subjects": subjects });
    for (member, rules) in [("resourceRules", rules.0), ("nonResourceRules", rules.1)] {
        if !rules.is_empty() {
            rule[member] = Value::Array(rules);
        }
    }
    let mut spec = json!({
        "priorityLevelConfiguration": { "name": level }, "matchingPrecedence": precedence, "rules": [rule],
    });
    if let Some(method) = distinguisher {
        spec["distinguisherMethod"] = json!({ "type": method });
    }
    of("FlowSchema", "flowschemas", name, spec)
}

fn of(kind: &'static str, resource: &'static str, name: &'static str, spec: Value) -> BuiltIn {
    let object = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": kind,
        "metadata": { "name": name, "annotations": { AUTOUPDATE: "true" } }, "spec": spec,
    });
    BuiltIn { kind, resource, name, mandatory: MANDATORY.contains(&name), object }
}

fn resources(verbs: &[&str], group: &str, resources: &[&str], cluster_scope: bool) -> Value {
    let mut rule =
        json!({ "verbs": verbs, "apiGroups": [group], "resources": resources, "namespaces": ["*"] });
    if cluster_scope {
        rule["clusterScope"] = true.into();
    }
    rule
}

fn urls(verbs: &[&str], urls: &[&str]) -> Value {
    json!({ "verbs": verbs, "nonResourceURLs": urls })
}

fn group(name: &str) -> Value {
    json!({ "kind": "Group", "group": { "name": name } })
}

fn user(name: &str) -> Value {
    json!({ "kind": "User", "user": { "name": name } })
}
