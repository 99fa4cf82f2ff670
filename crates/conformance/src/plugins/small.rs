//! Cases of the plugins that look at little: what of a cluster they read, and the objects that they are
//! about.
//!
//! In: a plugin, a seed by way of [`Draw`]. Out: a [`PluginCase`] with steps. Never: an object of the whole
//! cluster that another case has; a default of the whole cluster.

use http::Method;
use serde_json::{Value, json};

use super::{Draw, PODS, PluginCase, PluginStep, SIZES, Until};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

impl Draw {
    pub(super) fn tolerations_of_pods(&self, name: String) -> PluginCase {
        let pods = (0..3).map(|at| {
            let mut pod = bare_pod(&format!("o{at}"));
            pod["spec"]["tolerations"] = (0..self.below(4)).map(|_| self.toleration()).collect();
            pod
        });
        let mut steps: Vec<PluginStep> = pods.map(|pod| made(&pods_of(&name), pod)).collect();
        let change = json!({"metadata": {"labels": {"changed": "yes"}}});
        steps.push(changed(format!("{}/o{}", pods_of(&name), self.below(3)), change));
        case(name, steps)
    }

    pub(super) fn toleration(&self) -> Value {
        let mut toleration = json!({"operator": self.one(&["Exists", "Exists", "Equal"])});
        let is_for_all = toleration["operator"] == "Exists" && self.percent(20);
        if !is_for_all {
            toleration["key"] = json!(self.one(&[NOT_READY, UNREACHABLE, "other"]));
        }
        if self.percent(70) {
            toleration["effect"] = json!(self.one(&["NoExecute", "NoExecute", "NoSchedule"]));
        }
        if toleration["effect"] == "NoExecute" && self.percent(50) {
            toleration["tolerationSeconds"] = json!(self.below(600));
        }
        toleration
    }

    pub(super) fn taints_of_nodes(&self, name: String) -> PluginCase {
        let nodes = (0..3).map(|at| {
            let taints: Vec<Value> = (0..self.below(3))
                .map(|_| {
                    let effect = self.one(&["NoSchedule", "NoExecute", "PreferNoSchedule"]);
                    json!({"key": self.one(&[NOT_READY, "other"]), "effect": effect})
                })
                .collect();
            let mut node =
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("{name}-{at}")}});
            if self.percent(80) {
                node["spec"] = json!({"taints": taints});
            }
            node
        });
        let steps = nodes.map(|node| made("/api/v1/nodes", node)).collect();
        case(name, steps)
    }

    pub(super) fn priorities(&self, name: String) -> PluginCase {
        let value = self.below(2_000);
        let mut class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value,
        });
        if self.percent(40) {
            class["preemptionPolicy"] = json!(self.one(&["Never", "PreemptLowerPriority"]));
        }
        let mut probe = bare_pod("probe");
        probe["spec"]["priorityClassName"] = json!(name);
        let mut steps = vec![made("/apis/scheduling.k8s.io/v1/priorityclasses", class), heard(&name, probe)];
        for at in 0..4 {
            let mut pod = bare_pod(&format!("o{at}"));
            if self.percent(70) {
                let classes = [name.as_str(), name.as_str(), "missing", "system-node-critical"];
                pod["spec"]["priorityClassName"] = json!(self.one(&classes));
            }
            if self.percent(40) {
                pod["spec"]["priority"] = json!(self.one(&[value, 0, 7]));
            }
            if self.percent(30) {
                pod["spec"]["preemptionPolicy"] = json!(self.one(&["Never", "PreemptLowerPriority"]));
            }
            steps.push(made(&pods_of(&name), pod));
        }
        case(name, steps)
    }

    pub(super) fn runtime_classes(&self, name: String) -> PluginCase {
        let mut class = json!({
            "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": "h",
        });
        if self.percent(60) {
            class["overhead"] = json!({"podFixed": {"cpu": self.one(&["100m", "1"]), "memory": "64Mi"}});
        }
        if self.percent(60) {
            let mut scheduling = json!({});
            if self.percent(60) {
                scheduling["nodeSelector"] = json!({"disk": "fast", "zone": self.one(&["a", "b"])});
            }
            // No two alike, which would be refused.
            scheduling["tolerations"] = (0..self.below(2)).map(|_| self.toleration()).collect();
            class["scheduling"] = scheduling;
        }
        let mut probe = bare_pod("probe");
        probe["spec"]["runtimeClassName"] = json!(name);
        let mut steps = vec![made("/apis/node.k8s.io/v1/runtimeclasses", class), heard(&name, probe)];
        for at in 0..4 {
            let mut pod = bare_pod(&format!("o{at}"));
            if self.percent(80) {
                pod["spec"]["runtimeClassName"] = json!(self.one(&[name.as_str(), name.as_str(), "missing"]));
            }
            if self.percent(30) {
                pod["spec"]["overhead"] = json!({"cpu": self.one(&["100m", "1"]), "memory": "64Mi"});
            }
            if self.percent(30) {
                pod["spec"]["nodeSelector"] = json!({"zone": self.one(&["a", "b"])});
            }
            pod["spec"]["tolerations"] = (0..self.below(2)).map(|_| self.toleration()).collect();
            steps.push(made(&pods_of(&name), pod));
        }
        case(name, steps)
    }

    pub(super) fn in_use(&self, name: String) -> PluginCase {
        let mut volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": self.one(&SIZES)}, "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/tmp"},
            },
        });
        let mut class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "metadata": {"name": name},
            "driverName": "d.example.com", "parameters": {"k": "v"},
        });
        let mut claim = self.claim(0);
        for (object, own) in
            [(&mut volume, "pv-protection"), (&mut class, "vac-protection"), (&mut claim, "pvc-protection")]
        {
            let own = format!("kubernetes.io/{own}");
            match self.below(4) {
                0 => object["metadata"]["finalizers"] = json!([own]),
                1 => object["metadata"]["finalizers"] = json!(["example.com/other", own]),
                2 => object["metadata"]["finalizers"] = json!(["example.com/other"]),
                _ => {}
            }
        }
        let claims = format!("/api/v1/namespaces/{name}/persistentvolumeclaims");
        let classes = "/apis/storage.k8s.io/v1/volumeattributesclasses";
        case(
            name,
            vec![made("/api/v1/persistentvolumes", volume), made(classes, class), made(&claims, claim)],
        )
    }

    pub(super) fn resizes(&self, name: String) -> PluginCase {
        let may_grow = self.one(&[Some(true), Some(true), Some(false), None]);
        let mut class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": "p.example.com",
        });
        if let Some(may_grow) = may_grow {
            class["allowVolumeExpansion"] = json!(may_grow);
        }
        let claims = format!("/api/v1/namespaces/{name}/persistentvolumeclaims");
        let claim = |of: &str| {
            json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": of},
                "spec": {
                    "accessModes": ["ReadWriteOnce"], "storageClassName": name,
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            })
        };
        let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}});
        let grown = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
        let mut steps = vec![
            made("/apis/storage.k8s.io/v1/storageclasses", class),
            made(&claims, claim("probe")),
            changed(format!("{claims}/probe/status"), bound.clone()),
        ];
        if may_grow == Some(true) {
            let path = format!("{claims}/probe?dryRun=All");
            steps.push(PluginStep { until: Some(Until::Code(200)), ..changed(path, grown("9Gi")) });
        }
        steps.push(made(&claims, claim("o0")));
        if self.percent(70) {
            steps.push(changed(format!("{claims}/o0/status"), bound));
        }
        steps.extend((0..2).map(|_| changed(format!("{claims}/o0"), grown(self.one(&SIZES)))));
        case(name, steps)
    }

    pub(super) fn lifecycle(&self, name: String) -> PluginCase {
        let places = ["missing", "default", "kube-system", "kube-public", name.as_str()];
        let mut steps: Vec<PluginStep> = (0..3).map(|at| {
            let place = self.one(&places);
            match self.below(4) {
                3 => of_a_subresource(self.below(3), place),
                0 if place != name => {
                    step(Method::DELETE, format!("/api/v1/namespaces/{place}?dryRun=All"), Value::Null)
                }
                1 => {
                    let lease = json!({
                        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                        "metadata": {"name": format!("{name}-{at}")},
                    });
                    made(&format!("/apis/coordination.k8s.io/v1/namespaces/{place}/leases"), lease)
                }
                _ => {
                    let map = json!({
                        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("{name}-{at}")},
                    });
                    made(&format!("/api/v1/namespaces/{place}/configmaps"), map)
                }
            }
        }).collect();
        // What is in it keeps it there, wherever namespaces are cleaned up.
        let kept = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "kept", "finalizers": ["example.com/kept"]},
        });
        steps.push(made(&format!("/api/v1/namespaces/{name}/configmaps"), kept));
        let ends = step(Method::DELETE, format!("/api/v1/namespaces/{name}"), Value::Null);
        steps.push(PluginStep { until: Some(Until::Any), ..ends });
        steps.extend((0..3).map(|at| of_a_subresource(at, &name)));
        case(name, steps)
    }
}

/// A create of a subresource of what is not there.
fn of_a_subresource(which: usize, namespace: &str) -> PluginStep {
    let root = format!("/api/v1/namespaces/{namespace}");
    match which {
        0 => {
            let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
            made(&format!("{root}/serviceaccounts/nobody/token"), token)
        }
        1 => {
            let eviction =
                json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "none"}});
            made(&format!("{root}/pods/none/eviction"), eviction)
        }
        _ => {
            let binding = json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "none"},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
            });
            made(&format!("{root}/pods/none/binding"), binding)
        }
    }
}

pub(super) fn case(name: String, steps: Vec<PluginStep>) -> PluginCase {
    PluginCase { name, labels: json!({}), rule: None, objects: Vec::new(), then: None, steps }
}

pub(super) fn pods_of(namespace: &str) -> String {
    PODS.replace("{}", namespace)
}

pub(super) fn bare_pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

pub(super) fn made(path: &str, object: Value) -> PluginStep {
    step(Method::POST, path.to_owned(), object)
}

pub(super) fn changed(path: String, change: Value) -> PluginStep {
    step(Method::PATCH, path, change)
}

/// Waits until a server has heard of what `pod` names.
pub(super) fn heard(namespace: &str, pod: Value) -> PluginStep {
    let path = format!("{}?dryRun=All", pods_of(namespace));
    PluginStep { until: Some(Until::Code(201)), ..step(Method::POST, path, pod) }
}

pub(super) fn step(method: Method, path: String, body: Value) -> PluginStep {
    PluginStep { method, path, body, user: None, until: None }
}
