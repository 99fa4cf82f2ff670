//! Type, enum, length, pattern and format.

use serde_json::Value;

use super::number::is_integral;
use super::violation::{Code, Violation};
use super::{At, Checker, Outcome, Rulebook};
use crate::format;
use crate::schema::{Flags, Kind, Node};
use forebay_apimachinery::go_format::{self as go, Num};

impl Checker<'_> {
    /// The types that a schema allows.
    fn kinds(&self, node: &Node) -> &'static [Kind] {
        if self.rulebook == Rulebook::Instance && node.has(Flags::INT_OR_STRING) {
            return &[Kind::Integer, Kind::String];
        }
        match node.kind {
            Kind::None => &[],
            Kind::Object => &[Kind::Object],
            Kind::Array => &[Kind::Array],
            Kind::String => &[Kind::String],
            Kind::Number => &[Kind::Number],
            Kind::Integer => &[Kind::Integer],
            Kind::Boolean => &[Kind::Boolean],
            Kind::Unknown => &[Kind::Unknown],
        }
    }

    /// The only type, when there is exactly one.
    pub(super) fn only_kind(&self, node: &Node) -> Kind {
        match self.kinds(node) {
            [kind] => *kind,
            _ => Kind::None,
        }
    }

    /// The format that holds: for instances, one that the type does not know is ignored.
    pub(super) fn format_name<'n>(&self, node: &'n Node) -> Option<&'n str> {
        let name = node.rules.as_ref()?.format.as_deref()?;
        let holds = self.rulebook == Rulebook::Default || format::is_known(self.only_kind(node).name(), name);
        holds.then_some(name)
    }

    pub(super) fn null(&mut self, node: &Node, at: &At<'_>) -> Outcome {
        let kinds = self.kinds(node);
        let mut outcome = Outcome { valid: true, matches: 1 };
        if !kinds.is_empty() && !node.nullable() {
            outcome.matches = 0;
            self.report(&mut outcome, || Violation::wrong_type(at, &names(kinds), "null"));
        }
        outcome
    }

    /// None when the schema says nothing of the type.
    pub(super) fn kind(&mut self, node: &Node, value: &Value, at: &At<'_>) -> Option<Outcome> {
        let kinds = self.kinds(node);
        let format = self.format_name(node);
        if kinds.is_empty() && format.is_none() {
            return None;
        }
        let mut outcome = Outcome { valid: true, matches: 1 };
        if let Some((wanted, actual)) = mismatch(kinds, format, value) {
            outcome.matches = 0;
            self.report(&mut outcome, || Violation::wrong_type(at, &wanted, actual));
        }
        Some(outcome)
    }

    pub(super) fn choices(&mut self, node: &Node, value: &Value, at: &At<'_>) -> Outcome {
        let mut outcome = Outcome::NONE;
        if let Some(rules) = &node.rules
            && !rules.choices.is_empty()
            && !rules.choices.has(value)
        {
            self.report(&mut outcome, || Violation::not_supported(at, value, rules.choices.values()));
        }
        outcome
    }

    /// Reports the first of: too long, too short, no match.
    pub(super) fn text(&mut self, node: &Node, text: &str, at: &At<'_>) -> Outcome {
        let mut outcome = Outcome::NONE;
        let Some(rules) = &node.rules else { return outcome };
        let length = || text.chars().count() as i64;
        if let Some(max) = rules.max_length.filter(|max| length() > *max) {
            self.report(&mut outcome, || {
                Violation::new(Code::TooLong(max), at, None, &format!("should be at most {max} chars long"))
            });
        } else if let Some(min) = rules.min_length.filter(|min| length() < *min) {
            let message = format!("should be at least {min} chars long");
            self.report(&mut outcome, || Violation::invalid(at, go::quote(text), &message));
        } else if let Some(pattern) = &rules.pattern {
            let message = |matched: Result<bool, String>| match matched {
                Ok(_) => format!("should match '{}'", pattern.source()),
                Err(error) => format!("should match '{}, but pattern is invalid: {error}'", pattern.source()),
            };
            match pattern.matches(text) {
                Ok(true) => {}
                matched => {
                    self.report(&mut outcome, || Violation::invalid(at, go::quote(text), &message(matched)))
                }
            }
        }
        outcome
    }

    /// None when there is no format, or none that is known.
    pub(super) fn format(&mut self, node: &Node, text: &str, at: &At<'_>) -> Option<Outcome> {
        let name = self.format_name(node)?;
        let holds = format::lookup(name)?;
        let mut outcome = Outcome::NONE;
        if !holds(text) {
            self.report(&mut outcome, || Violation::wrong_type(at, name, text));
        }
        Some(outcome)
    }
}

fn names(kinds: &[Kind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    names.join(",")
}

/// The wanted and the actual type, when they differ. With a format, texts and lists pass here (the format
/// judges the text, nothing judges the list) and other values are measured by the format's name; that is how
/// Kubernetes does it.
fn mismatch(kinds: &[Kind], format: Option<&str>, value: &Value) -> Option<(String, &'static str)> {
    // Few: two kinds.
    let has = |kind| kinds.contains(&kind);
    let (kind, value_format, fits) = match value {
        Value::Bool(_) => (Kind::Boolean, "", false),
        Value::String(_) => (Kind::String, "", false),
        Value::Array(_) => (Kind::Array, "", false),
        Value::Object(_) | Value::Null => (Kind::Object, "", false),
        Value::Number(n) => match Num::of(n) {
            Num::Int(_) => (Kind::Integer, "int64", has(Kind::Number)),
            Num::Float(f) => (Kind::Number, "float64", has(Kind::Integer) && is_integral(f)),
        },
    };
    let fits = fits || has(kind);
    let numeric = has(Kind::Number) || has(Kind::Integer);
    match (format, kind) {
        (Some(format), Kind::Boolean | Kind::Object | Kind::Integer | Kind::Number)
            if !fits && value_format != format =>
        {
            Some((format.to_owned(), value_format))
        }
        (Some(_), Kind::String | Kind::Array) if !numeric => None,
        _ if fits => None,
        _ => Some((names(kinds), kind.name())),
    }
}
