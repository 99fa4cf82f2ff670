//! What an administrator says of plugins in `--admission-control-config-file`, read.
//!
//! In: the `configuration` of a plugin, as JSON. Out: what it goes by. Never: a file.
//!
//! Source: kubernetes v1.36.3
//! `plugin/pkg/admission/{podnodeselector,podtolerationrestriction,eventratelimit}`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::plugins::event_rates::EventRates;
use crate::ranges_looked_for::RangesLookedFor;

/// See the module's doc.
#[derive(Debug, Default)]
pub struct PluginSettings {
    pub node_selectors: NodeSelectors,
    pub tolerations: DefaultTolerations,
    pub event_rates: EventRates,
    pub lost_nodes: LostNodes,
    /// What LimitRanger knows of namespaces, which nobody says.
    pub ranges_looked_for: RangesLookedFor,
}

/// Of DefaultTolerationSeconds: for how long pods stay on a node that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostNodes {
    pub not_ready_seconds: i64,
    pub unreachable_seconds: i64,
}

impl Default for LostNodes {
    fn default() -> LostNodes {
        LostNodes { not_ready_seconds: 300, unreachable_seconds: 300 }
    }
}

/// Of PodNodeSelector: which nodes the pods of a namespace may run on, as selectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSelectors(BTreeMap<String, String>);

/// Of PodTolerationRestriction: what counts where a namespace says nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DefaultTolerations {
    pub default: Vec<Value>,
    pub whitelist: Vec<Value>,
}

impl NodeSelectors {
    /// # Errors
    /// It is something else.
    pub fn of(configuration: &Value) -> Result<NodeSelectors, String> {
        let mut all = BTreeMap::new();
        let said = configuration["podNodeSelectorPluginConfig"].as_object();
        for (namespace, selector) in said.into_iter().flatten() {
            let Some(selector) = selector.as_str() else {
                return Err(format!("podNodeSelectorPluginConfig.{namespace}: must be a text"));
            };
            all.insert(namespace.clone(), selector.to_owned());
        }
        Ok(NodeSelectors(all))
    }

    /// Of a namespace that does not say which.
    pub fn default_selector(&self) -> &str {
        self.of_namespace("clusterDefaultNodeSelector")
    }

    /// What a namespace's pods may say at most; any, if that is empty.
    pub fn of_namespace(&self, namespace: &str) -> &str {
        self.0.get(namespace).map_or("", String::as_str)
    }
}

impl DefaultTolerations {
    /// # Errors
    /// It is something else.
    pub fn of(configuration: &Value) -> Result<DefaultTolerations, String> {
        is_of(configuration, "podtolerationrestriction.admission.k8s.io/v1alpha1")?;
        let list = |name: &str| match &configuration[name] {
            Value::Null => Ok(Vec::new()),
            Value::Array(all) if all.iter().all(Value::is_object) => Ok(all.clone()),
            _ => Err(format!("{name}: must be a list of tolerations")),
        };
        Ok(DefaultTolerations { default: list("default")?, whitelist: list("whitelist")? })
    }
}

/// Whether it is a Configuration of this version.
pub(crate) fn is_of(configuration: &Value, version: &str) -> Result<(), String> {
    match (configuration["apiVersion"].as_str(), configuration["kind"].as_str()) {
        (Some(given), Some("Configuration")) if given == version => Ok(()),
        (given, kind) => Err(format!(
            "no Configuration of {version}: {}, {}",
            given.unwrap_or_default(),
            kind.unwrap_or_default()
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn configurations_are_what_they_say_or_refused() {
        let selectors = NodeSelectors::of(&json!({
            "podNodeSelectorPluginConfig": { "clusterDefaultNodeSelector": "a=b", "x": "c=d" },
        }));
        let selectors = selectors.expect("read");
        assert_eq!((selectors.default_selector(), selectors.of_namespace("x")), ("a=b", "c=d"));
        assert_eq!(selectors.of_namespace("y"), "");
        assert!(NodeSelectors::of(&json!({ "podNodeSelectorPluginConfig": { "x": 1 } })).is_err());
        let version = "podtolerationrestriction.admission.k8s.io/v1alpha1";
        let of = |default: Value| {
            let said = json!({ "apiVersion": version, "kind": "Configuration", "default": default });
            DefaultTolerations::of(&said)
        };
        assert_eq!(of(json!([{ "key": "a" }])).expect("read").default, [json!({ "key": "a" })]);
        assert!(of(json!("a")).is_err());
        assert!(DefaultTolerations::of(&json!({ "kind": "Configuration" })).is_err());
    }
}
