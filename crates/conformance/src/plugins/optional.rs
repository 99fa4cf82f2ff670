//! Cases of the plugins that are off unless somebody turns them on, of those that go by a default of the
//! whole cluster, and of resizes.
//!
//! In: a plugin, a seed by way of [`Draw`]. Out: a [`PluginCase`] with steps. Never: a case of another plugin
//! beside a default of the whole cluster.

use http::Method;
use serde_json::{Value, json};

use super::small::{bare_pod, case, changed, made, pods_of, step};
use super::{Draw, PluginCase, PluginStep, Until};

const MARK: &str = "is-default-class";

/// The classes that are the default ones.
pub(super) fn defaults() -> Vec<(&'static str, Value)> {
    let class = |version: &str, kind: &str, more: Value| {
        let mark = match kind {
            "StorageClass" => format!("storageclass.kubernetes.io/{MARK}"),
            _ => format!("ingressclass.kubernetes.io/{MARK}"),
        };
        let mut class = json!({
            "apiVersion": version, "kind": kind,
            "metadata": {"name": "usual", "annotations": {mark: "true"}},
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            class[name] = value.clone();
        }
        class
    };
    vec![
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            class("storage.k8s.io/v1", "StorageClass", json!({"provisioner": "p.example.com"})),
        ),
        (
            "/apis/networking.k8s.io/v1/ingressclasses",
            class("networking.k8s.io/v1", "IngressClass", json!({"spec": {"controller": "c.example.com/c"}})),
        ),
    ]
}

impl Draw {
    fn pods(&self, name: String, count: usize, draw: impl Fn(&Draw, &mut Value)) -> PluginCase {
        let pods = (0..count).map(|at| {
            let mut pod = bare_pod(&format!("o{at}"));
            draw(self, &mut pod["spec"]);
            made(&pods_of(&name), pod)
        });
        let steps = pods.collect();
        case(name, steps)
    }

    pub(super) fn images(&self, name: String) -> PluginCase {
        let mut drawn = self.pods(name.clone(), 3, |draw, spec| {
            let mut containers = vec![spec["containers"][0].clone()];
            containers[0]["imagePullPolicy"] = json!(draw.one(&["Never", "IfNotPresent", "Always"]));
            if draw.percent(40) {
                spec["initContainers"] = json!([{"name": "i", "image": "j:latest"}]);
            }
            if draw.percent(30) {
                let image = json!({"reference": "r", "pullPolicy": draw.one(&["Never", "IfNotPresent"])});
                spec["volumes"] = json!([{"name": "v", "image": image}]);
            }
            spec["containers"] = json!(containers);
        });
        let image = self.one(&["i", "other"]);
        let containers = json!([{"name": "c", "image": image, "imagePullPolicy": "Never"}]);
        drawn
            .steps
            .push(changed(format!("{}/o0", pods_of(&name)), json!({"spec": {"containers": containers}})));
        drawn
    }

    pub(super) fn external_ips(&self, name: String) -> PluginCase {
        let ips = |draw: &Draw| -> Vec<&str> {
            ["1.1.1.1", "2.2.2.2", "3.3.3.3"].into_iter().filter(|_| draw.percent(25)).collect()
        };
        let services = format!("/api/v1/namespaces/{name}/services");
        let service = |at: usize| {
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("o{at}")},
                "spec": {"ports": [{"port": 80}], "externalIPs": ips(self)},
            })
        };
        let mut steps: Vec<PluginStep> = (0..3).map(|at| made(&services, service(at))).collect();
        steps.extend(
            (0..3)
                .map(|at| changed(format!("{services}/o{at}"), json!({"spec": {"externalIPs": ips(self)}}))),
        );
        case(name, steps)
    }

    pub(super) fn extended(&self, name: String) -> PluginCase {
        let names = ["example.com/a", "example.com/b", "kubernetes.io/c", "cpu"];
        self.pods(name, 3, |draw, spec| {
            let drawn: Vec<&str> = names.into_iter().filter(|_| draw.percent(40)).collect();
            let amounts: serde_json::Map<String, Value> =
                drawn.into_iter().map(|name| (name.to_owned(), json!("1"))).collect();
            spec["containers"][0]["resources"] = json!({"requests": amounts, "limits": amounts});
            let own = |draw: &Draw| {
                let key = draw.one(&["example.com/a", "other"]);
                json!({"key": key, "operator": "Exists", "effect": draw.one(&["NoSchedule", "NoExecute"])})
            };
            spec["tolerations"] = (0..draw.below(2)).map(|_| own(draw)).collect();
        })
    }

    pub(super) fn anti_affinities(&self, name: String) -> PluginCase {
        self.pods(name, 3, |draw, spec| {
            let term = |draw: &Draw| {
                let key = draw.one(&["kubernetes.io/hostname", "zone", "region"]);
                json!({"topologyKey": key, "labelSelector": {"matchLabels": {"a": "b"}}})
            };
            let list = draw.one(&["requiredDuringSchedulingIgnoredDuringExecution", "none"]);
            if list != "none" {
                let terms: Vec<Value> = (0..draw.below(3)).map(|_| term(draw)).collect();
                spec["affinity"] = json!({"podAntiAffinity": {list: terms}});
            }
        })
    }

    pub(super) fn provisions(&self, name: String) -> PluginCase {
        let missing = format!("{name}-made");
        let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let maps = format!("/api/v1/namespaces/{missing}/configmaps");
        let mut steps = Vec::new();
        if self.percent(50) {
            steps.push(made(&format!("{maps}?dryRun=All"), map("dry")));
        }
        steps.push(made(&maps, map(self.one(&["good", "Bad"]))));
        steps.push(step(Method::GET, format!("/api/v1/namespaces/{missing}"), Value::Null));
        case(name, steps)
    }

    fn annotated(&self, name: &str, annotations: &[(&str, String)]) -> PluginStep {
        let all: serde_json::Map<String, Value> =
            annotations.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        made(
            "/api/v1/namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": all}}),
        )
    }

    pub(super) fn selectors(&self, name: String) -> PluginCase {
        let own = format!("{name}-own");
        let said = self.one(&["a=b", "a=b,c=d", "", "broken"]);
        let mut steps =
            vec![self.annotated(&own, &[("scheduler.alpha.kubernetes.io/node-selector", said.to_owned())])];
        for at in 0..3 {
            let mut pod = bare_pod(&format!("o{at}"));
            let labels = [json!({"a": "b"}), json!({"a": "x"}), json!({"e": "f"}), json!({})];
            pod["spec"]["nodeSelector"] = self.one(&labels);
            steps.push(made(&pods_of(&own), pod));
        }
        case(name, steps)
    }

    pub(super) fn tolerations_of_namespaces(&self, name: String) -> PluginCase {
        let own = format!("{name}-own");
        let list = |draw: &Draw| -> Value { (0..draw.below(3)).map(|_| draw.toleration()).collect() };
        let mut annotations = Vec::new();
        if self.percent(60) {
            annotations.push(("scheduler.alpha.kubernetes.io/defaultTolerations", list(self).to_string()));
        }
        if self.percent(40) {
            annotations.push(("scheduler.alpha.kubernetes.io/tolerationsWhitelist", list(self).to_string()));
        }
        let mut steps = vec![self.annotated(&own, &annotations)];
        for at in 0..3 {
            let mut pod = bare_pod(&format!("o{at}"));
            pod["spec"]["tolerations"] = list(self);
            if self.percent(30) {
                pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
            }
            steps.push(made(&pods_of(&own), pod));
        }
        case(name, steps)
    }

    pub(super) fn classes_of_claims(&self, name: String) -> PluginCase {
        let claims = format!("/api/v1/namespaces/{name}/persistentvolumeclaims");
        let steps = (0..3).map(|at| {
            let mut claim = json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": format!("o{at}")},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            });
            match self.below(4) {
                0 => claim["spec"]["storageClassName"] = json!(""),
                1 => claim["spec"]["storageClassName"] = json!("gold"),
                2 => {
                    let key = "volume.beta.kubernetes.io/storage-class";
                    claim["metadata"]["annotations"] = json!({key: "silver"});
                }
                _ => {}
            }
            made(&claims, claim)
        });
        let steps = steps.collect();
        case(name, steps)
    }

    pub(super) fn classes_of_ingresses(&self, name: String) -> PluginCase {
        let ingresses = format!("/apis/networking.k8s.io/v1/namespaces/{name}/ingresses");
        let steps = (0..3).map(|at| {
            let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
            let mut ingress = json!({
                "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
                "metadata": {"name": format!("o{at}")}, "spec": {"defaultBackend": backend},
            });
            match self.below(3) {
                0 => ingress["spec"]["ingressClassName"] = json!("other"),
                1 => {
                    ingress["metadata"]["annotations"] = json!({"kubernetes.io/ingress.class": "nginx"});
                }
                _ => {}
            }
            made(&ingresses, ingress)
        });
        let steps = steps.collect();
        case(name, steps)
    }

    pub(super) fn resizes_of_pods(&self, name: String) -> PluginCase {
        let os = self.one(&["linux", "linux", "windows"]);
        let has = json!({"cpu": "4", "memory": "4Gi", "pods": "10"});
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/os": os}},
            "status": {"capacity": has, "allocatable": has},
        });
        let resources = |cpu: &str, memory: &str| json!({"requests": {"cpu": cpu, "memory": memory}});
        let mut pod = bare_pod("o0");
        pod["spec"]["nodeName"] = json!(name);
        pod["spec"]["containers"][0]["resources"] = resources("1", "1Gi");
        let resized = |cpu: &str, memory: &str| json!({"spec": {"containers": [{"name": "c", "image": "i", "resources": resources(cpu, memory)}]}});
        let path = format!("{}/o0/resize", pods_of(&name));
        let mut steps = vec![made("/api/v1/nodes", node), made(&pods_of(&name), pod)];
        if os == "linux" {
            let heard = changed(format!("{path}?dryRun=All"), resized("2", "1Gi"));
            steps.push(PluginStep { until: Some(Until::Code(200)), ..heard });
            for _ in 0..3 {
                let (cpu, memory) = (self.one(&["500m", "2", "4", "5"]), self.one(&["1Gi", "4Gi", "5Gi"]));
                steps.push(changed(path.clone(), resized(cpu, memory)));
            }
        }
        case(name, steps)
    }
}
