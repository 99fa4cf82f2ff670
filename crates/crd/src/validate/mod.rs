//! Judges a custom resource by its schema: all violations, with the paths and in the words of kube-apiserver.
//!
//! In: a value, its schema, and for an update the value before. Out: field errors. On an update, what was
//! already wrong and is unchanged is forgiven ("ratcheting"). Junctors (`anyOf` and so on) report the branch
//! that came closest, as Kubernetes does: the one that passed most checks. Never changes the value.
//!
//! Source: kube-openapi `pkg/validation/validate`; apiextensions-apiserver v0.36.3 `pkg/apiserver/validation`.

pub(super) mod correlate;
mod number;
mod scalar;
mod violation;

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

use forebay_apimachinery::{FaultBytes, steps};
use serde_json::{Map, Value};

use self::correlate::ListIndex;
use self::violation::{Code, Violation};
use super::field::{Faults, FieldError, Path};
use super::limits::VISITS_MAX;
use super::schema::{Additional, Flags, Node, Rules, Schema};
use forebay_apimachinery::go_format as go;

impl Schema {
    /// Returns all violations of a whole object.
    pub fn validate(&self, object: &Value) -> Vec<FieldError> {
        check_instance(self.root(), object, None, Path::NIL)
    }

    /// As [`Schema::validate`], forgiving what `old` already had wrong and `object` leaves as it was.
    pub fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        check_instance(self.root(), object, Some(old), Path::NIL)
    }

    /// Judges only `.status`, as a write to the status subresource is judged.
    pub fn validate_status_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let (Some(schema), Some(status)) = (self.status(), object.get("status")) else { return Vec::new() };
        let old = old.get("status").unwrap_or(&Value::Null);
        check_instance(schema, status, Some(old), Path::root("status"))
    }
}

/// Judges a default value that stands at `path`.
pub(super) fn check_default(
    node: &Node,
    value: &Value,
    path: &Path<'_>,
    visits_left: &Cell<u32>,
) -> Vec<FieldError> {
    check(node, value, None, Rulebook::Default, path, visits_left)
}

fn check_instance(node: &Node, value: &Value, old: Option<&Value>, path: Path<'_>) -> Vec<FieldError> {
    check(node, value, old, Rulebook::Instance, &path, &Cell::new(VISITS_MAX))
}

/// Kubernetes reads the same schema a little differently for instances and for defaults.
#[derive(Clone, Copy, PartialEq)]
enum Rulebook {
    /// Unknown formats are ignored; int-or-string has two types.
    Instance,
    /// Formats and types hold as written.
    Default,
}

fn check(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    rulebook: Rulebook,
    path: &Path<'_>,
    visits_left: &Cell<u32>,
) -> Vec<FieldError> {
    let mut checker = Checker { rulebook, found: Some(Vec::new()), told: FaultBytes::default(), visits_left };
    checker.correlated(node, value, &At::Root, old);
    let mut found = checker.found.unwrap_or_default();
    if visits_left.get() == 0 {
        found.push(Violation::plain(format!("takes more than {VISITS_MAX} checks")));
    }
    if found.is_empty() {
        return Vec::new();
    }
    let (mut seen, prefix) = (HashSet::new(), path.to_string());
    let found = found.into_iter().filter(|v| seen.insert(v.message.clone()));
    found.map(|v| v.into_error(&prefix)).collect::<Faults>().into_vec()
}

/// Where a value stands, as a chain of stack frames.
enum At<'p> {
    Root,
    Property(&'p At<'p>, &'p str),
    /// A key of `additionalProperties`; at the root it begins with a dot.
    Key(&'p At<'p>, &'p str),
    Index(&'p At<'p>, usize),
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Root => Ok(()),
            At::Property(At::Root, name) => f.write_str(name),
            At::Property(parent, name) | At::Key(parent, name) => write!(f, "{parent}.{name}"),
            At::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// How a check ended: how many checks passed decides which failed branch of a junctor is reported.
#[derive(Clone, Copy)]
struct Outcome {
    valid: bool,
    matches: u32,
}

impl Outcome {
    const NONE: Outcome = Outcome { valid: true, matches: 0 };

    fn merge(&mut self, other: Outcome) {
        self.valid &= other.valid;
        self.matches += other.matches;
    }
}

struct Checker<'c> {
    rulebook: Rulebook,
    /// Violations in the order found; none while a branch is only tried.
    found: Option<Vec<Violation>>,
    told: FaultBytes,
    /// How many values are still looked at. With none left nothing is, and what is said does not count.
    visits_left: &'c Cell<u32>,
}

impl Checker<'_> {
    /// Whether a violation more makes no difference once there is one.
    fn is_silent(&self) -> bool {
        self.found.is_none() || self.told.is_full()
    }

    fn report(&mut self, outcome: &mut Outcome, violation: impl FnOnce() -> Violation) {
        outcome.valid = false;
        if let Some(found) = &mut self.found
            && !self.told.is_full()
        {
            let violation = violation();
            self.told.add(violation.bytes());
            found.push(violation);
        }
    }

    /// Checks without reporting.
    fn attempt(&self, node: &Node, value: &Value, at: &At<'_>) -> Outcome {
        let mut silent = Checker { found: None, told: FaultBytes::default(), ..*self };
        silent.value(node, value, at, None)
    }

    /// Checks a value and forgives it if it equals the one before.
    fn correlated(&mut self, node: &Node, value: &Value, at: &At<'_>, old: Option<&Value>) -> Outcome {
        let mark = self.found.as_ref().map_or(0, Vec::len);
        let mut outcome = self.value(node, value, at, old);
        if !outcome.valid && old.is_some_and(|old| correlate::is_unchanged(node, value, old)) {
            outcome.valid = true;
            if let Some(found) = &mut self.found {
                let forgiven = found.drain(mark..).map(|violation| violation.bytes()).sum();
                self.told.take_back(forgiven);
            }
        }
        outcome
    }

    fn value(&mut self, node: &Node, value: &Value, at: &At<'_>, old: Option<&Value>) -> Outcome {
        let mut outcome = Outcome::NONE;
        let Some(left) = self.visits_left.get().checked_sub(1) else { return outcome };
        self.visits_left.set(left);
        steps::add(1);
        if value.is_null() {
            outcome.merge(self.null(node, at));
            outcome.merge(self.choices(node, value, at));
            return outcome;
        }
        if let Some(result) = self.kind(node, value, at) {
            outcome.merge(result);
            outcome.matches += 1;
        }
        outcome.merge(self.junctors(node, value, at));
        outcome.matches += 1;
        match value {
            Value::String(text) => {
                outcome.merge(self.text(node, text, at));
                outcome.matches += 1;
                if let Some(result) = self.format(node, text, at) {
                    outcome.merge(result);
                    outcome.matches += 1;
                }
            }
            Value::Number(number) => {
                outcome.merge(self.number(node, go::Num::of(number), at));
                outcome.matches += 1;
            }
            Value::Array(items) => {
                outcome.merge(self.array(node, items, at, old));
                outcome.matches += 1;
            }
            _ => {}
        }
        outcome.merge(self.choices(node, value, at));
        outcome.matches += 1;
        if let Value::Object(map) = value {
            outcome.merge(self.object(node, map, at, old));
            outcome.matches += 1;
        }
        outcome.matches += 1;
        outcome
    }

    fn junctors(&mut self, node: &Node, value: &Value, at: &At<'_>) -> Outcome {
        let mut outcome = Outcome { valid: true, matches: 1 };
        let Some(rules) = &node.rules else { return outcome };
        if !rules.any_of.is_empty() {
            outcome.merge(self.any_of(rules, value, at));
        }
        if !rules.one_of.is_empty() {
            outcome.merge(self.one_of(rules, value, at));
        }
        if !rules.all_of.is_empty() {
            outcome.merge(self.all_of(rules, value, at));
        }
        if rules.not.as_ref().is_some_and(|not| self.attempt(not, value, at).valid) {
            self.report(&mut outcome, || Violation::junctor(at, "must not validate the schema (not)"));
        }
        outcome
    }

    fn any_of(&mut self, rules: &Rules, value: &Value, at: &At<'_>) -> Outcome {
        let mut best: Option<(&Node, Outcome)> = None;
        for branch in &rules.any_of {
            let tried = self.attempt(branch, value, at);
            if tried.valid {
                return tried;
            }
            if best.is_none_or(|(_, so_far)| tried.matches > so_far.matches) {
                best = Some((branch, tried));
            }
        }
        let mut outcome = Outcome::NONE;
        self.report(&mut outcome, || Violation::junctor(at, "must validate at least one schema (anyOf)"));
        outcome.merge(self.closest(best, value, at));
        outcome
    }

    /// Reports the branch that came closest. It was tried already; only its violations are still to be had.
    fn closest(&mut self, best: Option<(&Node, Outcome)>, value: &Value, at: &At<'_>) -> Outcome {
        match best {
            Some((branch, _)) if self.found.is_some() => self.value(branch, value, at, None),
            Some((_, tried)) => tried,
            None => Outcome::NONE,
        }
    }

    fn one_of(&mut self, rules: &Rules, value: &Value, at: &At<'_>) -> Outcome {
        let mut best: Option<(&Node, Outcome)> = None;
        let mut first = Outcome::NONE;
        let mut valid = 0;
        for branch in &rules.one_of {
            let tried = self.attempt(branch, value, at);
            match tried.valid {
                true => {
                    first = if valid == 0 { tried } else { first };
                    valid += 1;
                }
                false if best.is_none_or(|(_, so_far)| tried.matches > so_far.matches) => {
                    best = Some((branch, tried));
                }
                false => {}
            }
        }
        let mut outcome = Outcome::NONE;
        match (valid, best) {
            (1, _) => outcome.merge(first),
            (0, best) => {
                self.report(&mut outcome, || {
                    Violation::junctor(at, "must validate one and only one schema (oneOf). Found none valid")
                });
                outcome.merge(self.closest(best, value, at));
            }
            (several, _) => self.report(&mut outcome, || {
                let text = format!(
                    "must validate one and only one schema (oneOf). Found {several} valid alternatives"
                );
                Violation::junctor(at, &text)
            }),
        }
        outcome
    }

    fn all_of(&mut self, rules: &Rules, value: &Value, at: &At<'_>) -> Outcome {
        let mut outcome = Outcome::NONE;
        let mut valid = 0;
        for branch in &rules.all_of {
            let result = self.value(branch, value, at, None);
            valid += usize::from(result.valid);
            outcome.merge(result);
        }
        if valid != rules.all_of.len() {
            self.report(&mut outcome, || {
                let none = if valid == 0 { ". None validated" } else { "" };
                Violation::junctor(at, &format!("must validate all the schemas (allOf){none}"))
            });
        }
        outcome
    }

    fn array(&mut self, node: &Node, items: &[Value], at: &At<'_>, old: Option<&Value>) -> Outcome {
        let mut outcome = Outcome { valid: true, matches: 1 };
        if let Some(schema) = node.item() {
            let index = old.map(|old| ListIndex::of(node, old));
            for (i, item) in items.iter().enumerate() {
                let old = index.as_ref().and_then(|index| index.find(item));
                outcome.merge(self.correlated(schema, item, &At::Index(at, i), old));
            }
        }
        let size = items.len();
        let rules = node.rules.as_ref();
        if let Some(min) = rules.and_then(|r| r.min_items).filter(|min| (size as i64) < *min) {
            self.report(&mut outcome, || {
                Violation::invalid(at, size.to_string(), &format!("should have at least {min} items"))
            });
        }
        if let Some(max) = rules.and_then(|r| r.max_items).filter(|max| (size as i64) > *max) {
            self.report(&mut outcome, || {
                Violation::new(
                    Code::TooMany { size, max },
                    at,
                    None,
                    &format!("should have at most {max} items"),
                )
            });
        }
        if node.has(Flags::UNIQUE_ITEMS) && has_repeats(items) {
            self.report(&mut outcome, || {
                Violation::new(Code::Invalid, at, None, "shouldn't contain duplicates")
            });
        }
        outcome
    }

    fn object(&mut self, node: &Node, map: &Map<String, Value>, at: &At<'_>, old: Option<&Value>) -> Outcome {
        let mut outcome = Outcome::NONE;
        let rules = node.rules.as_ref();
        let size = map.len();
        if let Some(min) = rules.and_then(|r| r.min_properties).filter(|min| (size as i64) < *min) {
            self.report(&mut outcome, || {
                Violation::invalid(at, size.to_string(), &format!("should have at least {min} properties"))
            });
        }
        if let Some(max) = rules.and_then(|r| r.max_properties).filter(|max| (size as i64) > *max) {
            self.report(&mut outcome, || {
                Violation::new(
                    Code::TooMany { size, max },
                    at,
                    None,
                    &format!("should have at most {max} properties"),
                )
            });
        }
        let old = Old { fields: old.and_then(Value::as_object), root: matches!(at, At::Root) };
        outcome.merge(self.additional(node, map, at, &old));
        for (name, schema, value) in node.properties_of(map) {
            outcome.merge(self.correlated(schema, value, &At::Property(at, name), old.field(name)));
        }
        for name in rules.map_or(&[][..], |r| &r.required).iter() {
            steps::add(1);
            if map.contains_key(&**name) {
                continue;
            }
            self.report(&mut outcome, || Violation::required(at, name));
            if self.is_silent() {
                break;
            }
        }
        outcome
    }

    /// Keys that the schema does not name.
    fn additional(&mut self, node: &Node, map: &Map<String, Value>, at: &At<'_>, old: &Old<'_>) -> Outcome {
        let mut outcome = Outcome::NONE;
        let unnamed = map.iter().filter(|(name, _)| node.property(name).is_none());
        match &node.additional {
            Additional::Deny => {
                for (name, _) in unnamed {
                    self.report(&mut outcome, || Violation::forbidden_property(at, name));
                }
            }
            Additional::Schema(schema) => {
                for (name, value) in unnamed {
                    outcome.merge(self.correlated(schema, value, &At::Key(at, name), old.field(name)));
                }
            }
            Additional::Unset | Additional::Allow => {}
        }
        outcome
    }
}

/// The fields before an update.
struct Old<'a> {
    fields: Option<&'a Map<String, Value>>,
    root: bool,
}

impl<'a> Old<'a> {
    /// The type of the object itself is never forgiven: conversion makes old and new look alike.
    fn field(&self, name: &str) -> Option<&'a Value> {
        match self.root && (name == "kind" || name == "apiVersion") {
            true => None,
            false => self.fields?.get(name),
        }
    }
}

fn has_repeats(items: &[Value]) -> bool {
    let mut seen = HashSet::with_capacity(items.len());
    !items.iter().all(|item| seen.insert(item.to_string()))
}

#[cfg(test)]
mod tests;
