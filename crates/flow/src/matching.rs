//! Which schema a request is of, and so which level and which flow.
//!
//! In: schemas, and the [`Attributes`] of a request. Out: a [`Flow`]. Never: what follows from it.
//!
//! Source: apiserver v1.36.3 `util/flowcontrol/rule.go`. A `*` is one only where it stands alone in its list.

use std::sync::Arc;

use forebay_apimachinery::attributes::{About, ResourceAttributes};
use forebay_apimachinery::{Attributes, Caller};

use crate::config::{CATCH_ALL, Distinguisher, FlowSchema, PathRule, PolicyRules, ResourceRule, RuleSubject};
use crate::dealer::flow_hash;
use crate::details::cut;

const ALL: &str = "*";

/// What a request is one of: those of a flow take turns with those of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    pub schema: Arc<str>,
    pub schema_uid: Arc<str>,
    pub level: Arc<str>,
    pub distinguisher: Arc<str>,
    pub hash: u64,
}

/// Schemas in the order in which they are asked.
#[derive(Clone, Debug, Default)]
pub struct Schemas(Vec<FlowSchema>);

impl Schemas {
    /// Those schemas, the lowest precedence first, then by name.
    pub fn new(mut schemas: Vec<FlowSchema>) -> Schemas {
        schemas.sort_by(|a, b| (a.precedence, &a.name).cmp(&(b.precedence, &b.name)));
        Schemas(schemas)
    }

    pub fn iter(&self) -> impl Iterator<Item = &FlowSchema> {
        self.0.iter()
    }

    /// The flow of a request: of the first schema that matches, of `catch-all` where none does.
    ///
    /// Cost: a schema after the other; only who configures the server can make there be more.
    ///
    /// # Panics
    /// Without a schema `catch-all`, which is always there.
    pub fn flow(&self, asked: &Attributes) -> Flow {
        let schema = self.0.iter().find(|schema| matches(schema, asked));
        let catch_all = || self.0.iter().find(|schema| &*schema.name == CATCH_ALL);
        flow_of(schema.or_else(catch_all).expect("the schema catch-all is always there"), asked)
    }
}

fn flow_of(schema: &FlowSchema, asked: &Attributes) -> Flow {
    let distinguisher = match (schema.distinguisher, &asked.about) {
        (Distinguisher::ByUser, _) => asked.caller.name.as_str(),
        (Distinguisher::ByNamespace, About::Resource(resource)) => resource.namespace,
        (Distinguisher::ByNamespace, About::Path(_)) | (Distinguisher::None, _) => "",
    };
    Flow {
        schema: schema.name.clone(),
        schema_uid: schema.uid.clone(),
        level: schema.level.clone(),
        distinguisher: cut(distinguisher).into(),
        hash: flow_hash(&schema.name, distinguisher),
    }
}

/// Whether a request is of this schema.
pub fn matches(schema: &FlowSchema, asked: &Attributes) -> bool {
    schema.rules.iter().any(|rules| rules_match(rules, asked))
}

fn rules_match(rules: &PolicyRules, asked: &Attributes) -> bool {
    if !rules.subjects.iter().any(|subject| is_subject(subject, asked.caller)) {
        return false;
    }
    let verb = asked.verb.as_str();
    match asked.about {
        About::Resource(resource) => {
            rules.resources.iter().any(|rule| resource_matches(rule, verb, &resource))
        }
        About::Path(path) => rules.paths.iter().any(|rule| path_matches(rule, verb, path)),
    }
}

fn is_subject(subject: &RuleSubject, caller: &Caller) -> bool {
    match subject {
        RuleSubject::User(name) => name == ALL || *name == caller.name,
        RuleSubject::Group(name) => name == ALL || caller.is_in(name),
        RuleSubject::ServiceAccount { namespace, name } => {
            let own = caller.name.strip_prefix("system:serviceaccount:");
            let own = own.and_then(|own| own.strip_prefix(namespace.as_str())?.strip_prefix(':'));
            own.is_some_and(|own| name == ALL || own == name)
        }
    }
}

fn resource_matches(rule: &ResourceRule, verb: &str, asked: &ResourceAttributes) -> bool {
    let named = |rule: &str| match asked.subresource {
        "" => rule == asked.resource,
        sub => rule.strip_prefix(asked.resource).and_then(|rest| rest.strip_prefix('/')) == Some(sub),
    };
    holds(&rule.verbs, |it| it == verb)
        && holds(&rule.resources, named)
        && holds(&rule.groups, |it| it == asked.group)
        && match asked.namespace {
            "" => rule.cluster_scope,
            namespace => holds(&rule.namespaces, |it| it == namespace),
        }
}

fn path_matches(rule: &PathRule, verb: &str, path: &str) -> bool {
    holds(&rule.verbs, |it| it == verb)
        && rule.paths.iter().any(|rule| rule == ALL || rule == path || is_below(rule, path))
}

/// Whether a path is below the one of a rule, which may end with `*` and with `/`, or not.
fn is_below(rule: &str, path: &str) -> bool {
    let rule = rule.strip_suffix('*').unwrap_or(rule);
    let rule = rule.strip_suffix('/').unwrap_or(rule);
    path.strip_prefix(rule).is_some_and(|rest| rest.starts_with('/'))
}

fn holds(list: &[String], is: impl Fn(&str) -> bool) -> bool {
    matches!(list, [only] if only == ALL) || list.iter().any(|it| is(it))
}

#[cfg(test)]
#[path = "matching_tests.rs"]
mod tests;
