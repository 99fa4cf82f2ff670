//! The levels and schemas that are there from the start: the mandatory ones, always, and the suggested ones,
//! which a server creates where they are missing. Who creates them reads them here, and so does who decides
//! before the store has told of any.
//!
//! In: nothing. Out: objects as clients see them, from one row each; the same as what decides. Never: writes
//! one.
//!
//! Source: apiserver v1.36.3 `apis/flowcontrol/bootstrap`.

use serde_json::{Value, json};

use crate::config::{CATCH_ALL, EXEMPT, FlowSchema, PriorityLevel};

const API_VERSION: &str = "flowcontrol.apiserver.k8s.io/v1";
/// A server keeps an object up to date as long as this annotation says `true`.
pub const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

/// Whether a server goes on without an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Necessity {
    /// It acts as if it were there.
    Mandatory,
    /// It only creates it.
    Suggested,
}

use Necessity::{Mandatory, Suggested};

struct LevelRow {
    origin: Necessity,
    name: &'static str,
    shares: u64,
    lendable: u64,
    /// Queues, hand and length; none rejects.
    queuing: Option<[u64; 3]>,
}

const fn level(name: &'static str, shares: u64, lendable: u64, queues: u64, hand: u64) -> LevelRow {
    LevelRow { origin: Suggested, name, shares, lendable, queuing: Some([queues, hand, 50]) }
}

const LEVELS: &[LevelRow] = &[
    LevelRow { origin: Mandatory, name: CATCH_ALL, shares: 5, lendable: 0, queuing: None },
    LevelRow { origin: Mandatory, name: EXEMPT, shares: 0, lendable: 0, queuing: None },
    level("system", 30, 33, 64, 6),
    level("node-high", 40, 25, 64, 6),
    level("leader-election", 10, 0, 16, 4),
    level("workload-high", 40, 50, 128, 6),
    level("workload-low", 100, 90, 128, 6),
    level("global-default", 20, 50, 128, 6),
];

/// Who a schema is for.
#[derive(Clone, Copy)]
enum Who {
    Groups(&'static [&'static str]),
    Users(&'static [&'static str]),
    /// Users, and all service accounts of `kube-system`.
    SystemUsers(&'static [&'static str]),
}

/// What of it.
#[derive(Clone, Copy)]
enum What {
    Everything,
    /// Resources: verbs, group, names, and whether also without a namespace.
    Resources(&'static [(&'static [&'static str], &'static str, &'static [&'static str], bool)]),
    Reading(&'static [&'static str]),
}

struct SchemaRow {
    origin: Necessity,
    name: &'static str,
    level: &'static str,
    precedence: u64,
    by: Option<&'static str>,
    who: Who,
    what: What,
}

const EVERYBODY: Who = Who::Groups(&["system:unauthenticated", "system:authenticated"]);
const NODES: Who = Who::Groups(&["system:nodes"]);
const BY_USER: Option<&str> = Some("ByUser");
const BY_NAMESPACE: Option<&str> = Some("ByNamespace");
const LEASES: &str = "coordination.k8s.io";
const ALL: &[&str] = &["*"];

const fn schema(
    name: &'static str,
    level: &'static str,
    precedence: u64,
    by: Option<&'static str>,
    who: Who,
    what: What,
) -> SchemaRow {
    SchemaRow { origin: Suggested, name, level, precedence, by, who, what }
}

const fn mandatory(row: SchemaRow) -> SchemaRow {
    SchemaRow { origin: Mandatory, ..row }
}

const SCHEMAS: &[SchemaRow] = &[
    mandatory(schema(EXEMPT, EXEMPT, 1, None, Who::Groups(&["system:masters"]), What::Everything)),
    schema("probes", EXEMPT, 2, None, EVERYBODY, What::Reading(&["/healthz", "/readyz", "/livez"])),
    schema(
        "system-leader-election",
        "leader-election",
        100,
        BY_USER,
        Who::SystemUsers(&["system:kube-controller-manager", "system:kube-scheduler"]),
        What::Resources(&[(&["get", "create", "update"], LEASES, &["leases"], false)]),
    ),
    schema(
        "system-node-high",
        "node-high",
        400,
        BY_USER,
        NODES,
        What::Resources(&[(ALL, "", &["nodes", "nodes/status"], true), (ALL, LEASES, &["leases"], false)]),
    ),
    schema("system-nodes", "system", 500, BY_USER, NODES, What::Everything),
    schema(
        "kube-controller-manager",
        "workload-high",
        800,
        BY_NAMESPACE,
        Who::Users(&["system:kube-controller-manager"]),
        What::Everything,
    ),
    schema(
        "kube-scheduler",
        "workload-high",
        800,
        BY_NAMESPACE,
        Who::Users(&["system:kube-scheduler"]),
        What::Everything,
    ),
    schema(
        "kube-system-service-accounts",
        "workload-high",
        900,
        BY_NAMESPACE,
        Who::SystemUsers(&[]),
        What::Everything,
    ),
    schema(
        "service-accounts",
        "workload-low",
        9_000,
        BY_USER,
        Who::Groups(&["system:serviceaccounts"]),
        What::Everything,
    ),
    schema("global-default", "global-default", 9_900, BY_USER, EVERYBODY, What::Everything),
    mandatory(schema(CATCH_ALL, CATCH_ALL, 10_000, BY_USER, EVERYBODY, What::Everything)),
];

/// The levels as objects, and whether a server goes on without them.
pub fn level_objects() -> impl Iterator<Item = (Necessity, Value)> {
    LEVELS.iter().map(|row| (row.origin, level_object(row)))
}

/// The schemas as objects, and whether a server goes on without them.
pub fn schema_objects() -> impl Iterator<Item = (Necessity, Value)> {
    SCHEMAS.iter().map(|row| (row.origin, schema_object(row)))
}

/// The levels as long as no store has told of any.
pub fn levels() -> Vec<PriorityLevel> {
    level_objects().map(|(_, object)| read_level(&object)).collect()
}

/// The schemas as long as no store has told of any.
pub fn schemas() -> Vec<FlowSchema> {
    schema_objects().map(|(_, object)| read_schema(&object)).collect()
}

/// The levels without which nothing goes.
pub fn mandatory_levels() -> Vec<PriorityLevel> {
    let objects = level_objects().filter(|(origin, _)| *origin == Mandatory);
    objects.map(|(_, object)| read_level(&object)).collect()
}

/// The schemas without which nothing goes.
pub fn mandatory_schemas() -> Vec<FlowSchema> {
    let objects = schema_objects().filter(|(origin, _)| *origin == Mandatory);
    objects.map(|(_, object)| read_schema(&object)).collect()
}

fn read_level(object: &Value) -> PriorityLevel {
    PriorityLevel::read(object).expect("a row is whole")
}

fn read_schema(object: &Value) -> FlowSchema {
    FlowSchema::read(object).expect("a row is whole")
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    let metadata = json!({"name": name, "annotations": {AUTO_UPDATE: "true"}});
    json!({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec})
}

fn level_object(row: &LevelRow) -> Value {
    let mut part = json!({"nominalConcurrencyShares": row.shares, "lendablePercent": row.lendable});
    let spec = if row.name == EXEMPT {
        json!({"type": "Exempt", "exempt": part})
    } else {
        part["limitResponse"] = match row.queuing {
            None => json!({"type": "Reject"}),
            Some([queues, hand, length]) => json!({
                "type": "Queue",
                "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": length},
            }),
        };
        json!({"type": "Limited", "limited": part})
    };
    object("PriorityLevelConfiguration", row.name, spec)
}

fn schema_object(row: &SchemaRow) -> Value {
    let mut rules = json!({"subjects": subjects(row.who)});
    let reading = |paths| json!([{"verbs": ["get"], "nonResourceURLs": paths}]);
    match row.what {
        What::Everything => {
            rules["resourceRules"] = json!([resource_rule(ALL, "*", ALL, true)]);
            rules["nonResourceRules"] = json!([{"verbs": ["*"], "nonResourceURLs": ["*"]}]);
        }
        What::Resources(rows) => {
            let rows = rows
                .iter()
                .map(|(verbs, group, names, cluster)| resource_rule(verbs, group, names, *cluster));
            rules["resourceRules"] = rows.collect();
        }
        What::Reading(paths) => rules["nonResourceRules"] = reading(paths),
    }
    let mut spec = json!({
        "priorityLevelConfiguration": {"name": row.level},
        "matchingPrecedence": row.precedence,
        "rules": [rules],
    });
    if let Some(by) = row.by {
        spec["distinguisherMethod"] = json!({"type": by});
    }
    object("FlowSchema", row.name, spec)
}

fn resource_rule(verbs: &[&str], group: &str, resources: &[&str], cluster: bool) -> Value {
    let mut rule = json!({"verbs": verbs, "apiGroups": [group], "resources": resources, "namespaces": ["*"]});
    if cluster {
        rule["clusterScope"] = true.into();
    }
    rule
}

fn subjects(who: Who) -> Vec<Value> {
    let group = |name: &&str| json!({"kind": "Group", "group": {"name": name}});
    let user = |name: &&str| json!({"kind": "User", "user": {"name": name}});
    let accounts = || {
        let account = json!({"namespace": "kube-system", "name": "*"});
        json!({"kind": "ServiceAccount", "serviceAccount": account})
    };
    match who {
        Who::Groups(names) => names.iter().map(group).collect(),
        Who::Users(names) => names.iter().map(user).collect(),
        Who::SystemUsers(names) => names.iter().map(user).chain([accounts()]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_reads_as_what_it_says() {
        for (row, (_, object)) in LEVELS.iter().zip(level_objects()) {
            let level = PriorityLevel::read(&object).unwrap();
            assert_eq!(
                (&*level.name, level.shares, level.lendable_percent),
                (row.name, row.shares, row.lendable)
            );
        }
        for (row, (_, object)) in SCHEMAS.iter().zip(schema_objects()) {
            let schema = FlowSchema::read(&object).unwrap();
            assert_eq!((&*schema.name, &*schema.level), (row.name, row.level));
            assert!(LEVELS.iter().any(|level| level.name == row.level));
        }
        assert_eq!(LEVELS.iter().map(|row| row.shares).sum::<u64>(), 245);
        assert_eq!((mandatory_levels().len(), mandatory_schemas().len()), (2, 2));
    }
}
