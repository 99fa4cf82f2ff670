//! What a CRD's rules in CEL may say: they compile, compare only what has a value before it, and cost no more
//! than there may be.
//!
//! In: schemas that are right but for their rules, and where they are. Out: violations in upstream's words,
//! and what all rules cost by estimate. Never: evaluates one.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apis/apiextensions/validation/{validation,cel_validation}.go`.

use forebay_apimachinery::seen::{Firsts, Seen};
use serde_json::Value;

use super::printed;
use crate::field::{BadValue, Faults, FieldError, Path};
use crate::limits::{DEAR_RULES_MAX, RULE_COST_MAX, SCHEMA_RULES_COST_MAX};
use crate::props::Props;
use crate::spec::Spec;
use crate::validations::{Compiling, Declarations, Evaluated, Since, cardinality_max};

/// Expressions that are stored already.
#[derive(Clone, Default)]
pub(super) struct Stored<'a> {
    rules: Seen<&'a str>,
    messages: Seen<&'a str>,
    /// Names of versions whose schema is as it was: what their rules cost each is not asked.
    unchanged: Seen<&'a str>,
}

impl<'a> Stored<'a> {
    /// The expressions of a schema that is stored.
    pub(super) fn add(&mut self, schema: Props<'a>) {
        for rule in schema.rules().iter().map(Props::of) {
            self.rules.again(rule.str("rule"));
            self.messages.again(rule.str("messageExpression"));
        }
    }

    /// Which versions have the schema that they had.
    pub(super) fn compare(&mut self, spec: &Spec<'a>, old: &Spec<'a>) {
        let last_first =
            old.versions.iter().rev().map(|it| (it.name(), it.schema_value().or(old.top.schema_value())));
        let before: Firsts<&str, Option<&Value>> = last_first.collect();
        for version in &spec.versions {
            let now = version.schema_value().or(spec.top.schema_value());
            if before.get(version.name()).is_some_and(|before| *before == now) {
                self.unchanged.again(version.name());
            }
        }
    }

    /// Whether the schema of a version is as it was.
    pub(super) fn is_unchanged(&self, version: &str) -> bool {
        self.unchanged.has(version)
    }

    fn since(&self, rule: Props<'_>) -> [Since; 2] {
        let since = |is_stored: bool| if is_stored { Since::Stored } else { Since::New };
        [since(self.rules.has(rule.str("rule"))), since(self.messages.has(rule.str("messageExpression")))]
    }
}

/// Where the rules of a schema stand.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// How many values of the schema an object may have at most; `None` where nothing around it says so.
    pub(super) count_max: Option<u64>,
    /// It is the root of a resource.
    pub(super) is_resource: bool,
    /// What around it has no value before it that could be told.
    pub(super) uncorrelated: Option<&'a Path<'a>>,
}

/// The rules of one schema and of those below it.
pub(super) struct Expressions<'e> {
    pub(super) stored: &'e Stored<'e>,
    pub(super) compiling: &'e Compiling,
    pub(super) is_unchanged: bool,
    declarations: Declarations,
    pub(super) errors: Faults,
    total: u64,
    /// Where and how much, the dearest first, <= `DEAR_RULES_MAX`.
    dearest: Vec<(String, u64)>,
}

impl<'e> Expressions<'e> {
    pub(super) fn new(
        stored: &'e Stored<'e>,
        compiling: &'e Compiling,
        is_unchanged: bool,
    ) -> Expressions<'e> {
        Expressions {
            stored,
            compiling,
            is_unchanged,
            declarations: Declarations::default(),
            errors: Faults::default(),
            total: 0,
            dearest: Vec::new(),
        }
    }

    /// Judges the rules of `schema` at `path`.
    pub(super) fn judge(&mut self, schema: Props<'_>, place: Place<'_>, path: &Path<'_>) {
        let path = path.child("x-kubernetes-validations");
        let Some(decl) = self.declarations.of(schema, place.is_resource) else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                          unable to convert structural schema to CEL declarations";
            return self.errors.push(FieldError::internal(&path, detail));
        };
        let count_max = place.count_max.unwrap_or_else(|| cardinality_max(decl.bytes_min));
        for (index, rule) in schema.rules().iter().map(Props::of).enumerate() {
            if self.errors.is_full() {
                return;
            }
            let path = path.index(index);
            match self.compiling.rule(rule, schema, &decl, self.stored.since(rule)) {
                Ok(Some(compiled)) => self.compiled(rule, &compiled, count_max, place, &path),
                Ok(None) => self.optional(rule, &path),
                Err(detail) => {
                    let shown = BadValue::shown(printed::rule(rule));
                    self.errors.push(FieldError::invalid(&path.child("rule"), shown, detail));
                    self.optional(rule, &path);
                }
            }
        }
    }

    fn compiled(
        &mut self,
        rule: Props<'_>,
        compiled: &Evaluated,
        count_max: u64,
        place: Place<'_>,
        path: &Path<'_>,
    ) {
        let at = path.child("rule");
        self.cost("estimated rule cost", compiled.cost_max.saturating_mul(count_max), &at);
        let at_message = path.child("messageExpression");
        match &compiled.message {
            Some(Err(detail)) => {
                let shown = BadValue::shown(printed::rule(rule));
                self.errors.push(FieldError::invalid(&at_message, shown, detail.as_str()));
            }
            Some(Ok(message)) => self.cost("estimated messageExpression cost", message.cost_max, &at_message),
            None => {}
        }
        if !compiled.uses_old_self {
            self.optional(rule, path);
        } else if let Some(around) = place.uncorrelated {
            let detail =
                format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {around}");
            self.errors.push(FieldError::invalid(&at, BadValue::Text(rule.str("rule")), detail));
        }
    }

    /// For a rule that compares with nothing.
    fn optional(&mut self, rule: Props<'_>, path: &Path<'_>) {
        if let Some(value) = rule.get("optionalOldSelf") {
            let detail = "may not be set if oldSelf is not used in rule";
            let at = path.child("optionalOldSelf");
            self.errors.push(FieldError::invalid(&at, BadValue::Json(value), detail));
        }
    }

    fn cost(&mut self, what: &str, cost: u64, at: &Path<'_>) {
        if cost > RULE_COST_MAX && !self.is_unchanged {
            self.errors.push(FieldError::forbidden(at, too_dear(what, cost, RULE_COST_MAX)));
        }
        self.total = self.total.saturating_add(cost);
        // What is less than a hundredth is not what makes it dear.
        if cost >= SCHEMA_RULES_COST_MAX / 100 {
            self.dearest.push((at.to_string(), cost));
            self.dearest.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
            self.dearest.truncate(DEAR_RULES_MAX);
        }
    }

    /// What is said of all rules together; `path` is the schema's.
    pub(super) fn total(self, path: &Path<'_>) -> Vec<FieldError> {
        if self.total <= SCHEMA_RULES_COST_MAX {
            return Vec::new();
        }
        let detail =
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let mut errors: Vec<_> =
            self.dearest.into_iter().map(|(at, _)| FieldError::forbidden_at(at, detail)).collect();
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(path, too_dear(what, self.total, SCHEMA_RULES_COST_MAX)));
        errors
    }
}

fn too_dear(what: &str, cost: u64, limit: u64) -> String {
    let times = cost as f64 / limit as f64;
    let factor = match times {
        times if times > 100.0 => "more than 100x".to_owned(),
        times if times < 1.5 => format!("{times:.6}x"),
        times => format!("{times:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}
