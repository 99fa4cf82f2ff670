//! What an administrator says of pod security: levels where labels say nothing, and who is let be.
//!
//! In: a `PodSecurityConfiguration`. Out: the same, checked.
//!
//! Source: pod-security-admission v0.36.3 `admission/api`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::level::{LevelVersion, SecurityLevel, parse_minor};

/// See the module's doc. By default nothing is asked for, and nobody is let be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityConfiguration {
    pub defaults: SecurityDefaults,
    usernames: BTreeSet<String>,
    runtime_classes: BTreeSet<String>,
    namespaces: BTreeSet<String>,
}

/// The levels of a namespace whose labels say nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecurityDefaults {
    pub enforce: LevelVersion,
    pub audit: LevelVersion,
    pub warn: LevelVersion,
}

impl SecurityConfiguration {
    /// # Errors
    /// It is something else, or says what there is not: the first of it, by its field.
    pub fn of(configuration: &Value) -> Result<SecurityConfiguration, String> {
        let text = |member: &str| configuration[member].as_str().unwrap_or_default();
        let version = text("apiVersion").strip_prefix("pod-security.admission.config.k8s.io/");
        if text("kind") != "PodSecurityConfiguration"
            || !matches!(version, Some("v1" | "v1beta1" | "v1alpha1"))
        {
            return Err(format!("no configuration of PodSecurity: {}, {}", text("apiVersion"), text("kind")));
        }
        only(configuration, "", &["apiVersion", "kind", "defaults", "exemptions"])?;
        let (defaults, exemptions) = (&configuration["defaults"], &configuration["exemptions"]);
        let modes = ["enforce", "enforce-version", "warn", "warn-version", "audit", "audit-version"];
        only(defaults, "defaults.", &modes)?;
        only(exemptions, "exemptions.", &["usernames", "runtimeClasses", "namespaces"])?;
        Ok(SecurityConfiguration {
            defaults: SecurityDefaults {
                enforce: level(defaults, "enforce")?,
                warn: level(defaults, "warn")?,
                audit: level(defaults, "audit")?,
            },
            namespaces: names(exemptions, "namespaces")?,
            runtime_classes: names(exemptions, "runtimeClasses")?,
            usernames: names(exemptions, "usernames")?,
        })
    }

    /// Whether everything in a namespace is let be.
    pub fn exempts_namespace(&self, namespace: &str) -> bool {
        self.namespaces.contains(namespace)
    }

    /// Whether everything that somebody writes is let be.
    pub fn exempts_user(&self, name: &str) -> bool {
        self.usernames.contains(name)
    }

    /// Whether pods of a runtime class are let be.
    pub fn exempts_runtime_class(&self, class: &str) -> bool {
        self.runtime_classes.contains(class)
    }
}

/// Refuses a field that there is not: what it was to say would not be done.
fn only(of: &Value, path: &str, known: &[&str]) -> Result<(), String> {
    // Few: the fields of a configuration.
    let unknown = of.as_object().into_iter().flatten().find(|(name, _)| !known.contains(&name.as_str()));
    unknown.map_or(Ok(()), |(name, _)| Err(format!("unknown field \"{path}{name}\"")))
}

fn level(defaults: &Value, mode: &str) -> Result<LevelVersion, String> {
    let said = |name: &str, unsaid: &str| match defaults[name].as_str() {
        None | Some("") => unsaid.to_owned(),
        Some(said) => said.to_owned(),
    };
    let invalid =
        |name: &str, value: &str, why: &str| format!("defaults.{name}: Invalid value: {value:?}: {why}");
    let value = said(mode, "privileged");
    let level = SecurityLevel::parse(&value)
        .ok_or_else(|| invalid(mode, &value, "must be one of privileged, baseline, restricted"))?;
    let name = format!("{mode}-version");
    let value = said(&name, "latest");
    let minor =
        parse_minor(&value).ok_or_else(|| invalid(&name, &value, "must be \"latest\" or \"v1.x\""))?;
    Ok(LevelVersion { level, minor })
}

fn names(exemptions: &Value, list: &str) -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    for (at, name) in exemptions[list].as_array().into_iter().flatten().enumerate() {
        let field = format!("exemptions.{list}[{at}]");
        let name = name.as_str().unwrap_or_default();
        if name.is_empty() {
            return Err(format!("{field}: Invalid value: \"\": must not be empty"));
        }
        if !names.insert(name.to_owned()) {
            return Err(format!("{field}: Duplicate value: {name:?}"));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(change: &Value) -> Result<SecurityConfiguration, String> {
        let mut all = json!({
            "apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
        });
        change.as_object().into_iter().flatten().for_each(|(name, value)| all[name] = value.clone());
        SecurityConfiguration::of(&all)
    }

    #[test]
    fn a_configuration_says_levels_and_who_is_let_be() {
        assert_eq!(of(&json!({})), Ok(SecurityConfiguration::default()));
        let known = of(&json!({
            "defaults": {"enforce": "baseline", "enforce-version": "v1.30", "warn": ""},
            "exemptions": {"usernames": ["u"], "runtimeClasses": ["r"], "namespaces": ["n", "m"]},
        }))
        .expect("a configuration");
        assert_eq!(known.defaults.enforce.to_string(), "baseline:v1.30");
        assert_eq!(known.defaults.warn, LevelVersion::default());
        assert!(known.exempts_user("u") && known.exempts_runtime_class("r") && known.exempts_namespace("m"));
        assert!(
            !known.exempts_user("n") && !known.exempts_runtime_class("") && !known.exempts_namespace("u")
        );
    }

    #[test]
    fn what_says_nothing_is_refused() {
        for (change, wanted) in [
            (json!({"kind": "Other"}), "no configuration of PodSecurity"),
            (json!({"more": 1}), "unknown field \"more\""),
            (json!({"exemptions": {"users": []}}), "unknown field \"exemptions.users\""),
            (
                json!({"defaults": {"enforce": "all"}}),
                "defaults.enforce: Invalid value: \"all\": must be one of",
            ),
            (json!({"defaults": {"warn-version": "1.30"}}), "defaults.warn-version: Invalid value: \"1.30\""),
            (
                json!({"exemptions": {"namespaces": ["a", "a"]}}),
                "exemptions.namespaces[1]: Duplicate value: \"a\"",
            ),
            (json!({"exemptions": {"usernames": [""]}}), "exemptions.usernames[0]: Invalid value: \"\""),
        ] {
            let refused = of(&change).expect_err("refused");
            assert!(refused.starts_with(wanted), "{refused}");
        }
    }
}
