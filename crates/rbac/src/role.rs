//! Roles and their rules.
//!
//! In: a Role or a ClusterRole as a tree, questions. Out: whether a rule allows it.
//!
//! Source: kubernetes v1.36.3 `pkg/apis/rbac/v1/evaluation_helpers.go`,
//! `plugin/pkg/auth/authorizer/rbac/rbac.go` (`RuleAllows`).

use std::sync::Arc;

use forebay_apimachinery::{About, Attributes, ResourceAttributes};
use serde_json::Value;

use crate::question::{Marks, Question, mark};
use crate::texts::{Paths, Texts};

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// What a role allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Role {
    pub(crate) rules: Box<[PolicyRule]>,
    pub(crate) marks: Marks,
}

/// Verbs on resources, or on paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyRule {
    pub(crate) verbs: Texts,
    pub(crate) groups: Texts,
    pub(crate) resources: Texts,
    pub(crate) names: Texts,
    pub(crate) paths: Paths,
    marks: Marks,
}

impl Role {
    /// The role of an object; what is no rule is passed over.
    pub fn read(object: &Value) -> Role {
        let rules = object["rules"].as_array().into_iter().flatten();
        let rules: Box<[PolicyRule]> = rules.map(PolicyRule::read).collect();
        let marks = rules.iter().fold(Marks::default(), |marks, rule| marks.and(rule.marks));
        Role { rules, marks }
    }

    pub fn rules(&self) -> &[PolicyRule] {
        &self.rules
    }

    /// Whether one of its rules does: of a role that is not bound to anybody, but had by whoever asks.
    pub fn permits(&self, asked: &Attributes<'_>) -> bool {
        let question = Question::of(asked);
        question.may_match(self.marks) && self.allows(&question)
    }

    /// Whether one of its rules does.
    pub(crate) fn allows(&self, asked: &Question<'_>) -> bool {
        self.rules.iter().any(|rule| asked.may_match(rule.marks) && rule.allows(asked))
    }
}

impl PolicyRule {
    pub(crate) fn read(rule: &Value) -> PolicyRule {
        let [verbs, groups, resources, names] =
            ["verbs", "apiGroups", "resources", "resourceNames"].map(|list| Texts::read(&rule[list]));
        let paths = Paths::read(&rule["nonResourceURLs"]);
        let marks = Marks {
            verbs: marks(&verbs),
            groups: marks(&groups),
            resources: marks(&resources),
            paths: !paths.is_empty(),
        };
        PolicyRule { verbs, groups, resources, names, paths, marks }
    }

    /// Its verbs; `*` is all of them.
    pub fn verbs(&self) -> &[Arc<str>] {
        &self.verbs.all
    }

    /// The API groups of its resources.
    pub fn groups(&self) -> &[Arc<str>] {
        &self.groups.all
    }

    /// `pods`, `pods/log`, `*/scale`.
    pub fn resources(&self) -> &[Arc<str>] {
        &self.resources.all
    }

    /// Of objects with these names; none: of all.
    pub fn names(&self) -> &[Arc<str>] {
        &self.names.all
    }

    /// Paths that are no resources.
    pub fn paths(&self) -> &[Arc<str>] {
        &self.paths.texts.all
    }

    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        let lists = [self.verbs(), self.groups(), self.resources(), self.names(), self.paths()];
        lists.iter().flat_map(|list| list.iter()).map(|text| text.len() + 4).sum()
    }

    fn allows(&self, asked: &Question<'_>) -> bool {
        let verb = self.verbs.has_all || self.verbs.has(asked.verb);
        verb && match asked.about {
            About::Path(path) => self.paths.cover(path),
            About::Resource(of) => {
                (self.groups.has_all || self.groups.has(of.group))
                    && self.has_resource(&of)
                    && (self.names.is_empty() || self.names.has(of.name))
            }
        }
    }

    fn has_resource(&self, of: &ResourceAttributes<'_>) -> bool {
        self.resources.has_all
            || match of.subresource {
                "" => self.resources.has(of.resource),
                subresource => {
                    self.resources.has_joined(&[of.resource, "/", subresource])
                        || self.resources.has_joined(&["*/", subresource])
                }
            }
    }
}

fn marks(texts: &Texts) -> u64 {
    match texts.has_all {
        true => u64::MAX,
        false => texts.all.iter().fold(0, |marks, text| marks | mark(&[text])),
    }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::{Caller, Verb};
    use serde_json::json;

    use super::*;

    /// `verb group/resource/subresource/name` or `verb /path`
    fn allows(rule: &Value, asked: &str) -> bool {
        let (verb, what) = asked.split_once(' ').expect("a verb");
        let mut parts = what.split(':');
        let mut part = || parts.next().unwrap_or("");
        let about = match what.starts_with('/') {
            true => About::Path(what),
            false => About::Resource(ResourceAttributes {
                group: part(),
                resource: part(),
                subresource: part(),
                name: part(),
                ..ResourceAttributes::default()
            }),
        };
        let (caller, verb) = (Caller::default(), Verb::named(verb));
        let role = Role::read(&json!({ "rules": [rule] }));
        role.allows(&Question::of(&Attributes { caller: &caller, verb: &verb, about }))
    }

    #[test]
    fn a_rule_allows_what_upstreams_does() {
        let pods = json!({ "verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log", "*/scale"] });
        let named =
            json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["a", "b"] });
        let paths = json!({ "verbs": ["get"], "nonResourceURLs": ["/livez/*", "/x"] });
        let both =
            json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "nonResourceURLs": ["/x"] });
        for (rule, asked, want) in [
            (&pods, "get :pods", true),
            (&pods, "list :pods", true),
            (&pods, "watch :pods", false),
            (&pods, "get apps:pods", false),
            (&pods, "get :pods:log", true),
            (&pods, "get :pods:exec", false),
            (&pods, "get :other:scale", true),
            (&pods, "get :other:status", false),
            // Upstream takes the two for one text, and so does a review that says it.
            (&pods, "get :pods/log", true),
            (&pods, "get :pods::any", true),
            (&pods, "get /x", false),
            (&named, "frob x:y:z:a", true),
            (&named, "frob x:y:z:c", false),
            (&named, "frob x:y:z", false),
            (&paths, "get /livez/a", true),
            (&paths, "get /livez", false),
            (&paths, "get /x", true),
            (&paths, "get /xy", false),
            (&paths, "post /x", false),
            (&paths, "get :livez", false),
            (&both, "get :pods", true),
            (&both, "get /x", true),
        ] {
            assert_eq!(allows(rule, asked), want, "{rule} {asked}");
        }
        // A path that begins with no slash is one as well.
        assert!(Paths::read(&json!(["*"])).cover("x"));
    }

    #[test]
    fn what_is_no_list_of_texts_allows_nothing() {
        for rule in [json!({}), json!(null), json!({ "verbs": "get", "apiGroups": [1], "resources": {} })] {
            assert!(!allows(&rule, "get :pods"), "{rule}");
        }
    }
}
