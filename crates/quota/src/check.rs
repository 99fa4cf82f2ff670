//! Whether a write fits into the quotas of its namespace, and what is used once it does.
//!
//! In: quotas as they stand, and what a write is to them. Out: the same quotas with what it adds, or why it
//! may not. Never: writes one.
//!
//! Source: apiserver v0.36.3 `admission/plugin/resourcequota/controller.go` (`CheckRequest`).

use std::collections::BTreeMap;

use crate::amounts::Amounts;
use crate::devices::DeviceClasses;
use crate::evaluator::Evaluator;
use crate::limited::ToCover;
use crate::resource_quota::ResourceQuota;
use crate::subject::QuotaSubject;
use crate::unsaid::Unsaid;

/// A write, as far as quotas look at it.
#[derive(Clone, Debug)]
pub struct Charge {
    pub evaluator: Evaluator,
    /// The write is of `status`, where what is used is counted and never refused.
    pub is_status: bool,
    pub new: QuotaSubject,
    /// What was there before; none for a create.
    pub old: Option<QuotaSubject>,
    /// What the object has to say, and does not.
    pub unsaid: Unsaid,
    /// The device classes that claims for devices are counted by; none for other resources.
    pub classes: DeviceClasses,
    /// What has to be in some quota, until it was found to be.
    pub to_cover: ToCover,
    /// What was put down for it before, when it was another change of the same object.
    pub charged: Charged,
}

/// What was put down for a write: by the name of the quota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charged(BTreeMap<String, Amounts>);

impl Charge {
    /// Whether `quota` limits what objects of this resource use.
    pub fn is_limited_by(&self, quota: &ResourceQuota) -> bool {
        self.evaluator.counts_any(&quota.hard, &self.classes)
    }

    /// What it takes.
    pub fn bytes(&self) -> usize {
        let Charge { evaluator: _, is_status: _, new, old, unsaid, classes, to_cover, charged } = self;
        let old = old.as_ref().map_or(0, QuotaSubject::bytes);
        let charged: usize = charged.0.values().map(Amounts::bytes).sum();
        new.bytes() + old + unsaid.bytes() + classes.bytes() + to_cover.bytes() + charged
    }
}

impl Charged {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is put down beside that, but for the quotas of these names.
    pub fn add(&mut self, more: Charged, except: &[String]) {
        // Few: the quotas of one namespace that somebody else wrote meanwhile.
        for (quota, amounts) in more.0.into_iter().filter(|(quota, _)| !except.contains(quota)) {
            self.0.entry(quota).or_default().add(&amounts);
        }
    }
}

/// Why a write may not, in kube-apiserver's words.
pub type QuotaRefusal = String;

/// Puts what `request` uses more down in each quota that it is in, beyond what was put down for it before.
/// Returns what that comes to.
///
/// # Errors
/// What the first quota has against it; `quotas` are as they were.
pub fn charge(quotas: &mut [ResourceQuota], request: &Charge) -> Result<Charged, QuotaRefusal> {
    let Charge { evaluator, is_status, new, old, unsaid, classes, to_cover, charged: before } = request;
    let mut within = Vec::new();
    let mut uncovered = to_cover.clone();
    for (at, quota) in quotas.iter().enumerate() {
        uncovered.scopes.retain(|scope| !has_scope(quota, &scope.name, new));
        let counted = quota.hard.only(|name, _| evaluator.counts(name, classes));
        if counted.is_empty() || !new.is_in(&quota.scopes) {
            continue;
        }
        if let Some(unsaid) = unsaid.told(|name| counted.has(name)) {
            return Err(format!("failed quota: {}: {unsaid}", quota.name));
        }
        if counted.names().any(|name| !quota.used.has(name)) {
            let names: Vec<&str> = counted.names().collect();
            return Err(format!("status unknown for quota: {}, resources: {}", quota.name, names.join(",")));
        }
        uncovered.names.retain(|name| !counted.has(name));
        within.push(at);
    }
    let negative: Vec<&str> =
        new.usage.iter().filter(|(_, amount)| amount.nanos < 0).map(|(name, _)| name).collect();
    if !negative.is_empty() {
        return Err(format!("quota usage is negative for resource(s): {}", negative.join(",")));
    }
    let adds = |quota: Option<&ResourceQuota>| {
        let is_in = |old: &&QuotaSubject| quota.is_none_or(|quota| old.is_in(&quota.scopes));
        let none = Amounts::default();
        !new.usage.beyond(old.as_ref().filter(is_in).map_or(&none, |old| &old.usage)).is_empty()
    };
    let adds_any = match within.is_empty() {
        true => !uncovered.is_empty() && adds(None),
        false => !uncovered.is_empty() && within.iter().any(|at| adds(Some(&quotas[*at]))),
    };
    if adds_any {
        return Err(insufficient(&uncovered));
    }
    let mut charged = Vec::new();
    for at in within {
        let quota = &quotas[at];
        let none = Amounts::default();
        let old = old.as_ref().filter(|old| old.is_in(&quota.scopes));
        let more = new.usage.beyond(old.map_or(&none, |old| &old.usage));
        let more = more.only(|name, _| quota.hard.has(name));
        let more = more.beyond(before.0.get(&quota.name).unwrap_or(&none));
        if more.is_empty() {
            continue;
        }
        let mut used = quota.used.clone();
        used.add(&more);
        let over = |name: &str| {
            let (used, hard) = (used.get(name), quota.hard.get(name));
            matches!((used, hard), (Some(used), Some(hard)) if used.nanos > hard.nanos)
        };
        let exceeded = more.only(|name, _| over(name));
        if !is_status && !exceeded.is_empty() {
            let of = |amounts: &Amounts| amounts.only(|name, _| exceeded.has(name));
            return Err(format!(
                "exceeded quota: {}, requested: {exceeded}, used: {}, limited: {}",
                quota.name,
                of(&quota.used),
                of(&quota.hard)
            ));
        }
        charged.push((at, used, more));
    }
    let mut put_down = Charged::default();
    for (at, used, more) in charged {
        quotas[at].used = used;
        put_down.0.insert(quotas[at].name.clone(), more);
    }
    Ok(put_down)
}

/// Whether a quota is about what is in the scope called `name`, and `subject` is in it.
fn has_scope(quota: &ResourceQuota, name: &str, subject: &QuotaSubject) -> bool {
    // Few: the scopes of one quota, asked where an administrator limits some.
    quota.scopes.iter().any(|scope| scope.name == name && subject.is_in(std::slice::from_ref(scope)))
}

fn insufficient(uncovered: &ToCover) -> QuotaRefusal {
    if !uncovered.names.is_empty() {
        let names: Vec<&str> = uncovered.names.iter().map(String::as_str).collect();
        return format!("insufficient quota to consume: {}", names.join(","));
    }
    let scopes: Vec<String> = uncovered.scopes.iter().map(ToString::to_string).collect();
    format!("insufficient quota to match these scopes: [{}]", scopes.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn quota(spec: Value, hard: Value, used: Value) -> ResourceQuota {
        let quota = json!({"metadata": {"name": "q"}, "spec": spec, "status": {"hard": hard, "used": used}});
        ResourceQuota::of(quota.as_object().expect("an object"))
    }

    fn request(resource: (&str, &str), new: &Value, old: Option<&Value>) -> Charge {
        let evaluator = Evaluator::of(resource.0, resource.1).expect("counted");
        let classes = DeviceClasses::default();
        let members = |object: &Value| object.as_object().expect("an object").clone();
        let subject = |object: &Value| QuotaSubject::of(&evaluator, &members(object), &classes, 0);
        let unsaid = if resource.1 == "pods" { Unsaid::of(&members(new)) } else { Unsaid::default() };
        let (new, old) = (subject(new), old.map(subject));
        let (to_cover, charged) = (ToCover::default(), Charged::default());
        Charge {
            is_status: false,
            new,
            old,
            unsaid,
            classes,
            evaluator: evaluator.clone(),
            to_cover,
            charged,
        }
    }

    fn charged(quota: ResourceQuota, request: &Charge) -> String {
        let mut quotas = [quota];
        match charge(&mut quotas, request) {
            Ok(_) => quotas[0].used.to_string(),
            Err(refusal) => refusal,
        }
    }

    fn pod(requests: Value, limits: Value) -> Value {
        json!({"spec": {"containers": [{"name": "c", "resources": {"requests": requests, "limits": limits}}]}})
    }

    #[test]
    fn a_create_is_counted_up_to_the_limit() {
        let hard = json!({"cpu": "3", "memory": "100Gi", "pods": "5"});
        let used = json!({"cpu": "1", "memory": "50Gi", "pods": "3"});
        let fits = request(("", "pods"), &pod(json!({"cpu": "100m", "memory": "2Gi"}), json!({})), None);
        assert_eq!(
            charged(quota(json!({}), hard.clone(), used.clone()), &fits),
            "cpu=1100m,memory=52Gi,pods=4"
        );
        let over = request(("", "pods"), &pod(json!({"cpu": "3", "memory": "2Gi"}), json!({})), None);
        assert_eq!(
            charged(quota(json!({}), hard, used), &over),
            "exceeded quota: q, requested: cpu=3, used: cpu=1, limited: cpu=3"
        );
    }

    #[test]
    fn what_is_counted_has_to_be_said_by_each_container() {
        let hard = json!({"limits.memory": "1Gi", "requests.cpu": "1"});
        let used = json!({"limits.memory": "0", "requests.cpu": "0"});
        let silent = request(("", "pods"), &pod(json!({}), json!({})), None);
        assert_eq!(
            charged(quota(json!({}), hard.clone(), used.clone()), &silent),
            "failed quota: q: must specify limits.memory for: c; requests.cpu for: c"
        );
        let mut whole = pod(json!({}), json!({}));
        whole["spec"]["resources"] = json!({"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}});
        let whole = request(("", "pods"), &whole, None);
        assert_eq!(charged(quota(json!({}), hard, used), &whole), "limits.memory=1Gi,requests.cpu=500m");
    }

    #[test]
    fn a_quota_that_nobody_has_counted_for_refuses() {
        let silent = request(("", "pods"), &pod(json!({}), json!({})), None);
        assert_eq!(
            charged(quota(json!({}), json!({"pods": "1", "count/pods": "1"}), json!({"pods": "0"})), &silent),
            "status unknown for quota: q, resources: count/pods,pods"
        );
    }

    #[test]
    fn an_update_is_counted_by_what_it_adds() {
        let hard =
            json!({"requests.storage": "10Gi", "gold.storageclass.storage.k8s.io/requests.storage": "5Gi"});
        let used =
            json!({"requests.storage": "2Gi", "gold.storageclass.storage.k8s.io/requests.storage": "2Gi"});
        let claim = |storage: &str| json!({"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": storage}}}});
        let grown = request(("", "persistentvolumeclaims"), &claim("3Gi"), Some(&claim("2Gi")));
        assert_eq!(
            charged(quota(json!({}), hard.clone(), used.clone()), &grown),
            "gold.storageclass.storage.k8s.io/requests.storage=3Gi,requests.storage=3Gi"
        );
        let too_much = request(("", "persistentvolumeclaims"), &claim("6Gi"), Some(&claim("2Gi")));
        assert_eq!(
            charged(quota(json!({}), hard, used), &too_much),
            "exceeded quota: q, requested: gold.storageclass.storage.k8s.io/requests.storage=4Gi, used: gold.storageclass.storage.k8s.io/requests.storage=2Gi, limited: gold.storageclass.storage.k8s.io/requests.storage=5Gi"
        );
    }

    #[test]
    fn what_was_put_down_for_an_earlier_attempt_is_not_put_down_again() {
        let service = |kind: &str, ports: usize| {
            let ports: Vec<Value> = (0..ports).map(|at| json!({"port": at})).collect();
            json!({"spec": {"type": kind, "ports": ports}})
        };
        let named = |name: &str, hard: &str| ResourceQuota {
            name: name.into(),
            ..quota(json!({}), json!({"services.nodeports": hard}), json!({"services.nodeports": "0"}))
        };
        let mut quotas = [named("a", "10"), named("b", "10")];
        let mut charged = Charged::default();
        let mut attempt = |ports: usize, quotas: &mut [ResourceQuota]| {
            let old = service("ClusterIP", ports);
            let mut request = request(("", "services"), &service("NodePort", ports), Some(&old));
            request.charged = charged.clone();
            let more = charge(quotas, &request)?;
            charged.add(more, &[]);
            Ok(Vec::from_iter(quotas.iter().map(|quota| quota.used.to_string())))
        };
        let used = |ports: usize| Ok(vec![format!("services.nodeports={ports}"); 2]);
        assert_eq!(attempt(3, &mut quotas), used(3));
        assert_eq!(attempt(3, &mut quotas), used(3), "there is nothing more");
        assert_eq!(attempt(5, &mut quotas), used(5), "it is the difference");
        assert_eq!(attempt(1, &mut quotas), used(5), "what is given back is the controller's");
        assert_eq!(attempt(10, &mut quotas), used(10), "it is held against none of its own");
        let refused: Result<Vec<String>, QuotaRefusal> = attempt(11, &mut quotas);
        assert_eq!(
            refused.expect_err("too many"),
            "exceeded quota: a, requested: services.nodeports=1, used: services.nodeports=10, limited: services.nodeports=10"
        );
        let mut most = Charged::default();
        most.add(charged.clone(), &["b".into()]);
        assert_eq!(most.0.keys().map(String::as_str).collect::<Vec<_>>(), ["a"], "b was not written");
    }

    #[test]
    fn what_is_limited_by_default_has_to_be_in_some_quota() {
        let configuration = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration",
            "limitedResources": [{"resource": "pods", "matchContains": ["requests.cpu"], "matchScopes": [
                {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]},
            ]}],
        });
        let limited = crate::LimitedResources::of(&configuration).expect("a configuration");
        let of = |pod: &Value| {
            let mut request = request(("", "pods"), pod, None);
            request.to_cover = limited.of_subject("", "pods", &request.new);
            request
        };
        let plain = of(&pod(json!({"cpu": "1"}), json!({})));
        let mut high = pod(json!({}), json!({}));
        high["spec"]["priorityClassName"] = json!("high");
        let high = of(&high);
        assert_eq!(charge(&mut [], &plain), Err("insufficient quota to consume: requests.cpu".into()));
        let scopes = "insufficient quota to match these scopes: [{PriorityClass In [high]}]";
        assert_eq!(charge(&mut [], &high), Err(scopes.into()));
        let by_cpu = quota(json!({}), json!({"requests.cpu": "2"}), json!({"requests.cpu": "0"}));
        assert_eq!(charged(by_cpu.clone(), &plain), "requests.cpu=1");
        let of_class = json!({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}});
        let by_class = quota(of_class, json!({"pods": "1"}), json!({"pods": "0"}));
        assert_eq!(charged(by_class, &high), "pods=1");
        let none = quota(json!({}), json!({"memory": "2Gi"}), json!({"memory": "0"}));
        assert!(charge(&mut [none], &of(&pod(json!({"cpu": "1", "memory": "1Gi"}), json!({})))).is_err());
    }

    #[test]
    fn a_service_takes_ports_and_balancers() {
        let hard = json!({"services": "2", "services.nodeports": "2", "services.loadbalancers": "1"});
        let used = json!({"services": "0", "services.nodeports": "0", "services.loadbalancers": "0"});
        let service = |spec: Value| request(("", "services"), &json!({"spec": spec}), None);
        let ports = json!([{"port": 80}, {"port": 81}]);
        let now = |spec: Value| charged(quota(json!({}), hard.clone(), used.clone()), &service(spec));
        assert_eq!(
            now(json!({"type": "LoadBalancer", "ports": ports})),
            "services=1,services.loadbalancers=1,services.nodeports=2"
        );
        assert_eq!(
            now(json!({"type": "LoadBalancer", "ports": ports, "allocateLoadBalancerNodePorts": false})),
            "services=1,services.loadbalancers=1,services.nodeports=0"
        );
        assert_eq!(
            now(json!({"type": "ClusterIP", "ports": ports})),
            "services=1,services.loadbalancers=0,services.nodeports=0"
        );
    }

    #[test]
    fn objects_of_any_kind_are_counted_by_name() {
        for (resource, name) in [
            (("", "configmaps"), "configmaps"),
            (("", "configmaps"), "count/configmaps"),
            (("", "serviceaccounts"), "count/serviceaccounts"),
            (("apps", "deployments"), "count/deployments.apps"),
            (("example.com", "widgets"), "count/widgets.example.com"),
        ] {
            let one = request(resource, &json!({}), None);
            assert_eq!(
                charged(quota(json!({}), json!({name: "2"}), json!({name: "1"})), &one),
                format!("{name}=2")
            );
            assert_eq!(
                charged(quota(json!({}), json!({name: "1"}), json!({name: "1"})), &one),
                format!("exceeded quota: q, requested: {name}=1, used: {name}=1, limited: {name}=1")
            );
        }
    }

    #[test]
    fn a_quota_is_about_what_its_scopes_name() {
        let best_effort = pod(json!({}), json!({}));
        let mut job = pod(json!({"cpu": "1"}), json!({}));
        job["spec"]["activeDeadlineSeconds"] = json!(5);
        let mut high = best_effort.clone();
        high["spec"]["priorityClassName"] = json!("high");
        let mut far = best_effort.clone();
        far["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
            json!([{"topologyKey": "zone", "namespaces": ["other"]}]);
        let selector = |name: &str, operator: &str, values: Value| json!({"scopeSelector": {"matchExpressions": [{"scopeName": name, "operator": operator, "values": values}]}});
        let is_in = |spec: &Value, pod: &Value| {
            let pods = |number: &str| json!({"pods": number});
            charged(quota(spec.clone(), pods("1"), pods("0")), &request(("", "pods"), pod, None)) == "pods=1"
        };
        for (spec, wanted) in [
            (json!({"scopes": ["BestEffort"]}), [true, false, true, true]),
            (json!({"scopes": ["NotBestEffort"]}), [false, true, false, false]),
            (json!({"scopes": ["Terminating"]}), [false, true, false, false]),
            (json!({"scopes": ["NotTerminating", "BestEffort"]}), [true, false, true, true]),
            (json!({"scopes": ["CrossNamespacePodAffinity"]}), [false, false, false, true]),
            (selector("PriorityClass", "In", json!(["high", "low"])), [false, false, true, false]),
            (selector("PriorityClass", "NotIn", json!(["high"])), [true, true, false, true]),
            (selector("PriorityClass", "Exists", json!([])), [false, false, true, false]),
            (selector("PriorityClass", "DoesNotExist", json!([])), [true, true, false, true]),
        ] {
            assert_eq!([&best_effort, &job, &high, &far].map(|pod| is_in(&spec, pod)), wanted, "{spec}");
        }
    }

    #[test]
    fn devices_are_counted_by_class_and_by_the_worst_alternative() {
        let classes =
            [json!({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}})];
        let classes = DeviceClasses::of(classes.into_iter().filter_map(|class| class.as_object().cloned()));
        let claim = json!({"spec": {"devices": {"requests": [
            {"name": "a", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}},
            {"name": "b", "firstAvailable": [
                {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
                {"deviceClassName": "nic", "allocationMode": "All"},
            ]},
        ]}}});
        let evaluator = Evaluator::of("resource.k8s.io", "resourceclaims").expect("counted");
        let usage = QuotaSubject::of(&evaluator, claim.as_object().expect("an object"), &classes, 0).usage;
        assert_eq!(
            usage.to_string(),
            "count/resourceclaims.resource.k8s.io=1,gpu.deviceclass.resource.k8s.io/devices=3,nic.deviceclass.resource.k8s.io/devices=32,requests.deviceclass.resource.kubernetes.io/gpu=3,requests.deviceclass.resource.kubernetes.io/nic=32,requests.example.com/gpu=3"
        );
        for (name, counted) in [
            ("requests.example.com/gpu", true),
            ("requests.example.com/nic", false),
            ("requests.deviceclass.resource.kubernetes.io/gpu", true),
            ("any.deviceclass.resource.k8s.io/devices", true),
        ] {
            assert_eq!(evaluator.counts(name, &classes), counted, "{name}");
        }
    }

    #[test]
    fn a_pod_that_has_ended_counts_as_an_object_only() {
        let mut ended = pod(json!({"cpu": "1"}), json!({}));
        ended["status"]["phase"] = json!("Succeeded");
        assert_eq!(request(("", "pods"), &ended, None).new.usage.to_string(), "count/pods=1");
        let mut deleted = pod(json!({"cpu": "1"}), json!({}));
        deleted["metadata"] =
            json!({"deletionTimestamp": "1970-01-01T00:00:05Z", "deletionGracePeriodSeconds": 0});
        let usage = |now: i64| {
            let object = deleted.as_object().expect("an object");
            QuotaSubject::of(&Evaluator::Pods, object, &DeviceClasses::default(), now).usage.to_string()
        };
        assert_eq!(
            (usage(5).as_str(), usage(6).as_str()),
            ("count/pods=1,cpu=1,pods=1,requests.cpu=1", "count/pods=1")
        );
    }
}
