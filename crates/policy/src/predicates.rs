//! Whether a request is one that a webhook is asked about.
//!
//! In: a webhook of a configuration as it is stored, a request. Out: what it matches as, and whether its
//! conditions hold. Never: a call.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/webhook/generic/webhook.go`.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::compile::{Compiler, Returns, Since};
use crate::composition::Variables;
use crate::conditions;
use crate::environment::Declared;
use crate::evaluation::{Expression, Inputs};
use crate::matching::{Constraints, Matched, objects, text};
use crate::policy::FailurePolicy;
use crate::request::PolicyRequest;

/// See the module's doc.
pub struct Predicates {
    constraints: Constraints,
    conditions: Vec<Expression>,
    failure: FailurePolicy,
}

impl Predicates {
    /// - `webhook`: one of a configuration.
    pub fn of_webhook(webhook: &Map<String, Value>) -> Predicates {
        let declared = Declared { authorizer: true, ..Declared::default() };
        let mut compiler = Compiler::new(declared);
        let conditions = objects(webhook, "matchConditions").map(|condition| {
            let text = text(condition, "expression");
            let compiled = compiler.compile(text, Returns::Bool, Since::Stored, declared);
            Expression { text: text.into(), compiled }
        });
        Predicates {
            conditions: conditions.collect(),
            constraints: Constraints::of_webhook(webhook),
            failure: FailurePolicy::read(webhook),
        }
    }

    /// What comes of what is wrong with it.
    pub fn failure(&self) -> FailurePolicy {
        self.failure
    }

    /// What `request` matches as by rules and selectors.
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
        self.constraints.matches(request, labels)
    }

    /// Whether there are conditions, which are asked with objects.
    pub fn has_conditions(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// Whether its conditions hold.
    ///
    /// - `left`: what the write may still cost.
    /// - `errors`: counts those that could not be evaluated, whether that counts or not.
    ///
    /// # Errors
    /// What is wrong with them, where that counts.
    pub fn conditions_hold(
        &self,
        inputs: &Inputs<'_>,
        left: &mut u64,
        errors: &mut u64,
    ) -> Result<bool, String> {
        if self.conditions.is_empty() {
            return Ok(true);
        }
        conditions::hold(&self.conditions, &Variables::default(), self.failure, inputs, left, errors)
    }
}
