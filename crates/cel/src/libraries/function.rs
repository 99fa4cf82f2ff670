//! What a function is: its arguments, its context, its refusal.
//!
//! In: nothing. Out: the types that every library shares. Never: a function.

use std::sync::Arc;

use super::matcher::{Pattern, Patterns};
use crate::authorizer::Authorizer;
use crate::error::Error;
use crate::heights::Items;
use crate::spent::Spent;
use crate::value::{List, Value};

/// What a function may ask of the outside, and what all of them have spent.
pub(crate) struct Context<'a> {
    pub authorizer: Option<&'a dyn Authorizer>,
    spent: Spending<'a>,
    pub(super) patterns: Patterns,
}

enum Spending<'a> {
    Own(Spent),
    Shared(&'a Spent),
}

impl<'a> Context<'a> {
    /// - `shared`: what others have spent already, out of the same.
    pub fn new(authorizer: Option<&'a dyn Authorizer>, shared: Option<&'a Spent>) -> Context<'a> {
        let spent = shared.map_or_else(|| Spending::Own(Spent::default()), Spending::Shared);
        Context { authorizer, spent, patterns: Patterns::default() }
    }

    pub fn spent(&self) -> &Spent {
        match &self.spent {
            Spending::Own(spent) => spent,
            Spending::Shared(spent) => spent,
        }
    }

    /// Notes what is about to be made.
    ///
    /// # Errors
    /// If it is too much for one evaluation.
    pub fn make(&self, bytes: usize) -> Result<(), Error> {
        self.spent().make(bytes)
    }

    /// As [`make`](Context::make), elements of a list.
    pub fn make_elements(&self, count: usize) -> Result<(), Error> {
        self.spent().make_elements(count)
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
    flat(texts.into_iter().map(Value::text).collect())
}

/// A list of what has nothing in it.
pub(super) fn flat<'a>(items: Vec<Value<'a>>) -> Value<'a> {
    Value::List(List::Owned(Arc::new(Items::flat(items)), None))
}
