//! The variables of a policy, each evaluated when it is first asked for.
//!
//! In: compiled variables. Out: their values, and what they cost. Never: evaluates one twice for one list of
//! expressions; goes deeper than the stack allows.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/cel/composition.go`, `pkg/cel/lazy/lazy.go`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_cel::limits::PER_CALL_COST_MAX;
use forebay_cel::{Activation, Composer, Error, Evaluation, Value};

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
}

impl<'a> Composition<'a> {
    pub fn new(variables: &'a Variables) -> Composition<'a> {
        let made = RefCell::default();
        Composition { variables, made, cost: Cell::new(0), height: Cell::new(0) }
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
        let Evaluation { result, cost } = variable.program.eval(with, PER_CALL_COST_MAX);
        self.height.set(around);
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
