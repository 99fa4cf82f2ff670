//! A case: configurations, and what is written under them.
//!
//! In: a seed. Out: a [`HookCase`], the same each time. Never: a look at a server.

use std::cell::Cell;

use forebay_rt::Random;
use http::Method;
use serde_json::{Value, json};

use super::answers::ANSWERS;

/// See the module's doc.
#[derive(Clone, Debug)]
pub struct HookCase {
    /// That of its namespace, and what the names of its webhooks begin with.
    pub name: String,
    pub labels: Value,
    /// `mutating` or `validating`, and the configuration, in which `$HOOK` and `$CA` stand for the webhook.
    pub configurations: Vec<(&'static str, Value)>,
    pub steps: Vec<HookStep>,
}

/// One request.
#[derive(Clone, Debug)]
pub struct HookStep {
    pub method: Method,
    /// With its query.
    pub path: String,
    pub content_type: &'static str,
    pub body: Value,
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Kinds that are written: path below the API's root, plural, `apiVersion`, kind.
const KINDS: [(&str, &str, &str, &str); 4] = [
    ("/api/v1", "configmaps", "v1", "ConfigMap"),
    ("/apis/apps/v1", "deployments", "apps/v1", "Deployment"),
    ("/apis/autoscaling/v1", "horizontalpodautoscalers", "autoscaling/v1", "HorizontalPodAutoscaler"),
    ("/apis/coordination.k8s.io/v1", "leases", "coordination.k8s.io/v1", "Lease"),
];

/// Rules: groups, versions, resources.
const RULES: [([&str; 1], [&str; 1], &[&str]); 9] = [
    (["*"], ["*"], &["*/*"]),
    (["*"], ["*"], &["*"]),
    ([""], ["v1"], &["configmaps"]),
    (["apps"], ["v1"], &["deployments", "deployments/*"]),
    (["apps"], ["v1"], &["deployments/scale", "deployments/status"]),
    (["autoscaling"], ["v1"], &["horizontalpodautoscalers"]),
    // Another version than is written: by its match policy it is asked in that, or not at all.
    (["autoscaling"], ["v2"], &["horizontalpodautoscalers"]),
    (["coordination.k8s.io"], ["v1"], &["leases"]),
    (["*"], ["v1"], &["configmaps", "deployments", "leases"]),
];

const CONDITIONS: [&str; 8] = [
    "true",
    "false",
    "request.operation == 'CREATE'",
    "object.metadata.name.startsWith('a')",
    "oldObject != null",
    "has(object.metadata.labels) && object.metadata.labels['tier'] == 'gold'",
    "request.dryRun || request.resource.resource == 'configmaps'",
    "!has(request.subResource) || request.subResource == ''",
];

/// The case of `seed`.
pub fn draw(seed: u64) -> HookCase {
    Draw {
        random: Random::seeded(seed),
        name: format!("h{seed}"),
        refuses: Cell::new(false),
        renames: Cell::new(false),
    }
    .case()
}

struct Draw {
    random: Random,
    name: String,
    /// Whether one of those that validate does not let everything pass.
    refuses: Cell<bool>,
    /// Whether one of them gives objects another name: an apply that creates is not sent then, as
    /// kube-apiserver stores its object by the name in the path with another one in it.
    renames: Cell<bool>,
}

impl Draw {
    fn below(&self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn percent(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn one<T: Clone>(&self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    fn case(self) -> HookCase {
        let mut labels = json!({"case": self.name});
        if self.percent(50) {
            labels["tier"] = json!(self.one(&["gold", "tin"]));
        }
        let mut configurations = Vec::new();
        for sort in ["mutating", "validating"] {
            for at in 0..self.below(3) {
                configurations.push((sort, self.configuration(sort, at)));
            }
        }
        if configurations.is_empty() {
            configurations.push(("mutating", self.configuration("mutating", 0)));
        }
        let steps = self.steps();
        HookCase { name: self.name, labels, configurations, steps }
    }

    fn configuration(&self, sort: &str, at: usize) -> Value {
        let hooks: Vec<Value> = (0..1 + self.below(3)).map(|hook| self.hook(sort, at, hook)).collect();
        let kind = if sort == "mutating" { "Mutating" } else { "Validating" };
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}WebhookConfiguration"),
            "metadata": {"name": format!("{}-{sort}-{at}", self.name)}, "webhooks": hooks,
        })
    }

    fn hook(&self, sort: &str, configuration: usize, at: usize) -> Value {
        let who = format!("{}-{}{configuration}{at}", self.name, &sort[..1]);
        let mut answer = self.answer();
        // Those that validate are asked at once: of two refusals either may come first.
        if sort == "validating" && !matches!(answer, "allow" | "warn") && self.refuses.replace(true) {
            answer = "allow";
        }
        self.renames.set(self.renames.get() || answer == "rename");
        let mut own = json!({"matchLabels": {"case": self.name}});
        if self.percent(15) {
            let operator = self.one(&["Exists", "DoesNotExist"]);
            own["matchExpressions"] = json!([{"key": "tier", "operator": operator}]);
        }
        let mut hook = json!({
            "name": format!("{}{configuration}{at}.example.com", &sort[..1]),
            "clientConfig": {"url": format!("$HOOK/{who}/{answer}"), "caBundle": "$CA"},
            "rules": (0..1 + self.below(2)).map(|_| self.rule()).collect::<Vec<Value>>(),
            "namespaceSelector": own,
            "admissionReviewVersions": self.one(&[json!(["v1"]), json!(["v1", "v1beta1"]), json!(["v1beta1"])]),
            "sideEffects": self.one(&["None", "None", "NoneOnDryRun"]),
            "timeoutSeconds": if answer == "hang" { 1 } else { self.one(&[5, 10, 30]) },
        });
        for (name, percent, values) in [
            ("failurePolicy", 60, ["Fail", "Ignore"]),
            ("matchPolicy", 40, ["Exact", "Equivalent"]),
            ("reinvocationPolicy", if sort == "mutating" { 50 } else { 0 }, ["Never", "IfNeeded"]),
        ] {
            if self.percent(percent) {
                hook[name] = json!(self.one(&values));
            }
        }
        if self.percent(25) {
            hook["objectSelector"] = self.one(&[
                json!({"matchLabels": {"tier": "gold"}}),
                json!({"matchExpressions": [{"key": "made", "operator": "DoesNotExist"}]}),
                json!({"matchExpressions": [{"key": "made", "operator": "In", "values": ["here"]}]}),
            ]);
        }
        if self.percent(25) {
            let conditions = (0..1 + self.below(2))
                .map(|at| json!({"name": format!("c{at}"), "expression": self.one(&CONDITIONS)}));
            hook["matchConditions"] = conditions.collect();
        }
        hook
    }

    /// Most agree.
    fn answer(&self) -> &'static str {
        let all: usize = ANSWERS.iter().map(|(_, weight)| weight).sum();
        let mut left = self.below(all);
        for (name, weight) in ANSWERS {
            if left < weight {
                return name;
            }
            left -= weight;
        }
        ANSWERS[0].0
    }

    fn rule(&self) -> Value {
        let (groups, versions, resources) = self.one(&RULES);
        let operations = self.one(&[
            json!(["*"]),
            json!(["CREATE"]),
            json!(["CREATE", "UPDATE"]),
            json!(["UPDATE", "DELETE"]),
            json!(["DELETE"]),
        ]);
        let mut rule = json!({
            "apiGroups": groups, "apiVersions": versions, "resources": resources, "operations": operations,
        });
        if self.percent(20) {
            rule["scope"] = json!(self.one(&["Namespaced", "Cluster", "*"]));
        }
        rule
    }

    fn steps(&self) -> Vec<HookStep> {
        let (root, plural, api_version, kind) = self.one(&KINDS);
        let all = format!("{root}/namespaces/{}/{plural}", self.name);
        let names: Vec<String> =
            (0..1 + self.below(2)).map(|at| format!("{}{at}", self.one(&["a", "b"]))).collect();
        let mut steps = Vec::new();
        for name in &names {
            let created = self.object(api_version, kind, name);
            let query = self.one(&["", "", "", "?dryRun=All", "?fieldManager=m&fieldValidation=Strict"]);
            steps.push(step(Method::POST, format!("{all}{query}"), JSON, created));
        }
        for _ in 0..1 + self.below(4) {
            let one = format!("{all}/{}", self.one(&names));
            let query = self.one(&["", "", "?dryRun=All"]);
            steps.push(match self.below(8) {
                0 | 1 => {
                    let change = json!({"metadata": {"labels": {"tier": self.one(&["gold", "tin"])}}});
                    step(Method::PATCH, format!("{one}{query}"), MERGE, change)
                }
                // Of other kinds none is put without a resourceVersion: ours says so before it asks anybody.
                2 if matches!(plural, "configmaps" | "deployments") => {
                    let name = &one[all.len() + 1..];
                    step(Method::PUT, format!("{one}{query}"), JSON, self.object(api_version, kind, name))
                }
                3 if !self.renames.get() => {
                    let path = format!("{one}?fieldManager=s&force=true");
                    step(Method::PATCH, path, APPLY, self.object(api_version, kind, &one[all.len() + 1..]))
                }
                4 if plural == "deployments" => {
                    let replicas = json!({"spec": {"replicas": self.below(4)}});
                    step(Method::PATCH, format!("{one}/scale{query}"), MERGE, replicas)
                }
                5 if plural == "deployments" => {
                    let status = json!({"status": {"observedGeneration": self.below(4)}});
                    step(Method::PATCH, format!("{one}/status{query}"), MERGE, status)
                }
                6 => step(Method::DELETE, all.clone(), JSON, Value::Null),
                _ => step(Method::DELETE, format!("{one}{query}"), JSON, Value::Null),
            });
        }
        steps.push(step(Method::GET, all, JSON, Value::Null));
        steps
    }

    fn object(&self, api_version: &str, kind: &str, name: &str) -> Value {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        if self.percent(60) {
            object["metadata"]["labels"] = json!({"tier": self.one(&["gold", "tin"])});
        }
        match kind {
            "ConfigMap" => object["data"] = json!({"k": self.one(&["v", "w"])}),
            "Deployment" => {
                let labels = json!({"app": "a"});
                let pod = json!({"containers": [{"name": "c", "image": self.one(&["i", "j"])}]});
                object["spec"] = json!({
                    "replicas": self.below(3), "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": pod},
                });
            }
            "HorizontalPodAutoscaler" => {
                object["spec"] = json!({
                    "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
                    "maxReplicas": 1 + self.below(4), "targetCPUUtilizationPercentage": 50,
                });
            }
            _ => object["spec"] = json!({"holderIdentity": self.one(&["x", "y"]), "leaseDurationSeconds": 5}),
        }
        object
    }
}

fn step(method: Method, path: String, content_type: &'static str, body: Value) -> HookStep {
    HookStep { method, path, content_type, body }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_draws_the_same_case_and_all_cases_have_all_answers() {
        assert_eq!(format!("{:?}", draw(7)), format!("{:?}", draw(7)));
        let all: String = (0..300).map(|seed| format!("{:?}", draw(seed).configurations)).collect();
        let missing: BTreeSet<&str> = ANSWERS
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| !all.contains(&format!("/{name}\"")))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
