//! What rules would give beyond those that somebody has.
//!
//! In: the rules of both. Out: the single rights that are missing, and the words for them. A right counts as
//! had only if one rule has it by itself, as upstream has it. Never: more looks than
//! [`COVER_STEPS_MAX`]; what takes more is not covered.
//!
//! Source: component-helpers v0.36.3 `auth/rbac/validation/policy_comparator.go`; kubernetes v1.36.3
//! `pkg/registry/rbac/validation/policy_compact.go`, `pkg/apis/rbac/v1/evaluation_helpers.go`
//! (`CompactString`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forebay_apimachinery::Caller;
use forebay_apimachinery::json::go_quote;
use serde_json::{Value, json};

use crate::limits::{COVER_STEPS_MAX, UNCOVERED_BYTES_MAX, UNCOVERED_MAX};
use crate::role::{PolicyRule, Role};
use crate::texts::{ALL, Texts};

/// What is not covered.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Uncovered {
    rights: Vec<Right>,
    /// There may be more.
    has_more: bool,
}

/// One right.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Right {
    Resource { group: Arc<str>, resource: Arc<str>, verb: Arc<str>, name: Option<Arc<str>> },
    Path { path: Arc<str>, verb: Arc<str> },
}

/// What is left to look at, and what was found.
struct Search {
    steps: usize,
    found: Uncovered,
}

/// The limit is reached.
struct Stopped;

/// Everything, as upstream's `cluster-admin` has it.
pub fn full_authority() -> Role {
    let all = [ALL];
    Role::read(&json!({ "rules": [
        { "verbs": all, "apiGroups": all, "resources": all },
        { "verbs": all, "nonResourceURLs": all },
    ] }))
}

/// The single rights of `wanted` that none of `held` has.
pub fn uncovered(held: &[&PolicyRule], wanted: &[PolicyRule]) -> Uncovered {
    let mut search = Search { steps: COVER_STEPS_MAX, found: Uncovered::default() };
    for rule in wanted {
        if search.resources(held, rule).is_err() || search.paths(held, rule).is_err() {
            search.found.has_more = true;
            break;
        }
    }
    search.found
}

impl Search {
    /// The rules of `held` that pass `has`.
    fn only<'h>(
        &mut self,
        held: &[&'h PolicyRule],
        has: impl Fn(&PolicyRule) -> bool,
    ) -> Result<Vec<&'h PolicyRule>, Stopped> {
        self.take(held.len())?;
        Ok(held.iter().copied().filter(|rule| has(rule)).collect())
    }

    fn take(&mut self, steps: usize) -> Result<(), Stopped> {
        self.steps = self.steps.checked_sub(steps + 1).ok_or(Stopped)?;
        Ok(())
    }

    fn miss(&mut self, right: Right) -> Result<(), Stopped> {
        if self.found.rights.len() >= UNCOVERED_MAX {
            return Err(Stopped);
        }
        self.found.rights.push(right);
        Ok(())
    }

    fn resources(&mut self, held: &[&PolicyRule], wanted: &PolicyRule) -> Result<(), Stopped> {
        // Most often one rule has all of it.
        let has_all = |own: &PolicyRule| {
            (own.groups.has_all && own.resources.has_all && own.verbs.has_all) && own.names.is_empty()
        };
        if !self.only(held, has_all)?.is_empty() {
            return Ok(());
        }
        for group in &wanted.groups.all {
            let of_group = self.only(held, |own| has(&own.groups, group))?;
            for resource in &wanted.resources.all {
                let of_resource = self.only(&of_group, |own| has_resource(&own.resources, resource))?;
                for verb in &wanted.verbs.all {
                    let of_verb = self.only(&of_resource, |own| has(&own.verbs, verb))?;
                    self.take(of_verb.len())?;
                    if of_verb.iter().any(|own| own.names.is_empty()) {
                        self.take(wanted.names.all.len())?;
                        continue;
                    }
                    let right = |name: Option<&Arc<str>>| {
                        let (group, resource, verb) = (group.clone(), resource.clone(), verb.clone());
                        Right::Resource { group, resource, verb, name: name.cloned() }
                    };
                    if wanted.names.is_empty() {
                        self.miss(right(None))?;
                    }
                    for name in &wanted.names.all {
                        self.take(of_verb.len())?;
                        if !of_verb.iter().any(|own| own.names.has(name)) {
                            self.miss(right(Some(name)))?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn paths(&mut self, held: &[&PolicyRule], wanted: &PolicyRule) -> Result<(), Stopped> {
        for path in &wanted.paths.texts.all {
            let of_path = self.only(held, |own| own.names.is_empty() && own.paths.cover(path))?;
            for verb in &wanted.verbs.all {
                self.take(of_path.len())?;
                if !of_path.iter().any(|own| has(&own.verbs, verb)) {
                    self.miss(Right::Path { path: path.clone(), verb: verb.clone() })?;
                }
            }
        }
        Ok(())
    }
}

fn has(own: &Texts, wanted: &str) -> bool {
    own.has_all || own.has(wanted)
}

fn has_resource(own: &Texts, wanted: &str) -> bool {
    has(own, wanted)
        || wanted.split_once('/').is_some_and(|(_, subresource)| own.has_joined(&["*/", subresource]))
}

impl Uncovered {
    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.rights.is_empty() && !self.has_more
    }

    /// The same as rules of an object, one for each right.
    pub(crate) fn to_rules(&self) -> Vec<Value> {
        let rule = |right: &Right| match right {
            Right::Path { path, verb } => json!({ "verbs": [&**verb], "nonResourceURLs": [&**path] }),
            Right::Resource { group, resource, verb, name } => {
                let mut rule =
                    json!({ "verbs": [&**verb], "apiGroups": [&**group], "resources": [&**resource] });
                if let Some(name) = name {
                    rule["resourceNames"] = json!([&**name]);
                }
                rule
            }
        };
        self.rights.iter().map(rule).collect()
    }

    /// What is missing, a line for each resource and each path, as upstream says it.
    pub fn words(&self) -> String {
        let mut verbs: BTreeMap<(&str, &str, Option<&str>), Vec<&str>> = BTreeMap::new();
        let mut lines = BTreeSet::new();
        let mut left = UNCOVERED_BYTES_MAX;
        let mut has_more = self.has_more;
        let mut add = |line: String| match left.checked_sub(line.len()) {
            Some(less) => {
                left = less;
                lines.insert(line);
            }
            None => has_more = true,
        };
        for right in &self.rights {
            match right {
                Right::Resource { group, resource, verb, name } => {
                    verbs.entry((&**group, &**resource, name.as_deref())).or_default().push(&**verb);
                }
                Right::Path { path, verb } => {
                    add(format!("{{NonResourceURLs:{}, Verbs:{}}}", list(&[&**path]), list(&[&**verb])));
                }
            }
        }
        for ((group, resource, name), verbs) in verbs {
            let named = name.map(|name| format!(", ResourceNames:{}", list(&[name]))).unwrap_or_default();
            let (group, resource, verbs) = (list(&[group]), list(&[resource]), list(&verbs));
            add(format!("{{APIGroups:{group}, Resources:{resource}{named}, Verbs:{verbs}}}"));
        }
        let mut words = lines.into_iter().collect::<Vec<_>>().join("\n");
        if has_more {
            words.push_str("\nand more");
        }
        words
    }
}

/// Why `caller`, who has not what is `missing`, may not give it.
///
/// - `absent`: roles of theirs that could not be looked at.
pub fn grant_refusal(caller: &Caller, missing: &Uncovered, absent: &[String]) -> String {
    let groups: Vec<&str> = caller.groups.iter().map(String::as_str).collect();
    let mut words = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        go_quote(&caller.name),
        list(&groups),
        missing.words()
    );
    match absent {
        [] => {}
        [one] => words.push_str(&format!("; resolution errors: [{one}]")),
        several => words.push_str(&format!("; resolution errors: [[{}]]", several.join(", "))),
    }
    words
}

/// `["get" "list"]`: a list of texts as Go's `%q` has it, up to what is told at all.
fn list(texts: &[&str]) -> String {
    let mut out = String::from("[");
    for (at, text) in texts.iter().enumerate() {
        if out.len() > UNCOVERED_BYTES_MAX {
            break;
        }
        if at > 0 {
            out.push(' ');
        }
        out.push_str(&go_quote(text));
    }
    out.push(']');
    out
}

#[cfg(test)]
#[path = "covers_tests.rs"]
mod tests;
