//! One field of an object, found by its path.
//!
//! In: an object's bytes and a path. Out: the scalar at its end. One pass, whatever the path: of members with
//! one name the last one counts, and it may come at the very end. Never: a tree; recurses; unescapes a string
//! that is neither a name nor wanted.

use std::borrow::Cow;
use std::fmt;

use forebay_apimachinery::field_path::{FieldPath, PathStep, STEPS_MAX};
use forebay_apimachinery::json::{Reader, Unexpected};
use serde_json::{Number, Value};

use crate::error::FieldError;
use crate::limits::DEPTH_MAX;
use crate::type_meta::{TypeMeta, is_whole};

/// What is neither an object nor an array, nor null.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar<'a> {
    Text(Cow<'a, str>),
    Number(Number),
    Bool(bool),
}

impl Scalar<'_> {
    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        if let Scalar::Text(text) = self { Some(text) } else { None }
    }

    /// The number, if it is one that fits.
    pub fn as_i64(&self) -> Option<i64> {
        if let Scalar::Number(number) = self { number.as_i64() } else { None }
    }

    /// The number, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        if let Scalar::Number(number) = self { number.as_f64() } else { None }
    }

    /// The truth value, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        if let Scalar::Bool(value) = self { Some(*value) } else { None }
    }

    /// The same, of nobody's bytes.
    pub fn into_owned(self) -> Scalar<'static> {
        match self {
            Scalar::Text(text) => Scalar::Text(Cow::Owned(text.into_owned())),
            Scalar::Number(number) => Scalar::Number(number),
            Scalar::Bool(value) => Scalar::Bool(value),
        }
    }
}

/// Without quotes or escapes.
impl fmt::Display for Scalar<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Text(text) => to.write_str(text),
            Scalar::Number(number) => write!(to, "{number}"),
            Scalar::Bool(value) => write!(to, "{value}"),
        }
    }
}

/// The scalar at `path` in `body`, which is all of an object or what is behind its type.
pub(crate) fn find<'a>(
    body: &'a [u8],
    of: &'a TypeMeta,
    path: &FieldPath,
) -> Result<Option<Scalar<'a>>, FieldError> {
    let steps = path.steps();
    // Few: a path has STEPS_MAX steps.
    if steps.contains(&PathStep::Elements) {
        return Err(FieldError::Many);
    }
    if matches!(steps, [PathStep::Element(_), ..]) {
        return Ok(None);
    }
    let mut text = Reader::new(body);
    let mut found = None;
    if is_whole(body) {
        text.begin(b'{')?;
    } else {
        found = of_type(of, steps);
    }
    // Members or elements that were passed, of each one that was entered.
    let mut passed = [0_usize; STEPS_MAX];
    let mut level = 0;
    loop {
        let comes = comes(&mut text, &steps[level], passed[level])?;
        let Some(is_wanted) = comes else {
            match level {
                0 => return Ok(found),
                _ => level -= 1,
            }
            continue;
        };
        passed[level] += 1;
        if !is_wanted {
            text.skip_within(DEPTH_MAX - level)?;
            continue;
        }
        // Whatever was found in one of that name before, this one counts.
        found = None;
        match (steps.get(level + 1), text.peek()) {
            (None, _) => found = scalar(&mut text, DEPTH_MAX - level)?,
            (Some(PathStep::Member(_)), Some(bracket @ b'{'))
            | (Some(PathStep::Element(_)), Some(bracket @ b'[')) => {
                text.begin(bracket)?;
                level += 1;
                passed[level] = 0;
            }
            _ => text.skip_within(DEPTH_MAX - level)?,
        }
    }
}

/// What the type says, as it does not stand in the body.
fn of_type<'a>(of: &'a TypeMeta, steps: &[PathStep]) -> Option<Scalar<'a>> {
    let [PathStep::Member(name)] = steps else { return None };
    let text = match name.as_str() {
        "kind" => of.kind(),
        "apiVersion" => of.api_version(),
        _ => return None,
    };
    Some(Scalar::Text(text.into()))
}

/// Whether the value that comes is the step's; `None` when all came.
fn comes(text: &mut Reader<'_>, step: &PathStep, passed: usize) -> Result<Option<bool>, Unexpected> {
    match step {
        PathStep::Member(wanted) => Ok(text.member(passed)?.map(|name| *name == *wanted.as_bytes())),
        PathStep::Element(wanted) => Ok(text.element(passed)?.then_some(passed == *wanted)),
        PathStep::Elements => Ok(None),
    }
}

fn scalar<'a>(text: &mut Reader<'a>, depth_max: usize) -> Result<Option<Scalar<'a>>, Unexpected> {
    let from = text.at();
    if text.peek() == Some(b'"') {
        return Ok(Some(Scalar::Text(text.string()?)));
    }
    text.skip_within(depth_max)?;
    let word = &text.bytes()[from..text.at()];
    if matches!(word.first(), Some(b'{' | b'[')) {
        return Ok(None);
    }
    match serde_json::from_slice(word) {
        Ok(Value::Null) => Ok(None),
        Ok(Value::Bool(value)) => Ok(Some(Scalar::Bool(value))),
        Ok(Value::Number(number)) => Ok(Some(Scalar::Number(number))),
        _ => Err(Unexpected { what: "a number that is none", at: from }),
    }
}
