//! Patterns: RE2's syntax, in time that is linear in the text.
//!
//! In: texts and patterns. Out: what a pattern matches in a text. Never: a dialect, which `re2` knows; a
//! pattern that is a value kept beyond one evaluation.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use forebay_re2::Compiled;

use super::function::{Context, Found, Function, Plain, text_list, wrong};
use crate::error::Error;
use crate::limits::PATTERNS_OF_VALUES_MAX;
use crate::value::Value;

/// A pattern that an expression spells out, and what is asked of it.
pub(crate) struct Pattern {
    pattern: forebay_re2::Pattern,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Matches,
    Find,
    FindAll,
}

fn what(name: &str) -> Option<What> {
    Some(match name {
        "matches" => What::Matches,
        "find" => What::Find,
        "findAll" => What::FindAll,
        _ => return None,
    })
}

pub(super) fn find(name: &str) -> Option<Plain> {
    Some(match what(name)? {
        What::Matches => |args, context| of_value(What::Matches, args, context),
        What::Find => |args, context| of_value(What::Find, args, context),
        What::FindAll => |args, context| of_value(What::FindAll, args, context),
    })
}

/// A pattern that is a value.
fn of_value<'a>(what: What, args: &[Value<'a>], context: &Context<'a>) -> Found<'a> {
    match (what, args) {
        (_, [Value::String(_), Value::String(pattern)])
        | (What::FindAll, [Value::String(_), Value::String(pattern), Value::Int(_)]) => {
            let compiled = context.patterns.compiled(pattern, context)?;
            applied(&compiled, what, args, context)
        }
        _ => wrong(),
    }
}

fn applied<'a>(pattern: &Compiled, what: What, args: &[Value<'a>], context: &Context<'a>) -> Found<'a> {
    let [Value::String(text), _, rest @ ..] = args else { return wrong() };
    let most = match rest {
        [] => usize::MAX,
        // Below zero is as many as there are.
        [Value::Int(most)] => usize::try_from(*most).unwrap_or(usize::MAX),
        _ => return wrong(),
    };
    let illegal = |why| Error::new(format!("Illegal regex: {why}"));
    Ok(match what {
        What::Matches => Value::Bool(pattern.matches(text).map_err(Error::new)?),
        What::Find => Value::text(pattern.find(text).map_err(illegal)?.unwrap_or_default()),
        What::FindAll => {
            let found = pattern.find_all(text, most).map_err(illegal)?;
            context.make_elements(found.len())?;
            text_list(found.into_iter().map(str::to_owned))
        }
    })
}

/// Patterns that are values: those that one evaluation asked for last, up to [`PATTERNS_OF_VALUES_MAX`].
#[derive(Default)]
pub(super) struct Patterns(RefCell<VecDeque<(Box<str>, Arc<Compiled>)>>);

impl Patterns {
    /// What `pattern` is compiled to, be it valid or not. A cost counts its letters, which says nothing of
    /// what it is compiled to, so that is counted with what an evaluation makes.
    fn compiled(&self, pattern: &str, context: &Context<'_>) -> Result<Arc<Compiled>, Error> {
        let mut kept = self.0.borrow_mut();
        // Few: `PATTERNS_OF_VALUES_MAX`.
        if let Some((_, known)) = kept.iter().find(|(text, _)| **text == *pattern) {
            return Ok(known.clone());
        }
        let compiled = Arc::new(Compiled::unshared(pattern));
        context.make(compiled.tried())?;
        if kept.len() == PATTERNS_OF_VALUES_MAX {
            kept.pop_front();
        }
        kept.push_back((pattern.into(), compiled.clone()));
        Ok(compiled)
    }
}

/// Whether a text is a pattern.
pub(crate) fn is_valid(pattern: &str) -> bool {
    forebay_re2::check(pattern).is_ok()
}

/// A function that is asked of a pattern which an expression spells out; `None` for any other function.
///
/// # Errors
/// If it is no pattern.
pub(crate) fn of_constant(name: &str, pattern: &str) -> Option<Result<Function, Error>> {
    let what = what(name)?;
    let pattern = forebay_re2::Pattern::new(pattern);
    let valid = pattern.compiled().check().map_err(Error::new);
    Some(valid.map(|()| Function::Pattern(Arc::new(Pattern { pattern, what }))))
}

impl Pattern {
    pub fn apply<'a>(&self, args: &[Value<'a>], context: &Context<'a>) -> Found<'a> {
        applied(&self.pattern.compiled(), self.what, args, context)
    }
}
