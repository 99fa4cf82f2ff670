//! Roles, bindings and questions about them, drawn from a seed: rules of every kind, subjects of every kind.
//!
//! In: a seed. Out: a [`Policy`], whose users nobody else has, and [`Question`]s about them; questions about
//! the roles that Kubernetes has of its own. The same each time. Never: a look at a server.

use forebay_rt::Random;
use serde_json::{Map, Value, json};

use crate::pair::ActsAs;

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// The namespaces that policies are about.
pub const NAMESPACES: [&str; 3] = ["rights-a", "rights-b", "rights-c"];

/// What is created, in order: path of the collection, object.
#[derive(Clone, Debug)]
pub struct Policy {
    pub seed: u64,
    pub objects: Vec<(String, Value)>,
    users: Vec<ActsAs>,
}

/// Who may do what.
#[derive(Clone, Debug)]
pub struct Question {
    pub user: ActsAs,
    /// `resourceAttributes` or `nonResourceAttributes`, and what they say.
    pub attributes: (&'static str, Value),
}

const KNOWN_VERBS: [&str; 11] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "bind",
    "escalate",
    "impersonate",
];
const VERBS: [&str; 12] = known_verbs_and(["*"]);
const PATH_VERBS: [&str; 5] = ["get", "head", "post", "options", "*"];
const GROUPS: [&str; 7] =
    ["", "apps", "batch", "example.com", "rbac.authorization.k8s.io", "*", "extensions"];
const RESOURCES: [&str; 14] = [
    "pods",
    "pods/log",
    "pods/exec",
    "pods/*",
    "secrets",
    "configmaps",
    "deployments",
    "deployments/scale",
    "*/scale",
    "*/status",
    "jobs",
    "widgets",
    "roles",
    "*",
];
const NAMES: [&str; 4] = ["x", "y", "z", "*"];
const PATHS: [&str; 9] = ["/own", "/own/*", "/api", "/api/*", "/apis/*", "/metrics", "/m*", "*", "/"];

const ASKED_VERBS: [&str; 13] = known_verbs_and(["frob", "*"]);
const ASKED_GROUPS: [&str; 8] =
    ["", "apps", "batch", "example.com", "rbac.authorization.k8s.io", "*", "extensions", "none"];
const ASKED_RESOURCES: [&str; 10] =
    ["pods", "secrets", "configmaps", "deployments", "jobs", "widgets", "roles", "nodes", "*", "replicasets"];
const SUBRESOURCES: [&str; 7] = ["", "", "log", "exec", "scale", "status", "*"];
const ASKED_NAMES: [&str; 5] = ["", "x", "y", "w", "*"];
// Not whether the server is well, which is told to everyone here.
const ASKED_PATHS: [&str; 11] =
    ["/own", "/own/", "/own/etcd", "/api", "/api/v1", "/apis/apps", "/metrics", "/mx", "/", "/other", "own"];

/// [`KNOWN_VERBS`], and `more` behind them.
const fn known_verbs_and<const N: usize, const M: usize>(more: [&'static str; M]) -> [&'static str; N] {
    let (mut all, mut at) = ([""; N], 0);
    while at < N {
        all[at] = if at < KNOWN_VERBS.len() { KNOWN_VERBS[at] } else { more[at - KNOWN_VERBS.len()] };
        at += 1;
    }
    all
}

struct Draw(Random);

impl Draw {
    fn one<'t, T>(&self, of: &'t [T]) -> &'t T {
        &of[self.0.below(of.len() as u64) as usize]
    }

    fn chance(&self, of: u64) -> bool {
        self.0.below(of) == 0
    }

    fn some(&self, of: &[&str], most: u64) -> Vec<String> {
        let count = 1 + self.0.below(most);
        (0..count).map(|_| (*self.one(of)).to_owned()).collect()
    }

    fn rule(&self, of_cluster: bool) -> Value {
        if of_cluster && self.chance(4) {
            return json!({ "verbs": self.some(&PATH_VERBS, 2), "nonResourceURLs": self.some(&PATHS, 2) });
        }
        let mut rule = json!({
            "verbs": self.some(&VERBS, 3), "apiGroups": self.some(&GROUPS, 2), "resources": self.some(&RESOURCES, 3),
        });
        if self.chance(3) {
            rule["resourceNames"] = json!(self.some(&NAMES, 2));
        }
        rule
    }

    fn rules(&self, of_cluster: bool) -> Vec<Value> {
        (0..self.0.below(4)).map(|_| self.rule(of_cluster)).collect()
    }
}

/// The path of a collection of roles or bindings; of the cluster where the namespace is empty.
pub fn path(namespace: &str, resource: &str) -> String {
    match namespace {
        "" => format!("/apis/{GROUP}/v1/{resource}"),
        namespace => format!("/apis/{GROUP}/v1/namespaces/{namespace}/{resource}"),
    }
}

impl Policy {
    /// Two roles of the cluster, one that gathers, two of namespaces; six bindings to them, and to one that
    /// is not there; users, groups and service accounts of its own.
    pub fn draw(seed: u64) -> Policy {
        let draw = Draw(Random::seeded(seed.wrapping_mul(7_919) + 32));
        let mut objects = Vec::new();
        let named = |name: &str| json!({ "name": name });
        let mut roles: Vec<(&str, &str, String)> = Vec::new();
        for at in 0..2 {
            let name = format!("p{seed}-cluster-{at}");
            let role = json!({ "metadata": named(&name), "rules": draw.rules(true) });
            objects.push((path("", "clusterroles"), role));
            roles.push(("", "ClusterRole", name));
        }
        let gathering = format!("p{seed}-gathering");
        objects.push((path("", "clusterroles"), json!({
            "metadata": named(&gathering), "rules": draw.rules(true),
            "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { "rights.example.com/p": seed.to_string() } }] },
        })));
        roles.push(("", "ClusterRole", gathering));
        for at in 0..2 {
            let (namespace, name) = (*draw.one(&NAMESPACES), format!("p{seed}-role-{at}"));
            objects.push((
                path(namespace, "roles"),
                json!({ "metadata": named(&name), "rules": draw.rules(false) }),
            ));
            roles.push((namespace, "Role", name));
        }
        roles.push(("", "ClusterRole", format!("p{seed}-none")));
        let (users, subjects) = people(seed);
        for at in 0..6 {
            let (namespace, kind, role) = draw.one(&roles).clone();
            let namespace = match kind {
                "ClusterRole" if draw.chance(2) => "",
                "ClusterRole" => *draw.one(&NAMESPACES),
                _ => namespace,
            };
            let count = 1 + draw.0.below(2);
            let subjects: Vec<&Value> = (0..count).map(|_| draw.one(&subjects)).collect();
            let resource = if namespace.is_empty() { "clusterrolebindings" } else { "rolebindings" };
            let binding = json!({
                "metadata": named(&format!("p{seed}-binding-{at}")), "subjects": subjects,
                "roleRef": { "apiGroup": GROUP, "kind": kind, "name": role },
            });
            objects.push((path(namespace, resource), binding));
        }
        Policy { seed, objects, users }
    }

    pub fn users(&self) -> &[ActsAs] {
        &self.users
    }

    /// Questions about its users, from the seed of the policy.
    pub fn questions(&self, count: usize) -> Vec<Question> {
        let draw = Draw(Random::seeded(self.seed.wrapping_mul(104_729) + 1));
        let rules: Vec<&Value> = self.objects.iter().flat_map(|(_, object)| rules_of(object)).collect();
        let drawn = |_| {
            let user = draw.one(&self.users);
            // Every other one is about what some role allows, or nearly.
            match rules.is_empty() || draw.chance(2) {
                true => question(&draw, user),
                false => question_of(&draw, user, draw.one::<&Value>(&rules)),
            }
        };
        (0..count).map(drawn).collect()
    }
}

fn rules_of(object: &Value) -> impl Iterator<Item = &Value> {
    object["rules"].as_array().into_iter().flatten()
}

/// A question that the rule allows, unless one part of it is changed.
fn question_of(draw: &Draw, user: &ActsAs, rule: &Value) -> Question {
    let one = |list: &str| {
        let all: Vec<&str> = rule[list].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if all.is_empty() { "" } else { *draw.one(&all) }
    };
    let user = user.clone();
    let verb = if draw.chance(6) { *draw.one(&ASKED_VERBS) } else { one("verbs") };
    if rule["nonResourceURLs"].is_array() {
        let path = one("nonResourceURLs").replace('*', "x");
        return Question {
            user,
            attributes: ("nonResourceAttributes", json!({ "path": path, "verb": verb })),
        };
    }
    let (resource, subresource) = one("resources").split_once('/').unwrap_or((one("resources"), ""));
    let mut attributes = Map::new();
    for (name, text) in [
        ("verb", verb),
        ("group", if draw.chance(6) { *draw.one(&ASKED_GROUPS) } else { one("apiGroups") }),
        ("resource", resource),
        ("subresource", if draw.chance(6) { *draw.one(&SUBRESOURCES) } else { subresource }),
        ("name", if draw.chance(6) { *draw.one(&ASKED_NAMES) } else { one("resourceNames") }),
        ("namespace", *draw.one(&["", "rights-a", "rights-b", "rights-c"])),
    ] {
        if !text.is_empty() {
            attributes.insert(name.to_owned(), json!(text));
        }
    }
    Question { user, attributes: ("resourceAttributes", Value::Object(attributes)) }
}

/// The people of a policy, and how bindings name them.
fn people(seed: u64) -> (Vec<ActsAs>, Vec<Value>) {
    let acts = |name: String, groups: &[String]| ActsAs { name, groups: groups.to_vec() };
    let (user, other) = (format!("p{seed}-user"), format!("p{seed}-other"));
    let (group, elsewhere) = (format!("p{seed}-group"), format!("p{seed}-groups"));
    let account = format!("p{seed}-account");
    let of_accounts = |namespace: &str| {
        vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
    };
    let users = vec![
        acts(user.clone(), &[]),
        acts(other.clone(), std::slice::from_ref(&group)),
        acts(format!("p{seed}-third"), &[elsewhere, group.clone()]),
        acts(format!("system:serviceaccount:rights-a:{account}"), &of_accounts("rights-a")),
        acts(format!("system:serviceaccount:rights-b:{account}"), &of_accounts("rights-b")),
    ];
    let subjects = vec![
        json!({ "apiGroup": GROUP, "kind": "User", "name": user }),
        json!({ "apiGroup": GROUP, "kind": "User", "name": other }),
        json!({ "apiGroup": GROUP, "kind": "Group", "name": group }),
        json!({ "kind": "ServiceAccount", "name": account, "namespace": "rights-a" }),
        json!({ "kind": "ServiceAccount", "name": account, "namespace": "rights-b" }),
        json!({ "apiGroup": GROUP, "kind": "User", "name": format!("system:serviceaccount:rights-a:{account}") }),
    ];
    (users, subjects)
}

fn question(draw: &Draw, user: &ActsAs) -> Question {
    let user = user.clone();
    if draw.chance(5) {
        let attributes = json!({ "path": draw.one(&ASKED_PATHS), "verb": draw.one(&PATH_VERBS) });
        return Question { user, attributes: ("nonResourceAttributes", attributes) };
    }
    let mut attributes = Map::new();
    let namespace = if draw.chance(4) { "" } else { *draw.one(&NAMESPACES) };
    for (name, text) in [
        ("verb", *draw.one(&ASKED_VERBS)),
        ("group", *draw.one(&ASKED_GROUPS)),
        ("resource", *draw.one(&ASKED_RESOURCES)),
        ("subresource", *draw.one(&SUBRESOURCES)),
        ("name", *draw.one(&ASKED_NAMES)),
        ("namespace", namespace),
    ] {
        if !text.is_empty() {
            attributes.insert(name.to_owned(), json!(text));
        }
    }
    Question { user, attributes: ("resourceAttributes", Value::Object(attributes)) }
}

/// Whom Kubernetes has roles for.
pub fn own_users() -> Vec<ActsAs> {
    let authenticated = "system:authenticated";
    let acts = |name: &str, groups: &[&str]| ActsAs {
        name: name.to_owned(),
        groups: groups.iter().map(ToString::to_string).collect(),
    };
    let account = |name: &str| {
        let groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system", authenticated];
        acts(&format!("system:serviceaccount:kube-system:{name}"), &groups)
    };
    let mut users = vec![
        acts("ann", &[authenticated]),
        acts("system:anonymous", &["system:unauthenticated"]),
        acts("root", &["system:masters", authenticated]),
        acts("watcher", &["system:monitoring", authenticated]),
        acts("system:kube-controller-manager", &[authenticated]),
        acts("system:kube-scheduler", &[authenticated]),
        acts("system:kube-proxy", &[authenticated]),
        acts("system:node:n1", &["system:nodes", authenticated]),
        acts("system:node:", &["system:nodes", authenticated]),
        acts("system:node:n1", &[authenticated]),
        acts("boot", &["system:bootstrappers", authenticated]),
        acts("system:serviceaccount:rights-a:any", &["system:serviceaccounts", authenticated]),
    ];
    users.extend(
        ["deployment-controller", "namespace-controller", "generic-garbage-collector", "node-controller"]
            .into_iter()
            .chain(["endpoint-controller", "clusterrole-aggregation-controller", "bootstrap-signer", "none"])
            .map(account),
    );
    users
}

const OWN_GROUPS: [&str; 17] = [
    "",
    "apps",
    "batch",
    "autoscaling",
    "policy",
    "rbac.authorization.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];
const OWN_RESOURCES: [&str; 30] = [
    "pods",
    "nodes",
    "secrets",
    "configmaps",
    "services",
    "endpoints",
    "events",
    "namespaces",
    "serviceaccounts",
    "persistentvolumes",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "deployments",
    "replicasets",
    "statefulsets",
    "daemonsets",
    "jobs",
    "cronjobs",
    "leases",
    "endpointslices",
    "csinodes",
    "csidrivers",
    "volumeattachments",
    "resourceslices",
    "resourceclaims",
    "runtimeclasses",
    "certificatesigningrequests",
    "tokenreviews",
    "subjectaccessreviews",
    "clusterroles",
];
const OWN_SUBRESOURCES: [&str; 11] =
    ["", "", "", "", "status", "scale", "token", "eviction", "binding", "log", "approval"];
const OWN_PATHS: [&str; 10] = [
    "/api",
    "/api/v1",
    "/apis",
    "/apis/apps",
    "/own",
    "/metrics",
    "/metrics/slis",
    "/openapi/v2",
    "/openapi/v3/x",
    "/logs",
];

/// Questions about the roles that Kubernetes has of its own, and about nodes.
pub fn own_questions(seed: u64, count: usize) -> Vec<Question> {
    let draw = Draw(Random::seeded(seed));
    let users = own_users();
    let of_own = |_| {
        let user = draw.one(&users).clone();
        if draw.chance(8) {
            let attributes = json!({ "path": draw.one(&OWN_PATHS), "verb": draw.one(&PATH_VERBS) });
            return Question { user, attributes: ("nonResourceAttributes", attributes) };
        }
        let mut attributes = Map::new();
        let namespaces = ["", "kube-system", "kube-public", "kube-node-lease", "rights-a"];
        let names = ["", "", "n1", "n2", "own", "other", "x", "kube-root-ca.crt"];
        for (name, text) in [
            ("verb", *draw.one(&ASKED_VERBS)),
            ("group", *draw.one(&OWN_GROUPS)),
            ("resource", *draw.one(&OWN_RESOURCES)),
            ("subresource", *draw.one(&OWN_SUBRESOURCES)),
            ("name", *draw.one(&names)),
            ("namespace", *draw.one(&namespaces)),
        ] {
            if !text.is_empty() {
                attributes.insert(name.to_owned(), json!(text));
            }
        }
        if draw.chance(6) {
            let value = draw.one(&["n1", "n2", ""]);
            let selector =
                json!({ "requirements": [{ "key": "spec.nodeName", "operator": "In", "values": [value] }] });
            attributes.insert("fieldSelector".to_owned(), selector);
        }
        Question { user, attributes: ("resourceAttributes", Value::Object(attributes)) }
    };
    (0..count).map(of_own).collect()
}

impl Question {
    /// The review that asks it.
    pub fn review(&self) -> Value {
        let ActsAs { name, groups } = &self.user;
        let (kind, attributes) = &self.attributes;
        json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": { "user": name, "groups": groups, *kind: attributes },
        })
    }
}

/// The status of a review, as two servers agree on it: which of several bindings is named is chance, and so
/// is the order of roles that are not there.
pub fn agreed(status: &Value) -> Value {
    let mut status = status.clone();
    let reason = status["reason"].as_str().unwrap_or_default().to_owned();
    if reason.starts_with("RBAC: allowed by") {
        status["reason"] = json!("RBAC: allowed");
    } else if let Some((before, list)) =
        reason.strip_suffix(']').and_then(|reason| reason.split_once("RBAC: ["))
    {
        let mut all: Vec<&str> = list.split(", ").collect();
        all.sort_unstable();
        status["reason"] = json!(format!("{before}RBAC: [{}]", all.join(", ")));
    }
    status
}

/// The rules of a SelfSubjectRulesReview as a set: their order, and how often each is told, is chance.
pub fn agreed_rules(status: &Value) -> Value {
    let mut status = status.clone();
    for list in ["resourceRules", "nonResourceRules"] {
        let mut all: Vec<Value> = status[list].as_array().cloned().unwrap_or_default();
        all.sort_by_key(Value::to_string);
        all.dedup();
        status[list] = Value::Array(all);
    }
    let sorted = status["evaluationError"].as_str().and_then(|error| {
        let mut all: Vec<&str> = error.strip_prefix('[')?.strip_suffix(']')?.split(", ").collect();
        all.sort_unstable();
        Some(all.join(", "))
    });
    if let Some(sorted) = sorted {
        status["evaluationError"] = json!(sorted);
    }
    status
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn policies_have_every_kind_of_rule_subject_and_binding() {
        let policies: Vec<Policy> = (0..200).map(Policy::draw).collect();
        let text = policies
            .iter()
            .flat_map(|policy| &policy.objects)
            .map(|(path, object)| format!("{path} {object}\n"));
        let text: String = text.collect();
        for part in [
            "nonResourceURLs",
            "resourceNames",
            "\"pods/log\"",
            "\"*/scale\"",
            "\"*\"",
            "aggregationRule",
            "\"kind\":\"Group\"",
            "\"kind\":\"ServiceAccount\"",
            "\"kind\":\"User\"",
            "-none\"",
            "\"kind\":\"Role\"",
            "/clusterrolebindings",
            "/rolebindings",
            "/roles",
            "/clusterroles",
        ] {
            assert!(text.contains(part), "{part}");
        }
        let again = Policy::draw(7);
        assert_eq!(format!("{:?}", again.objects), format!("{:?}", policies[7].objects));
        let asked: BTreeSet<String> =
            policies[7].questions(50).iter().map(|question| question.review().to_string()).collect();
        assert!(asked.len() > 40);
    }

    #[test]
    fn what_is_chance_is_not_compared() {
        let status = |reason: &str| agreed(&json!({ "allowed": true, "reason": reason }));
        assert_eq!(
            status("RBAC: allowed by ClusterRoleBinding \"a\""),
            status("RBAC: allowed by RoleBinding \"b\"")
        );
        assert_eq!(status("RBAC: [b not found, a not found]"), status("RBAC: [a not found, b not found]"));
        assert_ne!(status("x"), status("y"));
    }
}
