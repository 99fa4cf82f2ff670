//! The rules of one version of a CRD, by where they are, and what they say of an object.
//!
//! In: a schema, once; then objects. Out: what is wrong with an object, in upstream's words; what of it is
//! forgiven, as warnings. Never: goes on past its budget, or after nothing more is told.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apiserver/schema/cel/validation.go`.

use std::collections::BTreeMap;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;

use forebay_cel::decl::{Decl, DeclKind, escape};
use forebay_cel::limits::{PER_CALL_COST_MAX, SHARED_STEPS_MAX};
use forebay_cel::{Activation, Error, Evaluation, Program, Spent, Value as Cel};
use serde_json::{Map, Value};

use super::compile::{Compiling, Evaluated, Message, Rule, cardinality_max, count_below};
use super::declare::Declarations;
use super::ratchet::{Correlated, Ratchet};
use crate::field::{BadValue, Faults, FieldError, Path, Reason};
use crate::limits::{OBJECT_RULES_COST_MAX, RULE_MESSAGE_BYTES_MAX};
use crate::props::{Props, SchemaOrBool};
use crate::schema::{Flags, Kind, Node};
use crate::validate::correlate::ListIndex;
use forebay_apimachinery::go_format as go;

/// The rules of a schema and of those below it.
pub(crate) struct Validator {
    /// `None` where expressions do not see what the schema is of.
    decl: Option<Arc<Decl>>,
    rules: Box<[Rule]>,
    /// It has rules, and no declaration for them.
    is_unseen: bool,
    items: Option<Box<Validator>>,
    additional: Option<Box<Validator>>,
    properties: BTreeMap<Box<str>, Validator>,
    /// What all of them may cost for one object, by estimate.
    cost_max: u64,
}

impl std::fmt::Debug for Validator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Validator").field("rules", &self.rules.len()).finish_non_exhaustive()
    }
}

/// What rules say of an object.
#[derive(Default)]
pub(crate) struct Judgement {
    pub(crate) errors: Faults,
    /// What is forgiven, because it was so before.
    pub(crate) warnings: Faults,
    /// What is left of the budget; below nothing when no rule is asked any more.
    pub(crate) left: i64,
    /// What all rules have spent besides, and their messages.
    spent: Spent,
}

impl Validator {
    /// The rules of a schema, if it has any.
    ///
    /// - `node`: of the same schema.
    /// - `is_resource`: the schema is a resource's.
    pub(crate) fn of(
        schema: Props<'_>,
        node: &Node,
        is_resource: bool,
        compiling: &Compiling,
    ) -> Option<Validator> {
        Builder { declarations: Declarations::default(), compiling }.build(schema, node, is_resource, Some(1))
    }

    /// What all rules may cost for one object, by estimate and within their budget.
    pub(crate) fn cost_max(&self) -> u64 {
        self.cost_max.min(OBJECT_RULES_COST_MAX as u64)
    }

    pub(crate) fn items(&self) -> Option<&Validator> {
        self.items.as_deref()
    }

    pub(crate) fn property(&self, name: &str) -> Option<&Validator> {
        self.properties.get(name)
    }

    /// Asks all rules about `value` in the place of `old`.
    ///
    /// - `forgives`: what is as it was is only warned of.
    /// - `budget`: what all evaluations may cost together.
    pub(crate) fn judge(
        &self,
        node: &Node,
        path: &Path<'_>,
        (value, old): (&Value, Option<&Value>),
        forgives: bool,
        budget: i64,
    ) -> Judgement {
        let mut judgement =
            Judgement { left: budget, spent: Spent::of_steps(SHARED_STEPS_MAX), ..Judgement::default() };
        let root = old.filter(|_| forgives).map(|old| Correlated::new(node, value, old));
        let ratchet = Ratchet { current: root.as_ref(), around: None };
        if judgement.visit(self, At { node, path, value, old, ratchet }).is_break() {
            judgement.left = -1;
        }
        judgement
    }
}

struct Builder<'b> {
    declarations: Declarations,
    compiling: &'b Compiling,
}

impl Builder<'_> {
    /// - `count_max`: how many values of the schema an object may have, where that is known.
    fn build(
        &mut self,
        schema: Props<'_>,
        node: &Node,
        is_resource: bool,
        count_max: Option<u64>,
    ) -> Option<Validator> {
        if !node.has(Flags::RULES_BELOW) {
            return None;
        }
        let decl = self.declarations.of(schema, is_resource);
        let rules: Box<[Rule]> = match &decl {
            Some(decl) => schema
                .rules()
                .iter()
                .map(|rule| Rule::of(Props::of(rule), schema, decl, self.compiling))
                .collect(),
            None => Box::default(),
        };
        let bytes_min = decl.as_ref().map_or(0, |decl| decl.bytes_min);
        let count = count_max.unwrap_or_else(|| cardinality_max(bytes_min));
        let below_max = count_below(schema, count_max);
        let items = schema.item().zip(node.item());
        let additional = schema.schema_or_bool("additionalProperties").and_then(SchemaOrBool::schema);
        let mut properties = BTreeMap::new();
        for (name, property) in schema.named("properties") {
            let Some(node) = node.property(name).filter(|_| self.sees(decl.as_deref(), name, property))
            else {
                continue;
            };
            if let Some(found) = self.build(property, node, property.embedded_resource(), below_max) {
                properties.insert(name.into(), found);
            }
        }
        let mut below = |(schema, node): (Props<'_>, &Node)| {
            self.build(schema, node, schema.embedded_resource(), below_max).map(Box::new)
        };
        let items = items.and_then(&mut below);
        let additional = additional.zip(node.additional_schema()).and_then(&mut below);
        let boxed = items.iter().chain(&additional).map(|below| &**below);
        let own = rules.iter().map(Rule::cost_max).fold(0, u64::saturating_add).saturating_mul(count);
        let costs = boxed.chain(properties.values()).map(|below| below.cost_max);
        Some(Validator {
            is_unseen: decl.is_none() && !schema.rules().is_empty(),
            cost_max: costs.fold(own, u64::saturating_add),
            rules,
            items,
            additional,
            properties,
            decl,
        })
    }

    /// Whether the rules of a property are asked: those of one that no type is known of are not.
    fn sees(&mut self, around: Option<&Decl>, name: &str, property: Props<'_>) -> bool {
        match (escape(name), around.map(|decl| &decl.kind)) {
            (Some(name), Some(DeclKind::Object(fields))) => fields.contains_key(&*name),
            (Some(_), _) => false,
            (None, _) => self.declarations.of(property, property.embedded_resource()).is_some(),
        }
    }
}

/// A value, where it is, and what was there before.
#[derive(Clone, Copy)]
struct At<'a> {
    node: &'a Node,
    path: &'a Path<'a>,
    value: &'a Value,
    old: Option<&'a Value>,
    ratchet: Ratchet<'a>,
}

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// `self` and `oldSelf`.
type Variables<'a> = Result<[Option<Cel<'a>>; 2], Error>;

/// Whether further rules are asked.
type Goes = ControlFlow<()>;

impl Judgement {
    fn visit(&mut self, rules: &Validator, at: At<'_>) -> Goes {
        if at.value.is_null() || self.errors.is_full() {
            return Continue(());
        }
        let at = At { old: at.old.filter(|old| !old.is_null()), ..at };
        self.rules(rules, &at)?;
        match (at.value, &rules.items) {
            (Value::Array(list), Some(items)) => self.items(items, list, &at),
            (Value::Object(map), _) => self.members(rules, map, &at),
            _ => Continue(()),
        }
    }

    fn items(&mut self, rules: &Validator, list: &[Value], at: &At<'_>) -> Goes {
        let Some(node) = at.node.item() else { return Continue(()) };
        let null = Value::Null;
        let before = ListIndex::of(at.node, at.old.unwrap_or(&null));
        for (index, item) in list.iter().enumerate() {
            let found = at.ratchet.item(item, &before);
            let ratchet = at.ratchet.then(found.as_ref());
            let path = &at.path.index(index);
            self.visit(rules, At { node, path, value: item, old: before.find(item), ratchet })?;
        }
        Continue(())
    }

    fn members(&mut self, rules: &Validator, map: &Map<String, Value>, at: &At<'_>) -> Goes {
        let before = at.old.and_then(Value::as_object);
        let additional = rules.additional.as_deref().zip(at.node.additional_schema());
        for (name, value) in map {
            let (below, path) = match (additional, rules.properties.get(name.as_str())) {
                (Some(below), _) => (Some(below), at.path.key(name)),
                (None, Some(below)) => (Some(below).zip(at.node.property(name)), at.path.child(name)),
                (None, None) => continue,
            };
            let Some((below, node)) = below else { continue };
            let found = at.ratchet.member(name);
            let ratchet = match at.ratchet.is_type_of_root(name) {
                true => Ratchet::default(),
                false => at.ratchet.then(found.as_ref()),
            };
            let old = before.and_then(|before| before.get(name));
            self.visit(below, At { node, path: &path, value, old, ratchet })?;
        }
        Continue(())
    }

    /// The rules of one schema.
    fn rules(&mut self, rules: &Validator, at: &At<'_>) -> Goes {
        if rules.is_unseen {
            let why = "failed to convert to declType for CEL validation rules";
            self.fail(at, format!("rule compiler initialization error: {why}"));
        }
        let Some(decl) = rules.decl.as_ref().filter(|_| !rules.rules.is_empty()) else { return Continue(()) };
        if self.left <= 0 {
            self.fail(at, OUT_OF_BUDGET.into());
            return Break(());
        }
        let own = Cel::from_declared(at.value, decl);
        let old = at.old.map(|old| Cel::from_declared(old, decl)).transpose();
        let values = own.and_then(|own| Ok((own, old?)));
        for rule in &rules.rules {
            let compiled = match &rule.compiled {
                Ok(Some(compiled)) => compiled,
                Ok(None) => continue,
                Err(why) => {
                    self.fail(at, format!("rule compile error: {why}"));
                    continue;
                }
            };
            // What compares with a value before is asked when there is one, or when it says that it can do
            // without.
            if compiled.uses_old_self && at.old.is_none() && !rule.is_optional {
                continue;
            }
            let variables = values.clone().and_then(|(own, old)| match rule.is_optional {
                true => Ok([Some(own), Some(Cel::optional(old)?)]),
                false => Ok([Some(own), old]),
            });
            // What a rule says of a failure sees what was there as it was, also where the rule may do
            // without.
            let plain = values.clone().map(|(own, old)| [Some(own), old]);
            self.rule(rule, compiled, [&variables, &plain], at)?;
        }
        Continue(())
    }

    fn rule(
        &mut self,
        rule: &Rule,
        compiled: &Evaluated,
        [variables, plain]: [&Variables<'_>; 2],
        at: &At<'_>,
    ) -> Goes {
        let Evaluation { result, cost } = evaluate(&compiled.program, variables, &self.spent);
        let result = result.map(|value| matches!(value, Cel::Bool(true)));
        // Nothing is left of what it made.
        self.spent.keep(0);
        self.spent.pay(cost);
        if !self.pay(cost) {
            self.fail(at, OUT_OF_BUDGET.into());
            return Break(());
        }
        match result {
            Ok(true) => Continue(()),
            Ok(false) => self.broken(rule, compiled, plain, at),
            Err(error) => {
                let shown = &rule.shown;
                let (error, exceeds) = (error.to_string(), matches!(error, Error::CostExceeded));
                self.fail(
                    at,
                    match exceeds {
                        true => format!(
                            "'{error}': no further validation rules will be run due to call cost exceeds limit for \
                             rule: {shown}"
                        ),
                        false if error.starts_with("no such overload") => format!(
                            "'{error}': call arguments did not match a supported operator, function or macro \
                             signature for rule: {shown}"
                        ),
                        false => format!("{error} evaluating rule: {shown}"),
                    },
                );
                if exceeds { Break(()) } else { Continue(()) }
            }
        }
    }

    /// Whether the budget has as much.
    fn pay(&mut self, cost: u64) -> bool {
        let left = i64::try_from(cost).ok().and_then(|cost| self.left.checked_sub(cost));
        match left.filter(|left| *left >= 0) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    fn fail(&mut self, at: &At<'_>, detail: String) {
        self.errors.push(FieldError::invalid(at.path, BadValue::Text(at.node.kind.name()), detail));
    }

    /// What is said of a value that breaks a rule.
    fn broken(&mut self, rule: &Rule, compiled: &Evaluated, variables: &Variables<'_>, at: &At<'_>) -> Goes {
        let below;
        let path = match compiled.field_path.as_str() {
            "" => at.path,
            path => {
                below = at.path.child(path);
                &below
            }
        };
        let mut told = |error: FieldError| match !compiled.uses_old_self && at.ratchet.forgives() {
            true => self.warnings.push(error),
            false => self.errors.push(error),
        };
        let made = match &compiled.message {
            Some(Ok(message)) => message_of(message, rule, variables, (&mut self.left, &self.spent)),
            _ => Ok(None),
        };
        match made {
            Err(why) => {
                told(FieldError::invalid(path, BadValue::Text(at.node.kind.name()), why));
                Break(())
            }
            Ok(made) => {
                told(error_of(rule, path, at, made));
                Continue(())
            }
        }
    }
}

fn evaluate<'a>(program: &'a Program, variables: &'a Variables<'a>, spent: &'a Spent) -> Evaluation<'a> {
    match variables {
        Ok(variables) => {
            let with = Activation { variables, spent: Some(spent), ..Activation::default() };
            program.eval(with, PER_CALL_COST_MAX)
        }
        Err(error) => Evaluation { result: Err(error.clone()), cost: 0 },
    }
}

/// What a message expression makes; `None` where it makes nothing that can be told.
///
/// # Errors
/// That no further rule is asked, in upstream's words.
fn message_of(
    message: &Message,
    rule: &Rule,
    variables: &Variables<'_>,
    (left, spent): (&mut i64, &Spent),
) -> Result<Option<String>, String> {
    let Evaluation { result, cost } = evaluate(&message.program, variables, spent);
    spent.keep(0);
    spent.pay(cost);
    match i64::try_from(cost).ok().and_then(|cost| left.checked_sub(cost)).filter(|left| *left >= 0) {
        Some(rest) => *left = rest,
        None => {
            return Err("messageExpression evaluation failed due to running out of cost budget, no further \
                        validation rules will be run"
                .into());
        }
    }
    match result {
        Err(Error::CostExceeded) => Err(format!(
            "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
            go::quote(&rule.message_expression)
        )),
        Ok(Cel::String(text)) => {
            let text = text.trim();
            let fits = !text.is_empty() && text.len() <= RULE_MESSAGE_BYTES_MAX && !text.contains('\n');
            Ok(fits.then(|| text.to_owned()))
        }
        _ => Ok(None),
    }
}

fn error_of(rule: &Rule, path: &Path<'_>, at: &At<'_>, made: Option<String>) -> FieldError {
    let detail = made.unwrap_or_else(|| match rule.has_message {
        true => rule.shown.to_string(),
        false => format!("failed rule: {}", rule.shown),
    });
    let value = match at.node.kind {
        Kind::Object | Kind::Array => None,
        _ => Some(BadValue::Json(at.value).show()),
    };
    match rule.reason.as_deref() {
        Some("FieldValueForbidden") => FieldError::forbidden(path, detail),
        Some("FieldValueRequired") => FieldError::required(path, detail),
        Some("FieldValueDuplicate") => FieldError::at(Reason::Duplicate, path.to_string(), value, ""),
        _ => FieldError::at(Reason::Invalid, path.to_string(), value, detail),
    }
}
