//! Whether a request is one that a policy, or a binding, is about.
//!
//! In: `matchConstraints` or `matchResources` as they are stored, a request. Out: what it matches as. Never:
//! the kind of an equivalent resource, which the caller knows.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/policy/matching/matching.go`,
//! `pkg/admission/plugin/webhook/predicates`.

use std::sync::Arc;

use forebay_apimachinery::selector::LabelSelector;
use forebay_apimachinery::{GroupVersionKind, GroupVersionResource};
use serde_json::{Map, Value};

use crate::request::{AdmissionOperation, PolicyRequest};

const ANY: &str = "*";

/// A resource in one version, and the kind of what is sent to it.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestedResource {
    pub resource: GroupVersionResource,
    pub kind: GroupVersionKind,
}

/// What a request matches as.
#[derive(Clone, Debug, PartialEq)]
pub enum Matched {
    No,
    /// As what it is.
    Itself,
    /// As that of the equivalent resources, by its place.
    Equivalent(usize),
}

/// What a policy or a binding is about.
pub struct Constraints {
    namespaces: Option<Result<LabelSelector, String>>,
    objects: Option<Result<LabelSelector, String>>,
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    takes_equivalents: bool,
    /// Whether it is about everything where there are no rules.
    takes_all: bool,
}

struct Rule {
    operations: Vec<Box<str>>,
    groups: Vec<Box<str>>,
    versions: Vec<Box<str>>,
    /// With the subresource of each, empty for none.
    resources: Vec<(Box<str>, Box<str>)>,
    scope: Box<str>,
    /// All, if there are none.
    names: Vec<Box<str>>,
}

impl Constraints {
    pub(crate) fn read(constraints: &Map<String, Value>) -> Constraints {
        Constraints {
            namespaces: constraints.get("namespaceSelector").map(LabelSelector::from_value),
            objects: constraints.get("objectSelector").map(LabelSelector::from_value),
            rules: objects(constraints, "resourceRules").map(Rule::read).collect(),
            excluded: objects(constraints, "excludeResourceRules").map(Rule::read).collect(),
            takes_equivalents: text(constraints, "matchPolicy") == "Equivalent",
            takes_all: true,
        }
    }

    /// Those of a webhook, which without rules is about nothing.
    pub(crate) fn of_webhook(webhook: &Map<String, Value>) -> Constraints {
        let rules = objects(webhook, "rules").map(Rule::read).collect();
        Constraints { rules, takes_all: false, ..Constraints::read(webhook) }
    }

    /// What `request` matches as.
    ///
    /// - `labels`: those of its namespace, asked for only if they count.
    ///
    /// # Errors
    /// Why that cannot be said.
    pub fn matches(
        &self,
        request: &PolicyRequest<'_>,
        labels: &dyn Fn() -> Result<Arc<Value>, String>,
    ) -> Result<Matched, String> {
        let of_namespace = self.namespace_matches(request, labels);
        let of_object = self.object_matches(request);
        if of_namespace == Ok(false) || of_object == Ok(false) {
            return Ok(Matched::No);
        }
        if self.by_rules(&self.excluded, request) != Matched::No {
            return Ok(Matched::No);
        }
        let matched = match self.rules.is_empty() && self.takes_all {
            true => Matched::Itself,
            false => self.by_rules(&self.rules, request),
        };
        if matched != Matched::No {
            // Now that it is about the request, what is wrong with it counts.
            of_namespace?;
            of_object?;
        }
        Ok(matched)
    }

    fn namespace_matches(
        &self,
        request: &PolicyRequest<'_>,
        labels: &dyn Fn() -> Result<Arc<Value>, String>,
    ) -> Result<bool, String> {
        let is_of_namespaces = &*request.own.resource.resource == "namespaces";
        if request.namespace.is_empty() && !is_of_namespaces {
            return Ok(true);
        }
        let selector = parsed(&self.namespaces, "namespace")?;
        if selector.is_everything() {
            return Ok(true);
        }
        let is_written = matches!(request.operation, AdmissionOperation::Create | AdmissionOperation::Update);
        if is_of_namespaces && request.subresource.is_empty() && is_written {
            return Ok(selected(selector, request.object));
        }
        Ok(selected(selector, Some(&*labels()?)))
    }

    fn object_matches(&self, request: &PolicyRequest<'_>) -> Result<bool, String> {
        let selector = parsed(&self.objects, "object")?;
        let either = || [request.object, request.old_object].into_iter().flatten();
        Ok(selector.is_everything() || either().any(|object| selected(selector, Some(object))))
    }

    fn by_rules(&self, rules: &[Rule], request: &PolicyRequest<'_>) -> Matched {
        if rules.iter().any(|rule| rule.takes(&request.own.resource, request)) {
            return Matched::Itself;
        }
        if self.takes_equivalents {
            for rule in rules {
                for (at, equivalent) in request.equivalents.iter().enumerate() {
                    if rule.takes(&equivalent.resource, request) {
                        return Matched::Equivalent(at);
                    }
                }
            }
        }
        Matched::No
    }
}

impl Rule {
    fn read(rule: &Map<String, Value>) -> Rule {
        let resources = texts(rule, "resources").into_iter().map(|resource| match resource.split_once('/') {
            Some((resource, subresource)) => (resource.into(), subresource.into()),
            None => (resource, "".into()),
        });
        Rule {
            operations: texts(rule, "operations"),
            groups: texts(rule, "apiGroups"),
            versions: texts(rule, "apiVersions"),
            resources: resources.collect(),
            scope: text(rule, "scope").into(),
            names: texts(rule, "resourceNames"),
        }
    }

    /// Whether it is about `request` as one of `resource`.
    fn takes(&self, resource: &GroupVersionResource, request: &PolicyRequest<'_>) -> bool {
        self.is_of_scope(resource, request)
            && takes(&self.operations, request.operation.as_str())
            && takes(&self.groups, &resource.group)
            && takes(&self.versions, &resource.version)
            && self.resources.iter().any(|(name, subresource)| {
                is(name, &resource.resource) && is(subresource, request.subresource)
            })
            && (self.names.is_empty() || self.names.iter().any(|name| **name == *request.name))
    }

    fn is_of_scope(&self, resource: &GroupVersionResource, request: &PolicyRequest<'_>) -> bool {
        // A namespace is in itself, and yet at cluster scope.
        let is_namespace =
            (&*resource.group, &*resource.version, &*resource.resource) == ("", "v1", "namespaces");
        let is_clusters = is_namespace || request.namespace.is_empty();
        match &*self.scope {
            "Namespaced" => !is_clusters,
            "Cluster" => is_clusters,
            _ => true,
        }
    }
}

fn parsed<'s>(
    selector: &'s Option<Result<LabelSelector, String>>,
    of: &str,
) -> Result<&'s LabelSelector, String> {
    match selector {
        Some(Ok(selector)) => Ok(selector),
        Some(Err(why)) => Err(why.clone()),
        None => {
            Err(format!("a nil {of} selector was passed, please ensure selectors are initialized properly"))
        }
    }
}

fn selected(selector: &LabelSelector, object: Option<&Value>) -> bool {
    let labels = object.and_then(|object| object.get("metadata")?.get("labels")?.as_object());
    object.is_some_and(|_| selector.matches(|key| labels?.get(key)?.as_str()))
}

fn takes(any_of: &[Box<str>], wanted: &str) -> bool {
    any_of.iter().any(|one| is(one, wanted))
}

fn is(one: &str, wanted: &str) -> bool {
    one == ANY || one == wanted
}

pub(crate) fn text<'v>(of: &'v Map<String, Value>, name: &str) -> &'v str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn texts(of: &Map<String, Value>, name: &str) -> Vec<Box<str>> {
    let list = of.get(name).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect()
}

pub(crate) fn objects<'v>(
    of: &'v Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = &'v Map<String, Value>> {
    of.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}
