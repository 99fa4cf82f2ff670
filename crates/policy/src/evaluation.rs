//! One expression after the other, out of one budget.
//!
//! In: compiled expressions, what they are evaluated over. Out: values, errors in upstream's words. Never:
//! goes on once the budget is spent.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/cel/{activation,condition}.go`.

use std::sync::Arc;

use forebay_cel::authorizer::{Asker, Authorizer, Check, ResourceCheck};
use forebay_cel::limits::PER_CALL_COST_MAX;
use forebay_cel::{Activation, Evaluation, Object, Value};
use serde_json::Value as Json;

use crate::compile::Compiled;
use crate::composition::Composition;
use crate::environment::{
    AUTHORIZER, NAMESPACE, OBJECT, OLD_OBJECT, PARAMS, REQUEST, REQUEST_RESOURCE, SLOTS, VARIABLES,
};

pub(crate) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// What the expressions of a policy are evaluated over; what is `None` is null.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    pub object: Option<&'a Json>,
    pub old_object: Option<&'a Json>,
    pub params: Option<&'a Json>,
    pub namespace: Option<&'a Json>,
    pub request: &'a Json,
    pub authorizer: &'a dyn Authorizer,
    /// What `authorizer.requestResource` asks about.
    pub request_resource: &'a ResourceCheck,
}

/// An expression of a policy: its text and what became of it.
pub(crate) struct Expression {
    pub text: Box<str>,
    pub compiled: Result<Compiled, String>,
}

/// The budget is spent.
#[derive(Debug, PartialEq)]
pub(crate) struct OutOfBudget;

/// Values by slot.
pub(crate) type Slots<'a> = [Option<Value<'a>>; SLOTS];

/// The values of all variables.
///
/// - `has_authorizer`: whether these expressions may ask it.
pub(crate) fn slots<'a>(inputs: &Inputs<'a>, has_authorizer: bool) -> Slots<'a> {
    let tree = |json: Option<&'a Json>| Some(json.map_or(Value::Null, Value::from_tree));
    let mut slots: Slots<'a> = Default::default();
    slots[OBJECT] = tree(inputs.object);
    slots[OLD_OBJECT] = tree(inputs.old_object);
    slots[PARAMS] = tree(inputs.params);
    slots[NAMESPACE] = tree(inputs.namespace);
    slots[REQUEST] = tree(Some(inputs.request));
    slots[VARIABLES] = Some(Value::Composed);
    if has_authorizer {
        slots[AUTHORIZER] = Some(Value::Object(Arc::new(Object::Authorizer(Asker::Requester))));
        let check = Check::Resource(Box::new(inputs.request_resource.clone()));
        slots[REQUEST_RESOURCE] = Some(Value::Object(Arc::new(Object::Check(check))));
    }
    slots
}

/// Evaluates one expression.
///
/// - `left`: the budget, of which it takes what the expression and the variables that it asks for cost.
///
/// # Errors
/// That the budget is spent.
pub(crate) fn evaluate<'a>(
    expression: &'a Expression,
    with: Activation<'a>,
    composition: &'a Composition<'a>,
    left: &mut u64,
) -> Result<Result<Value<'a>, String>, OutOfBudget> {
    let compiled = match &expression.compiled {
        Ok(compiled) => compiled,
        Err(why) => return Ok(Err(format!("compilation error: {why}"))),
    };
    composition.begin(compiled.height);
    let Evaluation { result, cost } = compiled.program.eval(with, PER_CALL_COST_MAX);
    let cost = composition.take_cost().saturating_add(cost);
    composition.settle(&result, cost);
    *left = left.checked_sub(cost).ok_or(OutOfBudget)?;
    Ok(result.map_err(|why| format!("expression '{}' resulted in error: {why}", expression.text)))
}

/// What expressions are evaluated with.
pub(crate) fn activation<'a>(
    slots: &'a Slots<'a>,
    inputs: &Inputs<'a>,
    composition: &'a Composition<'a>,
) -> Activation<'a> {
    Activation {
        variables: slots,
        authorizer: Some(inputs.authorizer),
        composer: Some(composition),
        spent: Some(composition.spent()),
    }
}
