//! Cases for admission plugins, drawn from a seed: a namespace with its limits, its quota or its level, and
//! objects that are created in it.
//!
//! In: a plugin, a seed. Out: a [`PluginCase`], the same each time. Never: a look at a server.

mod certificates;
mod der;
mod optional;
mod small;
mod topology;

use forebay_rt::Random;
use http::Method;
use serde_json::{Map, Value, json};

use crate::pair::ActsAs;

/// Whose cases they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginUnderTest {
    LimitRanger,
    ResourceQuota,
    PodSecurity,
    DefaultTolerationSeconds,
    TaintNodesByCondition,
    Priority,
    RuntimeClass,
    StorageObjectInUseProtection,
    PersistentVolumeClaimResize,
    NamespaceLifecycle,
    PodResizeValidator,
    AlwaysPullImages,
    DenyServiceExternalIps,
    ExtendedResourceToleration,
    LimitPodHardAntiAffinityTopology,
    NamespaceAutoProvision,
    PodNodeSelector,
    PodTolerationRestriction,
    DefaultStorageClass,
    DefaultIngressClass,
    PodTopologyLabels,
    CertificateSubjectRestriction,
    CertificateApproval,
    CertificateSigning,
}

/// Those that are off unless somebody turns them on, and those that go by a default of the whole cluster.
pub const OPTIONAL: [PluginUnderTest; 9] = [
    PluginUnderTest::AlwaysPullImages,
    PluginUnderTest::DenyServiceExternalIps,
    PluginUnderTest::ExtendedResourceToleration,
    PluginUnderTest::LimitPodHardAntiAffinityTopology,
    PluginUnderTest::NamespaceAutoProvision,
    PluginUnderTest::PodNodeSelector,
    PluginUnderTest::PodTolerationRestriction,
    PluginUnderTest::DefaultStorageClass,
    PluginUnderTest::DefaultIngressClass,
];

/// By which flag they are turned on.
pub const ENABLED: &str = "--enable-admission-plugins=AlwaysPullImages,DenyServiceExternalIPs,\
                           ExtendedResourceToleration,LimitPodHardAntiAffinityTopology,\
                           NamespaceAutoProvision,PodNodeSelector,PodTolerationRestriction";

/// What makes a class the default one: path, object.
pub fn defaults() -> Vec<(&'static str, Value)> {
    optional::defaults()
}

/// Those that look at one namespace, or at objects of a case's own.
pub const PLUGINS: [PluginUnderTest; 13] = [
    PluginUnderTest::LimitRanger,
    PluginUnderTest::ResourceQuota,
    PluginUnderTest::PodSecurity,
    PluginUnderTest::DefaultTolerationSeconds,
    PluginUnderTest::TaintNodesByCondition,
    PluginUnderTest::Priority,
    PluginUnderTest::RuntimeClass,
    PluginUnderTest::StorageObjectInUseProtection,
    PluginUnderTest::PersistentVolumeClaimResize,
    PluginUnderTest::NamespaceLifecycle,
    PluginUnderTest::PodResizeValidator,
    PluginUnderTest::PodTopologyLabels,
    PluginUnderTest::CertificateSubjectRestriction,
];

/// Those that ask what somebody may do, and by which flag that is decided.
pub const OF_RIGHTS: [PluginUnderTest; 2] =
    [PluginUnderTest::CertificateApproval, PluginUnderTest::CertificateSigning];
pub const DECIDED: &str = "--authorization-mode=RBAC";

/// One namespace and what is done in it.
#[derive(Clone, Debug)]
pub struct PluginCase {
    pub name: String,
    pub labels: Value,
    /// What decides: path below the namespace's, object.
    pub rule: Option<(&'static str, Value)>,
    /// What is created, one after the other: path below the namespace's, object.
    pub objects: Vec<(&'static str, Value)>,
    /// The labels that the namespace is given afterwards.
    pub then: Option<Value>,
    /// What is asked after all that, one after the other.
    pub steps: Vec<PluginStep>,
}

/// One request. A PATCH is a merge patch.
#[derive(Clone, Debug)]
pub struct PluginStep {
    pub method: Method,
    /// With its query.
    pub path: String,
    pub body: Value,
    /// As whom it is asked; the administrator, if nobody is said.
    pub user: Option<ActsAs>,
    /// It is asked again until it is answered so, and not compared: a server hears of something later.
    pub until: Option<Until>,
}

/// An answer that shows that a server has heard of something.
#[derive(Clone, Debug, PartialEq)]
pub enum Until {
    Code(u16),
    /// The first one: how it looks is another case's concern.
    Any,
    /// Where in the object, and what is there then.
    Shows(String, Value),
}

impl Until {
    pub fn is_met(&self, code: u16, body: &Value) -> bool {
        match self {
            Until::Code(wanted) => code == *wanted,
            Until::Any => true,
            Until::Shows(at, wanted) => body.pointer(at) == Some(wanted),
        }
    }
}

/// What the last quota of a namespace lets none in of: who is refused one has been heard of all before it.
pub const SENTINEL: &str = "count/leases.coordination.k8s.io";

const PODS: &str = "/api/v1/namespaces/{}/pods";
const CLAIMS: &str = "/api/v1/namespaces/{}/persistentvolumeclaims";
const QUANTITIES: [&str; 9] = ["100m", "250m", "1", "1500m", "2", "64Mi", "1Gi", "1G", "0"];
const SIZES: [&str; 5] = ["500Mi", "1Gi", "1500M", "2Gi", "5Gi"];

/// The case of `seed` for `plugin`.
pub fn draw(plugin: PluginUnderTest, seed: u64) -> PluginCase {
    let draw = Draw(Random::seeded(seed));
    let name = format!("{plugin:?}-{seed}").to_lowercase();
    match plugin {
        PluginUnderTest::LimitRanger => draw.limits(name),
        PluginUnderTest::ResourceQuota => draw.quota(name),
        PluginUnderTest::PodSecurity => draw.security(name),
        PluginUnderTest::DefaultTolerationSeconds => draw.tolerations_of_pods(name),
        PluginUnderTest::TaintNodesByCondition => draw.taints_of_nodes(name),
        PluginUnderTest::Priority => draw.priorities(name),
        PluginUnderTest::RuntimeClass => draw.runtime_classes(name),
        PluginUnderTest::StorageObjectInUseProtection => draw.in_use(name),
        PluginUnderTest::PersistentVolumeClaimResize => draw.resizes(name),
        PluginUnderTest::NamespaceLifecycle => draw.lifecycle(name),
        PluginUnderTest::PodResizeValidator => draw.resizes_of_pods(name),
        PluginUnderTest::AlwaysPullImages => draw.images(name),
        PluginUnderTest::DenyServiceExternalIps => draw.external_ips(name),
        PluginUnderTest::ExtendedResourceToleration => draw.extended(name),
        PluginUnderTest::LimitPodHardAntiAffinityTopology => draw.anti_affinities(name),
        PluginUnderTest::NamespaceAutoProvision => draw.provisions(name),
        PluginUnderTest::PodNodeSelector => draw.selectors(name),
        PluginUnderTest::PodTolerationRestriction => draw.tolerations_of_namespaces(name),
        PluginUnderTest::DefaultStorageClass => draw.classes_of_claims(name),
        PluginUnderTest::DefaultIngressClass => draw.classes_of_ingresses(name),
        PluginUnderTest::PodTopologyLabels => draw.topologies(name),
        PluginUnderTest::CertificateSubjectRestriction => draw.subjects(name),
        PluginUnderTest::CertificateApproval => draw.approvals(name),
        PluginUnderTest::CertificateSigning => draw.signings(name),
    }
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

    fn limits(&self, name: String) -> PluginCase {
        let limits: Vec<Value> = (0..1 + self.below(2)).map(|_| self.limit()).collect();
        let range = object("v1", "LimitRange", json!({"limits": limits}));
        let mut objects: Vec<(&str, Value)> = (0..3).map(|at| (PODS, self.pod(at))).collect();
        objects.push((CLAIMS, self.claim(3)));
        let rule = Some(("/api/v1/namespaces/{}/limitranges", range));
        PluginCase { name, labels: json!({}), rule, objects, then: None, steps: Vec::new() }
    }

    fn limit(&self) -> Value {
        let kind = self.one(&["Container", "Container", "Pod", "PersistentVolumeClaim"]);
        if kind == "PersistentVolumeClaim" {
            let member = self.one(&["min", "max"]);
            return json!({"type": kind, member: {"storage": self.one(&SIZES)}});
        }
        let mut limit = json!({"type": kind});
        // Several of one list would be told in no order.
        let resource = self.one(&["cpu", "memory"]);
        match self.below(4) {
            0 => limit["min"] = json!({resource: self.one(&QUANTITIES)}),
            1 => limit["max"] = json!({resource: self.one(&QUANTITIES)}),
            2 => limit["maxLimitRequestRatio"] = json!({resource: self.one(&["1", "1500m", "2", "3"])}),
            _ if kind == "Container" => {
                limit["default"] = self.list(60);
                limit["defaultRequest"] = self.list(40);
            }
            _ => limit["max"] = json!({resource: "4Gi"}),
        }
        limit
    }

    fn list(&self, percent: usize) -> Value {
        let names = ["cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi"];
        let chosen =
            names.into_iter().enumerate().filter(|(at, _)| self.percent(if *at < 2 { percent } else { 7 }));
        let quantity = |name: &str| match name {
            "cpu" => self.one(&QUANTITIES[..5]),
            "memory" | "ephemeral-storage" => self.one(&QUANTITIES[5..]),
            "example.com/gpu" => self.one(&["1", "2"]),
            _ => self.one(&["2Mi", "4Mi"]),
        };
        Value::Object(chosen.map(|(_, name)| (name.to_string(), json!(quantity(name)))).collect())
    }

    fn resources(&self) -> Value {
        json!({"requests": self.list(50), "limits": self.list(40)})
    }

    fn pod(&self, at: usize) -> Value {
        let container = |name: String| json!({"name": name, "image": "i", "resources": self.resources()});
        let containers: Vec<Value> = (0..1 + self.below(2)).map(|at| container(format!("c{at}"))).collect();
        let mut spec = json!({"containers": containers});
        if self.percent(30) {
            let mut init = container("i0".into());
            if self.percent(50) {
                init["restartPolicy"] = json!("Always");
            }
            spec["initContainers"] = json!([init, container("i1".into())]);
        }
        if self.percent(15) {
            spec["resources"] = json!({"requests": {"cpu": "4"}, "limits": {"cpu": "4", "memory": "8Gi"}});
        }
        if self.percent(15) {
            spec["activeDeadlineSeconds"] = json!(60);
        }
        if self.percent(10) {
            spec["priorityClassName"] = json!(self.one(&["system-cluster-critical", "system-node-critical"]));
        }
        if self.percent(10) {
            let term = json!({"topologyKey": "zone", "namespaceSelector": {}, "labelSelector": {}});
            spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!([term]);
        }
        named(object("v1", "Pod", spec), at)
    }

    fn claim(&self, at: usize) -> Value {
        let mut spec = json!({
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": self.one(&SIZES)}},
        });
        if self.percent(50) {
            spec["storageClassName"] = json!("gold");
        }
        if self.percent(20) {
            spec["volumeAttributesClassName"] = json!("fast");
        }
        named(object("v1", "PersistentVolumeClaim", spec), at)
    }

    fn quota(&self, name: String) -> PluginCase {
        let mut hard = Map::new();
        for (amount, values) in [
            ("pods", &["1", "2"][..]),
            ("count/pods", &["1", "3"]),
            ("cpu", &["2", "3500m"]),
            ("requests.cpu", &["2", "6"]),
            ("limits.memory", &["1Gi", "2G"]),
            ("requests.example.com/gpu", &["1", "2"]),
            ("hugepages-2Mi", &["4Mi"]),
            ("services", &["1", "2"]),
            ("services.nodeports", &["1", "3"]),
            ("services.loadbalancers", &["0", "1"]),
            ("configmaps", &["0", "1"]),
            ("count/deployments.apps", &["0", "1"]),
            ("persistentvolumeclaims", &["1"]),
            ("requests.storage", &["2Gi", "4Gi"]),
            ("gold.storageclass.storage.k8s.io/requests.storage", &["1Gi", "2Gi"]),
        ] {
            if self.percent(25) {
                hard.insert(amount.to_string(), json!(self.one(values)));
            }
        }
        let mut spec = json!({});
        match self.below(12) {
            0 => spec["scopes"] = json!(["BestEffort"]),
            1 => spec["scopes"] = json!(["NotBestEffort", "Terminating"]),
            2 => spec["scopes"] = json!(["NotTerminating"]),
            3 => spec["scopes"] = json!(["CrossNamespacePodAffinity"]),
            4 | 5 => {
                let operator = self.one(&["In", "NotIn", "Exists", "DoesNotExist"]);
                let mut wanted = json!({"scopeName": "PriorityClass", "operator": operator});
                if operator.ends_with("In") {
                    wanted["values"] = json!(["system-cluster-critical"]);
                }
                spec["scopeSelector"] = json!({"matchExpressions": [wanted]});
            }
            _ => {}
        }
        if spec.as_object().is_some_and(|spec| !spec.is_empty()) {
            // No scope is about anything but pods.
            hard.retain(|name, _| name == "pods" || name.starts_with("requests.cpu"));
            if spec["scopes"] == json!(["BestEffort"]) || hard.is_empty() {
                hard = json!({"pods": "1"}).as_object().cloned().unwrap_or_default();
            }
        }
        spec["hard"] = Value::Object(hard);
        let mut objects: Vec<(&str, Value)> = (0..3).map(|at| (PODS, self.pod(at))).collect();
        objects.extend((0..2).map(|at| (CLAIMS, self.claim(at))));
        objects.extend((0..2).map(|at| ("/api/v1/namespaces/{}/services", self.service(at))));
        let map = |at: usize| named(json!({"apiVersion": "v1", "kind": "ConfigMap"}), at);
        objects.extend((0..2).map(|at| ("/api/v1/namespaces/{}/configmaps", map(at))));
        objects.push((
            "/apis/apps/v1/namespaces/{}/deployments",
            deployment(json!({"containers": [{"name": "c", "image": "i"}]})),
        ));
        let rule = Some(("/api/v1/namespaces/{}/resourcequotas", object("v1", "ResourceQuota", spec)));
        PluginCase { name, labels: json!({}), rule, objects, then: None, steps: Vec::new() }
    }

    fn service(&self, at: usize) -> Value {
        let ports: Vec<Value> =
            (0..1 + self.below(2)).map(|at| json!({"name": format!("p{at}"), "port": 80 + at})).collect();
        let mut spec = json!({"type": self.one(&["ClusterIP", "NodePort", "LoadBalancer"]), "ports": ports});
        if spec["type"] == "LoadBalancer" && self.percent(40) {
            spec["allocateLoadBalancerNodePorts"] = json!(false);
        }
        named(object("v1", "Service", spec), at)
    }

    fn security(&self, name: String) -> PluginCase {
        let objects = (0..3).map(|at| (PODS, named(object("v1", "Pod", self.risky()), at)));
        let mut objects: Vec<(&str, Value)> = objects.collect();
        objects.push(("/apis/apps/v1/namespaces/{}/deployments", deployment(self.risky())));
        let then = self.percent(70).then(|| self.labels());
        PluginCase { name, labels: self.labels(), rule: None, objects, then, steps: Vec::new() }
    }

    fn labels(&self) -> Value {
        let mut labels = Map::new();
        let levels = ["privileged", "baseline", "restricted", "baseline", "restricted", "none"];
        let versions = ["latest", "v1.0", "v1.18", "v1.24", "v1.28", "v1.34", "v1.36", "v1.99", "1.20"];
        for (name, all, percent) in [
            ("enforce", &levels[..], 60),
            ("enforce-version", &versions, 40),
            ("warn", &levels, 30),
            ("warn-version", &versions, 20),
        ] {
            if self.percent(percent) {
                // The last one is none.
                let known = if self.percent(95) { &all[..all.len() - 1] } else { all };
                labels.insert(format!("pod-security.kubernetes.io/{name}"), json!(self.one(known)));
            }
        }
        Value::Object(labels)
    }

    /// The spec of a pod that may have anything that a level looks at.
    fn risky(&self) -> Value {
        let containers: Vec<Value> =
            (0..1 + self.below(2)).map(|at| self.risky_container(&format!("c{at}"))).collect();
        let mut spec = json!({"containers": containers});
        if self.percent(20) {
            spec["initContainers"] = json!([self.risky_container("i")]);
        }
        let context = [
            ("runAsNonRoot", json!(true), 50),
            ("seccompProfile", json!({"type": "RuntimeDefault"}), 40),
            ("runAsUser", json!(0), 8),
            ("seLinuxOptions", json!({"type": "spc_t", "role": "r"}), 8),
            (
                "sysctls",
                json!([{"name": "net.ipv4.tcp_rmem", "value": "1"}, {"name": "kernel.msgmax", "value": "1"}]),
                8,
            ),
            ("appArmorProfile", json!({"type": "Unconfined"}), 8),
        ];
        spec["securityContext"] = self.some_of(&context);
        for name in ["hostNetwork", "hostPID", "hostIPC"] {
            if self.percent(7) {
                spec[name] = json!(true);
            }
        }
        let volumes = [
            json!({"name": "host", "hostPath": {"path": "/"}}),
            json!({"name": "nfs", "nfs": {"server": "s", "path": "/"}}),
            json!({"name": "map", "configMap": {"name": "m"}}),
        ];
        let volumes: Vec<Value> = volumes.into_iter().filter(|_| self.percent(15)).collect();
        spec["volumes"] = json!(volumes);
        spec
    }

    fn risky_container(&self, name: &str) -> Value {
        let context = [
            ("allowPrivilegeEscalation", json!(false), 60),
            ("capabilities", json!({"drop": ["ALL"]}), 40),
            ("capabilities", json!({"drop": ["ALL"], "add": ["SYS_TIME", "CHOWN"]}), 15),
            ("runAsNonRoot", json!(false), 8),
            ("seccompProfile", json!({"type": "Unconfined"}), 8),
            ("windowsOptions", json!({"runAsUserName": "u"}), 4),
            ("seLinuxOptions", json!({"type": "container_engine_t"}), 8),
        ];
        let mut container = json!({"name": name, "image": "i", "securityContext": self.some_of(&context)});
        if self.percent(5) {
            container["securityContext"] = json!({"privileged": true});
        }
        if self.percent(8) {
            container["ports"] = json!([{"containerPort": 80, "hostPort": 8080}]);
        }
        if self.percent(8) {
            container["livenessProbe"] = json!({"httpGet": {"host": "h", "port": 80}});
        }
        container
    }

    fn some_of(&self, all: &[(&str, Value, usize)]) -> Value {
        let chosen = all.iter().filter(|(.., percent)| self.percent(*percent));
        Value::Object(chosen.map(|(name, value, _)| (name.to_string(), value.clone())).collect())
    }
}

fn object(api_version: &str, kind: &str, spec: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "rule"}, "spec": spec})
}

fn named(mut object: Value, at: usize) -> Value {
    object["metadata"] = json!({"name": format!("o{at}")});
    object
}

fn deployment(pod: Value) -> Value {
    let labels = json!({"app": "a"});
    let spec = json!({
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod},
    });
    named(object("apps/v1", "Deployment", spec), 0)
}
