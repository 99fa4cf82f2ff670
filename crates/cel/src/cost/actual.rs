//! What a call has cost, by its arguments.
//!
//! In: a rule, and arguments. Out: a cost. Never: calls anything.

use crate::error::Error;
use crate::value::{List, Value};

use super::table::Rule;
use super::{CHECK, LIST, PATTERN, TRAVERSAL};

fn size(args: &[Value<'_>], at: usize) -> f64 {
    args.get(at).and_then(Value::size).unwrap_or(1) as f64
}

/// As [`size`], of what an optional has in it.
fn inner_size(args: &[Value<'_>], at: usize) -> f64 {
    let mut found = args.get(at);
    while let Some(Value::Optional(Some(inner))) = found {
        found = Some(inner);
    }
    found.and_then(Value::size).unwrap_or(1) as f64
}

fn up(cost: f64) -> u64 {
    cost.ceil() as u64
}

/// What a call of these arguments costs; those that failed are null.
pub(crate) fn cost(rule: Rule, args: &[Value<'_>], result: &Result<Value<'_>, Error>) -> u64 {
    match rule {
        Rule::One | Rule::AddList | Rule::Either | Rule::Choice => 1,
        Rule::Check => CHECK,
        Rule::Parse(times) => up(size(args, 0) * times * TRAVERSAL),
        Rule::Convert | Rule::Affix | Rule::Format | Rule::ToBytes | Rule::FromBytes | Rule::Quote => {
            up(size(args, 0) * TRAVERSAL)
        }
        Rule::Replace | Rule::Split => up(size(args, 0) * 2.0 * TRAVERSAL),
        Rule::Search => args.first().map_or(0, traversal),
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
        Rule::Equals | Rule::Compare => up(inner_size(args, 0).min(inner_size(args, 1)) * TRAVERSAL),
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
    }
}

fn result_size(result: &Result<Value<'_>, Error>) -> f64 {
    result.as_ref().ok().and_then(Value::size).unwrap_or(1) as f64
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

/// Looks at everything in `it`. It is as deep as a tree is, which its parser bounds.
fn traversal(it: &Value<'_>) -> u64 {
    match it {
        Value::String(text) => (text.len() as f64 * TRAVERSAL) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * TRAVERSAL) as u64,
        Value::List(list) => traversal_of(list),
        Value::Map(map) => {
            let keys = map.keys();
            let value = |key: &Value<'_>| {
                let found = key.key().and_then(|key| map.get(&key).ok().flatten());
                found.as_ref().map_or(1, traversal)
            };
            keys.iter().map(|key| traversal(key) + value(key)).sum()
        }
        _ => 1,
    }
}

fn traversal_of(list: &List<'_>) -> u64 {
    list.iter().map(|item| item.as_ref().map_or(1, traversal)).sum()
}
