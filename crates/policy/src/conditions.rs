//! Match conditions: whether a policy has anything to say of a request.
//!
//! In: compiled conditions. Out: whether all hold, or what is wrong with them. Never: a decision.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/webhook/matchconditions/matcher.go`.

use forebay_cel::Value;

use crate::composition::{Composition, Variables};
use crate::evaluation::{Expression, Inputs, OUT_OF_BUDGET, OutOfBudget, activation, evaluate, slots};
use crate::limits::CONDITIONS_COST_MAX;
use crate::policy::FailurePolicy;

/// Whether the conditions hold.
///
/// - `left`: what the write may still cost.
/// - `errors`: counts those that could not be evaluated, as far as upstream looks.
///
/// # Errors
/// What is wrong with them, where that counts.
pub(crate) fn hold(
    conditions: &[Expression],
    variables: &Variables,
    failure: FailurePolicy,
    inputs: &Inputs<'_>,
    left: &mut u64,
    errors: &mut u64,
) -> Result<bool, String> {
    let failed = |why: String| match failure {
        FailurePolicy::Fail => Err(why),
        FailurePolicy::Ignore => Ok(false),
    };
    let slots = slots(inputs, true);
    let composition = Composition::new(variables);
    let with = activation(&slots, inputs, &composition);
    let mut budget = CONDITIONS_COST_MAX.min(*left);
    let before = budget;
    let mut results = Vec::new();
    for condition in conditions {
        match evaluate(condition, with, &composition, &mut budget) {
            Ok(result) => results.push(result),
            Err(OutOfBudget) => {
                *left = left.saturating_sub(before.saturating_add(composition.unpaid()));
                return failed(OUT_OF_BUDGET.to_owned());
            }
        }
    }
    *left = left.saturating_sub((before - budget).saturating_add(composition.unpaid()));
    let is_false = |result: &Result<Value<'_>, String>| matches!(result, Ok(Value::Bool(false)));
    let looked_at = results.iter().take_while(|result| !is_false(result));
    *errors += looked_at.filter(|result| result.is_err()).count() as u64;
    if results.iter().any(is_false) {
        return Ok(false);
    }
    let errors: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() { Ok(true) } else { failed(aggregate(errors)) }
}

/// Several errors as one, each once.
fn aggregate(errors: Vec<String>) -> String {
    let mut told: Vec<String> = Vec::new();
    for error in errors {
        // Few: a policy has 64 conditions at most.
        if !told.contains(&error) {
            told.push(error);
        }
    }
    match &told[..] {
        [only] => only.clone(),
        all => format!("[{}]", all.join(", ")),
    }
}
