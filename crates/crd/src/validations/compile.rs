//! One rule, from its text to what is evaluated.
//!
//! In: a rule, the schema that it is of and what that declares. Out: programs and what they may cost, or
//! upstream's words for what is wrong. Never: more of them than a CRD may have.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apiserver/schema/cel/compilation.go`.

use std::cell::Cell;
use std::sync::Arc;

use forebay_cel::decl::Decl;
use forebay_cel::{Compiled, Env, Issues, Program, Type};

use crate::check::field_path::{self, Brackets};
use crate::limits::{RULE_PARTS_FREE, RULE_REQUEST_BYTES_MAX};
use crate::props::Props;

/// What objects of a rule's schema are called in errors; upstream puts a number behind it.
const SELF_TYPE: &str = "selfType";
const SELF: &str = "self";
const OLD_SELF: &str = "oldSelf";

/// Which versions' functions an expression may use.
#[derive(Clone, Copy)]
pub(crate) enum Since {
    /// It is new: those that the release before has too.
    New,
    /// It is stored already: all that there are.
    Stored,
}

impl Since {
    fn minor(self) -> u32 {
        match self {
            Since::New => 35,
            Since::Stored => u32::MAX,
        }
    }
}

/// How much a CRD's rules may still take, compiled: each byte of a text pays for a part.
pub(crate) struct Compiling {
    parts_left: Cell<usize>,
}

impl Compiling {
    /// For all rules of a CRD.
    pub(crate) fn new() -> Compiling {
        Compiling { parts_left: Cell::new(RULE_PARTS_FREE) }
    }

    fn compile(&self, env: &Env, text: &str) -> Result<Compiled, String> {
        let too_much = || "the rules of the CustomResourceDefinition are too many, compiled".to_owned();
        if self.parts_left.get() == 0 {
            return Err(too_much());
        }
        let compiled = env.compile(text);
        // What cannot be compiled has been read, too.
        let parts = compiled.as_ref().map_or_else(Issues::nodes, Compiled::nodes);
        let left = (self.parts_left.get() + text.len()).saturating_sub(parts);
        self.parts_left.set(left);
        let compiled = compiled.map_err(|issues| issues.to_string())?;
        if left == 0 { Err(too_much()) } else { Ok(compiled) }
    }

    /// Compiles a rule of `schema`, which declares `decl`; `None` for one that says nothing.
    ///
    /// - `since`: of an expression.
    ///
    /// # Errors
    /// What is wrong with the rule itself.
    pub(crate) fn rule(
        &self,
        rule: Props<'_>,
        schema: Props<'_>,
        decl: &Arc<Decl>,
        since: [Since; 2],
    ) -> Result<Option<Evaluated>, String> {
        let text = rule.str("rule");
        if text.trim().is_empty() {
            return Ok(None);
        }
        let is_optional = rule.flag("optionalOldSelf");
        let compiled = self
            .compile(&env(since[0], decl, is_optional), text)
            .map_err(|why| format!("compilation failed: {why}"))?;
        if *compiled.output() != Type::Bool {
            return Err("cel expression must evaluate to a bool".into());
        }
        let program = compiled.program().map_err(|why| format!("program instantiation failed: {why}"))?;
        let message = match rule.str("messageExpression") {
            "" => None,
            text => Some(self.message(&env(since[1], decl, is_optional), text)),
        };
        let path = rule.str("fieldPath");
        let followed = field_path::follow(path, schema, Brackets::Allowed);
        Ok(Some(Evaluated {
            program,
            uses_old_self: compiled.refers_to(OLD_SELF),
            cost_max: compiled.estimate().max,
            message,
            field_path: followed.map(|found| found.path).unwrap_or_default(),
        }))
    }

    fn message(&self, env: &Env, text: &str) -> Result<Message, String> {
        let compiled =
            self.compile(env, text).map_err(|why| format!("messageExpression compilation failed: {why}"))?;
        if *compiled.output() != Type::String {
            return Err("messageExpression must evaluate to a string".into());
        }
        let program =
            compiled.program().map_err(|why| format!("messageExpression instantiation failed: {why}"))?;
        Ok(Message { program, cost_max: compiled.estimate().max })
    }
}

fn env(since: Since, decl: &Arc<Decl>, is_optional: bool) -> Env {
    let own = decl.checked(SELF_TYPE);
    let old = if is_optional { Type::optional(own.clone()) } else { own.clone() };
    Env::new(since.minor()).with_declared(SELF, own, decl.clone()).with_declared(OLD_SELF, old, decl.clone())
}

/// A rule's programs.
pub(crate) struct Evaluated {
    pub(super) program: Program,
    pub(crate) uses_old_self: bool,
    /// Of one evaluation, estimated.
    pub(crate) cost_max: u64,
    pub(crate) message: Option<Result<Message, String>>,
    /// Where in its schema it says that something is wrong; empty for all of it.
    pub(super) field_path: String,
}

/// What makes a rule's message.
pub(crate) struct Message {
    pub(super) program: Program,
    pub(crate) cost_max: u64,
}

/// A rule as it is evaluated.
pub(crate) struct Rule {
    /// The message that is written with it, or its text.
    pub(super) shown: Box<str>,
    pub(super) has_message: bool,
    pub(super) message_expression: Box<str>,
    pub(super) reason: Option<Box<str>>,
    pub(super) is_optional: bool,
    pub(super) compiled: Result<Option<Evaluated>, String>,
}

impl Rule {
    /// What it and its message may cost, by estimate.
    pub(super) fn cost_max(&self) -> u64 {
        let Ok(Some(compiled)) = &self.compiled else { return 0 };
        let message = compiled.message.as_ref().and_then(|message| message.as_ref().ok());
        compiled.cost_max.saturating_add(message.map_or(0, |message| message.cost_max))
    }

    pub(super) fn of(rule: Props<'_>, schema: Props<'_>, decl: &Arc<Decl>, compiling: &Compiling) -> Rule {
        let message = rule.str("message");
        let shown = if message.is_empty() { rule.str("rule") } else { message };
        Rule {
            shown: shown.trim().into(),
            has_message: !message.is_empty(),
            message_expression: rule.str("messageExpression").into(),
            reason: rule.opt_str("reason").map(Into::into),
            is_optional: rule.flag("optionalOldSelf"),
            compiled: compiling.rule(rule, schema, decl, [Since::Stored; 2]),
        }
    }
}

/// How often what takes `bytes_min` at least may be in an object, if nothing around it says how often.
pub(crate) fn cardinality_max(bytes_min: u64) -> u64 {
    RULE_REQUEST_BYTES_MAX / (bytes_min + 1)
}

/// How many values of a schema there may be below one value of `around`.
pub(crate) fn count_below(around: Props<'_>, count_max: Option<u64>) -> Option<u64> {
    let limit = |key: &str| around.int(key).map(|limit| limit.max(0) as u64);
    let each = match around.kind() {
        "object" if around.schema_or_bool("additionalProperties").is_some() => limit("maxProperties")?,
        "array" => limit("maxItems")?,
        _ => 1,
    };
    Some(count_max?.saturating_mul(each))
}
