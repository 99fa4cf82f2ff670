//! What the validations of a policy say of a request, with one parameter.
//!
//! In: a compiled policy, what it is evaluated over. Out: decisions with their messages. Never: what comes of
//! them, which the binding says.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/policy/validating/validator.go`.

use forebay_apimachinery::Reason;
use forebay_cel::Value;

use crate::binding::Binding;
use crate::composition::Composition;
use crate::evaluation::{Expression, Inputs, OUT_OF_BUDGET, OutOfBudget, activation, evaluate, slots};
use crate::limits::{ANNOTATION_BYTES_MAX, EVALUATION_COST_MAX, MESSAGE_BYTES_MAX};
use crate::policy::{FailurePolicy, Policy, Validation};

/// What is against a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub message: String,
    pub reason: Reason,
    /// Which of the validations it is of, from 0.
    pub at: usize,
}

impl Finding {
    /// What an audit log is told of it, as kube-apiserver writes it.
    pub fn noted(&self, policy: &str, binding: &Binding) -> String {
        let actions: Vec<&str> = binding.actions.iter().map(|action| action.as_str()).collect();
        let quoted = |text: &str| serde_json::Value::from(text);
        let (message, policy, name) = (quoted(&self.message), quoted(policy), quoted(&binding.name));
        let (at, actions) = (self.at, serde_json::json!(actions));
        format!(
            r#"[{{"message":{message},"policy":{policy},"binding":{name},"expressionIndex":{at},"validationActions":{actions}}}]"#
        )
    }
}

/// What came of all validations.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// What the binding's actions are for.
    pub failed: Vec<Finding>,
    /// What could not be evaluated, and does not count.
    pub ignored: Vec<String>,
    /// What denies whatever the binding says: annotations that could not be made.
    pub denied: Vec<Finding>,
    /// What an audit log is told: by key, <= the annotations that a policy may have.
    pub noted: Vec<(String, String)>,
}

/// What denies, and what an audit log is told by key.
type Annotated = (Vec<Finding>, Vec<(String, String)>);
type Results<'a> = Vec<Result<Value<'a>, String>>;

/// What came of the validations by themselves.
#[derive(Default)]
struct Decided {
    failed: Vec<Finding>,
    ignored: Vec<String>,
}

impl Decided {
    fn error(&mut self, failure: FailurePolicy, message: String, at: usize) {
        match failure {
            FailurePolicy::Fail => self.failed.push(Finding { message, reason: Reason::Invalid, at }),
            FailurePolicy::Ignore => self.ignored.push(message),
        }
    }
}

impl Policy {
    /// Evaluates the policy.
    ///
    /// - `for_conditions`: the same for its match conditions, which know no namespace.
    /// - `left`: what the write may still cost.
    /// - `looked`: told how many match conditions could not be evaluated, once they were, if there are any.
    pub fn validate(
        &self,
        inputs: &Inputs<'_>,
        for_conditions: &Inputs<'_>,
        left: &mut u64,
        looked: impl FnOnce(u64),
    ) -> Findings {
        let failed = |message: String| {
            let mut decided = Decided::default();
            decided.error(self.failure, message, 0);
            let Decided { failed, ignored } = decided;
            Findings { failed, ignored, ..Findings::default() }
        };
        if self.has_conditions() {
            let mut errors = 0;
            let holds = self.conditions_hold(for_conditions, left, &mut errors);
            looked(errors);
            match holds {
                Ok(true) => {}
                Ok(false) => return Findings::default(),
                Err(why) => return failed(why),
            }
        }
        let own = EVALUATION_COST_MAX.min(*left);
        let mut budget = own;
        let mut unpaid = 0;
        let decided = self.decide(inputs, &mut budget, &mut unpaid);
        *left = left.saturating_sub((own - budget).saturating_add(unpaid));
        let Ok(decided) = decided else { return failed(OUT_OF_BUDGET.to_owned()) };
        let own = EVALUATION_COST_MAX.min(*left);
        let mut budget = own;
        let mut unpaid = 0;
        let annotated = self.annotate(inputs, &mut budget, &mut unpaid);
        *left = left.saturating_sub((own - budget).saturating_add(unpaid));
        match annotated {
            Ok((denied, noted)) => {
                let Decided { failed, ignored } = decided;
                Findings { failed, ignored, denied, noted }
            }
            Err(OutOfBudget) => failed(OUT_OF_BUDGET.to_owned()),
        }
    }

    /// - `unpaid`: what was spent besides.
    fn decide(&self, inputs: &Inputs<'_>, left: &mut u64, unpaid: &mut u64) -> Result<Decided, OutOfBudget> {
        let (with_authorizer, without) = (slots(inputs, true), slots(inputs, false));
        let composition = Composition::new(&self.variables);
        let with = activation(&with_authorizer, inputs, &composition);
        let mut results: Results<'_> = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            let result = evaluate(&validation.expression, with, &composition, left);
            *unpaid = composition.unpaid();
            results.push(result.inspect_err(|_| *left = 0)?);
        }
        let before = *unpaid;
        let of_messages = Composition::new(&self.variables);
        let with = activation(&without, inputs, &of_messages);
        let mut messages = Vec::with_capacity(self.validations.len());
        let mut is_out = false;
        for validation in &self.validations {
            let Some(expression) = &validation.message_expression else {
                messages.push(None);
                continue;
            };
            let made = evaluate(expression, with, &of_messages, left);
            *unpaid = before.saturating_add(of_messages.unpaid());
            match made {
                Ok(result) => messages.push(result.ok()),
                Err(OutOfBudget) => {
                    *left = 0;
                    is_out = true;
                    messages.clear();
                    break;
                }
            }
        }
        let mut decided = Decided::default();
        for (at, (validation, result)) in self.validations.iter().zip(results).enumerate() {
            match result {
                Err(why) => decided.error(self.failure, why, at),
                Ok(_) if is_out => {
                    let why = format!("failed messageExpression: {OUT_OF_BUDGET}");
                    decided.error(self.failure, why, at);
                }
                Ok(Value::Bool(true)) => {}
                Ok(_) => {
                    let made = messages.get(at).and_then(Option::as_ref);
                    let message = validation.told(made);
                    decided.failed.push(Finding { message, reason: validation.reason, at });
                }
            }
        }
        Ok(decided)
    }

    /// What denies by annotations, and what they say.
    ///
    /// - `unpaid`: what was spent besides.
    fn annotate(
        &self,
        inputs: &Inputs<'_>,
        left: &mut u64,
        unpaid: &mut u64,
    ) -> Result<Annotated, OutOfBudget> {
        // Who may what is not known here: upstream compiles such an annotation, and it fails.
        let slots = slots(inputs, false);
        let composition = Composition::new(&self.variables);
        let with = activation(&slots, inputs, &composition);
        let (mut denied, mut noted) = (Vec::new(), Vec::new());
        for (at, (key, annotation)) in self.annotations.iter().enumerate() {
            let result = evaluate(annotation, with, &composition, left);
            *unpaid = composition.unpaid();
            let result = result.inspect_err(|_| *left = 0)?;
            match result {
                Err(why) if self.failure == FailurePolicy::Fail => {
                    denied.push(Finding { message: why, reason: Reason::Invalid, at });
                }
                Err(_) => {}
                Ok(Value::String(text)) => {
                    let text = text.trim();
                    let end = text.floor_char_boundary(ANNOTATION_BYTES_MAX);
                    if !text.is_empty() {
                        noted.push((key.to_string(), text[..end].to_owned()));
                    }
                }
                Ok(Value::Null) => {}
                Ok(other) => {
                    let message = unsupported(annotation, &other);
                    denied.push(Finding { message, reason: Reason::Invalid, at });
                }
            }
        }
        Ok((denied, noted))
    }
}

fn unsupported(annotation: &Expression, found: &Value<'_>) -> String {
    format!(
        "valueExpression '{}' resulted in unsupported return type: {}. Return type must be either string or null.",
        annotation.text,
        found.type_name()
    )
}

impl Validation {
    /// What is told of it: what its expression made, what it says, or its text.
    fn told(&self, made: Option<&Value<'_>>) -> String {
        let made = match made {
            Some(Value::String(text)) => text.trim(),
            _ => "",
        };
        if !made.is_empty() && made.len() <= MESSAGE_BYTES_MAX && !made.contains('\n') {
            return made.to_owned();
        }
        if self.message.is_empty() {
            return format!("failed expression: {}", self.expression.text.trim());
        }
        self.message.to_string()
    }
}
