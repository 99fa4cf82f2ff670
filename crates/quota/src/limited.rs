//! What may be used only where a quota limits it: the configuration of the plugin ResourceQuota.
//!
//! In: a `ResourceQuotaConfiguration`. Out: what a write uses that has to be in some quota.
//!
//! Source: apiserver v0.36.3 `admission/plugin/resourcequota/{apis/resourcequota,controller.go}`.

use std::collections::BTreeSet;
use std::fmt;

use forebay_apimachinery::json::weight::{self, MEMBER_BYTES};
use forebay_strategy::value::{Members, text, texts};
use serde_json::Value;

use crate::resource_quota::{QuotaScope, Selects};
use crate::subject::QuotaSubject;

/// What is limited by default: nothing, if nobody says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitedResources(Vec<LimitedResource>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct LimitedResource {
    group: String,
    resource: String,
    /// Parts of the names of amounts.
    contains: Vec<String>,
    scopes: Vec<QuotaScope>,
}

/// What of a write has to be in some quota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToCover {
    pub names: BTreeSet<String>,
    pub scopes: Vec<QuotaScope>,
}

impl LimitedResources {
    /// # Errors
    /// It is something else, or leaves out what it is about.
    pub fn of(configuration: &Value) -> Result<LimitedResources, String> {
        let member = |name: &str| configuration[name].as_str().unwrap_or_default();
        match (member("apiVersion"), member("kind")) {
            ("apiserver.config.k8s.io/v1", "ResourceQuotaConfiguration")
            | (
                "resourcequota.admission.k8s.io/v1beta1" | "resourcequota.admission.k8s.io/v1alpha1",
                "Configuration",
            ) => {}
            (version, kind) => return Err(format!("no configuration of ResourceQuota: {version}, {kind}")),
        }
        only(configuration, "", &["apiVersion", "kind", "limitedResources"])?;
        let mut limited = Vec::new();
        for (at, value) in configuration["limitedResources"].as_array().into_iter().flatten().enumerate() {
            let path = format!("limitedResources[{at}].");
            only(value, &path, &["apiGroup", "resource", "matchContains", "matchScopes"])?;
            let empty = Members::new();
            let members = value.as_object().unwrap_or(&empty);
            if text(members, "resource").is_empty() {
                return Err(format!("{path}resource: Required value"));
            }
            let scopes = value["matchScopes"].as_array().into_iter().flatten().filter_map(Value::as_object);
            limited.push(LimitedResource {
                group: text(members, "apiGroup").to_owned(),
                resource: text(members, "resource").to_owned(),
                contains: texts(members, "matchContains").map(String::from).collect(),
                scopes: scopes.map(QuotaScope::of).collect(),
            });
        }
        Ok(LimitedResources(limited))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What of `subject`, of a resource, has to be in some quota.
    pub fn of_subject(&self, group: &str, resource: &str, subject: &QuotaSubject) -> ToCover {
        let mut to_cover = ToCover::default();
        for limited in &self.0 {
            let scopes = limited.scopes.iter();
            to_cover
                .scopes
                .extend(scopes.filter(|scope| subject.is_in(std::slice::from_ref(scope))).cloned());
            if (limited.group.as_str(), limited.resource.as_str()) == (group, resource) {
                // Few: what an administrator limits.
                let is_limited =
                    |name: &str| limited.contains.iter().any(|part| name.contains(part.as_str()));
                // What it uses nothing of needs no quota.
                let used = subject.usage.iter().filter(|(_, amount)| amount.nanos > 0);
                let names = used.map(|(name, _)| name).filter(|name| is_limited(name));
                to_cover.names.extend(names.map(String::from));
            }
        }
        to_cover
    }
}

impl ToCover {
    /// What it takes.
    pub fn bytes(&self) -> usize {
        let name = |name: &String| MEMBER_BYTES + weight::text(name.len());
        self.names.iter().map(name).sum::<usize>() + self.scopes.iter().map(QuotaScope::bytes).sum::<usize>()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.scopes.is_empty()
    }
}

/// As Go prints it: `{PriorityClass In [high low]}`.
impl fmt::Display for QuotaScope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operator, values) = match &self.is {
            Selects::Exists => ("Exists", &[][..]),
            Selects::DoesNotExist => ("DoesNotExist", &[][..]),
            Selects::In(values) => ("In", values.as_slice()),
            Selects::NotIn(values) => ("NotIn", values.as_slice()),
        };
        write!(out, "{{{} {operator} [{}]}}", self.name, values.join(" "))
    }
}

fn only(of: &Value, path: &str, known: &[&str]) -> Result<(), String> {
    // Few: the fields of a configuration.
    let unknown = of.as_object().into_iter().flatten().find(|(name, _)| !known.contains(&name.as_str()));
    unknown.map_or(Ok(()), |(name, _)| Err(format!("unknown field \"{path}{name}\"")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{DeviceClasses, Evaluator};

    fn limited(resources: Value) -> Result<LimitedResources, String> {
        LimitedResources::of(&json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration",
            "limitedResources": resources,
        }))
    }

    #[test]
    fn amounts_are_limited_by_parts_of_their_names_and_pods_by_scopes() {
        let limited = limited(json!([
            {"resource": "pods", "matchContains": ["cpu"],
             "matchScopes": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high", "top"]}]},
            {"apiGroup": "apps", "resource": "deployments", "matchContains": [""]},
        ]))
        .expect("a configuration");
        let pod = json!({"spec": {"priorityClassName": "high", "containers": [
            {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
        ]}});
        let pod = pod.as_object().expect("an object");
        let subject = QuotaSubject::of(&Evaluator::Pods, pod, &DeviceClasses::default(), 0);
        let to_cover = limited.of_subject("", "pods", &subject);
        assert_eq!(to_cover.names.iter().map(String::as_str).collect::<Vec<_>>(), ["cpu", "requests.cpu"]);
        let scopes: Vec<String> = to_cover.scopes.iter().map(ToString::to_string).collect();
        assert_eq!(scopes, ["{PriorityClass In [high top]}"]);
        assert!(limited.of_subject("batch", "jobs", &QuotaSubject::default()).is_empty());
    }

    #[test]
    fn what_an_object_uses_nothing_of_is_not_limited() {
        let limited = limited(json!([
            {"resource": "services", "matchContains": ["services.loadbalancers", "services.nodeports"]},
            {"resource": "pods", "matchContains": ["requests.cpu"]},
        ]))
        .expect("a configuration");
        let names = |resource: &str, object: Value| {
            let evaluator = Evaluator::of("", resource).expect("counted");
            let object = object.as_object().expect("an object");
            let subject = QuotaSubject::of(&evaluator, object, &DeviceClasses::default(), 0);
            Vec::from_iter(limited.of_subject("", resource, &subject).names)
        };
        let service = |kind: &str| json!({"spec": {"type": kind, "ports": [{"port": 80}]}});
        assert_eq!(names("services", service("ClusterIP")), [""; 0]);
        assert_eq!(names("services", service("NodePort")), ["services.nodeports"]);
        assert_eq!(
            names("services", service("LoadBalancer")),
            ["services.loadbalancers", "services.nodeports"]
        );
        let pod = |cpu: &str| json!({"spec": {"containers": [{"resources": {"requests": {"cpu": cpu}}}]}});
        assert_eq!(names("pods", pod("0")), [""; 0]);
        assert_eq!(names("pods", pod("1m")), ["requests.cpu"]);
    }

    #[test]
    fn what_says_nothing_is_refused() {
        assert_eq!(
            limited(json!([{"apiGroup": "a"}])),
            Err("limitedResources[0].resource: Required value".into())
        );
        assert_eq!(limited(json!([{"of": "a"}])), Err("unknown field \"limitedResources[0].of\"".into()));
        assert!(LimitedResources::of(&json!({"kind": "Other"})).is_err());
        assert!(limited(Value::Null).expect("nothing").is_empty());
    }
}
