//! What a function is: its arguments, its context, its refusal.
//!
//! In: nothing. Out: the types that every library shares. Never: a function.

use std::cell::Cell;
use std::sync::Arc;

use super::matcher::{Pattern, Patterns};
use crate::authorizer::Authorizer;
use crate::error::Error;
use crate::limits::{ELEMENT_BYTES, MADE_BYTES_MAX};
use crate::steps::Steps;
use crate::value::{List, Value};

/// What a function may ask of the outside, and how much all of them may make.
pub(crate) struct Context<'a> {
    pub authorizer: Option<&'a dyn Authorizer>,
    /// Bytes that were made of values: a cost does not count what some functions multiply.
    made: Cell<u64>,
    pub steps: Steps,
    pub(super) patterns: Patterns,
}

impl<'a> Context<'a> {
    pub fn new(authorizer: Option<&'a dyn Authorizer>) -> Context<'a> {
        Context { authorizer, made: Cell::new(0), steps: Steps::default(), patterns: Patterns::default() }
    }

    /// Notes what is about to be made.
    ///
    /// # Errors
    /// If it is too much for one evaluation.
    pub fn make(&self, bytes: usize) -> Result<(), Error> {
        self.made.set(self.made.get().saturating_add(bytes as u64));
        if self.made.get() > MADE_BYTES_MAX { Err(Error::CostExceeded) } else { Ok(()) }
    }

    /// As [`make`](Context::make), elements of a list.
    pub fn make_elements(&self, count: usize) -> Result<(), Error> {
        self.make(count.saturating_mul(ELEMENT_BYTES))
    }
}

pub(crate) type Found<'a> = Result<Value<'a>, Error>;
pub(crate) type Plain = for<'a> fn(&[Value<'a>], &Context<'a>) -> Found<'a>;

#[derive(Clone)]
pub(crate) enum Function {
    Plain(Plain),
    /// Something asked of a pattern that is known.
    Pattern(Arc<Pattern>),
}

pub(super) fn wrong<'a>() -> Found<'a> {
    Err(Error::Unsuited)
}

pub(super) fn text_list<'a>(texts: impl IntoIterator<Item = String>) -> Value<'a> {
    Value::List(List::Owned(Arc::new(texts.into_iter().map(Value::text).collect()), None))
}
