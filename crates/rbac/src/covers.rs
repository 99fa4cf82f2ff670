//! What rules would give beyond those that somebody has.
//!
//! In: the rules of both. Out: the single rights that are missing, and the words for them. A right counts as
//! had only if one rule has it by itself, as upstream has it. Never: more steps than [`COVER_STEPS_MAX`],
//! which are counted by the bytes that are compared as well; what takes more is not covered.
//!
//! Source: component-helpers v0.36.3 `auth/rbac/validation/policy_comparator.go`; kubernetes v1.36.3
//! `pkg/registry/rbac/validation/policy_compact.go`, `pkg/apis/rbac/v1/evaluation_helpers.go`
//! (`CompactString`).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use forebay_apimachinery::Caller;
use forebay_apimachinery::json::go_quote;
use serde_json::{Value, json};

use crate::limits::{COVER_STEPS_MAX, UNCOVERED_BYTES_MAX, UNCOVERED_MAX, UNCOVERED_TEXTS_MAX};
use crate::rights::Rights;
use crate::role::{PolicyRule, Role};
use crate::texts::{ALL, Texts};

/// What is not covered.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Uncovered {
    // <= UNCOVERED_MAX
    rights: Vec<Right>,
    // Of their texts.
    bytes: usize,
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
pub(crate) fn uncovered(held: &[&PolicyRule], wanted: &[PolicyRule]) -> Uncovered {
    let mut search = Search { steps: COVER_STEPS_MAX, found: Uncovered::default() };
    for rule in wanted {
        if search.resources(held, rule).is_err() || search.paths(held, rule).is_err() {
            search.found.has_more = true;
            break;
        }
    }
    search.found
}

/// Whether a rule has something, and what it took to know.
struct Looked {
    has: bool,
    steps: usize,
}

impl Search {
    /// The rules of `held` that pass `look`.
    fn only<'h>(
        &mut self,
        held: &[&'h PolicyRule],
        look: impl Fn(&PolicyRule) -> Looked,
    ) -> Result<Vec<&'h PolicyRule>, Stopped> {
        let mut found = Vec::new();
        self.take(1)?;
        for rule in held {
            let Looked { has, steps } = look(rule);
            self.take(steps)?;
            if has {
                found.push(*rule);
            }
        }
        Ok(found)
    }

    /// Whether one of `held` passes `look`.
    fn any(&mut self, held: &[&PolicyRule], look: impl Fn(&PolicyRule) -> Looked) -> Result<bool, Stopped> {
        self.take(1)?;
        for rule in held {
            let Looked { has, steps } = look(rule);
            self.take(steps)?;
            if has {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn take(&mut self, steps: usize) -> Result<(), Stopped> {
        self.steps = self.steps.checked_sub(steps).ok_or(Stopped)?;
        Ok(())
    }

    fn miss(&mut self, right: Right) -> Result<(), Stopped> {
        let found = &mut self.found;
        if found.rights.len() >= UNCOVERED_MAX || found.bytes > UNCOVERED_TEXTS_MAX {
            return Err(Stopped);
        }
        found.bytes += right.bytes();
        found.rights.push(right);
        Ok(())
    }

    fn resources(&mut self, held: &[&PolicyRule], wanted: &PolicyRule) -> Result<(), Stopped> {
        // Most often one rule has all of it.
        let has_all = |own: &PolicyRule| Looked {
            has: own.groups.has_all && own.resources.has_all && own.verbs.has_all && own.names.is_empty(),
            steps: 1,
        };
        if self.any(held, has_all)? {
            return Ok(());
        }
        let [groups, resources, verbs, names] =
            [&wanted.groups, &wanted.resources, &wanted.verbs, &wanted.names].map(distinct);
        for group in &groups {
            let of_group = self.only(held, |own| has(&own.groups, group))?;
            for resource in &resources {
                let of_resource = self.only(&of_group, |own| has_resource(&own.resources, resource))?;
                for verb in &verbs {
                    let of_verb = self.only(&of_resource, |own| has(&own.verbs, verb))?;
                    if self.any(&of_verb, |own| Looked { has: own.names.is_empty(), steps: 1 })? {
                        continue;
                    }
                    let right = |name: Option<&Arc<str>>| {
                        let [group, resource, verb] = [group, resource, verb].map(|text| (*text).clone());
                        Right::Resource { group, resource, verb, name: name.cloned() }
                    };
                    if names.is_empty() {
                        self.miss(right(None))?;
                    }
                    for &name in &names {
                        if !self.any(&of_verb, |own| has_text(&own.names, name))? {
                            self.miss(right(Some(name)))?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn paths(&mut self, held: &[&PolicyRule], wanted: &PolicyRule) -> Result<(), Stopped> {
        let verbs = distinct(&wanted.verbs);
        for path in distinct(&wanted.paths.texts) {
            let of_path = self.only(held, |own| Looked {
                has: own.names.is_empty() && own.paths.cover(path),
                steps: own.paths.steps(path.len()),
            })?;
            for verb in &verbs {
                if !self.any(&of_path, |own| has(&own.verbs, verb))? {
                    self.miss(Right::Path { path: path.clone(), verb: (*verb).clone() })?;
                }
            }
        }
        Ok(())
    }
}

/// Each text once, as they come first.
fn distinct(texts: &Texts) -> Vec<&Arc<str>> {
    let mut seen = HashSet::new();
    texts.all.iter().filter(|text| seen.insert(&***text)).collect()
}

fn has_text(own: &Texts, wanted: &str) -> Looked {
    Looked { has: own.has(wanted), steps: own.steps(wanted.len()) }
}

fn has(own: &Texts, wanted: &str) -> Looked {
    if own.has_all { Looked { has: true, steps: 1 } } else { has_text(own, wanted) }
}

fn has_resource(own: &Texts, wanted: &str) -> Looked {
    let Looked { has, steps } = has(own, wanted);
    if has {
        return Looked { has, steps };
    }
    let has = wanted.split_once('/').is_some_and(|(_, of)| own.has_joined(&["*/", of]));
    Looked { has, steps: 2 * steps }
}

impl Right {
    fn bytes(&self) -> usize {
        match self {
            Right::Resource { group, resource, verb, name } => {
                group.len() + resource.len() + verb.len() + name.as_ref().map_or(0, |name| name.len())
            }
            Right::Path { path, verb } => path.len() + verb.len(),
        }
    }
}

impl Rights {
    /// Why `caller` may not give in `namespace` what `given` allows, in upstream's words; nothing where they
    /// have all of it.
    ///
    /// - `resource`: what roles are called of which it is told that they are not there.
    ///
    /// Cost: [`COVER_STEPS_MAX`], and a look at each rule that they have: nothing for a task that others wait
    /// for.
    pub fn refusal_to_give(
        &self,
        caller: &Caller,
        namespace: &str,
        given: &Role,
        resource: &str,
    ) -> Option<String> {
        let held: Vec<&PolicyRule> = self.rules(caller, namespace).collect();
        let missing = uncovered(&held, given.rules());
        (!missing.is_empty())
            .then(|| grant_refusal(caller, &missing, &self.absent(caller, namespace, |_| resource)))
    }
}

impl Uncovered {
    /// Whether nothing is missing.
    pub(crate) fn is_empty(&self) -> bool {
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
    fn words(&self) -> String {
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
fn grant_refusal(caller: &Caller, missing: &Uncovered, absent: &[String]) -> String {
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
