//! Policies of RBAC and questions about rights, drawn from a seed.
//!
//! In: a seed; of upstream's own policy, its roles and bindings. Out: roles and bindings of one namespace and
//! of the cluster, with every kind of rule, and questions of which a good part is allowed. Never: a look at
//! a server, a policy that a server refuses.

use forebay_rt::Random;
use serde_json::{Value, json};

const GROUP: &str = "rbac.authorization.k8s.io";
const VERBS: [&str; 9] =
    ["get", "list", "watch", "create", "update", "delete", "deletecollection", "impersonate", "frob"];
const GROUPS: [&str; 4] = ["", "apps", "batch", "example.com"];
const RESOURCES: [&str; 8] =
    ["pods", "pods/log", "pods/exec", "deployments", "deployments/scale", "configmaps", "nodes", "widgets"];
const NAMES: [&str; 3] = ["a", "b", "c"];
const PATHS: [&str; 7] = ["/metrics", "/healthz/etcd", "/logs", "/logs/a", "/logs/a/b", "/debug", "/x*y"];

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RightsUser {
    pub name: String,
    pub groups: Vec<String>,
}

/// A policy of its own users, groups and namespace, and questions about it.
#[derive(Clone, Debug)]
pub struct RightsPolicy {
    pub namespace: String,
    /// Path of the collection, object; roles first.
    pub objects: Vec<(String, Value)>,
    pub users: Vec<RightsUser>,
    /// Specs of SubjectAccessReviews.
    pub questions: Vec<Value>,
}

struct Draw(Random);

impl Draw {
    fn below(&self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    fn percent(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn one<T: Clone>(&self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    fn some(&self, all: &[&str], wild: &[&str]) -> Vec<String> {
        let mut texts: Vec<String> = (0..1 + self.below(3)).map(|_| self.one(all).to_owned()).collect();
        if self.percent(15) {
            texts.push(self.one(wild).to_owned());
        }
        texts
    }

    /// - `paths`: whether it may be about paths.
    fn rule(&self, paths: bool) -> Value {
        if paths && self.percent(25) {
            let urls = self.some(&PATHS, &["*", "/logs/*", "/healthz/*", "/de*", "/metrics*"]);
            return json!({"verbs": self.some(&["get", "post"], &["*"]), "nonResourceURLs": urls});
        }
        let mut rule = json!({
            "verbs": self.some(&VERBS, &["*"]),
            "apiGroups": self.some(&GROUPS, &["*"]),
            "resources": self.some(&RESOURCES, &["*", "*/scale", "*/log", "pods/*"]),
        });
        if self.percent(30) {
            rule["resourceNames"] = json!(self.some(&NAMES, &["*", ""]));
        }
        rule
    }

    fn role(&self, name: &str, is_of_cluster: bool) -> Value {
        let rules: Vec<Value> = (0..self.below(4)).map(|_| self.rule(is_of_cluster)).collect();
        json!({"metadata": {"name": name}, "rules": rules})
    }

    fn subject(&self, prefix: &str, namespace: &str, is_of_cluster: bool) -> Value {
        match self.below(4) {
            0 => {
                json!({"apiGroup": GROUP, "kind": "User", "name": format!("{prefix}-user{}", self.below(3))})
            }
            1 => {
                json!({"apiGroup": GROUP, "kind": "Group", "name": format!("{prefix}-group{}", self.below(3))})
            }
            // One of its own namespace, which a binding of a namespace need not name.
            2 if !is_of_cluster => {
                json!({"kind": "ServiceAccount", "name": "account", "namespace": namespace})
            }
            _ => {
                json!({"kind": "ServiceAccount", "name": "account", "namespace": self.one(&[namespace, "elsewhere"])})
            }
        }
    }

    fn binding(
        &self,
        prefix: &str,
        namespace: &str,
        name: &str,
        (kind, role): (&str, &str),
        is_of_cluster: bool,
    ) -> Value {
        let subjects: Vec<Value> =
            (0..1 + self.below(3)).map(|_| self.subject(prefix, namespace, is_of_cluster)).collect();
        json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
            "subjects": subjects,
        })
    }

    fn user(&self, prefix: &str, namespace: &str) -> RightsUser {
        let groups = (0..self.below(3)).map(|_| format!("{prefix}-group{}", self.below(4))).collect();
        let name = match self.below(4) {
            0 => format!("system:serviceaccount:{namespace}:account"),
            1 => "system:serviceaccount:elsewhere:account".to_owned(),
            _ => format!("{prefix}-user{}", self.below(4)),
        };
        RightsUser { name, groups }
    }

    fn question(&self, user: &RightsUser, namespace: &str) -> Value {
        let mut spec = json!({"user": user.name, "groups": user.groups});
        if self.percent(20) {
            let path = self.one(&[
                "/metrics",
                "/metrics/a",
                "/healthz/etcd",
                "/logs",
                "/logs/",
                "/logs/a",
                "/debug/x",
                "/x",
                "",
                "/x*y",
            ]);
            spec["nonResourceAttributes"] = json!({"path": path, "verb": self.one(&["get", "post", "*"])});
            return spec;
        }
        let what = self.one(&RESOURCES);
        let (resource, subresource) =
            what.split_once('/').unwrap_or((what, self.one(&["", "", "log", "scale"])));
        let mut of = json!({
            "verb": self.one(&VERBS), "group": self.one(&GROUPS), "version": "v1", "resource": resource,
            "subresource": subresource,
            "namespace": self.one(&[namespace, namespace, namespace, "", "default"]),
            "name": self.one(&["", "a", "b", "d", "*"]),
        });
        if self.percent(5) {
            of["verb"] = json!("*");
        }
        if self.percent(5) {
            of["resource"] = json!("*");
        }
        spec["resourceAttributes"] = of;
        spec
    }
}

/// The policy of `seed`, with so many questions.
pub fn draw(seed: u64, questions: usize) -> RightsPolicy {
    let draw = Draw(Random::seeded(seed));
    let namespace = format!("rights-{seed}");
    let prefix = &namespace;
    let (cluster, own) = (format!("/apis/{GROUP}/v1"), format!("/apis/{GROUP}/v1/namespaces/{namespace}"));
    let mut objects = Vec::new();
    for at in 0..3 {
        objects.push((format!("{cluster}/clusterroles"), draw.role(&format!("{prefix}-role{at}"), true)));
        objects.push((format!("{own}/roles"), draw.role(&format!("role{at}"), false)));
    }
    for at in 0..4 {
        // The fourth is not there.
        let role = format!("{prefix}-role{}", draw.below(4));
        let binding =
            draw.binding(prefix, &namespace, &format!("{prefix}-binding{at}"), ("ClusterRole", &role), true);
        objects.push((format!("{cluster}/clusterrolebindings"), binding));
        let binding = match draw.percent(50) {
            true => draw.binding(prefix, &namespace, &format!("binding{at}"), ("ClusterRole", &role), false),
            false => {
                let role = format!("role{}", draw.below(4));
                draw.binding(prefix, &namespace, &format!("binding{at}"), ("Role", &role), false)
            }
        };
        objects.push((format!("{own}/rolebindings"), binding));
    }
    let users: Vec<RightsUser> = (0..6).map(|_| draw.user(prefix, &namespace)).collect();
    let questions = (0..questions).map(|_| draw.question(&draw.one(&users), &namespace)).collect();
    RightsPolicy { namespace, objects, users, questions }
}

/// Questions about upstream's own policy: who is bound to a role asks for what it allows, or for something
/// near it.
///
/// - `roles`, `bindings`: items of lists, of the cluster and of namespaces.
pub fn draw_of_bootstrap(seed: u64, count: usize, roles: &[Value], bindings: &[Value]) -> Vec<Value> {
    let draw = Draw(Random::seeded(seed));
    let rules: Vec<&Value> =
        roles.iter().flat_map(|role| role["rules"].as_array().into_iter().flatten()).collect();
    let subjects: Vec<&Value> =
        bindings.iter().flat_map(|binding| binding["subjects"].as_array().into_iter().flatten()).collect();
    let one = |list: &Value| -> String {
        let texts: Vec<&str> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if texts.is_empty() { String::new() } else { draw.one(&texts).to_owned() }
    };
    let mut questions = Vec::with_capacity(count);
    while questions.len() < count {
        let (mut rule, subject) = (draw.one(&rules), draw.one(&subjects));
        let name = subject["name"].as_str().unwrap_or("");
        // Half of the time for what a role of theirs says.
        let theirs = bindings.iter().filter(|binding| {
            binding["subjects"].as_array().is_some_and(|subjects| subjects.contains(subject))
        });
        let bound: Vec<&str> = theirs.filter_map(|binding| binding["roleRef"]["name"].as_str()).collect();
        if draw.percent(60) {
            let own =
                roles.iter().filter(|role| bound.contains(&role["metadata"]["name"].as_str().unwrap_or("")));
            let own: Vec<&Value> =
                own.flat_map(|role| role["rules"].as_array().into_iter().flatten()).collect();
            if !own.is_empty() {
                rule = draw.one(&own);
            }
        }
        let mut spec = match subject["kind"].as_str() {
            Some("Group") => json!({"user": "somebody", "groups": [name]}),
            Some("ServiceAccount") => {
                let namespace = subject["namespace"].as_str().unwrap_or("");
                json!({"user": format!("system:serviceaccount:{namespace}:{name}"), "groups": ["system:authenticated"]})
            }
            _ => json!({"user": name, "groups": ["system:authenticated"]}),
        };
        let path = one(&rule["nonResourceURLs"]);
        if !path.is_empty() {
            let path = path.replace('*', draw.one(&["", "a", "a/b"]));
            spec["nonResourceAttributes"] = json!({"path": path, "verb": draw.one(&["get", "head", "post"])});
        } else {
            let resource = one(&rule["resources"]);
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource.as_str(), ""));
            let verb = if draw.percent(80) { one(&rule["verbs"]) } else { draw.one(&VERBS).to_owned() };
            spec["resourceAttributes"] = json!({
                "verb": verb, "group": one(&rule["apiGroups"]), "version": "v1", "resource": resource, "subresource": subresource,
                "namespace": draw.one(&["", "kube-system", "kube-public", "default"]), "name": one(&rule["resourceNames"]),
            });
        }
        questions.push(spec);
    }
    questions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_policy_and_questions_each_time() {
        for seed in 1..20 {
            let (one, other) = (draw(seed, 50), draw(seed, 50));
            assert_eq!(
                (&one.objects, &one.questions, &one.users),
                (&other.objects, &other.questions, &other.users)
            );
            assert_eq!(one.questions.len(), 50);
        }
        assert_ne!(draw(1, 5).questions, draw(2, 5).questions);
    }
}
