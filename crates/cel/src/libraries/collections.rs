//! Lists, sets, maps and optionals.

use std::cmp::Ordering;
use std::sync::Arc;

use super::function::{Context, Found, Plain, wrong};
use super::texts;
use crate::error::Error;
use crate::objects::Object;
use crate::steps::Steps;
use crate::time::SECONDS_MIN;
use crate::value::{List, Map, Value, compare};

pub(super) fn find(name: &str) -> Option<Plain> {
    of_lists(name).or_else(|| {
        Some(match name {
            "size" => |args, _| size(args),
            "@in" | "in" | "_in_" => |args, context| match args {
                [wanted, Value::List(list)] => list.contains(wanted, &context.steps).map(Value::Bool),
                [wanted, Value::Map(map)] => match wanted.key() {
                    Some(key) => Ok(Value::Bool(map.get(&key)?.is_some())),
                    None => Ok(Value::Bool(false)),
                },
                _ => wrong(),
            },
            "cel.@mapInsert" => |args, _| insert(args),
            "sets.contains" => |args, context| sets(args, context, |one, two, steps| all_in(two, one, steps)),
            "sets.equivalent" => {
                |args, context| {
                    sets(args, context, |one, two, steps| {
                        Ok(all_in(two, one, steps)? && all_in(one, two, steps)?)
                    })
                }
            }
            "sets.intersects" => |args, context| sets(args, context, any_in),
            "optional.none" => |_, _| Ok(Value::Optional(None)),
            "optional.of" => |args, _| Ok(Value::some(args[0].clone())),
            "optional.ofNonZeroValue" => |args, _| {
                Ok(if is_zero(&args[0]) { Value::Optional(None) } else { Value::some(args[0].clone()) })
            },
            "hasValue" => |args, _| match &args[0] {
                Value::Optional(inner) => Ok(Value::Bool(inner.is_some())),
                _ => wrong(),
            },
            "value" => |args, _| match &args[0] {
                Value::Optional(Some(inner)) => Ok((**inner).clone()),
                Value::Optional(None) => Err(Error::new("optional.none() dereference")),
                _ => wrong(),
            },
            "optional.unwrap" | "unwrapOpt" => |args, _| unwrap(args),
            _ => return None,
        })
    })
}

fn of_lists(name: &str) -> Option<Plain> {
    Some(match name {
        "isSorted" => |args, _| {
            on_list(args, |list| {
                let items = list.to_vec()?;
                for pair in items.windows(2) {
                    if order(&pair[0], &pair[1])?.is_gt() {
                        return Ok(Value::Bool(false));
                    }
                }
                Ok(Value::Bool(true))
            })
        },
        "sum" => |args, context| sum(args, context, Value::Int(0)),
        "sum@uint" => |args, context| sum(args, context, Value::Uint(0)),
        "sum@double" => |args, context| sum(args, context, Value::Double(0.0)),
        "sum@duration" => |args, context| sum(args, context, Value::Duration(0)),
        "min" => |args, _| on_list(args, |list| extreme(list, Ordering::Less, "min")),
        "max" => |args, _| on_list(args, |list| extreme(list, Ordering::Greater, "max")),
        "indexOf" => index_of,
        "lastIndexOf" => last_index_of,
        "first" => |args, _| on_list(args, |list| Ok(Value::Optional(list.get(0)?.map(Arc::new)))),
        "last" => |args, _| {
            on_list(args, |list| {
                let last = list.len().checked_sub(1).map_or(Ok(None), |at| list.get(at))?;
                Ok(Value::Optional(last.map(Arc::new)))
            })
        },
        "slice" => |args, _| match args {
            [Value::List(list), Value::Int(from), Value::Int(to)] => slice(list, *from, *to),
            _ => wrong(),
        },
        "flatten" => |args, _| match args {
            [Value::List(list)] => flatten(list, 1),
            [Value::List(_), Value::Int(depth)] if *depth < 0 => {
                Err(Error::new("level must be non-negative"))
            }
            [Value::List(list), Value::Int(depth)] => flatten(list, *depth),
            _ => wrong(),
        },
        "reverse" => |args, _| {
            on_list(args, |list| {
                let mut items = list.to_vec()?;
                items.reverse();
                Ok(Value::list(items))
            })
        },
        "distinct" => |args, context| match args {
            [Value::List(list)] => distinct(list, &context.steps),
            _ => wrong(),
        },
        "sort" => |args, _| on_list(args, |list| sorted(list, list)),
        "@sortByAssociatedKeys" => |args, _| match args {
            [Value::List(list), Value::List(keys)] => sorted(list, keys),
            _ => wrong(),
        },
        "lists.range" => |args, context| match args {
            [Value::Int(count)] => {
                context.make_elements(usize::try_from(*count).unwrap_or(0))?;
                Ok(Value::list((0..*count).map(Value::Int).collect()))
            }
            _ => wrong(),
        },
        _ => return None,
    })
}

fn on_list<'a>(args: &[Value<'a>], what: fn(&List<'a>) -> Found<'a>) -> Found<'a> {
    match args {
        [Value::List(list)] => what(list),
        _ => wrong(),
    }
}

fn order(one: &Value<'_>, two: &Value<'_>) -> Result<Ordering, Error> {
    compare(one, two).ok_or_else(Error::no_such_overload)
}

fn size<'a>(args: &[Value<'a>]) -> Found<'a> {
    match args {
        [it @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))] => {
            Ok(Value::Int(it.size().unwrap_or(0) as i64))
        }
        _ => wrong(),
    }
}

/// - `nothing`: what the sum of nothing is.
fn sum<'a>(args: &[Value<'a>], context: &Context<'a>, nothing: Value<'a>) -> Found<'a> {
    let [Value::List(list)] = args else { return wrong() };
    let mut items = list.iter();
    let Some(first) = items.next() else { return Ok(nothing) };
    let Some(super::function::Function::Plain(add)) = super::find("_+_") else { return wrong() };
    items.try_fold(first?, |sum, item| add(&[sum, item?], context))
}

fn extreme<'a>(list: &List<'a>, wanted: Ordering, name: &str) -> Found<'a> {
    let mut best: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        let is_better = match &best {
            Some(best) => order(&item, best)? == wanted,
            None => true,
        };
        if is_better {
            best = Some(item);
        }
    }
    best.ok_or_else(|| Error::new(format!("{name} called on empty list")))
}

fn index_of<'a>(args: &[Value<'a>], context: &Context<'a>) -> Found<'a> {
    match args {
        [Value::String(text), Value::String(part)] => texts::index_of(text, part, 0).map(Value::Int),
        [Value::String(text), Value::String(part), Value::Int(from)] => {
            texts::index_of(text, part, *from).map(Value::Int)
        }
        [Value::List(list), wanted] => position(list, wanted, 0..list.len(), &context.steps),
        _ => wrong(),
    }
}

fn last_index_of<'a>(args: &[Value<'a>], context: &Context<'a>) -> Found<'a> {
    match args {
        [Value::String(text), Value::String(part)] => texts::last_index_of(text, part, None).map(Value::Int),
        [Value::String(text), Value::String(part), Value::Int(until)] => {
            texts::last_index_of(text, part, Some(*until)).map(Value::Int)
        }
        [Value::List(list), wanted] => position(list, wanted, (0..list.len()).rev(), &context.steps),
        _ => wrong(),
    }
}

fn position<'a>(
    list: &List<'a>,
    wanted: &Value<'a>,
    places: impl Iterator<Item = usize>,
    steps: &Steps,
) -> Found<'a> {
    for at in places {
        if let Some(found) = list.get(at)?
            && found.equals(wanted, steps)?
        {
            return Ok(Value::Int(at as i64));
        }
    }
    Ok(Value::Int(-1))
}

fn slice<'a>(list: &List<'a>, from: i64, to: i64) -> Found<'a> {
    let why = match (from, to) {
        _ if from < 0 || to < 0 => "negative indexes not supported".to_owned(),
        _ if from > to => "start index must be less than or equal to end index".to_owned(),
        _ if to > list.len() as i64 => format!("list is length {}", list.len()),
        _ => {
            let mut items = Vec::new();
            for at in from as usize..to as usize {
                items.extend(list.get(at)?);
            }
            return Ok(Value::list(items));
        }
    };
    Err(Error::new(format!("cannot slice({from}, {to}), {why}")))
}

/// Lists in it are as deep as a tree or an expression is, which is bounded.
fn flatten<'a>(list: &List<'a>, depth: i64) -> Found<'a> {
    fn gather<'a>(list: &List<'a>, depth: i64, into: &mut Vec<Value<'a>>) -> Result<(), Error> {
        for item in list.iter() {
            match item? {
                Value::List(inner) if depth > 0 => gather(&inner, depth - 1, into)?,
                other => into.push(other),
            }
        }
        Ok(())
    }
    let mut items = Vec::new();
    gather(list, depth, &mut items)?;
    Ok(Value::list(items))
}

fn distinct<'a>(list: &List<'a>, steps: &Steps) -> Found<'a> {
    let mut kept: Vec<Value<'a>> = Vec::new();
    for item in list.iter() {
        let item = item?;
        let mut is_new = true;
        for other in &kept {
            if other.equals(&item, steps)? {
                is_new = false;
                break;
            }
        }
        if is_new {
            kept.push(item);
        }
    }
    Ok(Value::list(kept))
}

fn sorted<'a>(list: &List<'a>, keys: &List<'a>) -> Found<'a> {
    if list.len() != keys.len() {
        return Err(Error::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            list.len(),
            keys.len()
        )));
    }
    let mut pairs: Vec<_> = keys.to_vec()?.into_iter().zip(list.to_vec()?).collect();
    let Some((first, _)) = pairs.first() else { return Ok(Value::list(Vec::new())) };
    if compare(first, first).is_none() && !matches!(first, Value::Double(_)) {
        return Err(Error::new("list elements must be comparable"));
    }
    if pairs.iter().any(|(key, _)| key.type_name() != first.type_name()) {
        return Err(Error::new("list elements must have the same type"));
    }
    pairs.sort_by(|(one, _), (two, _)| compare(one, two).unwrap_or(Ordering::Equal));
    Ok(Value::list(pairs.into_iter().map(|(_, item)| item).collect()))
}

fn insert<'a>(args: &[Value<'a>]) -> Found<'a> {
    match args.split_first() {
        Some((Value::Map(map), added)) => inserted(map.clone(), added),
        _ => wrong(),
    }
}

/// A map with a key and a value more, or another map's: in place where nobody else has it.
pub(crate) fn inserted<'a>(map: Map<'a>, added: &[Value<'a>]) -> Found<'a> {
    let Map::Owned(mut entries) = map else { return wrong() };
    let into = Arc::make_mut(&mut entries);
    let mut put = |key: &Value<'a>, value: Value<'a>| {
        let key = key.key().ok_or_else(|| Error::new("unsupported key type"))?;
        if into.contains_key(&key) {
            return Err(Error::new(format!("insert failed: key {} already exists", key.shown())));
        }
        into.insert(key, value);
        Ok(())
    };
    match added {
        [Value::Map(added)] => {
            for key in added.keys() {
                let value = key.key().map_or(Ok(None), |key| added.get(&key))?;
                put(&key, value.unwrap_or(Value::Null))?;
            }
        }
        [key, value] => put(key, value.clone())?,
        _ => return wrong(),
    }
    Ok(Value::Map(Map::Owned(entries)))
}

type Lists<'a> = fn(&List<'a>, &List<'a>, &Steps) -> Result<bool, Error>;

fn sets<'a>(args: &[Value<'a>], context: &Context<'a>, is: Lists<'a>) -> Found<'a> {
    match args {
        [Value::List(one), Value::List(two)] => is(one, two, &context.steps).map(Value::Bool),
        _ => wrong(),
    }
}

fn all_in<'a>(these: &List<'a>, list: &List<'a>, steps: &Steps) -> Result<bool, Error> {
    for item in these.iter() {
        if !list.contains(&item?, steps)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn any_in<'a>(these: &List<'a>, list: &List<'a>, steps: &Steps) -> Result<bool, Error> {
    for item in these.iter() {
        if list.contains(&item?, steps)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn unwrap<'a>(args: &[Value<'a>]) -> Found<'a> {
    let [Value::List(list)] = args else { return wrong() };
    let mut items = Vec::new();
    for (at, item) in list.iter().enumerate() {
        match item? {
            Value::Optional(inner) => items.extend(inner.map(Arc::unwrap_or_clone)),
            // The first is what upstream judges a list by.
            _ if at == 0 => return wrong(),
            _ => return Err(Error::new("value is not optional")),
        }
    }
    Ok(Value::list(items))
}

fn is_zero(it: &Value<'_>) -> bool {
    match it {
        Value::Null => true,
        Value::Bool(it) => !it,
        Value::Int(it) | Value::Duration(it) => *it == 0,
        Value::Uint(it) => *it == 0,
        Value::Double(it) => *it == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Optional(it) => it.is_none(),
        // The first second of the year 1.
        Value::Timestamp(at) => at.seconds == SECONDS_MIN && at.nanos == 0,
        Value::Type(_) | Value::Composed => false,
        Value::Struct(it) => it.fields.is_empty(),
        Value::Object(it) => match &**it {
            Object::Ip(it) => it.is_unspecified(),
            _ => false,
        },
    }
}
