//! The variables of a policy, each evaluated when it is first asked for.
//!
//! In: compiled variables. Out: their values, and what they cost. Never: evaluates one twice for one list of
//! expressions; goes deeper than the stack allows.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/cel/composition.go`, `pkg/cel/lazy/lazy.go`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_cel::limits::{PER_CALL_COST_MAX, SHARED_STEPS_MAX, STEPS_PAID};
use forebay_cel::{Activation, Composer, Error, Evaluation, Spent, Value};

use crate::compile::Compiled;
use crate::limits::{COMPOSED_HEIGHT, NESTED_HEIGHT_MAX};

/// By name; of several of one name the last.
pub(crate) type Variables = BTreeMap<Arc<str>, Result<Compiled, String>>;

/// What is known of variables while a list of expressions is evaluated.
pub(crate) struct Composition<'a> {
    variables: &'a Variables,
    // By name; `None` while it is evaluated.
    made: RefCell<BTreeMap<&'a str, Option<Result<Value<'a>, Error>>>>,
    cost: Cell<u64>,
    /// Of the expressions that are being evaluated, within each other.
    height: Cell<u32>,
    /// What the expressions and the variables that they name have spent besides.
    spent: Spent,
    /// Bytes of what was made and is kept.
    kept: Cell<u64>,
}

impl<'a> Composition<'a> {
    pub fn new(variables: &'a Variables) -> Composition<'a> {
        Composition {
            variables,
            made: RefCell::default(),
            cost: Cell::new(0),
            height: Cell::new(0),
            spent: Spent::of_steps(SHARED_STEPS_MAX),
            kept: Cell::new(0),
        }
    }

    pub fn spent(&self) -> &Spent {
        &self.spent
    }

    /// An expression is over, and cost as much with its variables: of what it made nothing is left but what
    /// came of it, and what the variables are.
    pub fn settle(&self, result: &Result<Value<'a>, Error>, cost: u64) {
        self.spent.pay(cost);
        let kept = match result {
            Err(_) | Ok(Value::Null | Value::Bool(_) | Value::Int(_)) => self.kept.get(),
            Ok(Value::String(text)) => self.kept.get().saturating_add(text.len() as u64),
            Ok(_) => self.spent.made(),
        };
        self.kept.set(kept);
        self.spent.keep(kept);
    }

    /// What of the steps that were taken no cost has paid for, in units of it: a write pays for them out of
    /// [`WRITE_COST_MAX`](crate::limits::WRITE_COST_MAX), and not out of what is upstream's.
    pub fn unpaid(&self) -> u64 {
        self.spent.steps() / STEPS_PAID
    }

    /// What variables cost since this was last asked.
    pub fn take_cost(&self) -> u64 {
        self.cost.take()
    }

    /// The height of the expression that is evaluated next.
    pub fn begin(&self, height: u32) {
        self.height.set(height);
    }

    fn make(&'a self, name: &str, variable: &'a Compiled, with: Activation<'a>) -> Result<Value<'a>, Error> {
        let around = self.height.get();
        let height = around.saturating_add(variable.height).saturating_add(COMPOSED_HEIGHT);
        if height > NESTED_HEIGHT_MAX {
            let why = format!("composited variable {name:?} fails to evaluate: it is too deep in others");
            return Err(Error::new(why));
        }
        self.height.set(height);
        let (kept, made) = (self.kept.get(), self.spent.made());
        let Evaluation { result, cost } = variable.program.eval(with, PER_CALL_COST_MAX);
        self.height.set(around);
        // All that it made counts as kept, what variables within it made with it; of one that fails only
        // what those are.
        if result.is_ok() {
            self.kept.set(kept.saturating_add(self.spent.made().saturating_sub(made)));
        }
        self.cost.set(self.cost.get().saturating_add(cost));
        result.map_err(|why| Error::new(format!("composited variable {name:?} fails to evaluate: {why}")))
    }
}

impl<'a> Composer<'a> for Composition<'a> {
    fn compose(&'a self, name: &str, with: Activation<'a>) -> Result<Option<Value<'a>>, Error> {
        let Some((name, variable)) = self.variables.get_key_value(name) else { return Ok(None) };
        match self.made.borrow().get(&**name) {
            Some(Some(made)) => return made.clone().map(Some),
            Some(None) => {
                let why = format!("composited variable {name:?} fails to evaluate: it names itself");
                return Err(Error::new(why));
            }
            None => {}
        }
        self.made.borrow_mut().insert(name, None);
        let made = match variable {
            Ok(variable) => self.make(name, variable, with),
            Err(why) => Err(Error::new(format!("composited variable {name:?} fails to compile: {why}"))),
        };
        self.made.borrow_mut().insert(name, Some(made.clone()));
        made.map(Some)
    }
}
