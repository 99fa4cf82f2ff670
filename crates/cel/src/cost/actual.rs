//! What a call has cost, by its arguments.
//!
//! In: a rule, and arguments. Out: a cost. Never: calls anything.

use crate::error::Error;
use crate::spent::Spent;
use crate::value::Value;

use super::table::Rule;
use super::{CHECK, LIST, PATTERN, TRAVERSAL};

fn size(args: &[Value<'_>], at: usize) -> f64 {
    args.get(at).and_then(Value::size).unwrap_or(1) as f64
}

/// What an optional has in it.
fn inner<'v, 'a>(args: &'v [Value<'a>], at: usize) -> Option<&'v Value<'a>> {
    let mut found = args.get(at);
    while let Some(Value::Optional(Some(inner))) = found {
        found = Some(inner);
    }
    found
}

/// As [`size`], of what an optional has in it.
fn inner_size(args: &[Value<'_>], at: usize) -> f64 {
    inner(args, at).and_then(Value::size).unwrap_or(1) as f64
}

fn up(cost: f64) -> u64 {
    cost.ceil() as u64
}

/// Whether a call costs by what comes of it.
pub(crate) fn is_of_result(rule: Rule) -> bool {
    matches!(rule, Rule::Join | Rule::Slice | Rule::Range | Rule::Reverse)
}

/// What a call of these arguments costs; those that failed are null.
///
/// - `result`: what came of it, where the cost [is of that](is_of_result).
/// - `left`: what it may cost; of what costs more it is only said that it does.
///
/// # Errors
/// Steps are spent.
pub(crate) fn cost(
    rule: Rule,
    args: &[Value<'_>],
    result: Option<&Result<Value<'_>, Error>>,
    (left, spent): (u64, &Spent),
) -> Result<u64, Error> {
    Ok(match rule {
        Rule::One | Rule::AddList | Rule::Either | Rule::Choice => 1,
        Rule::Check => CHECK,
        Rule::Parse(times) => up(size(args, 0) * times * TRAVERSAL),
        Rule::Convert | Rule::Affix | Rule::Format | Rule::ToBytes | Rule::FromBytes | Rule::Quote => {
            up(size(args, 0) * TRAVERSAL)
        }
        Rule::Replace | Rule::Split => up(size(args, 0) * 2.0 * TRAVERSAL),
        Rule::Search => {
            let mut traversal = Traversal { cost: 0, left, spent };
            if let Some(it) = args.first() {
                traversal.look(it)?;
            }
            traversal.cost
        }
        Rule::Join => up(result_size(result) * 2.0 * TRAVERSAL),
        Rule::Find | Rule::Match => up((1.0 + size(args, 0)) * TRAVERSAL) * up(size(args, 1) * PATTERN),
        Rule::Selector => LIST + up(size(args, 1) * TRAVERSAL) + up(up(size(args, 1) * 0.5) as f64 * 50.0),
        Rule::ContainsIp { parses } => {
            up(2.0 * size(args, 0) * TRAVERSAL) + if parses { up(size(args, 1) * TRAVERSAL) } else { 0 }
        }
        Rule::ContainsCidr { parses } => {
            let parsed = if parses { up(size(args, 1) * TRAVERSAL) } else { 0 };
            up(2.0 * size(args, 0) * TRAVERSAL) + up(size(args, 0) * TRAVERSAL) + 1 + parsed
        }
        Rule::Validate => match args {
            [Value::Object(it), _] => {
                let pattern = it.format_pattern_max().unwrap_or(0) as f64;
                up((1.0 + size(args, 1)) * TRAVERSAL) * up(pattern * PATTERN)
            }
            _ => 1,
        },
        Rule::Equals if matches!(args, [Value::Object(_), _]) => 1,
        Rule::Equals | Rule::Compare => up(smaller(args, spent)? * TRAVERSAL),
        Rule::In => inner_size(args, 1) as u64,
        Rule::Concat => up((inner_size(args, 0) + inner_size(args, 1)) * TRAVERSAL),
        Rule::Contains => up(inner_size(args, 0) * TRAVERSAL) * up(inner_size(args, 1) * TRAVERSAL),
        Rule::Sets(factor) => 1 + (size(args, 0) * size(args, 1) * factor) as u64,
        Rule::Slice | Rule::Range | Rule::Reverse => allocated(1.0, result_size(result)),
        Rule::Flatten => allocated(1.0, size(args, 0)),
        Rule::FlattenTo => {
            let depth = match args.get(1) {
                Some(Value::Int(depth)) => *depth as f64,
                _ => 1.0,
            };
            allocated(depth, size(args, 0))
        }
        Rule::Distinct | Rule::Sort { .. } => self_compared(args.first()),
        Rule::SortBy { .. } => self_compared(args.get(1)),
    })
}

fn result_size(result: Option<&Result<Value<'_>, Error>>) -> f64 {
    result.and_then(|result| result.as_ref().ok()).and_then(Value::size).unwrap_or(1) as f64
}

/// The smaller size of two, a long text counted no further than the other is.
fn smaller(args: &[Value<'_>], spent: &Spent) -> Result<f64, Error> {
    let (one, two) = (inner(args, 0), inner(args, 1));
    let size = |it: Option<&Value<'_>>| it.and_then(Value::size).unwrap_or(1);
    // A character has four bytes at most.
    let least = |it: &Value<'_>| match it {
        Value::String(text) => text.len() as u64 / 4,
        it => it.size().unwrap_or(1),
    };
    let most = |it: &Value<'_>| match it {
        Value::String(text) => text.len() as u64,
        it => it.size().unwrap_or(1),
    };
    if let (Some(first), Some(second)) = (one, two) {
        if most(first) <= least(second) {
            return Ok(size(one) as f64);
        }
        if most(second) <= least(first) {
            return Ok(size(two) as f64);
        }
        spent.walk(first.bytes())?;
        spent.walk(second.bytes())?;
    }
    Ok(size(one).min(size(two)) as f64)
}

fn allocated(factor: f64, size: f64) -> u64 {
    let elements = size * factor;
    if elements < 0.0 {
        // A depth below zero, which is refused: upstream's cost goes around.
        return (elements as i64 as u64).wrapping_add(1 + LIST);
    }
    (elements as u64).saturating_add(1 + LIST)
}

fn self_compared(list: Option<&Value<'_>>) -> u64 {
    let Some(Value::List(list)) = list else { return allocated(2.0, 1.0) };
    let size = list.len() as f64;
    let of_texts = matches!(list.get(0), Ok(Some(Value::String(_) | Value::Bytes(_))));
    allocated(if of_texts { 2.0 + TRAVERSAL } else { 2.0 }, size * size)
}

/// Looks at everything in a value, in what is there many times as often.
struct Traversal<'s> {
    cost: u64,
    left: u64,
    spent: &'s Spent,
}

impl Traversal<'_> {
    /// Goes on until more was spent than may be. It recurses by the value's height, which is bounded.
    fn look(&mut self, it: &Value<'_>) -> Result<(), Error> {
        self.spent.walk(0)?;
        match it {
            Value::String(text) => self.pay((text.len() as f64 * TRAVERSAL) as u64),
            Value::Bytes(bytes) => {
                self.spent.walk(bytes.len())?;
                self.pay((bytes.len() as f64 * TRAVERSAL) as u64);
            }
            Value::List(list) => {
                for item in list.iter() {
                    match item {
                        Ok(item) => self.look(&item)?,
                        Err(_) => self.pay(1),
                    }
                    if self.cost > self.left {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for key in map.keys(self.spent) {
                    let key = key?;
                    self.look(&key)?;
                    match key.key().and_then(|key| map.get(&key).ok().flatten()) {
                        Some(value) => self.look(&value)?,
                        None => self.pay(1),
                    }
                    if self.cost > self.left {
                        break;
                    }
                }
            }
            _ => self.pay(1),
        }
        Ok(())
    }

    fn pay(&mut self, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
    }
}
