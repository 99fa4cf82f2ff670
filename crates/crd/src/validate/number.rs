//! Bounds, multiples and ranges of numbers.
//!
//! Integers are compared as integers, unless the bound itself is no value of the schema's type: then that is
//! reported too, and the comparison is made in floating point.

use super::violation::Violation;
use super::{At, Checker, Outcome};
use crate::schema::{Flags, Kind, Node};
use forebay_apimachinery::go_format::{self as go, Num};

/// The type and format by which a number is measured; without a type nothing is.
#[derive(Clone, Copy)]
struct Range<'a> {
    integer: bool,
    format: Option<&'a str>,
}

impl Checker<'_> {
    pub(super) fn number(&mut self, node: &Node, value: Num, at: &At<'_>) -> Outcome {
        let mut outcome = Outcome { valid: true, matches: 1 };
        let kind = self.only_kind(node);
        let range = Range {
            integer: kind == Kind::Integer,
            format: self.format_name(node).filter(|name| match kind {
                Kind::Integer => matches!(*name, "int32" | "int64"),
                Kind::Number => matches!(*name, "float" | "double"),
                _ => false,
            }),
        };
        if !range.holds(value) {
            self.report(&mut outcome, || range.violation("Checked", at));
        }
        let Some(rules) = &node.rules else { return outcome };
        if let Some(factor) = rules.multiple_of {
            self.multiple_of(factor, value, range, at, &mut outcome);
        }
        if let Some(min) = rules.minimum {
            let exclusive = node.has(Flags::EXCLUSIVE_MINIMUM);
            self.bound(Bound { limit: min, exclusive, upper: false }, value, range, at, &mut outcome);
        }
        if let Some(max) = rules.maximum {
            let exclusive = node.has(Flags::EXCLUSIVE_MAXIMUM);
            self.bound(Bound { limit: max, exclusive, upper: true }, value, range, at, &mut outcome);
        }
        outcome
    }

    fn bound(&mut self, bound: Bound, value: Num, range: Range<'_>, at: &At<'_>, outcome: &mut Outcome) {
        let native = range.holds(Num::Float(bound.limit));
        if !native {
            self.report(outcome, || range.violation(bound.name(), at));
        }
        let (broken, limit) = match value {
            Num::Int(v) if native => (bound.breaks(v, bound.limit as i64), (bound.limit as i64).to_string()),
            v => (bound.breaks(v.as_f64(), bound.limit), go::print_float(bound.limit)),
        };
        if broken {
            self.report(outcome, || {
                Violation::invalid(at, printed(value, native), &format!("{} {limit}", bound.text()))
            });
        }
    }

    fn multiple_of(&mut self, factor: f64, value: Num, range: Range<'_>, at: &At<'_>, outcome: &mut Outcome) {
        let native = range.holds(Num::Float(factor));
        if !native {
            self.report(outcome, || range.violation("MultipleOf", at));
        }
        let (positive, divides, factor) = match value {
            Num::Int(v) if native => {
                let factor = factor as i64;
                (factor > 0, factor > 0 && v % factor == 0, factor.to_string())
            }
            v => {
                let v = v.as_f64();
                let quotient = if factor < 1.0 { 1.0 / factor * v } else { v / factor };
                (factor > 0.0, is_integral(quotient), go::print_float(factor))
            }
        };
        if !positive {
            self.report(outcome, || Violation::bad_factor(at, &factor));
        } else if !divides {
            let text = format!("should be a multiple of {factor}");
            self.report(outcome, || Violation::invalid(at, printed(value, native), &text));
        }
    }
}

/// A number as it is printed, converted first if the comparison was made in floating point.
fn printed(value: Num, native: bool) -> String {
    match value {
        Num::Int(i) if native => i.to_string(),
        v => go::print_float(v.as_f64()),
    }
}

#[derive(Clone, Copy)]
struct Bound {
    limit: f64,
    exclusive: bool,
    upper: bool,
}

impl Bound {
    fn breaks<T: PartialOrd>(self, value: T, limit: T) -> bool {
        match (self.upper, self.exclusive) {
            (true, false) => value > limit,
            (true, true) => value >= limit,
            (false, false) => value < limit,
            (false, true) => value <= limit,
        }
    }

    fn name(self) -> &'static str {
        if self.upper { "Maximum boundary" } else { "Minimum boundary" }
    }

    fn text(self) -> &'static str {
        match (self.upper, self.exclusive) {
            (true, false) => "should be less than or equal to",
            (true, true) => "should be less than",
            (false, false) => "should be greater than or equal to",
            (false, true) => "should be greater than",
        }
    }
}

impl Range<'_> {
    fn holds(self, value: Num) -> bool {
        let fits = |value: f64, low: f64, high: f64| value.fract() == 0.0 && value >= low && value < high;
        match (self.integer, self.format, value) {
            (true, Some("int32"), Num::Int(i)) => i32::try_from(i).is_ok(),
            (true, _, Num::Int(_)) => true,
            (true, Some("int32"), Num::Float(f)) => fits(f, f64::from(i32::MIN), f64::from(i32::MAX) + 1.0),
            (true, _, Num::Float(f)) => fits(f, i64::MIN as f64, i64::MAX as f64),
            (false, Some("float"), value) => (value.as_f64() as f32).is_finite(),
            (false, ..) => true,
        }
    }

    fn violation(self, what: &str, at: &At<'_>) -> Violation {
        let kind = if self.integer { "integer" } else { "number" };
        Violation::plain(match self.format {
            Some(format) => format!("{what} value must be of type {kind} with format {format} in {at}"),
            None => format!("{what} value must be of type {kind} (default format) in {at}"),
        })
    }
}

/// Whether a float counts as a JSON integer: within 2^53, and no further from a whole number than rounding
/// explains.
pub(super) fn is_integral(value: f64) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    const EPSILON: f64 = 1e-9;
    if !value.is_finite() || value.abs() > LARGEST {
        return false;
    }
    let whole = value.trunc();
    if value == whole {
        return true;
    }
    // Go compares with the value converted to an unsigned integer, so only positive values may be a little
    // above one.
    let difference = (value - whole).abs();
    value > 0.0 && whole != 0.0 && difference / (value.abs() + whole.abs()) < EPSILON
}
