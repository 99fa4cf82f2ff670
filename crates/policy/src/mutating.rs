//! What the mutations of a policy make of a request, with one parameter.
//!
//! In: a compiled policy, what it is evaluated over. Out: patches, or errors in upstream's words. Never:
//! applies one.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/policy/mutating/patch/{smd,json_patch}.go`.

use forebay_cel::json::Numbers;
use forebay_cel::{Struct, Value};
use serde_json::{Map, Value as Json};

use crate::composition::Composition;
use crate::conditions;
use crate::evaluation::{Expression, Inputs, OUT_OF_BUDGET, OutOfBudget, activation, evaluate, slots};
use crate::limits::{EVALUATION_COST_MAX, MADE_BYTES_MAX};
use crate::policy::Policy;

/// One step of a mutating policy.
pub(crate) struct Mutation {
    pub expression: Expression,
    pub kind: PatchKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Apply,
    Json,
}

/// What a mutation makes.
#[derive(Debug, PartialEq)]
pub enum Made {
    /// What is merged into the object by its schema.
    Applied(Json),
    /// Operations of a JSON patch.
    Operations(Vec<Json>),
}

impl Policy {
    /// How many mutations it has.
    pub fn mutations(&self) -> usize {
        self.mutations.len()
    }

    pub fn has_conditions(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// Whether its match conditions hold.
    ///
    /// - `errors`: counts those that could not be evaluated.
    ///
    /// # Errors
    /// What is wrong with them, where that counts.
    pub fn conditions_hold(
        &self,
        inputs: &Inputs<'_>,
        left: &mut u64,
        errors: &mut u64,
    ) -> Result<bool, String> {
        conditions::hold(&self.conditions, &self.variables, self.failure, inputs, left, errors)
    }

    /// What its mutation at `at` makes.
    ///
    /// - `left`: what the write may still cost.
    ///
    /// # Errors
    /// Why it makes nothing.
    pub fn make(&self, at: usize, inputs: &Inputs<'_>, left: &mut u64) -> Result<Made, String> {
        let Mutation { expression, kind } = &self.mutations[at];
        if let Err(why) = &expression.compiled {
            return Err(why.clone());
        }
        let slots = slots(inputs, true);
        let composition = Composition::new(&self.variables);
        let with = activation(&slots, inputs, &composition);
        let own = EVALUATION_COST_MAX.min(*left);
        let mut budget = own;
        let result = evaluate(expression, with, &composition, &mut budget);
        *left = left.saturating_sub((own - budget).saturating_add(composition.unpaid()));
        let value = match result {
            Ok(result) => result?,
            Err(OutOfBudget) => return Err(OUT_OF_BUDGET.to_owned()),
        };
        match kind {
            PatchKind::Apply => configuration(&value).map(Made::Applied),
            PatchKind::Json => operations(&value).map(Made::Operations),
        }
    }
}

fn configuration(value: &Value<'_>) -> Result<Json, String> {
    let made = value.to_json(Numbers::Native, MADE_BYTES_MAX).map_err(|why| why.to_string())?;
    named_by_path(made.misnamed)?;
    Ok(made.json)
}

fn named_by_path(misnamed: Vec<String>) -> Result<(), String> {
    if misnamed.is_empty() { Ok(()) } else { Err(format!("type mismatch: {}", misnamed.join("\n"))) }
}

fn operations(value: &Value<'_>) -> Result<Vec<Json>, String> {
    let Value::List(list) = value else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    let mut operations = Vec::new();
    let mut left = MADE_BYTES_MAX;
    for item in list.iter() {
        let Ok(Value::Struct(operation)) = item else {
            return Err(
                "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch".into()
            );
        };
        operations.push(Json::Object(self::operation(&operation, &mut left)?));
    }
    Ok(operations)
}

fn operation(of: &Struct<'_>, left: &mut usize) -> Result<Map<String, Json>, String> {
    let mut members = Map::new();
    for (name, value) in &of.fields {
        if let (Value::String(text), "from") = (value, &**name)
            && text.is_empty()
        {
            continue;
        }
        let made = value.to_json(Numbers::Doubles, *left).map_err(|why| {
            format!("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}")
        })?;
        *left -= made.bytes;
        if matches!(value, Value::Struct(_)) {
            named_by_path(made.misnamed)?;
        }
        members.insert(name.to_string(), made.json);
    }
    Ok(members)
}
