//! Which requests are noted, and how much of them: the first rule that a request matches says it.
//!
//! In: what is asked, by whom. Out: a verdict. Never: reads a file; changes while it is in force.
//!
//! Source: apiserver v0.36.3 `pkg/audit/policy/checker.go`.

use forebay_apimachinery::{About, Attributes, ResourceAttributes};

use crate::level::{AuditLevel, Stages};

/// See the module's doc. Its rules are an administrator's, and few; a request is held against them in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPolicy {
    pub(crate) rules: Vec<PolicyRule>,
}

/// What is empty is said of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PolicyRule {
    /// As it is written until it is validated.
    pub level: AuditLevel,
    pub users: Vec<String>,
    pub groups: Vec<String>,
    pub verbs: Vec<String>,
    pub resources: Vec<GroupResources>,
    pub namespaces: Vec<String>,
    pub paths: Vec<String>,
    /// The policy's own among them.
    pub omits: Stages,
    pub omits_managed_fields: bool,
}

/// Resources of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupResources {
    pub group: String,
    pub resources: Vec<String>,
    pub names: Vec<String>,
}

/// What is noted of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditVerdict {
    pub level: AuditLevel,
    /// Stages at which nothing is.
    pub omits: Stages,
    pub omits_managed_fields: bool,
}

impl AuditPolicy {
    /// What is noted of a request that asks for this. Nobody asks where nobody is known.
    pub fn verdict(&self, asked: &Attributes<'_>) -> AuditVerdict {
        // Few: rules of a file.
        let rule = self.rules.iter().find(|rule| rule.matches(asked));
        rule.map_or_else(AuditVerdict::default, |rule| AuditVerdict {
            level: rule.level,
            omits: rule.omits,
            omits_managed_fields: rule.omits_managed_fields,
        })
    }
}

impl PolicyRule {
    fn matches(&self, asked: &Attributes<'_>) -> bool {
        let caller = asked.caller;
        // Few: users and groups of a rule.
        if !self.users.is_empty() && !has(&self.users, &caller.name) {
            return false;
        }
        if !self.groups.is_empty() && !caller.groups.iter().any(|group| has(&self.groups, group)) {
            return false;
        }
        if !self.verbs.is_empty() && !has(&self.verbs, asked.verb.as_str()) {
            return false;
        }
        let is_of_resources = !self.namespaces.is_empty() || !self.resources.is_empty();
        match asked.about {
            About::Resource(of) if is_of_resources => self.matches_resource(&of),
            About::Resource(_) => self.paths.is_empty(),
            About::Path(_) if is_of_resources => false,
            About::Path(path) => {
                self.paths.is_empty() || self.paths.iter().any(|pattern| matches_path(pattern, path))
            }
        }
    }

    fn matches_resource(&self, of: &ResourceAttributes<'_>) -> bool {
        if !self.namespaces.is_empty() && !has(&self.namespaces, of.namespace) {
            return false;
        }
        self.resources.is_empty() || self.resources.iter().any(|one| one.matches(of))
    }
}

impl GroupResources {
    fn matches(&self, of: &ResourceAttributes<'_>) -> bool {
        if self.group != of.group && self.group != "*" {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        if !self.names.is_empty() && !has(&self.names, of.name) {
            return false;
        }
        self.resources.iter().any(|pattern| matches_name(pattern, of.resource, of.subresource))
    }
}

/// Whether a resource, or a subresource of one, is meant by `pattern`: `*`, `a`, `a/b`, `a/*`, `*/b`.
fn matches_name(pattern: &str, resource: &str, subresource: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    match pattern.split_once('/') {
        None => subresource.is_empty() && pattern == resource,
        Some((of, part)) => {
            let is_itself = of == resource && part == subresource && !subresource.is_empty();
            let is_part = of == "*" && part == subresource && !subresource.is_empty();
            is_itself || is_part || of == resource && part == "*"
        }
    }
}

fn matches_path(pattern: &str, path: &str) -> bool {
    pattern == "*"
        || pattern == path
        || pattern.ends_with('*') && path.starts_with(pattern.trim_end_matches('*'))
}

fn has(all: &[String], one: &str) -> bool {
    all.iter().any(|own| own == one)
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::{Caller, Verb};

    use super::*;
    use crate::level::AuditStage;
    use crate::read_policy::read_text;

    /// `user+group verb path`, or `user+group verb group/resource/subresource namespace name`.
    fn verdict(policy: &AuditPolicy, asked: &str) -> AuditVerdict {
        let mut words = asked.split(' ');
        let mut who = words.next().unwrap_or_default().split('+').map(String::from);
        let name = who.next().unwrap_or_default();
        let caller = Caller { name, groups: who.collect(), ..Caller::default() };
        let verb = Verb::named(words.next().unwrap_or_default());
        let what = words.next().unwrap_or_default();
        let (namespace, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let about = if what.starts_with('/') {
            About::Path(what)
        } else {
            let mut parts = what.split(':');
            let mut part = || parts.next().unwrap_or_default();
            let (group, resource, subresource) = (part(), part(), part());
            About::Resource(ResourceAttributes {
                group,
                version: "v1",
                namespace,
                resource,
                subresource,
                name,
                ..ResourceAttributes::default()
            })
        };
        policy.verdict(&Attributes { caller: &caller, verb: &verb, about })
    }

    fn levels(rules: &str, rows: &[(&str, AuditLevel)]) {
        let policy = read_text(rules).expect("a policy").0;
        for (asked, level) in rows {
            assert_eq!(verdict(&policy, asked).level, *level, "{asked}");
        }
    }

    #[test]
    fn the_first_rule_that_matches_says_it_and_none_is_nothing() {
        levels(
            r#"{"rules": [
                {"level": "None", "users": ["sys"]},
                {"level": "Metadata", "userGroups": ["dev", "ops"], "verbs": ["get", "watch"]},
                {"level": "Request", "namespaces": ["a", ""]},
                {"level": "RequestResponse", "nonResourceURLs": ["/healthz*", "/version"]}
            ]}"#,
            &[
                ("sys+dev get :pods a x", AuditLevel::None),
                ("ann+x+ops watch :pods a x", AuditLevel::Metadata),
                ("ann+ops list :pods a x", AuditLevel::Request),
                ("ann create :nodes", AuditLevel::Request),
                ("ann create :pods b", AuditLevel::None),
                ("ann get /healthz/etcd", AuditLevel::RequestResponse),
                ("ann get /version", AuditLevel::RequestResponse),
                ("ann get /version/x", AuditLevel::None),
                ("ann+dev get /anything", AuditLevel::Metadata),
            ],
        );
    }

    #[test]
    fn resources_are_named_with_their_parts_and_by_stars() {
        let of =
            |resources: &str| format!(r#"{{"rules": [{{"level": "Request", "resources": [{resources}]}}]}}"#);
        let (yes, no) = (AuditLevel::Request, AuditLevel::None);
        levels(
            &of(r#"{"group": "", "resources": ["pods", "*/scale", "nodes/*", "services/status"]}"#),
            &[
                ("a get :pods n x", yes),
                ("a get :pods:log n x", no),
                ("a get :replicationcontrollers:scale n x", yes),
                ("a get apps:deployments:scale n x", no),
                ("a get :nodes:proxy  x", yes),
                // As kube-apiserver has it: what is behind the slash may be nothing.
                ("a get :nodes  x", yes),
                ("a get :services:status n x", yes),
                ("a get :services n x", no),
                ("a get /api/v1", no),
            ],
        );
        levels(
            &of(r#"{"group": "*", "resources": ["*"], "resourceNames": ["x", ""]}"#),
            &[("a get apps:deployments:scale n x", yes), ("a list :pods n", yes), ("a get :pods n y", no)],
        );
        levels(
            &of(r#"{"group": "apps"}"#),
            &[("a get apps:deployments:scale n x", yes), ("a get :pods n", no)],
        );
    }

    #[test]
    fn stages_of_policy_and_rule_are_omitted_and_a_rule_has_its_word_on_managed_fields() {
        let policy = read_text(
            r#"{"omitStages": ["RequestReceived"], "omitManagedFields": true, "rules": [
                {"level": "Metadata", "verbs": ["get"], "omitStages": ["Panic"], "omitManagedFields": false},
                {"level": "Metadata"}
            ]}"#,
        );
        let policy = policy.expect("a policy").0;
        let first = verdict(&policy, "a get :pods n x");
        assert!(first.omits.has(AuditStage::RequestReceived) && first.omits.has(AuditStage::Panic));
        assert!(!first.omits.has(AuditStage::ResponseComplete) && !first.omits_managed_fields);
        let other = verdict(&policy, "a list :pods n");
        assert!(!other.omits.has(AuditStage::Panic) && other.omits_managed_fields);
    }
}
