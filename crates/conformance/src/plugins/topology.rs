//! Cases of PodTopologyLabels: a node with labels of where it is, pods that are made on it, pods that are
//! bound to it.
//!
//! In: a seed by way of [`Draw`]. Out: a [`PluginCase`] with steps. Never: a node that another case has.

use http::Method;
use serde_json::{Map, Value, json};

use super::small::{bare_pod, case, changed, made, pods_of, step};
use super::{Draw, PluginCase, PluginStep, Until};

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const NODES: &str = "/api/v1/nodes";

impl Draw {
    pub(super) fn topologies(&self, name: String) -> PluginCase {
        let labels = self.topology();
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        });
        let mut steps = vec![made(NODES, node)];
        steps.extend(labels_heard(&name, &labels));
        for at in 0..3 {
            steps.extend(self.placed(&name, at));
        }
        // Those that are there stay as they are.
        let other = self.topology();
        steps.push(changed(format!("{NODES}/{name}"), json!({"metadata": {"labels": other}})));
        steps.extend(labels_heard(&name, &other));
        steps.extend(self.placed(&name, 3));
        let mine = json!({"metadata": {"labels": {ZONE: self.one(&["mine", "a"]), "changed": "yes"}}});
        let one = format!("{}/o{}", pods_of(&name), self.below(4));
        steps.extend([changed(one.clone(), mine), step(Method::GET, one, Value::Null)]);
        case(name, steps)
    }

    fn topology(&self) -> Map<String, Value> {
        let mut labels = Map::new();
        for (name, percent) in [
            (ZONE, 70),
            (REGION, 60),
            ("failure-domain.beta.kubernetes.io/zone", 25),
            ("topology.kubernetes.io/rack", 25),
            ("kubernetes.io/hostname", 25),
        ] {
            if self.percent(percent) {
                labels.insert(name.to_owned(), json!(self.one(&["a", "b", "c", "d", ""])));
            }
        }
        labels
    }

    /// A pod that is made on the node, or bound to it.
    fn placed(&self, name: &str, at: usize) -> Vec<PluginStep> {
        let places = [name, name, name, "missing"];
        let mut pod = bare_pod(&format!("o{at}"));
        if self.percent(40) {
            pod["metadata"]["labels"] = json!({ZONE: self.one(&["own", ""]), "app": "x"});
        }
        if self.percent(40) {
            pod["spec"]["nodeName"] = json!(self.one(&places));
        }
        let mut steps = vec![made(&pods_of(name), pod)];
        if self.percent(70) {
            let mut binding = json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": format!("o{at}")},
                "target": {"kind": self.one(&["Node", "Node", "Node", ""]), "name": self.one(&places)},
            });
            if self.percent(30) {
                binding["metadata"]["labels"] = json!({REGION: "bound", "app": "y"});
            }
            if self.percent(20) {
                binding["metadata"]["annotations"] = json!({"bound": "yes"});
            }
            let path = match self.percent(80) {
                true => format!("{}/o{at}/binding", pods_of(name)),
                // As it was long ago.
                false => format!("/api/v1/namespaces/{name}/bindings"),
            };
            steps.push(made(&path, binding));
            steps.push(step(Method::GET, format!("{}/o{at}", pods_of(name)), Value::Null));
        }
        steps
    }
}

/// Waits until a server has heard of the node's labels, as far as they show.
fn labels_heard(node: &str, labels: &Map<String, Value>) -> Vec<PluginStep> {
    let shown = [ZONE, REGION].into_iter().filter_map(|name| Some((name, labels.get(name)?)));
    let heard = shown.map(|(name, value)| {
        let mut probe = bare_pod("probe");
        probe["spec"]["nodeName"] = json!(node);
        let at = format!("/metadata/labels/{}", name.replace('/', "~1"));
        let path = format!("{}?dryRun=All", pods_of(node));
        PluginStep { until: Some(Until::Shows(at, value.clone())), ..made(&path, probe) }
    });
    heard.collect()
}
